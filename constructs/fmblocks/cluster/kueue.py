"""Gang scheduling and queues: Kueue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import check_arguments, fault, instance_types, typed
from fmblocks.catalog import InstanceType, Types, normalise
from fmblocks.cluster.add_ons import GROUP_LABEL
from fmblocks.cluster.eks_gpu_node_group import TAINTS
from fmblocks.cluster.images import KUEUE, chart_source
from fmblocks.findings import FindingsError

_API = "kueue.x-k8s.io/v1beta2"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedGroup:
    """Nodes that a queue hands out.

    Attributes:
        name: the value of their label fmblocks/node-group.
        instance_type: EC2 name.
        count: nodes.
        efa_interfaces: of one node.
    """

    name: str
    instance_type: str
    count: int
    efa_interfaces: int


class Kueue(Construct):
    """Kueue from its chart, a queue over all nodes of the groups, and the local queue that jobs name.

    A job starts when everything it asks for is free, and takes nothing before: half a distributed job holds
    accelerators and computes nothing. The quotas are what the groups' nodes have, by the catalogue.

    Args:
        cluster: with a kubectl provider.
        groups: what is handed out; by name, each once.
        queue_name: of the ClusterQueue and of the LocalQueue. Default: training.
        namespace: of the LocalQueue. Default: default.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.

    Raises:
        FindingsError: rule FMB-09; groups is empty.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        groups: Sequence[QueuedGroup],
        queue_name: str = "training",
        namespace: str = "default",
        chart_registry: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        if not groups:
            raise FindingsError([fault("groups", "is empty", "name the groups whose nodes are handed out")])
        known = instance_types(self)
        for group in groups:
            check_arguments(self, ("FMB-09",), {"instance_type": normalise(group.instance_type), "types": known})
        self.chart = eks.HelmChart(
            self,
            "Chart",
            cluster=cast(eks.ICluster, cluster),
            chart=KUEUE.name,
            release="kueue",
            repository=chart_source(KUEUE, chart_registry),
            version=KUEUE.version,
            namespace="kueue-system",
            # Its webhook has to answer before a queue can be made.
            wait=True,
            timeout=cdk.Duration.minutes(15),
        )
        self.chart.node.add_dependency(cluster)
        self.queues = eks.KubernetesManifest(
            self,
            "Queues",
            cluster=cast(eks.ICluster, cluster),
            manifest=queues(groups, known, name=queue_name, namespace=namespace),
        )
        self.queues.node.add_dependency(self.chart)


def queues(groups: Sequence[QueuedGroup], types: Types, *, name: str, namespace: str) -> list[dict[str, Any]]:
    """A flavor for each group, a queue over them, and the door to it in a namespace."""
    kinds = {group.name: types[normalise(group.instance_type)] for group in groups}
    quotas = {group.name: _quota(group, kinds[group.name]) for group in groups}
    # A flavor names every resource of its queue; one whose size nobody knows is not counted at all.
    covered = [
        resource
        for resource in ("cpu", "memory", *TAINTS.values(), "vpc.amazonaws.com/efa")
        if all(resource in quota for quota in quotas.values())
        and any(quota[resource] not in ("0", "0Gi") for quota in quotas.values())
    ]
    flavors = [
        {
            "name": group.name,
            "resources": [{"name": resource, "nominalQuota": quotas[group.name][resource]} for resource in covered],
        }
        for group in sorted(groups, key=lambda group: group.name)
    ]
    return [
        *(_flavor(group.name, kinds[group.name]) for group in sorted(groups, key=lambda group: group.name)),
        {
            "apiVersion": _API,
            "kind": "ClusterQueue",
            "metadata": {"name": name},
            "spec": {
                "namespaceSelector": {},
                "queueingStrategy": "BestEffortFIFO",
                "resourceGroups": [{"coveredResources": covered, "flavors": flavors}],
            },
        },
        {
            "apiVersion": _API,
            "kind": "LocalQueue",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"clusterQueue": name},
        },
    ]


def _flavor(name: str, kind: InstanceType) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeLabels": {GROUP_LABEL: name}}
    if taint := TAINTS.get(kind.accelerator_vendor or ""):
        spec["tolerations"] = [{"key": taint, "operator": "Exists", "effect": "NoSchedule"}]
    return {"apiVersion": _API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def _quota(group: QueuedGroup, kind: InstanceType) -> Mapping[str, str]:
    found = {
        resource: str(group.count * kind.accelerator_count if kind.accelerator_vendor == vendor else 0)
        for vendor, resource in TAINTS.items()
    }
    found["vpc.amazonaws.com/efa"] = str(group.count * group.efa_interfaces)
    if kind.vcpus is not None:
        found["cpu"] = str(group.count * kind.vcpus)
    if kind.memory_gib is not None:
        found["memory"] = f"{group.count * kind.memory_gib}Gi"
    return found
