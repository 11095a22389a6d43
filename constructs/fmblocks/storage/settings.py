"""What a project file says about its storage."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, Protocol

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.settings import AnyCase, Number, Settings, Text, WholeNumber


class DeploymentType(StrEnum):
    """FSx for Lustre deployment types (API CreateFileSystem, LustreConfiguration.DeploymentType)."""

    SCRATCH_1 = "scratch_1"
    SCRATCH_2 = "scratch_2"
    PERSISTENT_1 = "persistent_1"
    PERSISTENT_2 = "persistent_2"

    @property
    def persistent(self) -> bool:
        """Whether the data is replicated and the file system outlives a failed server."""
        return self in (DeploymentType.PERSISTENT_1, DeploymentType.PERSISTENT_2)


class StorageType(StrEnum):
    """Media of a file system (API CreateFileSystem, StorageType)."""

    SSD = "ssd"
    HDD = "hdd"
    INTELLIGENT_TIERING = "intelligent_tiering"


class DriveCacheType(StrEnum):
    """The SSD cache in front of hard disks (API CreateFileSystem, DriveCacheType)."""

    NONE = "none"
    READ = "read"


class DataCompressionType(StrEnum):
    """How data is compressed on the servers (API CreateFileSystem, DataCompressionType)."""

    NONE = "none"
    LZ4 = "lz4"


class ReadCacheSizingMode(StrEnum):
    """How the SSD read cache of Intelligent-Tiering is sized (API LustreReadCacheConfiguration, SizingMode)."""

    NO_CACHE = "no_cache"
    USER_PROVISIONED = "user_provisioned"
    PROPORTIONAL_TO_THROUGHPUT_CAPACITY = "proportional_to_throughput_capacity"


class LustreMetadataMode(StrEnum):
    """How metadata IOPS are provisioned (API CreateFileSystem, MetadataConfiguration.Mode)."""

    AUTOMATIC = "automatic"
    USER_PROVISIONED = "user_provisioned"


class LustreLogLevel(StrEnum):
    """Which events of data repositories are logged (API LustreLogCreateConfiguration, Level)."""

    DISABLED = "disabled"
    WARN_ONLY = "warn_only"
    ERROR_ONLY = "error_only"
    WARN_ERROR = "warn_error"


class DataRepositoryEvent(StrEnum):
    """What a data repository association carries over (API S3DataRepositoryConfiguration, Events)."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"


class Metadata(Settings):
    """Metadata performance of a persistent_2 file system."""

    mode: Annotated[LustreMetadataMode, AnyCase] = LustreMetadataMode.AUTOMATIC
    iops: Annotated[WholeNumber | None, Field(description="metadata IOPS, with mode user_provisioned only")] = None


class ReadCache(Settings):
    """The SSD read cache of an Intelligent-Tiering file system."""

    sizing_mode: Annotated[ReadCacheSizingMode, AnyCase]
    size_gib: Annotated[WholeNumber | None, Field(description="GiB, with sizing_mode user_provisioned only")] = None


def canonical_path(value: str) -> str:
    """One spelling for a path: /data and /data/ would otherwise replace the association (both are create-only)."""
    return value.rstrip("/") or value[:1]


def canonical_prefix(value: str) -> str:
    """One spelling for a prefix of a bucket: ``v1/``, or nothing for all of it."""
    return f"{stripped}/" if (stripped := value.strip("/")) else ""


def default_metadata_mode(deployment_type: DeploymentType, storage_type: StorageType) -> LustreMetadataMode | None:
    """A metadata configuration cannot be added later, so persistent_2 always has one.

    For Intelligent-Tiering AWS's own texts disagree about what is taken (FSX-12), so it has to be chosen.
    """
    wanted = deployment_type is DeploymentType.PERSISTENT_2 and storage_type is not StorageType.INTELLIGENT_TIERING
    return LustreMetadataMode.AUTOMATIC if wanted else None


def _events(value: object) -> object:
    if not isinstance(value, (list, tuple)):
        raise PydanticCustomError("events", "takes a list of new, changed and deleted")
    return tuple(item.strip().lower() if isinstance(item, str) else item for item in value)


Events = Annotated[tuple[DataRepositoryEvent, ...], BeforeValidator(_events)]


class DataRepositoryAssociation(Settings):
    """A directory of the file system linked with an S3 prefix."""

    FOREIGN: ClassVar = {
        "s3": "write bucket: <name> and prefix: <prefix>/ instead of an s3:// address",
        "import_path": "write bucket: <name> and prefix: <prefix>/",
        "export_path": "write auto_export: [new, changed]",
        "file_system_path": "the key is path",
        "data_repository_path": "write bucket: <name> and prefix: <prefix>/",
        "chunk_size": "the key is imported_file_chunk_size_mib",
        "imported_file_chunk_size": "the key is imported_file_chunk_size_mib",
    }

    path: Annotated[Text, AfterValidator(canonical_path), Field(description="directory of the file system, from /")]
    bucket: Annotated[Text | None, Field(description="an existing bucket; without it one is created and kept")] = None
    bucket_region: Annotated[Text | None, Field(description="of bucket; default: that of the project")] = None
    bucket_versioned: Annotated[
        bool, Field(description="whether bucket is known to keep versions; created ones do")
    ] = False
    prefix: Annotated[
        Text, AfterValidator(canonical_prefix), Field(description="prefix in the bucket; default: all of it")
    ] = ""
    auto_import: Annotated[Events, Field(description="events that S3 carries into the file system")] = ()
    auto_export: Annotated[Events, Field(description="events that the file system carries to S3")] = ()
    batch_import_metadata_on_create: Annotated[
        bool, Field(description="list what the bucket already holds when the link is made; create-only")
    ] = True
    imported_file_chunk_size_mib: Annotated[
        WholeNumber | None, Field(description="MiB of an imported file per disk; default: 1024, chosen by FSx")
    ] = None


# Every night at three.
NIGHTLY = "cron(0 3 * * ? *)"


class Release(Settings):
    """Giving the space of exported files back, by schedule; they are read from S3 again when somebody opens them."""

    FOREIGN: ClassVar = {
        "days": "the key is days_since_last_access",
        "after_days": "the key is days_since_last_access",
        "paths": "what is released is every path with auto_export: leave the key out",
    }

    days_since_last_access: Annotated[
        WholeNumber, Field(description="days that a file was not touched; 0: every exported file")
    ]
    schedule: Annotated[Text, Field(description="cron(…) or rate(…) of EventBridge Scheduler, in UTC")] = NIGHTLY


_EXISTING = "write existing: {file_system_id, dns_name, mount_name, security_group_id, availability_zone}"
_LEGACY_LINK = "persistent_2 refuses it: write data_repository_associations"


class ExistingLustre(Settings):
    """A file system that is there already, in network.vpc."""

    FOREIGN: ClassVar = {
        "id": "the key is file_system_id",
        "vpc_id": "write network.vpc: the file system stands in it",
        "subnet_id": "write availability_zone: that of network.primary_availability_zone",
    }

    file_system_id: Annotated[Text, Field(description="fs-…")]
    dns_name: Annotated[Text, Field(description="its DNS name")]
    mount_name: Annotated[Text, Field(description="its mount name, chosen by FSx")]
    security_group_id: Annotated[Text, Field(description="sg-… of its interfaces")]
    availability_zone: Annotated[Text, Field(description="where it stands, written as in network.vpc")]


class Lustre(Settings):
    """An Amazon FSx for Lustre file system."""

    FOREIGN: ClassVar = {
        "throughput": "the key is throughput_mbps_per_tib",
        "per_unit_storage_throughput": "the key is throughput_mbps_per_tib",
        "storage_capacity": "the key is capacity_gib",
        "metadata_configuration": "the key is metadata",
        "efa": "the key is efa_enabled",
        "enable_efa": "the key is efa_enabled",
        "capacity": "the key is capacity_gib",
        "storage_capacity_gib": "the key is capacity_gib",
        "subnets": "Lustre takes one subnet, that of network.primary_availability_zone: leave the key out",
        "az": "Lustre stands in network.primary_availability_zone: leave the key out",
        "kms_key": "persistent file systems are encrypted with the project's key, scratch ones take none",
        "import_path": _LEGACY_LINK,
        "export_path": _LEGACY_LINK,
        "auto_import_policy": "persistent_2 refuses it: write auto_import on an association",
        "imported_file_chunk_size": "write imported_file_chunk_size_mib on an association",
        "root_squash": "CloudFormation cannot set it: run aws fsx update-file-system on the file system, with UID:GID, "
        "neither of them 0, and at most 64 client NIDs",
        "compression": "the key is data_compression_type",
        "drive_cache": "the key is drive_cache_type",
        "throughput_capacity": "the key is throughput_capacity_mbps",
        "data_read_cache_configuration": "the key is read_cache",
        "backup_retention_days": "the key is automatic_backup_retention_days",
        "maintenance_window": "the key is weekly_maintenance_start_time",
        "existing_id": _EXISTING,
        "file_system_id": _EXISTING,
        "dra": "the key is data_repository_associations",
        "logging": "the key is log_level",
        "log_configuration": "the key is log_level",
        "restore_from": "the key is backup_id",
        "hsm": "the key is release",
    }
    FOREIGN_RULES: ClassVar = {
        "import_path": "FSX-04",
        "export_path": "FSX-04",
        "auto_import_policy": "FSX-04",
        "imported_file_chunk_size": "FSX-04",
        "kms_key": "FSX-07",
        "subnets": "FSX-01",
    }

    existing: Annotated[
        ExistingLustre | None, Field(description="a file system that is there already; without it one is made")
    ] = None
    deployment_type: Annotated[DeploymentType, AnyCase] = DeploymentType.PERSISTENT_2
    storage_type: Annotated[StorageType, AnyCase] = StorageType.SSD
    capacity_gib: Annotated[
        WholeNumber | None,
        Field(description="GiB, save with intelligent_tiering; it can only grow"),
    ] = None
    throughput_mbps_per_tib: Annotated[
        WholeNumber | None,
        Field(description="MB/s per TiB, for persistent ssd and hdd, which require it"),
    ] = None
    throughput_capacity_mbps: Annotated[
        WholeNumber | None, Field(description="MB/s of the whole file system, with intelligent_tiering only")
    ] = None
    read_cache: Annotated[ReadCache | None, Field(description="with intelligent_tiering, which requires it")] = None
    drive_cache_type: Annotated[
        DriveCacheType | None, AnyCase, Field(description="with storage_type hdd, which requires it")
    ] = None
    data_compression_type: Annotated[DataCompressionType, AnyCase, Field(description="lz4 or none")] = (
        DataCompressionType.NONE
    )
    efa_enabled: Annotated[bool, Field(description="serve Lustre over EFA; fixed at creation")] = False
    metadata: Annotated[Metadata | None, Field(description="persistent_2 only, where the default is automatic")] = None
    version: Annotated[Text, Field(description="Lustre server version; only upgrades are possible")] = "2.15"
    automatic_backup_retention_days: Annotated[
        WholeNumber, Field(description="days that daily backups are kept; 0: none are made")
    ] = 0
    daily_automatic_backup_start_time: Annotated[Text | None, Field(description="HH:MM in UTC, with backups")] = None
    copy_tags_to_backups: Annotated[bool, Field(description="put the file system's tags on its backups")] = False
    weekly_maintenance_start_time: Annotated[
        Text | None, Field(description="d:HH:MM in UTC, d from 1 (Monday) to 7; default: chosen by FSx")
    ] = None
    backup_id: Annotated[
        Text | None, Field(description="a backup that a new file system is made of; capacity_gib is the backup's")
    ] = None
    log_level: Annotated[
        LustreLogLevel | None,
        AnyCase,
        Field(description="events of imports and exports in CloudWatch Logs; default: warn_error with associations"),
    ] = None
    release: Annotated[
        Release | None, Field(description="give the space of exported files back by schedule; default: never")
    ] = None
    mount_path: Annotated[Text, AfterValidator(canonical_path), Field(description="where nodes mount it")] = "/fsx"
    data_repository_associations: tuple[DataRepositoryAssociation, ...] = ()

    @property
    def metadata_mode(self) -> LustreMetadataMode | None:
        """The mode that reaches the template."""
        return self.metadata.mode if self.metadata else default_metadata_mode(self.deployment_type, self.storage_type)

    @property
    def metadata_iops(self) -> int | None:
        """The IOPS that reach the template."""
        return self.metadata.iops if self.metadata else None

    @property
    def read_cache_sizing_mode(self) -> ReadCacheSizingMode | None:
        """How the read cache is sized; None without one."""
        return self.read_cache.sizing_mode if self.read_cache else None

    @property
    def read_cache_size_gib(self) -> int | None:
        """GiB of the read cache, where they are chosen."""
        return self.read_cache.size_gib if self.read_cache else None

    @property
    def logged(self) -> LustreLogLevel:
        """Which events are logged."""
        if self.log_level is not None:
            return self.log_level
        return LustreLogLevel.WARN_ERROR if self.data_repository_associations else LustreLogLevel.DISABLED

    @property
    def exported(self) -> tuple[DataRepositoryAssociation, ...]:
        """The associations that carry files to S3, by path."""
        links = (link for link in self.data_repository_associations if link.auto_export)
        return tuple(sorted(links, key=lambda link: link.path))

    @property
    def backups(self) -> bool:
        """Whether daily backups are made."""
        return self.automatic_backup_retention_days > 0


class Buckets(Settings):
    """The buckets that associations without a bucket of their own get."""

    FOREIGN: ClassVar = {
        "versioning": "created buckets always keep versions: the key is noncurrent_version_days",
        "lifecycle": "the keys are noncurrent_version_days and intelligent_tiering_after_days",
    }

    noncurrent_version_days: Annotated[
        WholeNumber, Field(description="days that overwritten and deleted objects can be brought back")
    ] = 7
    intelligent_tiering_after_days: Annotated[
        WholeNumber | None, Field(description="age in days at which objects move to S3 Intelligent-Tiering")
    ] = None


class OpenZfsDeploymentType(StrEnum):
    """FSx for OpenZFS deployment types (API CreateFileSystem, OpenZFSConfiguration.DeploymentType)."""

    SINGLE_AZ_1 = "single_az_1"
    SINGLE_AZ_2 = "single_az_2"
    SINGLE_AZ_HA_1 = "single_az_ha_1"
    SINGLE_AZ_HA_2 = "single_az_ha_2"
    MULTI_AZ_1 = "multi_az_1"

    @property
    def addresses(self) -> int:
        """Addresses it takes in its subnet (FSx for OpenZFS User Guide, *Availability and durability*)."""
        return 3 if "ha" in self.split("_") else 1


class OpenZfsCompressionType(StrEnum):
    """How data is compressed (API OpenZFSDataCompressionType)."""

    NONE = "none"
    ZSTD = "zstd"
    LZ4 = "lz4"


class Home(Settings):
    """An Amazon FSx for OpenZFS file system for home directories, in the primary zone."""

    FOREIGN: ClassVar = {
        "throughput_capacity": "the key is throughput_capacity_mbps",
        "throughput_mbps": "the key is throughput_capacity_mbps",
        "throughput": "the key is throughput_capacity_mbps",
        "storage_capacity": "the key is capacity_gib",
        "storage_type": "home directories are on ssd: leave the key out",
        "backup_retention_days": "the key is automatic_backup_retention_days",
        "nfs_exports": "every node mounts it: a change of the export would replace it with an empty one",
        "subnets": "it stands in network.primary_availability_zone: leave the key out",
    }

    deployment_type: Annotated[OpenZfsDeploymentType, AnyCase] = OpenZfsDeploymentType.SINGLE_AZ_HA_2
    capacity_gib: Annotated[WholeNumber, Field(description="GiB; it can only grow")]
    throughput_capacity_mbps: Annotated[WholeNumber, Field(description="MB/s; it can go up and down")]
    iops: Annotated[WholeNumber | None, Field(description="of the disks; default: 3 for each GiB")] = None
    data_compression_type: Annotated[OpenZfsCompressionType, AnyCase, Field(description="zstd, lz4 or none")] = (
        OpenZfsCompressionType.ZSTD
    )
    automatic_backup_retention_days: Annotated[
        WholeNumber, Field(description="days that daily backups are kept; 0: none are made")
    ] = 7
    daily_automatic_backup_start_time: Annotated[Text | None, Field(description="HH:MM in UTC")] = None
    copy_tags_to_backups: Annotated[bool, Field(description="put the file system's tags on its backups")] = False
    weekly_maintenance_start_time: Annotated[
        Text | None, Field(description="d:HH:MM in UTC, d from 1 (Monday) to 7; default: chosen by FSx")
    ] = None
    mount_path: Annotated[Text, AfterValidator(canonical_path), Field(description="where nodes mount it")] = "/home"


# One that AWS lists for Aurora MySQL at this release, as cfn-lint's data shows; older ones are retired one by one.
DEFAULT_ENGINE_VERSION = "8.0.mysql_aurora.3.12.0"


class AccountingDatabase(Settings):
    """Slurm's accounting, kept beyond a cluster: Aurora MySQL Serverless v2."""

    FOREIGN: ClassVar = {
        "min_capacity": "the key is min_capacity_acu",
        "max_capacity": "the key is max_capacity_acu",
        "password": "a secret is made: leave the key out",
        "instance_class": "capacity is serverless: write max_capacity_acu",
    }

    min_capacity_acu: Annotated[Number, Field(description="0.5 to 256, in steps of 0.5")] = 0.5
    max_capacity_acu: Annotated[Number, Field(description="as much or more")] = 4.0
    backup_retention_days: Annotated[WholeNumber, Field(description="1 to 35")] = 7
    engine_version: Annotated[Text, Field(description="of Aurora MySQL")] = DEFAULT_ENGINE_VERSION
    availability_zone: Annotated[
        Text | None, Field(description="beside the primary one; default: the only other zone")
    ] = None


class ModelStore(Settings):
    """A bucket of weights: one folder for each model and version, with a manifest of digests."""

    FOREIGN: ClassVar = {"bucket": "the store makes its bucket: endpoints read others too, as model: {bucket, prefix}"}

    lustre_path: Annotated[
        Annotated[Text, AfterValidator(canonical_path)] | None,
        Field(description="where the Lustre file system shows it; endpoints start from there then"),
    ] = None

    @property
    def link(self) -> DataRepositoryAssociation:
        """The link that shows the store in the file system: what is pushed appears, nothing flows back."""
        return DataRepositoryAssociation.model_construct(
            path=self.lustre_path or "/", auto_import=tuple(DataRepositoryEvent), auto_export=()
        )


class Storage(Settings):
    """Everything that keeps data."""

    FOREIGN: ClassVar = {
        "fsx": "the key is lustre",
        "openzfs": "the key is home",
        "efs": "home directories are on FSx for OpenZFS: write home: {capacity_gib, throughput_capacity_mbps}",
    }

    lustre: Lustre | None = None
    buckets: Annotated[Buckets, Field(description="of created buckets")] = Buckets()
    model_store: Annotated[ModelStore | None, Field(description="a bucket of weights; default: none")] = None
    home: Annotated[Home | None, Field(description="home directories; default: those of each node")] = None
    accounting_database: Annotated[
        AccountingDatabase | None,
        Field(description="of HyperPod's Slurm with continuous provisioning; default: on the controller, gone with it"),
    ] = None


class LinkedPaths(Protocol):
    """What the rules over several associations look at."""

    @property
    def path(self) -> str: ...
    @property
    def bucket(self) -> str | None: ...
    @property
    def prefix(self) -> str: ...
    @property
    def auto_export(self) -> Sequence[DataRepositoryEvent]: ...
