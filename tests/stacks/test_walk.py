"""Every accelerated type, bought every way: its interfaces, or the rule that refuses it."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_eks_v2 as eks

import fmblocks as fm
from fmblocks.catalog import InstanceType, instance_types
from tests.conftest import ROOT

CR = "cr-0123456789abcdef0"
ACCELERATED = {name: kind for name, kind in sorted(instance_types().items()) if kind.accelerator_count}
# Not in moto's EC2 data: cards, and those that get EFA. Sources: EC2 User Guide, *Maximize network bandwidth…* and
# *Specifications for Amazon EC2 accelerated computing instances*, as the catalogue names them.
TYPED: dict[str, tuple[int, list[int]]] = {
    "p6e-gb200.36xlarge": (17, [1, 5, 9, 13]),
}


def capacity(stack: cdk.Stack, mode: str) -> fm.ICapacity:
    match mode:
        case "spot":
            return fm.SpotCapacity()
        case "odcr":
            return fm.CapacityReservation.from_capacity_reservation_id(stack, "Reserved", capacity_reservation_id=CR)
        case "capacity_block":
            return fm.CapacityBlock(capacity_reservation_id=CR)
        case _:
            return fm.OnDemandCapacity()


@functools.cache
def described() -> dict[str, Any]:
    """What DescribeInstanceTypes answers; moto ships it, in the environment of the local AWS."""
    (file,) = ROOT.glob(".venv-local/lib/python3*/site-packages/moto/ec2/resources/instance_types.json.gz")
    with gzip.open(file) as data:
        found: dict[str, Any] = json.load(data)
    return found


def cards(name: str) -> tuple[int, list[int]]:
    """Network cards of a type, and those with EFA, as EC2 itself lists them."""
    if name in TYPED:
        return TYPED[name]
    network = described()[name]["NetworkInfo"]
    listed = network["NetworkCards"]
    with_efa = [card["NetworkCardIndex"] for card in listed if "efa" in card.get("InterfaceTypes", [])]
    assert len(with_efa) == network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    return network["MaximumNetworkCards"], with_efa


MODES = ["on_demand", "spot", "odcr", "capacity_block"]


@pytest.mark.parametrize("orchestrator", ["ec2", "eks", "pcs"])
@pytest.mark.parametrize("mode", MODES)
def test_every_accelerated_type(cdk_context: dict[str, Any], tmp_path: Path, mode: str, orchestrator: str) -> None:
    app = cdk.App(context={**cdk_context, "aws:cdk:disable-stack-trace": True}, outdir=str(tmp_path))
    stack = cdk.Stack(app, "S", env=cdk.Environment(account="111122223333", region="us-west-2"))
    network = fm.ClusterVpc(stack, "Network", availability_zones=["usw2-az2"])
    group = fm.EfaSecurityGroup(stack, "Efa", vpc=network.vpc)
    cluster = eks.Cluster.from_cluster_attributes(
        stack, "Cluster", cluster_name="mine", cluster_security_group_id="sg-0123456789abcdef0"
    )
    launches: dict[str, Callable[..., object]] = {
        "ec2": fm.EfaLaunchTemplate,
        "eks": functools.partial(fm.EksLaunchTemplate, cluster=cluster),
        "pcs": functools.partial(fm.PcsLaunchTemplate, vpc_subnet=network.primary_subnet),
    }
    launch = launches[orchestrator]
    bought = capacity(stack, mode)
    made = {}
    for name, kind in ACCELERATED.items():
        id = name.replace(".", "-")
        if mode == "capacity_block" and not kind.capacity_blocks:
            with pytest.raises(fm.FindingsError, match="CB-02"):
                launch(stack, id, instance_type=name, security_groups=[group], capacity=bought)
            stack.node.try_remove_child(id)
            continue
        made[id] = kind
        launch(stack, id, instance_type=name, security_groups=[group], capacity=bought)
    assert len(made) >= 10
    app.synth()
    found = json.loads((tmp_path / "S.template.json").read_text())["Resources"].values()
    templates = {
        one["Properties"]["LaunchTemplateData"]["InstanceType"]: one["Properties"]["LaunchTemplateData"]
        for one in found
        if one["Type"] == "AWS::EC2::LaunchTemplate"
    }
    assert set(templates) == {kind.name for kind in made.values()}
    for kind in made.values():
        check(kind, templates[kind.name], mode, orchestrator)


def check(kind: InstanceType, data: dict[str, Any], mode: str, orchestrator: str) -> None:
    total, with_efa = cards(kind.name)
    places = [(one["NetworkCardIndex"], one["DeviceIndex"]) for one in data["NetworkInterfaces"]]
    kinds = dict(zip(places, (one["InterfaceType"] for one in data["NetworkInterfaces"]), strict=True))
    assert len(set(places)) == len(places)
    assert all(card < total and device in (0, 1) for card, device in places)
    if orchestrator == "pcs" and not kind.name.startswith("p6e-gb200."):
        # PCS-08: efa at card 0, device 0, and at device 1 of every further card; a card without EFA stays plain.
        assert kinds[0, 0] == ("efa" if 0 in with_efa else "interface")
        assert sorted(place for place, type in kinds.items() if type == "efa") == [
            (card, 1 if card else 0) for card in with_efa
        ]
        assert set(kinds.values()) <= {"efa", "interface"}
    else:
        assert kinds[0, 0] == "interface"
        assert sorted(card for (card, _), type in kinds.items() if type == "efa-only") == with_efa
        assert [type for type in kinds.values() if type != "efa-only"] == ["interface"]
    market = {"capacity_block": "capacity-block"}.get(mode)
    if orchestrator == "ec2" and mode == "spot":  # the others buy it themselves
        market = "spot"
    assert data.get("InstanceMarketOptions", {}).get("MarketType") == market
    target = data.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget")
    assert target == ({"CapacityReservationId": CR} if mode in ("odcr", "capacity_block") else None)
    assert "Placement" not in data
    # What belongs to whoever starts the nodes, and is refused or ignored in the template.
    assert ("IamInstanceProfile" in data) == (orchestrator == "ec2")
    assert ("ImageId" in data) == (orchestrator != "eks")
    assert all(("SubnetId" in one) == (orchestrator == "pcs") for one in data["NetworkInterfaces"])
    assert "SecurityGroupIds" not in data
    assert len(data["NetworkInterfaces"][0]["Groups"]) == (2 if orchestrator == "eks" else 1)
