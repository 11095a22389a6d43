"""The acceptance jobs under a real Slurm, as far as they go without GPUs: NVIDIA's tools are stand-ins of the test."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from fmblocks.catalog import instance_types
from fmblocks.compute.acceptance import Job, Nodes, jobs_for, sbatch
from fmblocks.compute.verdict import Status, judge
from tests.slurm.conftest import NODES, Slurm

pytestmark = pytest.mark.enable_socket

TYPES = instance_types()
NVIDIA = sorted(
    name for name, kind in TYPES.items() if kind.accelerator_vendor == "nvidia" and kind.accelerator_count <= 8
)


def nodes(name: str = "p5.48xlarge", count: int = 4) -> Nodes:
    return Nodes(kind=TYPES[name], count=count, interfaces=TYPES[name].max_efa_interfaces, mount_path="/fsx")


def tools(folder: Path, **scripts: str) -> Path:
    """Stand-ins, first in PATH."""
    for name, text in scripts.items():
        file = folder / name.replace("_", "-")
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(file.stat().st_mode | stat.S_IEXEC)
    return folder


def written(folder: Path, job: Job, of: Nodes) -> Path:
    file = folder / f"{job}.sbatch"
    file.write_text(sbatch(job, of))
    return file


def test_slurm_accepts_the_jobs_of_every_type(slurm: Slurm, tmp_path: Path) -> None:
    for name in NVIDIA:
        for job in jobs_for(nodes(name, NODES)):
            slurm.run("sbatch", "--test-only", str(written(tmp_path, job, nodes(name, NODES))))


def test_slurm_refuses_more_nodes_than_there_are(slurm: Slurm, tmp_path: Path) -> None:
    for job in jobs_for(nodes()):
        refused = slurm.run("sbatch", "--test-only", str(written(tmp_path, job, nodes(count=NODES + 1))), check=False)
        assert refused.returncode != 0
        assert "node" in refused.stderr.lower()


def test_all_reduce(slurm: Slurm, tmp_path: Path) -> None:
    stand_in = tools(
        tmp_path,
        all_reduce_perf="""\
echo "$SLURMD_NODENAME:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"
[[ $NCCL_DEBUG == INFO && -n $CUDA_VISIBLE_DEVICES ]] || exit 1
if [[ $SLURM_PROCID == 0 ]]; then
  echo "#  ranks $SLURM_NTASKS"
  echo " 17179869184    4294967296     float     sum      -1    68000   252.0   480.0      0    68100   252.0   479.0      0"
  echo "# Out of bounds values : 0 OK"
  echo "# Avg bus bandwidth    : 480.0"
fi""",
    )
    log = slurm.job(
        written(tmp_path, Job.NCCL_ALL_REDUCE, nodes()),
        stubs=stand_in,
        MPI="none",
        ALL_REDUCE=f"{tmp_path}/all-reduce-perf",
    )
    assert "#  ranks 32" in log
    assert log.count("Selected provider is efa") == 32
    lines = judge(Job.NCCL_ALL_REDUCE, log, nodes(), baseline_gbps=487)
    assert [line.status for line in lines] == [Status.PASS, Status.PASS], lines


def test_a_tool_that_is_missing_is_told(slurm: Slurm, tmp_path: Path) -> None:
    log = slurm.job(written(tmp_path, Job.NCCL_ALL_REDUCE, nodes()), stubs=tmp_path, MPI="none")
    (line,) = judge(Job.NCCL_ALL_REDUCE, log, nodes())
    assert str(line) == "FAIL all_reduce_perf: set ALL_REDUCE to its path is missing"


def test_nvlink(slurm: Slurm, tmp_path: Path) -> None:
    stand_in = tools(
        tmp_path,
        nvidia_smi="""\
if [[ $1 == -L ]]; then for n in {0..7}; do echo "GPU $n: NVIDIA H100 80GB HBM3 (UUID: GPU-$n)"; done; exit; fi
for n in {0..7}; do
  echo "GPU $n: NVIDIA H100 80GB HBM3 (UUID: GPU-$n)"
  for l in {0..17}; do
    if [[ $SLURMD_NODENAME == gpu2 && $n == 3 && $l == 5 ]]; then echo "	 Link $l: <inactive>"; else echo "	 Link $l: 26.562 GB/s"; fi
  done
done""",
    )
    log = slurm.job(written(tmp_path, Job.NVLINK, nodes()), stubs=stand_in)
    lines = judge(Job.NVLINK, log, nodes())
    assert sorted(line.status for line in lines) == [Status.FAIL, Status.PASS, Status.PASS, Status.PASS]
    assert "143 NVLinks are up and 1 down, of 144" in str(lines)


def test_dcgm(slurm: Slurm, tmp_path: Path) -> None:
    stand_in = tools(
        tmp_path,
        dcgmi="""\
cat <<EOF
{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [
 {"name": "memory", "results": [RESULTS]}]}]}}
EOF""".replace(
            "RESULTS", ", ".join(f'{{"entity_group": "GPU", "entity_id": {n}, "status": "Pass"}}' for n in range(8))
        ),
    )
    log = slurm.job(written(tmp_path, Job.DCGM_LEVEL_2, nodes()), stubs=stand_in)
    lines = judge(Job.DCGM_LEVEL_2, log, nodes())
    assert [line.status for line in lines] == [Status.PASS] * 4


def test_lustre(slurm: Slurm, tmp_path: Path) -> None:
    # Neither Lustre nor direct I/O here: what is tried is the job and its timing.
    stand_in = tools(tmp_path, mountpoint="exit 0", dd="sleep 0.2")
    mounted = tmp_path / "fsx"
    mounted.mkdir()
    of = Nodes(kind=TYPES["p5.48xlarge"], count=4, interfaces=32, mount_path=str(mounted))
    log = slurm.job(written(tmp_path, Job.LUSTRE, of), stubs=stand_in, GIB="1")
    lines = judge(Job.LUSTRE, log, of)
    assert [line.status for line in lines] == [Status.PASS, Status.PASS], lines
    # A disk that is full, or a server that is gone, is no throughput.
    tools(tmp_path, dd='[[ "$*" == */dev/zero* ]]')
    log = slurm.job(written(tmp_path, Job.LUSTRE, of), stubs=stand_in, GIB="1")
    failed = [str(line) for line in judge(Job.LUSTRE, log, of)]
    assert failed
    assert all(line.startswith("FAIL read on gpu") and line.endswith("failed") for line in failed), failed
