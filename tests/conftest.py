"""What every test shares."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
# A chart of our own stands for HyperPod\'s, which only a git repository of AWS has.
CHARTS = ROOT / "tests/charts"


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def cdk_context() -> dict[str, Any]:
    """The feature flags of cdk.json: without them a test sees another template than ``cdk synth`` writes."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return {**context, "charts": str(CHARTS)}


@pytest.fixture
def project_file(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a project file."""

    def write(text: str) -> Path:
        file = tmp_path / "project.yaml"
        file.write_text(text)
        return file

    return write
