"""Verdicts over logs as good and bad clusters print them, and the jobs that print them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from fmblocks.catalog import instance_types
from fmblocks.cli.main import app
from fmblocks.compute.acceptance import Job, Nodes, files, jobs_for, kubernetes
from fmblocks.compute.verdict import failed, judge

TYPES = instance_types()
P5 = Nodes(kind=TYPES["p5.48xlarge"], count=2, interfaces=32, mount_path="/fsx")
EFA = "ip-10-0-0-{n}:188:585 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found {nics} nics)\n"
OLD = "".join(
    f"[1,0]<stdout>:worker-{n}:21:21 [0] NCCL INFO NET/OFI Selected Provider is efa (found 32 nics)\n" for n in (0, 1)
)
TABLE = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   268435456      67108864     float     sum      -1   1119.8  239.71  419.49      0   1117.4  240.24  420.42      0
  2147483648     536870912     float     sum      -1   7983.5  268.99  470.73      0   7985.2  268.93  470.63      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 448.212
"""
PREFIXED = "".join(f"[1,0]<stdout>:{line}\n" for line in TABLE.splitlines())
LABELLED = "".join(f"0: {line}\n" for line in TABLE.splitlines())
SOCKET = "worker-0:22:22 [0] NCCL INFO NET/Socket : Using [0]ens5:10.0.0.4<0>\nworker-0:22:22 [0] NCCL INFO Using network Socket\n"
GOOD = 8 * EFA.format(n=1, nics=32) + 8 * EFA.format(n=2, nics=32)


def said(job: Job, log: str, nodes: Nodes = P5, **known: float) -> str:
    return "\n".join(map(str, judge(job, log, nodes, **known)))


@pytest.mark.parametrize(
    "log", [GOOD + TABLE, OLD + PREFIXED, GOOD + LABELLED, GOOD + "a:1:1 [0] NCCL INFO NVLS multicast: N/A\n" + TABLE]
)
def test_a_good_all_reduce(log: str) -> None:
    lines = judge(Job.NCCL_ALL_REDUCE, log, P5, baseline_gbps=487)
    assert not failed(lines), lines
    assert "EFA with 32 NICs on every rank that was heard" in str(lines[-2])
    assert "470.73 GB/s bus bandwidth at best, with 2048 MiB, baseline 487" in str(lines[-1])
    assert ("WARN 2 of 16 ranks said" in str(lines[0])) is (log == OLD + PREFIXED)


@pytest.mark.parametrize(
    ("log", "text"),
    [
        (SOCKET + TABLE, "FAIL NCCL talks over TCP: NET/Socket : Using"),
        (GOOD + "NCCL INFO Using network Socket\n" + TABLE, "FAIL NCCL talks over TCP: Using network Socket"),
        (
            EFA.format(n=1, nics=32) + EFA.format(n=2, nics=31) + TABLE,
            "FAIL 31, 32 NICs where p5.48xlarge is launched with 32",
        ),
        (EFA.format(n=1, nics=8) + TABLE, "FAIL 8 NICs where"),
        ("NET/OFI Selected provider is tcp, fabric is tcp (found 1 nics)\n" + TABLE, "FAIL NCCL talks over TCP"),
        ("NET/OFI Unexpected group size 0\n" + TABLE, "FAIL aws-ofi-nccl found no devices: Unexpected group size 0"),
        (TABLE, "FAIL no word of aws-ofi-nccl"),
        (GOOD, "FAIL the all-reduce did not end"),
        (8 * EFA.format(n=1, nics=32) + TABLE, "FAIL 1 of 2 nodes said what they talk over"),
        (
            GOOD + TABLE.replace("420.42      0", "420.42    N/A"),
            "FAIL values were not checked, run it with -c 1: 268435456",
        ),
        (
            GOOD
            + TABLE
            + "slurmstepd: error: *** STEP 12.0 ON a CANCELLED AT 2026-12-01T00:00:00 DUE TO NODE FAILURE ***",
            "FAIL the job was ended: slurmstepd: error: *** STEP 12.0 ON a CANCELLED",
        ),
        (GOOD + TABLE + "srun: error: b: task 9: Segmentation fault", "FAIL the job was ended: srun: error: b: task 9"),
        (GOOD + TABLE.replace("values : 0 OK", "values : 3 FAILED"), "FAIL 3 values are wrong"),
        (
            GOOD + TABLE.replace("470.73", "99.1").replace("419.49", "88.0"),
            "FAIL 99.1 GB/s bus bandwidth at best, with 2048 MiB: below 85% of the baseline, 487",
        ),
        (
            "FMBLOCKS missing all_reduce_perf: set ALL_REDUCE to its path",
            "FAIL all_reduce_perf: set ALL_REDUCE to its path is missing",
        ),
    ],
)
def test_a_bad_all_reduce(log: str, text: str) -> None:
    assert text in said(Job.NCCL_ALL_REDUCE, log, baseline_gbps=487)
    assert failed(judge(Job.NCCL_ALL_REDUCE, log, P5, baseline_gbps=487))


def test_without_a_baseline_the_figure_is_told() -> None:
    assert "keep it as the baseline" in said(Job.NCCL_ALL_REDUCE, GOOD + TABLE)
    alone = Nodes(kind=TYPES["g6.xlarge"], count=2, interfaces=0)
    assert "nothing to say about the network" in said(Job.NCCL_ALL_REDUCE, SOCKET + TABLE, alone)


def dcgm(*statuses: str) -> str:
    results = [{"entity_group": "GPU", "entity_id": at, "status": status} for at, status in enumerate(statuses)]
    tests = [{"name": "memory", "results": results, "test_summary": {"status": statuses[0]}}]
    return json.dumps({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}})


# As DCGM 3 has it.
OLDER = json.dumps(
    {
        "DCGM GPU Diagnostic": {
            "test_categories": [{"tests": [{"name": "PCIe", "results": [{"gpu_id": "3", "status": "Fail"}]}]}]
        }
    }
)


@pytest.mark.parametrize(
    ("first", "text", "bad"),
    [
        (dcgm(*7 * ["Pass"], "Skip"), "PASS a: 8 results without a failure", False),
        (dcgm("Pass"), "FAIL a: 1 GPUs were diagnosed where p5.48xlarge has 8", True),
        (
            json.dumps({"DCGM Diagnostic": {"version": "4", "runtime_error": "nvvs binary was not found"}}),
            "FAIL a: nothing was diagnosed: nvvs binary was not found",
            True,
        ),
        (dcgm("Pass", "Fail"), "FAIL a: failed: memory of GPU 1", True),
        (dcgm("Warn", "Pass"), "WARN a: warned: memory of GPU 0", False),
        (dcgm("Skip", "Skip"), "FAIL a: every test was skipped", True),
        (OLDER, "FAIL a: failed: PCIe of GPU 3", True),
        ("Error: unable to connect", "FAIL a: the diagnostics printed no JSON", True),
    ],
)
def test_dcgm(first: str, text: str, bad: bool) -> None:
    log = f"FMBLOCKS dcgm a {first}\nFMBLOCKS dcgm b {dcgm(*8 * ['Pass'])}\n"
    assert text in said(Job.DCGM_LEVEL_2, log)
    assert failed(judge(Job.DCGM_LEVEL_2, log, P5)) is bad
    assert "1 of 2 nodes were heard" in said(Job.DCGM_LEVEL_2, log.splitlines()[1])


def test_nvlink() -> None:
    good = "FMBLOCKS nvlink a gpus=8 up=144 down=0\nFMBLOCKS nvlink b gpus=8 up=144 down=0\n"
    assert not failed(judge(Job.NVLINK, good, P5))
    assert "FAIL b: 7 GPUs where p5.48xlarge has 8" in said(Job.NVLINK, good.replace("b gpus=8", "b gpus=7"))
    assert "143 NVLinks are up and 1 down, of 144" in said(
        Job.NVLINK, good.replace("a gpus=8 up=144 down=0", "a gpus=8 up=143 down=1")
    )
    assert "FAIL 1 of 2 nodes were heard" in said(Job.NVLINK, good.splitlines()[0])


def io(what: str, host: str, begin: float, end: float) -> str:
    return f"FMBLOCKS lustre {what} {host} bytes=10000000000 begin={begin} end={end}\n"


def test_lustre() -> None:
    log = "".join(io(what, host, 0, 4) for what in ("write", "read") for host in "ab")
    assert "PASS write: 5,000 MB/s over 2 nodes, of 5,000" in said(Job.LUSTRE, log, lustre_mbps=5000)
    # Twenty gigabytes from the first begin to the last end.
    late = log.replace("write b bytes=10000000000 begin=0 end=4", "write b bytes=10000000000 begin=4 end=8")
    assert "WARN write: 2,500 MB/s over 2 nodes, below 70% of 5,000" in said(Job.LUSTRE, late, lustre_mbps=5000)
    assert "PASS read: 5,000 MB/s over 2 nodes\n" in said(Job.LUSTRE, log) + "\n"
    assert "FAIL read: 1 of 2 nodes were heard" in said(Job.LUSTRE, log.replace(io("read", "b", 0, 4), ""))
    assert "FAIL Lustre at /fsx on a is missing" in said(Job.LUSTRE, "FMBLOCKS missing Lustre at /fsx on a")


def test_jobs_follow_from_the_type() -> None:
    def jobs(name: str, path: str | None) -> list[Job]:
        return jobs_for(Nodes(kind=TYPES[name], count=2, interfaces=1, mount_path=path))

    assert jobs("p5.48xlarge", "/fsx") == list(Job)
    assert jobs("p5.4xlarge", None) == [Job.NCCL_ALL_REDUCE, Job.DCGM_LEVEL_2]
    assert jobs("trn2.48xlarge", "/fsx") == [Job.LUSTRE]
    assert jobs("m7i.xlarge", None) == []


def test_the_scripts_are_clean(tmp_path: Path) -> None:
    for name, text in files(P5).items():
        (tmp_path / name).write_text(text)
        found = subprocess.run(["shellcheck", str(tmp_path / name)], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout
        assert "#SBATCH --nodes=2\n" in text
    assert "#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=8\n" in files(P5)["nccl-all-reduce.sbatch"]
    assert "--gpus-per-node" not in files(P5)["lustre.sbatch"]


def test_the_manifests_are_right_for_kubernetes() -> None:
    manifests = kubernetes(Job.NCCL_ALL_REDUCE, P5, image="example.com/pytorch:1")
    for manifest in manifests:
        kubernetes_validate.validate(manifest, "1.35", strict=True)
    assert [one["kind"] for one in manifests] == ["ConfigMap", "Service", "Job"]
    job = manifests[2]["spec"]
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (2, 2, "Indexed")
    limits = job["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["vpc.amazonaws.com/efa"]) == ("8", "32")
    compile(manifests[0]["data"]["all_reduce.py"], "all_reduce.py", "exec")
    with pytest.raises(ValueError, match="nvlink is not made as a Kubernetes Job"):
        kubernetes(Job.NVLINK, P5, image="x")


PROJECT = """\
name: my-project
region: us-west-2
network: {availability_zones: [usw2-az2]}
storage: {lustre: {deployment_type: persistent_2, capacity_gib: 4800, throughput_mbps_per_tib: 1000}}
training:
  orchestrator: ec2
  node_groups: [{name: gpu, instance_type: p5.48xlarge, count: 2}, {name: login, instance_type: m7i.xlarge, count: 1}]
"""


def test_the_command_line(project_file: Callable[[str], Path], tmp_path: Path) -> None:
    file, to = str(project_file(PROJECT)), str(tmp_path / "jobs")
    done = CliRunner().invoke(app, ["acceptance", "write", file, "gpu", "--to", to, "--image", "example.com/pytorch:1"])
    assert done.exit_code == 0, done.output
    assert {one.name for one in Path(to).iterdir()} == {*(f"{job}.sbatch" for job in Job), "nccl-all-reduce.yaml"}
    assert len([*yaml.safe_load_all((Path(to) / "nccl-all-reduce.yaml").read_text())]) == 3
    log = tmp_path / "log"
    log.write_text(GOOD + TABLE)
    judged = CliRunner().invoke(app, ["acceptance", "judge", file, "gpu", "nccl-all-reduce", str(log)])
    assert (judged.exit_code, judged.stdout.count("PASS")) == (0, 2)
    log.write_text(SOCKET + TABLE)
    judged = CliRunner().invoke(app, ["acceptance", "judge", file, "gpu", "nccl-all-reduce", str(log), "--json"])
    assert judged.exit_code == 1
    assert json.loads(judged.stdout)[0]["status"] == "fail"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["login"], 0, "lustre.sbatch"),
        (["nobody"], 2, "nobody is no node group of"),
    ],
)
def test_wrong_groups(
    project_file: Callable[[str], Path], tmp_path: Path, arguments: list[str], code: int, text: str
) -> None:
    done = CliRunner().invoke(
        app, ["acceptance", "write", str(project_file(PROJECT)), *arguments, "--to", str(tmp_path)]
    )
    assert done.exit_code == code
    assert text in done.output
