"""The rule book is whole, and what is not built yet is known."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fmblocks.cli.main import app
from fmblocks.findings import CHOICES, RULES, rule
from fmblocks.project import PROJECT_RULES
from fmblocks.rulebook import Kind, entries, sources

IDS = {
    "X": 10, "EFA": 27, "PG": 15, "CR": 22, "CB": 21, "TP": 9, "FSX": 30, "DRA": 13, "HP": 30, "EKS": 9, "AMP": 8,
    "AMG": 10, "NET": 7, "CFN": 3, "REG": 2, "PCS": 10,
}  # fmt: skip


def test_every_id_is_there_once() -> None:
    found = Counter(id.split("-")[0] for id in entries())
    del found["FMB"]
    assert found == IDS
    for prefix, number in IDS.items():
        assert [id for id in entries() if id.startswith(f"{prefix}-")] == [
            f"{prefix}-{n:02}" for n in range(1, number + 1)
        ]


def test_every_entry_is_whole() -> None:
    for entry in entries().values():
        assert entry.rule
        assert entry.source
        assert (entry.severity is not None) == (entry.kind is Kind.RULE)
        assert "`" not in entry.rule + entry.source


def test_every_rule_of_the_book_is_checked() -> None:
    """By a function of its own, under the id of another, or by the project file itself."""
    rules = {entry.id: entry for entry in entries().values() if entry.kind is Kind.RULE}
    own = {id for id, entry in rules.items() if entry.checked_as is None}
    assert own == set(RULES) | PROJECT_RULES | {id for id, _ in CHOICES.values()}
    assert {entry.checked_as for entry in entries().values() if entry.checked_as} <= set(RULES)
    assert not any(entry.later for entry in rules.values())


def test_what_is_registered_is_a_rule_and_our_own_are_all_registered() -> None:
    assert all(entries()[id].kind is Kind.RULE for id in RULES)
    ours = {id for id, entry in entries().items() if id.startswith("FMB-") and entry.kind is Kind.RULE}
    assert ours - set(RULES) == PROJECT_RULES


@pytest.mark.parametrize("id", ["FSX-99", "FSX-17", "EFA-24"])
def test_only_rules_can_be_registered(id: str) -> None:
    with pytest.raises(ValueError, match=f"{id} is no rule of the rule book"):
        rule(id)


def test_sources_are_spelled_out() -> None:
    titles = sources(entries()["FSX-13"])
    assert any("Working with EFA-enabled file systems" in title for title in titles)
    assert any("botocore" in title for title in titles)


def test_explain() -> None:
    shown = CliRunner().invoke(app, ["explain", "fsx-02"])
    assert shown.exit_code == 0
    assert "FSX-02 (rule, error)" in shown.stdout
    assert "fmblocks.storage.rules.capacity" in shown.stdout
    data = json.loads(CliRunner().invoke(app, ["explain", "EFA-10", "--json"]).stdout)
    assert (data["kind"], data["checked"]) == ("built in", "the constructs set it")
    wrong = CliRunner().invoke(app, ["explain", "FSX-200"])
    assert wrong.exit_code == 2
    assert "did you mean FSX-20" in wrong.stderr
    assert len(json.loads(CliRunner().invoke(app, ["explain", "--json"]).stdout)) == len(entries())


def test_the_page_of_rules_is_current(root: Path) -> None:
    """`make docs` writes it."""
    assert (root / "docs" / "rules.md").read_text() == runpy.run_path(str(root / "docs" / "generate.py"))[
        "rules_page"
    ]()
