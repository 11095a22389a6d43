"""``fmblocks``: the entry point and its commands."""

from __future__ import annotations

import difflib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fmblocks.catalog import instance_types
from fmblocks.cli import local
from fmblocks.findings import RULES, Finding, FindingsError, Severity
from fmblocks.project import Project
from fmblocks.project import schema as schema_text
from fmblocks.rulebook import Kind, entries, sources

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(local.app, name="local")


@app.callback()
def _root() -> None:
    """Building blocks for foundation-model clusters on AWS."""


@app.command()
def validate(files: Annotated[list[Path], typer.Argument(help="Project files.")]) -> None:
    """Check project files: every finding, and exit code 1 when one is an error. Asks neither AWS nor Node."""
    findings: list[Finding] = []
    for file in files:
        try:
            findings += Project.load(file).findings
        except FindingsError as error:
            findings += error.findings
    for finding in findings:
        typer.echo(finding)
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    typer.echo(f"files: {len(files)}, errors: {errors}, warnings: {warnings}", err=True)
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
    entry = book.get(rule.upper())
    if entry is None:
        alike = difflib.get_close_matches(rule.upper(), book, n=3)
        typer.echo(
            f"{rule} is no id of the rule book; did you mean {' or '.join(alike) or 'one of: explain'}?", err=True
        )
        raise typer.Exit(2)
    checked = _where(entry.id)
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


def _where(id: str) -> str:
    """Where an id is looked after in this version."""
    if found := RULES.get(id):
        return f"{found.function.__module__}.{found.function.__name__}"
    return {
        Kind.RULE: "not in this version",
        Kind.BUILT_IN: "the constructs set it",
        Kind.PREFLIGHT: "only the account knows; not in this version",
        Kind.GUARD: "about a change; not in this version",
        Kind.NOTE: "advice",
    }[entries()[id].kind]


@app.command()
def instances(
    part: Annotated[str, typer.Argument(help="Part of a name, for example p5.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List instance types of the catalogue: accelerators, memory, EFA. A dash means that no source was found."""
    found = [one for name, one in sorted(instance_types().items()) if part.lower().removeprefix("ml.") in name]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=1))
        return
    typer.echo(
        f"{'type':20} {'accelerators':24} {'HBM GiB':>8} {'vCPU':>5} {'GiB':>5} {'EFA':>4} {'Gbps':>5}  HyperPod"
    )
    for one in found:
        accelerators = f"{one.accelerator_count} × {one.accelerator_model}" if one.accelerator_count else "–"
        typer.echo(
            f"{one.name:20} {accelerators:24} {_dash(one.hbm_gib_total):>8} {_dash(one.vcpus):>5} {_dash(one.memory_gib):>5} "
            f"{one.max_efa_interfaces:>4} {_dash(one.efa_gbps_total):>5}  {'yes' if one.hyperpod else 'no'}"
        )
    if not found:
        typer.echo(f"no type of the catalogue has {part} in its name", err=True)
        raise typer.Exit(1)


def _dash(value: int | None) -> str:
    return "–" if value is None else str(value)


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
