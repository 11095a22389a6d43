"""The life of a HyperPod cluster with EKS: deployed, changed, destroyed. No node and no Kubernetes is behind it.

The tests are one story, told in order. HyperPod's chart is replaced by one of ours.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.local.conftest import FMBLOCKS, LocalAws
from tests.local.test_kubernetes import add_ons, cluster, edit, host_tools, of

__all__ = ["host_tools"]  # a fixture, for every test here
pytestmark = pytest.mark.enable_socket
TRAINING = "hyperpod-b200-TrainingStack"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A copy of the example, with a chart beside it."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(root / "tests/charts", folder, dirs_exist_ok=True)
    return Path(shutil.copy(root / "projects/hyperpod-eks-b200.yaml", folder))


@pytest.fixture(scope="module")
def east(aws: LocalAws) -> LocalAws:
    """The local AWS in the Region of the example."""
    return dataclasses.replace(aws, region="us-east-1")


def hyperpod(aws: LocalAws) -> dict[str, Any]:
    (arn,) = of(aws, TRAINING, "AWS::SageMaker::Cluster").values()
    return dict(aws.client("sagemaker").describe_cluster(ClusterName=arn))


def counts(aws: LocalAws) -> dict[str, int]:
    return {one["InstanceGroupName"]: one["TargetCount"] for one in hyperpod(aws)["InstanceGroups"]}


def test_one_command_deploys_it(east: LocalAws, project: Path) -> None:
    east.deploy(project)
    assert counts(east) == {"gpu": 8, "prepare": 0, "services": 1}
    assert set(add_ons(east, TRAINING)) >= {
        "amazon-sagemaker-hyperpod-training-operator",
        "amazon-sagemaker-hyperpod-taskgovernance",
        "amazon-sagemaker-hyperpod-observability",
    }
    assert len(of(east, TRAINING, "AWS::SageMaker::ComputeQuota")) == 2
    entries = east.client("eks").list_access_entries(clusterName=cluster(east, TRAINING)["name"])["accessEntries"]
    assert {f"arn:aws:iam::111122223333:role/{name}" for name in ("Platform", "Ana", "Ben")} <= set(entries)


def test_again_nothing_changes(east: LocalAws, project: Path) -> None:
    assert east.deploy(project).count("(no changes)") == 2


def test_counts_groups_teams_and_releases_change_in_place(east: LocalAws, project: Path) -> None:
    before, quotas = hyperpod(east)["ClusterArn"], of(east, TRAINING, "AWS::SageMaker::ComputeQuota")
    edit(
        project,
        ("      count: 8\n", "      count: 10\n      image_release_version: 1.2.3\n"),
        ("teams:\n", "    - {name: extra, instance_type: m7i.8xlarge, count: 2}\nteams:\n"),
        ("priorities:\n", "  - {name: evals, quotas: [{instance_type: m7i.8xlarge, count: 2}]}\npriorities:\n"),
        ("capacity_gib: 9600", "capacity_gib: 12000"),
    )
    east.deploy(project)
    assert hyperpod(east)["ClusterArn"] == before
    assert counts(east) == {"extra": 2, "gpu": 10, "prepare": 0, "services": 1}
    after = of(east, TRAINING, "AWS::SageMaker::ComputeQuota")
    assert set(quotas.items()) < set(after.items())
    assert len(after) == 3


def test_another_zone_is_refused_before_it_costs_the_cluster(
    east: LocalAws, project: Path, tmp_path: Path, root: Path
) -> None:
    moved = tmp_path / "moved.yaml"
    moved.write_text(
        project.read_text().replace("primary_availability_zone: use1-az4", "primary_availability_zone: use1-az6")
    )
    look = [str(FMBLOCKS), "guard", str(moved), "--context", f"charts={root / 'tests/charts'}"]
    said = east.run(*look, project=moved, check=False)
    assert said.returncode == 1, said.stdout[-3000:]
    assert re.search(r"error \[FMB-49\].*HyperPod", said.stdout), said.stdout[-3000:]


def test_somebody_moves_to_another_team(east: LocalAws, project: Path) -> None:
    """An access entry is named after its principal: the same one changes, where a second one would be refused."""
    ana = {"clusterName": cluster(east, TRAINING)["name"], "principalArn": "arn:aws:iam::111122223333:role/Ana"}
    for before, after in (("pretrain", "posttrain"), ("posttrain", "pretrain")):
        edit(project, (f"name: ana, account: {before}", f"name: ana, account: {after}"))
        east.deploy(project)
        entry = east.client("eks").describe_access_entry(**ana)["accessEntry"]
        assert entry["kubernetesGroups"] == [f"fmblocks:team:{after}"]


def test_a_team_and_a_group_go(east: LocalAws, project: Path) -> None:
    edit(
        project,
        ("    - {name: extra, instance_type: m7i.8xlarge, count: 2}\n", ""),
        ("  - {name: evals, quotas: [{instance_type: m7i.8xlarge, count: 2}]}\n", ""),
    )
    east.deploy(project)
    assert counts(east) == {"gpu": 10, "prepare": 0, "services": 1}
    assert len(of(east, TRAINING, "AWS::SageMaker::ComputeQuota")) == 2


def test_it_goes_in_the_order_that_works(east: LocalAws, project: Path, host_tools: Path) -> None:
    """Quotas and policy first: HyperPod keeps a cluster that has them."""
    east.destroy(project, "TrainingStack")
    with pytest.raises(Exception, match="does not exist"):
        east.status(TRAINING)
    assert not east.client("sagemaker").list_clusters()["ClusterSummaries"]
    called = host_tools / "called"
    assert not called.exists(), called.read_text()
