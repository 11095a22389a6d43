"""Zones that come, go and come back, and networks that are opened and closed; none of it touches another subnet."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.local.conftest import LocalAws

pytestmark = pytest.mark.enable_socket

PROJECT = """\
name: zones
account: "111122223333"
region: us-west-2
network: {{availability_zones: [{zones}], primary_availability_zone: usw2-az2}}
storage: {{lustre: {{deployment_type: scratch_2, capacity_gib: 1200}}}}
"""


def test_zones_come_and_go(aws: LocalAws, tmp_path: Path) -> None:
    file = tmp_path / "zones.yaml"

    def deploy(*zones: str) -> dict[str, str]:
        file.write_text(PROJECT.format(zones=", ".join(zones)))
        aws.deploy(file, "FoundationStack")
        return {
            logical: id
            for logical, (kind, id) in aws.resources("zones-FoundationStack").items()
            if kind[10:] == "Subnet"
        }

    two = deploy("usw2-az1", "usw2-az2")
    three = deploy("usw2-az3", "usw2-az2", "usw2-az1")
    assert len(three) == 6
    assert two.items() <= three.items()
    without = deploy("usw2-az3", "usw2-az2")
    assert without.items() <= three.items()
    assert len(without) == 4
    again = deploy("usw2-az2", "usw2-az1", "usw2-az3")
    assert without.items() <= again.items()
    assert len(again) == 6


def test_a_closed_network_is_opened_and_closed(aws: LocalAws, tmp_path: Path, root: Path) -> None:
    file = Path(shutil.copy(root / "projects" / "closed-p5.yaml", tmp_path))
    said = aws.deploy(file)
    assert "TrainingStack.ClusterArn = " in said
    foundation = "closed-pretrain-FoundationStack"
    closed = aws.resources(foundation)
    kinds = [kind for kind, _ in closed.values()]
    assert kinds.count("AWS::EC2::VPCEndpoint") == 14
    assert not {"AWS::EC2::NatGateway", "AWS::EC2::InternetGateway"} & set(kinds)
    vpc = next(id for kind, id in closed.values() if kind == "AWS::EC2::VPC")
    found = aws.client("ec2").describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["VpcEndpoints"]
    assert {one["VpcEndpointType"] for one in found} == {"Gateway", "Interface"}
    groups = aws.client("ec2").describe_security_groups(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["SecurityGroups"]
    (efa,) = (one for one in groups if one["Description"].startswith("EFA fabric"))
    ranges = {item["CidrIp"]: rule["IpProtocol"] for rule in efa["IpPermissionsEgress"] for item in rule["IpRanges"]}
    assert ranges == {"10.40.0.0/16": "-1", "0.0.0.0/0": "tcp"}

    text = file.read_text()
    file.write_text(text.replace("  nat_gateways: 0\n", ""))
    aws.deploy(file, "FoundationStack")
    opened = aws.resources(foundation)
    kept = {id: one for id, one in closed.items() if one[0] in ("AWS::EC2::Subnet", "AWS::FSx::FileSystem")}
    assert kept.items() <= opened.items()
    assert "AWS::EC2::NatGateway" in {kind for kind, _ in opened.values()}
    file.write_text(text)
    aws.deploy(file, "FoundationStack")
    assert kept.items() <= aws.resources(foundation).items()
