"""A first app."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fmblocks.cli.main import app
from fmblocks.project import Project

GIVEN = ["init", "--name", "my-first", "--region", "eu-central-1", "--instance-type", "g6.2xlarge", "--count", "1"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_files_are_written_and_right(elsewhere: Path, root: Path) -> None:
    assert CliRunner().invoke(app, GIVEN).exit_code == 0
    assert {file.name for file in elsewhere.iterdir()} == {"app.py", "cdk.json", "my-first.yaml"}
    loaded = Project.load("my-first.yaml")
    assert loaded.findings == []
    assert loaded.project.network.primary == "euc1-az1"
    settings = json.loads((elsewhere / "cdk.json").read_text())
    assert settings["context"].pop("project") == "my-first.yaml"
    ours = json.loads((root / "cdk.json").read_text())["context"]
    assert settings["context"] == {key: value for key, value in ours.items() if key != "project"}


def test_what_is_not_given_is_asked_for(elsewhere: Path) -> None:
    done = CliRunner().invoke(app, ["init"], input="asked\nus-east-1\ng6.xlarge\n3\n")
    assert done.exit_code == 0
    training = Project.load("asked.yaml").project.training
    assert training is not None
    assert training.node_groups[1].count == 3


def test_nothing_is_overwritten(elsewhere: Path) -> None:
    (elsewhere / "app.py").write_text("mine")
    done = CliRunner().invoke(app, GIVEN)
    assert done.exit_code == 1
    assert "app.py is here already: nothing was written" in done.stderr
    assert [file.name for file in elsewhere.iterdir()] == ["app.py"]


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (2, "My_First", "takes 3 to 25 small letters"),
        (4, "eu-central-9", "eu-central-9 is not an AWS region"),
        (6, "g66.large", "is not an instance type of the catalogue"),
        (8, "-1", "-1 is not between 0"),
        (2, "../x", "takes 3 to 25 small letters"),
    ],
)
def test_wrong_answers_write_nothing(elsewhere: Path, place: int, value: str, said: str) -> None:
    words = [value if index == place else word for index, word in enumerate(GIVEN)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert said in done.stderr
    assert list(elsewhere.iterdir()) == []


def test_json(elsewhere: Path) -> None:
    done = CliRunner().invoke(app, [*GIVEN, "--json"])
    assert json.loads(done.stdout) == {"wrote": ["app.py", "cdk.json", "my-first.yaml"], "findings": []}
    again = CliRunner().invoke(app, [*GIVEN, "--json"])
    assert again.exit_code == 1
    told = json.loads(again.stdout)
    assert told["wrote"] == []
    assert "app.py, cdk.json, my-first.yaml is here already" in told["findings"][0]["message"]


def test_questions_do_not_stand_in_the_json(elsewhere: Path) -> None:
    done = CliRunner().invoke(app, ["init", "--json"], input="asked\nus-east-1\ng6.xlarge\n3\n")
    assert "name of the project" in done.stderr
    assert "name of the project" not in done.stdout
    told = done.stdout.splitlines()[-1]  # before it the runner repeats what was typed, as a terminal does
    assert json.loads(told)["wrote"] == ["app.py", "cdk.json", "asked.yaml"]


def test_a_warning_is_told_and_the_files_are_written(elsewhere: Path) -> None:
    words = ["us-gov-west-1" if word == "eu-central-1" else word for word in GIVEN]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "warning [HP-29] region" in done.stderr
    assert (elsewhere / "my-first.yaml").exists()
