"""What a project file says about its storage."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Protocol

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.settings import AnyCase, Settings, Text, WholeNumber, later


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


class LustreMetadataMode(StrEnum):
    """How metadata IOPS are provisioned (API CreateFileSystem, MetadataConfiguration.Mode)."""

    AUTOMATIC = "automatic"
    USER_PROVISIONED = "user_provisioned"


class DataRepositoryEvent(StrEnum):
    """What a data repository association carries over (API S3DataRepositoryConfiguration, Events)."""

    NEW = "new"
    CHANGED = "changed"
    DELETED = "deleted"


class Metadata(Settings):
    """Metadata performance of a persistent_2 file system."""

    mode: Annotated[LustreMetadataMode, AnyCase] = LustreMetadataMode.AUTOMATIC
    iops: Annotated[WholeNumber | None, Field(description="metadata IOPS, with mode user_provisioned only")] = None


def canonical_path(value: str) -> str:
    """One spelling for a path: /data and /data/ would otherwise replace the association (both are create-only)."""
    return value.rstrip("/") or "/"


def canonical_prefix(value: str) -> str:
    """One spelling for a prefix of a bucket: ``v1/``, or nothing for all of it."""
    return f"{stripped}/" if (stripped := value.strip("/")) else ""


def default_metadata_mode(deployment_type: DeploymentType) -> LustreMetadataMode | None:
    """A metadata configuration cannot be added later, so persistent_2 always has one."""
    return LustreMetadataMode.AUTOMATIC if deployment_type is DeploymentType.PERSISTENT_2 else None


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
    }

    path: Annotated[Text, AfterValidator(canonical_path), Field(description="directory of the file system, from /")]
    bucket: Annotated[Text | None, Field(description="an existing bucket; without it one is created and kept")] = None
    prefix: Annotated[
        Text, AfterValidator(canonical_prefix), Field(description="prefix in the bucket; default: all of it")
    ] = ""
    auto_import: Annotated[Events, Field(description="events that S3 carries into the file system")] = ()
    auto_export: Annotated[Events, Field(description="events that the file system carries to S3")] = ()
    batch_import_metadata_on_create: Annotated[
        bool, Field(description="list what the bucket already holds when the link is made; create-only")
    ] = True


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
        "import_path": "persistent_2 refuses it: write data_repository_associations",
        "export_path": "persistent_2 refuses it: write data_repository_associations",
        "auto_import_policy": "persistent_2 refuses it: write auto_import on an association",
        "existing": "this version creates the file system; the constructs import one",
        "existing_id": "this version creates the file system; the constructs import one",
        "dra": "the key is data_repository_associations",
    }

    deployment_type: Annotated[DeploymentType, AnyCase] = DeploymentType.PERSISTENT_2
    storage_type: Annotated[StorageType, AnyCase, later("hdd", "intelligent_tiering", now="ssd")] = StorageType.SSD
    capacity_gib: Annotated[WholeNumber, Field(gt=0, description="storage capacity in GiB; it can only grow")]
    throughput_mbps_per_tib: Annotated[
        WholeNumber | None, Field(description="MB/s per TiB; required for persistent, forbidden for scratch")
    ] = None
    efa_enabled: Annotated[bool, Field(description="serve Lustre over EFA; fixed at creation")] = False
    metadata: Annotated[Metadata | None, Field(description="persistent_2 only, where the default is automatic")] = None
    version: Annotated[Text, Field(description="Lustre server version; only upgrades are possible")] = "2.15"
    mount_path: Annotated[Text, AfterValidator(canonical_path), Field(description="where nodes mount it")] = "/fsx"
    data_repository_associations: tuple[DataRepositoryAssociation, ...] = ()

    @property
    def metadata_mode(self) -> LustreMetadataMode | None:
        """The mode that reaches the template."""
        return self.metadata.mode if self.metadata else default_metadata_mode(self.deployment_type)

    @property
    def metadata_iops(self) -> int | None:
        """The IOPS that reach the template."""
        return self.metadata.iops if self.metadata else None


class Storage(Settings):
    """Everything that keeps data."""

    FOREIGN: ClassVar = {
        "home": "this version has no OpenZFS home directories: put homes on Lustre",
        "fsx": "the key is lustre",
    }

    lustre: Lustre | None = None


class LinkedPaths(Protocol):
    """What the rules over several associations look at."""

    @property
    def path(self) -> str: ...
    @property
    def bucket(self) -> str | None: ...
    @property
    def prefix(self) -> str: ...
