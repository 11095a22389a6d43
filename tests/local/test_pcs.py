"""The life of a cluster on PCS: deployed, changed, destroyed. The tests are one story, told in order."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.local.conftest import LocalAws
from tests.local.test_guard import guard, refused

pytestmark = pytest.mark.enable_socket
TRAINING = "pcs-p5en-TrainingStack"


def ids(aws: LocalAws, kind: str) -> dict[str, str]:
    """Logical id → ARN."""
    return {id: arn for id, (found, arn) in aws.resources(TRAINING).items() if found == f"AWS::PCS::{kind}"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    return Path(shutil.copy(root / "projects" / "pcs-p5en.yaml", tmp_path_factory.mktemp("projects")))


def test_one_command_deploys_it(aws: LocalAws, project: Path) -> None:
    aws.deploy(project)
    assert len(ids(aws, "Cluster")) == 1
    assert len(ids(aws, "ComputeNodeGroup")) == 2
    assert len(ids(aws, "Queue")) == 1
    roles = aws.client("iam").list_roles(PathPrefix="/aws-pcs/")["Roles"]
    assert len(roles) == 2


def test_again_nothing_changes(aws: LocalAws, project: Path) -> None:
    assert aws.deploy(project).count("(no changes)") == 2


def test_count_settings_and_groups_change_in_place(aws: LocalAws, project: Path) -> None:
    before = {kind: ids(aws, kind) for kind in ("Cluster", "ComputeNodeGroup", "Queue")}
    text = project.read_text().replace("count: 16", "count: 12").replace("730", "365")
    project.write_text(text + "    - {name: cpu, instance_type: m7i.8xlarge, count: 8, min_count: 0, capacity: spot}\n")
    aws.deploy(project)
    for kind, old in before.items():
        assert old.items() <= ids(aws, kind).items()
    assert len(ids(aws, "ComputeNodeGroup")) == 3
    assert len(ids(aws, "Queue")) == 2


def test_a_controller_of_another_size_would_be_another_one(aws: LocalAws, project: Path, tmp_path: Path) -> None:
    """PCS-03: the guard refuses what CloudFormation would do."""
    larger = tmp_path / "larger.yaml"
    larger.write_text(project.read_text().replace("count: 12", "count: 40"))
    code, told = guard(aws, larger)
    assert code == 1
    assert refused(told) == {("PCS-03", "TrainingStack/Pcs/Cluster")}


def test_it_goes(aws: LocalAws, project: Path) -> None:
    aws.destroy(project, "TrainingStack")
    with pytest.raises(Exception, match="does not exist"):
        aws.status(TRAINING)
    assert aws.status("pcs-p5en-FoundationStack").endswith("_COMPLETE")
