"""A fleet of accelerator nodes on EC2."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import aws_cdk as cdk
import jsii
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, member, public_among, typed, with_zone, zone_of
from fmblocks.capacity import rules as capacity_rules
from fmblocks.capacity.bought import CapacityBlock, ICapacity
from fmblocks.capacity.settings import Capacity, Launch
from fmblocks.catalog import parse_zone
from fmblocks.cluster import rules as cluster_rules  # noqa: F401  registers FMB-32
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute import rules
from fmblocks.compute.efa_launch_template import EfaLaunchTemplate
from fmblocks.compute.efa_placement_group import placement_of

# EC2 terminates the instances of a block 30 minutes before its end, those of UltraServers 60 (rule CB-05), and warns
# ten minutes before that. The fleet is emptied first, so that jobs hear SIGTERM from their own scheduler (rule CB-10).
_BEFORE_END = timedelta(minutes=45)
_BEFORE_END_OF_ULTRASERVERS = timedelta(minutes=75)


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
        if isinstance(launch_template.capacity, CapacityBlock):
            with_zone("capacity.start", launch_template.capacity.start)
            with_zone("capacity.end", launch_template.capacity.end)
        block = launch_template.capacity if isinstance(launch_template.capacity, CapacityBlock) else None
        self._check(vpc_subnet, count, min_count, launch, block)
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
            ultra = self.template.instance_type.startswith("p6e-gb200.")
            self._action("End", block.end - (_BEFORE_END_OF_ULTRASERVERS if ultra else _BEFORE_END), 0, 0)

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

    def _check(
        self, subnet: ec2.ISubnet, count: int, min_count: int, launch: Launch, block: CapacityBlock | None
    ) -> None:
        bought = self.template.capacity
        zone = zone_of(subnet)
        values = {
            "count": count,
            "min_count": min_count,
            "instance_type": self.template.instance_type,
            "types": instance_types(self),
            "placement": placement_of(self.template.placement_group),
            "capacity": Capacity.model_construct(
                mode=bought.capacity_mode,
                availability_zone=bought.availability_zone,
                start=block.start if block else None,
                end=block.end if block else None,
                launch=launch if block else None,
            ),
            # Where the subnet's zone is not told there is nothing to compare with.
            "orchestrator": Orchestrator.EC2,
            "primary": (bought.availability_zone if zone is None or _incomparable(zone, bought) else zone) or "",
            "public_subnets": public_among([subnet], None),
        }
        names = {"capacity.availability_zone": "vpc_subnet", "subnets[0]": "vpc_subnet", "capacity.end": "capacity"}
        check_arguments(
            self, (*rules.FLEET_CONSTRUCT, *capacity_rules.FLEET_CONSTRUCT, "FMB-32", "NET-05"), values, names=names
        )


def _incomparable(zone: str, bought: ICapacity) -> bool:
    """A name and an id may be the same zone: which names stand for which ids differs between accounts."""
    here, there = parse_zone(zone), parse_zone(bought.availability_zone or "")
    return here is not None and there is not None and here.by_id != there.by_id
