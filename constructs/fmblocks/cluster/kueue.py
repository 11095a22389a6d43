"""Gang scheduling and queues: Kueue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import yaml
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import check_arguments, fault, instance_types, typed
from fmblocks.catalog import InstanceType, normalise
from fmblocks.cluster.add_ons import GROUP_LABEL, ROLE_LABEL, TAINTS
from fmblocks.cluster.images import KUEUE, KUEUE_IMAGE, mirrored
from fmblocks.cluster.node_group import INodeGroup
from fmblocks.cluster.pinned_chart import pinned_chart
from fmblocks.cluster.settings import NodeRole
from fmblocks.findings import FindingsError

_API = "kueue.x-k8s.io/v1beta2"


class Kueue(Construct):
    """Kueue from its chart, a queue over all nodes of the groups, and the local queue that jobs name.

    A job is admitted when all that it asks for fits the quotas, which are what the groups' nodes have by the catalogue,
    whether they run or not; so its pods start together. Those of a job that are not all ready within ten minutes (nodes
    of a block that has not begun, a node that is gone) give everything back, and the job waits again: half a
    distributed job holds accelerators and computes nothing.

    Huge pages, ephemeral storage, and what no type of the groups has a number for are not counted.

    Args:
        cluster: with a kubectl provider.
        groups: what is handed out.
        queue_name: of the ClusterQueue and of the LocalQueue. Default: training.
        namespace: of the LocalQueue. Default: default.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.
        image_registry: a mirror of registry.k8s.io. Default: the registry itself.
        tainted: whether nodes with accelerators carry the taint of our node groups; those of HyperPod do not.
            Default: True.

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
        groups: Sequence[INodeGroup],
        queue_name: str = "training",
        namespace: str = "default",
        chart_registry: str | None = None,
        image_registry: str | None = None,
        tainted: bool = True,
    ) -> None:
        super().__init__(scope, id)
        if not groups:
            raise FindingsError([fault("groups", "is empty", "name the groups whose nodes are handed out")])
        known = instance_types(self)
        for group in groups:
            check_arguments(self, ("FMB-09",), {"instance_type": normalise(group.instance_type), "types": known})
        kinds = {group.group_name: known[normalise(group.instance_type)] for group in groups}
        quotas = {group.group_name: _quota(group, kinds[group.group_name]) for group in groups}
        uncounted = [one for one in ("cpu", "memory") if any(one not in quota for quota in quotas.values())]
        manager: dict[str, Any] = {"nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value}}
        if image_registry:
            manager["manager"] = {"image": {"repository": mirrored(KUEUE_IMAGE, image_registry)}}
        self.chart = pinned_chart(
            self,
            "Chart",
            cluster=cluster,
            chart=KUEUE,
            registry=chart_registry,
            namespace="kueue-system",
            values={
                "controllerManager": manager,
                "managerConfig": {"controllerManagerConfigYaml": yaml.safe_dump(_config(uncounted), sort_keys=False)},
            },
        )
        self.queues = eks.KubernetesManifest(
            self,
            "Queues",
            cluster=cast(eks.ICluster, cluster),
            manifest=_queues(kinds, quotas, name=queue_name, namespace=namespace, tainted=tainted),
        )
        self.queues.node.add_dependency(self.chart)


def _config(uncounted: Sequence[str]) -> dict[str, Any]:
    """The manager's configuration (Kueue, *Configuration API v1beta2*)."""
    # A resource that no queue covers makes a job inadmissible for ever. Neuron's plugin counts its cores a second time.
    excluded = ["hugepages-", "ephemeral-storage", "aws.amazon.com/neuroncore", *uncounted]
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "waitForPodsReady": {
            "timeout": "10m",
            "recoveryTimeout": "10m",
            "requeuingStrategy": {"timestamp": "Eviction", "backoffBaseSeconds": 60, "backoffMaxSeconds": 3600},
        },
        "integrations": {
            "frameworks": [
                "batch/job",
                "jobset.x-k8s.io/jobset",
                "kubeflow.org/mpijob",
                "kubeflow.org/pytorchjob",
                "pod",
                "ray.io/raycluster",
                "ray.io/rayjob",
                "trainer.kubeflow.org/trainjob",
            ]
        },
        "resources": {"excludeResourcePrefixes": excluded},
    }


def _queues(
    kinds: Mapping[str, InstanceType],
    quotas: Mapping[str, Mapping[str, str]],
    *,
    name: str,
    namespace: str,
    tainted: bool,
) -> list[dict[str, Any]]:
    """A flavor for each group, a queue over them, and the door to it in a namespace."""
    # A flavor names every resource of its queue.
    covered = [
        resource
        for resource in ("cpu", "memory", *TAINTS.values(), "vpc.amazonaws.com/efa")
        if all(resource in quota for quota in quotas.values())
        and any(quota[resource] not in ("0", "0Gi") for quota in quotas.values())
    ]
    # In this order they are tried: work without accelerators goes where there are none.
    names = sorted(quotas, key=lambda one: (bool(kinds[one].accelerator_count), one))
    flavors = [
        {
            "name": one,
            "resources": [{"name": resource, "nominalQuota": quotas[one][resource]} for resource in covered],
        }
        for one in names
    ]
    return [
        *(_flavor(one, kinds[one], tainted=tainted) for one in names),
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


def _flavor(name: str, kind: InstanceType, *, tainted: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeLabels": {GROUP_LABEL: name}}
    if tainted and (taint := TAINTS.get(kind.accelerator_vendor or "")):
        # Not a toleration: Kueue would give it to every job, and work without accelerators would take them.
        spec["nodeTaints"] = [{"key": taint, "value": "present", "effect": "NoSchedule"}]
    return {"apiVersion": _API, "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": spec}


def _quota(group: INodeGroup, kind: InstanceType) -> Mapping[str, str]:
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
