"""Templates that CloudFormation takes and AWS refuses, each with its right neighbour and the project that asks for it.

A tool catches a mistake when it says something about the wrong template that it does not say about the right one.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Resources = dict[str, tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class Case:
    """One mistake.

    Attributes:
        rule: the id of the rule book.
        title: what is wrong.
        right: resources that AWS takes.
        wrong: the same with the mistake.
        project: a project that asks for the mistake; None where the constructs make it impossible.
    """

    rule: str
    title: str
    right: Resources
    wrong: Resources
    project: str | None


HEAD = """\
name: my-project
account: "111122223333"
region: us-west-2
network: {availability_zones: [usw2-az1, usw2-az2], primary_availability_zone: usw2-az2}
"""
SUBNET, GROUP, AMI = "subnet-0123456789abcdef0", "sg-0123456789abcdef0", "ami-0123456789abcdef0"
RESERVATION = "cr-0123456789abcdef0"


def _changed(properties: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """A deep copy with some properties replaced; None removes one."""
    found = copy.deepcopy({**properties, **changes})
    return {key: value for key, value in found.items() if value is not None}


def _pair(kind: str, right: Mapping[str, Any], wrong: Mapping[str, Any]) -> tuple[Resources, Resources]:
    return {"R": (kind, dict(right))}, {"R": (kind, dict(wrong))}


def _lustre(rule: str, title: str, project: str | None, right: Mapping[str, Any], wrong: Mapping[str, Any]) -> Case:
    """A file system; keys of LustreConfiguration and of the file system are told apart by where FSx has them."""
    outer = {"StorageCapacity", "StorageType", "FileSystemTypeVersion", "KmsKeyId", "SubnetIds"}

    def system(keys: Mapping[str, Any]) -> dict[str, Any]:
        given = _changed(LUSTRE, **keys)
        inner = {key: given.pop(key) for key in list(given) if key not in outer | {"FileSystemType"}}
        return {**given, "LustreConfiguration": inner}

    where = f"{HEAD}storage: {{lustre: {{{project}}}}}\n" if project else None
    return Case(rule, title, *_pair("AWS::FSx::FileSystem", system(right), system(wrong)), where)


LUSTRE: dict[str, Any] = {
    "FileSystemType": "LUSTRE",
    "FileSystemTypeVersion": "2.15",
    "StorageType": "SSD",
    "StorageCapacity": 4800,
    "SubnetIds": [SUBNET],
    "DeploymentType": "PERSISTENT_2",
    "PerUnitStorageThroughput": 250,
    "MetadataConfiguration": {"Mode": "AUTOMATIC"},
}
P2 = "deployment_type: persistent_2, capacity_gib: 4800, throughput_mbps_per_tib: 250"
TIERING: dict[str, Any] = {
    "StorageType": "INTELLIGENT_TIERING",
    "StorageCapacity": None,
    "PerUnitStorageThroughput": None,
    "ThroughputCapacity": 4000,
    "DataReadCacheConfiguration": {"SizingMode": "NO_CACHE"},
    "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
}
P_TIERING = (
    "storage_type: intelligent_tiering, throughput_capacity_mbps: 4000, read_cache: {sizing_mode: no_cache}, "
    "metadata: {mode: user_provisioned, iops: 6000}"
)


def _interface(card: int, device: int, kind: str, **more: Any) -> dict[str, Any]:
    place = {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind}
    return {**place, "Groups": [GROUP], "DeleteOnTermination": True, **more}


def _template(
    rule: str, title: str, project: str | None, right: Mapping[str, Any], wrong: Mapping[str, Any], head: str = HEAD
) -> Case:
    """A launch template."""
    data = {"ImageId": AMI, "InstanceType": "p5.48xlarge"}
    kind = "AWS::EC2::LaunchTemplate"
    pair = _pair(kind, {"LaunchTemplateData": _changed(data, **right)}, {"LaunchTemplateData": _changed(data, **wrong)})
    where = f"{head}training: {{orchestrator: ec2, node_groups: [{{name: gpu, count: 2, {project}}}]}}\n"
    return Case(rule, title, *pair, where if project else None)


def _wired(
    rule: str,
    title: str,
    wrong: list[dict[str, Any]],
    *,
    instance_type: str = "p5.48xlarge",
    right: list[dict[str, Any]] | None = None,
) -> Case:
    """A launch template and a project with the same interfaces."""
    keys = {
        "NetworkCardIndex": "network_card_index",
        "DeviceIndex": "device_index",
        "InterfaceType": "interface_type",
        "AssociatePublicIpAddress": "associate_public_ip_address",
        "Ipv4PrefixCount": "ipv4_prefix_count",
    }
    listed = ", ".join(
        "{" + ", ".join(f"{keys[key]}: {str(value).lower()}" for key, value in one.items() if key in keys) + "}"
        for one in wrong
    )
    return _template(
        rule,
        title,
        f"instance_type: {instance_type}, network_interfaces: [{listed}]",
        {"InstanceType": instance_type, "NetworkInterfaces": right or [PRIMARY, _interface(1, 0, "efa-only")]},
        {"InstanceType": instance_type, "NetworkInterfaces": wrong},
    )


PRIMARY = _interface(0, 0, "interface")
BLOCK: dict[str, Any] = {
    "InstanceMarketOptions": {"MarketType": "capacity-block"},
    "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}},
}
ODCR: dict[str, Any] = {
    "InstanceType": "p5.48xlarge",
    "InstancePlatform": "Linux/UNIX",
    "AvailabilityZone": "us-west-2a",
    "InstanceCount": 16,
    "InstanceMatchCriteria": "targeted",
    "EndDateType": "unlimited",
}


def _reservation(rule: str, title: str, project: str | None, **wrong: Any) -> Case:
    where = (
        f"{HEAD}training: {{orchestrator: ec2, node_groups: [{{name: gpu, instance_type: p5.48xlarge, {project}}}]}}\n"
    )
    pair = _pair("AWS::EC2::CapacityReservation", ODCR, _changed(ODCR, **wrong))
    return Case(rule, title, *pair, where if project else None)


def _placed(rule: str, title: str, project: str, wrong: Mapping[str, Any], right: Mapping[str, Any]) -> Case:
    where = (
        f"{HEAD}training: {{orchestrator: ec2, "
        f"node_groups: [{{name: gpu, instance_type: g6e.48xlarge, count: 2, {project}}}]}}\n"
    )
    return Case(rule, title, *_pair("AWS::EC2::PlacementGroup", right, wrong), where)


CONTROLLER = "{name: controller, role: controller, instance_type: m7i.xlarge, count: 1}"
NODES: dict[str, Any] = {
    "InstanceGroupName": "gpu",
    "InstanceType": "ml.p5.48xlarge",
    "InstanceCount": 2,
    "ExecutionRole": "arn:aws:iam::111122223333:role/nodes",
    "LifeCycleConfig": {"SourceS3Uri": "s3://sagemaker-scripts/a", "OnCreate": "on_create.sh"},
}


def _hyperpod(
    rule: str,
    title: str,
    project: str | None,
    right: Mapping[str, Any] | None = None,
    cluster: Mapping[str, Any] | None = None,
    **wrong: Any,
) -> Case:
    more = dict(cluster or {})
    pair = _pair(
        "AWS::SageMaker::Cluster",
        {"InstanceGroups": [_changed(NODES, **(right or {}))], **more},
        {"InstanceGroups": [_changed(NODES, **(right or {}), **wrong)], **more},
    )
    where = f"{HEAD}training: {{node_groups: [{CONTROLLER}, {{{project}}}]}}\n" if project else None
    return Case(rule, title, *pair, where)


LINK: dict[str, Any] = {
    "FileSystemId": "fs-0123456789abcdef0",
    "FileSystemPath": "/data",
    "DataRepositoryPath": "s3://my-data",
}


def _link(rule: str, title: str, project: str, **wrong: Any) -> Case:
    pair = _pair("AWS::FSx::DataRepositoryAssociation", LINK, _changed(LINK, **wrong))
    where = f"{HEAD}storage: {{lustre: {{{P2}, data_repository_associations: [{{bucket: my-data, {project}}}]}}}}\n"
    return Case(rule, title, *pair, where)


GRAFANA: dict[str, Any] = {
    "AccountAccessType": "CURRENT_ACCOUNT",
    "AuthenticationProviders": ["AWS_SSO"],
    "PermissionType": "CUSTOMER_MANAGED",
    "RoleArn": "arn:aws:iam::111122223333:role/grafana",
}


def _grafana(rule: str, title: str, project: str, right: Mapping[str, Any] | None = None, **wrong: Any) -> Case:
    first = _changed(GRAFANA, **(right or {}))
    pair = _pair("AWS::Grafana::Workspace", first, _changed(first, **wrong))
    return Case(rule, title, *pair, f"{HEAD}observability: {{grafana: {{{project}}}}}\n")


CASES: list[Case] = [
    _lustre("FSX-01", "two subnets for Lustre", f"{P2}, subnets: [a, b]", {}, {"SubnetIds": [SUBNET, SUBNET[:-1] + "1"]}),
    _lustre("FSX-02", "5000 GiB", P2.replace("4800", "5000"), {}, {"StorageCapacity": 5000}),
    _lustre("FSX-03", "300 MB/s per TiB", P2.replace("250", "300"), {}, {"PerUnitStorageThroughput": 300}),
    _lustre(
        "FSX-03",
        "persistent_2 without a throughput",
        "deployment_type: persistent_2, capacity_gib: 4800",
        {},
        {"PerUnitStorageThroughput": None},
    ),
    _lustre("FSX-04", "ImportPath on persistent_2", f"{P2}, import_path: s3://my-data", {}, {"ImportPath": "s3://my-data"}),
    _lustre("FSX-05", "metadata on Lustre 2.12", f"{P2}, version: '2.12'", {}, {"FileSystemTypeVersion": "2.12"}),
    _lustre(
        "FSX-07",
        "hard disks without a drive cache",
        "deployment_type: persistent_1, storage_type: hdd, capacity_gib: 6000, throughput_mbps_per_tib: 12",
        (disks := {"DeploymentType": "PERSISTENT_1", "StorageType": "HDD", "StorageCapacity": 6000,
                   "PerUnitStorageThroughput": 12, "DriveCacheType": "NONE", "MetadataConfiguration": None}),
        {**disks, "DriveCacheType": None},
    ),
    _lustre(
        "FSX-08", "Intelligent-Tiering with a capacity", f"{P_TIERING}, capacity_gib: 4800", TIERING,
        {**TIERING, "StorageCapacity": 4800},
    ),
    _lustre(
        "FSX-09", "Intelligent-Tiering at 6000 MB/s", P_TIERING.replace("4000", "6000"), TIERING,
        {**TIERING, "ThroughputCapacity": 6000},
    ),
    _lustre(
        "FSX-11", "metadata IOPS with automatic", f"{P2}, metadata: {{iops: 6000}}", {},
        {"MetadataConfiguration": {"Mode": "AUTOMATIC", "Iops": 6000}},
    ),
    _lustre("FSX-13", "EFA on 4800 GiB at 250 MB/s per TiB", f"{P2}, efa_enabled: true",
            {"StorageCapacity": 19200, "EfaEnabled": True}, {"EfaEnabled": True}),
    _lustre("FSX-20", "backups of scratch",
            "deployment_type: scratch_2, capacity_gib: 4800, automatic_backup_retention_days: 7",
            (scratch := {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": None, "MetadataConfiguration": None}),
            {**scratch, "AutomaticBackupRetentionDays": 7}),
    _lustre("FSX-30", "maintenance on day 8", f"{P2}, weekly_maintenance_start_time: '8:05:00'",
            {"WeeklyMaintenanceStartTime": "7:05:00"}, {"WeeklyMaintenanceStartTime": "8:05:00"}),
    _link("DRA-03", "a relative path", "path: data", FileSystemPath="data"),
    _link("DRA-07", "chunks of 600000 MiB", "path: /data, imported_file_chunk_size_mib: 600000",
          ImportedFileChunkSize=600000),
    _wired("EFA-03", "two EFA interfaces on one card", [PRIMARY, _interface(1, 0, "efa-only"), _interface(1, 1, "efa-only")]),
    _wired("EFA-04", "two interfaces in one place", [PRIMARY, _interface(1, 0, "efa"), _interface(1, 0, "interface")]),
    _wired("EFA-04", "a card that the type does not have", [PRIMARY, _interface(32, 0, "efa-only")]),
    _wired("EFA-05", "efa-only as the primary interface", [_interface(0, 0, "efa-only"), _interface(1, 0, "efa-only")]),
    _wired("EFA-06", "EFA on card 0 of p6-b300", [PRIMARY, _interface(0, 1, "efa-only")], instance_type="p6-b300.48xlarge"),
    _wired("EFA-07", "addresses on efa-only", [PRIMARY, _interface(1, 0, "efa-only", Ipv4PrefixCount=1)]),
    _wired("EFA-08", "a public address with two interfaces",
           [{**PRIMARY, "AssociatePublicIpAddress": True}, _interface(1, 0, "efa-only")]),
    _placed("PG-02", "a spread level on a cluster group", "placement: {mode: cluster, spread_level: rack}",
            {"Strategy": "cluster", "SpreadLevel": "rack"}, {"Strategy": "cluster"}),
    _placed("PG-03", "partitions in a cluster group", "placement: {mode: cluster, partition_count: 3}",
            {"Strategy": "cluster", "PartitionCount": 3}, {"Strategy": "cluster"}),
    _placed("PG-03", "8 partitions", "placement: {mode: partition, partition_count: 8}",
            {"Strategy": "partition", "PartitionCount": 8}, {"Strategy": "partition", "PartitionCount": 7}),
    _template("X-01", "a placement group with a Capacity Block",
              f"instance_type: p5.48xlarge, placement: {{mode: cluster, group_name: g}}, "
              f"capacity: {{mode: capacity_block, capacity_reservation_id: {RESERVATION}}}",
              BLOCK, {**BLOCK, "Placement": {"GroupName": "g"}}),
    _template("CB-06", "a Capacity Block that is not named",
              "instance_type: p5.48xlarge, capacity: {mode: capacity_block}",
              BLOCK, {"InstanceMarketOptions": BLOCK["InstanceMarketOptions"]}),
    _template("CR-13", "a reservation and a group of them",
              f"instance_type: p5.48xlarge, capacity: {{mode: odcr, capacity_reservation_id: {RESERVATION}, "
              "resource_group_arn: 'arn:aws:resource-groups:us-west-2:111122223333:group/g'}",
              {"CapacityReservationSpecification": BLOCK["CapacityReservationSpecification"]},
              {"CapacityReservationSpecification": {"CapacityReservationTarget": {
                  "CapacityReservationId": RESERVATION,
                  "CapacityReservationResourceGroupArn": "arn:aws:resource-groups:us-west-2:111122223333:group/g"}}}),
    _reservation("CR-01", "an end date of an unlimited reservation",
                 "count: 16, capacity: {mode: odcr, create: {end: 2027-04-01T00:00:00Z, end_date_type: unlimited}}",
                 EndDate="2027-04-01T00:00:00Z"),
    _reservation("CR-03", "4000 instances", "count: 4000, capacity: {mode: odcr, create: {}}", InstanceCount=4000),
    _reservation("CR-05", "tenancy host", "count: 2, capacity: {mode: odcr, create: {tenancy: host}}", Tenancy="host"),
    _hyperpod("HP-01", "an underscore in a group's name", "name: my_gpu, instance_type: p5.48xlarge, count: 2",
              InstanceGroupName="my_gpu"),
    _hyperpod("HP-02", "7000 nodes", "name: gpu, instance_type: p5.48xlarge, count: 7000", InstanceCount=7000),
    _hyperpod("HP-03", "a type that HyperPod does not take", "name: gpu, instance_type: trn2u.48xlarge, count: 2",
              InstanceType="ml.trn2u.48xlarge"),
    _hyperpod("HP-05", "a least count above the count",
              "name: gpu, instance_type: p5.48xlarge, count: 2, min_count: 3",
              cluster={"NodeProvisioningMode": "Continuous"}, MinInstanceCount=3),
    _hyperpod("HP-07", "scripts in a bucket that nodes may not read", None,
              LifeCycleConfig={"SourceS3Uri": "s3://scripts/a", "OnCreate": "on_create.sh"}),
    _hyperpod("HP-16", "deep health checks on a CPU type",
              "name: gpu, instance_type: m7i.xlarge, count: 2, deep_health_checks: [instance_stress]",
              right={"InstanceType": "ml.m5.xlarge"}, OnStartDeepHealthChecks=["InstanceStress"]),
    _grafana("AMG-01", "nobody can log in", "authentication: []", AuthenticationProviders=[]),
    _grafana("AMG-03", "an organization without units", "account_access_type: organization",
             AccountAccessType="ORGANIZATION"),
    _grafana("AMG-06", "one subnet", "vpc: true",
             right={"VpcConfiguration": {"SubnetIds": [SUBNET, SUBNET[:-1] + "1"], "SecurityGroupIds": [GROUP]}},
             VpcConfiguration={"SubnetIds": [SUBNET], "SecurityGroupIds": [GROUP]}),
]  # fmt: skip

# The workspace of AMG-06 stands in the subnets of the project's zones, so its mistake is one zone.
CASES[-1] = dataclasses.replace(
    CASES[-1],
    project=(CASES[-1].project or "").replace(
        "[usw2-az1, usw2-az2], primary_availability_zone: usw2-az2", "[usw2-az2]"
    ),
)


@dataclass(frozen=True)
class Alarm:
    """A right template that a tool complains about: what it says beyond the template without the point."""

    title: str
    plain: Resources
    right: Resources


ALARMS = [
    Alarm(
        "a reservation in a placement group, named by its ARN (CR-18)",
        *_pair(
            "AWS::EC2::CapacityReservation",
            ODCR,
            {**ODCR, "PlacementGroupArn": "arn:aws:ec2:us-west-2:111122223333:placement-group/pg-a"},
        ),
    ),
    Alarm(
        "nodes of ml.m7i.xlarge on HyperPod in us-west-2 (REG-01)",
        *_pair(
            "AWS::SageMaker::Cluster",
            {"InstanceGroups": [{**NODES, "InstanceType": "ml.m5.xlarge"}]},
            {"InstanceGroups": [{**NODES, "InstanceType": "ml.m7i.xlarge"}]},
        ),
    ),
]
