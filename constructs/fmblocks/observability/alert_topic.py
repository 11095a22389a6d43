"""The topic that alarms go to."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from fmblocks._edge import typed


class AlertTopic(sns.Topic):
    """An SNS topic for alarms and events: TLS only, encrypted, with addresses that have to be confirmed once.

    Args:
        key: its policy must let CloudWatch and EventBridge use it, as :class:`ProjectKey` does: what cannot use the
            key is dropped in silence. Default: the topic is not encrypted.
        email: addresses; each gets a message to confirm.
    """

    @typed
    def __init__(self, scope: Construct, id: str, *, key: kms.IKey | None = None, email: Sequence[str] = ()) -> None:
        super().__init__(scope, id, master_key=key, enforce_ssl=True)
        # A policy of one's own takes the place of that which lets the account publish, so it has to say who may.
        stack = cdk.Stack.of(self)
        alarms = stack.format_arn(
            service="cloudwatch", resource="alarm", resource_name="*", arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME
        )
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid="CloudWatchAlarms",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account},
                    "ArnLike": {"aws:SourceArn": alarms},
                },
            )
        )
        # AWS shows no condition for rules of EventBridge (re:Post, *Why isn't my Amazon SNS topic receiving EventBridge
        # notifications?*), and one that it does not support would drop every event in silence.
        self.add_to_resource_policy(
            iam.PolicyStatement(
                sid="EventBridgeRules",
                principals=[iam.ServicePrincipal("events.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic_arn],
            )
        )
        for address in email:
            self.add_subscription(subscriptions.EmailSubscription(address))
