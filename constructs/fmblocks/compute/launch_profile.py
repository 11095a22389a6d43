"""What a job's environment holds for NCCL over EFA, per type: as little as possible.

aws-ofi-nccl sets what depends on the platform itself; setting it again is how clusters end up with values of another
family. Source: aws-ofi-nccl, ``platform-aws.cpp``; AWS's nccl-tests and FSDP samples.
"""

from __future__ import annotations

from fmblocks.catalog import InstanceType

# Left to aws-ofi-nccl: a job that inherits one of these from an old script runs with another family's values.
LEFT_ALONE = (
    "FI_PROVIDER",
    "FI_EFA_USE_DEVICE_RDMA",
    "RDMAV_FORK_SAFE",
    "NCCL_PROTO",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_MIN_CHANNELS",
)
# Loopback, containers' bridges, pods' pairs, and EKS's pod-identity link, which NCCL picks otherwise.
_NO_SOCKETS = "^lo,docker,veth,eni,pod-id-link0"


def launch_profile(kind: InstanceType) -> dict[str, str]:
    """The variables that a job on this type exports; empty without accelerators.

    JAX and PyTorch take the same: both talk through NCCL, or through Neuron's own runtime, which needs none of them.
    """
    if not kind.accelerator_count or kind.accelerator_vendor != "nvidia":
        return {}
    found = {"NCCL_SOCKET_IFNAME": _NO_SOCKETS, "NCCL_DEBUG": "INFO"}
    if kind.max_efa_interfaces:
        # Without it FSDP's copies and EFA's transfers wait for each other.
        found["FI_EFA_SET_CUDA_SYNC_MEMOPS"] = "0"
    if kind.name.startswith("p6e-gb200."):
        found["NCCL_MNNVL_ENABLE"] = "1"  # NVLink reaches beyond the instance
    return found


def as_script(kind: InstanceType) -> str:
    """The profile as a file to source."""
    lines = [f"export {name}={value!r}" for name, value in launch_profile(kind).items()]
    return "\n".join([f"# {kind.name}: written at boot", f"unset {' '.join(LEFT_ALONE)}", *lines, ""])
