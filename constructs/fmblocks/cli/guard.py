"""``fmblocks guard``: what a deployment would replace or take away."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fmblocks.cli.terminal import tell
from fmblocks.findings import FindingsError, Severity
from fmblocks.guard.judgement import StackChange, judge, unknown_allowances
from fmblocks.guard.templates import Action, Replacement, Template, compare, construct_path, unseen
from fmblocks.project import Project

if TYPE_CHECKING:
    import boto3

    from fmblocks.guard.assembly import Stack
    from fmblocks.guard.change_sets import Clients

# The stacks that a project can have, in the order in which they are deployed.
STACKS = ("FoundationStack", "CapacityStack", "TrainingStack", "InferenceStack")


def guard(
    project: Annotated[Path | None, typer.Argument(help="A project file; run beside the cdk.json of its app.")] = None,
    template: Annotated[
        tuple[Path, Path] | None, typer.Option(help="Compare two templates instead, without AWS: OLD NEW.")
    ] = None,
    allow: Annotated[list[str] | None, typer.Option(help="A place whose change is wanted; once for each.")] = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", "-c", help="For cdk synth, like charts=FOLDER; once for each.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a deployment would replace or take away, before it does.

    A change set is made for each stack that is deployed, read, and deleted again: nothing is executed. Exit code 1 when
    a change is refused, 2 when nobody could look.
    """
    allowed = allow or []
    if (project is None) == (template is None):
        _stop("name either a project file or --template OLD NEW")
    if template is not None:
        old, new = (_read(file) for file in template)
        stacks = [StackChange(template[1].name, old, new, tuple(compare(old, new)))]
        notes = [f"not seen: {what}" for what in unseen(old, new)]
    else:
        assert project is not None
        stacks, notes = _live(project, context or [])
    refused = judge(stacks)
    findings = judge(stacks, allow=allowed)
    if as_json:
        shown = [{"stack": one.name, "new": one.old is None, "changes": _counts(one)} for one in stacks]
        told = {"stacks": shown, "notes": notes, "findings": [asdict(one) for one in findings]}
        typer.echo(json.dumps(told, indent=1, ensure_ascii=False))
    else:
        for one in stacks:
            typer.echo(f"{one.name}: {_summary(one)}")
            for change in one.changes:
                if change.action is Action.MODIFY and change.replacement is not Replacement.NO:
                    sure = "is" if change.replacement is Replacement.YES else "may be"
                    typer.echo(f"  {construct_path(one.new, change.logical_id)} {sure} replaced")
        for note in notes:
            typer.echo(note)
        tell(findings)
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    typer.echo(
        f"refused: {errors}, warnings: {len(findings) - errors}, allowed: {len(refused) - len(findings)}", err=True
    )
    for word in unknown_allowances(refused, allowed):
        _stop(f"--allow {word} names nothing that is refused")
    raise typer.Exit(1 if errors else 0)


def _counts(stack: StackChange) -> dict[str, int]:
    modified = [one for one in stack.changes if one.action is Action.MODIFY]
    return {
        "added": sum(one.action is Action.ADD for one in stack.changes),
        "changed": sum(one.replacement is Replacement.NO for one in modified),
        "replaced": sum(one.replacement is not Replacement.NO for one in modified),
        "removed": sum(one.action is Action.REMOVE for one in stack.changes),
    }


def _summary(stack: StackChange) -> str:
    if stack.old is None:
        return "new: it is not deployed yet"
    counts = {what: number for what, number in _counts(stack).items() if number}
    return ", ".join(f"{what} {number}" for what, number in counts.items()) or "no changes"


def _read(file: Path) -> Template:
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        _stop(f"{file} cannot be read: {error.__class__.__name__}")
    except json.JSONDecodeError as error:
        _stop(f"{file}:{error.lineno}: is no JSON; take one of cdk.out, or what get-template of the AWS CLI writes")
    if isinstance(found, dict) and isinstance(found.get("TemplateBody"), dict):
        found = found["TemplateBody"]  # the answer of get-template
    if not isinstance(found, dict) or not isinstance(found.get("Resources"), dict):
        _stop(f"{file} is no template: it has no Resources")
    wrong = [id for id, one in found["Resources"].items() if not isinstance(one, dict) or "Type" not in one]
    if wrong:
        _stop(f"{file} is no template: {wrong[0]} has no Type")
    template: Template = found
    return template


def _live(file: Path, context: Sequence[str]) -> tuple[list[StackChange], list[str]]:
    """Changes and notes, from the account that the project and the credentials name."""
    try:
        project = Project.load(file).project
    except FindingsError as error:
        tell(error.findings, err=True)
        raise typer.Exit(2) from None
    # Only here: boto3 takes longer to load than a file takes to check.
    import boto3
    from botocore.exceptions import BotoCoreError, ClientError

    from fmblocks.guard import assembly, change_sets

    session = boto3.Session()
    try:
        place, pseudo = _place(session, project.account, project.region)
        with tempfile.TemporaryDirectory() as folder:
            _synthesize(file, folder, context)
            stacks = assembly.read(Path(folder), pseudo)
        if not stacks:
            _stop(f"the app has no stack of {file}: does the context in cdk.json name projects?")
        clients = _clients(session, place)
        found = change_sets.look(stacks, clients)
        absent = [f"{project.name}-{name}" for name in STACKS if name not in {stack.name for stack in stacks}]
        left = change_sets.left_behind(clients(stacks[0]).cloudformation, absent)
    except change_sets.GuardError as error:
        _stop(str(error))
    except (BotoCoreError, ClientError) as error:
        _stop(f"AWS does not answer: {error}")
    notes = [
        f"{name} is deployed, and no longer in the project: it stays and bills until it is deleted" for name in left
    ]
    return found, notes


def _synthesize(file: Path, folder: str, context: Sequence[str]) -> None:
    if not Path("cdk.json").is_file():
        _stop("no cdk.json here: run it in the folder of the app")
    command = ["npx", "cdk", "synth", "--quiet", "-c", f"project={file}", "--output", folder]
    command += [word for one in context for word in ("-c", one)]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
    except FileNotFoundError:
        _stop("npx is not here: the CDK CLI is what synthesizes the project")
    if done.returncode:
        _stop(f"cdk synth failed:\n{(done.stderr or done.stdout)[-3000:]}")


def _place(session: boto3.Session, account: str | None, region: str | None) -> tuple[str, dict[str, str]]:
    """The Region, and what an app that is for any account leaves open."""
    place = region or session.region_name
    if place is None:
        _stop("no region: write one into the project, or set AWS_REGION")
    identity = session.client("sts", region_name=place).get_caller_identity()
    if account is not None and identity["Account"] != account:
        _stop(f"the credentials are of account {identity['Account']}, and the project is for {account}")
    pseudo = {"Partition": identity["Arn"].split(":")[1], "AccountId": identity["Account"], "Region": place}
    return place, pseudo


def _clients(session: boto3.Session, place: str) -> Callable[[Stack], Clients]:
    """Clients as the roles of the bootstrap stack, or as oneself where those cannot be assumed."""
    from fmblocks.guard.change_sets import Clients

    known: dict[str, boto3.Session] = {}

    def assumed(role: str | None) -> boto3.Session:
        if role is None:
            return session
        if role not in known:
            known[role] = _assume(session, role, place)
        return known[role]

    def clients(stack: Stack) -> Clients:
        deploying = assumed(stack.role_arn)
        publishing = assumed(stack.asset.role_arn if stack.asset else None)
        return Clients(
            deploying.client("cloudformation", region_name=place), publishing.client("s3", region_name=place)
        )

    return clients


def _assume(session: boto3.Session, role: str, region: str) -> boto3.Session:
    import boto3
    from botocore.exceptions import ClientError

    try:
        answer = session.client("sts", region_name=region).assume_role(RoleArn=role, RoleSessionName="fmblocks-guard")
    except ClientError:
        return session  # as the CDK CLI does: perhaps one's own credentials are enough
    given = answer["Credentials"]
    return boto3.Session(
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
        region_name=region,
    )


def _stop(text: str) -> Any:
    typer.echo(text, err=True)
    raise typer.Exit(2)
