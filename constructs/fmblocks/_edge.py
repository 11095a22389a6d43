"""The construct edge: the rules of the project file, run over a construct's arguments."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import ParamSpec, TypeVar

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from jsii._reference_map import InterfaceDynamicProxy
from pydantic import ValidationError

from fmblocks.catalog import Types, merged
from fmblocks.catalog.settings import CatalogEntry
from fmblocks.findings import Finding, FindingsError, Severity, check, not_a_member, raise_errors

SUPPRESS = "fmblocks:suppress"
CATALOG = "fmblocks:catalog"
_BELOW_ANY_NUMBER = -1e100
Member = TypeVar("Member", bound=StrEnum)
Parameters = ParamSpec("Parameters")


def typed(init: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Refuse arguments of the wrong kind, as jsii does for the constructs of aws-cdk-lib.

    Without it ``vpc_subnet="subnet-1"`` ends in "'str' object has no attribute 'subnet_id'", far from its cause.
    """
    signature = inspect.signature(init)
    hints: dict[str, object] = {}

    @functools.wraps(init)
    def checked(*positional: Parameters.args, **given: Parameters.kwargs) -> None:
        if not hints:
            hints.update(typing.get_type_hints(init))
        bound = signature.bind(*positional, **given).arguments
        scope, id = bound["scope"], bound["id"]
        path = f"{scope.node.path}/{id}".lstrip("/") if isinstance(scope, Construct) else str(id)
        raise_kinds({name: (value, hints[name]) for name, value in bound.items() if name in hints}, path)
        try:
            init(*positional, **given)
        except FindingsError as error:
            raise FindingsError(
                dataclasses.replace(finding, file=finding.file or path) for finding in error.findings
            ) from None

    return checked


def raise_kinds(values: Mapping[str, tuple[object, object]], place: str) -> None:
    """Raise when a value does not have the kind that stands beside it.

    Raises:
        FindingsError: with every such value.
    """
    findings = [
        dataclasses.replace(fault(name, f"{_shown(value)} is not {_kind(hint)}", "see the docstring"), file=place)
        for name, (value, hint) in values.items()
        if not _has_kind(value, hint)
    ]
    if findings:
        raise FindingsError(findings)


def _has_kind(value: object, hint: object) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_has_kind(value, part) for part in arguments)
    if origin is Sequence:
        return isinstance(value, (list, tuple)) and all(_has_kind(item, arguments[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_has_kind(item, arguments[1]) for item in value.values())
    if not isinstance(hint, type):
        return True
    if hint is int:  # a number that is not known yet is a strange float, and True is no number
        return (isinstance(value, int) and not isinstance(value, bool)) or _unknown_number(value)
    if issubclass(hint, StrEnum):
        return isinstance(value, str)  # the construct makes a member of it, with a message of its own
    if getattr(hint, "_is_protocol", False):  # an interface, of CDK or of ours
        if isinstance(value, InterfaceDynamicProxy):
            return True  # CDK says no more about it than that it is an interface
        owner = type(value) if hasattr(hint, "__jsii_type__") else value  # asking a jsii object is a message to Node
        return all(hasattr(owner, name) for name in dir(hint) if not name.startswith("_"))
    return isinstance(value, hint)


def _unknown_number(value: object) -> bool:
    return isinstance(value, float) and unresolved(value)


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, (str, int, float, list, tuple, dict, type(None))) else type(value).__name__


def _kind(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) else re.sub(r"\b\w+\.", "", str(hint))


def check_arguments(
    scope: Construct,
    rules: Iterable[str],
    values: Mapping[str, object],
    *,
    path: str = "",
    names: Mapping[str, str] | None = None,
) -> None:
    """Refuse wrong arguments; annotate ``scope`` with the warnings.

    Rules speak of the keys of the project file; ``names`` says what arguments with another name are called here.

    A rule with a token among its inputs is skipped: the value is not known before deployment. So is one whose id stands
    in the context value ``fmblocks:suppress``, a list.
    """
    skipped: list[str] = []
    found = check(rules, values, path=path, unresolved=unresolved, suppressed=suppressed(scope), skipped=skipped)
    if skipped:
        text = f"not checked, since an argument is a token: {', '.join(skipped)}"
        cdk.Annotations.of(scope).add_warning_v2("fmblocks:Skipped", text)
    told = [dataclasses.replace(one, file=scope.node.path, path=_renamed(one.path, names or {})) for one in found]
    for finding in raise_errors(told):
        text = f"{finding.path}: {finding.message}; {finding.hint}"
        cdk.Annotations.of(scope).add_warning_v2(f"fmblocks:{finding.rule}", text)


def _renamed(path: str, names: Mapping[str, str]) -> str:
    for key in sorted(names, key=len, reverse=True):  # metadata.iops before metadata
        if path == key or path.startswith((f"{key}[", f"{key}.")):
            return names[key] + path.removeprefix(key)
    return path


def instance_types(scope: Construct) -> Types:
    """The catalogue, with what the context list ``fmblocks:catalog`` adds to it."""
    rows = scope.node.try_get_context(CATALOG) or []
    try:
        return merged(CatalogEntry.model_validate(row).row() for row in rows)
    except (TypeError, ValidationError) as error:
        raise FindingsError([fault(CATALOG, f"{rows!r} is no list of types", str(error).split("\n")[0])]) from None


def suppressed(scope: Construct) -> list[str]:
    """The ids of the context list ``fmblocks:suppress``."""
    given = scope.node.try_get_context(SUPPRESS) or []
    if not isinstance(given, list) or not all(isinstance(id, str) for id in given):
        raise FindingsError([fault(SUPPRESS, f"{given!r} is no list of rules", 'write ["FSX-02"]')])
    return given


def member(kind: type[Member], value: Member | str, name: str) -> Member:
    """``value`` as a member of ``kind``: jsii does not look at enums that are written in Python.

    Raises:
        FindingsError: it is none.
    """
    try:
        return kind(value)
    except ValueError:
        raise FindingsError([not_a_member(kind, value, name)]) from None


def concrete(name: str, value: object) -> None:
    """Refuse a token where the template itself depends on the value.

    Raises:
        FindingsError: it is not known before deployment.
    """
    if unresolved(value):
        text = "is a token, but the template depends on its value"
        raise FindingsError([fault(name, text, "pass a literal value")])


def with_zone(name: str, at: datetime | None) -> None:
    """Refuse a time without its zone: it would mean another moment on another machine.

    Raises:
        FindingsError: it has none.
    """
    if at is not None and at.tzinfo is None:
        raise FindingsError([fault(name, f"{at.isoformat()} has no time zone", "give one, for example datetime.UTC")])


def zone_of(subnet: ec2.ISubnet) -> str | None:
    """The zone of a subnet as a user wrote it; None where it is not known, as with most imported subnets."""
    return _told(lambda: subnet.availability_zone)


def cidr_of(subnet: ec2.ISubnet) -> str | None:
    """The address range of a subnet; None where it is not known, as with most imported subnets."""
    return _told(lambda: subnet.ipv4_cidr_block)


def _told(ask: Callable[[], str]) -> str | None:
    try:
        found = ask()
    except RuntimeError:  # CDK refuses to say what it was not told
        return None
    return None if unresolved(found) else found


def public_among(subnets: Iterable[ec2.ISubnet], vpc: ec2.IVpc | None) -> dict[int, str]:
    """The subnets that are known to be public, by their place; of most imported ones nobody knows."""
    known = {subnet.subnet_id for subnet in vpc.public_subnets} if vpc else set()
    return {
        at: subnet.node.path
        for at, subnet in enumerate(subnets)
        if isinstance(subnet, ec2.PublicSubnet) or subnet.subnet_id in known
    }


def fault(path: str, message: str, hint: str) -> Finding:
    """An argument that is wrong in shape."""
    return Finding("SHAPE", Severity.ERROR, path, message, hint)


def label(construct: Construct) -> str:
    """What a Name tag says: the stack's name and the path inside the stack, the same in an app and in a Stage."""
    stack = cdk.Stack.of(construct)
    below = construct.node.path.removeprefix(stack.node.path).strip("/")
    return f"{stack.stack_name}/{below}"


def unresolved(value: object) -> bool:
    """Whether a token stands in ``value``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(unresolved(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, Mapping):
        return any(unresolved(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(unresolved(item) for item in value)
    # Every question to CDK is a message to another process. Text that holds a token holds "${", and a number that is
    # one is far below any number a person writes, so most questions need not be asked.
    if isinstance(value, str):
        asked = "${" in value or "#{" in value  # text, and an item of a list
    elif isinstance(value, (int, float)):
        asked = value < _BELOW_ANY_NUMBER
    else:
        asked = isinstance(value, cdk.Token)
    return asked and cdk.Token.is_unresolved(value)
