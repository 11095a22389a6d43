"""A real Slurm: munged, slurmctld and sixteen slurmd on this machine, with GPUs that are device files only."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

MAPPER = ROOT / "constructs/fmblocks/cluster/lifecycle/gpu-jobs.sh"
NODES = 16
GPUS = 8
_NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "srun")
_CONF = """\
ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
ReturnToService=2
Prolog={folder}/prolog.sh
Epilog={folder}/epilog.sh
SlurmctldPort={controller}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool/%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=gpu[1-{nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=192 Sockets=2 \
CoresPerSocket=48 ThreadsPerCore=2 RealMemory=2000000 Gres=gpu:{gpus} State=UNKNOWN
PartitionName=main Nodes=gpu[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """The cluster."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What its commands need."""
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One of Slurm's commands."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=120)
        assert not check or done.returncode == 0, done.stderr
        return done

    def job(self, script: Path, *, stubs: Path, **variables: str) -> str:
        """Run a batch script to its end, with ``stubs`` first in PATH; give back what it printed."""
        log = script.with_suffix(".log")
        path = f"{stubs}:{os.environ['PATH']}"
        exported = ",".join(["ALL", *(f"{name}={value}" for name, value in {"PATH": path, **variables}.items())])
        id = self.run("sbatch", "--parsable", f"--export={exported}", f"--output={log}", str(script)).stdout.strip()
        until = time.monotonic() + 90
        while self.run("squeue", "-h", "-j", id, check=False).stdout.strip():
            assert time.monotonic() < until, self.run("squeue").stdout
            time.sleep(0.2)
        return log.read_text()


def needed(*commands: str) -> None:
    """Skip where commands are not installed; CI installs them."""
    missing = [command for command in commands if shutil.which(command) is None]
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"not installed: {', '.join(missing)}")
    assert missing == []


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """Sixteen idle nodes; skipped where Slurm is not installed, which CI does."""
    needed(*_NEEDED)
    if os.geteuid() != 0:
        pytest.skip("device files need root")
    with contextlib.ExitStack() as stack:
        # Short, since a socket's path is.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp")))
        for name in ("run", "spool", "state", "log", "dev"):
            (folder / name).mkdir()
        for number in range(GPUS):
            os.mknod(folder / f"dev/nvidia{number}", 0o020666, os.makedev(1, 3))
        for number in range(1, NODES + 1):
            (folder / f"spool/gpu{number}").mkdir()
        # Each worker of pytest-xdist has a cluster of its own.
        first = 17001 + 100 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        ports = {"first": first, "last": first + NODES - 1, "controller": first + NODES}
        (folder / "slurm.conf").write_text(_CONF.format(folder=folder, nodes=NODES, gpus=GPUS, **ports))
        (folder / "gres.conf").write_text(
            f"AutoDetect=off\nNodeName=gpu[1-{NODES}] Name=gpu File={folder}/dev/nvidia[0-{GPUS - 1}]\n"
        )
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        # What our lifecycle scripts put beside HyperPod's own: which job has which GPU.
        for when in ("prolog", "epilog"):
            mapper = shutil.copy(MAPPER, folder / f"700_{when}.sh")
            script = folder / f"{when}.sh"
            script.write_text(f"#!/bin/bash\nFMBLOCKS_GPU_JOBS={folder}/jobs exec /bin/bash {mapper}\n")
            script.chmod(0o755)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        started: list[subprocess.Popen[bytes]] = []
        stack.callback(stop, started)

        def start(*command: str) -> None:
            environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
            with (folder / "log" / f"{command[0]}-{len(started)}.out").open("wb") as output:
                started.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))

        start(
            "munged", "--foreground", "--force", "-S", f"{folder}/run/munge.sock", f"--key-file={key}",
            f"--pid-file={folder}/run/munged.pid", f"--log-file={folder}/log/munged.log", f"--seed-file={folder}/seed",
        )  # fmt: skip
        cluster = Slurm(folder)
        until = time.monotonic() + 60
        while not (folder / "run/munge.sock").exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        start("slurmctld", "-D", "-c", "-f", str(folder / "slurm.conf"))
        for number in range(1, NODES + 1):
            start("slurmd", "-D", "-f", str(folder / "slurm.conf"), "-N", f"gpu{number}")
        while cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D", check=False).stdout.strip() != str(NODES):
            assert time.monotonic() < until, (folder / "log/slurmctld.log").read_text()[-3000:]
            time.sleep(0.2)
        yield cluster


def stop(started: list[subprocess.Popen[bytes]]) -> None:
    """End daemons, the last one first."""
    for process in reversed(started):
        process.terminate()
    for process in reversed(started):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        process.kill()
        process.wait()
