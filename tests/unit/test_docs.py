"""The documents say what is there."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fmblocks
from fmblocks.catalog.settings import CatalogEntry
from fmblocks.project import Project
from fmblocks.settings import Settings


def test_the_project_file_of_the_readme_is_right(root: Path, project_file: Callable[[str], Path]) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    assert len(text.splitlines()) <= 20
    assert Project.load(project_file(text)).findings == []


CONSTRUCTS = [name for name, home in fmblocks._HOMES.items() if home.split(".")[-1] not in ("settings", "findings")]


@pytest.mark.parametrize(
    "name", [name for name in CONSTRUCTS if not name.startswith("I") and hasattr(getattr(fmblocks, name), "node")]
)
def test_every_construct_has_its_section(root: Path, name: str) -> None:
    sections = (root / "docs" / "constructs.md").read_text().split("\n## ")
    (section,) = [text for text in sections if name in text.splitlines()[0].split()]
    assert "*Proven how*" in section


def _models(annotation: object) -> Iterator[type[Settings]]:
    """Every model that a user can write inside ``annotation``."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        yield annotation
        for field in annotation.model_fields.values():
            yield from _models(field.annotation)
    for part in typing.get_args(annotation):
        yield from _models(part)


@pytest.mark.parametrize("model", sorted(set(_models(Project)) - {CatalogEntry}, key=str))
def test_every_key_is_described(root: Path, model: type[Settings]) -> None:
    text = (root / "docs" / "project-file.md").read_text()
    told = set(re.findall(r"[a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert set(model.model_fields) <= told


def test_links_lead_somewhere(root: Path) -> None:
    for file in [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", file.read_text()):
            assert (file.parent / target).exists(), (file, target)


def test_make_help_lists_every_target(root: Path) -> None:
    text = (root / "Makefile").read_text()
    declared = set(re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split())  # type: ignore[index]
    assert declared == set(re.findall(r"^([a-z-]+):.*## ", text, re.MULTILINE))
