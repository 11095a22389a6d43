"""``fmblocks chart``: charts that no registry has."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from fmblocks.cli.terminal import tell
from fmblocks.cluster.dependency_chart import COMMIT, FOLDER, MARK, REPOSITORY
from fmblocks.cluster.settings import Kubernetes, Orchestrator
from fmblocks.findings import Finding, FindingsError, Severity
from fmblocks.project import Project

app = typer.Typer(no_args_is_help=True, help="Charts that only a git repository has.")


@app.callback()
def _root() -> None:
    """Charts that only a git repository has."""


@app.command()
def pull(
    file: Annotated[Path, typer.Argument(help="A project file with orchestrator hyperpod-eks.")],
    repository: Annotated[str, typer.Option(help="A mirror of the repository.")] = REPOSITORY,
) -> None:
    """Fetch HyperPod's chart at the pinned commit, with the charts it is made of, to where the project looks for it.

    Needs git and helm. What is fetched is checked against the commit; what stood there before is replaced.
    """
    try:
        loaded = Project.load(file)
        clusters = loaded.project.clusters
        wanted = {
            file.parent / (one.kubernetes or Kubernetes()).dependency_chart.path: key
            for key, one in clusters.items()
            if one.orchestrator is Orchestrator.HYPERPOD_EKS
        }
        if not wanted:
            found = next(((key, one.orchestrator.value) for key, one in clusters.items()), ("training", "none"))
            text = f"is {found[1]}, and the chart is for hyperpod-eks"
            raise FindingsError([_fault(f"{found[0]}.orchestrator", text, "nothing is to be fetched")])
        for target, key in wanted.items():
            if target.exists() and any(target.iterdir()) and not (target / "Chart.yaml").is_file():
                text = f"{target} holds something else than a chart, and would be replaced"
                raise FindingsError([_fault(f"{key}.kubernetes.dependency_chart.path", text, "name another folder")])
        for target in wanted:
            fetch(repository, COMMIT, target)
    except FindingsError as error:
        tell(error.findings)
        raise typer.Exit(1) from None
    for target in wanted:
        typer.echo(f"{target}: commit {COMMIT}")


def fetch(repository: str, commit: str, target: Path) -> None:
    """Put the chart of one commit into ``target``.

    Args:
        repository: what git fetches from.
        commit: 40 digits.
        target: the folder; replaced when everything is there, and not before.

    Raises:
        FindingsError: a tool is missing or fails, or something else than the commit came.
    """
    for tool in ("git", "helm"):
        if shutil.which(tool) is None:
            hint = f"install {tool}, or copy the folder from a machine that has it"
            raise FindingsError([_fault(tool, "is not on the PATH", hint)])
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        git = ("git", "-C", str(clone))
        _run("git", "init", "--quiet", str(clone))
        _run(*git, "fetch", "--quiet", "--depth", "1", repository, commit)
        _run(*git, "checkout", "--quiet", "FETCH_HEAD")
        found = _run(*git, "rev-parse", "HEAD").strip()
        if found != commit:
            text = f"{repository} answered with {found}, and {commit} was asked for"
            raise FindingsError([_fault("commit", text, "fetch from the repository itself")])
        chart = clone / FOLDER
        if not (chart / "Chart.yaml").is_file():
            hint = "report this as a bug of fmblocks"
            raise FindingsError([_fault("commit", f"{commit} has no chart in {FOLDER}", hint)])
        # The charts that it is made of, in the versions that it names.
        _run("helm", "dependency", "update", str(chart))
        (chart / MARK).write_text(f"{commit}\n", encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".fmblocks-", dir=target.parent))
        shutil.copytree(chart, beside, dirs_exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        beside.chmod(0o755)
        beside.rename(target)


def _run(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        lines = (ended.stderr or ended.stdout).strip().splitlines() or ["no message"]
        text = f"{' '.join(command[:3])} … ended with {ended.returncode}: {lines[-1]}"
        raise FindingsError([_fault(command[0], text, "see its message; nothing was changed")])
    return ended.stdout


def _fault(path: str, message: str, hint: str) -> Finding:
    return Finding("SHAPE", Severity.ERROR, path, message, hint)
