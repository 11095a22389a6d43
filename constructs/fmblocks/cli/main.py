"""``fmblocks``: the entry point and its commands."""

from __future__ import annotations

import difflib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from fmblocks.catalog import instance_types
from fmblocks.cli import acceptance, chart, local, model, nodes
from fmblocks.cli.explain import where_checked
from fmblocks.cli.guard import guard
from fmblocks.cli.init import first_files
from fmblocks.cli.preflight import preflight
from fmblocks.cli.retire import retire
from fmblocks.cli.terminal import tabulate, tell
from fmblocks.findings import Finding, FindingsError, Severity, check
from fmblocks.network import rules as network_rules
from fmblocks.plan import Plan, make_plan
from fmblocks.project import LoadedProject, Project, primary_subnet_size, storage_addresses
from fmblocks.project import schema as schema_text
from fmblocks.rulebook import entries, sources

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(local.app, name="local")
app.add_typer(acceptance.app, name="acceptance")
app.add_typer(chart.app, name="chart")
app.add_typer(nodes.app, name="nodes")
app.add_typer(model.app, name="model")
app.command()(guard)
app.command()(preflight)
app.command()(retire)


@app.callback()
def _root() -> None:
    """Building blocks for foundation-model clusters on AWS."""


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(help="Project files.")],
    now: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"], help="UTC. Default: the clock's.")
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(help="Where the paths of charts begin. Default: beside each file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check project files: every finding, and exit code 1 when one is an error. Asks neither AWS nor Node."""
    findings: list[Finding] = []
    suppressed: frozenset[str] = frozenset()
    moment = now.replace(tzinfo=UTC) if now else datetime.now(UTC)
    for file in files:
        try:
            loaded = Project.load(file, now=moment, charts=charts)
            findings += loaded.findings
            suppressed |= loaded.project.suppressed
        except FindingsError as error:
            findings += error.findings
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1, ensure_ascii=False))
    else:
        tell(findings)
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    # What a file does without is told: nobody should take silence for a clean file.
    without = f", suppressed: {', '.join(sorted(suppressed))}" if suppressed else ""
    typer.echo(f"files: {len(files)}, errors: {errors}, warnings: {warnings}{without}", err=True)
    raise typer.Exit(1 if errors else 0)


@app.command()
def explain(
    rule: Annotated[str | None, typer.Argument(help="An id, for example FSX-02; without one all are listed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a rule is, what AWS does otherwise, and where that was read."""
    book = entries()
    if rule is None:
        listed = [{"id": entry.id, "kind": entry.kind, "rule": entry.rule} for entry in book.values()]
        if as_json:
            typer.echo(json.dumps(listed, indent=1, ensure_ascii=False))
        else:
            for row in listed:
                typer.echo(f"{row['id']:8} {row['kind']:10} {row['rule']}")
        return
    if rule.upper() == "SHAPE":
        typer.echo("SHAPE\n  the file or argument has the wrong shape: a key, a kind of value, or the YAML itself")
        return
    entry = book.get(rule.upper())
    if entry is None:
        alike = difflib.get_close_matches(rule.upper(), book, n=3)
        hint = f"did you mean {' or '.join(alike)}?" if alike else "`fmblocks explain` lists all"
        typer.echo(f"{rule} is no id of the rule book; {hint}", err=True)
        raise typer.Exit(2)
    checked = where_checked(entry)
    if as_json:
        typer.echo(json.dumps({**asdict(entry), "checked": checked, "sources": sources(entry)}, ensure_ascii=False))
        return
    severity = f", {entry.severity}" if entry.severity else ""
    typer.echo(f"{entry.id} ({entry.kind}{severity})\n  {entry.rule}")
    if entry.otherwise:
        typer.echo(f"otherwise\n  {entry.otherwise}")
    typer.echo(f"checked\n  {checked}")
    typer.echo(f"source\n  {entry.source}")
    for title in sources(entry):
        typer.echo(f"  {title}")


@app.command()
def instances(
    part: Annotated[str, typer.Argument(help="Part of a name, for example p5.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List instance types of the catalogue: accelerators, memory, EFA. A dash means that no source was found."""
    found = [one for name, one in sorted(instance_types().items()) if part.lower().removeprefix("ml.") in name]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1))
        raise typer.Exit(0 if found else 1)
    rows = [
        (
            one.name,
            f"{one.accelerator_count} × {one.accelerator_model}" if one.accelerator_count else "–",
            _dash(one.hbm_gib_total),
            _dash(one.vcpus),
            _dash(one.memory_gib),
            str(one.max_efa_interfaces),
            _dash(one.efa_gbps_total),
            "yes" if one.hyperpod else "no",
        )
        for one in found
    ]
    columns = ("type", "accelerators", "HBM GiB", "vCPU", "GiB", "EFA", "Gbps", "HyperPod")
    tabulate(columns, rows, numbers=range(2, 7))
    if not found:
        typer.echo(f"no type of the catalogue has {part} in its name", err=True)
        raise typer.Exit(1)


def _dash(value: int | None) -> str:
    return "–" if value is None else str(value)


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(help="A project file.")],
    parameters: Annotated[float | None, typer.Option(help="Parameters of the model, for the checkpoint: 70e9.")] = None,
    bytes_per_parameter: Annotated[float, typer.Option(help="Bytes of a checkpoint per parameter.")] = 14,
    dataset_tib: Annotated[float | None, typer.Option(help="TiB of data to stage.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Add a project up: accelerators, bandwidth, storage, times, quotas, what bills while idle. Asks nobody."""
    for option, value in (
        ("--parameters", parameters),
        ("--bytes-per-parameter", bytes_per_parameter),
        ("--dataset-tib", dataset_tib),
    ):
        if value is not None and not 0 < value < float("inf"):
            raise typer.BadParameter(f"{value} is not a number above 0", param_hint=option)
    loaded = _load(file)
    sums = make_plan(
        loaded.project,
        primary_subnet_size=primary_subnet_size(loaded.project.network),
        storage_addresses=storage_addresses(loaded.project.storage),
        parameters=parameters,
        bytes_per_parameter=bytes_per_parameter,
        dataset_tib=dataset_tib,
    )
    if as_json:
        typer.echo(json.dumps(asdict(sums), indent=1, ensure_ascii=False))
        return
    for line in _plan_lines(loaded.project.name, sums):
        typer.echo(line)


def _load(file: Path) -> LoadedProject:
    try:
        return Project.load(file)
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(1) from None


def _plan_lines(name: str, sums: Plan) -> Iterator[str]:
    def row(label: str, value: float | None, unit: str = "") -> str:
        shown = "unknown" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.1f}".removesuffix(".0")
        return f"{label:34} {shown} {unit if value is not None else ''}".rstrip()

    yield name
    yield row("nodes", sums.nodes)
    yield row("accelerators", sums.accelerators)
    if sums.accelerators:
        yield row("accelerator memory", sums.hbm_gib, "GiB")
        for precision, value in sums.dense_pflops.items():
            yield row(f"dense {precision.upper()}", value, "PFLOPS")
    for group, gbps in sums.efa_gbps_per_node.items():
        yield row(f"EFA per node of {group}", gbps, "Gbps")
    if sums.efa_gbps_per_node:
        yield row("EFA in all", sums.efa_gbps, "Gbps")
    yield row("addresses needed, at least", sums.addresses_needed)
    yield row("addresses of the primary subnet", sums.addresses_usable)
    yield row("network interfaces, at most", sums.network_interfaces)
    yield row("Lustre throughput", sums.lustre_mbps, "MB/s")
    yield row("Lustre metadata", sums.metadata_iops, "IOPS")
    if sums.checkpoint_gb is not None:
        yield row("checkpoint", sums.checkpoint_gb, "GB")
        yield row("writing it to Lustre", sums.checkpoint_seconds, "s")
    if sums.staging_seconds is not None:
        yield row("staging the data set", sums.staging_seconds, "s")
    for name, fits in sums.endpoints.items():
        yield f"a replica of {name}"
        yield row("  weights", fits.weights_gib, "GiB")
        yield row("  accelerator memory", fits.hbm_gib, "GiB")
        kib = None if fits.kv_bytes_per_token is None else fits.kv_bytes_per_token / 1024
        yield row("  a token in the KV cache", kib, "KiB")
        yield row("  left for the KV cache", fits.kv_gib, "GiB")
        yield row("  tokens in it at once", fits.tokens)
        yield row("  longest requests at once", fits.requests)
    yield "quotas"
    for quota in sums.quotas:
        yield f"  {quota.needed:>6}  {quota.name}{f' ({quota.code})' if quota.code else ''}"
    yield "bills while idle"
    yield from (f"  {what}" for what in sums.bills_while_idle)
    if sums.advice:
        yield "advice"
        yield from (f"  {id}: {text}" for id, text in sums.advice)


@app.command()
def init(
    name: Annotated[str | None, typer.Option(help="Name of the project.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS region.")] = None,
    zone: Annotated[str | None, typer.Option(help="Zone id. Default: the region's az1.")] = None,
    instance_type: Annotated[str | None, typer.Option(help="Type of the compute nodes.")] = None,
    count: Annotated[int | None, typer.Option(help="Compute nodes.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write app.py, cdk.json and a project file into the current folder; what is not given is asked for."""
    name = name or typer.prompt("name of the project", default="first-cluster", err=True)
    region = region or typer.prompt("region", default="us-west-2", err=True)
    instance_type = instance_type or typer.prompt("instance type of the compute nodes", default="g6.2xlarge", err=True)
    count = typer.prompt("compute nodes", default=2, type=int, err=True) if count is None else count
    files: dict[str, str] = {}
    findings = check(network_rules.WHOLE, {"region": region})
    if not findings:
        files = first_files(name, region, zone, instance_type, count)
        findings += _trial(files)
        if taken := [file for file in files if Path(file).exists()]:
            text, hint = f"{', '.join(taken)} is here already: nothing was written", "use an empty folder"
            findings.append(Finding("SHAPE", Severity.ERROR, "", text, hint))
    if failed := any(one.severity is Severity.ERROR for one in findings):
        files = {}
    for file, text in files.items():
        Path(file).write_text(text, encoding="utf-8")
    if as_json:
        typer.echo(json.dumps({"wrote": [*files], "findings": [asdict(one) for one in findings]}, ensure_ascii=False))
    else:
        tell(findings, err=True)
        for file in files:
            typer.echo(f"wrote {file}")
    if failed:
        raise typer.Exit(1)
    typer.echo(f"next: npx cdk deploy TrainingStack, or fmblocks plan {name}.yaml first", err=True)


def _trial(files: Mapping[str, str]) -> list[Finding]:
    """What would be found in a project file that is not written yet; it has no place that a user could open."""
    (text,) = (text for file, text in files.items() if file.endswith(".yaml"))
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / "project.yaml"
        trial.write_text(text, encoding="utf-8")
        try:
            found = Project.load(trial).findings
        except FindingsError as error:
            found = error.findings
    return [replace(one, file="", line=None) for one in found]


@app.command()
def schema() -> None:
    """Print the JSON schema of project files, for editors."""
    typer.echo(schema_text())


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
