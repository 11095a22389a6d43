"""What every launch template of ours has, whoever starts its nodes."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks._edge import check_arguments, fault, instance_types, member, unresolved
from fmblocks._tags import TagSpecifications
from fmblocks.capacity import rules as capacity_rules
from fmblocks.capacity.bought import ICapacity, OnDemandCapacity
from fmblocks.capacity.capacity_reservation import CapacityReservation
from fmblocks.capacity.settings import Capacity, CapacityMode, Tenancy
from fmblocks.catalog import InstanceType, normalise
from fmblocks.cluster import rules as cluster_rules
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute import rules
from fmblocks.compute.boot import boot_script
from fmblocks.compute.efa_placement_group import placement_of
from fmblocks.compute.settings import (
    Efa,
    EfaMode,
    InterfaceType,
    NetworkInterface,
    Placement,
    PlacementMode,
    Profile,
)
from fmblocks.findings import FindingsError
from fmblocks.network.self_rules import SelfRulesValidation
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem

# What a launch makes. Aspects tag the template itself only.
_TAGGED = ("instance", "volume", "network-interface")


@jsii.implements(ec2.IConnectable, cdk.ITaggableV2)
class NodeLaunchTemplate(cdk.Resource):
    """The base of :class:`EfaLaunchTemplate`, :class:`EksLaunchTemplate` and :class:`PcsLaunchTemplate`.

    EFA interfaces from the catalogue, capacity, placement, root volume, metadata and tags. Built on
    ``CfnLaunchTemplate``: the L2 of aws-cdk-lib knows no network cards. Interfaces, volumes and instances carry the
    stack's tags; interfaces carry every group, go with the instance and have no public address; instance metadata takes
    IMDSv2 only. The subnet is left to whoever launches.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        orchestrator: Orchestrator,
        instance_type: str,
        security_groups: Sequence[ec2.ISecurityGroup],
        capacity: ICapacity | None,
        placement_group: ec2.IPlacementGroup | None,
        efa_mode: EfaMode,
        efa_interface_count: int | None,
        efa_interface_type: InterfaceType | None,
        efa_profile: Profile | None,
        secondary_device_index: int | None,
        network_interfaces: Sequence[NetworkInterface],
        cluster_group: ec2.ISecurityGroup | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.capacity: ICapacity = capacity or OnDemandCapacity()
        self.placement_group = placement_group or self.capacity.placement_group
        self.instance_type = normalise(instance_type)
        efa = Efa(
            mode=member(EfaMode, efa_mode, "efa_mode"),
            count=efa_interface_count,
            interface_type=member(InterfaceType, efa_interface_type, "efa_interface_type")
            if efa_interface_type
            else None,
            profile=member(Profile, efa_profile, "efa_profile") if efa_profile else None,
            secondary_device_index=secondary_device_index,
        )
        self.kind = self._check(orchestrator, efa, network_interfaces)
        self.network_interfaces = cluster_rules.laid_out(orchestrator, self.kind, efa, network_interfaces)
        self.has_efa = any(one.interface_type.has_efa for one in self.network_interfaces)
        self._subnet_id: str | None = None
        self._orchestrator = orchestrator
        self.tags = cdk.TagManager(cdk.TagType.STANDARD, "AWS::EC2::LaunchTemplate")
        self._launch_template: ec2.ILaunchTemplate | None = None
        # That of a cluster lets all out by addresses, which EFA's traffic has none of: it cannot stand alone.
        self.security_groups = (*security_groups, *([cluster_group] if cluster_group is not None else []))
        if not security_groups and (self.has_efa or not self.security_groups):
            # Interfaces without groups get the default one of the VPC, which lets no EFA traffic out either.
            raise FindingsError([fault("security_groups", "is empty", "pass an EfaSecurityGroup")])
        self._connections = ec2.Connections(security_groups=list(self.security_groups))
        if self.has_efa:
            # The rules of all groups of an interface count together.
            self.node.add_validation(SelfRulesValidation(self, security_groups, one_is_enough=True))

    def _make(
        self,
        *,
        root_volume_gib: int,
        root_volume_kms_key: kms.IKey | None,
        root_device_name: str,
        user_data: ec2.UserData | None,
        image_id: str | None = None,
        instance_profile_arn: str | None = None,
    ) -> None:
        """The resource, with what differs between those who start the nodes."""
        self.resource = ec2.CfnLaunchTemplate(
            self,
            "Resource",
            launch_template_data=ec2.CfnLaunchTemplate.LaunchTemplateDataProperty(
                image_id=image_id,
                instance_type=self.instance_type,
                iam_instance_profile=ec2.CfnLaunchTemplate.IamInstanceProfileProperty(arn=instance_profile_arn)
                if instance_profile_arn
                else None,
                network_interfaces=[self._interface(one) for one in self.network_interfaces],
                # Two hops: containers ask for their role too.
                metadata_options=ec2.CfnLaunchTemplate.MetadataOptionsProperty(
                    http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=2
                ),
                block_device_mappings=[
                    ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
                        device_name=root_device_name,
                        ebs=ec2.CfnLaunchTemplate.EbsProperty(
                            volume_size=root_volume_gib,
                            volume_type="gp3",
                            encrypted=True,
                            kms_key_id=root_volume_kms_key.key_arn if root_volume_kms_key else None,
                            delete_on_termination=True,
                        ),
                    )
                ],
                user_data=cdk.Fn.base64(user_data.render()) if user_data else None,
                instance_market_options=self._market(),
                capacity_reservation_specification=self._reservation(),
                placement=self._placement(),
                tag_specifications=cdk.Lazy.any(TagSpecifications(self.tags, *_TAGGED)),
            ),
            tag_specifications=cdk.Lazy.any(TagSpecifications(self.tags, "launch-template")),
        )
        # Its lists come from price data and miss types that are sold as Capacity Blocks only (rule REG-01); the
        # catalogue has checked the type.
        cdk.Validations.of(self.resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::E3628", reason="regional type lists miss types, see REG-01")
        )

    @property
    def cdk_tag_manager(self) -> cdk.TagManager:
        """The tags of the template, its instances, volumes and interfaces."""
        return self.tags

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the nodes."""
        return self._connections

    @property
    def launch_template_id(self) -> str:
        """The id, ``lt-…``."""
        return self.resource.ref

    @property
    def latest_version(self) -> str:
        """The number of the version this deployment writes: a group pins it (rule CB-09)."""
        return self.resource.attr_latest_version_number

    def launch_template(self) -> ec2.ILaunchTemplate:
        """The same as constructs of aws-cdk-lib take it."""
        if self._launch_template is None:
            self._launch_template = ec2.LaunchTemplate.from_launch_template_attributes(
                self, "LaunchTemplate", launch_template_id=self.launch_template_id, version_number=self.latest_version
            )
        return self._launch_template

    def _boot_script(
        self,
        *,
        file_system: ILustreFileSystem | None,
        mount_path: str,
        home_file_system: IOpenZfsFileSystem | None,
        home_mount_path: str,
    ) -> ec2.UserData:
        """The boot script, where nodes mount file systems themselves; the file systems let them in."""
        if file_system is not None:
            client = _Client(self.node.id, (self.instance_type,))
            mounted = {
                "efa_enabled": bool(file_system.efa_enabled),
                "node_groups": [client],
                "types": instance_types(self),
            }
            check_arguments(self, ("FSX-15",), mounted, names={"efa_enabled": "file_system"})
        for one, name in ((file_system, "Lustre"), (home_file_system, "Home")):
            if one is None:
                continue
            home = self._home_of_client_rules(name, one.node.addr)
            for group in self.security_groups:
                one.add_client(f"Nodes{group.node.addr[-8:]}", group, scope=home)
            self.node.add_dependency(home)
        over_efa = bool(file_system and file_system.efa_enabled and self.kind.fsx_lustre_efa_client and self.has_efa)
        return boot_script(
            self.kind,
            file_system=file_system,
            mount_path=mount_path,
            over_efa=over_efa,
            home=home_file_system,
            home_path=home_mount_path,
        )

    def _home_of_client_rules(self, name: str, address: str) -> Construct:
        """One for all templates of a stack: rules below one of them would move when it goes, and EC2 refuses a twin."""
        stack, id = cdk.Stack.of(self), f"{name}Clients{address[-8:]}"
        found = stack.node.try_find_child(id)
        return found if isinstance(found, Construct) else Construct(stack, id)

    def _check(self, orchestrator: Orchestrator, efa: Efa, interfaces: Sequence[NetworkInterface]) -> InstanceType:
        known, stack = instance_types(self), cdk.Stack.of(self)
        bought = self.capacity
        placed = placement_of(self.placement_group)
        reserved_in = bought.placement_group
        if placed.mode is not PlacementMode.AUTO and self.placement_group is reserved_in:
            placed = Placement(mode=placed.mode, group_name="that of the reservation")
        values = {
            "instance_type": self.instance_type,
            "types": known,
            "efa": efa,
            "network_interfaces": tuple(interfaces),
            "capacity": Capacity.model_construct(
                mode=bought.capacity_mode,
                capacity_reservation_id=bought.capacity_reservation_id,
                resource_group_arn=bought.resource_group_arn,
                training_plan_arn=bought.training_plan_arn,
            ),
            "placement": placed,
            "reserved_in": _called(reserved_in),
            "placed_in": _called(self.placement_group),
            "region": None if unresolved(stack.region) else stack.region,
        }
        check_arguments(self, ("FMB-09",), values)
        kind = known[self.instance_type]
        names = {
            "efa.count": "efa_interface_count",
            "efa.interface_type": "efa_interface_type",
            "efa.profile": "efa_profile",
            "efa.mode": "efa_mode",
            "efa.secondary_device_index": "secondary_device_index",
            "capacity.mode": "capacity",
            "placement.mode": "placement_group",
            "placement.group_name": "placement_group",
            "capacity.capacity_reservation_id": "capacity",
        }
        check_arguments(self, (*rules.TEMPLATE_CONSTRUCT, *capacity_rules.TEMPLATE_CONSTRUCT), values, names=names)
        if bought.capacity_reservation_id is not None and not unresolved(bought.capacity_reservation_id):
            check_arguments(self, ("FMB-25",), values, names=names)
        if isinstance(bought, CapacityReservation):
            users = [_User(bought.node.path, bought.instance_type), _User(self.node.path, self.instance_type)]
            path = {"node_groups[1].capacity.capacity_reservation_id": "capacity"}
            check_arguments(self, ("FMB-40",), {"node_groups": users}, names=path)
        wired = {**values, "network_interfaces": cluster_rules.laid_out(orchestrator, kind, efa, interfaces)}
        laid_out = {"network_interfaces": "efa_interface_type"}  # which is what makes a layout of ours wrong
        check_arguments(self, rules.INTERFACES, wired, names={} if interfaces else laid_out)
        return kind

    def _interface(self, interface: NetworkInterface) -> ec2.CfnLaunchTemplate.NetworkInterfaceProperty:
        return ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
            network_card_index=interface.network_card_index,
            device_index=interface.device_index,
            interface_type=interface.interface_type,
            subnet_id=self._subnet_id,
            groups=[group.security_group_id for group in self.security_groups],
            # An interface that stays behind keeps its address, and its group cannot be deleted.
            delete_on_termination=True,
            # With several interfaces EC2 refuses the key, whatever it says (EFA-08).
            associate_public_ip_address=False if len(self.network_interfaces) == 1 else None,
        )

    def _market(self) -> ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty | None:
        # EKS and PCS buy spot instances themselves, and EKS refuses a template that does it too.
        markets = {CapacityMode.CAPACITY_BLOCK: "capacity-block"}
        if self._orchestrator is Orchestrator.EC2:
            markets[CapacityMode.SPOT] = "spot"
        kind = markets.get(self.capacity.capacity_mode)
        return ec2.CfnLaunchTemplate.InstanceMarketOptionsProperty(market_type=kind) if kind else None

    def _reservation(self) -> ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty | None:
        bought = self.capacity
        if bought.capacity_reservation_id is None and bought.resource_group_arn is None:
            return None  # an empty target is refused (CR-14)
        target = ec2.CfnLaunchTemplate.CapacityReservationTargetProperty(
            capacity_reservation_id=bought.capacity_reservation_id,
            capacity_reservation_resource_group_arn=bought.resource_group_arn,
        )
        # A group that is full would otherwise start instances on demand: a surprise on the bill (CR-16). A reservation
        # that is named by its id starts no others.
        preference = "capacity-reservations-only" if bought.resource_group_arn else None
        return ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty(
            capacity_reservation_target=target, capacity_reservation_preference=preference
        )

    def _placement(self) -> ec2.CfnLaunchTemplate.PlacementProperty | None:
        dedicated = self.capacity.tenancy is Tenancy.DEDICATED
        if self.placement_group is None and not dedicated:
            return None
        return ec2.CfnLaunchTemplate.PlacementProperty(
            group_name=self.placement_group.placement_group_name if self.placement_group else None,
            tenancy="dedicated" if dedicated else None,
        )


def _called(group: ec2.IPlacementGroup | None) -> str | None:
    """The name of a group, or its path where CloudFormation makes the name."""
    if group is None:
        return None
    name = group.placement_group_name
    return group.node.path if unresolved(name) else name


class _User:
    """What uses a reservation, as rule FMB-40 sees it; the id stands for the reservation, whatever the real one is."""

    def __init__(self, name: str, instance_type: str) -> None:
        self.name = name
        self.instance_type = instance_type
        self.capacity = Capacity.model_construct(mode=CapacityMode.ODCR, capacity_reservation_id="the reservation")


class _Client:
    """A node group as rule FSX-15 sees it."""

    def __init__(self, name: str, every_type: tuple[str, ...]) -> None:
        self.name = name
        self.every_type = every_type
