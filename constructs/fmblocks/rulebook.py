"""The rule book: every id, what kind of thing it is, what AWS does otherwise, and where that was read.

Severities and sources stand in ``rulebook.json`` and nowhere else; the functions in the rooms' ``rules.py`` carry the
limits.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

__all__ = ["Entry", "Kind", "entries", "sources"]


class Kind(StrEnum):
    """What becomes of a rule."""

    RULE = "rule"  # a function refuses or warns
    BUILT_IN = "built in"  # a construct sets it, so that nobody can get it wrong
    PREFLIGHT = "preflight"  # only the account knows
    GUARD = "guard"  # about a change of what is deployed
    NOTE = "note"  # permanent advice


@dataclass(frozen=True, slots=True)
class Entry:
    """One id of the rule book.

    Attributes:
        id: for example ``FSX-02``; FMB ids are this library's own contract.
        kind: exactly one.
        severity: ``error`` or ``warning``, of kind rule only.
        firm: whether the constructs rely on it, so that it cannot be suppressed.
        checked_as: the id under which it is checked, where another one says the same.
        later: whether what it is built into is not in this version.
        rule: what holds.
        otherwise: what AWS does when it does not hold; its own words where they are known.
        source: where that was read, by the keys of :func:`sources`.
    """

    id: str
    kind: Kind
    severity: str | None
    firm: bool
    checked_as: str | None
    later: bool
    rule: str
    otherwise: str | None
    source: str


@functools.cache
def _book() -> dict[str, Any]:
    book: dict[str, Any] = json.loads(Path(__file__).with_name("rulebook.json").read_text(encoding="utf-8"))
    return book


@functools.cache
def entries() -> dict[str, Entry]:
    """Every id, in the order of the book."""
    return {
        id: Entry(
            id,
            Kind(row["kind"]),
            row.get("severity"),
            row.get("firm", False),
            row.get("as"),
            row.get("later", False),
            row["rule"],
            row.get("otherwise"),
            row["source"],
        )
        for id, row in _book()["rules"].items()
    }


def sources(entry: Entry) -> list[str]:
    """The titles of what an entry's source names by key."""
    known = _book()["source_keys"]
    found = []
    for keys, title in known.items():
        for key in re.split(r" / ", keys):
            name = key.removesuffix(":x")
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", entry.source):
                found.append(f"{key}: {title}")
    return found
