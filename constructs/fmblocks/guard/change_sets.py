"""What CloudFormation says that it would do: one change set for each stack, made, read, and deleted unexecuted."""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from fmblocks.guard.assembly import Stack
from fmblocks.guard.judgement import Input, StackChange
from fmblocks.guard.templates import (
    FOLLOWS,
    Action,
    Change,
    Replacement,
    Template,
    compare,
    inputs,
    omitted_paths,
    resources,
)

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.client import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import ParameterTypeDef
    from mypy_boto3_s3.client import S3Client

# CloudFormation takes so many bytes of a template in the request itself. Source: rule CFN-01.
_INLINE_BYTES = 51200
_PATIENCE_SECONDS = 600
_TRIES = 15
_log = logging.getLogger(__name__)
# Stacks in these states hold nothing, and the CDK CLI makes them anew.
_EMPTY = frozenset({"REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"})
_REFERENCES = ("ResourceAttribute", "ResourceReference")


class GuardError(Exception):
    """Why the guard cannot look, in one line."""


@dataclass(frozen=True)
class Clients:
    """What one stack is looked at with: CloudFormation as the role that deploys, S3 as the one that publishes."""

    cloudformation: CloudFormationClient
    s3: S3Client


def look(
    stacks: Sequence[Stack], clients: Callable[[Stack], Clients], *, pause: Callable[[float], None] = time.sleep
) -> list[StackChange]:
    """What a deployment of ``stacks`` would do to what is deployed. Nothing is executed, and no change set stays.

    Raises:
        GuardError: CloudFormation refuses to say.
    """
    found = []
    for stack in stacks:
        theirs = clients(stack)
        deployed = _deployed(theirs.cloudformation, stack.stack_name)
        if deployed is None:
            found.append(StackChange(stack.name, None, stack.template))
            continue
        if deployed["StackStatus"].endswith("_IN_PROGRESS"):
            raise GuardError(f"{stack.stack_name} is in {deployed['StackStatus']}: wait until it is done")
        old = _template(theirs.cloudformation, stack.stack_name)
        with _change_set(stack, theirs, deployed, pause) as described:
            before = {one["ParameterKey"]: one for one in deployed.get("Parameters", [])}
            now = {one["ParameterKey"]: one for one in described["Parameters"]}
            read = tuple(
                Input(key, name, before.get(key, {}).get("ResolvedValue"), now.get(key, {}).get("ResolvedValue"))
                for key, name in inputs(stack.template).items()
            )
            changes = _merged(
                _changes(described, old, stack.template), compare(old, stack.template, paths=omitted_paths)
            )
            found.append(StackChange(stack.name, old, stack.template, tuple(changes), read))
    return found


def left_behind(client: CloudFormationClient, names: Sequence[str]) -> list[str]:
    """Those of ``names`` that are deployed stacks."""
    return [name for name in names if _deployed(client, name) is not None]


def _deployed(client: CloudFormationClient, name: str) -> Mapping[str, Any] | None:
    try:
        (found,) = client.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError" and "does not exist" in str(error):
            return None
        raise GuardError(f"{name}: {_words(error)}") from None
    return None if found["StackStatus"] in _EMPTY else found


def _template(client: CloudFormationClient, name: str) -> Template:
    body: Any = client.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
    if not isinstance(body, Mapping):  # botocore reads JSON; anything else is not ours
        raise GuardError(f"the template of {name} is not JSON: it was not deployed by the CDK CLI")
    return body


@contextlib.contextmanager
def _change_set(
    stack: Stack, clients: Clients, deployed: Mapping[str, Any], pause: Callable[[float], None]
) -> Iterator[Mapping[str, Any]]:
    client, name = clients.cloudformation, f"fmblocks-guard-{secrets.token_hex(6)}"
    known = {one["ParameterKey"] for one in deployed.get("Parameters", [])}
    # As the CDK CLI does: what a stack has got once it keeps. Parameters of SSM are read anew all the same.
    parameters: list[ParameterTypeDef] = [
        {"ParameterKey": key, "UsePreviousValue": True} for key in stack.template.get("Parameters", {}) if key in known
    ]
    tags = [{"Key": key, "Value": value} for key, value in stack.tags.items()]
    try:
        client.create_change_set(
            StackName=stack.stack_name,
            ChangeSetName=name,
            ChangeSetType="UPDATE",
            Description="made by fmblocks guard, to be read and deleted",
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=parameters,
            **({"Tags": tags} if tags else {}),  # type: ignore[arg-type]
            **_body(stack, clients.s3),
        )
        try:
            yield _described(client, stack.stack_name, name, pause)
        finally:
            _delete(client, stack.stack_name, name, pause)
    except ClientError as error:
        raise GuardError(f"{stack.stack_name}: {_words(error)}") from None


def _delete(client: CloudFormationClient, stack: str, name: str, pause: Callable[[float], None]) -> None:
    """Delete a change set; one that is still being made cannot go at once. What went wrong before stays the error."""
    for _ in range(_TRIES):
        try:
            client.delete_change_set(StackName=stack, ChangeSetName=name)
            return
        except ClientError as error:
            if error.response["Error"].get("Code") != "InvalidChangeSetStatus":
                break
            pause(2)
    _log.warning("the change set %s of %s could not be deleted: do it by hand", name, stack)


def _body(stack: Stack, s3: S3Client) -> dict[str, Any]:
    if len(stack.body.encode()) <= _INLINE_BYTES:
        return {"TemplateBody": stack.body}
    if stack.asset is None:
        raise GuardError(f"the template of {stack.stack_name} is too long to send, and the app has no bucket for it")
    # Where the CDK CLI would put it, under the name of its content: a deployment finds it there.
    bucket, key = stack.asset.bucket, stack.asset.key
    s3.put_object(Bucket=bucket, Key=key, Body=stack.body.encode())
    return {"TemplateURL": f"{s3.meta.endpoint_url}/{bucket}/{key}"}


def _described(
    client: CloudFormationClient, stack: str, name: str, pause: Callable[[float], None]
) -> Mapping[str, Any]:
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = client.describe_change_set(StackName=stack, ChangeSetName=name)
        if found["Status"] in ("CREATE_COMPLETE", "FAILED"):
            break
        if time.monotonic() > until:
            raise GuardError(f"{stack}: the change set is still {found['Status']} after {_PATIENCE_SECONDS} s")
        pause(2)
    reason = found.get("StatusReason", "")
    empty = "didn't contain changes" in reason or "No updates are to be performed" in reason
    if found["Status"] == "FAILED" and not empty:
        raise GuardError(f"{stack}: CloudFormation makes no change set: {reason}")
    changes = list(found.get("Changes", []))
    page = found
    while token := page.get("NextToken"):
        page = client.describe_change_set(StackName=stack, ChangeSetName=name, NextToken=token)
        changes += page.get("Changes", [])
    return {"Changes": changes, "Parameters": found.get("Parameters", [])}


def _changes(described: Mapping[str, Any], old: Template, new: Template) -> list[Change]:
    told = [one["ResourceChange"] for one in described["Changes"] if "ResourceChange" in one]
    replaced = {one["LogicalResourceId"] for one in told if one.get("Replacement", "False") != "False"}
    while True:
        found = [_change(one, replaced, old, new) for one in told]
        # A resource that turns out to stay takes the doubt from those that only follow it.
        left = {one.logical_id for one in found if one.replacement is not Replacement.NO} & replaced
        if left == replaced:
            return found
        replaced = left


def _change(told: Mapping[str, Any], replaced: set[str], old: Template, new: Template) -> Change:
    id, kind = told["LogicalResourceId"], told["ResourceType"]
    if told["Action"] in ("Add", "Import"):
        return Change(id, kind, Action.ADD)
    if told["Action"] == "Remove":
        return Change(id, kind, Action.REMOVE)
    if told["Action"] == "Dynamic":  # CloudFormation cannot tell whether it stays
        return Change(id, kind, Action.MODIFY, Replacement.MAYBE, ("an action that CloudFormation cannot foretell",))
    recreating = [one for one in told.get("Details", []) if one["Target"].get("RequiresRecreation", "Never") != "Never"]
    causes = []
    for detail in recreating:
        if _stays(detail, replaced, new):
            continue
        name = detail["Target"].get("Name") or detail["Target"].get("Attribute", "a property")
        entity = detail.get("CausingEntity", "").split(".")[0]
        cause = f"{name}{FOLLOWS}{entity}" if entity else name
        if cause not in causes:
            causes.append(cause)
    # A property that CloudFormation names twice, once for itself and once for what it follows.
    causes = [one for one in causes if not any(other.startswith(f"{one},") for other in causes)]
    sure = {"True": Replacement.YES, "Conditional": Replacement.MAYBE}.get(told.get("Replacement", ""), Replacement.NO)
    if sure is not Replacement.NO and not causes:
        if recreating:  # all of them stay
            return Change(id, kind, Action.MODIFY)
        types = {resources(one).get(id, {}).get("Type") for one in (old, new)}
        causes = ["Type" if len(types) > 1 else "a reason that CloudFormation does not name"]
    return Change(id, kind, Action.MODIFY, sure, tuple(causes))


def _stays(detail: Mapping[str, Any], replaced: set[str], new: Template) -> bool:
    """Whether CloudFormation is only careful: the attribute of a resource that is changed in place.

    A new key policy makes it say that everything which names the key's ARN may be replaced. What identifies a resource
    does not change while the resource stays.
    """
    if detail.get("Evaluation") != "Dynamic" or detail.get("ChangeSource") not in (
        "ResourceAttribute",
        "ResourceReference",
    ):
        return False
    entity, _, attribute = detail.get("CausingEntity", "").partition(".")
    cause = resources(new).get(entity)
    if cause is None or entity in replaced or cause["Type"].startswith(("Custom::", "AWS::CloudFormation::")):
        return False
    return not attribute or attribute.endswith(("Arn", "ARN", "Id", "Name"))


def _merged(told: Sequence[Change], own: Sequence[Change]) -> list[Change]:
    """CloudFormation's answer, with what its schemas omit."""
    found = {one.logical_id: one for one in told}
    for change in own:
        if change.replacement is Replacement.NO:
            continue
        known = found.get(change.logical_id)
        found[change.logical_id] = known.with_causes(change) if known else change
    return list(found.values())


def _words(error: ClientError) -> str:
    found = error.response["Error"]
    return f"{found.get('Code')}: {found.get('Message')}"


__all__ = ["Clients", "GuardError", "left_behind", "look"]
