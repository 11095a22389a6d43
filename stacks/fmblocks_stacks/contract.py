"""What one stack tells another: SSM String parameters under ``/fmblocks/<foundation>/``, one value each.

No exports: an export in use cannot change, and a foundation that cannot change is a deadlock. See
docs/adr/0002-stack-contract.md.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from fmblocks.observability.settings import Alerts


class Publisher(Construct):
    """Writes a foundation's values."""

    def __init__(self, scope: Construct, id: str, *, foundation: str) -> None:
        super().__init__(scope, id)
        self._foundation = foundation

    def publish(self, name: str, value: str, description: str) -> None:
        """Write one value under ``name``, for example ``subnet/usw2-az2``."""
        ssm.StringParameter(
            self,
            name.replace("/", ":"),  # names hold no colon
            parameter_name=parameter_name(self._foundation, name),
            string_value=value,
            description=description,
        )


class Subscriber:
    """Reads a foundation's values: each becomes a stack parameter that CloudFormation resolves at every deployment."""

    def __init__(self, stack: cdk.Stack, *, foundation: str) -> None:
        self._stack = stack
        self._foundation = foundation

    def value(self, name: str) -> str:
        """The value published under ``name`` (a token)."""
        return ssm.StringParameter.value_for_string_parameter(self._stack, parameter_name(self._foundation, name))

    def alert_topic(self, scope: Construct, alerts: Alerts | None) -> sns.ITopic | None:
        """Where the project's alarms and events go: its own topic, or the one that the foundation made for it."""
        if alerts is None:
            return None
        return sns.Topic.from_topic_arn(scope, "Alerts", alerts.topic_arn or self.value("alerts/topic-arn"))


def parameter_name(foundation: str, name: str) -> str:
    """The full name of a parameter."""
    return f"/fmblocks/{foundation}/{name}"
