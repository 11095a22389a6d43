"""What is refused about a project's tags."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fmblocks.findings import Violation, rule
from fmblocks.rulebook import Kind, entries

# One tag of 50 stays free for the one that every stack of ours adds.
_MOST_TAGS = 49
_ALLOWED = r"[\w .:/=+\-@]*"


@rule("FMB-10")
def tags(*, tags: Mapping[str, str]) -> Iterator[Violation]:
    """Tags fit what every AWS service takes."""
    if len(tags) > _MOST_TAGS:
        yield Violation("tags", f"{len(tags)} are more than the {_MOST_TAGS} there is room for", "drop some")
    for key in tags:
        if other := next((one for one in tags if one != key and one.lower() == key.lower() and one < key), None):
            yield Violation(
                f"tags.{key}", f"differs from {other} in case only, which IAM takes for the same", "drop one"
            )
    for key, value in tags.items():
        where = f"tags.{key}"
        if key.lower().startswith("aws:"):
            yield Violation(where, "begins with aws:, which AWS keeps for itself", "rename it")
        if key == "fmblocks:project":
            yield Violation(where, "is set by fmblocks itself", "drop it")
        if not 1 <= len(key) <= 128 or len(value) > 256:
            text = f"key of {len(key)} and value of {len(value)} characters: 1 to 128 and up to 256 are taken"
            yield Violation(where, text, "change its length")
        if not re.fullmatch(_ALLOWED, key) or not re.fullmatch(_ALLOWED, value):
            yield Violation(
                where, f"{value!r} has characters that tags do not take", "use letters, digits and .:/=+-@_"
            )


class Suppressed(Protocol):
    """A suppression as the rules see it."""

    @property
    def rule(self) -> str: ...
    @property
    def reason(self) -> str: ...


@rule("FMB-21")
def suppressions(*, suppress: Sequence[Suppressed]) -> Iterator[Violation]:
    """A suppression names a rule and a reason; what no function checks cannot be suppressed."""
    for index, one in enumerate(suppress):
        entry = entries().get(one.rule)
        where = f"suppress[{index}]"
        if entry is None:
            alike = difflib.get_close_matches(one.rule.upper(), entries(), n=2)
            hint = f"did you mean {' or '.join(alike)}?" if alike else "see `fmblocks explain`"
            yield Violation(f"{where}.rule", f"{one.rule} is no id of the rule book", hint)
        elif entry.kind is not Kind.RULE:
            yield Violation(f"{where}.rule", f"{one.rule} is {entry.kind}, which nothing refuses", "leave it out")
        elif entry.firm:
            yield Violation(f"{where}.rule", f"{one.rule} is what the constructs rely on", "change what it is about")
        elif one.rule in [other.rule for other in suppress[:index]]:
            yield Violation(f"{where}.rule", f"{one.rule} is suppressed twice", "keep one of the two")
        if not one.reason.strip():
            yield Violation(f"{where}.reason", "is empty", "say why the rule does not matter here")


RULES = ("FMB-10", "FMB-21")
