"""Starting, using and stopping the local AWS."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fmblocks.local import session
from tests.local.conftest import FMBLOCKS

pytestmark = pytest.mark.enable_socket


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "local"
    monkeypatch.setenv("FMBLOCKS_LOCAL_DIR", str(place))
    return place


def quiet(_text: str) -> None:
    return None


def test_up_twice_is_one_server_and_down_leaves_nothing(folder: Path) -> None:
    first = session.up(quiet)
    try:
        assert session.up(quiet) == first
        listening = subprocess.run(
            ["ps", "-p", str(first.pid), "-o", "command="], capture_output=True, text=True, check=True
        )
        assert "fmblocks.local.server" in listening.stdout
        with socket.socket() as outside:
            outside.settimeout(2)
            assert outside.connect_ex((_own_address(), first.port)) != 0
    finally:
        assert session.down(quiet) is True
    assert not folder.exists()
    assert session.down(quiet) is False
    gone = subprocess.run(["ps", "-p", str(first.pid), "-o", "stat="], capture_output=True, text=True, check=False)
    assert gone.stdout.strip() == ""


def _own_address() -> str:
    """An address of this machine that is not the loopback one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


def test_a_folder_with_other_things_is_left_alone(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("years of work")
    for attempt in (session.up, session.down):
        with pytest.raises(session.LocalError, match="it holds other things, so it is left alone"):
            attempt(quiet)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_process_that_took_the_number_is_left_alone(folder: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        folder.mkdir(parents=True)
        (folder / session._MARKER).touch()
        (folder / "session.json").write_text(json.dumps({"pid": other.pid, "port": 1, "bootstrapped": []}))
        assert session.running() is None
        assert session.down(quiet) is False
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_server_that_cannot_start_says_why(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FMBLOCKS_LOCAL_PYTHON", sys.executable)  # it has no ministack
    with pytest.raises(session.LocalError, match="No module named 'ministack'"):
        session.up(quiet)


def test_the_command_sees_the_local_aws_and_nothing_else(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://elsewhere.example")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret")
    seen = session.command_environment(session.Session(1, 4711), account="111122223333", region="us-west-2")
    assert {name: value for name, value in seen.items() if name.startswith("AWS_")} == {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:4711",
        "AWS_ACCESS_KEY_ID": "111122223333",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": "us-west-2",
        "AWS_DEFAULT_REGION": "us-west-2",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(folder / "home" / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(folder / "home" / "credentials"),
    }
    assert seen["CDK_REQUIRE_APPROVAL"] == "never"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--", "no-such-command"], "no-such-command is not a command here"),
        (["run", "--project", "none.yaml", "--", "true"], "none.yaml: error [SHAPE] there is no such file"),
        (["run", "--", "npx", "cdk", "deploy", "-c", "project=none.yaml"], "there is no such file"),
    ],
)
def test_what_cannot_be_run_is_said_in_a_line(folder: Path, tmp_path: Path, words: list[str], said: str) -> None:
    try:
        done = subprocess.run(
            [str(FMBLOCKS), "local", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == (127 if "no-such-command" in words else 1)
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        session.down(quiet)


def test_the_exit_code_is_the_commands(folder: Path, root: Path) -> None:
    command = [
        str(FMBLOCKS),
        "local",
        "run",
        "--project",
        "projects/slurm-p5en.yaml",
        "--",
        "sh",
        "-c",
        "echo $AWS_REGION; exit 7",
    ]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, env={**os.environ})
        assert (done.returncode, done.stdout.strip()) == (7, "us-west-2")
    finally:
        session.down(quiet)
