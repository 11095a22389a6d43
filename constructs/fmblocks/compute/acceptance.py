"""Jobs that show whether nodes are fit for work, as sbatch scripts and as Kubernetes Jobs.

What they expect comes from the catalogue; :mod:`fmblocks.compute.verdict` reads what they print. Nothing is installed:
a tool that is missing is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from fmblocks.catalog import InstanceType

_SCRIPTS = Path(__file__).with_name("jobs")


class Job(StrEnum):
    """What is tried."""

    NCCL_ALL_REDUCE = "nccl-all-reduce"
    DCGM_LEVEL_2 = "dcgm-level-2"
    NVLINK = "nvlink"
    LUSTRE = "lustre"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes a job runs on.

    Attributes:
        kind: their type.
        count: how many.
        interfaces: EFA interfaces of one, as it is launched.
        mount_path: where Lustre is mounted; None: nowhere.
    """

    kind: InstanceType
    count: int
    interfaces: int
    mount_path: str | None = None


def jobs_for(nodes: Nodes) -> list[Job]:
    """The jobs that say something about these nodes: NVIDIA's tools for NVIDIA's accelerators only."""
    found = []
    if nodes.kind.accelerator_vendor == "nvidia":
        found += [Job.NCCL_ALL_REDUCE, Job.DCGM_LEVEL_2]
        found += [Job.NVLINK] if nodes.kind.nvlinks_per_accelerator else []
    return found + ([Job.LUSTRE] if nodes.mount_path else [])


def sbatch(job: Job, nodes: Nodes) -> str:
    """A batch script for Slurm: ``sbatch FILE``.

    Every task of the all-reduce has one GPU; the other jobs start one task on each node.
    """
    gpus = nodes.kind.accelerator_count if nodes.kind.accelerator_vendor == "nvidia" else 0
    options = [
        f"--job-name=fmblocks-{job}",
        f"--nodes={nodes.count}",
        f"--ntasks-per-node={gpus if job is Job.NCCL_ALL_REDUCE else 1}",
        *([f"--gpus-per-node={gpus}"] if gpus and job is not Job.LUSTRE else []),
        "--exclusive",
        "--time=01:00:00",
        f"--output={job}-%j.log",
    ]
    setting = f"export LUSTRE={nodes.mount_path}\n" if job is Job.LUSTRE else ""
    head = "\n".join(["#!/bin/bash", *(f"#SBATCH {option}" for option in options)])
    return f"{head}\n{setting}{_script(f'{job}.sh')}"


def kubernetes(job: Job, nodes: Nodes, *, image: str, namespace: str = "default") -> list[dict[str, Any]]:
    """A Kubernetes Job of one pod per node, with what it needs beside it.

    Args:
        job: the all-reduce, which torchrun starts; the others are for Slurm and for a shell on the node.
        nodes: where it runs.
        image: holds PyTorch, NCCL, libfabric and aws-ofi-nccl.
        namespace: where it stands.

    Raises:
        ValueError: another job than the all-reduce.
    """
    if job is not Job.NCCL_ALL_REDUCE:
        raise ValueError(f"{job} is not made as a Kubernetes Job: run it on the nodes")
    name = f"fmblocks-{job}"
    labels = {"app.kubernetes.io/name": name}
    gpus = nodes.kind.accelerator_count
    resources = {"nvidia.com/gpu": str(gpus)}
    if nodes.interfaces:
        # EFA pins huge pages for its own use: a pod without them falls back to small ones.
        resources |= {"vpc.amazonaws.com/efa": str(nodes.interfaces), "hugepages-2Mi": "5120Mi"}
    meta = {"name": name, "namespace": namespace, "labels": labels}
    # HyperPod's nodes carry SageMaker's name of their type.
    names = [nodes.kind.name, f"ml.{nodes.kind.name}"]
    of_type = {"matchExpressions": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": names}]}
    command = (
        f"torchrun --nnodes={nodes.count} --nproc-per-node={gpus} --node-rank=$JOB_COMPLETION_INDEX "
        f"--rdzv-backend=c10d --rdzv-endpoint={name}-0.{name}:29500 /fmblocks/all_reduce.py"
    )
    pod = {
        "restartPolicy": "Never",
        "subdomain": name,
        # One pod per node, in one zone as the node group is.
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [of_type]}},
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
                ]
            },
        },
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "all-reduce",
                "image": image,
                "command": ["/bin/bash", "-c", command],
                "env": [
                    {"name": "NCCL_DEBUG", "value": "INFO"},
                    {"name": "NCCL_SOCKET_IFNAME", "value": "^lo,docker,veth,eni,pod-id-link0"},
                ],
                "resources": {"limits": {**resources, "memory": "64Gi"}, "requests": {**resources, "memory": "64Gi"}},
                "volumeMounts": [
                    {"name": "script", "mountPath": "/fmblocks"},
                    {"name": "shm", "mountPath": "/dev/shm"},
                ],
            }
        ],
        "volumes": [
            {"name": "script", "configMap": {"name": name}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "32Gi"}},
        ],
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"all_reduce.py": _script("all_reduce.py")},
        },
        # Names for the pods, so that rank 0 can be found.
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": True},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": meta,
            "spec": {
                "completionMode": "Indexed",
                "completions": nodes.count,
                "parallelism": nodes.count,
                "backoffLimit": 0,
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        },
    ]


def files(nodes: Nodes, *, jobs: Sequence[Job] | None = None) -> dict[str, str]:
    """The batch scripts by file name."""
    return {f"{job}.sbatch": sbatch(job, nodes) for job in (jobs or jobs_for(nodes))}


def _script(name: str) -> str:
    return (_SCRIPTS / name).read_text(encoding="utf-8")
