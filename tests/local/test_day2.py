"""What docs/day-2.md and `fmblocks retire` tell a person to do, done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.local.conftest import FMBLOCKS, LocalAws
from tests.local.test_guard import guard, refused
from tests.local.test_story import edit

pytestmark = pytest.mark.enable_socket

FOUNDATION, TRAINING = "day-two-FoundationStack", "day-two-TrainingStack"
PROJECT = """\
name: day-two
account: "111122223333"
region: us-west-2
network: {availability_zones: [usw2-az2]}
storage:
  lustre:
    capacity_gib: 9600
    throughput_mbps_per_tib: 500
    metadata: {mode: user_provisioned, iops: 6000}
    data_repository_associations:
      - {path: /checkpoints, auto_export: [new, changed]}
  home: {capacity_gib: 256, throughput_capacity_mbps: 160}
training:
  node_groups:
    - {name: controller, role: controller, instance_type: m7i.xlarge, count: 1}
    - {name: gpu, instance_type: g6.2xlarge, count: 2}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("project") / "day-two.yaml"
    file.write_text(PROJECT)
    return file


def systems(aws: LocalAws) -> dict[str, dict[str, Any]]:
    return {one["FileSystemId"]: one for one in aws.client("fsx").describe_file_systems()["FileSystems"]}


def lustre(aws: LocalAws) -> dict[str, Any]:
    (found,) = (one for one in systems(aws).values() if one["FileSystemType"] == "LUSTRE")
    return found


def value(aws: LocalAws, name: str) -> str:
    return str(aws.client("ssm").get_parameter(Name=f"/fmblocks/day-two/{name}")["Parameter"]["Value"])


def test_capacity_and_metadata_grow_in_place(aws: LocalAws, project: Path) -> None:
    aws.deploy(project)
    before = lustre(aws)["FileSystemId"]
    edit(project, "capacity_gib: 9600", "capacity_gib: 19200")
    edit(project, "iops: 6000", "iops: 12000")
    edit(
        project, "capacity_gib: 256, throughput_capacity_mbps: 160", "capacity_gib: 512, throughput_capacity_mbps: 320"
    )
    assert guard(aws, project)[0] == 0
    aws.deploy(project)
    after = lustre(aws)
    assert (after["FileSystemId"], after["StorageCapacity"]) == (before, 19200)
    assert after["LustreConfiguration"]["MetadataConfiguration"]["Iops"] == 12000
    (homes,) = (one for one in systems(aws).values() if one["FileSystemType"] == "OPENZFS")
    assert (homes["StorageCapacity"], homes["OpenZFSConfiguration"]["ThroughputCapacity"]) == (512, 320)


def preflight(aws: LocalAws, project: Path) -> tuple[int, dict[str, str]]:
    command = [str(FMBLOCKS), "local", "run", "--project", str(project), "--", "fmblocks", "preflight", str(project)]
    done = subprocess.run([*command, "--json"], env=aws.environment, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, {one["rule"]: one["outcome"] for one in json.loads(done.stdout)}


def test_nothing_shrinks(aws: LocalAws, project: Path) -> None:
    text = project.read_text()
    assert preflight(aws, project) == (0, {"FMB-70": "pass", "HP-24": "unknown", "FMB-51": "pass"})
    edit(project, "capacity_gib: 19200", "capacity_gib: 9600")
    assert preflight(aws, project) == (1, {"FMB-70": "pass", "HP-24": "unknown", "FMB-51": "fail"})
    code, told = guard(aws, project)
    assert code == 1
    assert refused(told) == {("FMB-51", "FoundationStack/Lustre")}
    failed = aws.cdk("deploy", project, "FoundationStack", check=False)
    assert failed.returncode != 0
    assert "Storage capacity can only be increased" in failed.stdout
    assert aws.status(FOUNDATION) == "UPDATE_ROLLBACK_COMPLETE"
    assert lustre(aws)["StorageCapacity"] == 19200
    project.write_text(text)


def test_an_association_comes_and_goes(aws: LocalAws, project: Path) -> None:
    def paths() -> set[str]:
        found = aws.client("fsx").describe_data_repository_associations()["Associations"]
        return {one["FileSystemPath"] for one in found}

    before = lustre(aws)["FileSystemId"]
    line = "      - {path: /data, bucket: my-data, auto_import: [new, changed]}\n"
    edit(project, "  home:", f"{line}  home:")
    assert guard(aws, project)[0] == 0
    aws.deploy(project, "FoundationStack")
    assert paths() == {"/checkpoints", "/data"}
    edit(project, line, "")
    code, told = guard(aws, project)
    assert (code, refused(told)) == (0, set())  # a link goes, files and objects stay
    aws.deploy(project, "FoundationStack")
    assert paths() == {"/checkpoints"}
    assert lustre(aws)["FileSystemId"] == before


def test_a_backup_becomes_a_new_file_system_beside_the_old_one(aws: LocalAws, project: Path) -> None:
    text = project.read_text()
    edit(project, "    data_repository_associations:\n      - {path: /checkpoints, auto_export: [new, changed]}\n", "")
    checkpoints = value(aws, "link/checkpoints/bucket/name")
    aws.deploy(project, "FoundationStack")
    old, orphan = lustre(aws)["FileSystemId"], checkpoints  # kept, and of no stack any more
    edit(project, "  home:", "    backup_id: backup-0123456789abcdef0\n  home:")
    code, told = guard(aws, project)
    assert code == 1
    assert ("FSX-25", "FoundationStack/Lustre") in refused(told)
    words = [word for _, path in sorted(refused(told)) for word in ("--allow", path)]
    assert guard(aws, project, *words)[0] == 0
    aws.deploy(project)
    found = [id for id, one in systems(aws).items() if one["FileSystemType"] == "LUSTRE"]
    assert len(found) == 2
    new = value(aws, "lustre/file-system-id")
    assert old in found
    assert new in set(found) - {old}
    sagemaker = aws.client("sagemaker")
    assert len(sagemaker.list_clusters()["ClusterSummaries"]) == 1
    aws.client("fsx").delete_file_system(FileSystemId=old)
    aws.client("s3").delete_bucket(Bucket=orphan)
    project.write_text(text.replace("  home:", "    backup_id: backup-0123456789abcdef0\n  home:"))
    aws.deploy(project, "FoundationStack")
    assert lustre(aws)["FileSystemId"] == new


def test_a_kept_file_system_is_adopted(aws: LocalAws, project: Path, tmp_path: Path) -> None:
    """The foundation went, its data stayed: another project takes network and file system by their ids."""
    kept = {
        name: value(aws, name)
        for name in (
            "vpc-id", "subnet/usw2-az2", "efa-security-group-id", "lustre/file-system-id", "lustre/dns-name",
            "lustre/mount-name", "lustre/security-group-id", "route-table/usw2-az2",
        )
    }  # fmt: skip
    adopting = tmp_path / "adopting.yaml"
    adopting.write_text(f"""\
name: adopting
account: "111122223333"
region: us-west-2
network:
  vpc:
    id: {kept["vpc-id"]}
    cidr: 10.20.0.0/16
    private_subnets:
      - id: {kept["subnet/usw2-az2"]}
        availability_zone: usw2-az2
        cidr: 10.20.0.0/17
        route_table_id: {kept["route-table/usw2-az2"]}
    efa_security_group_id: {kept["efa-security-group-id"]}
storage:
  lustre:
    existing:
      file_system_id: {kept["lustre/file-system-id"]}
      dns_name: {kept["lustre/dns-name"]}
      mount_name: {kept["lustre/mount-name"]}
      security_group_id: {kept["lustre/security-group-id"]}
      availability_zone: usw2-az2
training:
  node_groups:
    - {{name: controller, role: controller, instance_type: m7i.xlarge, count: 1}}
    - {{name: gpu, instance_type: g6.2xlarge, count: 2}}
""")
    before = set(systems(aws))
    aws.deploy(adopting)
    assert set(systems(aws)) == before
    assert "AWS::EC2::VPC" not in {kind for kind, _ in aws.resources("adopting-FoundationStack").values()}
    assert aws.status("adopting-TrainingStack") == "CREATE_COMPLETE"
    aws.destroy(adopting, "TrainingStack")
    aws.unlock("adopting-FoundationStack")
    aws.destroy(adopting, "FoundationStack")
    assert set(systems(aws)) == before


def test_retire_leaves_nothing(aws: LocalAws, project: Path, tmp_path: Path) -> None:
    """Every command that it prints, in its order, in one shell."""
    (tmp_path / "aws").write_text(f'#!/bin/bash\nexec {sys.executable} {ROOT}/tests/local/aws_cli.py "$@"\n')
    (tmp_path / "aws").chmod(0o755)
    printed = subprocess.run(
        [str(FMBLOCKS), "retire", str(project)], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    script = tmp_path / "retire.sh"
    script.write_text("set -eux\n" + printed)
    environment = {**aws.environment, "PATH": f"{tmp_path}{os.pathsep}{aws.environment['PATH']}"}
    done = subprocess.run(
        [str(FMBLOCKS), "local", "run", "--project", str(project), "--", "bash", str(script)],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    assert systems(aws) == {}
    # The foundation that adopted the file system has a workspace, a key and buckets of its own.
    (workspace,) = aws.client("amp").list_workspaces()["workspaces"]
    assert workspace["alias"] == "adopting-FoundationStack"
    left = [one["Name"] for one in aws.client("s3").list_buckets()["Buckets"]]
    assert not [name for name in left if "day-two" in name]
    ec2 = aws.client("ec2")
    vpcs = ec2.describe_vpcs(Filters=[{"Name": "cidr", "Values": ["10.20.0.0/16"]}])["Vpcs"]
    assert vpcs == []
    kms = aws.client("kms")
    keys = [kms.describe_key(KeyId=one["KeyId"])["KeyMetadata"] for one in kms.list_keys()["Keys"]]
    states = {key["Description"]: key["KeyState"] for key in keys}
    assert states["Data of day-two-FoundationStack"] == "PendingDeletion"
