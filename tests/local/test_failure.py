"""A first creation that fails, and the way back; the trial project."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.local.conftest import LocalAws

pytestmark = pytest.mark.enable_socket

FOUNDATION, TRAINING = "trial-g6-FoundationStack", "trial-g6-TrainingStack"
IN_THE_WAY = "/fmblocks/trial-g6/lustre/mount-name"


@pytest.fixture(scope="module")
def aws(aws: LocalAws) -> LocalAws:
    """The trial project names neither account nor Region, so it goes to the defaults."""
    return LocalAws(aws.folder, account="123456789012", region="us-east-1")


@pytest.fixture(scope="module")
def project(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copy(root / "projects" / "trial-g6.yaml", tmp_path_factory.mktemp("project")))


def left(aws: LocalAws) -> dict[str, int]:
    """How much of what is kept stands in the account."""
    vpcs = aws.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"]
    keys = aws.client("kms").list_keys()["Keys"]
    enabled = [key for key in keys if aws.client("kms").describe_key(KeyId=key["KeyId"])["KeyMetadata"]["Enabled"]]
    return {
        "file systems": len(aws.client("fsx").describe_file_systems()["FileSystems"]),
        "workspaces": len(aws.client("amp").list_workspaces()["workspaces"]),
        "networks": len([vpc for vpc in vpcs if vpc["CidrBlock"] == "10.20.0.0/16"]),
        "keys": len(enabled),
    }


def buckets(aws: LocalAws) -> list[str]:
    return [bucket["Name"] for bucket in aws.client("s3").list_buckets()["Buckets"]]


def test_a_first_creation_that_fails_leaves_no_file_system(aws: LocalAws, project: Path) -> None:
    """Something stands in the way of a parameter that is written after the file system is up."""
    aws.run("true")
    before = left(aws)
    aws.client("ssm").put_parameter(Name=IN_THE_WAY, Value="mine", Type="String")
    said = aws.deploy(project, check=False)
    assert "AWS::FSx::FileSystem" in said
    assert aws.status(FOUNDATION) == "ROLLBACK_COMPLETE"
    assert left(aws) == before
    assert before["file systems"] == 0
    # S3 has written into the log bucket meanwhile: it stays, and does not stop the way back.
    (logs,) = (name for name in buckets(aws) if "-logs" in name)
    assert aws.client("s3").list_objects_v2(Bucket=logs)["KeyCount"] > 0
    assert [name for name in buckets(aws) if "trial-g6" in name] == [logs]


def test_the_way_back_leads_over_the_lock(aws: LocalAws, project: Path) -> None:
    aws.client("ssm").delete_parameter(Name=IN_THE_WAY)
    refused = aws.deploy(project, check=False)
    assert "TerminationProtection" in refused
    aws.unlock(FOUNDATION)
    aws.deploy(project)
    assert aws.status(FOUNDATION) == aws.status(TRAINING) == "CREATE_COMPLETE"
    assert aws.client("cloudformation").describe_stacks(StackName=FOUNDATION)["Stacks"][0][
        "EnableTerminationProtection"
    ]


def test_counts_change_in_place(aws: LocalAws, project: Path) -> None:
    before = aws.resources(TRAINING)
    project.write_text(project.read_text().replace("g6.2xlarge, count: 2", "g6.2xlarge, count: 4"))
    aws.deploy(project)
    assert aws.resources(TRAINING) == before
    (cluster,) = aws.client("sagemaker").list_clusters()["ClusterSummaries"]
    found = aws.client("sagemaker").describe_cluster(ClusterName=cluster["ClusterArn"])["InstanceGroups"]
    assert {group["InstanceGroupName"]: group["CurrentCount"] for group in found} == {"controller": 1, "gpu": 4}


def test_training_without_its_foundation_names_what_is_missing(aws: LocalAws, project: Path) -> None:
    other = project.with_name("other.yaml")
    other.write_text(project.read_text().replace("name: trial-g6", "name: other"))
    said = aws.deploy(other, "TrainingStack", "--exclusively", check=False)
    assert "/fmblocks/other/" in said
    assert (
        aws.client("cloudformation")
        .describe_stacks(StackName=TRAINING)["Stacks"][0]["StackStatus"]
        .endswith("COMPLETE")
    )
