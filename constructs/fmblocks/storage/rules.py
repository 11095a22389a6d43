"""What is refused about storage. Limits stand here once, at their rule id, with their source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from fmblocks.catalog import Types
from fmblocks.findings import Violation, rule
from fmblocks.storage.settings import DataRepositoryEvent, DeploymentType, LinkedPaths, LustreMetadataMode

_API = "API:fsx CreateFileSystem"


# API:fsx StorageCapacity, maximum. What an account may have is a quota, which only the account knows.
_MOST_GIB = 2147483647


@rule("FSX-02")
def capacity(*, deployment_type: DeploymentType, capacity_gib: int) -> Iterator[Violation]:
    """SSD is sold as 1200 GiB or multiples of 2400; scratch_1 as 1200, 2400 or multiples of 3600."""
    if capacity_gib > _MOST_GIB:
        yield Violation("capacity_gib", f"{capacity_gib} GiB is more than FSx can count", f"the most is {_MOST_GIB}")
        return
    step, small = (3600, (1200, 2400)) if deployment_type is DeploymentType.SCRATCH_1 else (2400, (1200,))
    if capacity_gib in small or (capacity_gib > 0 and capacity_gib % step == 0):
        return
    sold = sorted({*small, capacity_gib // step * step, (capacity_gib // step + 1) * step} - {0})
    below = [size for size in sold if size < capacity_gib][-1:]
    above = [size for size in sold if size > capacity_gib][:1]
    nearest = " and ".join(str(size) for size in below + above)
    yield Violation(
        "capacity_gib",
        f"{capacity_gib} GiB is not sold for {deployment_type}: "
        f"{' or '.join(map(str, small))} GiB, or a multiple of {step}",
        f"nearest: {nearest}",
    )


_THROUGHPUTS = {DeploymentType.PERSISTENT_1: (50, 100, 200), DeploymentType.PERSISTENT_2: (125, 250, 500, 1000)}


@rule("FSX-03")
def throughput(*, deployment_type: DeploymentType, throughput_mbps_per_tib: int | None) -> Iterator[Violation]:
    """Persistent file systems name a throughput of their generation; scratch ones name none."""
    key, sold = "throughput_mbps_per_tib", _THROUGHPUTS.get(deployment_type)
    if sold is None:
        if throughput_mbps_per_tib is not None:
            text = f"{throughput_mbps_per_tib} cannot be chosen for {deployment_type}"
            yield Violation(key, text, "leave it out, or use persistent_2")
    elif throughput_mbps_per_tib not in sold:
        given = "is required" if throughput_mbps_per_tib is None else f"{throughput_mbps_per_tib} is not sold"
        yield Violation(key, f"{given} for {deployment_type} ssd", f"take one of {', '.join(map(str, sold))}")


_VERSIONS = ("2.10", "2.12", "2.15")


@rule("FSX-05")
def version(
    *, deployment_type: DeploymentType, version: str, metadata_mode: LustreMetadataMode | None
) -> Iterator[Violation]:
    """2.10 is for scratch and persistent_1; a metadata configuration, hence EFA, needs 2.15."""
    if version not in _VERSIONS:
        yield Violation("version", f"{version} is not a Lustre version of FSx", f"take one of {', '.join(_VERSIONS)}")
    elif metadata_mode is not None and version != _VERSIONS[-1]:
        text = f"{version} has no metadata configuration, which every persistent_2 file system of ours has"
        yield Violation("version", text, f"use {_VERSIONS[-1]}")
    elif version == _VERSIONS[0] and deployment_type is DeploymentType.PERSISTENT_2:
        yield Violation("version", f"{version} is not offered for {deployment_type}", f"use {_VERSIONS[-1]}")


_IOPS = (1500, 3000, 6000, 12000)
_IOPS_STEP, _IOPS_MOST = 12000, 192000


@rule("FSX-11")
def metadata(
    *, deployment_type: DeploymentType, metadata_mode: LustreMetadataMode | None, metadata_iops: int | None
) -> Iterator[Violation]:
    """Metadata settings are for persistent_2; IOPS go with user_provisioned and come in steps."""
    if metadata_mode is None:
        return
    if deployment_type is not DeploymentType.PERSISTENT_2:
        text = f"{deployment_type} has no metadata configuration"
        yield Violation("metadata", text, "leave it out, or use persistent_2")
    elif metadata_mode is LustreMetadataMode.AUTOMATIC:
        if metadata_iops is not None:
            text = f"{metadata_iops} cannot be chosen with mode automatic"
            yield Violation("metadata.iops", text, "leave it out, or write mode: user_provisioned")
    elif metadata_iops is None:
        yield Violation("metadata.iops", "is required with mode user_provisioned", f"take {_IOPS[0]} or more")
    elif metadata_iops not in _IOPS and (metadata_iops % _IOPS_STEP or not 0 < metadata_iops <= _IOPS_MOST):
        yield Violation(
            "metadata.iops",
            f"{metadata_iops} is not sold",
            f"take one of {', '.join(map(str, _IOPS))} or a multiple of {_IOPS_STEP} up to {_IOPS_MOST}",
        )


# MB/s per TiB → GiB. Source: FSx for Lustre User Guide, *Working with EFA-enabled file systems*.
EFA_CAPACITY_STEPS = {1000: 4800, 500: 9600, 250: 19200, 125: 38400}


@rule("FSX-13")
def efa(
    *, deployment_type: DeploymentType, efa_enabled: bool, capacity_gib: int, throughput_mbps_per_tib: int | None
) -> Iterator[Violation]:
    """EFA is for persistent_2, and its capacity comes in steps that depend on the throughput."""
    if not efa_enabled:
        return
    if deployment_type is not DeploymentType.PERSISTENT_2:
        yield Violation("efa_enabled", f"{deployment_type} cannot serve EFA", "use persistent_2, or drop efa_enabled")
    elif (step := EFA_CAPACITY_STEPS.get(throughput_mbps_per_tib or 0)) and capacity_gib % step:
        up = (capacity_gib // step + 1) * step
        yield Violation(
            "capacity_gib",
            f"{capacity_gib} GiB cannot serve EFA at {throughput_mbps_per_tib} MB/s per TiB: a multiple of {step}",
            f"take {up}, another throughput_mbps_per_tib, or efa_enabled: false",
        )


@rule("FMB-20")
def efa_group(*, efa_enabled: bool, efa_security_group_given: bool) -> Iterator[Violation]:
    """An EFA file system carries the group of the fabric."""
    if efa_enabled and not efa_security_group_given:
        text = 'is required with efa_enabled: FSx says "Insufficient security group permissions" without it'
        yield Violation("efa_security_group", text, "pass the EfaSecurityGroup of the nodes")


@rule("FSX-07")
def scratch_key(*, deployment_type: DeploymentType, kms_key_given: bool) -> Iterator[Violation]:
    """Scratch file systems are encrypted with the service's keys."""
    if kms_key_given and not deployment_type.persistent:
        yield Violation("kms_key", f"{deployment_type} takes no key", "leave it out, or use a persistent type")


# Nodes mount Lustre here. Source: API:sagemaker ClusterFsxLustreConfig, MountPath.
_MOUNT_PATH = r"/[a-zA-Z0-9._/-]+"


# The second volume (API:sagemaker ClusterEbsVolumeConfig), Slurm, and what a Linux system stands on.
_TAKEN = (
    "/opt/sagemaker",
    "/opt/slurm",
    "/home",
    *(f"/{name}" for name in ["bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "usr", "var"]),
)


@rule("HP-14")
def mount_path(*, mount_path: str) -> Iterator[Violation]:
    """Where nodes mount the file system: a directory of its own."""
    if not re.fullmatch(_MOUNT_PATH, mount_path) or _strange(mount_path):
        yield Violation("mount_path", f"{mount_path} is no plain path below /", "write one like /fsx")
    elif taken := next((one for one in _TAKEN if _inside(mount_path, one) or _inside(one, mount_path)), None):
        yield Violation("mount_path", f"{mount_path} would hide {taken}, which the nodes need", "write one like /fsx")


LUSTRE = ("FSX-02", "FSX-03", "FSX-05", "FSX-11", "FSX-13")
LUSTRE_CONSTRUCT = (*LUSTRE, "FSX-07", "FMB-20")
LUSTRE_PROJECT = ("FSX-16", "FSX-29")
CLIENTS = ("X-06", "FSX-15")


def addresses(
    capacity_gib: int,
    throughput_mbps_per_tib: int | None,
    efa_enabled: bool,
    metadata_iops: int | None,
) -> int:
    """Addresses a file system takes in its subnet (rule FSX-27): one per metadata server, one per object server."""
    metadata = -(-(metadata_iops or 1) // _IOPS_STEP)
    step = EFA_CAPACITY_STEPS.get(throughput_mbps_per_tib or 0, 2400) if efa_enabled else 2400
    return metadata + max(1, -(-capacity_gib // step))


class Client(Protocol):
    """A node group that mounts the file system."""

    @property
    def name(self) -> str: ...
    @property
    def instance_type(self) -> str: ...


@rule("X-06")
def efa_beside_gb200(*, efa_enabled: bool, node_groups: Sequence[Client]) -> Iterator[Violation]:
    """Where p6e-gb200 is sold, persistent_2 has no EFA."""
    if efa_enabled and any(group.instance_type.startswith("p6e-gb200.") for group in node_groups):
        text = "persistent_2 has no EFA in the Local Zone in which p6e-gb200 is sold"
        yield Violation("efa_enabled", text, "write efa_enabled: false")


@rule("FSX-15")
def efa_clients(*, efa_enabled: bool, node_groups: Sequence[Client], types: Types) -> Iterator[Violation]:
    """Some EFA types cannot mount Lustre over EFA: they would fall back to TCP in silence."""
    if not efa_enabled:
        return
    for group in node_groups:
        found = types.get(group.instance_type)
        if found is not None and found.max_efa_interfaces and found.fsx_lustre_efa_client is False:
            text = f"{group.instance_type} of {group.name} cannot mount Lustre over EFA"
            yield Violation("efa_enabled", text, "write efa_enabled: false, or change the type")


# MB/s. Source: the rule.
_EFA_ADVISED = 10000


@rule("FSX-16")
def efa_advised(*, efa_enabled: bool, capacity_gib: int, throughput_mbps_per_tib: int | None) -> Iterator[Violation]:
    """AWS advises EFA above 10 GB/s."""
    mbps = capacity_gib / 1024 * (throughput_mbps_per_tib or 0)
    if not efa_enabled and mbps > _EFA_ADVISED:
        text = f"{mbps:.0f} MB/s are served over TCP: AWS advises EFA above {_EFA_ADVISED} MB/s"
        yield Violation("efa_enabled", text, "write efa_enabled: true; it cannot be switched on later")


_NO_PERSISTENT_2 = frozenset({"me-south-1", "me-central-1"})


@rule("FSX-29")
def persistent_2_region(*, deployment_type: DeploymentType, region: str | None) -> Iterator[Violation]:
    """persistent_2 exists in most Regions; the list moves, so this is a warning."""
    if deployment_type is DeploymentType.PERSISTENT_2 and region in _NO_PERSISTENT_2:
        yield Violation("deployment_type", f"persistent_2 is not listed for {region}", "check, or use persistent_1")


@rule("DRA-01")
def association_count(*, data_repository_associations: Sequence[LinkedPaths]) -> Iterator[Violation]:
    """A file system takes eight associations."""
    if (count := len(data_repository_associations)) > 8:
        yield Violation("data_repository_associations", f"{count} are more than the 8 of a file system", "join some")


@rule("DRA-02")
def association_support(
    *, deployment_type: DeploymentType, version: str, data_repository_associations: Sequence[LinkedPaths]
) -> Iterator[Violation]:
    """No associations on scratch_1 or Lustre 2.10."""
    if not data_repository_associations:
        return
    if deployment_type is DeploymentType.SCRATCH_1:
        yield Violation("deployment_type", f"{deployment_type} takes no data_repository_associations", "use scratch_2")
    if version == _VERSIONS[0]:
        yield Violation("version", f"{version} takes no data_repository_associations", f"use {_VERSIONS[-1]}")


@rule("DRA-03")
def file_system_paths(*, data_repository_associations: Sequence[LinkedPaths]) -> Iterator[Violation]:
    """Paths are absolute and none lies inside another; / stands alone."""
    seen: list[tuple[int, str]] = []
    for index, link in enumerate(data_repository_associations):
        key = f"data_repository_associations[{index}].path"
        if not link.path.startswith("/"):
            yield Violation(key, f"{link.path} does not begin with /", f"write /{link.path}")
            continue
        if _strange(link.path):
            yield Violation(key, f"{link.path} has empty parts, . or ..", "write the path plainly")
            continue
        for other, path in seen:
            if _inside(link.path, path) or _inside(path, link.path):
                text = f"{link.path} overlaps {path} of data_repository_associations[{other}]"
                yield Violation(key, text, "give each association a directory of its own")
        seen.append((index, link.path))


@rule("DRA-04")
def repository_paths(*, data_repository_associations: Sequence[LinkedPaths]) -> Iterator[Violation]:
    """No prefix of a bucket lies inside another one."""
    seen: list[tuple[int, LinkedPaths]] = []
    for index, link in enumerate(data_repository_associations):
        for other, before in seen:
            same = link.bucket is not None and link.bucket == before.bucket
            if same and (link.prefix.startswith(before.prefix) or before.prefix.startswith(link.prefix)):
                text = f"s3://{link.bucket}/{link.prefix} overlaps that of data_repository_associations[{other}]"
                yield Violation(f"data_repository_associations[{index}].prefix", text, "link separate prefixes")
        seen.append((index, link))


@rule("FMB-08")
def bucket_names(*, data_repository_associations: Sequence[LinkedPaths]) -> Iterator[Violation]:
    """A bucket's name is legal."""
    for index, link in enumerate(data_repository_associations):
        if link.bucket is not None and (fault := bucket_name_fault(link.bucket)):
            hint = "write the bucket's name alone" if ":" in link.bucket else "check the name"
            yield Violation(f"data_repository_associations[{index}].bucket", f"{link.bucket} {fault}", hint)
        if "://" in link.prefix:
            text = f"{link.prefix} is an address"
            hint = "write the part behind the bucket, for example v1/"
            yield Violation(f"data_repository_associations[{index}].prefix", text, hint)


# What an SSM parameter's name takes, under which the bucket is published.
_PUBLISHABLE = r"/|(/[A-Za-z0-9_.-]+){1,8}"


@rule("FMB-13")
def created_buckets(*, data_repository_associations: Sequence[LinkedPaths]) -> Iterator[Violation]:
    """A bucket that we create is published under the path it is linked with."""
    for index, link in enumerate(data_repository_associations):
        if link.bucket is None and link.path.startswith("/") and not re.fullmatch(_PUBLISHABLE, link.path):
            text = f"{link.path} has characters or levels that the created bucket cannot be published under"
            hint = "use letters, digits, _ . - and at most eight levels, or name a bucket"
            yield Violation(f"data_repository_associations[{index}].path", text, hint)


def bucket_name_fault(name: str) -> str | None:
    """Why ``name`` is no bucket name, or None."""
    if name.startswith(("s3://", "arn:")):
        return "is an address, not a bucket name"
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", name):
        return "is no bucket name: 3 to 63 small letters, digits, hyphens and dots, a letter or digit at either end"
    if ".." in name or re.fullmatch(r"\d+\.\d+\.\d+\.\d+", name):
        return "is no bucket name: two dots in a row and IP addresses are not allowed"
    if name.startswith(("xn--", "sthree-", "amzn-s3-demo-")) or name.endswith(
        ("-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3")
    ):
        return "is no bucket name: it begins or ends with what S3 keeps for itself"
    return None


def _strange(path: str) -> bool:
    return path != "/" and any(part in ("", ".", "..") for part in path.split("/")[1:])


def _inside(path: str, other: str) -> bool:
    return path == other or other == "/" or path.startswith(other + "/")


@rule("DRA-06")
def events(
    *, auto_import: Sequence[DataRepositoryEvent], auto_export: Sequence[DataRepositoryEvent]
) -> Iterator[Violation]:
    """No event stands twice."""
    for key, given in (("auto_import", auto_import), ("auto_export", auto_export)):
        if len(set(given)) != len(given):
            yield Violation(key, f"{', '.join(given)} names an event twice", "name each once")


ASSOCIATIONS = ("DRA-01", "DRA-02", "DRA-03", "DRA-04", "FMB-08", "FMB-13")
ASSOCIATION = ("DRA-06",)
ASSOCIATION_CONSTRUCT = ("DRA-01", "DRA-03", "DRA-04", *ASSOCIATION)
RULES = (*LUSTRE, "HP-14", *ASSOCIATIONS)
