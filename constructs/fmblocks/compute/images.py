"""Which image a node boots, by its type.

Sources: AWS Deep Learning AMIs Developer Guide, *Finding the ID of a DLAMI*; AWS Neuron documentation, *Neuron DLAMI
user guide*; EC2 User Guide, *Reference the latest AMIs using Systems Manager public parameters*.
"""

from __future__ import annotations

from fmblocks.catalog import InstanceType

_NVIDIA = "/aws/service/deeplearning/ami/{architecture}/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
_NEURON = "/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id"
_PLAIN = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{architecture}"


# The PCS-ready Deep Learning AMI, on Ubuntu: agent, Slurm of several versions, NVIDIA driver, EFA and Lustre client.
# Source: AWS PCS User Guide, *Using the PCS-ready DLAMI*.
_PCS = "/aws/service/pcs/ami/dlami-base-ubuntu2404/{architecture}/latest/ami-id"

IMAGE_PARAMETERS = (
    _NEURON,
    *(name.format(architecture=one) for name in (_NVIDIA, _PLAIN, _PCS) for one in ("x86_64", "arm64")),
)


def image_parameter(kind: InstanceType) -> str:
    """The public parameter that holds the id of the image: driver, EFA and container runtime are on it."""
    if kind.accelerator_vendor == "aws":
        return _NEURON
    name = _NVIDIA if kind.accelerator_count else _PLAIN
    return name.format(architecture=kind.architecture or "x86_64")


def pcs_image_parameter(kind: InstanceType) -> str:
    """The public parameter that holds the id of the image for nodes of PCS."""
    return _PCS.format(architecture=kind.architecture or "x86_64")
