"""Node groups of a project, and those of EC2 as fleets: settings in, constructs out."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from fmblocks.capacity.block_schedule import BlockSchedule
from fmblocks.capacity.bought import CapacityBlock, ICapacity, OnDemandCapacity, SpotCapacity
from fmblocks.capacity.capacity_reservation import CapacityReservation
from fmblocks.capacity.settings import CapacityMode, Launch
from fmblocks.cluster.settings import NodeGroup
from fmblocks.compute.efa_launch_template import EfaLaunchTemplate
from fmblocks.compute.efa_placement_group import EfaPlacementGroup
from fmblocks.compute.fixed_image import FixedImage
from fmblocks.compute.gpu_fleet import GpuFleet
from fmblocks.compute.launch_profile import launch_profile
from fmblocks.compute.settings import PlacementMode
from fmblocks.project import Project
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem
from fmblocks_stacks.capacity import makes_placement_group
from fmblocks_stacks.contract import Subscriber, parameter_name

_STRATEGIES = {
    PlacementMode.CLUSTER: ec2.PlacementGroupStrategy.CLUSTER,
    PlacementMode.PARTITION: ec2.PlacementGroupStrategy.PARTITION,
    PlacementMode.SPREAD: ec2.PlacementGroupStrategy.SPREAD,
}


class GroupParts(Construct):
    """What a node group stands on, whoever starts its nodes: its capacity, placement group, image and interfaces."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        group: NodeGroup,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
    ) -> None:
        super().__init__(scope, id)
        self._project, self._group, self._foundation = project, group, foundation
        self._kind = project.instance_types[group.instance_type]
        self._capacity = self._bought()
        self._place = self._placement_group(self._capacity, efa=bool(self._kind.max_efa_interfaces))
        self._security_groups = [security_group, *self._extra_groups()]

    def _template(self) -> dict[str, Any]:
        """The arguments that the launch templates of EC2, EKS and PCS have in common."""
        efa = self._group.efa
        return {
            "instance_type": self._group.instance_type,
            "security_groups": self._security_groups,
            "capacity": self._capacity,
            "placement_group": self._place,
            "efa_mode": efa.mode,
            "efa_interface_count": efa.count,
            "efa_interface_type": efa.interface_type,
            "efa_profile": efa.profile,
            "secondary_device_index": efa.secondary_device_index,
            "network_interfaces": self._group.network_interfaces,
            "root_volume_gib": self._group.ebs_volume_gib,
        }

    def _mounts(self, file_system: ILustreFileSystem | None, home: IOpenZfsFileSystem | None) -> dict[str, Any]:
        """What nodes mount that boot by a script of ours."""
        storage = self._project.storage
        return {
            "file_system": file_system,
            "mount_path": storage.lustre.mount_path if storage.lustre else "/fsx",
            "home_file_system": home,
            "home_mount_path": storage.home.mount_path if storage.home else "/home",
        }

    def _watch(self, schedule: BlockSchedule | None) -> None:
        """Let the project's alarms say when a group was not filled or emptied."""
        topic = self._foundation.alert_topic(self, self._project.observability.alerts) if schedule else None
        if schedule is None or topic is None:
            return
        for alarm in schedule.alarms:
            alarm.add_alarm_action(actions.SnsAction(topic))

    def _publish_launch_profile(self) -> None:
        if profile := launch_profile(self._kind):
            ssm.StringParameter(
                self,
                "LaunchProfile",
                parameter_name=parameter_name(self._project.name, f"launch-profile/{self._group.name}"),
                string_value=json.dumps(profile, sort_keys=True),
                description=f"environment of jobs on {self._group.instance_type}",
            )

    def _extra_groups(self) -> list[ec2.ISecurityGroup]:
        return [
            ec2.SecurityGroup.from_security_group_id(self, id, id, mutable=False)
            for id in self._group.extra_security_group_ids
        ]

    def _bought(self) -> ICapacity:
        settings = self._group.capacity
        zone = settings.availability_zone or self._project.network.primary
        match settings.mode:
            case CapacityMode.SPOT:
                return SpotCapacity()
            case CapacityMode.CAPACITY_BLOCK:
                assert settings.capacity_reservation_id is not None  # CB-06
                return CapacityBlock(
                    capacity_reservation_id=settings.capacity_reservation_id,
                    availability_zone=zone,
                    start=settings.start,
                    end=settings.end,
                )
            case CapacityMode.ODCR if settings.resource_group_arn is not None:
                return CapacityReservation.from_resource_group_arn(
                    self, "Reservation", resource_group_arn=settings.resource_group_arn, availability_zone=zone
                )
            case CapacityMode.ODCR:
                return self._reservation(zone)
            case _:
                return OnDemandCapacity()

    def _reservation(self, zone: str) -> ICapacity:
        settings, name = self._group.capacity, f"capacity/{self._group.name}"
        group_name = self._group.placement.group_name
        if settings.create is not None and makes_placement_group(self._group, self._project.instance_types):
            group_name = self._foundation.value(f"{name}/placement-group")
        placement_group = (
            ec2.PlacementGroup.from_placement_group_name(self, "ReservedGroup", group_name) if group_name else None
        )
        id = settings.capacity_reservation_id or self._foundation.value(f"{name}/reservation-id")
        if settings.create is not None:
            return CapacityReservation.from_capacity_reservation_id(
                self,
                "Reservation",
                capacity_reservation_id=id,
                availability_zone=zone,
                placement_group=placement_group,
                tenancy=settings.create.tenancy,
            )
        return CapacityReservation.from_capacity_reservation_id(
            self, "Reservation", capacity_reservation_id=id, availability_zone=zone, placement_group=placement_group
        )

    def _placement_group(self, capacity: ICapacity, *, efa: bool) -> ec2.IPlacementGroup | None:
        """The group that the nodes stand in; the capacity's own where it has one."""
        settings = self._group.placement
        if capacity.placement_group is not None or settings.mode is PlacementMode.NONE:
            return capacity.placement_group
        if settings.group_name is not None:
            return ec2.PlacementGroup.from_placement_group_name(self, "Group", settings.group_name)
        strategy = _STRATEGIES.get(settings.mode)
        if settings.mode is PlacementMode.AUTO and efa and capacity.capacity_mode is CapacityMode.ON_DEMAND:
            # Where it helps: what was reserved outside of a group cannot be used inside one, blocks refuse all of them.
            strategy = ec2.PlacementGroupStrategy.CLUSTER
        if strategy is None:
            return None
        return EfaPlacementGroup(
            self,
            "PlacementGroup",
            strategy=strategy,
            partition_count=settings.partition_count,
            immutable_tags={"fmblocks:project": self._project.name},
        )

    def _image(self) -> ec2.IMachineImage | None:
        settings = self._group.image
        if settings is None:
            return None
        if settings.id is not None:
            return FixedImage(settings.id)
        return ec2.MachineImage.from_ssm_parameter(settings.ssm_parameter) if settings.ssm_parameter else None


class NodeFleet(GroupParts):
    """A node group of EC2: its launch template and its fleet.

    Attributes:
        fleet: the nodes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        group: NodeGroup,
        foundation: Subscriber,
        subnet: ec2.ISubnet,
        security_group: ec2.ISecurityGroup,
        file_system: ILustreFileSystem | None,
        home: IOpenZfsFileSystem | None,
    ) -> None:
        super().__init__(scope, id, project=project, group=group, foundation=foundation, security_group=security_group)
        template = EfaLaunchTemplate(
            self,
            "Template",
            **self._template(),
            **self._mounts(file_system, home),
            machine_image=self._image(),
            root_device_name=(group.image.root_device_name if group.image else None) or "/dev/xvda",
        )
        self.fleet = GpuFleet(
            self,
            "Fleet",
            launch_template=template,
            vpc_subnet=subnet,
            count=group.count,
            min_count=group.min_count or 0,
            launch=group.capacity.launch or Launch.NOW,
            instance_refresh=group.instance_refresh,
        )
        self._publish_launch_profile()
