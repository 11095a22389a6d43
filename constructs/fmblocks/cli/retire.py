"""``fmblocks retire``: how a project is taken down by hand."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fmblocks.cli.terminal import tell
from fmblocks.findings import FindingsError
from fmblocks.project import Project
from fmblocks.retire import steps


def retire(
    file: Annotated[Path, typer.Argument(help="A project file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the order in which a project is taken down by hand, and what bills until then. Does none of it."""
    try:
        project = Project.load(file).project
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(1) from None
    listed = list(steps(project))
    if as_json:
        typer.echo(json.dumps([asdict(step) for step in listed], indent=1, ensure_ascii=False))
        return
    for number, step in enumerate(listed, start=1):
        bills = f"; until then it bills: {step.bills}" if step.bills else ""
        typer.echo(f"# {number}. {step.title}{bills}")
        for command in step.commands:
            typer.echo(command)
        typer.echo("")
