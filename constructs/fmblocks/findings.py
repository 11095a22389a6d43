"""Findings, and the rules that make them.

A rule is one small function under one id. It takes the settings it looks at as keyword arguments and yields a
:class:`Violation` for each thing that is wrong. The same function runs at two edges: over a project file (all findings
are collected, with file and line) and inside a construct (the arguments may hold unresolved CDK tokens, and a rule one
of whose inputs is a token is skipped: nobody knows the value yet).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from fmblocks.rulebook import Kind, entries

_LONGEST = 600


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Violation:
    """What a rule found: the key it is about (relative to the settings it was given), the text, and what to do."""

    key: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation with its rule, its place and its severity."""

    rule: str
    severity: Severity
    path: str
    message: str
    hint: str = ""
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        where = f"{self.path}: " if self.path else ""
        hint = f"; {self.hint}" if self.hint else ""
        text = f"{self.severity} [{self.rule}] {where}{self.message}{hint}"
        # What a user wrote stands in it: neither control characters nor pages of it belong on a terminal.
        shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
        return place + (shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…")


class FindingsError(ValueError):
    """Raised where wrong settings cannot go on: by :meth:`Project.load` and by constructs."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = list(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


@dataclass(frozen=True, slots=True)
class Rule:
    """A registered rule: an entry of the rule book with the function that checks it."""

    id: str
    severity: Severity
    firm: bool
    function: Callable[..., Iterator[Violation]]
    parameters: tuple[str, ...]


RULES: dict[str, Rule] = {}


def rule(id: str) -> Callable[[Callable[..., Iterator[Violation]]], Callable[..., Iterator[Violation]]]:
    """Register a function as the rule ``id`` of the rule book.

    Raises:
        ValueError: the id is taken, or is no rule of the book.
    """
    entry = entries().get(id)
    if entry is None or entry.kind is not Kind.RULE or entry.severity is None:
        raise ValueError(f"{id} is no rule of the rule book")
    severity = Severity(entry.severity)

    def register(function: Callable[..., Iterator[Violation]]) -> Callable[..., Iterator[Violation]]:
        if id in RULES:
            raise ValueError(f"rule {id} is registered twice")
        RULES[id] = Rule(id, severity, entry.firm, function, tuple(inspect.signature(function).parameters))
        return function

    return register


CHOICES: dict[type[StrEnum], tuple[str, str]] = {}


def choice(id: str, kind: type[StrEnum], hint: str = "take one of these") -> None:
    """Name the rule that a value breaks which is no member of ``kind``, and what to do then.

    Both edges make members of what a user wrote before any rule runs, and ask :func:`not_a_member` where that fails. A
    rule may say more in a function of its own.
    """
    CHOICES[kind] = (id, hint)


def not_a_member(kind: type[StrEnum], value: object, path: str) -> Finding:
    """The finding about a value that is no member of ``kind``, under the kind's own rule where it has one."""
    spelled = {one.lower(): one for one in kind}
    alike = [spelled[name] for name in difflib.get_close_matches(str(value).lower(), spelled, n=1)]
    rule, hint = CHOICES.get(kind, ("SHAPE", "take one of these"))
    text = f"{'null' if value is None else value} is not one of {', '.join(kind)}"
    return Finding(rule, Severity.ERROR, path, text, f"did you mean {alike[0]}?" if alike else hint)


def _never(_: object) -> bool:
    return False


def check(
    rules: Iterable[str],
    values: Mapping[str, object],
    *,
    path: str = "",
    unresolved: Callable[[object], bool] = _never,
    suppressed: Collection[str] = (),
    skipped: list[str] | None = None,
) -> list[Finding]:
    """Run rules over settings.

    Args:
        rules: rule ids; a rule whose parameters are not all among ``values`` is a programming error.
        values: the settings, by the name the user wrote.
        path: where the settings stand, put before each finding's key.
        unresolved: tells a value that is not known yet (a CDK token); a rule that needs one is skipped.
        suppressed: ids that are left out, save those that the code itself relies on.
        skipped: gets the ids of rules that were skipped because of an unresolved value.
    """
    findings = []
    for id in rules:
        found = RULES[id]
        arguments = {name: values[name] for name in found.parameters}
        if id in suppressed and not found.firm:
            continue
        if any(unresolved(value) for value in arguments.values()):
            if skipped is not None:
                skipped.append(id)
            continue
        try:
            violations = list(found.function(**arguments))
        except Exception as error:  # noqa: BLE001  a broken rule is a finding with its name, not a traceback
            text = f"the rule itself failed: {type(error).__name__}: {error}"
            findings.append(Finding(id, Severity.ERROR, path, text, "report this as a bug of fmblocks"))
            continue
        findings += [
            Finding(id, found.severity, ".".join(filter(None, (path, v.key))), v.message, v.hint) for v in violations
        ]
    return findings


def raise_errors(findings: Iterable[Finding]) -> list[Finding]:
    """Raise :class:`FindingsError` with every error among ``findings``; give back the warnings."""
    listed = list(findings)
    errors = [finding for finding in listed if finding.severity is Severity.ERROR]
    if errors:
        raise FindingsError(errors)
    return listed
