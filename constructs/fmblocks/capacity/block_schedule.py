"""One-time schedules that fill a group at the start of a Capacity Block and empty it before its end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

# EC2 terminates the instances of a block 30 minutes before its end, those of UltraServers 60 (rule CB-05), and warns
# ten minutes before that. The group is emptied first, so that jobs hear SIGTERM from their own scheduler (rule CB-10).
_BEFORE_END = timedelta(minutes=45)
_BEFORE_END_OF_ULTRASERVERS = timedelta(minutes=75)


def last_use(end: datetime, instance_type: str) -> datetime:
    """When the nodes of a block that ends at ``end`` are stopped."""
    ultra = instance_type.startswith("p6e-gb200.")
    return end - (_BEFORE_END_OF_ULTRASERVERS if ultra else _BEFORE_END)


class BlockSchedule(Construct):
    """Calls one operation of one service at given times, with a role that may do nothing else.

    Amazon EventBridge Scheduler calls the API itself: no function runs, and the template holds no clock. A schedule
    whose time has passed stays and does nothing.

    Args:
        service: as the SDK spells it, for example eks.
        action: the operation in camel case, for example updateNodegroupConfig.
        permission: the IAM action behind it.
        resource_arn: what it may be called on.
        calls: name → when, and the input of the operation. The keys of an input are written in Pascal case: with those
            of the API the schedule is refused.

    Attributes:
        alarms: a call that failed, a call that was given up; without actions.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        service: str,
        action: str,
        permission: str,
        resource_arn: str,
        calls: Mapping[str, tuple[datetime, Mapping[str, object]]],
    ) -> None:
        super().__init__(scope, id)
        stack = cdk.Stack.of(self)
        group = scheduler.CfnScheduleGroup(self, "Group")
        self.role = iam.Role(
            self,
            "Role",
            # The group is the source, never the schedule: EventBridge Scheduler User Guide, *Confused deputy
            # prevention*.
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group.attr_arn}},
            ),
            description="Lets EventBridge Scheduler change the size of one group of nodes",
        )
        policy = iam.Policy(
            self,
            "Policy",
            roles=[self.role],
            statements=[iam.PolicyStatement(actions=[permission], resources=[resource_arn])],
        )
        for name, (at, payload) in calls.items():
            schedule = scheduler.CfnSchedule(
                self,
                name,
                group_name=group.ref,
                schedule_expression=f"at({at.astimezone(UTC):%Y-%m-%dT%H:%M:%S})",
                schedule_expression_timezone="UTC",
                flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
                target=scheduler.CfnSchedule.TargetProperty(
                    arn=f"arn:{cdk.Aws.PARTITION}:scheduler:::aws-sdk:{service}:{action}",
                    role_arn=self.role.role_arn,
                    input=stack.to_json_string(dict(payload)),
                    # The group may be in the middle of another change; an hour of a block is worth some patience.
                    retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                        maximum_retry_attempts=30, maximum_event_age_in_seconds=3600
                    ),
                ),
            )
            schedule.node.add_dependency(policy)
        # What the service refused, and what was given up: an hour of a block is paid, whether it was used or not.
        self.alarms = [
            cloudwatch.Metric(
                namespace="AWS/Scheduler",
                metric_name=metric,
                dimensions_map={"ScheduleGroup": group.ref},
                statistic=cloudwatch.Stats.SUM,
                period=cdk.Duration.minutes(5),
            ).create_alarm(
                self,
                metric,
                threshold=0,
                comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
                evaluation_periods=1,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
                alarm_description=f"A group was not filled or emptied for its Capacity Block: {self.node.path}",
            )
            for metric in ("TargetErrorCount", "InvocationDroppedCount")
        ]
