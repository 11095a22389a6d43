"""Metrics of an EKS cluster into Managed Prometheus, without a scraper of AWS's."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import aws_cdk as cdk
import yaml
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.add_ons import ACCELERATOR_LABEL, ROLE_LABEL, TAINTS
from fmblocks.cluster.eks_cluster import pod_role
from fmblocks.cluster.images import COLLECTOR, DCGM_EXPORTER, mirrored
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.cluster.settings import NodeRole
from fmblocks.observability.metrics_workspace import IMetricsWorkspace
from fmblocks.observability.settings import METRICS_LABEL, METRICS_PORT

_NAMESPACE, _NAME = "fmblocks-metrics", "collector"


class EksMetricsCollector(Construct):
    """The AWS distribution of the OpenTelemetry collector on the system nodes, and NVIDIA's exporter on GPU nodes.

    The collector scrapes every pod with the label ``fmblocks/metrics: "true"`` at its container port ``metrics``, and
    writes to the workspace with the role of its own service account, signed for the stack's Region.

    Args:
        cluster: an :class:`EksCluster`, or another with a kubectl provider and the pod identity agent.
        workspace: where samples go.
        nvidia: whether nodes have NVIDIA GPUs, for the exporter.
        scrape_interval: default 30 seconds.
        scrape_timeout: default 10 seconds, or the interval where it is less.
        image_registry: a mirror of nvcr.io and public.ecr.aws. Default: the registries themselves.

    Attributes:
        role: of the collector's service account.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        workspace: IMetricsWorkspace,
        nvidia: bool = True,
        scrape_interval: cdk.Duration | None = None,
        scrape_timeout: cdk.Duration | None = None,
        image_registry: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        interval = int(scrape_interval.to_seconds()) if scrape_interval else 30
        timeout = int(scrape_timeout.to_seconds()) if scrape_timeout else min(10, interval)
        self.role = pod_role(self, "Role")
        grant = workspace.grant_remote_write(self.role)
        association = eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster.cluster_name,
            namespace=_NAMESPACE,
            service_account=_NAME,
            role_arn=self.role.role_arn,
        )
        config = _config(
            endpoint=f"{workspace.prometheus_endpoint}api/v1/remote_write",
            region=cdk.Stack.of(self).region,
            cluster=cluster.cluster_name,
            interval=interval,
            timeout=timeout,
        )
        objects = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
            *_collector(mirrored(COLLECTOR, image_registry), config, digest=_digest(interval, timeout)),
            *([_dcgm_exporter(mirrored(DCGM_EXPORTER, image_registry))] if nvidia else []),
        ]
        self.manifest = eks.KubernetesManifest(self, "Manifest", cluster=cast(eks.ICluster, cluster), manifest=objects)
        # Pods that start without their role go on without it.
        wait_until_ready(self.manifest, cluster)
        self.manifest.node.add_dependency(association, self.role, grant)


def _config(*, endpoint: str, region: str, cluster: str, interval: int, timeout: int) -> dict[str, Any]:
    """The collector's configuration (AWS Distro for OpenTelemetry, *Prometheus Remote Write Exporter for AMP*)."""

    def keep(label: str, value: str) -> dict[str, Any]:
        return {"source_labels": [f"__meta_kubernetes_pod_{label}"], "action": "keep", "regex": value}

    def name(label: str, target: str) -> dict[str, Any]:
        return {"source_labels": [f"__meta_kubernetes_{label}"], "target_label": target}

    job = {
        "job_name": "pods",
        "kubernetes_sd_configs": [{"role": "pod"}],
        "relabel_configs": [
            keep("label_fmblocks_metrics", "true"),
            keep("container_port_name", METRICS_PORT),
            name("namespace", "namespace"),
            name("pod_name", "pod"),
            name("pod_node_name", "node"),
            # Of an endpoint, by which its replicas are scaled.
            name("pod_label_fmblocks_endpoint", "endpoint"),
            name("pod_label_fmblocks_endpoint_role", "endpoint_role"),
        ],
    }
    scraping = {"scrape_interval": f"{interval}s", "scrape_timeout": f"{timeout}s"}
    return {
        "extensions": {"sigv4auth": {"region": region, "service": "aps"}},
        "receivers": {"prometheus": {"config": {"global": scraping, "scrape_configs": [job]}}},
        "processors": {"batch": {}},
        "exporters": {
            "prometheusremotewrite": {
                "endpoint": endpoint,
                "auth": {"authenticator": "sigv4auth"},
                "external_labels": {"cluster": cluster},
            }
        },
        "service": {
            "extensions": ["sigv4auth"],
            "pipelines": {
                "metrics": {
                    "receivers": ["prometheus"],
                    "processors": ["batch"],
                    "exporters": ["prometheusremotewrite"],
                }
            },
        },
    }


def _digest(interval: int, timeout: int) -> str:
    """Of the configuration without what only a deployment knows: tokens are other ones at every synth."""
    plain = _config(endpoint="", region="", cluster="", interval=interval, timeout=timeout)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:16]


def _collector(image: str, config: dict[str, Any], *, digest: str) -> list[dict[str, Any]]:
    rbac = "rbac.authorization.k8s.io"
    here = {"name": _NAME, "namespace": _NAMESPACE}
    labels = {"app.kubernetes.io/name": "fmblocks-collector"}
    text = yaml.safe_dump(config, sort_keys=False, width=10_000)  # a token that is wrapped is no token any more
    container = {
        "name": _NAME,
        "image": image,
        "args": ["--config=/etc/collector/config.yaml"],
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/collector"}],
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": f"fmblocks-{_NAME}"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"fmblocks-{_NAME}"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": f"fmblocks-{_NAME}"},
            "subjects": [{"kind": "ServiceAccount", **here}],
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": here, "data": {"config.yaml": text}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**here, "labels": labels},
            "spec": {
                # Two would write every sample twice.
                "replicas": 1,
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": labels},
                "template": {
                    # It reads its configuration once: a pod that looks the same would go on with the old one.
                    "metadata": {"labels": labels, "annotations": {"fmblocks/config": digest}},
                    "spec": {
                        "serviceAccountName": _NAME,
                        "nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value},
                        "containers": [container],
                        "volumes": [{"name": "config", "configMap": {"name": _NAME}}],
                    },
                },
            },
        },
    ]


def _dcgm_exporter(image: str) -> dict[str, Any]:
    """GPU metrics, with the pod that holds each GPU (NVIDIA/dcgm-exporter)."""
    labels = {"app.kubernetes.io/name": "dcgm-exporter"}
    container = {
        "name": "exporter",
        "image": image,
        "env": [
            {"name": "DCGM_EXPORTER_LISTEN", "value": ":9400"},
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "ports": [{"name": METRICS_PORT, "containerPort": 9400}],
        # Profiling counters, among them how busy the SMs are, are read by root with this capability only.
        "securityContext": {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}},
        "volumeMounts": [{"name": "pod-resources", "mountPath": "/var/lib/kubelet/pod-resources", "readOnly": True}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "dcgm-exporter", "namespace": _NAMESPACE, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**labels, METRICS_LABEL: "true"}},
                "spec": {
                    "automountServiceAccountToken": False,
                    "nodeSelector": {ACCELERATOR_LABEL: "nvidia"},
                    "tolerations": [{"key": TAINTS["nvidia"], "operator": "Exists", "effect": "NoSchedule"}],
                    "containers": [container],
                    "volumes": [{"name": "pod-resources", "hostPath": {"path": "/var/lib/kubelet/pod-resources"}}],
                },
            },
        },
    }
