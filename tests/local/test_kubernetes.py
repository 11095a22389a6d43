"""The life of clusters on EKS: deployed, changed, destroyed. No Kubernetes is behind it, and no tool of the host.

The tests of each class are one story, told in order.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.local.conftest import LocalAws

pytestmark = pytest.mark.enable_socket
EBS = "    add_ons: [{name: aws-ebs-csi-driver, version: v1.50.0-eksbuild.1}]\n"
# What CDK's handlers, and ministack where it finds Docker, would start.
HOST_TOOLS = ("kubectl", "helm", "aws", "docker", "k3s")


@pytest.fixture(scope="module", autouse=True)
def host_tools(tmp_path_factory: pytest.TempPathFactory, monkeypatch_module: pytest.MonkeyPatch) -> Path:
    """Tools on the PATH that tell when somebody calls them."""
    folder = tmp_path_factory.mktemp("tools")
    for name in HOST_TOOLS:
        file = folder / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>"{folder}/called"\nexit 1\n')
        file.chmod(file.stat().st_mode | stat.S_IEXEC)
    monkeypatch_module.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def edit(project: Path, *changes: tuple[str, str]) -> None:
    text = project.read_text()
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    project.write_text(text)


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, Path]:
    """Copies of the examples, to be changed."""
    folder = tmp_path_factory.mktemp("projects")
    return {name: Path(shutil.copy(root / "projects" / f"{name}.yaml", folder)) for name in ("eks-odcr", "eks-rl")}


def of(aws: LocalAws, stack: str, kind: str) -> dict[str, str]:
    return {id: name for id, (found, name) in aws.resources(stack).items() if found == kind}


def cluster(aws: LocalAws, stack: str) -> dict[str, Any]:
    (name,) = of(aws, stack, "AWS::EKS::Cluster").values()
    return dict(aws.client("eks").describe_cluster(name=name)["cluster"])


def groups(aws: LocalAws, stack: str) -> dict[str, dict[str, Any]]:
    """Node groups by their label."""
    eks, name = aws.client("eks"), cluster(aws, stack)["name"]
    found = [
        eks.describe_nodegroup(clusterName=name, nodegroupName=one)["nodegroup"]
        for one in eks.list_nodegroups(clusterName=name)["nodegroups"]
    ]
    return {one["labels"]["fmblocks/node-group"]: one for one in found}


def add_ons(aws: LocalAws, stack: str) -> dict[str, str]:
    eks, name = aws.client("eks"), cluster(aws, stack)["name"]
    return {
        one: eks.describe_addon(clusterName=name, addonName=one)["addon"]["addonVersion"]
        for one in eks.list_addons(clusterName=name)["addons"]
    }


class TestReservation:
    """Kubernetes on a reservation that is there already."""

    TRAINING = "eks-odcr-TrainingStack"

    def test_one_command_deploys_it(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.deploy(projects["eks-odcr"])
        found = cluster(aws, self.TRAINING)
        assert (found["version"], found["accessConfig"]["authenticationMode"]) == ("1.35", "API")
        assert len(found["resourcesVpcConfig"]["subnetIds"]) == 2
        sizes = {name: one["scalingConfig"]["desiredSize"] for name, one in groups(aws, self.TRAINING).items()}
        assert sizes == {"gpu": 8, "system": 2}
        assert add_ons(aws, self.TRAINING)["kube-proxy"].startswith("v1.35.")
        eks = aws.client("eks")
        listed = eks.list_access_entries(clusterName=found["name"])["accessEntries"]
        assert "arn:aws:iam::111122223333:role/Platform" in listed
        bound = eks.list_pod_identity_associations(clusterName=found["name"])["associations"]
        assert {one["serviceAccount"] for one in bound} >= {"aws-node", "fsx-csi-controller-sa", "s3-csi-driver-sa"}
        # Pods reach the file system: its group lets the cluster's in.
        ssm = aws.client("ssm")
        lustre = ssm.get_parameter(Name="/fmblocks/eks-odcr/lustre/security-group-id")["Parameter"]["Value"]
        (group,) = aws.client("ec2").describe_security_groups(GroupIds=[lustre])["SecurityGroups"]
        peers = {pair["GroupId"] for rule in group["IpPermissions"] for pair in rule["UserIdGroupPairs"]}
        assert found["resourcesVpcConfig"]["clusterSecurityGroupId"] in peers

    def test_again_nothing_changes(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        assert aws.deploy(projects["eks-odcr"]).count("(no changes)") == 2

    def test_version_count_group_and_add_on_change_in_place(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        before = cluster(aws, self.TRAINING)
        kept = {name: one["nodegroupArn"] for name, one in groups(aws, self.TRAINING).items()}
        edit(
            projects["eks-odcr"],
            ('version: "1.35"', 'version: "1.36"'),
            (
                "    kueue: true\n",
                "    kueue: true\n    add_ons: [{name: aws-ebs-csi-driver, version: v1.50.0-eksbuild.1}]\n",
            ),
            ("count: 8", "count: 6"),
            ("capacity_gib: 9600", "capacity_gib: 12000"),  # the claim stays, however large the file system gets
            ("observability:", "    - {name: cpu, instance_type: m7i.4xlarge, count: 3}\nobservability:"),
        )
        aws.deploy(projects["eks-odcr"])
        found = cluster(aws, self.TRAINING)
        assert (found["arn"], found["version"]) == (before["arn"], "1.36")
        (lustre,) = aws.client("fsx").describe_file_systems()["FileSystems"]
        assert lustre["StorageCapacity"] == 12000
        after = groups(aws, self.TRAINING)
        assert {name: after[name]["nodegroupArn"] for name in kept} == kept
        assert {name: one["scalingConfig"]["desiredSize"] for name, one in after.items()} == {
            "cpu": 3,
            "gpu": 6,
            "system": 2,
        }
        assert {one["version"] for one in after.values()} == {"1.36"}
        assert add_ons(aws, self.TRAINING)["kube-proxy"].startswith("v1.36.")
        assert add_ons(aws, self.TRAINING)["aws-ebs-csi-driver"] == "v1.50.0-eksbuild.1"

    def test_eks_does_not_go_back(self, aws: LocalAws, projects: dict[str, Path], tmp_path: Path) -> None:
        back = tmp_path / "back.yaml"
        back.write_text(projects["eks-odcr"].read_text().replace('version: "1.36"', 'version: "1.35"'))
        said = aws.deploy(back, "TrainingStack", check=False)
        assert "Unsupported Kubernetes minor version update from 1.36 to 1.35" in said
        assert aws.status(self.TRAINING) == "UPDATE_ROLLBACK_COMPLETE"
        assert cluster(aws, self.TRAINING)["version"] == "1.36"

    def test_a_group_and_an_add_on_go(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        edit(
            projects["eks-odcr"],
            (EBS, ""),
            ("    - {name: cpu, instance_type: m7i.4xlarge, count: 3}\n", ""),
        )
        aws.deploy(projects["eks-odcr"])
        assert set(groups(aws, self.TRAINING)) == {"gpu", "system"}
        assert "aws-ebs-csi-driver" not in add_ons(aws, self.TRAINING)

    def test_it_goes_and_the_data_stays(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        name = cluster(aws, self.TRAINING)["name"]
        aws.destroy(projects["eks-odcr"], "TrainingStack")
        with pytest.raises(Exception, match="does not exist"):
            aws.status(self.TRAINING)
        assert name not in aws.client("eks").list_clusters()["clusters"]
        named = aws.client("ec2").describe_security_groups()["SecurityGroups"]
        assert not [one for one in named if one["GroupName"].startswith("eks-cluster-sg-")]
        assert aws.client("fsx").describe_file_systems()["FileSystems"]


class TestPostTraining:
    """Two groups on one fabric, one of a reservation that is made, one of a block to come, and nodes of Karpenter."""

    TRAINING = "eks-rl-TrainingStack"

    def test_it_deploys(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.deploy(projects["eks-rl"])
        found = groups(aws, self.TRAINING)
        sizes = {name: one["scalingConfig"] for name, one in found.items()}
        assert sizes == {
            "actor": {"minSize": 0, "maxSize": 4, "desiredSize": 4},
            "rollout": {"minSize": 0, "maxSize": 8, "desiredSize": 0},
            "system": {"minSize": 0, "maxSize": 3, "desiredSize": 3},
        }
        charts = of(aws, self.TRAINING, "Custom::AWSCDK-EKS-HelmChart").values()
        assert {one.rsplit("/", 1)[1] for one in charts} == {
            "karpenter",
            "karpenter-crd",
            "kuberay-operator",
            "kueue",
        }

    def test_the_block_fills_its_group(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        scheduler = aws.client("scheduler")
        found = [
            scheduler.get_schedule(Name=one["Name"], GroupName=one["GroupName"])
            for one in scheduler.list_schedules()["Schedules"]
            if "rollout" in one["Name"]
        ]
        asked = {one["ScheduleExpression"]: json.loads(one["Target"]["Input"]) for one in found}
        assert set(asked) == {"at(2027-01-11T11:30:00)", "at(2027-01-25T10:45:00)"}
        # What the schedule will ask, asked now: keys in the SDK's own spelling.
        start = asked["at(2027-01-11T11:30:00)"]
        name = groups(aws, self.TRAINING)["rollout"]["nodegroupName"]
        assert (start["ClusterName"], start["NodegroupName"]) == (cluster(aws, self.TRAINING)["name"], name)
        edit(projects["eks-rl"], ("launch: scheduled", "launch: now"))
        aws.deploy(projects["eks-rl"])
        assert groups(aws, self.TRAINING)["rollout"]["scalingConfig"]["desiredSize"] == 8

    def test_it_goes(self, aws: LocalAws, projects: dict[str, Path], host_tools: Path) -> None:
        aws.destroy(projects["eks-rl"], "TrainingStack")
        with pytest.raises(Exception, match="does not exist"):
            aws.status(self.TRAINING)
        called = host_tools / "called"
        assert not called.exists(), called.read_text()
