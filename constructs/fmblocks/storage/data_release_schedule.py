"""Giving the space of exported files back, by schedule."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sns as sns
from constructs import Construct

from fmblocks._edge import check_arguments, fault, typed
from fmblocks.findings import FindingsError
from fmblocks.storage.data_repository_association import DataRepositoryAssociation
from fmblocks.storage.settings import NIGHTLY, Release

# Where lists of the files that could not be released go, below the prefix of an association.
_REPORTS = "fmblocks-release-reports"


class DataReleaseSchedule(Construct):
    """Releases exported files that nobody touched for a while: their data is in S3, and read from there when needed.

    EventBridge Scheduler calls fsx:CreateDataRepositoryTask; there is no function in between. It delivers at least
    once, and a release that runs twice does no harm. FSx works on one task of a file system at a time: a call that
    meets another one is tried a few times within the hour, which is alarmed; the next run does what this one did not.

    A task that could not release a file writes a list of them into S3, below the first association that
    imports nothing; nothing else tells of it (FSx sends no event), so look there when space does not come back.

    Args:
        associations: of one file system, with ``auto_export``; their directories are released.
        last_access: whole days that a file was neither read nor changed; 0 releases every exported file. Clients that
            mount with ``noatime`` leave the time of the last read as it was.
        schedule: default: every night at three, in UTC.
        alarm_topic: hears when a call fails. Default: the alarms have no action.

    Attributes:
        schedule: the schedule, in a group of its own.
        role: what it acts as.
        target_error_alarm: FSx refused a call.
        dropped_alarm: a call was given up.

    Raises:
        FindingsError: rule FMB-61.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        associations: Sequence[DataRepositoryAssociation],
        last_access: cdk.Duration,
        schedule: scheduler.ScheduleExpression | None = None,
        alarm_topic: sns.ITopic | None = None,
    ) -> None:
        super().__init__(scope, id)
        when = schedule or scheduler.ScheduleExpression.expression(NIGHTLY, cdk.TimeZone.ETC_UTC)
        days = int(last_access.to_days())
        given = {
            "release": Release(days_since_last_access=days, schedule=when.expression_string),
            "data_repository_associations": [one.link for one in associations],
        }
        names = {
            "release.days_since_last_access": "last_access",
            "release.schedule": "schedule",
            "release": "associations",
        }
        check_arguments(self, ("FMB-61",), given, names=names)
        systems = {one.file_system.node.path: one.file_system for one in associations}
        if len(systems) > 1:
            text = f"stand on {len(systems)} file systems: {', '.join(sorted(systems))}"
            raise FindingsError([fault("associations", text, "make a schedule for each of them")])
        (file_system,) = systems.values()
        stack = cdk.Stack.of(self)
        # Reports where nothing is imported would stay objects; elsewhere they come back as files.
        first = min(associations, key=lambda one: one.imports)
        group = scheduler.ScheduleGroup(self, "Group", removal_policy=cdk.RemovalPolicy.DESTROY)
        self.role = iam.Role(
            self,
            "Role",
            # The group is the source, never the schedule: EventBridge Scheduler User Guide, *Confused deputy
            # prevention*.
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group.schedule_group_arn}
                },
            ),
            description="Lets EventBridge Scheduler start release tasks of one file system",
        )
        # Both resources: Service Authorization Reference, Amazon FSx. Ids of tasks are not known before they run.
        statement = iam.PolicyStatement(
            actions=["fsx:CreateDataRepositoryTask"],
            resources=[
                stack.format_arn(service="fsx", resource="file-system", resource_name=file_system.file_system_id),
                stack.format_arn(service="fsx", resource="task", resource_name="*"),
            ],
        )
        self.schedule = scheduler.Schedule(
            self,
            "Schedule",
            schedule=when,
            schedule_group=group,
            # Not all file systems of an account at the same minute.
            time_window=scheduler.TimeWindow.flexible(cdk.Duration.minutes(15)),
            description=f"Releases exported files after {days} days",
            target=targets.Universal(
                service="fsx",
                action="createDataRepositoryTask",
                role=self.role,
                retry_attempts=3,
                max_event_age=cdk.Duration.hours(1),
                policy_statements=[statement],
                input=scheduler.ScheduleTargetInput.from_object(
                    {
                        "FileSystemId": file_system.file_system_id,
                        "Type": "RELEASE_DATA_FROM_FILESYSTEM",
                        # Relative to the mount point; / alone is everything.
                        "Paths": [one.link.path.lstrip("/") or "/" for one in associations],
                        "ReleaseConfiguration": {"DurationSinceLastAccess": {"Unit": "DAYS", "Value": days}},
                        "Report": {
                            "Enabled": True,
                            "Format": "REPORT_CSV_20191124",
                            "Scope": "FAILED_FILES_ONLY",
                            "Path": f"{first.data_repository_path.rstrip('/')}/{_REPORTS}",
                        },
                        "ClientRequestToken": scheduler.ContextAttribute.execution_id,
                    }
                ),
            ),
        )
        self.target_error_alarm = self._alarm(
            "TargetErrors", group.metric_target_errors(period=cdk.Duration.minutes(5)), "FSx refused to release data"
        )
        self.dropped_alarm = self._alarm(
            "Dropped", group.metric_dropped(period=cdk.Duration.minutes(5)), "A release of data was given up"
        )
        if alarm_topic is not None:
            for alarm in (self.target_error_alarm, self.dropped_alarm):
                alarm.add_alarm_action(actions.SnsAction(alarm_topic))

    def _alarm(self, id: str, metric: cloudwatch.Metric, description: str) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            f"{id}Alarm",
            metric=metric.with_(statistic=cloudwatch.Stats.SUM),
            threshold=0,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=1,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"{description}: {self.node.path}",
        )
