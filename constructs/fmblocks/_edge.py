"""The construct edge: the rules of the project file, run over a construct's arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import aws_cdk as cdk
from constructs import Construct

from fmblocks.findings import check, raise_errors


def check_arguments(scope: Construct, rules: Iterable[str], values: Mapping[str, object], *, path: str = "") -> None:
    """Refuse wrong arguments; annotate ``scope`` with the warnings.

    A rule with a token among its inputs is skipped: the value is not known before deployment.
    """
    for finding in raise_errors(check(rules, values, path=path, unresolved=_unresolved)):
        text = f"{finding.path}: {finding.message}; {finding.hint}"
        cdk.Annotations.of(scope).add_warning_v2(f"fmblocks:{finding.rule}", text)


def _unresolved(value: object) -> bool:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(_unresolved(getattr(value, field.name)) for field in dataclasses.fields(value))
    if isinstance(value, (list, tuple)):
        return any(_unresolved(item) for item in value)
    return isinstance(value, (str, int, float, cdk.Token)) and cdk.Token.is_unresolved(value)
