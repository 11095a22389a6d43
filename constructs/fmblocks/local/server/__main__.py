"""Starts the server: ``python -m fmblocks.local.server``; address and folders come from the environment."""

from __future__ import annotations

import sys

from fmblocks.local.server import ec2_types, engine, kubernetes_types, schema_types, services

schema_types.install()
ec2_types.install()
kubernetes_types.install()
services.install()
schema_types.answer_like_cloudformation()
sys.argv = sys.argv[:1]  # ministack reads the command line too
engine.serve()
