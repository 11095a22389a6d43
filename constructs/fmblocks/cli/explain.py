"""Where an id of the rule book is looked after in this version."""

from __future__ import annotations

from fmblocks.findings import CHOICES, RULES
from fmblocks.project import PROJECT_RULES, refused_keys
from fmblocks.rulebook import Entry, Kind


def where_checked(entry: Entry) -> str:
    """A module, another id, a key of the project file, or that nobody does yet."""
    if entry.checked_as:
        return f"as {entry.checked_as}"
    if found := RULES.get(entry.id):
        return f"{found.function.__module__}.{found.function.__name__}"
    if entry.id in PROJECT_RULES:
        return "fmblocks.project"
    if kind := next((kind for kind, (rule, _) in CHOICES.items() if rule == entry.id), None):
        return f"where {kind.__name__} is read"
    if key := refused_keys().get(entry.id):
        return f"the key {key} of a project file is refused"
    return {
        Kind.RULE: "not in this version",
        Kind.BUILT_IN: "will be built in; not in this version" if entry.later else "the constructs set it",
        Kind.PREFLIGHT: "only the account knows; not in this version" if entry.later else "fmblocks preflight",
        Kind.GUARD: "fmblocks guard",
        Kind.NOTE: "advice",
    }[entry.kind]
