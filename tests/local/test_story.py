"""The life of a project, from the first deployment to what is left when everything was destroyed.

The tests of this file are one story, told in order: each begins where the one before ended.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.local.conftest import LocalAws

pytestmark = pytest.mark.enable_socket

FOUNDATION, TRAINING = "llm-pretrain-FoundationStack", "llm-pretrain-TrainingStack"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A copy of the reference project, to be changed."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(root / "projects" / "slurm-p5en-scripts", folder / "slurm-p5en-scripts")
    return Path(shutil.copy(root / "projects" / "slurm-p5en.yaml", folder))


def edit(project: Path, old: str, new: str) -> None:
    text = project.read_text()
    assert text.count(old) == 1
    project.write_text(text.replace(old, new))


def file_system(aws: LocalAws) -> dict[str, Any]:
    systems = aws.client("fsx").describe_file_systems()["FileSystems"]
    (found,) = (one for one in systems if one["FileSystemType"] == "LUSTRE")
    return dict(found)


def groups(aws: LocalAws) -> dict[str, int]:
    sagemaker = aws.client("sagemaker")
    (cluster,) = sagemaker.list_clusters()["ClusterSummaries"]
    found = sagemaker.describe_cluster(ClusterName=cluster["ClusterArn"])["InstanceGroups"]
    return {group["InstanceGroupName"]: group["CurrentCount"] for group in found}


def scripts(aws: LocalAws) -> list[str]:
    """Keys in the lifecycle bucket."""
    name = aws.client("ssm").get_parameter(Name="/fmblocks/llm-pretrain/bucket/lifecycle/name")["Parameter"]["Value"]
    assert name.startswith("sagemaker-llm-pretrain-")
    return [item["Key"] for item in aws.client("s3").list_objects_v2(Bucket=name).get("Contents", [])]


def body(aws: LocalAws, key: str) -> str:
    name = aws.client("ssm").get_parameter(Name="/fmblocks/llm-pretrain/bucket/lifecycle/name")["Parameter"]["Value"]
    return str(aws.client("s3").get_object(Bucket=name, Key=key)["Body"].read().decode())


def prefixes(aws: LocalAws) -> set[str]:
    return {key.split("/")[0] for key in scripts(aws) if not key.startswith(".fmblocks/")}


def test_one_command_deploys_both_stacks(aws: LocalAws, project: Path) -> None:
    said = aws.deploy(project)
    assert aws.status(FOUNDATION) == aws.status(TRAINING) == "CREATE_COMPLETE"
    for output in ("ClusterArn", "LustreDnsName", "LustreMountName", "MetricsEndpoint"):
        assert f"TrainingStack.{output} = " in said
    assert groups(aws) == {"controller": 1, "gpu": 16, "login": 1}
    assert file_system(aws)["StorageCapacity"] == 19200
    systems = aws.client("fsx").describe_file_systems()["FileSystems"]
    (home,) = (one for one in systems if one["FileSystemType"] == "OPENZFS")
    assert home["OpenZFSConfiguration"]["DeploymentType"] == "SINGLE_AZ_HA_2"
    links = aws.client("fsx").describe_data_repository_associations()["Associations"]
    assert {link["FileSystemPath"] for link in links} == {"/checkpoints", "/datasets"}
    assert any(key.endswith("/own/on_init_complete.sh") for key in scripts(aws))
    (users,) = [key for key in scripts(aws) if key.endswith("/users")]
    assert body(aws, users) == "ana\t10001\tpretrain\nben\t10002\tresearch\n"


def test_the_default_group_has_no_rules(aws: LocalAws) -> None:
    (vpc,) = [id for kind, id in aws.resources(FOUNDATION).values() if kind == "AWS::EC2::VPC"]
    found = aws.client("ec2").describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])
    (group,) = [group for group in found["SecurityGroups"] if group["GroupName"] == "default"]
    assert group["IpPermissions"] == []
    assert group["IpPermissionsEgress"] == []


def test_a_second_run_changes_nothing(aws: LocalAws, project: Path) -> None:
    assert aws.deploy(project).count("(no changes)") == 2


def test_foundation_is_locked(aws: LocalAws) -> None:
    cloudformation = aws.client("cloudformation")
    with pytest.raises(cloudformation.exceptions.ClientError, match="TerminationProtection"):
        cloudformation.delete_stack(StackName=FOUNDATION)
    assert aws.status(FOUNDATION) == "CREATE_COMPLETE"


def test_ec2_keeps_what_a_file_system_stands_on(aws: LocalAws) -> None:
    ec2, system = aws.client("ec2"), file_system(aws)
    subnet = system["SubnetIds"][0]
    with pytest.raises(ec2.exceptions.ClientError, match="DependencyViolation"):
        ec2.delete_subnet(SubnetId=subnet)
    group = aws.client("ssm").get_parameter(Name="/fmblocks/llm-pretrain/lustre/security-group-id")
    with pytest.raises(ec2.exceptions.ClientError, match="DependencyViolation"):
        ec2.delete_security_group(GroupId=group["Parameter"]["Value"])


def test_nodes_and_storage_grow_in_place(aws: LocalAws, project: Path) -> None:
    before = {**aws.resources(FOUNDATION), **aws.resources(TRAINING)}
    edit(project, "instance_type: p5en.48xlarge\n      count: 16", "instance_type: p5en.48xlarge\n      count: 32")
    edit(project, "capacity_gib: 19200", "capacity_gib: 38400")
    aws.deploy(project)
    assert groups(aws)["gpu"] == 32
    assert file_system(aws)["StorageCapacity"] == 38400
    assert {**aws.resources(FOUNDATION), **aws.resources(TRAINING)} == before


def test_a_changed_script_gets_a_prefix_and_the_old_one_stays(aws: LocalAws, project: Path) -> None:
    (old,) = prefixes(aws)
    script = project.parent / "slurm-p5en-scripts" / "on_init_complete.sh"
    script.write_text(script.read_text() + "echo changed\n")
    before = aws.resources(TRAINING)
    aws.deploy(project)
    assert prefixes(aws) > {old}
    assert len(prefixes(aws)) == 2
    assert aws.resources(TRAINING) == before


def test_a_team_and_a_user_join_without_touching_the_cluster(aws: LocalAws, project: Path) -> None:
    before = aws.resources(TRAINING)
    edit(project, "access:\n", "  - {name: evals, fair_share_weight: 5}\naccess:\n")
    edit(project, "account: research}\n", "account: research}\n    - {name: eve, uid: 10003, account: evals}\n")
    aws.deploy(project)
    assert aws.resources(TRAINING) == before
    told = [body(aws, key) for key in scripts(aws) if key.endswith("/users")]
    assert any("eve\t10003\tevals" in text for text in told)


def test_scripts_can_be_taken_away_and_given_back(aws: LocalAws, project: Path) -> None:
    whole = project.read_text()
    line = "  lifecycle_scripts: {path: slurm-p5en-scripts, on_init_complete: on_init_complete.sh}\n"
    without = whole.replace(line, "")
    people = without[without.index("teams:\n") : without.index("observability:")]
    project.write_text(without.replace(people, ""))
    aws.deploy(project)
    assert scripts(aws) == []
    assert "Custom::LifecycleBundle" not in {kind for kind, _ in aws.resources(TRAINING).values()}
    project.write_text(whole)
    aws.deploy(project)
    assert len(prefixes(aws)) == 1


def test_training_goes_alone(aws: LocalAws, project: Path) -> None:
    before = aws.resources(FOUNDATION)
    aws.destroy(project, "TrainingStack")
    assert aws.resources(FOUNDATION) == before
    assert aws.client("sagemaker").list_clusters()["ClusterSummaries"] == []
    assert scripts(aws) == []


def test_training_comes_back_alone(aws: LocalAws, project: Path) -> None:
    before = aws.resources(FOUNDATION)
    aws.deploy(project, "TrainingStack", "--exclusively")
    assert aws.resources(FOUNDATION) == before
    assert groups(aws)["gpu"] == 32


def test_what_is_left_when_everything_goes(aws: LocalAws, project: Path) -> None:
    """Data, its key, and the network it stands on; see FoundationStack."""
    before = aws.resources(FOUNDATION)
    system = file_system(aws)["FileSystemId"]
    aws.destroy(project, "TrainingStack")
    aws.unlock(FOUNDATION)
    aws.destroy(project, "FoundationStack")

    assert file_system(aws)["FileSystemId"] == system
    ec2 = aws.client("ec2")
    (vpc,) = [id for kind, id in before.values() if kind == "AWS::EC2::VPC"]
    in_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    assert [found["VpcId"] for found in ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"]] == [vpc]
    subnets = ec2.describe_subnets(Filters=in_vpc)["Subnets"]
    # That of Lustre, and the second one of the database.
    assert {subnet["CidrBlock"] for subnet in subnets} == {"10.20.0.0/17", "10.20.128.0/20"}
    (secret,) = aws.client("secretsmanager").list_secrets()["SecretList"]
    assert secret["Name"] in {id for kind, id in before.values() if kind == "AWS::SecretsManager::Secret"}
    kept = {id for kind, id in before.values() if kind == "AWS::EC2::SecurityGroup"}
    left = ec2.describe_security_groups(Filters=in_vpc)["SecurityGroups"]
    assert {group["GroupId"] for group in left if group["GroupName"] != "default"} == kept
    assert all(group["IpPermissions"] for group in left if group["GroupId"] in kept)
    assert ec2.describe_nat_gateways(Filters=[{"Name": "state", "Values": ["available"]}])["NatGateways"] == []
    assert ec2.describe_addresses()["Addresses"] == []
    assert [found for found in ec2.describe_vpc_endpoints()["VpcEndpoints"] if found["VpcId"] == vpc] == []

    buckets = {bucket["Name"] for bucket in aws.client("s3").list_buckets()["Buckets"]}
    made = {id for kind, id in before.values() if kind == "AWS::S3::Bucket"}
    assert len(made) == 3
    assert made <= buckets
    assert all("Statement" in json.loads(policy_of(aws, name)) for name in made)
    (key,) = [id for kind, id in before.values() if kind == "AWS::KMS::Key"]
    assert aws.client("kms").describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "Enabled"
    assert len(aws.client("amp").list_workspaces()["workspaces"]) == 1

    assert aws.client("fsx").describe_data_repository_associations()["Associations"] == []
    assert aws.client("lambda").list_functions()["Functions"] == []
    assert [group["logGroupName"] for group in aws.client("logs").describe_log_groups()["logGroups"]] == []
    parameters = aws.client("ssm").get_parameters_by_path(Path="/fmblocks/", Recursive=True)["Parameters"]
    assert parameters == []
    roles = {role["RoleName"] for role in aws.client("iam").list_roles()["Roles"]}
    assert not {id for kind, id in before.values() if kind == "AWS::IAM::Role"} & roles


def policy_of(aws: LocalAws, bucket: str) -> str:
    return str(aws.client("s3").get_bucket_policy(Bucket=bucket)["Policy"])
