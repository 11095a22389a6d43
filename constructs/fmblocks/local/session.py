"""Starting, using and stopping the local AWS.

Everything it writes stands in one folder, ``.fmblocks/local`` below the current one (or what FMBLOCKS_LOCAL_DIR names),
and ``down`` removes it. It listens on 127.0.0.1, on a free port, and is stopped by its process id.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import fmblocks
from fmblocks.local.environment import find_python

Say = Callable[[str], None]

DEFAULT_ACCOUNT = "123456789012"
DEFAULT_REGION = "us-east-1"
_HOST = "127.0.0.1"
_MODULE = "fmblocks.local.server"
_MARKER = "fmblocks-local-aws"
_PATIENCE_SECONDS = 60
# Servers that this very process started: it alone can take their end off the system's list.
_children: dict[int, subprocess.Popen[bytes]] = {}


class LocalError(Exception):
    """Something that the user of the local AWS is told in one line."""


class NoSuchCommandError(LocalError):
    """The command that was to be run is none."""


@dataclass
class Session:
    """A running local AWS."""

    pid: int
    port: int
    bootstrapped: list[str] = field(default_factory=list)

    @property
    def endpoint(self) -> str:
        """Where it answers."""
        return f"http://{_HOST}:{self.port}"


def folder() -> Path:
    """Where the local AWS keeps everything."""
    return Path(os.environ.get("FMBLOCKS_LOCAL_DIR", ".fmblocks/local")).absolute()


def running() -> Session | None:
    """The session of this folder, when its process lives."""
    try:
        session = Session(**json.loads((folder() / "session.json").read_text(encoding="utf-8")))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return session if _is_ours(session.pid) else None


def up(say: Say) -> Session:
    """Start the local AWS, or give back the one that runs.

    Raises:
        LocalError: it does not start.
    """
    if session := running():
        return session
    home = folder()
    _clear(home)
    for name in ("tmp", "state", "home", "path"):
        (home / name).mkdir(parents=True)
    (home / _MARKER).touch()
    python = find_python(say)
    # Of everything that is installed here, the server sees this package alone: its own environment has the rest.
    (home / "path" / "fmblocks").symlink_to(Path(fmblocks.__file__).parent)
    port = _free_port()
    say(f"starting the local AWS on {_HOST}:{port}")
    with (home / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-m", _MODULE],
            env=_server_environment(home, port),
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _children[process.pid] = process
    session = Session(process.pid, port)
    _save(session)  # before waiting: a start that is interrupted can still be stopped
    _wait_until_ready(session, process, home / "server.log")
    return session


def down(say: Say) -> bool:
    """Stop the local AWS and remove all it wrote; False when none runs here."""
    session = running()
    if session is not None:
        say(f"stopping the local AWS (process {session.pid})")
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                # Its Lambda functions are processes of the same group.
                os.killpg(session.pid, sign)
            except ProcessLookupError:
                break
            if _gone_within(session.pid, 10):
                break
        if (child := _children.pop(session.pid, None)) is not None:
            child.wait()
    _clear(folder())
    parent = folder().parent
    if parent.name == ".fmblocks" and parent.is_dir() and not any(parent.iterdir()):
        parent.rmdir()
    return session is not None


def run(command: Sequence[str], *, account: str, region: str, say: Say) -> int:
    """Run a command against the local AWS, starting it when needed; give back its exit code.

    A CDK command finds account and Region bootstrapped.
    """
    session = up(say)
    environment = command_environment(session, account=account, region=region)
    target = f"aws://{account}/{region}"
    cdk = _cdk_of(command)
    if cdk and target not in session.bootstrapped:
        say(f"bootstrapping {target} (once)")
        # The app is synthesized for it too: elsewhere, since another command may hold cdk.out meanwhile.
        with tempfile.TemporaryDirectory() as output:
            done = subprocess.run(
                [*cdk, "bootstrap", target, "--output", output],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
        if done.returncode:
            raise LocalError(f"cdk bootstrap failed:\n{done.stdout[-3000:]}")
        session.bootstrapped.append(target)
        _save(session)
    return _call(command, environment)


def command_environment(session: Session, *, account: str, region: str) -> dict[str, str]:
    """The environment in which AWS is the local one, and nothing of the user's own AWS set-up is seen."""
    home = folder()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    return {
        **kept,
        # The app of a checkout needs this Python, and the CLI the Node that stands beside it.
        "PATH": _path(),
        "AWS_ENDPOINT_URL": session.endpoint,
        "AWS_ACCESS_KEY_ID": account,  # the server takes a key id of 12 digits as the account
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(home / "home" / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "home" / "credentials"),
        # The CLI remembers which account a key id belongs to; what it learns here must not reach the user's cache.
        "CDK_HOME": str(home / "home"),
        "CDK_REQUIRE_APPROVAL": "never",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "NO_PROXY": _HOST,
        "no_proxy": _HOST,
    }


def _cdk_of(command: Sequence[str]) -> list[str] | None:
    """The words of a command that call the CDK CLI, or None."""
    for index, word in enumerate(command[:3]):
        if Path(word).name == "cdk":
            return list(command[: index + 1])
    return None


def _call(command: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        return subprocess.run(command, env=environment, check=False).returncode
    except FileNotFoundError:
        raise NoSuchCommandError(f"{command[0]} is not a command here") from None


def _server_environment(home: Path, port: int) -> dict[str, str]:
    return {
        # Lambda functions for Node run with the Node of this environment.
        "PATH": _path(),
        "HOME": str(home / "home"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(home / "path"),
        "TMPDIR": str(home / "tmp"),
        "STATE_DIR": str(home / "state"),
        "GATEWAY_PORT": str(port),
        "BIND_HOST": _HOST,
        "MINISTACK_HOST": _HOST,
        "IOT_MTLS_ENABLED": "0",  # else it opens port 8883 too
        "SFTP_ENABLED": "0",
        "NO_PROXY": _HOST,
    }


def _path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _clear(home: Path) -> None:
    """Remove the folder of a local AWS; anything else that stands there is somebody's own."""
    if not home.exists():
        return
    if any(home.iterdir()) and not (home / _MARKER).exists():
        raise LocalError(f"{home} is not a folder of the local AWS: it holds other things, so it is left alone")
    shutil.rmtree(home)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(session: Session, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise LocalError(f"the local AWS ended with code {process.returncode}:\n{tail}")
        try:
            with urllib.request.urlopen(f"{session.endpoint}/_ministack/ready", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    process.kill()
    raise LocalError(f"the local AWS did not answer within {_PATIENCE_SECONDS} s; see {log}")


def _is_ours(pid: int) -> bool:
    """Whether ``pid`` is a live server: after a restart of the machine another process may have its number."""
    process = Path("/proc") / str(pid)
    if process.parent.is_dir() and any(process.parent.iterdir()):
        try:
            return _MODULE.encode() in (process / "cmdline").read_bytes()  # empty for one that has ended
        except OSError:
            return False
    shown = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True, check=False)
    return _MODULE in shown.stdout


def _gone_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while _is_ours(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _save(session: Session) -> None:
    (folder() / "session.json").write_text(json.dumps(asdict(session)), encoding="utf-8")
