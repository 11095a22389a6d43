"""Device plugins: what tells Kubernetes about accelerators and EFA devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, typed
from fmblocks.catalog import normalise
from fmblocks.cluster.add_ons import ACCELERATOR_LABEL, EFA_LABEL, TAINTS
from fmblocks.cluster.images import NEURON_PLUGIN, NVIDIA_PLUGIN, efa_plugin_image, mirrored
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.compute import rules as compute_rules  # noqa: F401  registers FMB-09

_PLUGINS = "/var/lib/kubelet/device-plugins"


class DevicePlugins(Construct):
    """The device plugins that the nodes of a cluster need, on the nodes that have the devices.

    Manifests of ours with pinned images. They select nodes by labels that :class:`EksGpuNodeGroup` puts on them from
    the catalogue: no list of types has to follow each new one, for want of which pods stay pending elsewhere.

    Resources: ``nvidia.com/gpu``, ``aws.amazon.com/neuron`` and ``aws.amazon.com/neuroncore``,
    ``vpc.amazonaws.com/efa``. Sources of what the containers need: the plugins' own projects, NVIDIA/k8s-device-plugin,
    aws/eks-charts and the AWS Neuron documentation.

    Args:
        cluster: with a kubectl provider.
        types: the instance types of its nodes; each plugin is installed when one of them has its device.
        image_registry: a mirror of nvcr.io and public.ecr.aws. Default: the registries themselves.

    Attributes:
        manifests: one for each plugin, by the label's value: nvidia, neuron, efa.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        types: Sequence[str],
        image_registry: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        known = instance_types(self)
        kinds = []
        for name in sorted(set(map(normalise, types))):
            check_arguments(self, ("FMB-09",), {"instance_type": name, "types": known})
            kinds.append(known[name])
        vendors = {kind.accelerator_vendor for kind in kinds}
        self.manifests: dict[str, eks.KubernetesManifest] = {}
        wanted: dict[str, list[dict[str, Any]]] = {}
        if "nvidia" in vendors:
            wanted["nvidia"] = nvidia_plugin(mirrored(NVIDIA_PLUGIN, image_registry))
        if "aws" in vendors:
            wanted["neuron"] = neuron_plugin(mirrored(NEURON_PLUGIN, image_registry))
        if any(kind.max_efa_interfaces for kind in kinds):
            wanted["efa"] = efa_plugin(efa_plugin_image(self))
        for name, manifest in wanted.items():
            made = eks.KubernetesManifest(self, name, cluster=cast(eks.ICluster, cluster), manifest=manifest)
            wait_until_ready(made, cluster)
            self.manifests[name] = made


def nvidia_plugin(image: str) -> list[dict[str, Any]]:
    """GPUs, as nvidia.com/gpu."""
    container = {
        "name": "plugin",
        "image": image,
        "env": [
            {"name": "FAIL_ON_INIT_ERROR", "value": "false"},
            # Some releases put every InfiniBand device into every pod, EFA's too (rule EFA-21).
            {"name": "MOFED_ENABLED", "value": "false"},
        ],
        # EKS's images of 2026-04 and later give GPUs to whom the kubelet allots them, and else to the privileged only
        # (awslabs/amazon-eks-ami, issue 2706): without, the plugin finds none, and the node has no nvidia.com/gpu.
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": "device-plugins", "mountPath": _PLUGINS}],
    }
    return [_daemon_set("nvidia-device-plugin", {ACCELERATOR_LABEL: "nvidia"}, container, {"device-plugins": _PLUGINS})]


def neuron_plugin(image: str) -> list[dict[str, Any]]:
    """Trainium and Inferentia, as aws.amazon.com/neuron and aws.amazon.com/neuroncore."""
    name, namespace = "neuron-device-plugin", "kube-system"
    container = {
        "name": "plugin",
        "image": image,
        "env": [
            {"name": "KUBECONFIG", "value": "/etc/kubernetes/kubelet.conf"},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "device-plugins", "mountPath": _PLUGINS},
            {"name": "run", "mountPath": "/run"},
        ],
    }
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch", "update"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch", "update"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    daemon_set = _daemon_set(
        name, {ACCELERATOR_LABEL: "neuron"}, container, {"device-plugins": _PLUGINS, "run": "/run"}, account=name
    )
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
        daemon_set,
    ]


def efa_plugin(image: str) -> list[dict[str, Any]]:
    """EFA devices, as vpc.amazonaws.com/efa."""
    paths = {"device-plugins": _PLUGINS, "infiniband": "/dev/infiniband", "neuron": "/opt/aws/neuron"}
    container = {
        "name": "plugin",
        "image": image,
        # It opens the devices of the host.
        "securityContext": {
            "privileged": True,
            "allowPrivilegeEscalation": True,
            "runAsNonRoot": False,
            "runAsUser": 0,
        },
        "resources": {"requests": {"cpu": "10m", "memory": "20Mi"}},
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in paths.items()],
    }
    daemon_set = _daemon_set("aws-efa-k8s-device-plugin", {EFA_LABEL: "true"}, container, paths, host_network=True)
    for volume in daemon_set["spec"]["template"]["spec"]["volumes"]:
        if volume["name"] == "neuron":
            volume["hostPath"]["type"] = "DirectoryOrCreate"
    return [daemon_set]


def _daemon_set(
    name: str,
    labels: Mapping[str, str],
    container: Mapping[str, Any],
    paths: Mapping[str, str],
    *,
    account: str | None = None,
    host_network: bool = False,
) -> dict[str, Any]:
    terms = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    spec: dict[str, Any] = {
        "priorityClassName": "system-node-critical",
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": terms}]}
            }
        },
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            *({"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in TAINTS.values()),
            # HyperPod tries a node before work is placed there, and needs its devices for that.
            {"key": "sagemaker.amazonaws.com/node-health-status", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "containers": [dict(container)],
        "volumes": [{"name": volume, "hostPath": {"path": path}} for volume, path in paths.items()],
    }
    if account is not None:
        spec["serviceAccountName"] = account
    else:
        spec["automountServiceAccountToken"] = False
    if host_network:
        spec["hostNetwork"] = True
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {"app.kubernetes.io/name": name}},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": {"app.kubernetes.io/name": name}}, "spec": spec},
        },
    }
