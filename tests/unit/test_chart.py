"""``fmblocks chart pull`` against a real git repository, with a helm that only says what it was asked."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fmblocks.cli import chart
from fmblocks.cli.main import app
from fmblocks.cluster.dependency_chart import COMMIT, FOLDER, MARK, dependencies, unknown_values
from fmblocks.findings import FindingsError
from tests.conftest import CHARTS, ROOT

OURS = CHARTS / "charts/hyperpod"


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    shutil.copytree(OURS, folder / FOLDER)
    git(tmp_path, "init", "--quiet", str(folder))
    git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "a chart")
    return folder


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A helm that writes down its words, and fails when a file says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    file = folder / "helm"
    file.write_text(
        f'#!/bin/sh\necho "$*" >>{folder}/called\nif [ -e {folder}/fails ]; then echo no route >&2; exit 1; fi\n'
    )
    file.chmod(file.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def test_the_pinned_commit_is_a_whole_one() -> None:
    assert len(COMMIT) == 40
    assert set(COMMIT) <= set("0123456789abcdef")


def test_a_chart_is_fetched_checked_and_put_in_its_place(repository: Path, helm: Path, tmp_path: Path) -> None:
    commit, target = git(repository, "rev-parse", "HEAD"), tmp_path / "charts/hyperpod"
    (repository / "later").write_text("not in the commit")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "later")
    chart.fetch(str(repository), commit, target)
    assert (target / "Chart.yaml").read_text() == (OURS / "Chart.yaml").read_text()
    assert (target / MARK).read_text() == f"{commit}\n"
    assert "dependency update" in (helm / "called").read_text()
    (target / "old").write_text("of a former one")
    chart.fetch(str(repository), commit, target)
    assert not (target / "old").exists()


def test_another_commit_is_not_taken(repository: Path, helm: Path, tmp_path: Path) -> None:
    target = tmp_path / "charts/hyperpod"
    target.mkdir(parents=True)
    (target / "kept").write_text("x")
    with pytest.raises(FindingsError, match="git: git -C"):
        chart.fetch(str(repository), "0" * 40, target)
    # A name that is no commit: what it stands for is compared with what was asked for.
    with pytest.raises(FindingsError, match="and main was asked for; fetch from the repository itself"):
        chart.fetch(str(repository), "main", target)
    assert (target / "kept").exists()


def test_a_failing_helm_changes_nothing(repository: Path, helm: Path, tmp_path: Path) -> None:
    (helm / "fails").touch()
    with pytest.raises(FindingsError, match="ended with 1: no route"):
        chart.fetch(str(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "charts")
    assert not (tmp_path / "charts").exists()


def test_a_commit_without_the_chart_is_told(repository: Path, helm: Path, tmp_path: Path) -> None:
    git(repository, "rm", "-rq", FOLDER)
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "gone")
    with pytest.raises(FindingsError, match=f"has no chart in {FOLDER}"):
        chart.fetch(str(repository), git(repository, "rev-parse", "HEAD"), tmp_path / "charts")


def test_the_command_names_a_missing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    project = shutil.copy(ROOT / "projects/hyperpod-eks-b200.yaml", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["chart", "pull", str(project)])
    assert done.exit_code == 1
    assert "git: is not on the PATH; install git, or copy the folder from a machine that has it" in done.stdout
    assert not isinstance(done.exception, FindingsError)


def test_other_projects_need_none() -> None:
    done = CliRunner().invoke(app, ["chart", "pull", str(ROOT / "projects/eks-rl.yaml")])
    assert done.exit_code == 1
    assert "training.orchestrator: is eks, and the chart is for hyperpod-eks" in done.stdout


def test_the_command_says_where_it_went(
    monkeypatch: pytest.MonkeyPatch, repository: Path, helm: Path, tmp_path: Path
) -> None:
    project = Path(shutil.copy(ROOT / "projects/hyperpod-eks-b200.yaml", tmp_path))
    monkeypatch.setattr(chart, "COMMIT", git(repository, "rev-parse", "HEAD"))
    done = CliRunner().invoke(app, ["chart", "pull", str(project), "--repository", str(repository)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "charts/hyperpod/Chart.yaml").is_file()
    assert "charts/hyperpod: commit" in done.stdout


def test_keys_are_those_of_the_chart_its_parts_and_its_switches(tmp_path: Path) -> None:
    assert dependencies(OURS)["training-operators"] == "trainingOperators.enabled"
    assert unknown_values(OURS, {"health-monitoring-agent": {"region": "x", "hmaimage": "y"}}) == []
    assert unknown_values(OURS, {"health-monitoring-agent": {"regoin": "x"}}) == ["health-monitoring-agent.regoin"]
    assert unknown_values(OURS, {"namespaced-role-and-bindings": {"enable": False}}) == ["namespaced-role-and-bindings"]
    assert unknown_values(OURS, {"gpu-operator": {"enabled": False}}) == []
    # Parts that Helm fetched are archives.
    packed = shutil.copytree(OURS, tmp_path / "packed")
    with tarfile.open(packed / "charts/health-monitoring-agent-0.0.1.tgz", "w:gz") as archive:
        archive.add(packed / "charts/health-monitoring-agent", "health-monitoring-agent")
    shutil.rmtree(packed / "charts/health-monitoring-agent")
    assert unknown_values(packed, {"health-monitoring-agent": {"hmaimage": "y"}}) == []
    assert unknown_values(packed, {"health-monitoring-agent": {"image": "y"}}) == ["health-monitoring-agent.image"]
