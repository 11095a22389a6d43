"""``fmblocks``: the entry point and its commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fmblocks.cli import local
from fmblocks.findings import Finding, FindingsError, Severity

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(local.app, name="local")


@app.callback()
def _root() -> None:
    """Building blocks for foundation-model clusters on AWS."""


@app.command()
def validate(files: Annotated[list[Path], typer.Argument(help="Project files.")]) -> None:
    """Check project files: every finding, and exit code 1 when one is an error. Asks neither AWS nor Node."""
    from fmblocks.project import Project

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
def schema() -> None:
    """Print the JSON schema of project files, for editors."""
    from fmblocks.project import schema as text

    typer.echo(text())


def main() -> None:
    """Run the command line."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
