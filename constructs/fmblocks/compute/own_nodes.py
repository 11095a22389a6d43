"""The edge of every group of nodes in your own account: fleets, node groups of EKS and of PCS."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, public_among, with_zone, zone_of
from fmblocks.capacity import rules as capacity_rules
from fmblocks.capacity.bought import CapacityBlock, ICapacity
from fmblocks.capacity.settings import Capacity, Launch
from fmblocks.catalog import parse_zone
from fmblocks.cluster import rules as cluster_rules
from fmblocks.cluster.settings import NodeRole, Orchestrator
from fmblocks.compute import rules
from fmblocks.compute.efa_placement_group import placement_of
from fmblocks.compute.node_launch_template import NodeLaunchTemplate


def check_own_nodes(
    scope: Construct,
    *,
    template: NodeLaunchTemplate,
    subnet: ec2.ISubnet,
    count: int,
    min_count: int,
    launch: Launch,
    orchestrator: Orchestrator,
) -> CapacityBlock | None:
    """Refuse a group that EC2 would not start, and give back its Capacity Block where it has one.

    Raises:
        FindingsError: rules CB-07, CB-15, CR-07, FMB-24, FMB-32, FMB-46, NET-05, PCS-06, PG-04.
    """
    bought = template.capacity
    block = bought if isinstance(bought, CapacityBlock) else None
    if block is not None:
        with_zone("capacity.start", block.start)
        with_zone("capacity.end", block.end)
    zone = zone_of(subnet)
    values = {
        "count": count,
        "min_count": min_count,
        "instance_type": template.instance_type,
        "types": instance_types(scope),
        "placement": placement_of(template.placement_group),
        "capacity": Capacity.model_construct(
            mode=bought.capacity_mode,
            availability_zone=bought.availability_zone,
            start=block.start if block else None,
            end=block.end if block else None,
            launch=launch if block or launch is Launch.SCHEDULED else None,
        ),
        "orchestrator": orchestrator,
        "emptied": orchestrator is not Orchestrator.PCS,
        "role": NodeRole.COMPUTE,  # what logs in is no matter of a construct: whatever is in no queue
        # Where the subnet's zone is not told there is nothing to compare with.
        "primary": (bought.availability_zone if zone is None or _incomparable(zone, bought) else zone) or "",
        "public_subnets": public_among([subnet], None),
    }
    names = {
        "capacity.availability_zone": "vpc_subnet",
        "subnets[0]": "vpc_subnet",
        "capacity.end": "capacity",
        "capacity.launch": "launch",
    }
    ids = (*rules.FLEET_CONSTRUCT, *capacity_rules.FLEET_CONSTRUCT, *cluster_rules.OWN_NODES_CONSTRUCT, "NET-05")
    check_arguments(scope, ids, values, names=names)
    return block


def _incomparable(zone: str, bought: ICapacity) -> bool:
    """A name and an id may be the same zone: which names stand for which ids differs between accounts."""
    here, there = parse_zone(zone), parse_zone(bought.availability_zone or "")
    return here is not None and there is not None and here.by_id != there.by_id
