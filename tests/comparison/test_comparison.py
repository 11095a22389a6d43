"""The table of what other tools catch is current, and every mistake in it is one of ours."""

from __future__ import annotations

import dataclasses

import pytest

from tests.comparison.cases import CASES, HEAD, Case
from tests.comparison.compare import PAGE, caught, ours, page


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title.replace(" ", "-"))
def test_every_mistake_is_refused(case: Case) -> None:
    # A group's name is refused by its own shape, which is narrower than HyperPod's.
    assert ours(case) == {"HP-01": "SHAPE", "HP-07": "built in"}.get(case.rule, case.rule)
    assert case.right != case.wrong


def test_a_project_without_the_mistake_is_not_counted() -> None:
    assert ours(dataclasses.replace(CASES[0], project=HEAD)) == "–"


def test_the_page_is_current() -> None:
    """`make docs` writes it."""
    assert PAGE.read_text(encoding="utf-8") == page(*caught())
