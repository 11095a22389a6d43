"""The topic that alarms go to."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from fmblocks._edge import typed


class AlertTopic(sns.Topic):
    """An SNS topic for alarms: TLS only, encrypted, with addresses that have to be confirmed once.

    Args:
        key: its policy must let CloudWatch use it, as :class:`ProjectKey` does: an alarm that cannot use the key is
            dropped in silence. Default: the topic is not encrypted.
        email: addresses; each gets a message to confirm.
    """

    @typed
    def __init__(self, scope: Construct, id: str, *, key: kms.IKey | None = None, email: Sequence[str] = ()) -> None:
        super().__init__(scope, id, master_key=key, enforce_ssl=True)
        for address in email:
            self.add_subscription(subscriptions.EmailSubscription(address))
