"""``fmblocks acceptance``: jobs that show whether nodes are fit for work, and what their logs say."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
import yaml

from fmblocks.cli.terminal import tell
from fmblocks.cluster.rules import interfaces_of
from fmblocks.compute.acceptance import Job, Nodes, files, jobs_for, kubernetes
from fmblocks.compute.verdict import failed, judge
from fmblocks.findings import FindingsError
from fmblocks.plan import lustre_mbps
from fmblocks.project import Project

app = typer.Typer(no_args_is_help=True, help="Jobs that show whether nodes are fit for work.")

ProjectFile = Annotated[Path, typer.Argument(help="A project file.")]
Group = Annotated[str, typer.Argument(help="The name of a node group.")]


@app.command()
def write(
    file: ProjectFile,
    group: Group,
    to: Annotated[Path, typer.Option(help="Folder for the jobs.")] = Path("acceptance"),
    nodes: Annotated[int | None, typer.Option(help="Nodes to run on. Default: all of the group.")] = None,
    image: Annotated[
        str | None, typer.Option(help="Write a Kubernetes Job too, of this image, which holds PyTorch and EFA.")
    ] = None,
) -> None:
    """Write the jobs of a node group: one sbatch script each, and a Kubernetes Job of the all-reduce."""
    of_group, _project = _nodes(file, group, nodes)
    to.mkdir(parents=True, exist_ok=True)
    written = files(of_group)
    if image is not None and Job.NCCL_ALL_REDUCE in jobs_for(of_group):
        manifests = kubernetes(Job.NCCL_ALL_REDUCE, of_group, image=image)
        written[f"{Job.NCCL_ALL_REDUCE}.yaml"] = yaml.safe_dump_all(manifests, sort_keys=False)
    for name, text in written.items():
        (to / name).write_text(text, encoding="utf-8")
        typer.echo(f"wrote {to / name}")
    if not written:
        typer.echo(f"{group} has nothing that these jobs could try", err=True)
        raise typer.Exit(1)


@app.command("judge")
def judge_log(
    file: ProjectFile,
    group: Group,
    job: Annotated[Job, typer.Argument(help="Which job printed the log.")],
    log: Annotated[Path, typer.Argument(help="Everything it printed.", exists=True, dir_okay=False)],
    nodes: Annotated[int | None, typer.Option(help="Nodes it ran on. Default: all of the group.")] = None,
    baseline: Annotated[
        float | None, typer.Option(min=1, help="GB/s bus bandwidth of an earlier good all-reduce.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what the log of a job means: exit code 1 when a node is not fit."""
    of_group, project = _nodes(file, group, nodes)
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = judge(job, text, of_group, baseline_gbps=baseline, lustre_mbps=lustre_mbps(project))
    if as_json:
        typer.echo(json.dumps([asdict(line) for line in lines], indent=1, ensure_ascii=False))
    else:
        for line in lines:
            typer.echo(line)
    raise typer.Exit(1 if failed(lines) else 0)


def _nodes(file: Path, name: str, count: int | None) -> tuple[Nodes, Project]:
    try:
        project = Project.load(file).project
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(1) from None
    groups = {group.name: (one, group) for one in project.clusters.values() for group in one.node_groups}
    if name not in groups:
        typer.echo(f"{name} is no node group of {file}: {', '.join(groups) or 'it has none'}", err=True)
        raise typer.Exit(2)
    (cluster, group), types, lustre = groups[name], project.instance_types, project.storage.lustre
    kind = types[group.instance_type]
    if cluster.orchestrator.hyperpod:
        interfaces = kind.max_efa_interfaces
    else:
        wired = interfaces_of(cluster.orchestrator, group, types)
        interfaces = sum(one.interface_type.has_efa for one in wired)
    mount_path = lustre.mount_path if lustre else None
    return Nodes(kind=kind, count=count or group.count, interfaces=interfaces, mount_path=mount_path), project
