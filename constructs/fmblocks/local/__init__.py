"""A local AWS for the real CDK CLI: ministack, extended with what the example projects use.

``session`` and ``environment`` run in the user's environment; ``server`` runs in one of its own, since ministack pins
an older botocore.
"""
