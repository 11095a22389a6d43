"""``fmblocks nodes``: the nodes of a HyperPod cluster, and its lifecycle scripts on those that run."""

from __future__ import annotations

import base64
import json
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmblocks.cli.deployed import output_of, session_of, stop
from fmblocks.cli.terminal import tabulate, tell
from fmblocks.findings import FindingsError
from fmblocks.project import STACKS_OF_CLUSTERS, Project

if TYPE_CHECKING:
    from mypy_boto3_sagemaker.client import SageMakerClient

app = typer.Typer(no_args_is_help=True, help="Nodes of a HyperPod cluster that is deployed.")
# Session Manager refuses more than a few new sessions a second (SageMaker AI Developer Guide, HyperPod's limits).
_PAUSE_SECONDS, _AT_ONCE = 0.5, 8
# The scripts' own waits, and room for the project's own.
_LONGEST_SECONDS = 1800
_MARK = "fmblocks-exit"


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its group, its id, how it is, and what Session Manager calls it."""

    group: str
    instance_id: str
    status: str
    target: str


_TOOLS = {
    "aws": "install the AWS CLI",
    "session-manager-plugin": "install the AWS CLI's plugin (Systems Manager User Guide, Session Manager plugin)",
    "script": "it is in util-linux, on Debian in bsdutils",
}


@dataclass(frozen=True, slots=True)
class Scripts:
    """What a group runs on its nodes now."""

    uri: str
    entry: str


@app.callback()
def _root() -> None:
    """Nodes of a HyperPod cluster that is deployed."""


@app.command("list")
def show(
    file: Annotated[Path, typer.Argument(help="A project file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List nodes with the targets of `aws ssm start-session --target`."""
    found = _nodes(file)[0]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1))
        return
    rows = [(one.group, one.instance_id, one.status, one.target) for one in found]
    tabulate(("group", "instance", "status", "target"), rows)


@app.command("run-scripts")
def run_scripts(
    file: Annotated[Path, typer.Argument(help="A project file.")],
    group: Annotated[list[str] | None, typer.Option(help="A group; once for each. Default: all.")] = None,
) -> None:
    """Run the lifecycle scripts that each group names now on its running nodes, through Session Manager.

    HyperPod runs a changed script on new nodes only. The scripts can be repeated; jobs go on. Needs the AWS CLI with
    its plugin for Session Manager, and `script`. Exit code 1 when a node failed.
    """
    nodes, scripts, region = _nodes(file)
    for tool, place in _TOOLS.items():
        if shutil.which(tool) is None:
            stop(f"{tool} is not on the PATH; {place}")
    chosen = [one for one in nodes if one.status == "Running" and (not group or one.group in group)]
    if unknown := sorted(set(group or ()) - {one.group for one in nodes}):
        stop(f"no node is of {', '.join(unknown)}")
    without = sorted({one.group for one in chosen} - set(scripts))
    for name in without:
        typer.echo(f"{name}: names no scripts", err=True)
    chosen = [one for one in chosen if one.group in scripts]
    gate = threading.Lock()

    def run(node: Node) -> tuple[Node, int | None]:
        with gate:
            time.sleep(_PAUSE_SECONDS)
        return node, run_on(node, scripts[node.group], region)

    failed = 0
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for node, code in pool.map(run, chosen):
            failed += code != 0
            said = "done" if code == 0 else "no answer" if code is None else f"ended with {code}"
            typer.echo(f"{node.group} {node.instance_id}: {said}")
    typer.echo(f"nodes: {len(chosen)}, failed: {failed}", err=True)
    raise typer.Exit(1 if failed else 0)


def run_on(node: Node, scripts: Scripts, region: str) -> int | None:
    """Run scripts on a node; give back how they ended, None where nobody told."""
    payload = (
        f"folder=$(mktemp -d) && aws s3 cp --recursive --quiet {shlex.quote(scripts.uri)} $folder"
        f" && bash $folder/{shlex.quote(scripts.entry)}; echo {_MARK}=$?"
    )
    # As it is it would go through three shells, each with quotes of its own.
    packed = base64.b64encode(payload.encode()).decode()
    command = f'bash -c "echo {packed} | base64 -d | sudo bash"'
    session = [
        "aws", "--region", region, "ssm", "start-session", "--target", node.target,
        "--document-name", "AWS-StartNonInteractiveCommand", "--parameters", json.dumps({"command": [command]}),
    ]  # fmt: skip
    # Without a terminal the plugin ends before the command does.
    terminal = ["script", "-qec", shlex.join(session), "/dev/null"]
    try:
        done = subprocess.run(
            terminal, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return None
    found = re.findall(rf"{_MARK}=(\d+)", done.stdout)
    return int(found[-1]) if found else None


def nodes_of(cluster_arn: str, sagemaker: SageMakerClient) -> Iterator[Node]:
    """The nodes of a cluster, group by group."""
    id = cluster_arn.rsplit("/", 1)[1]
    found = [
        one
        for page in sagemaker.get_paginator("list_cluster_nodes").paginate(ClusterName=cluster_arn)
        for one in page["ClusterNodeSummaries"]
    ]
    for one in sorted(found, key=lambda one: (one["InstanceGroupName"], one["InstanceId"])):
        name, instance = one["InstanceGroupName"], one["InstanceId"]
        target = f"sagemaker-cluster:{id}_{name}-{instance}"
        yield Node(name, instance, one["InstanceStatus"]["Status"], target)


def scripts_of(cluster_arn: str, sagemaker: SageMakerClient) -> dict[str, Scripts]:
    """What each group runs on its nodes now; groups without scripts are left out."""
    found = {}
    for group in sagemaker.describe_cluster(ClusterName=cluster_arn).get("InstanceGroups", []):
        told = group.get("LifeCycleConfig") or {}
        if "SourceS3Uri" in told and "OnInitComplete" in told:
            found[group["InstanceGroupName"]] = Scripts(told["SourceS3Uri"], told["OnInitComplete"])
    return found


def _nodes(file: Path) -> tuple[Sequence[Node], dict[str, Scripts], str]:
    try:
        project = Project.load(file).project
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(2) from None
    stacks = [
        f"{project.name}-{STACKS_OF_CLUSTERS[key]}"
        for key, cluster in project.clusters.items()
        if cluster.orchestrator.hyperpod
    ]
    if not stacks:
        stop(f"{file} makes no HyperPod cluster")
    # Only here: boto3 takes longer to load than a file takes to check.
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        session = session_of(project)
        sagemaker = session.client("sagemaker")
        nodes: list[Node] = []
        scripts: dict[str, Scripts] = {}
        for stack in stacks:
            arn = output_of(stack, "ClusterArn", session.client("cloudformation"))
            if arn is None:
                stop(f"{stack} is not deployed, or has no HyperPod cluster")
            nodes += nodes_of(arn, sagemaker)
            scripts |= scripts_of(arn, sagemaker)
        return nodes, scripts, sagemaker.meta.region_name
    except (BotoCoreError, ClientError) as error:
        stop(f"AWS does not answer: {error}")
