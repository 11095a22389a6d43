"""The map of GPUs to jobs, filled and emptied by a real slurmd."""

from __future__ import annotations

import time
from pathlib import Path

from tests.slurm.conftest import Slurm


def shown(slurm: Slurm) -> dict[str, list[str]]:
    folder = slurm.folder / "jobs"
    files = [file for file in folder.iterdir() if file.name != ".lock"] if folder.exists() else []
    return {file.name: file.read_text().split() for file in files}


def test_a_job_stands_in_the_map_while_it_runs(slurm: Slurm, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    jobs = slurm.folder / "jobs"
    script.write_text(f"#!/bin/bash\n#SBATCH --nodes=1 --gres=gpu:3\nls {jobs}\ncat {jobs}/[0-9]*\n")
    said = slurm.job(script, stubs=tmp_path).split()
    assert said[:3] == ["0", "1", "2"], said
    assert len(said) == 6, said
    assert len(set(said[3:])) == 1, said  # one job, by its id
    until = time.monotonic() + 30
    while shown(slurm):
        assert time.monotonic() < until, shown(slurm)
        time.sleep(0.2)


def test_a_job_without_gpus_is_not_in_it(slurm: Slurm, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=1\necho ran\n")
    assert slurm.job(script, stubs=tmp_path) == "ran\n"
    assert shown(slurm) == {}
    assert slurm.run("sinfo", "-h", "-t", "drain,down", "-o", "%D").stdout.strip() in ("", "0")
