"""A fleet of accelerator nodes on EC2."""

from __future__ import annotations

from datetime import UTC, datetime

import aws_cdk as cdk
import jsii
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from fmblocks._edge import member, typed
from fmblocks.capacity.block_schedule import last_use
from fmblocks.capacity.bought import CapacityBlock
from fmblocks.capacity.settings import Launch
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute.efa_launch_template import EfaLaunchTemplate
from fmblocks.compute.own_nodes import check_own_nodes


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class GpuFleet(cdk.Resource):
    """Nodes of one launch template in one subnet, as an Auto Scaling group that scales by nobody's rule.

    A group of one subnet never rebalances between zones, which would end running jobs. Sizes that scheduled actions
    have set survive every later deployment. Reserved capacity needs no spare instance to replace one: the old one goes
    first.

    With a :class:`CapacityBlock`, ``launch`` says when nodes start. scheduled: the group is made empty, a scheduled
    action fills it at the block's start and another one empties it before the end; Auto Scaling refuses actions in the
    past, so once the block has begun a changed count goes with ``launch: now``. now: the group is made full, and
    emptied before the end. No template reads the clock.

    Args:
        launch_template: how a node is launched.
        vpc_subnet: the one private subnet.
        count: nodes.
        min_count: the group's least size. Default: 0, so that scheduled actions and hands may empty it.
        launch: with a Capacity Block. Default: now.
        instance_refresh: replace running nodes when the launch template changes; without it new nodes only have the new
            one. Default: false.

    Raises:
        FindingsError: rules CB-07, CB-15, CR-07, FMB-24, FMB-32, NET-05, PG-04.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        launch_template: EfaLaunchTemplate,
        vpc_subnet: ec2.ISubnet,
        count: int,
        min_count: int = 0,
        launch: Launch = Launch.NOW,
        instance_refresh: bool = False,
    ) -> None:
        super().__init__(scope, id)
        launch = member(Launch, launch, "launch")
        self.template = launch_template
        block = check_own_nodes(
            self,
            template=launch_template,
            subnet=vpc_subnet,
            count=count,
            min_count=min_count,
            launch=launch,
            orchestrator=Orchestrator.EC2,
        )
        scheduled = block is not None and launch is Launch.SCHEDULED
        self.resource = autoscaling.CfnAutoScalingGroup(
            self,
            "Resource",
            launch_template=autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty(
                launch_template_id=launch_template.launch_template_id, version=launch_template.latest_version
            ),
            vpc_zone_identifier=[vpc_subnet.subnet_id],
            min_size="0" if scheduled else str(min_count),
            max_size=str(count),
            desired_capacity="0" if scheduled else str(count),
            # Nodes of a full reservation have no spare: the old one goes before the new one comes.
            instance_maintenance_policy=autoscaling.CfnAutoScalingGroup.InstanceMaintenancePolicyProperty(
                min_healthy_percentage=0, max_healthy_percentage=100
            ),
            metrics_collection=[autoscaling.CfnAutoScalingGroup.MetricsCollectionProperty(granularity="1Minute")],
        )
        self.resource.cfn_options.update_policy = cdk.CfnUpdatePolicy(
            # What a scheduled action or a hand has set is not what the template says, and must not be put back.
            auto_scaling_scheduled_action=cdk.CfnAutoScalingScheduledAction(
                ignore_unmodified_group_size_properties=True
            ),
            auto_scaling_instance_refresh=cdk.CfnAutoScalingInstanceRefresh(
                strategy="Rolling",
                preferences=cdk.CfnAutoScalingInstanceRefreshPreferences(
                    min_healthy_percentage=0, max_healthy_percentage=100, skip_matching=True
                ),
            )
            if instance_refresh
            else None,
        )
        # Nodes that start before their way out stands install nothing and mount nothing.
        self.resource.node.add_dependency(
            launch_template, *launch_template.security_groups, vpc_subnet.internet_connectivity_established
        )
        if block is not None:
            self._schedule(block, count, min_count, scheduled=scheduled)

    def _schedule(self, block: CapacityBlock, count: int, min_count: int, *, scheduled: bool) -> None:
        if scheduled and block.start is not None:
            self._action("Start", block.start, count, min_count)
        if block.end is not None:
            self._action("End", last_use(block.end, self.template.instance_type), 0, 0)

    def _action(self, id: str, at: datetime, size: int, smallest: int) -> None:
        autoscaling.CfnScheduledAction(
            self,
            id,
            auto_scaling_group_name=self.resource.ref,
            start_time=at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            desired_capacity=size,
            min_size=smallest,
        )

    @property
    def auto_scaling_group_name(self) -> str:
        """The group's name."""
        return self.resource.ref

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the nodes."""
        return self.template.connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the nodes."""
        return self.template.role.grant_principal

    def metric(self, metric_name: str, *, statistic: str = cloudwatch.Stats.AVERAGE) -> cloudwatch.Metric:
        """A metric of the group, by its name in the namespace AWS/AutoScaling."""
        return cloudwatch.Metric(
            namespace="AWS/AutoScaling",
            metric_name=metric_name,
            dimensions_map={"AutoScalingGroupName": self.auto_scaling_group_name},
            statistic=statistic,
            period=cdk.Duration.minutes(1),
        )

    def metric_in_service_instances(self) -> cloudwatch.Metric:
        """Nodes that run (GroupInServiceInstances, average over one minute)."""
        return self.metric("GroupInServiceInstances")
