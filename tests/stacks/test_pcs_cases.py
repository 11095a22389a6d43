"""What PCS takes and what it refuses, against the templates of projects."""

from __future__ import annotations

import email
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.stacks.conftest import Synthesize, Synthesized, of_type

CR = "cr-0123456789abcdef0"
HEAD = """\
# valid at 2026-12-15
name: demo
account: "111122223333"
region: us-west-2
tags: {CostCenter: "42"}
network: {availability_zones: [usw2-az2]}
storage:
  lustre: {deployment_type: persistent_2, capacity_gib: 1200, throughput_mbps_per_tib: 125}
  home: {capacity_gib: 64, throughput_capacity_mbps: 160}
training:
  orchestrator: pcs
  SLURM
  node_groups:
    - {name: login, role: login, instance_type: m7i.xlarge, count: 1}
"""
Pcs = Callable[..., Synthesized]


@pytest.fixture(scope="module")
def pcs(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Pcs:
    """A project with one compute group, from the lines that a case gives it."""

    def make(kind: str = "p5.48xlarge", *lines: str, count: int = 2, slurm: str = "slurm: {}") -> Synthesized:
        file = tmp_path_factory.mktemp("case") / "project.yaml"
        group = ["- name: gpu", f"  instance_type: {kind}", f"  count: {count}", *(f"  {line}" for line in lines)]
        file.write_text(HEAD.replace("SLURM", slurm) + "".join(f"    {line}\n" for line in group))
        return synthesize(file)

    return make


@pytest.fixture(scope="module")
def p5(pcs: Pcs) -> Synthesized:
    return pcs()


def of(found: Synthesized, kind: str, name: str | None = None) -> dict[str, Any]:
    listed = [one["Properties"] for one in of_type(found.training, f"AWS::PCS::{kind}").values()]
    (mine,) = [one for one in listed if name is None or one["Name"] == name]
    return dict(mine)


def launch(found: Synthesized, name: str = "gpu") -> dict[str, Any]:
    used = of(found, "ComputeNodeGroup", name)["CustomLaunchTemplate"]
    id = used["TemplateId"]["Ref"]
    assert used["Version"] == {"Fn::GetAtt": [id, "LatestVersionNumber"]}
    return dict(found.training["Resources"][id]["Properties"]["LaunchTemplateData"])


def test_one_group_serves_controller_nodes_and_fabric(p5: Synthesized) -> None:
    """C01, C13: the group that is open to itself is on the controller and on every interface."""
    (fabric,) = [id for id, one in p5.training["Parameters"].items() if "efa-security-group-id" in one["Default"]]
    assert of(p5, "Cluster")["Networking"]["SecurityGroupIds"] == [{"Ref": fabric}]
    for interface in launch(p5)["NetworkInterfaces"]:
        assert interface["Groups"] == [{"Ref": fabric}]
    assert len(of(p5, "Cluster")["Networking"]["SubnetIds"]) == 1


def test_the_role_is_where_pcs_looks_for_it(p5: Synthesized) -> None:
    """PCS-05."""
    profile = of(p5, "ComputeNodeGroup", "gpu")["IamInstanceProfileArn"]["Fn::GetAtt"][0]
    told = p5.training["Resources"][profile]["Properties"]
    assert told["Path"] == "/aws-pcs/"
    (role,) = told["Roles"]
    made = p5.training["Resources"][role["Ref"]]["Properties"]
    assert made["Path"] == "/aws-pcs/"
    assert "AWSPCSComputeNodePolicy" in json.dumps(made["ManagedPolicyArns"])
    assert "IamInstanceProfile" not in launch(p5)


def test_nodes_boot_a_script_of_several_parts(p5: Synthesized) -> None:
    """PCS adds its own part; a script that is none of several is refused."""
    joined = launch(p5)["UserData"]["Fn::Base64"]["Fn::Join"][1]
    parsed = email.message_from_string("".join(part if isinstance(part, str) else "x" for part in joined))
    assert parsed.get_content_type() == "multipart/mixed"
    (script,) = [part for part in parsed.walk() if part.get_content_type() == "text/x-shellscript"]
    text = str(script.get_payload())
    assert "FMBLOCKS_LUSTRE_PATH=/fsx" in text
    assert "FMBLOCKS_HOME_PATH=/home" in text


def test_groups_queues_and_sizes(p5: Synthesized, pcs: Pcs) -> None:
    assert of(p5, "Cluster")["Size"] == "SMALL"
    assert of(pcs(count=40), "Cluster")["Size"] == "MEDIUM"
    queue = of(p5, "Queue")
    assert queue["Name"] == "gpu"
    assert queue["SlurmConfiguration"]["SlurmCustomSettings"] == [{"ParameterName": "Default", "ParameterValue": "YES"}]
    group = of(p5, "ComputeNodeGroup", "gpu")
    assert group["ScalingConfiguration"] == {"MaxInstanceCount": 2, "MinInstanceCount": 2}
    coming = of(pcs("p5.48xlarge", "min_count: 0", "capacity: spot"), "ComputeNodeGroup", "gpu")
    assert coming["ScalingConfiguration"] == {"MaxInstanceCount": 2, "MinInstanceCount": 0}
    assert coming["PurchaseOption"] == "SPOT"


def test_a_block_is_asked_for_as_one(pcs: Pcs) -> None:
    """C22, C28, C39: not before it begins, and in no placement group."""
    block = f"mode: capacity_block, capacity_reservation_id: {CR}, availability_zone: usw2-az2"
    times = "start: 2027-01-11T11:30:00Z, end: 2027-01-18T11:30:00Z"
    found = pcs("p5.48xlarge", f"capacity: {{{block}, {times}, launch: scheduled}}")
    data, group = launch(found), of(found, "ComputeNodeGroup", "gpu")
    assert group["PurchaseOption"] == "CAPACITY_BLOCK"
    assert group["ScalingConfiguration"] == {"MaxInstanceCount": 2, "MinInstanceCount": 0}
    assert group["InstanceConfigs"] == [{"InstanceType": "p5.48xlarge"}]
    assert data["InstanceType"] == "p5.48xlarge"
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["CapacityReservationSpecification"] == {"CapacityReservationTarget": {"CapacityReservationId": CR}}
    assert "Placement" not in data
    now = pcs("p5.48xlarge", f"capacity: {{{block}, {times}, launch: now}}")
    assert of(now, "ComputeNodeGroup", "gpu")["ScalingConfiguration"]["MinInstanceCount"] == 2


def test_a_reservation_is_named_once(pcs: Pcs) -> None:
    """C29."""
    found = pcs("p5.48xlarge", f"capacity: {{mode: odcr, capacity_reservation_id: {CR}}}")
    assert json.dumps(found.training).count(CR) == 1
    assert of(found, "ComputeNodeGroup", "gpu")["PurchaseOption"] == "ONDEMAND"
    assert "InstanceMarketOptions" not in launch(found)


def test_accounting_rest_and_metrics(p5: Synthesized, pcs: Pcs) -> None:
    told = of(p5, "Cluster")["SlurmConfiguration"]
    assert told["Accounting"] == {"Mode": "STANDARD"}
    assert "SlurmRest" not in told
    names = {one["ParameterName"]: one["ParameterValue"] for one in told["SlurmCustomSettings"]}
    assert names == {"CommunicationParameters": "enable_http", "MetricsType": "metrics/openmetrics"}
    older = of(
        pcs(
            slurm='slurm: {version: "25.05", rest_api: true, accounting: false, custom_settings: {PreemptMode: "OFF"}}'
        ),
        "Cluster",
    )
    assert older["Scheduler"] == {"Type": "SLURM", "Version": "25.05"}
    assert older["SlurmConfiguration"] == {
        "SlurmCustomSettings": [{"ParameterName": "PreemptMode", "ParameterValue": "OFF"}],
        "SlurmRest": {"Mode": "STANDARD"},
    }


def test_tags_reach_what_is_billed(p5: Synthesized) -> None:
    """C127."""
    for kind in ("Cluster", "Queue"):
        assert of(p5, kind)["Tags"]["CostCenter"] == "42"
    for one in launch(p5)["TagSpecifications"]:
        assert {"Key": "CostCenter", "Value": "42"} in one["Tags"]
