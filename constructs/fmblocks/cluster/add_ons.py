"""The add-ons that are on every EKS cluster of ours, in which version, with which settings.

Sources: EKS User Guide, *AWS add-ons* and *Community add-ons*, for service accounts; the configuration schemas that
``aws eks describe-addon-configuration`` prints, as far as public manifests show them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fmblocks.cluster.settings import POD_ADDRESSES, HyperPodAddOn, NodeRole

# Labels that our node groups carry. Everything below and our device plugins select on them.
ROLE_LABEL = "fmblocks/role"
GROUP_LABEL = "fmblocks/node-group"
ACCELERATOR_LABEL = "fmblocks/accelerator"
EFA_LABEL = "fmblocks/efa"
# What a pod has to tolerate to run on an accelerator: so that nothing else does. The keys are those of the resources,
# which the device plugins of the vendors tolerate too.
TAINTS: Mapping[str, str] = {"nvidia": "nvidia.com/gpu", "aws": "aws.amazon.com/neuron"}

_ON_SYSTEM_NODES = {"nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value}}

# Without these no node becomes ready; the others need a node to become active.
CORE = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
ADD_ONS = (
    *CORE,
    "coredns",
    "metrics-server",
    "cert-manager",
    "eks-node-monitoring-agent",
    "aws-fsx-csi-driver",
    "aws-mountpoint-s3-csi-driver",
)
CONFIGURATION: Mapping[str, Mapping[str, object]] = {
    # The default keeps a whole spare interface of addresses on every node (rule EKS-08).
    "vpc-cni": {"env": {"MINIMUM_IP_TARGET": str(POD_ADDRESSES), "WARM_IP_TARGET": "4"}},
    "coredns": _ON_SYSTEM_NODES,
    "metrics-server": _ON_SYSTEM_NODES,
    # Its three deployments are told one by one; with the first alone the add-on stays degraded.
    "cert-manager": {**_ON_SYSTEM_NODES, "cainjector": _ON_SYSTEM_NODES, "webhook": _ON_SYSTEM_NODES},
    # Its agent runs everywhere; the host engine of DCGM that it asks about GPUs does not, and without an answer healthy
    # nodes with our taint are repaired.
    "eks-node-monitoring-agent": {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}},
    "aws-mountpoint-s3-csi-driver": {"node": {"tolerateAllTaints": True}},
}


# As EKS calls what HyperPod brings.
HYPERPOD_ADD_ONS = {
    HyperPodAddOn.TRAINING_OPERATOR: "amazon-sagemaker-hyperpod-training-operator",
    HyperPodAddOn.TASK_GOVERNANCE: "amazon-sagemaker-hyperpod-taskgovernance",
    HyperPodAddOn.OBSERVABILITY: "amazon-sagemaker-hyperpod-observability",
}


# Of endpoints on HyperPod; with the first one, not among those above.
INFERENCE_OPERATOR = "amazon-sagemaker-hyperpod-inference"


def laid_over(ours: Mapping[str, object], theirs: Mapping[str, object]) -> dict[str, object]:
    """Settings with other ones over them, key by key: CoreDNS with more replicas stays on the system nodes."""
    found = dict(ours)
    for key, value in theirs.items():
        old = found.get(key)
        found[key] = laid_over(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return found


@functools.cache
def pinned(kubernetes_version: str) -> Mapping[str, str]:
    """The versions of our add-ons on a Kubernetes version; empty where none is pinned."""
    found: dict[str, str] = _versions().get(kubernetes_version, {})
    return found


def pinned_kubernetes() -> tuple[str, ...]:
    """The Kubernetes versions with pinned add-ons, oldest first."""
    return tuple(sorted(_versions()))


def hyperpod_pinned() -> Mapping[str, str]:
    """The versions of HyperPod's add-ons, which are the same on every Kubernetes version."""
    found: dict[str, str] = _pins()["hyperpod"]
    return found


def _versions() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = _pins()["versions"]
    return found


@functools.cache
def _pins() -> dict[str, Any]:
    text = Path(__file__).with_name("add_ons.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
