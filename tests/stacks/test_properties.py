"""A file without errors synthesizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import yaml
from hypothesis import HealthCheck, given, settings

from fmblocks.findings import FindingsError
from fmblocks.project import Project
from fmblocks_stacks.app import UNBUILT
from fmblocks_stacks.assembly import build
from tests.unit.test_properties import projects


def test_right_files_synthesize(cdk_context: dict[str, Any], tmp_path: Path) -> None:
    synthesized = 0

    @settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(projects())
    def synthesize(project: dict[str, Any]) -> None:
        nonlocal synthesized
        file = tmp_path / "project.yaml"
        file.write_text(yaml.safe_dump(project))
        try:
            loaded = Project.load(file)
        except FindingsError:
            return
        if any(finding.rule in UNBUILT for finding in loaded.findings):
            return
        app = cdk.App(context=cdk_context, outdir=str(tmp_path / f"out{synthesized}"))
        build(app, [loaded])
        app.synth()
        synthesized += 1

    synthesize()
    assert synthesized >= 5
