"""A launch template for nodes of AWS PCS."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks._edge import check_arguments, fault, instance_types, typed, unresolved
from fmblocks.capacity.bought import ICapacity
from fmblocks.cluster import rules
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute.images import pcs_image_parameter
from fmblocks.compute.node_launch_template import NodeLaunchTemplate
from fmblocks.compute.settings import Efa, EfaMode, Image, InterfaceType, NetworkInterface, Profile
from fmblocks.findings import FindingsError
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem

# Where PCS looks for the roles of its nodes (rule PCS-05).
_PATH = "/aws-pcs/"
_SCRIPT = 'text/x-shellscript; charset="utf-8"'


class PcsLaunchTemplate(NodeLaunchTemplate):
    """How a node of PCS is launched.

    Interfaces are laid out as PCS's guide shows them: ``efa`` at card 0, device 0, and at device 1 of every further
    card, the subnet in each (rule PCS-08). So every one of them takes an address. PCS ignores the instance type here,
    except with a Capacity Block, which wants it; the instance profile belongs to the node group.

    At boot a node does what those of :class:`EfaLaunchTemplate` do, before Slurm's daemon starts: instance store,
    containers, file systems, launch profile.

    Args:
        instance_type: EC2 name.
        vpc_subnet: where the nodes stand: their interfaces name it.
        security_groups: that of the cluster among them; carried by every interface.
        capacity: where the instances come from. Default: on demand.
        placement_group: where they stand. Default: that of the capacity, else none.
        efa_mode: none leaves EFA out. Default: auto, all that the type has.
        efa_interface_count: fewer EFA interfaces. Default: all of AWS's layout.
        efa_interface_type: AWS shows efa; one of its samples says that efa-only is refused. Default: efa.
        efa_profile: max-ip-bandwidth adds ENA interfaces. Default: save-ip-addresses.
        secondary_device_index: device of EFA interfaces above card 0. Default: 1.
        network_interfaces: instead of those of the catalogue.
        machine_image: with PCS's agent and the cluster's Slurm. Default: AWS's PCS-ready Deep Learning AMI, the newest
            at each deployment. Name one by id to keep it.
        role: assumed by the nodes; its path is /aws-pcs/ or its name begins AWSPCS. Default: a new one.
        root_volume_gib: gp3, encrypted. Default: 500.
        root_volume_kms_key: its policy must let PCS use it. Default: the account's ``aws/ebs`` key.
        root_device_name: that of the image. Default: /dev/sda1, Ubuntu's.
        file_system: mounted at boot; where its group is a :class:`LustreSecurityGroup`, the nodes' groups are let in.
            Default: none.
        mount_path: where. Default: /fsx.
        home_file_system: an OpenZFS file system with home directories, mounted at boot. Default: each node has its own.
        home_mount_path: where. Default: /home.

    Raises:
        FindingsError: rules CB-02, CB-21, EFA-01 to 08, 18, 25 and 27, FMB-09, FMB-25, FMB-30, FMB-40, FSX-15, PG-07,
            PG-13, X-01, X-03, X-08.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        instance_type: str,
        vpc_subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        capacity: ICapacity | None = None,
        placement_group: ec2.IPlacementGroup | None = None,
        efa_mode: EfaMode = EfaMode.AUTO,
        efa_interface_count: int | None = None,
        efa_interface_type: InterfaceType | None = None,
        efa_profile: Profile | None = None,
        secondary_device_index: int | None = None,
        network_interfaces: Sequence[NetworkInterface] = (),
        machine_image: ec2.IMachineImage | None = None,
        role: iam.IRole | None = None,
        root_volume_gib: int = 500,
        root_volume_kms_key: kms.IKey | None = None,
        root_device_name: str = "/dev/sda1",
        file_system: ILustreFileSystem | None = None,
        mount_path: str = "/fsx",
        home_file_system: IOpenZfsFileSystem | None = None,
        home_mount_path: str = "/home",
    ) -> None:
        super().__init__(
            scope,
            id,
            orchestrator=Orchestrator.PCS,
            instance_type=instance_type,
            security_groups=security_groups,
            capacity=capacity,
            placement_group=placement_group,
            efa_mode=efa_mode,
            efa_interface_count=efa_interface_count,
            efa_interface_type=efa_interface_type,
            efa_profile=efa_profile,
            secondary_device_index=secondary_device_index,
            network_interfaces=network_interfaces,
        )
        told = {
            "orchestrator": Orchestrator.PCS,
            "instance_type": self.instance_type,
            "types": instance_types(self),
            "efa": Efa.model_construct(interface_type=efa_interface_type),
            "network_interfaces": self.network_interfaces,
            "image": Image() if machine_image else None,
        }
        check_arguments(self, rules.PCS_TEMPLATE_CONSTRUCT, told, names={"image": "machine_image"})
        self.vpc_subnet = vpc_subnet
        self._subnet_id = vpc_subnet.subnet_id
        if role is not None:
            _check_path(role)
        self.role = role or iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"), path=_PATH)
        for name in ("AmazonSSMManagedInstanceCore", "AWSPCSComputeNodePolicy"):
            self.role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(name))
        self.instance_profile = iam.InstanceProfile(self, "InstanceProfile", role=self.role, path=_PATH)
        image = (machine_image or ec2.MachineImage.from_ssm_parameter(pcs_image_parameter(self.kind))).get_image(self)
        boot = self._boot_script(
            file_system=file_system,
            mount_path=mount_path,
            home_file_system=home_file_system,
            home_mount_path=home_mount_path,
        )
        # PCS adds parts of its own, so that a plain script is refused.
        data = ec2.MultipartUserData()
        # As it is: in base64 it would come near EC2's 16 KB, which PCS's own parts have to fit in too.
        part = ec2.MultipartBody.from_raw_body(content_type=_SCRIPT, body=boot.render())
        data.add_part(part)
        self._make(
            root_volume_gib=root_volume_gib,
            root_volume_kms_key=root_volume_kms_key,
            root_device_name=root_device_name,
            user_data=data,
            image_id=image.image_id,
        )

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the nodes."""
        return self.role.grant_principal


def _check_path(role: iam.IRole) -> None:
    """PCS looks at no other roles (rule PCS-05): nodes of one would not register."""
    made = role.node.default_child
    if isinstance(made, iam.CfnRole):
        path, name = made.path or "/", str(cdk.Stack.of(role).resolve(made.role_name) or "")
    elif unresolved(role.role_arn):
        return
    else:
        folder, _, name = role.role_arn.partition(":role")[2].rpartition("/")
        path = f"{folder}/"
    if not unresolved(path) and not path.startswith(_PATH) and not name.startswith("AWSPCS"):
        text = f"{role.node.path} has path {path}, where PCS does not look"
        raise FindingsError([fault("role", text, f"give it path {_PATH}, or a name that begins with AWSPCS")])
