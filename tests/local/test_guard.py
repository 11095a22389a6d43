"""``fmblocks guard`` against what the real CDK CLI has deployed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.local.conftest import FMBLOCKS, LocalAws
from tests.local.test_story import FOUNDATION, TRAINING, edit

pytestmark = pytest.mark.enable_socket

SUBNET = "/fmblocks/llm-pretrain/subnet/usw2-az2"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A copy of the reference project, as it is deployed."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(root / "projects" / "slurm-p5en-scripts", folder / "slurm-p5en-scripts")
    return Path(shutil.copy(root / "projects" / "slurm-p5en.yaml", folder))


@pytest.fixture
def project(deployed: Path) -> Path:
    """A copy to be changed."""
    return Path(shutil.copy(deployed, deployed.with_name("changed.yaml")))


def guard(aws: LocalAws, project: Path, *words: str) -> tuple[int, dict[str, Any]]:
    command = [
        str(FMBLOCKS),
        "local",
        "run",
        "--project",
        str(project),
        "--",
        "fmblocks",
        "guard",
        str(project),
        "--json",
    ]
    done = subprocess.run([*command, *words], env=aws.environment, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def refused(told: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["rule"], one["path"]) for one in told["findings"] if one["severity"] == "error"}


def counts(told: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {one["stack"]: {key: value for key, value in one["changes"].items() if value} for one in told["stacks"]}


def test_before_the_first_deployment_everything_is_new(aws: LocalAws, deployed: Path) -> None:
    code, told = guard(aws, deployed)
    assert code == 0
    assert [(one["stack"], one["new"]) for one in told["stacks"]] == [
        ("FoundationStack", True),
        ("TrainingStack", True),
    ]
    found = aws.client("cloudformation").list_stacks()["StackSummaries"]
    assert not [one for one in found if one["StackName"] in (FOUNDATION, TRAINING)]


def test_nothing_is_changed_by_looking(aws: LocalAws, deployed: Path) -> None:
    aws.deploy(deployed)
    aws.unlock(FOUNDATION)
    code, told = guard(aws, deployed)
    assert code == 0
    assert counts(told) == {"FoundationStack": {}, "TrainingStack": {}}
    cloudformation = aws.client("cloudformation")
    for stack in (FOUNDATION, TRAINING):
        left = [one["ChangeSetName"] for one in cloudformation.list_change_sets(StackName=stack)["Summaries"]]
        assert not [name for name in left if name.startswith("fmblocks-guard")]
    found = cloudformation.describe_stacks(StackName=FOUNDATION)["Stacks"][0]
    assert found["EnableTerminationProtection"] is False


def test_the_local_aws_shows_names_and_values_as_cloudformation_does(aws: LocalAws) -> None:
    cloudformation = aws.client("cloudformation")
    cloudformation.create_change_set(
        StackName=TRAINING,
        ChangeSetName="look",
        UsePreviousTemplate=True,
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Parameters=[],
    )
    change_set = cloudformation.describe_change_set(StackName=TRAINING, ChangeSetName="look")
    cloudformation.delete_change_set(StackName=TRAINING, ChangeSetName="look")
    stack = cloudformation.describe_stacks(StackName=TRAINING)["Stacks"][0]
    value = aws.client("ssm").get_parameter(Name=SUBNET)["Parameter"]["Value"]
    for parameters in (stack["Parameters"], change_set["Parameters"]):
        (found,) = (one for one in parameters if one["ParameterValue"] == SUBNET)
        assert found["ResolvedValue"] == value


def test_growth_is_no_loss(aws: LocalAws, project: Path) -> None:
    edit(project, "capacity_gib: 19200", "capacity_gib: 38400")
    edit(project, "      count: 16", "      count: 32")
    code, told = guard(aws, project)
    assert (code, told["findings"]) == (0, [])
    assert counts(told)["FoundationStack"]["changed"] >= 1


def test_another_primary_zone_is_refused_down_to_the_cluster(aws: LocalAws, project: Path) -> None:
    edit(project, "primary_availability_zone: usw2-az2", "primary_availability_zone: usw2-az1")
    code, told = guard(aws, project)
    assert code == 1
    assert refused(told) >= {
        ("FSX-25", "FoundationStack/Lustre"),
        ("FMB-49", "FoundationStack/Network/Zones/usw2-az2/Private"),
        ("FMB-49", "TrainingStack/Cluster"),
        ("FMB-50", "/fmblocks/llm-pretrain/lustre/dns-name"),
    }


def test_what_fsx_cannot_change_is_refused_although_cloudformation_tries(aws: LocalAws, project: Path) -> None:
    edit(project, "    efa_enabled: true\n", "")
    edit(project, "capacity_gib: 19200", "capacity_gib: 16800")
    code, told = guard(aws, project)
    assert code == 1
    (found,) = (one for one in told["findings"] if one["path"] == "FoundationStack/Lustre")
    assert "SecurityGroupIds" in found["message"]
    assert "LustreConfiguration/EfaEnabled" in found["message"]


def test_a_removed_link_and_a_renamed_one(aws: LocalAws, project: Path) -> None:
    """The created bucket is known by its path: another path is another, empty bucket."""
    edit(project, "path: /checkpoints", "path: /ckpt")
    code, told = guard(aws, project)
    assert code == 1
    (found,) = (one for one in told["findings"] if one["rule"] == "FMB-49")
    assert found["path"] == "FoundationStack/Bucket-checkpoints"
    assert "its construct is called FoundationStack/Bucket-ckpt now" in found["message"]
    code, told = guard(aws, project, "--allow", "FoundationStack/Bucket-checkpoints")
    assert (code, refused(told)) == (0, set())


def test_a_new_key_policy_is_no_replacement(aws: LocalAws, project: Path) -> None:
    """CloudFormation says Conditional of everything that names a key whose policy changes."""
    edit(project, "tags: {team: research, cost-center: 4711}", "tags: {team: other, cost-center: 4711}")
    code, told = guard(aws, project)
    assert (code, refused(told)) == (0, set())


def test_a_project_without_training_leaves_a_stack_behind(aws: LocalAws, project: Path) -> None:
    text = project.read_text()
    project.write_text(text[: text.index("training:")] + text[text.index("observability:") : text.index("budget:")])
    code, told = guard(aws, project)
    assert code == 0
    assert told["notes"] == [
        "llm-pretrain-TrainingStack is deployed, and no longer in the project: it stays and bills until it is deleted"
    ]


def test_a_changed_value_with_an_empty_template_diff(aws: LocalAws, deployed: Path) -> None:
    ssm = aws.client("ssm")
    before = ssm.get_parameter(Name=SUBNET)["Parameter"]["Value"]
    ssm.put_parameter(Name=SUBNET, Value="subnet-0123456789abcdef0", Type="String", Overwrite=True)
    code, told = guard(aws, deployed)
    assert code == 1
    assert refused(told) == {("FMB-50", SUBNET), ("FMB-49", "TrainingStack/Cluster")}
    ssm.put_parameter(Name=SUBNET, Value=before, Type="String", Overwrite=True)
    assert guard(aws, deployed)[0] == 0
