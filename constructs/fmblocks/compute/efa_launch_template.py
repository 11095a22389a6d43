"""A launch template for nodes that talk over EFA."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.capacity.bought import ICapacity
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute.images import image_parameter
from fmblocks.compute.node_launch_template import NodeLaunchTemplate
from fmblocks.compute.settings import EfaMode, InterfaceType, NetworkInterface, Profile
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem


class EfaLaunchTemplate(NodeLaunchTemplate):
    """How a node is launched: its EFA interfaces from the catalogue, its capacity, its image, what it does at boot.

    Built on ``CfnLaunchTemplate``: the L2 of aws-cdk-lib knows no network cards. Interfaces, volumes and instances
    carry the stack's tags; interfaces carry every group, go with the instance and have no public address; instance
    metadata takes IMDSv2 only; nodes are reached through SSM Session Manager. The subnet is left to whoever launches.

    At boot a node makes one volume of its instance store, moves containers there, mounts the file system (over EFA
    where type and file system can) and writes its launch profile to ``/etc/fmblocks``.

    Args:
        instance_type: EC2 or ``ml.`` name.
        security_groups: carried by every interface; those of EFA nodes are open to themselves.
        capacity: where the instances come from. Default: on demand.
        placement_group: where they stand. Default: that of the capacity, else none.
        efa_mode: none leaves EFA out. Default: auto, all that the type has.
        efa_interface_count: fewer EFA interfaces. Default: all of AWS's layout.
        efa_interface_type: efa-only takes one address per node, efa one per interface. Default: efa-only.
        efa_profile: max-ip-bandwidth adds ENA interfaces. Default: save-ip-addresses.
        secondary_device_index: device of EFA interfaces above card 0; 1 is AWS's layout of before 2025. Default: 0, and
            1 with efa interfaces.
        network_interfaces: instead of those of the catalogue.
        machine_image: default: AWS's Deep Learning AMI for the type (Neuron's for Trainium, Amazon Linux 2023 without
            accelerators), the newest at each deployment. Name one by id to keep it.
        role: assumed by the nodes. Default: a new one with AmazonSSMManagedInstanceCore.
        root_volume_gib: gp3, encrypted. Default: 500.
        root_volume_kms_key: its policy must let the launching service use it. Default: the account's ``aws/ebs`` key.
        root_device_name: that of the image. Default: /dev/xvda, Amazon Linux's.
        file_system: mounted at boot; where its group is a :class:`LustreSecurityGroup`, the nodes' groups are let in.
            Default: none.
        mount_path: where. Default: /fsx.
        home_file_system: an OpenZFS file system with home directories, mounted at boot; where its group is an
            :class:`OpenZfsSecurityGroup`, the nodes' groups are let in. Default: each node has its own.
        home_mount_path: where. Default: /home.
        user_data: instead of our own boot script. Default: that script.

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
        root_device_name: str = "/dev/xvda",
        file_system: ILustreFileSystem | None = None,
        mount_path: str = "/fsx",
        home_file_system: IOpenZfsFileSystem | None = None,
        home_mount_path: str = "/home",
        user_data: ec2.UserData | None = None,
    ) -> None:
        super().__init__(
            scope,
            id,
            orchestrator=Orchestrator.EC2,
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
        self.role = role or iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))
        self.role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSSMManagedInstanceCore"))
        profile = iam.InstanceProfile(self, "InstanceProfile", role=self.role)
        image = (machine_image or ec2.MachineImage.from_ssm_parameter(image_parameter(self.kind))).get_image(self)
        boot = self._boot_script(
            file_system=file_system,
            mount_path=mount_path,
            home_file_system=home_file_system,
            home_mount_path=home_mount_path,
        )
        self._make(
            root_volume_gib=root_volume_gib,
            root_volume_kms_key=root_volume_kms_key,
            root_device_name=root_device_name,
            user_data=user_data or boot,
            image_id=image.image_id,
            instance_profile_arn=profile.instance_profile_arn,
        )
