"""Failures that happened to others on EC2, each against the template of a project that asks for the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fmblocks.catalog import instance_types
from tests.stacks.conftest import Synthesize, Synthesized, of_type

CR = "cr-0123456789abcdef0"
HEAD = """\
# valid at 2026-12-15
name: demo
account: "111122223333"
region: us-west-2
tags: {CostCenter: "42"}
network: {availability_zones: [usw2-az2]}
storage: {lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}}
training:
  orchestrator: ec2
  node_groups:
"""
Ec2 = Callable[..., Synthesized]


@pytest.fixture(scope="module")
def ec2(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Ec2:
    """A project with one node group, from the lines that a case gives it."""

    def make(kind: str = "p5.48xlarge", *lines: str) -> Synthesized:
        file = tmp_path_factory.mktemp("case") / "project.yaml"
        group = ["- name: gpu", f"  instance_type: {kind}", "  count: 2", *(f"  {line}" for line in lines)]
        file.write_text(HEAD + "".join(f"    {line}\n" for line in group))
        return synthesize(file)

    return make


@pytest.fixture(scope="module")
def p5(ec2: Ec2) -> Synthesized:
    return ec2()


def launch(found: Synthesized) -> dict[str, Any]:
    (template,) = of_type(found.training, "AWS::EC2::LaunchTemplate").values()
    return dict(template["Properties"]["LaunchTemplateData"])


def group(found: Synthesized) -> dict[str, Any]:
    (fleet,) = of_type(found.training, "AWS::AutoScaling::AutoScalingGroup").values()
    return dict(fleet)


def new_placement_groups(found: Synthesized) -> int:
    return sum(len(of_type(template, "AWS::EC2::PlacementGroup")) for template in found.templates.values())


def test_the_group_with_rules_to_itself_is_on_every_interface(p5: Synthesized) -> None:
    """C01, C13: EFA passes a group only that lets itself in and out, by its own id."""
    foundation = p5.foundation
    itself: dict[str, set[str]] = {"Ingress": set(), "Egress": set()}
    for direction, peer in (("Ingress", "SourceSecurityGroupId"), ("Egress", "DestinationSecurityGroupId")):
        for rule in of_type(foundation, f"AWS::EC2::SecurityGroup{direction}").values():
            told = rule["Properties"]
            if told["IpProtocol"] == "-1" and told[peer] == told["GroupId"]:
                itself[direction].add(told["GroupId"]["Fn::GetAtt"][0])
    (fabric,) = itself["Ingress"] & itself["Egress"]
    (published,) = [
        one["Properties"]["Name"]
        for one in of_type(foundation, "AWS::SSM::Parameter").values()
        if fabric in json.dumps(one["Properties"]["Value"])
    ]
    (read,) = [id for id, one in p5.training["Parameters"].items() if one["Default"] == published]
    for interface in launch(p5)["NetworkInterfaces"]:
        assert {"Ref": read} in interface["Groups"]


def test_places_are_told_and_unique(p5: Synthesized, ec2: Ec2) -> None:
    """C04, C17: two devices at most per card, and neither index left to EC2."""
    for found, cards in ((p5, 32), (ec2("p5en.48xlarge"), 16)):
        interfaces = launch(found)["NetworkInterfaces"]
        places = [(one["NetworkCardIndex"], one["DeviceIndex"]) for one in interfaces]
        assert len(set(places)) == len(places)
        assert {device for _, device in places} <= {0, 1}
        assert {card for card, _ in places} == set(range(cards))
        assert places[0] == (0, 0)


@pytest.mark.parametrize(
    ("kind", "interfaces"),
    [
        ("p4d.24xlarge", 4),
        ("p5.4xlarge", 1),
        ("p5.48xlarge", 32),
        ("p5en.48xlarge", 16),
        ("p6-b200.48xlarge", 8),
        ("p6-b300.48xlarge", 16),
        ("g6e.48xlarge", 4),
        ("trn2.48xlarge", 16),
    ],
)
def test_the_fabric_follows_the_type(ec2: Ec2, kind: str, interfaces: int) -> None:
    """C06: neither the number of cards nor always 32."""
    assert instance_types()[kind].max_efa_interfaces == interfaces
    with_efa = [one for one in launch(ec2(kind))["NetworkInterfaces"] if one["InterfaceType"] != "interface"]
    assert len(with_efa) == interfaces


def test_the_first_interface_has_an_address_and_none_is_left_behind(p5: Synthesized) -> None:
    """C07, C11."""
    first, *others = launch(p5)["NetworkInterfaces"]
    assert first["InterfaceType"] in ("interface", "efa")
    assert others
    assert all(one["DeleteOnTermination"] is True for one in (first, *others))
    assert all("AssociatePublicIpAddress" not in one for one in others)


def test_further_groups_are_on_every_interface(ec2: Ec2) -> None:
    """C12: groups beside interfaces are refused by EC2."""
    data = launch(ec2("p5.48xlarge", "extra_security_group_ids: [sg-0bbbbbbbbbbbbbbbb]"))
    assert "SecurityGroupIds" not in data
    assert "SecurityGroups" not in data
    for interface in data["NetworkInterfaces"]:
        assert "sg-0bbbbbbbbbbbbbbbb" in interface["Groups"]
        assert len(interface["Groups"]) == 2


def test_an_existing_placement_group_is_used(ec2: Ec2) -> None:
    """C24."""
    found = ec2("p5.48xlarge", "placement: {mode: cluster, group_name: my-existing-pg}")
    assert launch(found)["Placement"]["GroupName"] == "my-existing-pg"
    assert new_placement_groups(found) == 0


def test_on_demand_is_kept_close_together(p5: Synthesized) -> None:
    assert launch(p5)["Placement"]["GroupName"]
    assert new_placement_groups(p5) == 1


@pytest.mark.parametrize(
    "capacity",
    [
        f"{{mode: odcr, capacity_reservation_id: {CR}}}",
        f"{{mode: capacity_block, capacity_reservation_id: {CR}, availability_zone: usw2-az2, "
        "start: 2027-01-11T11:30:00Z, end: 2027-01-18T11:30:00Z, launch: scheduled}",
    ],
    ids=["a reservation made elsewhere", "a Capacity Block"],
)
def test_reserved_capacity_is_used_and_not_starved(ec2: Ec2, capacity: str) -> None:
    """C22, C29, C44: a placement group that the reservation is not in would keep its nodes out of it."""
    found = ec2("p5.48xlarge", f"capacity: {capacity}")
    assert "Placement" not in launch(found)
    assert new_placement_groups(found) == 0
    assert json.dumps(found.templates["TrainingStack"]).count(CR) == 1
    assert CR not in json.dumps(found.foundation)
    assert "capacity-reservation/" not in json.dumps(found.templates)  # whose it is, is not told: it may be shared


def test_a_block_is_asked_for_as_one_and_left_before_its_end(ec2: Ec2) -> None:
    """C28, C38."""
    block = f"mode: capacity_block, capacity_reservation_id: {CR}, availability_zone: usw2-az2"
    times = "start: 2027-01-11T11:30:00Z, end: 2027-01-18T11:30:00Z, launch: scheduled"
    found = ec2("p5.48xlarge", f"capacity: {{{block}, {times}}}")
    data = launch(found)
    assert data["InstanceType"] == "p5.48xlarge"
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": CR}}
    actions = [one["Properties"] for one in of_type(found.training, "AWS::AutoScaling::ScheduledAction").values()]
    (last,) = [one for one in actions if one["DesiredCapacity"] == 0]
    (first,) = [one for one in actions if one["DesiredCapacity"] == 2]
    assert last["MinSize"] == 0
    assert last["StartTime"] < "2027-01-18T11:00:00Z"
    assert first["StartTime"] >= "2027-01-11T11:30:00Z"
    assert all("EndTime" not in one and "Recurrence" not in one for one in actions)
    assert group(found)["Properties"]["DesiredCapacity"] == "0"


@pytest.mark.parametrize(
    ("create", "said"),
    [
        ("{match: targeted, end: 2027-03-01T00:00:00Z}", {"EndDateType": "limited", "EndDate": "2027-03-01T00:00:00Z"}),
        ("{match: targeted}", {"EndDateType": "unlimited"}),
    ],
)
def test_a_reservation_is_made_to_be_used(ec2: Ec2, create: str, said: dict[str, str]) -> None:
    """C25, C41, C42: targeted, named by the launch template, in the nodes' placement group; an end with its type."""
    found = ec2("p5.48xlarge", f"capacity: {{mode: odcr, create: {create}}}")
    assert found.capacity is not None
    ((made, reservation),) = of_type(found.capacity, "AWS::EC2::CapacityReservation").items()
    told = reservation["Properties"]
    assert told["InstanceMatchCriteria"] == "targeted"
    assert {key: value for key, value in told.items() if key.startswith("EndDate")} == said
    names = {
        one["Properties"]["Name"]: one["Properties"]["Value"]
        for one in of_type(found.capacity, "AWS::SSM::Parameter").values()
    }
    target = launch(found)["CapacityReservationSpecification"]["CapacityReservationTarget"]["CapacityReservationId"]
    assert names[found.training["Parameters"][target["Ref"]]["Default"]] == {"Fn::GetAtt": [made, "Id"]}
    ((stood_in, _),) = of_type(found.capacity, "AWS::EC2::PlacementGroup").items()
    assert stood_in in json.dumps(told["PlacementGroupArn"])
    named = launch(found)["Placement"]["GroupName"]
    assert names[found.training["Parameters"][named["Ref"]]["Default"]] == {"Fn::GetAtt": [stood_in, "GroupName"]}
    assert not of_type(found.training, "AWS::EC2::PlacementGroup")


def test_a_fleet_stands_in_one_zone_and_says_what_it_costs(p5: Synthesized) -> None:
    """C15, C125, C126, C127: no rebalancing, no launch configuration, the project's tags on all that is billed."""
    fleet = group(p5)["Properties"]
    assert len(fleet["VPCZoneIdentifier"]) == 1
    ((used, _),) = of_type(p5.training, "AWS::EC2::LaunchTemplate").items()
    assert fleet["LaunchTemplate"]["LaunchTemplateId"] == {"Ref": used}  # C15: not one beside it
    for template in p5.templates.values():
        assert not of_type(template, "AWS::AutoScaling::LaunchConfiguration")
    carried = {one["Key"]: (one["Value"], one["PropagateAtLaunch"]) for one in fleet["Tags"]}
    assert carried["CostCenter"] == ("42", True)
    told = {
        one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]}
        for one in launch(p5)["TagSpecifications"]
    }
    assert set(told) >= {"instance", "volume", "network-interface"}
    for tags in told.values():
        assert tags["CostCenter"] == "42"
        assert "demo" in tags.values()
