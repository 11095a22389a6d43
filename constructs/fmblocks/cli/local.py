"""``fmblocks local``: a local AWS for the CDK CLI."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fmblocks.findings import FindingsError
from fmblocks.local import session
from fmblocks.project import Project

app = typer.Typer(no_args_is_help=True, help="A local AWS for the CDK CLI: nothing reaches a real account.")


def _say(text: str) -> None:
    typer.echo(f"fmblocks local: {text}", err=True)


@app.command()
def up() -> None:
    """Start the local AWS, or say where it runs."""
    try:
        started = session.up(_say)
    except session.LocalError as error:
        _fail(str(error))
    typer.echo(started.endpoint)


@app.command()
def down() -> None:
    """Stop the local AWS and remove all it wrote."""
    try:
        if not session.down(_say):
            _say("none runs here")
    except session.LocalError as error:
        _fail(str(error))


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(help="The command, after --.")],
    project: Annotated[str | None, typer.Option(help="The project file that says account and region.")] = None,
) -> None:
    """Run a command in which AWS is the local one: fmblocks local run -- npx cdk deploy TrainingStack.

    Account and region are those of --project, else of the project that a cdk command names with -c project=FILE, else
    of cdk.json's project; 123456789012 and us-east-1 where it leaves them open. A cdk command finds them bootstrapped.
    """
    try:
        account, region = _place(project or _context_value(command, "project"))
        code = session.run(command, account=account, region=region, say=_say)
    except session.NoSuchCommandError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(127) from None
    except (session.LocalError, FindingsError) as error:
        _fail(str(error))
    raise typer.Exit(code)


def _place(file: str | None) -> tuple[str, str]:
    """Account and Region of a project file, or of cdk.json's."""
    if file is None:
        settings = Path("cdk.json")
        context = json.loads(settings.read_text(encoding="utf-8")).get("context", {}) if settings.is_file() else {}
        file = context.get("project")
    if file is None:
        return session.DEFAULT_ACCOUNT, session.DEFAULT_REGION
    project = Project.load(file).project
    return project.account or session.DEFAULT_ACCOUNT, project.region or session.DEFAULT_REGION


def _context_value(command: Sequence[str], key: str) -> str | None:
    """What ``-c key=value`` says in a cdk command."""
    for flag, value in itertools.pairwise(command):
        if flag in ("-c", "--context") and value.startswith(f"{key}="):
            return value.partition("=")[2]
    prefix = f"--context={key}="
    return next((word.removeprefix(prefix) for word in command if word.startswith(prefix)), None)


def _fail(text: str) -> None:
    typer.echo(text, err=True)
    raise typer.Exit(1)
