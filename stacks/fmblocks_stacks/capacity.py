"""CapacityStack: what is billed whether it is used or not, and lives longer than the nodes that use it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks.capacity.capacity_reservation import CapacityReservation
from fmblocks.catalog import Types
from fmblocks.cluster.settings import NodeGroup
from fmblocks.compute.efa_placement_group import EfaPlacementGroup
from fmblocks.compute.settings import PlacementMode
from fmblocks.project import Project
from fmblocks_stacks.contract import Publisher


class CapacityStack(cdk.Stack):
    """Capacity reservations that the project creates, and the placement groups that they are made in.

    Destroying it cancels the reservations and stops their bill; destroying TrainingStack and InferenceStack does not.

    Args:
        project: a project that has a group with ``capacity.create``.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        stack_name: str,
        env: cdk.Environment | None = None,
    ) -> None:
        super().__init__(
            scope,
            id,
            stack_name=stack_name,
            env=env,
            termination_protection=True,
            description=f"{project.name}: reserved capacity, billed until it is destroyed (fmblocks)",
        )
        self.node.set_context("fmblocks:suppress", sorted(project.suppressed))
        self.node.set_context("fmblocks:catalog", [entry.row() for entry in project.catalog])
        publisher = Publisher(self, "Contract", foundation=project.name)
        for group in created(project):
            here = Construct(self, f"Group-{group.name}")
            placement_group: ec2.IPlacementGroup | None = None
            if makes_placement_group(group, project.instance_types):
                tags = {"fmblocks:project": project.name}
                placement_group = EfaPlacementGroup(here, "PlacementGroup", immutable_tags=tags)
            elif group.placement.group_name is not None:
                placement_group = ec2.PlacementGroup.from_placement_group_name(
                    here, "PlacementGroup", group.placement.group_name
                )
            settings = group.capacity.create
            assert settings is not None
            reservation = CapacityReservation(
                here,
                "Reservation",
                instance_type=group.instance_type,
                instance_count=group.count,
                availability_zone=self._zone(project.network.primary),
                match=settings.match,
                end=settings.end,
                platform=settings.platform,
                tenancy=settings.tenancy,
                placement_group=placement_group,
            )
            name = f"capacity/{group.name}"
            publisher.publish(f"{name}/reservation-id", reservation.capacity_reservation_id, f"reserved: {group.name}")
            if placement_group is not None and group.placement.group_name is None:
                publisher.publish(
                    f"{name}/placement-group", placement_group.placement_group_name, f"placement group of {group.name}"
                )

    def _zone(self, primary: str) -> str:
        """Zones without a Region are numbers: CloudFormation knows their names."""
        return cdk.Fn.select(int(primary) - 1, cdk.Fn.get_azs()) if primary.isdecimal() else primary


def created(project: Project) -> list[NodeGroup]:
    """The groups whose reservation the project creates, by name."""
    groups = (group for cluster in project.clusters.values() for group in cluster.node_groups)
    return sorted((group for group in groups if group.capacity.create is not None), key=lambda group: group.name)


def makes_placement_group(group: NodeGroup, types: Types) -> bool:
    """Whether the reservation is made in a new placement group: its instances name the same one (rule PG-13)."""
    if group.placement.group_name is not None:
        return False
    if group.placement.mode is PlacementMode.AUTO:  # where it helps
        return bool(types[group.instance_type].max_efa_interfaces)
    return group.placement.mode is PlacementMode.CLUSTER
