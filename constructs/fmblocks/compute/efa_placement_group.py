"""A placement group for nodes that talk over EFA."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import check_arguments, typed
from fmblocks.compute import rules
from fmblocks.compute.settings import Placement, PlacementMode


class EfaPlacementGroup(ec2.PlacementGroup):
    """Keeps the nodes of a job close to each other.

    It helps instances on demand, and reservations that are made in it. Do not use one with a Capacity Block, which is
    co-located already and refuses it, nor with a reservation that was made outside: its capacity cannot be used there
    (rules X-01, X-08).

    CloudFormation replaces the group when any of its tags changes (rule PG-09), which fails while instances use it. So
    tags of a stack or an app do not reach it; only ``immutable_tags`` do.

    Args:
        strategy: cluster, partition or spread. Default: cluster.
        partition_count: partitions, 1 to 7, with strategy partition. Default: chosen by EC2.
        immutable_tags: tags that never change. Default: none.

    Raises:
        FindingsError: rule PG-03.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        strategy: ec2.PlacementGroupStrategy = ec2.PlacementGroupStrategy.CLUSTER,
        partition_count: int | None = None,
        immutable_tags: Mapping[str, str] | None = None,
    ) -> None:
        # Before CDK's own check, which speaks of other names.
        placement = Placement(mode=PlacementMode(strategy.value.lower()), partition_count=partition_count)
        check_arguments(scope, rules.GROUP_CONSTRUCT, {"placement": placement}, names=_NAMES)
        super().__init__(scope, id, strategy=strategy, partitions=partition_count)
        resource = self.node.default_child
        assert isinstance(resource, cdk.CfnResource)
        tags = [{"Key": key, "Value": value} for key, value in sorted((immutable_tags or {}).items())]
        resource.add_property_override("Tags", tags or None)


def placement_of(group: ec2.IPlacementGroup | None) -> Placement:
    """What rules are told about a group; the strategy of an imported one is not known."""
    if group is None:
        return Placement()
    if not isinstance(group, ec2.PlacementGroup) or group.strategy is None:
        return Placement(group_name="an existing group")
    return Placement(mode=PlacementMode(group.strategy.value.lower()))


_NAMES = {"placement.partition_count": "partition_count", "placement.mode": "strategy"}
