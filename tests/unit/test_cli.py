"""The command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fmblocks.cli.local import _context_value, _place
from fmblocks.cli.main import app
from fmblocks.local.session import _cdk_of

RIGHT = "name: my-project\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\n"
Write = Callable[[str], Path]


def test_validate_says_nothing_about_a_right_file(project_file: Write) -> None:
    done = CliRunner().invoke(app, ["validate", str(project_file(RIGHT))])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "files: 1, errors: 0, warnings: 0" in done.stderr


def test_validate_goes_on_after_a_wrong_file(project_file: Write, root: Path) -> None:
    wrong = project_file(RIGHT.replace("usw2-az2", "use1-az1"))
    done = CliRunner().invoke(app, ["validate", str(wrong), "none.yaml", str(root / "projects" / "trial-g6.yaml")])
    assert done.exit_code == 1
    assert f"{wrong}:3: error [FMB-01] network.availability_zones: use1-az1" in done.stdout
    assert "none.yaml: error [SHAPE] there is no such file" in done.stdout
    assert "trial-g6.yaml:1: warning [FMB-11] region" in done.stdout
    assert "files: 3, errors: 2, warnings: 1" in done.stderr


def test_a_warning_alone_is_no_failure(root: Path) -> None:
    assert CliRunner().invoke(app, ["validate", str(root / "projects" / "trial-g6.yaml")]).exit_code == 0


def test_usage_errors_end_with_two() -> None:
    assert CliRunner().invoke(app, ["validate"]).exit_code == 2
    assert CliRunner().invoke(app, ["nothing"]).exit_code == 2


def test_instances() -> None:
    shown = CliRunner().invoke(app, ["instances", "p5en"]).stdout.splitlines()
    assert len(shown) == 2
    assert shown[1].split() == ["p5en.48xlarge", "8", "×", "H200", "1128", "192", "2048", "16", "3200", "yes"]
    (row,) = json.loads(CliRunner().invoke(app, ["instances", "ml.p6-b300", "--json"]).stdout)
    assert (row["max_efa_interfaces"], row["peak_dense_tflops_fp4"]) == (16, None)
    assert CliRunner().invoke(app, ["instances", "z9"]).exit_code == 1


def test_schema_prints_json() -> None:
    assert "network" in json.loads(CliRunner().invoke(app, ["schema"]).stdout)["properties"]


@pytest.mark.parametrize(
    ("command", "value"),
    [
        (["npx", "cdk", "deploy", "-c", "project=a.yaml"], "a.yaml"),
        (["npx", "cdk", "deploy", "--context", "project=a=b.yaml"], "a=b.yaml"),
        (["npx", "cdk", "deploy", "--context=project=a.yaml"], "a.yaml"),
        (["npx", "cdk", "deploy", "-c", "projects=a.yaml"], None),
        (["env"], None),
    ],
)
def test_the_project_of_a_cdk_command(command: list[str], value: str | None) -> None:
    assert _context_value(command, "project") == value


def test_account_and_region_of_a_project(project_file: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _place(str(project_file(RIGHT))) == ("123456789012", "us-west-2")
    monkeypatch.chdir(tmp_path)
    assert _place(None) == ("123456789012", "us-east-1")
    (tmp_path / "cdk.json").write_text('{"context": {"project": "project.yaml"}}')
    assert _place(None) == ("123456789012", "us-west-2")


@pytest.mark.parametrize(
    ("command", "cdk"),
    [
        (["cdk", "deploy"], ["cdk"]),
        (["npx", "cdk", "deploy"], ["npx", "cdk"]),
        (["node_modules/.bin/cdk", "synth"], ["node_modules/.bin/cdk"]),
        (["aws", "s3", "ls"], None),
    ],
)
def test_cdk_commands_are_known(command: list[str], cdk: list[str] | None) -> None:
    assert _cdk_of(command) == cdk
