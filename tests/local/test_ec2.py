"""The life of fleets on EC2: deployed, changed, destroyed and deployed again on the same reservation.

The tests of each class are one story, told in order.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.local.conftest import LocalAws

pytestmark = pytest.mark.enable_socket


def edit(project: Path, old: str, new: str) -> None:
    text = project.read_text()
    assert text.count(old) == 1
    project.write_text(text.replace(old, new))


def fleets(aws: LocalAws, stack: str) -> dict[str, dict[str, Any]]:
    """The fleets of a stack, by the group's name."""
    found = aws.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    ids = {id for kind, id in aws.resources(stack).values() if kind == "AWS::AutoScaling::AutoScalingGroup"}
    mine = [one for one in found if one["AutoScalingGroupName"] in ids]
    return {one["AutoScalingGroupName"].split("Group")[1].split("Fleet")[0]: one for one in mine}


def of(aws: LocalAws, stack: str, *kinds: str) -> set[str]:
    return {id for found, id in aws.resources(stack).values() if found in kinds}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, Path]:
    """Copies of the examples, to be changed."""
    folder = tmp_path_factory.mktemp("projects")
    names = ("ec2-odcr", "ec2-capacity-block")
    return {name: Path(shutil.copy(root / "projects" / f"{name}.yaml", folder)) for name in names}


class TestReservation:
    """A targeted reservation that is created in a placement group."""

    CAPACITY, TRAINING = "ec2-odcr-CapacityStack", "ec2-odcr-TrainingStack"

    def test_one_command_deploys_all_three(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.deploy(projects["ec2-odcr"])
        assert {aws.status(f"ec2-odcr-{name}Stack") for name in ("Foundation", "Capacity", "Training")} == {
            "CREATE_COMPLETE"
        }
        found = fleets(aws, self.TRAINING)
        assert {name: one["DesiredCapacity"] for name, one in found.items()} == {"gpu": 4, "login": 1}
        (reservation,) = of(aws, self.CAPACITY, "AWS::EC2::CapacityReservation")
        (group,) = of(aws, self.CAPACITY, "AWS::EC2::PlacementGroup")
        ssm = aws.client("ssm")
        told = {
            key: ssm.get_parameter(Name=f"/fmblocks/ec2-odcr/capacity/gpu/{key}")["Parameter"]["Value"]
            for key in ("reservation-id", "placement-group")
        }
        assert told == {"reservation-id": reservation, "placement-group": group}
        profile = ssm.get_parameter(Name="/fmblocks/ec2-odcr/launch-profile/gpu")["Parameter"]["Value"]
        assert json.loads(profile)["NCCL_SOCKET_IFNAME"].startswith("^lo")

    def test_again_nothing_changes(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        assert aws.deploy(projects["ec2-odcr"]).count("(no changes)") == 3

    def test_count_image_and_tags_change_in_place(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        before = {name: one["AutoScalingGroupARN"] for name, one in fleets(aws, self.TRAINING).items()}
        kept = of(aws, self.CAPACITY, "AWS::EC2::CapacityReservation") | of(
            aws, self.CAPACITY, "AWS::EC2::PlacementGroup"
        )
        project = projects["ec2-odcr"]
        edit(project, "count: 4", "count: 6\n      image: ami-0123456789abcdef0")
        edit(project, "region: us-west-2", "region: us-west-2\ntags: {team: research}")
        aws.deploy(project)
        found = fleets(aws, self.TRAINING)
        assert {name: one["AutoScalingGroupARN"] for name, one in found.items()} == before
        assert (found["gpu"]["MaxSize"], found["gpu"]["LaunchTemplate"]["Version"]) == (6, "2")
        assert {tag["Key"] for tag in found["gpu"]["Tags"]} >= {"team", "fmblocks:project"}
        # Tags are create-only on placement groups: a replaced one would fail under running nodes.
        assert kept == of(aws, self.CAPACITY, "AWS::EC2::CapacityReservation", "AWS::EC2::PlacementGroup")

    def test_training_goes_and_comes_back_on_the_same_reservation(
        self, aws: LocalAws, projects: dict[str, Path]
    ) -> None:
        kept = of(aws, self.CAPACITY, "AWS::EC2::CapacityReservation")
        aws.destroy(projects["ec2-odcr"], "TrainingStack")
        assert aws.status(self.CAPACITY) == "UPDATE_COMPLETE"
        aws.deploy(projects["ec2-odcr"])
        assert of(aws, self.CAPACITY, "AWS::EC2::CapacityReservation") == kept
        assert aws.status(self.TRAINING) == "CREATE_COMPLETE"

    def test_capacity_goes_last_and_only_unlocked(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.destroy(projects["ec2-odcr"], "TrainingStack")
        refused = aws.destroy(projects["ec2-odcr"], "CapacityStack", check=False)
        assert refused.returncode != 0
        assert "TerminationProtection" in refused.stdout or "termination protection" in refused.stdout.lower()
        aws.unlock(self.CAPACITY)
        aws.destroy(projects["ec2-odcr"], "CapacityStack")
        with pytest.raises(Exception, match="does not exist"):
            aws.status(self.CAPACITY)


class TestBlock:
    """A Capacity Block that is to come."""

    TRAINING = "ec2-capacity-block-TrainingStack"

    def test_the_fleet_is_empty_until_the_block_begins(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.deploy(projects["ec2-capacity-block"])
        (fleet,) = fleets(aws, self.TRAINING).values()
        assert (fleet["MinSize"], fleet["MaxSize"], fleet["DesiredCapacity"]) == (0, 8, 0)
        assert len(of(aws, self.TRAINING, "AWS::AutoScaling::ScheduledAction")) == 2
        assert not of(aws, self.TRAINING, "AWS::EC2::PlacementGroup")

    def test_in_mid_block_tags_and_image_reset_nothing(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        (fleet,) = fleets(aws, self.TRAINING).values()
        name = fleet["AutoScalingGroupName"]
        template = aws.client("cloudformation").get_template(StackName=self.TRAINING)["TemplateBody"]
        (group,) = [
            one for one in template["Resources"].values() if one["Type"] == "AWS::AutoScaling::AutoScalingGroup"
        ]
        # What keeps the sizes on AWS; the local one puts the template's back.
        assert group["UpdatePolicy"]["AutoScalingScheduledAction"] == {"IgnoreUnmodifiedGroupSizeProperties": True}
        edit(projects["ec2-capacity-block"], "region: us-west-2", "region: us-west-2\ntags: {team: research}")
        edit(projects["ec2-capacity-block"], "count: 8", "count: 8\n      image: ami-0123456789abcdef0")
        aws.deploy(projects["ec2-capacity-block"])
        (fleet,) = fleets(aws, self.TRAINING).values()
        assert (fleet["AutoScalingGroupName"], fleet["LaunchTemplate"]["Version"]) == (name, "2")

    def test_once_it_has_begun_the_count_changes_with_launch_now(
        self, aws: LocalAws, projects: dict[str, Path]
    ) -> None:
        edit(projects["ec2-capacity-block"], "launch: scheduled", "launch: now")
        edit(projects["ec2-capacity-block"], "count: 8", "count: 6")
        aws.deploy(projects["ec2-capacity-block"])
        (fleet,) = fleets(aws, self.TRAINING).values()
        assert (fleet["MaxSize"], fleet["DesiredCapacity"]) == (6, 6)
        assert len(of(aws, self.TRAINING, "AWS::AutoScaling::ScheduledAction")) == 1

    def test_it_goes(self, aws: LocalAws, projects: dict[str, Path]) -> None:
        aws.destroy(projects["ec2-capacity-block"], "TrainingStack")
        with pytest.raises(Exception, match="does not exist"):
            aws.status(self.TRAINING)
