"""What is refused about storage. Limits stand here once, at their rule id, with their source."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fmblocks.catalog import REGIONS, Types
from fmblocks.findings import Violation, choice, rule
from fmblocks.storage.settings import (
    AccountingDatabase,
    DataCompressionType,
    DataRepositoryEvent,
    DeploymentType,
    DriveCacheType,
    ExistingLustre,
    LinkedPaths,
    LustreLogLevel,
    LustreMetadataMode,
    ModelStore,
    OpenZfsDeploymentType,
    ReadCacheSizingMode,
    Release,
    StorageType,
)

# API:fsx StorageCapacity, maximum. What an account may have is a quota, which only the account knows.
_MOST_GIB = 2147483647


# What hard disks are sold in: MB/s per TiB → GiB.
_HDD_STEPS = {12: 6000, 40: 1800}


@rule("FSX-02")
def capacity(
    *,
    deployment_type: DeploymentType,
    storage_type: StorageType,
    capacity_gib: int | None,
    throughput_mbps_per_tib: int | None,
) -> Iterator[Violation]:
    """SSD is sold as 1200 GiB or multiples of 2400; scratch_1 and hard disks in steps of their own."""
    if storage_type is StorageType.INTELLIGENT_TIERING:
        return  # FSX-08 says so
    if capacity_gib is None:
        yield Violation("capacity_gib", f"is required with {storage_type}", "give the capacity in GiB")
        return
    if capacity_gib > _MOST_GIB:
        yield Violation("capacity_gib", f"{capacity_gib} GiB is more than FSx can count", f"the most is {_MOST_GIB}")
        return
    small: tuple[int, ...]
    what, small, step = str(deployment_type), (1200,), 2400
    if storage_type is StorageType.HDD:
        if throughput_mbps_per_tib not in _HDD_STEPS:
            return  # FSX-03 says so
        what, small = f"hdd at {throughput_mbps_per_tib} MB/s per TiB", ()
        step = _HDD_STEPS[throughput_mbps_per_tib]
    elif deployment_type is DeploymentType.SCRATCH_1:
        small, step = (1200, 2400), 3600
    if capacity_gib in small or (capacity_gib > 0 and capacity_gib % step == 0):
        return
    steps = max(capacity_gib, 0) // step
    sold = sorted({*small, steps * step, (steps + 1) * step} - {0})
    below = [size for size in sold if size < capacity_gib][-1:]
    above = [size for size in sold if size > capacity_gib][:1]
    nearest = " and ".join(str(size) for size in below + above)
    alone = f"{' or '.join(map(str, small))} GiB, or " if small else ""
    yield Violation(
        "capacity_gib", f"{capacity_gib} GiB is not sold for {what}: {alone}a multiple of {step}", f"nearest: {nearest}"
    )


_THROUGHPUTS = {
    (DeploymentType.PERSISTENT_1, StorageType.SSD): (50, 100, 200),
    (DeploymentType.PERSISTENT_1, StorageType.HDD): tuple(_HDD_STEPS),
    (DeploymentType.PERSISTENT_2, StorageType.SSD): (125, 250, 500, 1000),
}


@rule("FSX-03")
def throughput(
    *, deployment_type: DeploymentType, storage_type: StorageType, throughput_mbps_per_tib: int | None
) -> Iterator[Violation]:
    """Persistent file systems name a throughput of their generation and media; scratch ones name none."""
    if storage_type is StorageType.INTELLIGENT_TIERING:
        return  # FSX-08 says so
    key, sold = "throughput_mbps_per_tib", _THROUGHPUTS.get((deployment_type, storage_type))
    if storage_type is StorageType.HDD and sold is None:
        yield Violation("storage_type", f"hdd is not sold for {deployment_type}", "use persistent_1, or ssd")
    elif sold is None:
        if throughput_mbps_per_tib is not None:
            text = f"{throughput_mbps_per_tib} cannot be chosen for {deployment_type}"
            yield Violation(key, text, "leave it out, or use persistent_2")
    elif throughput_mbps_per_tib not in sold:
        given = "is required" if throughput_mbps_per_tib is None else f"{throughput_mbps_per_tib} is not sold"
        yield Violation(
            key, f"{given} for {deployment_type} {storage_type}", f"take one of {', '.join(map(str, sold))}"
        )


@rule("FSX-08")
def intelligent_tiering(
    *,
    deployment_type: DeploymentType,
    storage_type: StorageType,
    capacity_gib: int | None,
    throughput_mbps_per_tib: int | None,
    throughput_capacity_mbps: int | None,
    read_cache_sizing_mode: ReadCacheSizingMode | None,
    metadata_mode: LustreMetadataMode | None,
) -> Iterator[Violation]:
    """Intelligent-Tiering has no capacity of its own: it names throughput, read cache and metadata instead."""
    if storage_type is not StorageType.INTELLIGENT_TIERING:
        for key, given in (
            ("throughput_capacity_mbps", throughput_capacity_mbps),
            ("read_cache", read_cache_sizing_mode),
        ):
            if given is not None:
                text = f"{given} belongs to intelligent_tiering, and storage_type is {storage_type}"
                yield Violation(key, text, "leave it out, or write storage_type: intelligent_tiering")
        return
    if deployment_type is not DeploymentType.PERSISTENT_2:
        text = f"intelligent_tiering is not sold for {deployment_type}"
        yield Violation("storage_type", text, "use persistent_2, or ssd")
    for key, number in (("capacity_gib", capacity_gib), ("throughput_mbps_per_tib", throughput_mbps_per_tib)):
        if number is not None:
            text = f"{number} cannot be chosen with intelligent_tiering, which grows with its data"
            yield Violation(key, text, "leave it out; throughput is throughput_capacity_mbps")
    if throughput_capacity_mbps is None:
        text = "is required with intelligent_tiering"
        yield Violation("throughput_capacity_mbps", text, f"take a multiple of {_TIERING_STEP}")
    if read_cache_sizing_mode is None:
        hint = "write {sizing_mode: proportional_to_throughput_capacity}, or no_cache"
        yield Violation("read_cache", "is required with intelligent_tiering", hint)
    if metadata_mode is None:
        hint = "write {mode: user_provisioned, iops: 6000}, which all of AWS's texts allow"
        yield Violation("metadata", "is required with intelligent_tiering", hint)


# MB/s that one server of Intelligent-Tiering gives, and the most that the API takes.
_TIERING_STEP, _TIERING_MOST = 4000, 2000000
# What the API's text allows besides, and neither the guide nor the API's own minimum does.
_TIERING_DISPUTED = (1000, 2000)


@rule("FSX-09")
def tiering_throughput(*, storage_type: StorageType, throughput_capacity_mbps: int | None) -> Iterator[Violation]:
    """Intelligent-Tiering is sold in steps of 4000 MB/s."""
    given = throughput_capacity_mbps
    if storage_type is not StorageType.INTELLIGENT_TIERING or given is None:
        return  # FSX-08 says so
    if given in _TIERING_DISPUTED or (0 < given <= _TIERING_MOST and given % _TIERING_STEP == 0):
        return
    up = min(max(given // _TIERING_STEP + 1, 1) * _TIERING_STEP, _TIERING_MOST)
    text = f"{given} MB/s is not sold: a multiple of {_TIERING_STEP} up to {_TIERING_MOST}"
    yield Violation("throughput_capacity_mbps", text, f"take {up}")


@rule("FMB-29")
def tiering_disputed(*, throughput_capacity_mbps: int | None) -> Iterator[Violation]:
    """AWS's own texts disagree whether less than one step can be bought."""
    if throughput_capacity_mbps in _TIERING_DISPUTED:
        text = f"{throughput_capacity_mbps} MB/s is allowed by the API's text, and not by the guide"
        yield Violation("throughput_capacity_mbps", text, f"take {_TIERING_STEP} unless you have seen it work")


# GiB of read cache for every 1000 MB/s of throughput.
_CACHE_LEAST, _CACHE_MOST = 8, 32768


@rule("FSX-10")
def read_cache(
    *,
    storage_type: StorageType,
    throughput_capacity_mbps: int | None,
    read_cache_sizing_mode: ReadCacheSizingMode | None,
    read_cache_size_gib: int | None,
) -> Iterator[Violation]:
    """A read cache names its size where the user provisions it, and nowhere else."""
    key = "read_cache.size_gib"
    if storage_type is not StorageType.INTELLIGENT_TIERING:
        return  # FSX-08 says so
    if read_cache_sizing_mode is not ReadCacheSizingMode.USER_PROVISIONED:
        if read_cache_size_gib is not None:
            mode = f"sizing_mode {read_cache_sizing_mode}" if read_cache_sizing_mode else "no sizing_mode"
            text = f"{read_cache_size_gib} cannot be chosen with {mode}"
            yield Violation(key, text, "leave it out, or write sizing_mode: user_provisioned")
        return
    thousands = (throughput_capacity_mbps or 0) / 1000
    least, most = int(_CACHE_LEAST * thousands), int(_CACHE_MOST * thousands)
    if read_cache_size_gib is None:
        sold = f"{least} to {most}" if thousands else f"{_CACHE_LEAST} to {_CACHE_MOST} for every 1000 MB/s"
        yield Violation(key, "is required with sizing_mode user_provisioned", f"take {sold}")
    elif thousands and not least <= read_cache_size_gib <= most:
        text = f"{read_cache_size_gib} GiB is not between {least} and {most} for {throughput_capacity_mbps} MB/s"
        yield Violation(key, text, "change it, or let it follow: sizing_mode: proportional_to_throughput_capacity")


# What the guide offers; the API's text of 2026-11 offers more.
_TIERING_IOPS = (6000, 12000)


@rule("FSX-12")
def tiering_metadata(
    *, storage_type: StorageType, metadata_mode: LustreMetadataMode | None, metadata_iops: int | None
) -> Iterator[Violation]:
    """AWS's own texts disagree about the metadata of Intelligent-Tiering."""
    if storage_type is not StorageType.INTELLIGENT_TIERING or metadata_mode is None:
        return
    if metadata_mode is LustreMetadataMode.AUTOMATIC or metadata_iops not in (None, *_TIERING_IOPS):
        given = metadata_iops if metadata_mode is LustreMetadataMode.USER_PROVISIONED else metadata_mode
        offered = " or ".join(map(str, _TIERING_IOPS))
        text = f"{given} is allowed by the API's text, while the guide offers user_provisioned {offered} only"
        yield Violation("metadata", text, f"take one of {offered} unless you have seen it work")


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
    *,
    deployment_type: DeploymentType,
    efa_enabled: bool,
    capacity_gib: int | None,
    throughput_mbps_per_tib: int | None,
    throughput_capacity_mbps: int | None,
) -> Iterator[Violation]:
    """EFA is for persistent_2, and its capacity comes in steps that depend on the throughput."""
    if not efa_enabled:
        return
    step = EFA_CAPACITY_STEPS.get(throughput_mbps_per_tib or 0)
    if deployment_type is not DeploymentType.PERSISTENT_2:
        yield Violation("efa_enabled", f"{deployment_type} cannot serve EFA", "use persistent_2, or drop efa_enabled")
    elif step and capacity_gib and capacity_gib % step:
        up = (capacity_gib // step + 1) * step
        yield Violation(
            "capacity_gib",
            f"{capacity_gib} GiB cannot serve EFA at {throughput_mbps_per_tib} MB/s per TiB: a multiple of {step}",
            f"take {up}, another throughput_mbps_per_tib, or efa_enabled: false",
        )
    elif throughput_capacity_mbps in _TIERING_DISPUTED:
        text = f"{throughput_capacity_mbps} MB/s cannot serve EFA: a multiple of {_TIERING_STEP}"
        yield Violation("throughput_capacity_mbps", text, f"take {_TIERING_STEP}, or efa_enabled: false")


@rule("FMB-20")
def efa_group(*, efa_enabled: bool, efa_security_group_given: bool) -> Iterator[Violation]:
    """An EFA file system carries the group of the fabric."""
    if efa_enabled and not efa_security_group_given:
        text = 'is required with efa_enabled: FSx says "Insufficient security group permissions" without it'
        yield Violation("efa_security_group", text, "pass the EfaSecurityGroup of the nodes")


@rule("FSX-07")
def key_and_drive_cache(
    *,
    deployment_type: DeploymentType,
    storage_type: StorageType,
    kms_key_given: bool,
    drive_cache_type: DriveCacheType | None,
) -> Iterator[Violation]:
    """Scratch file systems are encrypted with the service's keys; a drive cache stands before hard disks."""
    if kms_key_given and not deployment_type.persistent:
        yield Violation("kms_key", f"{deployment_type} takes no key", "leave it out, or use a persistent type")
    if storage_type is StorageType.HDD and drive_cache_type is None:
        yield Violation("drive_cache_type", "is required with storage_type hdd", "write read or none")
    elif storage_type is not StorageType.HDD and drive_cache_type is not None:
        text = f"{drive_cache_type} belongs to hdd, and storage_type is {storage_type}"
        yield Violation("drive_cache_type", text, "leave it out, or use persistent_1 with hdd")


choice("DRA-06", DataRepositoryEvent)
choice("FSX-21", DataCompressionType)


# API:fsx AutomaticBackupRetentionDays, maximum.
_MOST_BACKUP_DAYS = 90


@rule("FSX-20")
def backups(
    *,
    deployment_type: DeploymentType,
    automatic_backup_retention_days: int,
    daily_automatic_backup_start_time: str | None,
    copy_tags_to_backups: bool,
) -> Iterator[Violation]:
    """Backups are for persistent file systems; their time and tags go with a retention."""
    days, key = automatic_backup_retention_days, "automatic_backup_retention_days"
    if not 0 <= days <= _MOST_BACKUP_DAYS:
        yield Violation(key, f"{days} is not between 0 and {_MOST_BACKUP_DAYS}", "0 makes no backups")
    elif days and not deployment_type.persistent:
        yield Violation(key, f"{deployment_type} makes no backups", "leave it out, or use a persistent type")
    elif not days:
        for key, given in (
            ("daily_automatic_backup_start_time", daily_automatic_backup_start_time),
            ("copy_tags_to_backups", copy_tags_to_backups),
        ):
            if given:
                shown = "true" if given is True else given
                text = f"{shown} is read with backups only, and automatic_backup_retention_days is 0"
                yield Violation(key, text, "leave it out, or write automatic_backup_retention_days: 7")


@rule("DRA-11")
def backups_or_links(
    *, automatic_backup_retention_days: int, data_repository_associations: Sequence[LinkedPaths]
) -> Iterator[Violation]:
    """A file system that is linked with S3 makes no backups."""
    if automatic_backup_retention_days and data_repository_associations:
        text = f"{automatic_backup_retention_days} days of backups cannot be had beside data_repository_associations"
        yield Violation("automatic_backup_retention_days", text, "leave one of the two out: exports keep data in S3")


_TIMES = {
    "weekly_maintenance_start_time": (r"[1-7]:([01]\d|2[0-3]):[0-5]\d", "d:HH:MM, d from 1 (Monday) to 7", "7:05:00"),
    "daily_automatic_backup_start_time": (r"([01]\d|2[0-3]):[0-5]\d", "HH:MM", "05:00"),
}


@rule("FSX-30")
def times(
    *, weekly_maintenance_start_time: str | None, daily_automatic_backup_start_time: str | None
) -> Iterator[Violation]:
    """Maintenance and backups begin at a time of day in UTC."""
    given = {
        "weekly_maintenance_start_time": weekly_maintenance_start_time,
        "daily_automatic_backup_start_time": daily_automatic_backup_start_time,
    }
    for key, value in given.items():
        pattern, form, example = _TIMES[key]
        if value is not None and not re.fullmatch(pattern, value):
            yield Violation(key, f"{value} is no time in UTC of the form {form}", f"write one like {example}")


# Nodes mount Lustre here. Source: API:sagemaker ClusterFsxLustreConfig, MountPath.
_MOUNT_PATH = r"/[a-zA-Z0-9._/-]+"


# The second volume (API:sagemaker ClusterEbsVolumeConfig), Slurm, and what a Linux system stands on.
_TAKEN = (
    "/opt/sagemaker",
    "/opt/slurm",
    "/home",
    *(
        f"/{name}"
        for name in ["bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var"]
    ),
)


# Where somebody else mounts and writes; directories below the others are as good as any.
_CLOSED = tuple(one for one in _TAKEN if one not in ("/home", "/root", "/var"))


@rule("HP-14")
def mount_path(*, mount_path: str) -> Iterator[Violation]:
    """Where nodes mount the file system: a directory of its own."""
    if not re.fullmatch(_MOUNT_PATH, mount_path) or _strange(mount_path):
        yield Violation("mount_path", f"{mount_path} is no plain path below /", "write one like /fsx")
    elif taken := next((one for one in _TAKEN if _inside(one, mount_path)), None):
        yield Violation("mount_path", f"{mount_path} would hide {taken}, which the nodes need", "write one like /fsx")
    elif closed := next((one for one in _CLOSED if _inside(mount_path, one)), None):
        yield Violation("mount_path", f"{mount_path} lies in {closed}, which is not yours", "write one like /fsx")


# What is said about an existing file system, too.
_ABOUT_EXISTING = frozenset({"existing", "efa_enabled", "mount_path", "data_repository_associations", "release"})


@rule("FMB-56")
def made_or_existing(*, existing: ExistingLustre | None, given: Collection[str]) -> Iterator[Violation]:
    """An existing file system is as it is."""
    for key in sorted(set(given) - _ABOUT_EXISTING) if existing is not None else ():
        text = "says how a file system is made, and existing names one that is there"
        yield Violation(key, text, "leave one of the two out")


@rule("FMB-57")
def existing(
    *,
    existing: ExistingLustre | None,
    vpc_given: bool,
    efa_enabled: bool,
    efa_security_group_given: bool,
    region: str | None,
) -> Iterator[Violation]:
    """An existing file system is named whole, and stands in a VPC that is named too."""
    if existing is None:
        return
    if not vpc_given:
        text = f"{existing.file_system_id} stands in a VPC that is there already, and the project makes another one"
        hint = "write network: {vpc: {id, cidr, private_subnets: [{id, availability_zone, cidr, route_table_id}]}}"
        yield Violation("existing", text, hint)
    elif efa_enabled and not efa_security_group_given:
        text = "true, and a file system with EFA talks to the group of the fabric that it carries itself"
        yield Violation("efa_enabled", text, "name that group: network.vpc.efa_security_group_id")
    for key, value, pattern, example in (
        ("file_system_id", existing.file_system_id, r"fs-[0-9a-f]{8,}", "fs-0123456789abcdef0"),
        ("mount_name", existing.mount_name, r"[A-Za-z0-9_-]{1,8}", "fsx, or eight letters and digits"),
        ("security_group_id", existing.security_group_id, r"sg-[0-9a-f]{8,17}", "sg-0123456789abcdef0"),
        (
            "dns_name",
            existing.dns_name,
            r"fs-[0-9a-f]+\.fsx\.[a-z0-9-]+\.amazonaws\.com(\.cn)?",
            "fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
        ),
    ):
        if not re.fullmatch(pattern, value):
            yield Violation(f"existing.{key}", f"{value} is none", f"write one like {example}, as FSx shows it")
    named, _, rest = existing.dns_name.partition(".fsx.")
    if rest and named != existing.file_system_id:
        text = f"{existing.dns_name} is the name of {named}, not of {existing.file_system_id}"
        yield Violation("existing.dns_name", text, "write both of one file system")
    elif rest and region and not rest.startswith(f"{region}."):
        text = f"{existing.dns_name} is not in {region}"
        yield Violation("existing.dns_name", text, "name a file system of the Region")


# Source: API:fsx LustreLogCreateConfiguration, Destination.
_LOG_GROUPS = "/aws/fsx"


@rule("FMB-62")
def log_group(*, log_level: LustreLogLevel, log_group_name: str | None) -> Iterator[Violation]:
    """FSx logs into groups of its own name, and into none when logging is off."""
    if log_group_name is None:
        return
    if log_level is LustreLogLevel.DISABLED:
        yield Violation("log_group", "is given, and log_level is disabled", "leave it out, or choose a log_level")
    elif not log_group_name.startswith(_LOG_GROUPS):
        text = f"{log_group_name} does not begin with {_LOG_GROUPS}"
        yield Violation("log_group", text, f"call the group {_LOG_GROUPS}/…")


@rule("FMB-58")
def backup(*, deployment_type: DeploymentType, backup_id: str | None) -> Iterator[Violation]:
    """Backups are of persistent file systems, and known by an id."""
    if backup_id is None:
        return
    if not re.fullmatch(r"backup-[0-9a-f]{8,}", backup_id):
        yield Violation("backup_id", f"{backup_id} is no id of a backup", "write one like backup-0123456789abcdef0")
    if not deployment_type.persistent:
        yield Violation("backup_id", f"{deployment_type} cannot be made of a backup", "use a persistent type")


# What EventBridge Scheduler takes. Source: EventBridge Scheduler User Guide, *Schedule types*.
_SCHEDULE = r"cron\((?P<fields>[0-9A-Z*?/,#-]+( [0-9A-Z*?/,#-]+){5})\)|rate\([1-9]\d* (minute|hour|day)s?\)"


@rule("FMB-61")
def release(*, release: Release | None, data_repository_associations: Sequence[LinkedPaths]) -> Iterator[Violation]:
    """Only exported files are released; the schedule is one."""
    if release is None:
        return
    if not any(link.auto_export for link in data_repository_associations):
        text = "releases files that were exported, and no association has auto_export"
        yield Violation("release", text, "write auto_export: [new, changed] on an association, or leave it out")
    if release.days_since_last_access < 0:
        text = f"{release.days_since_last_access} is less than 0"
        yield Violation("release.days_since_last_access", text, "0 releases every exported file")
    if fault := _schedule_fault(release.schedule):
        yield Violation("release.schedule", f"{release.schedule} {fault}", "write one like cron(0 3 * * ? *)")


def _schedule_fault(schedule: str) -> str | None:
    """What is wrong with a schedule, as far as a file can tell."""
    found = re.fullmatch(_SCHEDULE, schedule)
    if found is None:
        return "is neither cron(…) with six fields nor rate(…)"
    if found["fields"] is None:
        return None
    minutes, hours, day, _month, weekday, _year = found["fields"].split(" ")
    for field, unit, most in ((minutes, "minute", 59), (hours, "hour", 23)):
        if any(int(number) > most for number in re.findall(r"\d+", field)):
            return f"has no {unit} {field}: the last is {most}"
    if (day == "?") == (weekday == "?"):
        return "has to have ? for the day of the month or for that of the week, and not for both"
    return None


_OPEN_ZFS_1 = (64, 128, 256, 512, 1024, 2048, 3072, 4096)
_OPEN_ZFS_2 = (160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240)
# MB/s. Source: FSx for OpenZFS User Guide, *Managing throughput capacity*.
_OPEN_ZFS_THROUGHPUTS = {
    OpenZfsDeploymentType.SINGLE_AZ_1: _OPEN_ZFS_1,
    OpenZfsDeploymentType.SINGLE_AZ_HA_1: _OPEN_ZFS_1,
    OpenZfsDeploymentType.SINGLE_AZ_2: _OPEN_ZFS_2,
    OpenZfsDeploymentType.SINGLE_AZ_HA_2: _OPEN_ZFS_2,
}


@rule("FMB-63")
def home_throughput(*, deployment_type: OpenZfsDeploymentType, throughput_capacity_mbps: int) -> Iterator[Violation]:
    """OpenZFS is sold in steps of throughput that depend on the deployment type; ours stands in one zone."""
    sold = _OPEN_ZFS_THROUGHPUTS.get(deployment_type)
    if sold is None:
        text = f"{deployment_type} spans two zones, and nodes stand in one"
        yield Violation("deployment_type", text, f"use {OpenZfsDeploymentType.SINGLE_AZ_HA_2}")
    elif throughput_capacity_mbps not in sold:
        text = f"{throughput_capacity_mbps} MB/s is not sold for {deployment_type}"
        yield Violation("throughput_capacity_mbps", text, f"take one of {', '.join(map(str, sold))}")


@rule("FMB-64")
def home_disputed(*, deployment_type: OpenZfsDeploymentType, throughput_capacity_mbps: int) -> Iterator[Violation]:
    """AWS's own texts disagree about the smallest highly available file system."""
    least, next_one = _OPEN_ZFS_1[:2]
    if deployment_type is OpenZfsDeploymentType.SINGLE_AZ_HA_1 and throughput_capacity_mbps == least:
        text = f"{least} MB/s is allowed for {deployment_type} by the API's text, and not by the guide"
        yield Violation("throughput_capacity_mbps", text, f"take {next_one} unless you have seen it work")


# Source: FSx for OpenZFS User Guide, *Available AWS Regions*, as far as its table was at hand.
_NO_HA_1 = frozenset(
    {
        "ap-northeast-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ca-central-1", "us-east-1", "us-east-2",
        "us-gov-west-1", "us-west-2",
    }
)  # fmt: skip
_NO_GENERATION_2 = frozenset(
    {
        "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
        "ap-southeast-6", "ap-southeast-7", "us-gov-east-1",
    }
)  # fmt: skip


@rule("FMB-75")
def home_region(*, deployment_type: OpenZfsDeploymentType, region: str | None) -> Iterator[Violation]:
    """Not every Region sells every type; the list moves, so this is a warning."""
    kind = OpenZfsDeploymentType
    missing = {kind.SINGLE_AZ_HA_1: _NO_HA_1, kind.SINGLE_AZ_2: _NO_GENERATION_2, kind.SINGLE_AZ_HA_2: _NO_GENERATION_2}
    if region in missing.get(deployment_type, ()):
        other = kind.SINGLE_AZ_HA_2 if deployment_type is kind.SINGLE_AZ_HA_1 else kind.SINGLE_AZ_HA_1
        yield Violation("deployment_type", f"{deployment_type} is not listed for {region}", f"check, or use {other}")


# GiB on SSD. Source: API:fsx CreateFileSystem, StorageCapacity.
_OPEN_ZFS_LEAST, _OPEN_ZFS_MOST = 64, 524288


@rule("FMB-65")
def home_capacity(*, capacity_gib: int) -> Iterator[Violation]:
    """OpenZFS has 64 GiB to 512 TiB."""
    if not _OPEN_ZFS_LEAST <= capacity_gib <= _OPEN_ZFS_MOST:
        text = f"{capacity_gib} GiB is not between {_OPEN_ZFS_LEAST} and {_OPEN_ZFS_MOST}"
        yield Violation("capacity_gib", text, "change it")


# Of each GiB, and of a whole file system by generation. Source: FSx for OpenZFS User Guide, *Performance*.
_IOPS_PER_GIB_LEAST, _IOPS_PER_GIB_MOST = 3, 1000
_OPEN_ZFS_IOPS = {
    OpenZfsDeploymentType.SINGLE_AZ_1: 160000,
    OpenZfsDeploymentType.SINGLE_AZ_HA_1: 160000,
    OpenZfsDeploymentType.SINGLE_AZ_2: 400000,
    OpenZfsDeploymentType.SINGLE_AZ_HA_2: 400000,
}


@rule("FMB-66")
def home_iops(*, deployment_type: OpenZfsDeploymentType, capacity_gib: int, iops: int | None) -> Iterator[Violation]:
    """IOPS that are chosen are at least those that come with the capacity."""
    if iops is None or deployment_type not in _OPEN_ZFS_IOPS:
        return
    least = capacity_gib * _IOPS_PER_GIB_LEAST
    most = min(capacity_gib * _IOPS_PER_GIB_MOST, _OPEN_ZFS_IOPS[deployment_type])
    if not least <= iops <= most:
        text = f"{iops} is not between {least} and {most} for {capacity_gib} GiB of {deployment_type}"
        yield Violation("iops", text, "change it, or leave it out")


# Source: CFN:AWS::SageMaker::Cluster FsxOpenZfsConfig, MountPath.
_HOME_PATH = r"/[a-zA-Z0-9._-]+(/[a-zA-Z0-9._-]+)*"


@rule("FMB-67")
def home_path(*, mount_path: str, lustre_mount_path: str | None) -> Iterator[Violation]:
    """Where nodes mount home directories: /home, or a directory of its own."""
    hidden = next((one for one in _TAKEN if one != "/home" and _inside(one, mount_path)), None)
    around = next((one for one in _CLOSED if _inside(mount_path, one)), None)
    if not re.fullmatch(_HOME_PATH, mount_path) or _strange(mount_path):
        yield Violation("mount_path", f"{mount_path} is no plain path below /", "write /home")
    elif hidden or around:
        text = f"{mount_path} is in the way of {hidden or around}, which the nodes need"
        yield Violation("mount_path", text, "write /home")
    elif lustre_mount_path and (_inside(mount_path, lustre_mount_path) or _inside(lustre_mount_path, mount_path)):
        text = f"{mount_path} and {lustre_mount_path} of Lustre lie inside each other"
        yield Violation("mount_path", text, "give each a directory of its own")


@rule("FMB-68")
def home_backups(*, automatic_backup_retention_days: int) -> Iterator[Violation]:
    """Daily backups are kept for up to 90 days."""
    days = automatic_backup_retention_days
    if not 0 <= days <= _MOST_BACKUP_DAYS:
        key = "automatic_backup_retention_days"
        yield Violation(key, f"{days} is not between 0 and {_MOST_BACKUP_DAYS}", "0 makes no backups")


@rule("FMB-69")
def buckets(*, noncurrent_version_days: int, intelligent_tiering_after_days: int | None) -> Iterator[Violation]:
    """Versions are kept for a day at least; objects move at an age."""
    if noncurrent_version_days < 1:
        text = f"{noncurrent_version_days} would leave nothing to bring back"
        yield Violation("noncurrent_version_days", text, "write 1 or more")
    if intelligent_tiering_after_days is not None and intelligent_tiering_after_days < 0:
        text = f"{intelligent_tiering_after_days} is no age"
        yield Violation("intelligent_tiering_after_days", text, "0 moves every object at once")


OPEN_ZFS = ("FMB-63", "FMB-64", "FMB-65", "FMB-66", "FMB-68", "FMB-75", "FSX-30")
HOME = (*OPEN_ZFS, "FMB-67")
LUSTRE = (
    "FSX-02", "FSX-03", "FSX-05", "FSX-07", "FSX-08", "FSX-09", "FSX-10", "FSX-11", "FSX-12", "FSX-13", "FSX-20",
    "FSX-30", "FMB-29", "FMB-58",
)  # fmt: skip
LUSTRE_CONSTRUCT = (*LUSTRE, "FMB-20", "FMB-62")
LUSTRE_PROJECT = ("FSX-16", "FSX-29")
EXISTING = ("FMB-56", "FMB-57")
CLIENTS = ("X-06", "FSX-15")


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreSize:
    """What says how many servers a file system has."""

    storage_type: StorageType
    capacity_gib: int | None
    throughput_mbps_per_tib: int | None
    throughput_capacity_mbps: int | None
    efa_enabled: bool
    metadata_iops: int | None


def addresses(size: LustreSize) -> int:
    """Addresses a file system takes in its subnet (rule FSX-27): one per metadata server, one per object server."""
    metadata = -(-(size.metadata_iops or 1) // _IOPS_STEP)
    if size.storage_type is StorageType.INTELLIGENT_TIERING:
        return metadata + max(1, -(-(size.throughput_capacity_mbps or 0) // _TIERING_STEP))
    step = 2400
    if size.efa_enabled:
        step = EFA_CAPACITY_STEPS.get(size.throughput_mbps_per_tib or 0, step)
    elif size.storage_type is StorageType.HDD:  # no source counts their servers; a step has one at least
        step = max(step, _HDD_STEPS.get(size.throughput_mbps_per_tib or 0, step))
    return metadata + max(1, -(-(size.capacity_gib or 0) // step))


@rule("FSX-27")
def room(*, lustre_addresses: int, subnet_size: int) -> Iterator[Violation]:
    """The subnet has an address for every server of the file system."""
    # EC2 keeps five addresses of every subnet.
    if lustre_addresses > (usable := subnet_size - 5):
        text = f"{lustre_addresses} addresses of its servers do not fit the {usable} of the subnet"
        yield Violation("capacity_gib", text, "use a larger subnet, or a smaller file system")


class Client(Protocol):
    """A node group that mounts the file system."""

    @property
    def name(self) -> str: ...
    @property
    def every_type(self) -> Sequence[str]: ...


@rule("X-06")
def efa_beside_gb200(*, efa_enabled: bool, node_groups: Sequence[Client]) -> Iterator[Violation]:
    """Where p6e-gb200 is sold, persistent_2 has no EFA."""
    if efa_enabled and any(name.startswith("p6e-gb200.") for group in node_groups for name in group.every_type):
        text = "persistent_2 has no EFA in the Local Zone in which p6e-gb200 is sold"
        yield Violation("efa_enabled", text, "write efa_enabled: false")


@rule("FSX-15")
def efa_clients(*, efa_enabled: bool, node_groups: Sequence[Client], types: Types) -> Iterator[Violation]:
    """Some EFA types cannot mount Lustre over EFA: they would fall back to TCP in silence."""
    if not efa_enabled:
        return
    for group in node_groups:
        for name in group.every_type:
            found = types.get(name)
            if found is not None and found.max_efa_interfaces and found.fsx_lustre_efa_client is False:
                text = f"{name} of {group.name} cannot mount Lustre over EFA"
                yield Violation("efa_enabled", text, "write efa_enabled: false, or change the type")


# MB/s. Source: the rule.
_EFA_ADVISED = 10000


@rule("FSX-16")
def efa_advised(
    *,
    efa_enabled: bool,
    capacity_gib: int | None,
    throughput_mbps_per_tib: int | None,
    throughput_capacity_mbps: int | None,
) -> Iterator[Violation]:
    """AWS advises EFA above 10 GB/s."""
    mbps = throughput_capacity_mbps or (capacity_gib or 0) / 1024 * (throughput_mbps_per_tib or 0)
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
    *,
    deployment_type: DeploymentType,
    storage_type: StorageType,
    version: str,
    data_repository_associations: Sequence[LinkedPaths],
) -> Iterator[Violation]:
    """No associations on scratch_1, Intelligent-Tiering or Lustre 2.10."""
    if not data_repository_associations:
        return
    if storage_type is StorageType.INTELLIGENT_TIERING:
        yield Violation("storage_type", f"{storage_type} takes no data_repository_associations", "use ssd")
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


@rule("DRA-07")
def chunk_size(*, imported_file_chunk_size_mib: int | None) -> Iterator[Violation]:
    """A chunk of an imported file is 1 MiB to 500 GiB."""
    if imported_file_chunk_size_mib is not None and not 1 <= imported_file_chunk_size_mib <= 512000:
        text = f"{imported_file_chunk_size_mib} MiB is not between 1 and 512000"
        yield Violation("imported_file_chunk_size_mib", text, "leave it out to get 1024")


@rule("FMB-59")
def exported_deletions(*, auto_export: Sequence[DataRepositoryEvent], bucket_versioned: bool) -> Iterator[Violation]:
    """A deletion that is exported is for good in a bucket without versions."""
    if DataRepositoryEvent.DELETED in auto_export and not bucket_versioned:
        text = "deleted removes the object of every removed file, and the bucket is not known to keep versions"
        hint = "leave deleted out, or switch versioning on and write bucket_versioned: true"
        yield Violation("auto_export", text, hint)


@rule("FMB-77")
def about_a_named_bucket(
    *, bucket: str | None, given: Collection[str], bucket_region: str | None
) -> Iterator[Violation]:
    """What is said about a bucket is about one that is named; a Region is one."""
    for key in ("bucket_region", "bucket_versioned") if bucket is None else ():
        if key in given:
            text = "is about a bucket that is there, and the association gets one of its own"
            yield Violation(key, text, "name the bucket, or leave the key out")
    if bucket_region is not None and bucket_region not in REGIONS:
        yield Violation("bucket_region", f"{bucket_region} is not an AWS region", "check the spelling")


@rule("FMB-60")
def same_region(
    *, auto_import: Sequence[DataRepositoryEvent], bucket_region: str | None, region: str | None
) -> Iterator[Violation]:
    """S3 tells FSx of new objects within one Region only; exports go anywhere."""
    if auto_import and bucket_region and region and bucket_region != region:
        text = f"the bucket is in {bucket_region} and the file system in {region}: only auto_export crosses Regions"
        yield Violation("auto_import", text, f"leave auto_import out, or replicate the bucket to {region}")


ASSOCIATIONS = ("DRA-01", "DRA-02", "DRA-03", "DRA-04", "DRA-11", "FMB-08", "FMB-13", "FMB-61")
ASSOCIATION = ("DRA-06", "DRA-07", "FMB-59", "FMB-60")
ASSOCIATION_CONSTRUCT = ("DRA-01", "DRA-03", "DRA-04", *ASSOCIATION)
# What only a project file can say.
ASSOCIATION_PROJECT = (*ASSOCIATION, "FMB-77")
RULES = (*LUSTRE, "HP-14", *ASSOCIATIONS)
# Of an existing file system nobody knows the type.
RULES_OF_EXISTING = ("HP-14", "DRA-01", "DRA-03", "DRA-04", "FMB-08", "FMB-13", "FMB-61")


@rule("FMB-133")
def model_store(*, model_store: ModelStore | None, lustre_given: bool) -> Iterator[Violation]:
    """A store that Lustre shows needs a file system."""
    if model_store is not None and model_store.lustre_path is not None and not lustre_given:
        text = f"{model_store.lustre_path}, and the project has no Lustre file system"
        yield Violation("model_store.lustre_path", text, "write storage: {lustre: …}, or leave it out")


@rule("FMB-110")
def accounting_fits(*, accounting_database: AccountingDatabase | None, zones: Sequence[str]) -> Iterator[Violation]:
    """A database for accounting has two zones, and a capacity that Aurora takes."""
    if accounting_database is None:
        return
    key, least, most = "accounting_database", accounting_database.min_capacity_acu, accounting_database.max_capacity_acu
    if len(set(zones)) < 2:
        text = f"stands in {', '.join(zones)}, and Aurora asks for subnets of two zones"
        yield Violation(key, text, "add a zone to network.availability_zones")
    for name, value in (("min_capacity_acu", least), ("max_capacity_acu", most)):
        if not 0.5 <= value <= 256 or value * 2 != int(value * 2):
            text = f"{value:g} is not 0.5 to 256 in steps of 0.5"
            yield Violation(f"{key}.{name}", text, "write 0.5 or more")
    if least > most:
        yield Violation(f"{key}.max_capacity_acu", f"{most:g} is below min_capacity_acu, {least:g}", "raise it")
    if not 1 <= (days := accounting_database.backup_retention_days) <= 35:
        yield Violation(f"{key}.backup_retention_days", f"{days} is not between 1 and 35", "write 7")
    if not re.fullmatch(r"[0-9]\.[0-9]\.mysql_aurora\.[0-9]+\.[0-9]+\.[0-9]+", accounting_database.engine_version):
        text = f"{accounting_database.engine_version} is no version of Aurora MySQL"
        yield Violation(f"{key}.engine_version", text, "it looks like 8.0.mysql_aurora.3.10.4")


@rule("FMB-111")
def accounting_zone(
    *, accounting_database: AccountingDatabase | None, availability_zones: Sequence[str], primary: str
) -> Iterator[Violation]:
    """Beside the primary zone the database stands in one other, which stays whatever zones join."""
    others = [zone for zone in availability_zones if zone != primary]
    if accounting_database is None:
        return
    key, given = "accounting_database.availability_zone", accounting_database.availability_zone
    if given is None and len(others) > 1:
        text = f"is not given, and there are {', '.join(others)}: a zone that joins must not move the database"
        yield Violation(key, text, f"write {others[0]}, or another")
    if given is not None and given not in others:
        text = f"{given} is no zone of the network beside the primary one, {primary}"
        yield Violation(key, text, f"take {' or '.join(others)}" if others else "add a zone")


ACCOUNTING = ("FMB-110",)
ACCOUNTING_PROJECT = ("FMB-110", "FMB-111")
