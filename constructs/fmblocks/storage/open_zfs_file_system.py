"""An Amazon FSx for OpenZFS file system."""

from __future__ import annotations

from typing import Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct, Node

from fmblocks._edge import check_arguments, label, member, typed
from fmblocks.storage import rules
from fmblocks.storage.fsx_file_system import FsxFileSystem
from fmblocks.storage.open_zfs_security_group import OpenZfsSecurityGroup
from fmblocks.storage.settings import OpenZfsCompressionType, OpenZfsDeploymentType

_NFS = ec2.Port.tcp(2049)


class IOpenZfsFileSystem(Protocol):
    """A file system that nodes can mount over NFS, made here or elsewhere."""

    @property
    def node(self) -> Node: ...
    @property
    def file_system_id(self) -> str: ...
    @property
    def dns_name(self) -> str: ...
    @property
    def connections(self) -> ec2.Connections: ...
    def add_client(self, name: str, group: ec2.ISecurityGroup, *, scope: Construct | None = None) -> None: ...
    def metric_storage_capacity(self) -> cloudwatch.Metric: ...
    def metric_used_storage_capacity(self) -> cloudwatch.Metric: ...


class _NfsFileSystem(FsxFileSystem):
    """Metrics. Source: FSx for OpenZFS User Guide, *Amazon FSx for OpenZFS metrics*."""

    def metric_storage_capacity(self) -> cloudwatch.Metric:
        """Bytes of the file system."""
        return self.metric("StorageCapacity", statistic=cloudwatch.Stats.AVERAGE)

    def metric_used_storage_capacity(self) -> cloudwatch.Metric:
        """Bytes that are used."""
        return self.metric("UsedStorageCapacity", statistic=cloudwatch.Stats.AVERAGE)


@jsii.implements(ec2.IConnectable)
class OpenZfsFileSystem(_NfsFileSystem):
    """An OpenZFS file system on SSD in one zone, for home directories; kept when its stack goes.

    Its root volume, mounted as ``<dns name>:/fsx``, is exported to whoever the security group lets in, with
    ``no_root_squash``: root on a node makes home directories for others. A change of the export, as of nearly
    everything but sizes, replaces the file system with an empty one (the old one is kept), so the export is fixed.

    Args:
        vpc: where the group stands.
        vpc_subnet: the one subnet. Highly available types have both servers in it.
        capacity_gib: GiB, 64 to 524288. It can only grow, by a tenth at least.
        throughput_capacity_mbps: MB/s; what is sold depends on the deployment type. Can go up and down.
        deployment_type: default single_az_ha_2: two servers, a failover takes less than a minute.
        iops: of the disks, at least 3 for each GiB. Default: 3 for each GiB, free of charge.
        data_compression_type: of the root volume; create-only. Default: zstd.
        automatic_backup_retention_days: days that daily backups are kept; 0: none are made. Default: 7.
        daily_automatic_backup_start_time: ``HH:MM`` in UTC. Default: chosen by FSx.
        copy_tags_to_backups: default false.
        weekly_maintenance_start_time: ``d:HH:MM`` in UTC, d from 1 (Monday) to 7. Default: chosen by FSx.
        security_group: default: a new :class:`OpenZfsSecurityGroup`, kept with the file system.
        kms_key: default: the account's ``aws/fsx`` key.
        removal_policy: default RETAIN_ON_UPDATE_OR_DELETE. FSx makes a last backup, which bills, of one that is
            deleted.

    Raises:
        FindingsError: rules FMB-63, 65, 66 and 68, FSX-30. FMB-64 and 75 warn.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        vpc_subnet: ec2.ISubnet,
        capacity_gib: int,
        throughput_capacity_mbps: int,
        deployment_type: OpenZfsDeploymentType = OpenZfsDeploymentType.SINGLE_AZ_HA_2,
        iops: int | None = None,
        data_compression_type: OpenZfsCompressionType = OpenZfsCompressionType.ZSTD,
        automatic_backup_retention_days: int = 7,
        daily_automatic_backup_start_time: str | None = None,
        copy_tags_to_backups: bool = False,
        weekly_maintenance_start_time: str | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        kms_key: kms.IKey | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, id)
        deployment_type = member(OpenZfsDeploymentType, deployment_type, "deployment_type")
        data_compression_type = member(OpenZfsCompressionType, data_compression_type, "data_compression_type")
        check_arguments(
            self,
            rules.OPEN_ZFS,
            {
                "deployment_type": deployment_type,
                "region": None if cdk.Token.is_unresolved(region := cdk.Stack.of(self).region) else region,
                "throughput_capacity_mbps": throughput_capacity_mbps,
                "capacity_gib": capacity_gib,
                "iops": iops,
                "automatic_backup_retention_days": automatic_backup_retention_days,
                "daily_automatic_backup_start_time": daily_automatic_backup_start_time,
                "weekly_maintenance_start_time": weekly_maintenance_start_time,
            },
        )
        own = security_group or OpenZfsSecurityGroup(self, "SecurityGroup", vpc=vpc, removal_policy=removal_policy)
        cfn = fsx.CfnFileSystem
        self.resource = cfn(
            self,
            "Resource",
            file_system_type="OPENZFS",
            storage_type="SSD",
            storage_capacity=capacity_gib,
            subnet_ids=[vpc_subnet.subnet_id],
            security_group_ids=[own.security_group_id],
            kms_key_id=kms_key.key_arn if kms_key else None,
            open_zfs_configuration=cfn.OpenZFSConfigurationProperty(
                deployment_type=deployment_type.upper(),
                throughput_capacity=throughput_capacity_mbps,
                disk_iops_configuration=cfn.DiskIopsConfigurationProperty(
                    mode="USER_PROVISIONED" if iops is not None else "AUTOMATIC", iops=iops
                ),
                # The API's own default is 30 days, so it is always written.
                automatic_backup_retention_days=automatic_backup_retention_days,
                daily_automatic_backup_start_time=daily_automatic_backup_start_time,
                copy_tags_to_backups=copy_tags_to_backups or None,
                weekly_maintenance_start_time=weekly_maintenance_start_time,
                root_volume_configuration=cfn.RootVolumeConfigurationProperty(
                    data_compression_type=data_compression_type.upper(),
                    nfs_exports=[
                        cfn.NfsExportsProperty(
                            client_configurations=[
                                cfn.ClientConfigurationsProperty(
                                    # The security group says who; root must be able to make homes for others.
                                    clients="*",
                                    options=["rw", "no_root_squash", "crossmnt"],
                                )
                            ]
                        )
                    ],
                ),
            ),
        )
        self.resource.apply_removal_policy(removal_policy)
        cdk.Tags.of(self.resource).add("Name", label(self))
        # FSx looks at the rules when it makes the file system: "do not permit inbound NFSv4 traffic on TCP port 2049".
        self.resource.node.add_dependency(own)
        self._known_as(
            file_system_id=self.resource.ref,
            dns_name=self.resource.attr_dns_name,
            security_group=own,
            port=_NFS,
        )

    @staticmethod
    def from_open_zfs_file_system_attributes(
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        dns_name: str,
        security_group: ec2.ISecurityGroup | None = None,
    ) -> IOpenZfsFileSystem:
        """A file system that was made elsewhere. Nothing is created, nothing is checked.

        Args:
            file_system_id: its id, ``fs-…``.
            dns_name: its DNS name.
            security_group: its group; clients are let in through it. Default: none, clients are let in elsewhere.
        """
        return _Imported(scope, id, file_system_id, dns_name, security_group)


@jsii.implements(ec2.IConnectable)
class _Imported(_NfsFileSystem):
    def __init__(
        self,
        scope: Construct,
        id: str,
        file_system_id: str,
        dns_name: str,
        security_group: ec2.ISecurityGroup | None,
    ) -> None:
        super().__init__(scope, id)
        self._known_as(file_system_id=file_system_id, dns_name=dns_name, security_group=security_group, port=_NFS)
