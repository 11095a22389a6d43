"""Alarms of a Lustre file system."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from fmblocks._edge import typed, unresolved
from fmblocks.storage.lustre_file_system import DataRepositoryPublisher, ILustreFileSystem

BYTES_PER_GIB = 1024**3


class LustreAlarms(Construct):
    """Tells before a file system is full, and when files do not reach S3, or objects the file system.

    Args:
        file_system: made here or elsewhere.
        capacity_gib: its storage capacity in GiB. Default: no alarm about space; Intelligent-Tiering has no capacity.
        free_percent: how much of it has to be free. Default: 15.
        export_age: how long the oldest file may wait for its export. Default: no alarm about exports.
        import_age: how long the oldest object may wait for its import. FSx gives up an association whose events are two
            weeks old. Default: no alarm about imports.
        alarm_topic: what hears of them. Default: the alarms have no action.

    Attributes:
        free_capacity_alarm: None without ``capacity_gib``, or where it is a token.
        export_alarm: None without ``export_age``.
        import_alarm: None without ``import_age``.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system: ILustreFileSystem,
        capacity_gib: int | None = None,
        free_percent: int = 15,
        export_age: cdk.Duration | None = None,
        import_age: cdk.Duration | None = None,
        alarm_topic: sns.ITopic | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._topic = alarm_topic
        self.free_capacity_alarm = self.export_alarm = self.import_alarm = None
        if capacity_gib is not None and not unresolved(capacity_gib):
            self.free_capacity_alarm = self._alarm(
                "FreeCapacity",
                file_system.metric_free_data_storage_capacity(),
                capacity_gib * BYTES_PER_GIB * free_percent / 100,
                cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                f"Less than {free_percent} % of the file system is free",
            )
        if export_age is not None:
            self.export_alarm = self._age(
                file_system, DataRepositoryPublisher.AUTO_EXPORT, export_age, "Files wait for their export"
            )
        if import_age is not None:
            self.import_alarm = self._age(
                file_system, DataRepositoryPublisher.AUTO_IMPORT, import_age, "Objects wait for their import"
            )

    def _age(
        self, file_system: ILustreFileSystem, publisher: DataRepositoryPublisher, age: cdk.Duration, text: str
    ) -> cloudwatch.Alarm:
        return self._alarm(
            publisher,
            file_system.metric_age_of_oldest_queued_message(publisher),
            age.to_seconds(),
            cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            f"{text} for more than {age.to_human_string()}",
        )

    def _alarm(
        self,
        id: str,
        metric: cloudwatch.Metric,
        threshold: float,
        comparison: cloudwatch.ComparisonOperator,
        description: str,
    ) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            f"{id}Alarm",
            metric=metric,
            threshold=threshold,
            comparison_operator=comparison,
            evaluation_periods=10,
            # FSx sends nothing during maintenance.
            treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
            alarm_description=f"{description}: {self.node.path}",
        )
        if self._topic is not None:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
        return alarm
