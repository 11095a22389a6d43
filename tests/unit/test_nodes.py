"""``fmblocks nodes``: AWS answers by botocore's stubs, and the AWS CLI is a script that plays Session Manager."""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from typer.testing import CliRunner

from fmblocks.cli import nodes
from fmblocks.cli.deployed import output_of
from fmblocks.cli.main import app
from fmblocks.cli.nodes import Node, Scripts, nodes_of, scripts_of
from tests.conftest import ROOT

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
PROJECT = str(ROOT / "projects/slurm-p5en.yaml")
GPU = Node("gpu", "i-0a", "Running", "sagemaker-cluster:abcdefghijkl_gpu-i-0a")
LOGIN = Node("login", "i-0b", "Running", "sagemaker-cluster:abcdefghijkl_login-i-0b")
SCRIPTS = {"gpu": Scripts("s3://sagemaker-x/abc/", "compute.sh")}


def client(service: str) -> Any:
    return boto3.client(  # type: ignore[call-overload]
        service, region_name="us-west-2", aws_access_key_id="1", aws_secret_access_key="2"
    )


def test_nodes_have_the_targets_of_session_manager() -> None:
    sagemaker = client("sagemaker")
    summary = {"InstanceType": "ml.p5.48xlarge", "LaunchTime": 0, "InstanceStatus": {"Status": "Running"}}
    listed = [
        {**summary, "InstanceGroupName": "login", "InstanceId": "i-0b"},
        {**summary, "InstanceGroupName": "gpu", "InstanceId": "i-0a"},
    ]
    with Stubber(sagemaker) as stub:
        stub.add_response(
            "list_cluster_nodes", {"ClusterNodeSummaries": listed[:1], "NextToken": "n"}, {"ClusterName": ARN}
        )
        stub.add_response(
            "list_cluster_nodes",
            {"ClusterNodeSummaries": listed[1:], "NextToken": ""},
            {"ClusterName": ARN, "NextToken": "n"},
        )
        assert list(nodes_of(ARN, sagemaker)) == [GPU, LOGIN]


def test_scripts_are_those_that_the_group_names_now() -> None:
    sagemaker = client("sagemaker")
    named = {"SourceS3Uri": "s3://sagemaker-x/abc/", "OnInitComplete": "compute.sh"}
    answer = {
        "ClusterArn": ARN,
        "ClusterStatus": "InService",
        "InstanceGroups": [
            {"InstanceGroupName": "gpu", "LifeCycleConfig": named},
            {"InstanceGroupName": "login"},
        ],
    }
    with Stubber(sagemaker) as stub:
        stub.add_response("describe_cluster", answer, {"ClusterName": ARN})
        assert scripts_of(ARN, sagemaker) == SCRIPTS


def test_the_cluster_is_that_of_the_stack() -> None:
    cloudformation = client("cloudformation")
    stack = {"StackName": "x", "CreationTime": 0, "StackStatus": "CREATE_COMPLETE"}
    with Stubber(cloudformation) as stub:
        outputs = [{"OutputKey": "Other", "OutputValue": "y"}, {"OutputKey": "ClusterArn", "OutputValue": ARN}]
        stub.add_response("describe_stacks", {"Stacks": [{**stack, "Outputs": outputs}]}, {"StackName": "x"})
        stub.add_response("describe_stacks", {"Stacks": [stack]}, {"StackName": "x"})
        assert output_of("x", "ClusterArn", cloudformation) == ARN
        assert output_of("x", "ClusterArn", cloudformation) is None


def test_a_stack_that_is_not_there_has_no_output() -> None:
    cloudformation = client("cloudformation")
    with Stubber(cloudformation) as stub:
        stub.add_client_error("describe_stacks", "ValidationError", "Stack with id x does not exist")
        assert output_of("x", "ClusterArn", cloudformation) is None
        stub.add_client_error("describe_stacks", "ValidationError", "something else")
        with pytest.raises(ClientError):
            output_of("x", "ClusterArn", cloudformation)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`aws` that writes down its words and answers what a file says, and `script`, which runs what it is told."""
    folder = tmp_path / "bin"
    folder.mkdir()
    texts = {
        "aws": f'printf "%s\\n" "$@" >>{folder}/called\necho "Starting session"\ncat {folder}/answer\n',
        "script": '[ "$1" = -qec ] && [ "$3" = /dev/null ] && exec sh -c "$2"\n',
        "session-manager-plugin": "exit 1\n",
    }
    for name, text in texts.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\n{text}")
        file.chmod(file.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(nodes, "_PAUSE_SECONDS", 0)
    monkeypatch.setattr(nodes, "_nodes", lambda _file: ([GPU, LOGIN], SCRIPTS, "us-west-2"))
    return folder


@pytest.mark.parametrize(
    ("answer", "said", "code"),
    [("fmblocks-exit=0\r\n", "gpu i-0a: done", 0), ("fmblocks-exit=1\n", "ended with 1", 1), ("EOF\n", "no answer", 1)],
)
def test_scripts_run_on_live_nodes(tools: Path, answer: str, said: str, code: int) -> None:
    (tools / "answer").write_text(answer)
    done = CliRunner().invoke(app, ["nodes", "run-scripts", PROJECT])
    assert said in done.stdout
    assert done.exit_code == code
    assert "login: names no scripts" in done.stderr
    called = (tools / "called").read_text().splitlines()
    assert called[:6] == ["--region", "us-west-2", "ssm", "start-session", "--target", GPU.target]
    assert called[6:8] == ["--document-name", "AWS-StartNonInteractiveCommand"]
    (command,) = json.loads(called[9])["command"]
    found = re.fullmatch(r'bash -c "echo (\S+) \| base64 -d \| sudo bash"', command)
    assert found is not None
    payload = base64.b64decode(found[1]).decode()
    assert "aws s3 cp --recursive --quiet s3://sagemaker-x/abc/ $folder" in payload
    assert "bash $folder/compute.sh; echo fmblocks-exit=$?" in payload


def test_a_group_is_chosen_by_its_name(tools: Path) -> None:
    (tools / "answer").write_text("fmblocks-exit=0\n")
    done = CliRunner().invoke(app, ["nodes", "run-scripts", PROJECT, "--group", "login"])
    assert done.exit_code == 0
    assert not (tools / "called").exists()
    done = CliRunner().invoke(app, ["nodes", "run-scripts", PROJECT, "--group", "gpus"])
    assert done.exit_code == 2
    assert "no node is of gpus" in done.stderr


def test_nodes_are_listed(tools: Path) -> None:
    done = CliRunner().invoke(app, ["nodes", "list", PROJECT])
    assert "sagemaker-cluster:abcdefghijkl_gpu-i-0a" in done.stdout
    done = CliRunner().invoke(app, ["nodes", "list", PROJECT, "--json"])
    assert json.loads(done.stdout)[1]["group"] == "login"


def test_another_orchestrator_has_no_nodes_here() -> None:
    done = CliRunner().invoke(app, ["nodes", "list", "projects/ec2-odcr.yaml"])
    assert done.exit_code == 2
    assert "projects/ec2-odcr.yaml makes no HyperPod cluster" in done.stderr


def test_missing_tools_are_named(tools: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["nodes", "run-scripts", PROJECT])
    assert done.exit_code == 2
    assert "aws is not on the PATH; install the AWS CLI" in done.stderr
