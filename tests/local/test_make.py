"""What the README tells a newcomer to type."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.conftest import FMBLOCKS

pytestmark = pytest.mark.enable_socket


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An empty HOME, no AWS variables, a local AWS of its own."""
    folder = tmp_path_factory.mktemp("make")
    (folder / "home").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_", "MAKE"))}
    changed = {"HOME": str(folder / "home"), "FMBLOCKS_LOCAL_DIR": str(folder / "local")}
    yield {**kept, **changed}
    subprocess.run([str(FMBLOCKS), "local", "down"], env={**kept, **changed}, check=True, capture_output=True)


def make(root: Path, environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        ["make", *words],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def test_deploy_and_destroy_by_make(root: Path, environment: dict[str, str]) -> None:
    said = make(root, environment, "deploy-local")
    assert "✅  TrainingStack (llm-pretrain-TrainingStack)" in said
    assert "TrainingStack.LustreDnsName = fs-" in said
    (look,) = [line.strip() for line in said.splitlines() if "look_around.py" in line]
    shown = subprocess.run(
        look, shell=True, cwd=root, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "16 × ml.p5en.48xlarge" in shown
    assert "/checkpoints ↔ s3://" in shown

    assert make(root, environment, "deploy-local").count("(no changes)") == 2

    left = make(root, environment, "destroy-local", "ALL=1")
    assert "llm-pretrain-FoundationStack: termination protection is off" in left
    assert left.count("not deployed") == 2
    assert "file system fs-" in left
    assert "metrics workspace ws-" in left
    assert "cluster " not in left.split("== what is kept")[1]
