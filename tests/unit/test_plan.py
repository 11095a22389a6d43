"""What a project adds up to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fmblocks.cli.main import app
from fmblocks.plan import Plan, Quota, make_plan
from fmblocks.project import Project, primary_subnet_size, storage_addresses


def plan_of(file: Path, **given: Any) -> Plan:
    project = Project.load(file).project
    return make_plan(
        project,
        primary_subnet_size=primary_subnet_size(project.network),
        storage_addresses=storage_addresses(project.storage),
        **given,
    )


def test_the_reference_project(root: Path) -> None:
    sums = plan_of(root / "projects" / "slurm-p5en.yaml", parameters=70e9, dataset_tib=10)
    assert (sums.nodes, sums.accelerators, sums.hbm_gib) == (18, 128, 16 * 1128)
    assert sums.dense_pflops["bf16"] == pytest.approx(128 * 0.989)
    assert sums.dense_pflops["fp4"] is None  # no figure in the catalogue
    assert sums.efa_gbps_per_node == {"gpu": 3200}
    assert sums.efa_gbps == 51200
    assert (sums.addresses_needed, sums.addresses_usable) == (
        18 + 1 + 2 + 3,
        2**15 - 5,
    )  # metadata, two object servers, home
    assert sums.network_interfaces == 16 * 17 + 2
    assert sums.lustre_mbps == 19200 / 1024 * 500
    assert sums.metadata_iops == 12000
    assert sums.checkpoint_gb == 980
    assert sums.checkpoint_seconds == pytest.approx(980e9 / 9375e6)
    assert sums.staging_seconds == pytest.approx(10 * 2**40 / 9375e6)
    assert Quota("SageMaker: ml.p5en.48xlarge for cluster usage", None, 16) in sums.quotas
    assert sums.quotas[-1].code == "L-DF5E4CA3"
    assert "gpu: 16 × p5en.48xlarge, paid with the training plan" in sums.bills_while_idle
    assert [id for id, _ in sums.advice] == ["TP-05", "TP-09", "DRA-09"]


def test_what_is_not_known_is_not_guessed(root: Path) -> None:
    sums = plan_of(root / "projects" / "trial-g6.yaml", parameters=7e9)
    assert sums.accelerators == 2
    assert sums.dense_pflops == {"bf16": None, "fp8": None, "fp4": None}
    assert sums.hbm_gib is None
    assert sums.lustre_mbps is None  # scratch names no throughput
    assert sums.checkpoint_gb == 98
    assert sums.checkpoint_seconds is None
    assert sums.efa_gbps_per_node == {}
    assert sums.advice == ()


def test_quotas_are_those_of_who_runs_the_nodes(project_file: Callable[[str], Path]) -> None:
    sums = plan_of(
        project_file(
            "name: own-nodes\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\n"
            "training:\n  orchestrator: ec2\n  node_groups:\n"
            "    - {name: gpu, instance_type: p5.48xlarge, count: 2}\n"
            "    - {name: cheap, instance_type: p5.48xlarge, count: 1, capacity: spot}\n"
            "    - name: block\n      instance_type: p5.48xlarge\n      count: 4\n"
            "      capacity: {mode: capacity_block, capacity_reservation_id: cr-0123456789abcdef0}\n"
            "    - name: odcr\n      instance_type: p5.48xlarge\n      count: 3\n"
            "      capacity: {mode: odcr, capacity_reservation_id: cr-0123456789abcdef1}\n"
        )
    )
    assert [(quota.name, quota.needed) for quota in sums.quotas[:-1]] == [
        ("EC2: vCPUs of the On-Demand quota that p5 is in", 960),
        ("EC2: vCPUs of the Spot quota that p5 is in", 192),
    ]
    assert "block: 4 × p5.48xlarge, paid with the Capacity Block" in sums.bills_while_idle
    assert "odcr: 3 × p5.48xlarge, with the reservation, which bills used or not" in sums.bills_while_idle


def test_own_clusters_count_what_they_bring(project_file: Callable[[str], Path]) -> None:
    text = (
        "name: own-nodes\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az1, usw2-az2], "
        "primary_availability_zone: usw2-az2}\naccess: {admins: ['arn:aws:iam::111122223333:role/a']}\n"
        "training:\n  orchestrator: eks\n  node_groups:\n"
        "    - {name: gpu, instance_type: p5.48xlarge, count: 2}\n"
        "    - {name: cheap, instance_type: m7i.xlarge, count: 9, capacity: spot, provisioned_by: karpenter}\n"
        "    - name: block\n      instance_type: p5.48xlarge\n      count: 4\n"
        "      capacity: {mode: capacity_block, capacity_reservation_id: cr-0123456789abcdef0}\n"
    )
    sums = plan_of(project_file(text))
    assert sums.nodes == 17  # two system nodes that nobody wrote
    assert sums.addresses_needed == 17 * 17
    assert "cheap: up to 9 × m7i.xlarge, while pods ask for them" in sums.bills_while_idle
    assert "the control plane of EKS, by the hour, and its logs" in sums.bills_while_idle
    assert [id for id, _ in sums.advice] == ["EFA-22", "CB-12"]
    slurm = plan_of(
        project_file(
            "name: own-nodes\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\ntraining:\n"
            "  orchestrator: pcs\n  node_groups: [{name: gpu, instance_type: p5.48xlarge, count: 2, min_count: 0}]\n"
        )
    )
    assert slurm.addresses_needed == 64
    assert "gpu: up to 2 × p5.48xlarge, while jobs ask for them" in slurm.bills_while_idle
    assert "the controller of PCS, by the hour and size, and its accounting" in slurm.bills_while_idle


def test_p5_takes_32_addresses_a_node(project_file: Callable[[str], Path]) -> None:
    text = """\
name: my-project
network: {availability_zones: 1}
training:
  node_groups:
    - {name: controller, role: controller, instance_type: m7i.xlarge, count: 1}
    - {name: gpu, instance_type: p5.48xlarge, count: 4}
"""
    assert plan_of(project_file(text)).addresses_needed == 4 * 32 + 1


def test_a_project_without_training(project_file: Callable[[str], Path]) -> None:
    sums = plan_of(project_file("name: my-project\nnetwork: {availability_zones: 1}\n"))
    assert (sums.nodes, sums.accelerators) == (0, 0)
    assert sums.dense_pflops["bf16"] is None


def test_the_command(root: Path) -> None:
    file = str(root / "projects" / "slurm-p5en.yaml")
    shown = CliRunner().invoke(app, ["plan", file, "--parameters", "70e9"]).stdout
    assert "dense FP4                          unknown" in shown
    assert "writing it to Lustre               105 s" in shown
    assert "(L-DF5E4CA3)" in shown
    data = json.loads(CliRunner().invoke(app, ["plan", file, "--json"]).stdout)
    assert data["checkpoint_gb"] is None
    for nonsense in (
        ["--parameters", "nan"],
        ["--parameters=-1"],
        ["--dataset-tib", "inf"],
        ["--bytes-per-parameter=0"],
    ):
        assert CliRunner().invoke(app, ["plan", file, *nonsense]).exit_code == 2
    wrong = CliRunner().invoke(app, ["plan", "none.yaml"])
    assert wrong.exit_code == 1
    assert "there is no such file" in wrong.stderr


def test_what_fits_into_replicas(root: Path) -> None:
    sums = plan_of(root / "projects" / "serve-h100.yaml")
    assert set(sums.endpoints) == {"chat-8b", "reason-671b"}
    chat = sums.endpoints["chat-8b"]
    assert chat.hbm_gib == 80
    assert chat.kv_bytes_per_token == 131_072
    assert chat.tokens == int((80 * 0.9 - 8.03e9 * 2 / 2**30) * 2**30 / 131_072)
    assert "1 load balancer of endpoints, by the hour and by use" in sums.bills_while_idle
    assert "h100: up to 8 × p5.4xlarge, while pods ask for them" in sums.bills_while_idle
    halves = plan_of(root / "projects" / "serve-disaggregated.yaml")
    assert set(halves.endpoints) == {"chat-70b prefill", "chat-70b decode"}
    assert "1 load balancer of endpoints, by the hour and by use" in halves.bills_while_idle


def test_two_clusters_are_added_up(project_file: Callable[[str], Path], root: Path) -> None:
    text = (root / "projects" / "train-and-serve.yaml").read_text()
    shared = plan_of(root / "projects" / "train-and-serve.yaml")
    group = "node_groups: [{name: more, instance_type: p5.48xlarge, count: 2}]"
    endpoint = text[text.index("  endpoints:") :].replace("node_group: serve", "node_group: more")
    own = text[: text.index("inference:")] + f"inference:\n  orchestrator: eks\n  {group}\n{endpoint}"
    both = plan_of(project_file(own))
    assert both.accelerators == shared.accelerators + 16
    assert both.nodes == shared.nodes + 2 + 2  # with system nodes of its own
    assert both.addresses_needed > shared.addresses_needed
    assert "2 control planes of EKS, by the hour, and their logs" in both.bills_while_idle


def test_the_command_prints_unknown_figures(root: Path) -> None:
    done = CliRunner().invoke(app, ["plan", str(root / "projects" / "train-and-serve.yaml")])
    lines = done.stdout.splitlines()
    at = lines.index("a replica of preview")
    found = [line.split() for line in lines[at + 1 : at + 7]]
    assert [line[-2:] for line in found[:1]] == [["61.1", "GiB"]]
    # SGLang chooses its share of the memory itself.
    assert [line[-1] for line in found].count("unknown") == 3
