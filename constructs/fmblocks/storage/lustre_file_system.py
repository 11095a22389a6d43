"""An Amazon FSx for Lustre file system."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, Node

from fmblocks._edge import check_arguments, cidr_of, label, member, typed, unresolved, zone_of
from fmblocks.network.addresses import parse_cidr
from fmblocks.storage import rules
from fmblocks.storage.fsx_file_system import FsxFileSystem
from fmblocks.storage.lustre_ports import LUSTRE_PORTS
from fmblocks.storage.lustre_security_group import LustreSecurityGroup
from fmblocks.storage.settings import (
    DataCompressionType,
    DataRepositoryEvent,
    DeploymentType,
    DriveCacheType,
    LustreLogLevel,
    LustreMetadataMode,
    ReadCacheSizingMode,
    StorageType,
    default_metadata_mode,
)

# LNET, from its first port to its last.
_DEFAULT_PORT = ec2.Port.tcp_range(LUSTRE_PORTS[0][0], LUSTRE_PORTS[-1][-1])


def _known(text: str) -> str | None:
    return None if unresolved(text) else text


@dataclass(frozen=True, slots=True)
class RepositoryLink:
    """An association as the rules over several of them see it."""

    path: str
    bucket: str | None
    prefix: str
    auto_export: Sequence[DataRepositoryEvent]
    association: Construct


class ILustreFileSystem(Protocol):
    """A file system that nodes can mount, made here or elsewhere."""

    @property
    def node(self) -> Node: ...
    @property
    def file_system_id(self) -> str: ...
    @property
    def dns_name(self) -> str: ...
    @property
    def mount_name(self) -> str: ...
    @property
    def deployment_type(self) -> DeploymentType | None: ...
    @property
    def version(self) -> str | None: ...
    @property
    def efa_enabled(self) -> bool | None: ...
    @property
    def availability_zone(self) -> str | None: ...
    @property
    def links(self) -> list[RepositoryLink]: ...
    @property
    def connections(self) -> ec2.Connections: ...
    def add_client(self, name: str, group: ec2.ISecurityGroup, *, scope: Construct | None = None) -> None: ...
    def metric_free_data_storage_capacity(self) -> cloudwatch.Metric: ...
    def metric_data_read_bytes(self) -> cloudwatch.Metric: ...
    def metric_data_write_bytes(self) -> cloudwatch.Metric: ...
    def metric_metadata_operations(self) -> cloudwatch.Metric: ...
    def metric_age_of_oldest_queued_message(self, publisher: DataRepositoryPublisher) -> cloudwatch.Metric: ...


class DataRepositoryPublisher(StrEnum):
    """Which way data goes between a file system and S3 (metric dimension Publisher)."""

    AUTO_IMPORT = "AutoImport"
    AUTO_EXPORT = "AutoExport"


class _LustreBase(FsxFileSystem):
    """Metrics. Source: FSx for Lustre User Guide, *Amazon FSx for Lustre metrics and dimensions*."""

    def metric_free_data_storage_capacity(self) -> cloudwatch.Metric:
        """Free bytes over all storage servers: each sends one value a minute, so the period is a minute."""
        return self.metric("FreeDataStorageCapacity", period=cdk.Duration.minutes(1))

    def metric_data_read_bytes(self) -> cloudwatch.Metric:
        """Bytes that clients read (divide by the seconds of the period for the throughput)."""
        return self.metric("DataReadBytes")

    def metric_data_write_bytes(self) -> cloudwatch.Metric:
        """Bytes that clients wrote."""
        return self.metric("DataWriteBytes")

    def metric_metadata_operations(self) -> cloudwatch.Metric:
        """Metadata operations of clients."""
        return self.metric("MetadataOperations")

    def metric_age_of_oldest_queued_message(self, publisher: DataRepositoryPublisher) -> cloudwatch.Metric:
        """Seconds that the oldest change has been waiting to be imported or exported; 0: none waits."""
        return self.metric(
            "AgeOfOldestQueuedMessage",
            statistic=cloudwatch.Stats.MAXIMUM,
            period=cdk.Duration.minutes(1),
            dimensions={"Publisher": publisher},
        )


@jsii.implements(ec2.IConnectable)
class LustreFileSystem(_LustreBase):
    """A Lustre file system in one subnet, kept when its stack goes.

    Built on ``CfnFileSystem``: the L2 of aws-cdk-lib has no EFA and no metadata settings. The Lustre version is always
    written, since the service's defaults are old, and ``persistent_2`` always has a metadata configuration, since it
    cannot be added later. Capacity can grow in place; a change of subnet, security group or key replaces the file
    system with an empty one (the old one is kept).

    Args:
        vpc: where the groups stand.
        vpc_subnet: the one subnet; it should be the one of the nodes (same zone: required for EFA, cheaper always).
        deployment_type: default persistent_2.
        storage_type: default ssd. Hard disks are for persistent_1, Intelligent-Tiering is for persistent_2.
        capacity_gib: storage capacity in GiB, in the steps of rules FSX-02 and FSX-13; none with Intelligent-Tiering.
        throughput_mbps_per_tib: MB/s per TiB; required for persistent types, forbidden for scratch and
            Intelligent-Tiering.
        throughput_capacity_mbps: MB/s of the whole file system, with Intelligent-Tiering only.
        read_cache_sizing_mode: the SSD read cache of Intelligent-Tiering, which requires the choice.
        read_cache_size_gib: GiB of that cache, with user_provisioned only.
        drive_cache_type: the SSD cache in front of hard disks, which require the choice.
        data_compression_type: default none.
        automatic_backup_retention_days: days that daily backups are kept; not beside associations. Default 0: none.
        daily_automatic_backup_start_time: ``HH:MM`` in UTC. Default: chosen by FSx.
        copy_tags_to_backups: default false.
        weekly_maintenance_start_time: ``d:HH:MM`` in UTC, d from 1 (Monday) to 7. Default: chosen by FSx.
        efa_enabled: serve Lustre over EFA; fixed at creation. Needs ``efa_security_group``. Default: false.
        efa_security_group: the group of the EFA fabric, which the file system then carries too.
        metadata_mode: how metadata IOPS are provisioned. Default: automatic on persistent_2, none elsewhere.
        metadata_iops: with user_provisioned only.
        version: Lustre version. Default 2.15.
        backup_id: make the file system of this backup; capacity, and at least the Lustre version, must be those of the
            backup. Create-only. Default: an empty file system.
        log_level: which events of imports and exports are logged. Default: disabled.
        log_group: where they are logged; its name begins ``/aws/fsx``. Default: FSx's own group, ``/aws/fsx/lustre``.
        security_group: default: a new :class:`LustreSecurityGroup`, kept with the file system.
        kms_key: for persistent types; scratch is encrypted with the service's own keys. Default: the account's
            ``aws/fsx`` key.
        removal_policy: default RETAIN_ON_UPDATE_OR_DELETE. A kept file system keeps interfaces in its subnet and
            groups: keep those too.

    Raises:
        FindingsError: rules FSX-02, 03, 05, 07 to 11, 13, 20, 21, 27 and 30, FMB-20, 58 and 62. FSX-12 and FMB-29
            warn.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        vpc_subnet: ec2.ISubnet,
        deployment_type: DeploymentType = DeploymentType.PERSISTENT_2,
        storage_type: StorageType = StorageType.SSD,
        capacity_gib: int | None = None,
        throughput_mbps_per_tib: int | None = None,
        throughput_capacity_mbps: int | None = None,
        read_cache_sizing_mode: ReadCacheSizingMode | None = None,
        read_cache_size_gib: int | None = None,
        drive_cache_type: DriveCacheType | None = None,
        data_compression_type: DataCompressionType = DataCompressionType.NONE,
        automatic_backup_retention_days: int = 0,
        daily_automatic_backup_start_time: str | None = None,
        copy_tags_to_backups: bool = False,
        weekly_maintenance_start_time: str | None = None,
        efa_enabled: bool = False,
        efa_security_group: ec2.ISecurityGroup | None = None,
        metadata_mode: LustreMetadataMode | None = None,
        metadata_iops: int | None = None,
        version: str = "2.15",
        backup_id: str | None = None,
        log_level: LustreLogLevel = LustreLogLevel.DISABLED,
        log_group: logs.ILogGroup | None = None,
        security_group: ec2.ISecurityGroup | None = None,
        kms_key: kms.IKey | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        super().__init__(scope, id)
        deployment_type = member(DeploymentType, deployment_type, "deployment_type")
        storage_type = member(StorageType, storage_type, "storage_type")
        data_compression_type = member(DataCompressionType, data_compression_type, "data_compression_type")
        if metadata_mode is None:
            metadata_mode = default_metadata_mode(deployment_type, storage_type)
        else:
            metadata_mode = member(LustreMetadataMode, metadata_mode, "metadata_mode")
        if read_cache_sizing_mode is not None:
            read_cache_sizing_mode = member(ReadCacheSizingMode, read_cache_sizing_mode, "read_cache_sizing_mode")
        if drive_cache_type is not None:
            drive_cache_type = member(DriveCacheType, drive_cache_type, "drive_cache_type")
        log_level = member(LustreLogLevel, log_level, "log_level")
        size = rules.LustreSize(
            storage_type=storage_type,
            capacity_gib=capacity_gib,
            throughput_mbps_per_tib=throughput_mbps_per_tib,
            throughput_capacity_mbps=throughput_capacity_mbps,
            efa_enabled=efa_enabled,
            metadata_iops=metadata_iops,
        )
        check_arguments(
            self,
            rules.LUSTRE_CONSTRUCT,
            {
                **dataclasses.asdict(size),
                "deployment_type": deployment_type,
                "read_cache_sizing_mode": read_cache_sizing_mode,
                "read_cache_size_gib": read_cache_size_gib,
                "drive_cache_type": drive_cache_type,
                "automatic_backup_retention_days": automatic_backup_retention_days,
                "daily_automatic_backup_start_time": daily_automatic_backup_start_time,
                "copy_tags_to_backups": copy_tags_to_backups,
                "weekly_maintenance_start_time": weekly_maintenance_start_time,
                "efa_security_group_given": efa_security_group is not None,
                "version": version,
                "metadata_mode": metadata_mode,
                "kms_key_given": kms_key is not None,
                "backup_id": backup_id,
                "log_level": log_level,
                # A group of this app has no name yet: FSx says so at creation.
                "log_group_name": _known(log_group.log_group_name) if log_group else None,
            },
            names={
                "metadata": "metadata_mode",
                "metadata.iops": "metadata_iops",
                "read_cache": "read_cache_sizing_mode",
                "read_cache.size_gib": "read_cache_size_gib",
            },
        )
        if subnet := parse_cidr(cidr_of(vpc_subnet) or ""):
            unknown = next((value for value in dataclasses.asdict(size).values() if unresolved(value)), None)
            needed = unknown if unknown is not None else rules.addresses(size)
            room = {"lustre_addresses": needed, "subnet_size": subnet.num_addresses}
            check_arguments(self, ("FSX-27",), room, names={"capacity_gib": "vpc_subnet"})
        self.storage_type = storage_type
        self.automatic_backup_retention_days = automatic_backup_retention_days
        self.deployment_type: DeploymentType | None = deployment_type
        self.version: str | None = version
        self.efa_enabled: bool | None = efa_enabled
        self.availability_zone: str | None = zone_of(vpc_subnet)
        self.links: list[RepositoryLink] = []
        own = security_group or LustreSecurityGroup(self, "SecurityGroup", vpc=vpc, removal_policy=removal_policy)
        groups = [own]
        if efa_enabled and efa_security_group is not None:
            groups.append(efa_security_group)
        self.resource = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=version,
            storage_type=storage_type.upper(),
            storage_capacity=capacity_gib,
            subnet_ids=[vpc_subnet.subnet_id],
            security_group_ids=[group.security_group_id for group in groups],
            kms_key_id=kms_key.key_arn if kms_key else None,
            backup_id=backup_id,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(
                deployment_type=deployment_type.upper(),
                per_unit_storage_throughput=throughput_mbps_per_tib,
                throughput_capacity=throughput_capacity_mbps,
                data_read_cache_configuration=fsx.CfnFileSystem.DataReadCacheConfigurationProperty(
                    sizing_mode=read_cache_sizing_mode.upper(), size_gib=read_cache_size_gib
                )
                if read_cache_sizing_mode
                else None,
                drive_cache_type=drive_cache_type.upper() if drive_cache_type else None,
                # Written where they are the defaults too: a property that is taken away changes nothing in place.
                data_compression_type=data_compression_type.upper(),
                automatic_backup_retention_days=automatic_backup_retention_days if deployment_type.persistent else None,
                daily_automatic_backup_start_time=daily_automatic_backup_start_time,
                copy_tags_to_backups=copy_tags_to_backups or None,
                weekly_maintenance_start_time=weekly_maintenance_start_time,
                efa_enabled=efa_enabled or None,
                log_configuration=fsx.CfnFileSystem.LogConfigurationProperty(
                    level=log_level.upper(),
                    # FSx takes the ARN of the group without the stars behind it.
                    destination=cdk.Stack.of(self).format_arn(
                        service="logs",
                        resource="log-group",
                        resource_name=log_group.log_group_name,
                        arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                    )
                    if log_group
                    else None,
                )
                if log_level is not LustreLogLevel.DISABLED
                else None,
                metadata_configuration=fsx.CfnFileSystem.MetadataConfigurationProperty(
                    mode=metadata_mode.upper(), iops=metadata_iops
                )
                if metadata_mode
                else None,
            ),
        )
        self.resource.apply_removal_policy(removal_policy)
        cdk.Tags.of(self.resource).add("Name", label(self))
        # FSx looks at the rules when the file system is made: without 988 it says "do not permit Lustre LNET network
        # traffic on port 988", without the EFA ones "Insufficient security group permissions". So it waits for all.
        for group in groups:
            self.resource.node.add_dependency(group)
        self._known_as(
            file_system_id=self.resource.ref,
            dns_name=self.resource.attr_dns_name,
            security_group=own,
            port=_DEFAULT_PORT,
        )

    @property
    def mount_name(self) -> str:
        """The name that follows the DNS name in a mount; chosen by FSx."""
        return self.resource.attr_lustre_mount_name

    @staticmethod
    def from_lustre_file_system_attributes(
        scope: Construct,
        id: str,
        *,
        file_system_id: str,
        dns_name: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup | None = None,
        efa_enabled: bool | None = None,
    ) -> ILustreFileSystem:
        """A file system that was made elsewhere. Nothing is created, nothing is checked.

        Args:
            file_system_id: its id, ``fs-…``.
            dns_name: its DNS name.
            mount_name: its mount name.
            security_group: its group; clients are let in through it. Default: none, clients are let in elsewhere.
            efa_enabled: whether it serves EFA. Default: not known, so that nodes mount it over TCP.
        """
        return _Imported(scope, id, file_system_id, dns_name, mount_name, security_group, efa_enabled)


@jsii.implements(ec2.IConnectable)
class _Imported(_LustreBase):
    def __init__(
        self,
        scope: Construct,
        id: str,
        file_system_id: str,
        dns_name: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup | None,
        efa_enabled: bool | None,
    ) -> None:
        super().__init__(scope, id)
        self._known_as(
            file_system_id=file_system_id, dns_name=dns_name, security_group=security_group, port=_DEFAULT_PORT
        )
        self.mount_name = mount_name
        self.deployment_type: DeploymentType | None = None
        self.version: str | None = None
        self.efa_enabled = efa_enabled
        self.availability_zone: str | None = None
        self.links: list[RepositoryLink] = []
