"""The command line."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fmblocks.cli.local import _context_value, _place
from fmblocks.cli.main import app
from fmblocks.local.session import _cdk_of
from fmblocks.project import Project

RIGHT = "name: my-project\nregion: us-west-2\nnetwork: {availability_zones: [usw2-az2]}\n"
Write = Callable[[str], Path]


def test_validate_says_nothing_about_a_right_file(project_file: Write) -> None:
    done = CliRunner().invoke(app, ["validate", str(project_file(RIGHT))])
    assert (done.exit_code, done.stdout) == (0, "")
    assert "files: 1, errors: 0, warnings: 0" in done.stderr


def test_validate_says_what_a_file_does_without(project_file: Write) -> None:
    text = RIGHT + "suppress:\n  - {rule: FMB-29, reason: backups are made by hand}\n"
    done = CliRunner().invoke(app, ["validate", str(project_file(text))])
    assert "suppressed: FMB-29" in done.stderr


def test_validate_goes_on_after_a_wrong_file(project_file: Write, root: Path) -> None:
    wrong = project_file(RIGHT.replace("usw2-az2", "use1-az1"))
    done = CliRunner().invoke(app, ["validate", str(wrong), "none.yaml", str(root / "projects" / "trial-g6.yaml")])
    assert done.exit_code == 1
    assert f"{wrong}:3: error [FMB-01] network.availability_zones: use1-az1" in done.stdout
    assert "none.yaml: error [SHAPE] there is no such file" in done.stdout
    assert "trial-g6.yaml:1: warning [FMB-11] region" in done.stdout
    assert "files: 3, errors: 2, warnings: 1" in done.stderr


BLOCK = (
    "training:\n  orchestrator: ec2\n  node_groups:\n    - name: gpu\n      role: compute\n"
    "      instance_type: p5.48xlarge\n      count: 4\n      capacity:\n        mode: capacity_block\n"
    "        capacity_reservation_id: cr-0123456789abcdef0\n        availability_zone: usw2-az2\n"
    "        start: 2026-12-10T11:30:00Z\n        end: 2026-12-17T11:30:00Z\n"
)


@pytest.mark.parametrize(
    ("now", "code", "said"),
    [
        ("2026-12-09", 0, "warning [CB-13] training.node_groups[0].count: 4 nodes are asked for before"),
        ("2026-12-12", 0, ""),
        ("2026-12-17T11:29:59Z", 0, ""),
        ("2026-12-17T11:30:00Z", 1, "error [FMB-27] training.node_groups[0].capacity.end"),
    ],
)
def test_the_day_counts_for_validate(project_file: Write, now: str, code: int, said: str) -> None:
    done = CliRunner().invoke(app, ["validate", str(project_file(RIGHT + BLOCK)), "--now", now])
    assert done.exit_code == code
    assert said in done.stdout
    assert done.stdout.count("\n") == bool(said)


def test_the_clock_is_the_default(project_file: Write) -> None:
    long_ago = BLOCK.replace("2026-12", "2020-12")
    done = CliRunner().invoke(app, ["validate", str(project_file(RIGHT + long_ago))])
    assert "error [FMB-27]" in done.stdout


def test_the_day_does_not_count_for_a_synth(project_file: Write) -> None:
    """Nor is a suppression called idle where nobody asked for the day."""
    idle = "suppress: [{rule: FMB-27, reason: kept for the record}]\n"
    file = project_file(RIGHT + BLOCK.replace("2026-12", "2020-12") + idle)
    found = {
        now: {finding.rule for finding in Project.load(file, now=now).findings} - {"FMB-23"}
        for now in (None, datetime(2020, 12, 12, tzinfo=UTC), datetime(2021, 1, 1, tzinfo=UTC))
    }
    assert list(found.values()) == [set(), {"FMB-22"}, set()]


def test_examples_are_right_at_the_day_in_their_first_line(root: Path) -> None:
    for file in sorted((root / "projects").glob("*.yaml")):
        first = file.read_text().splitlines()[0]
        assert first.startswith("# valid at "), file
        done = CliRunner().invoke(app, ["validate", str(file), "--now", first.removeprefix("# valid at ")])
        assert done.exit_code == 0, done.stdout


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


def on_a_terminal(*arguments: str) -> str:
    """What a command prints when its output is a terminal."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    command = [str(Path(sys.executable).with_name("fmblocks")), *arguments]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment) as running:
        os.close(terminal)
        read = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while part := os.read(main, 65536):
                read += part
        running.wait()
    os.close(main)
    return read.decode()


def test_a_terminal_gets_colours_and_a_pipe_does_not(project_file: Callable[[str], Path]) -> None:
    file = project_file("name: my-project\nregion: us-west-3\nnetwork: {availability_zones: [usw2-az1]}\n")
    shown = on_a_terminal("validate", str(file))
    assert "\x1b[1;31merror [FMB-05]" in shown
    assert "did you mean" in shown
    assert "\x1b" not in CliRunner().invoke(app, ["validate", str(file)]).stdout


def test_a_terminal_gets_a_table() -> None:
    shown = on_a_terminal("instances", "p5")
    assert "p5en.48xlarge" in shown
    assert "─" in shown
    plain = CliRunner().invoke(app, ["instances", "p5"]).stdout
    assert "─" not in plain
    assert plain.splitlines()[0].split() == [
        "type",
        "accelerators",
        "HBM",
        "GiB",
        "vCPU",
        "GiB",
        "EFA",
        "Gbps",
        "HyperPod",
    ]
