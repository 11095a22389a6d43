"""What is refused about metrics."""

from __future__ import annotations

from collections.abc import Iterator

from fmblocks.findings import Violation, rule

_MOST_DAYS = 1095


@rule("FMB-15")
def retention(*, retention_days: int) -> Iterator[Violation]:
    """Samples are kept for a day to three years."""
    if not 1 <= retention_days <= _MOST_DAYS:
        yield Violation("retention_days", f"{retention_days} is not between 1 and {_MOST_DAYS}", "150 is the default")


RULES = ("FMB-15",)
