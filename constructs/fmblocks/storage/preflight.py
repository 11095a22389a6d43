"""What only the account knows about storage."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from fmblocks.preflight import Account, Outcome, Question, Result
from fmblocks.storage.lustre_ports import LUSTRE_PORTS
from fmblocks.storage.settings import DataRepositoryAssociation, DataRepositoryEvent, ExistingLustre, Lustre

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef


def questions(
    lustre: Lustre,
    *,
    foundation: str,
    region: str,
    vpc_id: str | None,
    node_group_id: str | None,
    node_cidr: str | None,
    account: Account,
) -> Iterator[Question]:
    """The questions about a project's Lustre file system.

    Args:
        lustre: its settings.
        foundation: whose parameters name a deployed one.
        region: where it stands.
        vpc_id: the existing VPC, where one is named.
        node_group_id: the existing group of the nodes; None where the project makes one, which it lets in itself.
        node_cidr: addresses of the nodes in the existing VPC.
        account: clients.
    """
    where = "storage.lustre"
    if (existing := lustre.existing) is not None:
        yield Question(
            "FMB-73",
            f"{where}.existing",
            "is there, and lets the nodes in",
            lambda: _existing(existing, vpc_id, node_group_id, node_cidr, account),
        )
    else:
        yield Question(
            "FMB-51", f"{where}.capacity_gib", "does not shrink", lambda: _growth(lustre, foundation, account)
        )
    for index, link in enumerate(lustre.data_repository_associations):
        if link.bucket is not None:
            key = f"{where}.data_repository_associations[{index}]"
            yield from _of_bucket(link, link.bucket, key, region, account)


def _growth(lustre: Lustre, foundation: str, account: Account) -> Iterator[Result]:
    name = f"/fmblocks/{foundation}/lustre/file-system-id"
    found = account.ssm.get_parameters(Names=[name])["Parameters"]
    if not found:
        return  # nothing is deployed yet
    id = found[0]["Value"]
    (system,) = account.fsx.describe_file_systems(FileSystemIds=[id])["FileSystems"]
    deployed, wanted = system.get("StorageCapacity"), lustre.capacity_gib
    if deployed is not None and wanted is not None and wanted < deployed:
        text = f"{id} has {deployed} GiB, and storage can only grow: {deployed} → {wanted}"
        yield Result("FMB-51", Outcome.FAIL, "storage.lustre.capacity_gib", text, f"write {deployed} or more")


def _existing(
    existing: ExistingLustre, vpc_id: str | None, group: str | None, cidr: str | None, account: Account
) -> Iterator[Result]:
    def fail(key: str, text: str, hint: str) -> Result:
        return Result("FMB-73", Outcome.FAIL, f"storage.lustre.existing.{key}", text, hint)

    id = existing.file_system_id
    try:
        (system,) = account.fsx.describe_file_systems(FileSystemIds=[id])["FileSystems"]
    except ClientError as error:
        if error.response["Error"].get("Code") != "FileSystemNotFound":
            raise
        yield fail("file_system_id", f"{id} is not there", "check account, region and id")
        return
    if (lifecycle := system.get("Lifecycle")) != "AVAILABLE":
        yield fail("file_system_id", f"{id} is {lifecycle}", "wait until it is AVAILABLE")
    if vpc_id is not None and system.get("VpcId") != vpc_id:
        yield fail("file_system_id", f"{id} is in {system.get('VpcId')}, not in {vpc_id}", "name one of network.vpc")
    told = system.get("LustreConfiguration", {}).get("MountName")
    if told != existing.mount_name:
        yield fail("mount_name", f"{id} is mounted as {told}, not {existing.mount_name}", "write what FSx shows")
    if group is None:
        return  # the project's own group is let in by a rule that it makes
    interfaces = system.get("NetworkInterfaceIds", [])
    listed = account.ec2.describe_network_interfaces(NetworkInterfaceIds=interfaces)["NetworkInterfaces"]
    groups = sorted({one["GroupId"] for interface in listed for one in interface.get("Groups", []) if "GroupId" in one})
    rules = [
        rule
        for one in account.ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]
        for rule in one["IpPermissions"]
    ]
    missing = [ports for ports in LUSTRE_PORTS if not any(_lets(rule, ports, group, cidr) for rule in rules)]
    if missing:
        ports = " and ".join(str(first) if first == last else f"{first}-{last}" for first, last in missing)
        text = f"the groups of {id}, {', '.join(groups)}, do not let {group} in on TCP {ports}"
        yield fail("security_group_id", text, f"add inbound rules from {group}, or leave efa_security_group_id out")


def _lets(rule: IpPermissionOutputTypeDef, ports: tuple[int, int], group: str, cidr: str | None) -> bool:
    if rule.get("IpProtocol") not in ("-1", "tcp"):
        return False
    if rule.get("IpProtocol") == "tcp" and not rule.get("FromPort", 0) <= ports[0] <= ports[1] <= rule.get("ToPort", 0):
        return False
    if any(pair.get("GroupId") == group for pair in rule.get("UserIdGroupPairs", [])):
        return True
    return cidr is not None and any(
        ipaddress.ip_network(cidr).subnet_of(ipaddress.IPv4Network(one["CidrIp"]))  # type: ignore[arg-type]
        for one in rule.get("IpRanges", [])
        if "CidrIp" in one
    )


def _of_bucket(
    link: DataRepositoryAssociation, bucket: str, key: str, region: str, account: Account
) -> Iterator[Question]:
    yield Question("FMB-74", f"{key}.bucket", "can be read", lambda: _access(bucket, f"{key}.bucket", account))
    yield Question(
        "DRA-05", f"{key}.bucket", "is in the Region", lambda: _region(link, bucket, f"{key}.bucket", region, account)
    )
    if DataRepositoryEvent.DELETED in link.auto_export:
        yield Question(
            "FMB-59", f"{key}.auto_export", "the bucket keeps versions", lambda: _versions(bucket, key, account)
        )


_DENIED = ("403", "AccessDenied", "Forbidden")
_MISSING = ("404", "NoSuchBucket", "NotFound")


def _access(bucket: str, key: str, account: Account) -> Iterator[Result]:
    try:
        account.s3.head_bucket(Bucket=bucket)
    except ClientError as error:
        code = error.response["Error"].get("Code")
        if code in _MISSING:
            yield Result("FMB-74", Outcome.FAIL, key, f"{bucket} is missing (404)", "make it, or check the name")
        elif code in _DENIED:
            text = f"{bucket} is denied (403): its policy, or another account"
            yield Result("FMB-74", Outcome.FAIL, key, text, "let the account of the file system in: docs/day-2.md")
        else:
            raise
        return
    if account.s3.get_bucket_request_payment(Bucket=bucket).get("Payer") == "Requester":
        text = f"{bucket} is requester pays, which FSx does not support"
        yield Result("FMB-74", Outcome.FAIL, key, text, "copy the data into a bucket of your own")


def _region(link: DataRepositoryAssociation, bucket: str, key: str, region: str, account: Account) -> Iterator[Result]:
    told: str | None = account.s3.get_bucket_location(Bucket=bucket).get("LocationConstraint")
    there = {None: "us-east-1", "": "us-east-1", "EU": "eu-west-1"}.get(told, told)
    if there == region:
        return
    text = f"{bucket} is in {there}, and the file system in {region}"
    if link.auto_import:
        hint = f"leave auto_import out, or replicate the bucket to {region}"
        yield Result("DRA-05", Outcome.FAIL, key, f"{text}: auto_import needs one Region", hint)
    else:
        yield Result("DRA-05", Outcome.WARN, key, f"{text}: every byte pays for the way", "use a bucket of the Region")


def _versions(bucket: str, key: str, account: Account) -> Iterator[Result]:
    if account.s3.get_bucket_versioning(Bucket=bucket).get("Status") != "Enabled":
        text = f"{bucket} keeps no versions, and deleted removes the object of every removed file for good"
        yield Result("FMB-59", Outcome.WARN, f"{key}.auto_export", text, "switch versioning on, or leave deleted out")
