"""Failures that people have had with other tools: what is said about each, and that its nearest neighbour passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fmblocks.findings import FindingsError
from fmblocks.project import Project

HEAD = """\
name: my-project
account: "111122223333"
region: us-west-2
"""
ONE_ZONE = HEAD + "network: {availability_zones: [usw2-az2]}\n"
TWO_ZONES = HEAD + "network: {availability_zones: [usw2-az1, usw2-az2], primary_availability_zone: usw2-az2}\n"
P2 = "deployment_type: PERSISTENT_2, capacity_gib: 2400, throughput_mbps_per_tib: 125"
CR = "cr-0123456789abcdef0"


def ec2(group: str, head: str = ONE_ZONE) -> str:
    """A project of one node group on EC2."""
    count = "" if "count:" in group.split("efa:")[0] else "count: 2, "
    return f"{head}training: {{orchestrator: ec2, node_groups: [{{name: gpu, {count}{group}}}]}}\n"


def slurm(*groups: str) -> str:
    """A project with these groups on HyperPod with Slurm."""
    return f"{ONE_ZONE}training: {{node_groups: [{', '.join(f'{{{group}}}' for group in groups)}]}}\n"


CONTROLLER = "name: controller, role: controller, instance_type: m7i.xlarge, count: 1"
GPU = "name: gpu, instance_type: p5.48xlarge, count: 2"


def lustre(keys: str, links: str = "") -> str:
    """A project with a file system."""
    more = f", data_repository_associations: [{links}]" if links else ""
    return f"{ONE_ZONE}storage: {{lustre: {{{keys}{more}}}}}\n"


def watched(keys: str, head: str = ONE_ZONE) -> str:
    """A project with these keys of observability."""
    return f"{head}observability: {{{keys}}}\n"


# what people did, what is wrong, what is said, and the nearest project that is right
CASES: list[tuple[str, str, list[str], str]] = [
    (
        "efa-only on the primary interface",
        ec2("instance_type: p5.48xlarge, network_interfaces: [{device_index: 0, interface_type: efa-only}]"),
        ["[EFA-05]", "node_groups[0].network_interfaces[0]", "network card 0"],
        ec2("instance_type: p5.48xlarge, efa: {interface_type: efa-only}"),
    ),
    (
        "32 EFA interfaces asked for on p4d",
        ec2("instance_type: p4d.24xlarge, efa: {count: 32}"),
        ["efa.count", "p4d.24xlarge supports at most 4"],
        ec2("instance_type: p4d.24xlarge, efa: {count: 4}"),
    ),
    (
        "a subnet runs out of addresses with 32 interfaces that bear one",
        ec2(
            "instance_type: p5.48xlarge, count: 16, efa: {interface_type: efa}",
            ONE_ZONE.replace("]}", "], subnets: {usw2-az2: {private: 10.20.1.0/24, public: 10.20.250.0/24}}}"),
        ),
        ["[NET-02]", "512 addresses (gpu 512) do not fit the 251"],
        ec2(
            "instance_type: p5.48xlarge, count: 16",
            ONE_ZONE.replace("]}", "], subnets: {usw2-az2: {private: 10.20.1.0/24, public: 10.20.250.0/24}}}"),
        ),
    ),
    (
        "a public IP asked for with several interfaces",
        ec2("instance_type: p5.48xlarge, subnet: public, associate_public_ip: true"),
        ["[EFA-08] training.node_groups[0].associate_public_ip", "get no public address", "[NET-05]", "subnet"],
        ec2("instance_type: p5.48xlarge"),
    ),
    (
        "EFA switched on for a type that lacks it",
        ec2("instance_type: g6e.4xlarge, efa: {count: 1}"),
        ["[EFA-01]", "EFA is not available on g6e.4xlarge", "write efa: auto"],
        ec2("instance_type: g5.8xlarge, efa: {count: 1}"),
    ),
    (
        "EFA that has to be there",
        ec2("instance_type: g6e.4xlarge, efa: true"),
        ["[EFA-01] training.node_groups[0].efa", "EFA is not available on g6e.4xlarge", "efa: auto"],
        ec2("instance_type: g6e.4xlarge, efa: auto"),
    ),
    (
        "a placement group together with a Capacity Block",
        ec2(
            f"instance_type: p5.48xlarge, placement: cluster, "
            f"capacity: {{mode: capacity_block, capacity_reservation_id: {CR}}}"
        ),
        ["[X-01]", "placement.mode", "co-located already"],
        ec2(
            f"instance_type: p5.48xlarge, placement: auto, "
            f"capacity: {{mode: capacity_block, capacity_reservation_id: {CR}}}"
        ),
    ),
    (
        "a cluster placement group over several zones",
        ec2("instance_type: p4d.24xlarge, placement: cluster, azs: [us-west-2a, us-west-2b]"),
        ["[X-04]", "node_groups[0].azs", "network.primary_availability_zone"],
        ec2("instance_type: p4d.24xlarge, placement: cluster"),
    ),
    (
        "a word for a placement group that exists",
        ec2("instance_type: p5.48xlarge, placement: my-existing-pg"),
        ["[PG-01]", "my-existing-pg is not one of auto, none, cluster, partition, spread", "group_name"],
        ec2("instance_type: p5.48xlarge, placement: {mode: cluster, group_name: my-existing-pg}"),
    ),
    (
        "a spread group of more than seven",
        ec2("instance_type: g6e.48xlarge, count: 8, placement: spread"),
        ["[PG-04] training.node_groups[0].count", "7 running instances"],
        ec2("instance_type: g6e.48xlarge, count: 7, placement: spread"),
    ),
    (
        "a Capacity Block without its id",
        ec2("instance_type: p5.48xlarge, capacity: {mode: capacity_block}"),
        ["[CB-06]", "capacity.capacity_reservation_id: is required with mode capacity_block"],
        ec2(f"instance_type: p5.48xlarge, capacity: {{mode: capacity_block, capacity_reservation_id: {CR}}}"),
    ),
    (
        "a zone id of another Region",
        ONE_ZONE.replace("us-west-2", "us-east-1"),
        ["[FMB-01]", "network.availability_zones: usw2-az2 is not a zone of region us-east-1"],
        ONE_ZONE,
    ),
    (
        "several Capacity Blocks in one group",
        ec2("instance_type: p5.48xlarge, capacity: {mode: capacity_block, reservation_ids: [cr-0a, cr-0b]}"),
        ["capacity.reservation_ids", "a group takes one reservation: make a group for each"],
        ec2(f"instance_type: p5.48xlarge, capacity: {{mode: capacity_block, capacity_reservation_id: {CR}}}"),
    ),
    (
        "a future-dated reservation through CloudFormation",
        ec2(
            "instance_type: p5.48xlarge, "
            "capacity: {mode: odcr, create: {count: 16, start: 2026-06-01, commitment_days: 14}}"
        ),
        ["[CR-10]", "capacity.create.start", "CloudFormation cannot create future-dated", "capacity_reservation_id"],
        ec2("instance_type: p5.48xlarge, capacity: {mode: odcr, create: {end: 2027-06-01T00:00:00Z}}"),
    ),
    (
        "a reservation of an unknown tenancy and kind",
        ec2("instance_type: p5.48xlarge, capacity: {mode: odcr, create: {tenancy: host, match: any}}"),
        ["[CR-05]", "[CR-04]", "create.match: any is not one of open, targeted"],
        ec2("instance_type: p5.48xlarge, capacity: {mode: odcr, create: {tenancy: dedicated, match: OPEN}}"),
    ),
    (
        "a storage size that Lustre does not sell",
        lustre("deployment_type: scratch_2, capacity_gib: 3600"),
        ["[FSX-02]", "storage.lustre.capacity_gib: 3600", "nearest: 2400 and 4800"],
        lustre("deployment_type: scratch_2, capacity_gib: 4800"),
    ),
    (
        "a throughput of the wrong generation",
        lustre("deployment_type: persistent_1, capacity_gib: 2400, throughput_mbps_per_tib: 250"),
        ["[FSX-03]", "throughput_mbps_per_tib: 250 is not sold for persistent_1 ssd; take one of 50, 100, 200"],
        lustre("deployment_type: persistent_1, capacity_gib: 2400, throughput_mbps_per_tib: 200"),
    ),
    (
        "persistent_2 with no throughput",
        lustre("deployment_type: PERSISTENT_2, capacity_gib: 1200"),
        ["[FSX-03]", "throughput_mbps_per_tib: is required for persistent_2"],
        lustre("deployment_type: PERSISTENT_2, capacity_gib: 1200, throughput_mbps_per_tib: 125"),
    ),
    (
        "hard disks in sizes of SSD",
        lustre("deployment_type: persistent_1, storage_type: hdd, capacity_gib: 1200, throughput_mbps_per_tib: 12, drive_cache_type: none"),
        ["[FSX-02]", "capacity_gib: 1200 GiB is not sold for hdd at 12 MB/s per TiB: a multiple of 6000"],
        lustre("deployment_type: persistent_1, storage_type: hdd, capacity_gib: 6000, throughput_mbps_per_tib: 12, drive_cache_type: none"),
    ),
    (
        "hard disks on persistent_2",
        lustre(f"storage_type: HDD, {P2}"),
        ["[FSX-03]", "storage_type: hdd is not sold for persistent_2"],
        lustre("deployment_type: persistent_1, storage_type: HDD, capacity_gib: 1800, throughput_mbps_per_tib: 40, drive_cache_type: read"),
    ),
    (
        "EFA on scratch",
        lustre("deployment_type: scratch_2, capacity_gib: 4800, efa_enabled: true"),
        ["[FSX-13]", "storage.lustre.efa_enabled: scratch_2 cannot serve EFA"],
        lustre("deployment_type: persistent_2, capacity_gib: 4800, throughput_mbps_per_tib: 1000, efa_enabled: true"),
    ),
    (
        "more than one subnet for Lustre",
        lustre(f"{P2}, subnets: [subnet-a, subnet-b]"),
        ["[FSX-01] storage.lustre.subnets", "takes one subnet"],
        lustre(P2),
    ),
    (
        "a customer key on scratch",
        lustre("deployment_type: scratch_2, capacity_gib: 2400, kms_key: alias/x"),
        ["[FSX-07] storage.lustre.kms_key", "scratch ones take none"],
        lustre("deployment_type: scratch_2, capacity_gib: 2400"),
    ),
    (
        "an import path on persistent_2",
        lustre(f"{P2}, import_path: s3://demo-data"),
        ["[FSX-04] storage.lustre.import_path", "data_repository_associations"],
        lustre(P2, "{bucket: demo-data, path: /data}"),
    ),
    (
        "an association on scratch_1",
        lustre("deployment_type: scratch_1, capacity_gib: 1200", "{bucket: demo-data, path: /data}"),
        ["[DRA-02]", "storage.lustre.deployment_type: scratch_1 takes no data_repository_associations"],
        lustre("deployment_type: scratch_2, capacity_gib: 1200", "{bucket: demo-data, path: /data}"),
    ),
    (
        "an association on Lustre 2.10",
        lustre("deployment_type: scratch_2, capacity_gib: 1200, version: '2.10'", "{bucket: demo-data, path: /data}"),
        ["[DRA-02]", "storage.lustre.version: 2.10 takes no data_repository_associations"],
        lustre("deployment_type: scratch_2, capacity_gib: 1200, version: '2.12'", "{bucket: demo-data, path: /data}"),
    ),
    (
        "a bad path and chunk size",
        lustre(P2, "{bucket: demo-data, path: data, imported_file_chunk_size_mib: 600000}"),
        ["[DRA-03]", "path: data does not begin with /", "[DRA-07]", "imported_file_chunk_size_mib: 600000"],
        lustre(P2, "{bucket: demo-data, path: /data, imported_file_chunk_size_mib: 512000}"),
    ),
    (
        "an event that S3 does not have, and an address",
        lustre(P2, "{s3: demo-data, path: /data, auto_import: [NEW, UPDATED]}"),
        ["auto_import[1]: UPDATED is not one of new, changed, deleted", "associations[0].s3: cannot be used here"],
        lustre(P2, "{bucket: demo-data, path: /data, auto_import: [NEW, CHANGED, DELETED]}"),
    ),
    (
        "HyperPod in a public subnet",
        slurm(CONTROLLER, GPU + ", subnet: public"),
        ["[NET-05] training.node_groups[1].subnet", "private"],
        slurm(CONTROLLER, GPU),
    ),
    (
        "a name with an underscore",
        slurm(CONTROLLER, GPU.replace("gpu", "my_gpu")),
        ["training.node_groups[1].name: my_gpu takes 3 to 25 small letters, digits and single inner hyphens"],
        slurm(CONTROLLER, GPU.replace("gpu", "my-gpu")),
    ),
    (
        "two groups of compute nodes and no controller",
        slurm(GPU, GPU.replace("gpu", "more")),
        ["[HP-11]", "role controller", "exactly one"],
        slurm(CONTROLLER, GPU, GPU.replace("gpu", "more")),
    ),
    (
        "two controllers in one group",
        slurm(CONTROLLER.replace("count: 1", "count: 2"), GPU),
        ["[HP-11]", "2 controllers"],
        slurm(CONTROLLER, GPU),
    ),
    (
        "EKS with one zone",
        ec2("instance_type: p5.48xlarge").replace("ec2", "eks"),
        ["[EKS-01]", "network.availability_zones: 1 zones: eks needs two"],
        ec2("instance_type: p5.48xlarge", TWO_ZONES).replace("ec2", "eks"),
    ),
    (
        "a topic of another account",
        watched("alerts: {topic_arn: 'arn:aws:sns:us-west-2:444455556666:ops'}"),
        ["[FMB-36] observability.alerts.topic_arn", "444455556666", "111122223333"],
        watched("alerts: {topic_arn: 'arn:aws:sns:us-west-2:111122223333:ops'}"),
    ),
    (
        "alerts that are repeated too seldom",
        watched("alerts: {repeat_interval: 7d}"),
        ["[FMB-38] observability.alerts.repeat_interval", "5d"],
        watched("alerts: {repeat_interval: 120h}"),
    ),
    (
        "a timeout above its interval",
        watched("scrape_interval: 5s, scrape_timeout: 10s"),
        ["[FMB-35] observability.scrape_timeout: 10s is more than scrape_interval, 5s"],
        watched("scrape_interval: 5s"),
    ),
    (
        "a Grafana workspace in a VPC of one zone",
        watched("grafana: {vpc: true}"),
        ["[AMG-06]", "network.availability_zones has usw2-az2: a workspace takes 2 to 6 zones"],
        watched("grafana: {vpc: true}", TWO_ZONES),
    ),
    (
        "permissions that only the console has",
        watched("grafana: {permission_type: SERVICE_MANAGED}"),
        ["[AMG-02] observability.grafana.permission_type", "customer managed"],
        watched("grafana: {workspace: create}"),
    ),
    (
        "no Grafana wanted",
        watched("grafana: {enabled: false}"),
        ["observability.grafana.enabled", "write workspace: none"],
        watched("grafana: {workspace: none}"),
    ),
    (
        "three zones of any Region",
        "name: my-project\nnetwork: {availability_zones: 3}\n",
        ["takes a count of 1 or 2; for more, name region and the zones"],
        "name: my-project\nnetwork: {availability_zones: 2}\n",
    ),
    (
        "an image for another processor",
        ec2("instance_type: p6e-gb200.36xlarge, image: {ssm_parameter: /aws/ami/x86_64/latest}"),
        ["[X-10] training.node_groups[0].image.ssm_parameter", "arm64"],
        ec2("instance_type: p6e-gb200.36xlarge, image: {ssm_parameter: /aws/ami/arm64/latest}"),
    ),
    (
        "an interface on a card that counts on",
        ec2(
            "instance_type: p5.48xlarge, network_interfaces: [{device_index: 0, interface_type: interface}, "
            "{network_card_index: 2, device_index: 2, interface_type: efa}]"
        ),
        ["[EFA-04]", "network_interfaces[1].device_index: efa at card 2, device 2", "the devices 0 to 1"],
        ec2(
            "instance_type: p5.48xlarge, network_interfaces: [{device_index: 0, interface_type: interface}, "
            "{network_card_index: 2, device_index: 1, interface_type: efa}]"
        ),
    ),
    (
        "the most IP bandwidth in the older layout",
        ec2("instance_type: p5.48xlarge, efa: {profile: max-ip-bandwidth, secondary_device_index: 1}"),
        ["[EFA-04] training.node_groups[0].efa: interface at card 4, device 2"],
        ec2("instance_type: p5.48xlarge, efa: {profile: max-ip-bandwidth}"),
    ),
    (
        "keys of another orchestrator",
        ec2("instance_type: p5.48xlarge, threads_per_core: 1"),
        ["[FMB-33] training.node_groups[0].threads_per_core: is not read with orchestrator ec2"],
        slurm(CONTROLLER, GPU + ", threads_per_core: 1"),
    ),
    (
        "fewer nodes than enough, without continuous provisioning",
        slurm(CONTROLLER, GPU + ", min_count: 1"),
        ["[HP-05] training.node_groups[1].min_count: 1 is read with continuous provisioning only"],
        slurm(CONTROLLER, GPU + ", min_count: 1").replace("{node_groups", "{node_provisioning: continuous, node_groups"),
    ),
    (
        "keys as AWS spells them",
        lustre(P2.replace("throughput_mbps_per_tib", "PerUnitStorageThroughput")),
        ["[SHAPE] storage.lustre.PerUnitStorageThroughput: cannot be used here; the key is throughput_mbps_per_tib"],
        lustre(P2.replace("PERSISTENT_2", "Persistent_2")),
    ),
    (
        "a zone of the file that cannot be read",
        ONE_ZONE.replace("]}", "], subnets: {'us[west': {private: 10.20.0.0/17, public: 10.20.240.0/24}}}"),
        ["[FMB-06] network.subnets.us[west: is not one of availability_zones"],
        ONE_ZONE.replace("]}", "], subnets: {usw2-az2: {private: 10.20.0.0/17, public: 10.20.240.0/24}}}"),
    ),
    (
        "a version with a letter",
        ec2("instance_type: p5.48xlarge", TWO_ZONES).replace("ec2,", "eks, kubernetes: {version: v1.33},"),
        ["training.kubernetes.version: v1.33 is not a version like 1.34; write a version like 1.34"],
        ec2("instance_type: p5.48xlarge", TWO_ZONES).replace("ec2,", "eks, kubernetes: {version: 1.33},"),
    ),
    (
        "a type that the catalogue does not have",
        ec2("instance_type: c7i.4xlarge"),
        ["[FMB-09]", "else add it under catalog"],
        ec2("instance_type: c7i.4xlarge") + "catalog: [{name: c7i.4xlarge, vcpus: 16}]\n",
    ),
    (
        "backups of a file system that is linked with S3",
        lustre(f"{P2}, automatic_backup_retention_days: 7", "{path: /data}"),
        ["[DRA-11] storage.lustre.automatic_backup_retention_days"],
        lustre(f"{P2}, automatic_backup_retention_days: 7"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "parts", "right"), [pytest.param(*case[1:], id=case[0].replace(" ", "-")) for case in CASES]
)
def test_a_failure_is_told_and_its_neighbour_passes(
    project_file: Callable[[str], Path], wrong: str, parts: list[str], right: str
) -> None:
    with pytest.raises(FindingsError) as caught:
        Project.load(project_file(wrong))
    said = str(caught.value)
    for part in parts:
        assert part in said, said
    assert "project.yaml:" in said
    Project.load(project_file(right))
