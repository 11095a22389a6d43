"""Nodes that HyperPod's Karpenter starts when pods ask for them."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable

from fmblocks._edge import check_arguments, fault, instance_types, typed
from fmblocks.catalog import normalise
from fmblocks.cluster.add_ons import TAINTS
from fmblocks.cluster.hyperpod_eks_cluster import HyperPodEksCluster
from fmblocks.cluster.hyperpod_ready import HyperPodReady
from fmblocks.cluster.karpenter_node_pool import DISRUPTION
from fmblocks.compute import rules as compute_rules  # noqa: F401  registers FMB-09
from fmblocks.findings import FindingsError


class HyperPodNodePool(Construct):
    """A node class over one instance group, and the pool that starts its nodes, up to a number.

    The group is one of the cluster's with ``count=0``: Karpenter starts its nodes, on demand, and ends those that stay
    empty for ten minutes. The kinds come some time after the cluster, and are waited for. Source: SageMaker AI
    Developer Guide, *Create a NodeClass*, *Create a NodePool*.

    Args:
        cluster: made with ``karpenter=True``.
        eks_cluster: with a kubectl provider.
        group_name: of the instance group; the pool has the same name.
        instance_type: of the group.
        max_count: nodes at most.
        after: a wait for Karpenter. Default: one of its own.

    Attributes:
        manifest: both objects.

    Raises:
        FindingsError: rule FMB-09; the catalogue knows no number to limit the pool by; the cluster has no Karpenter.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: HyperPodEksCluster,
        eks_cluster: eks.ICluster | eks.Cluster,
        group_name: str,
        instance_type: str,
        max_count: int,
        after: IDependable | None = None,
    ) -> None:
        super().__init__(scope, id)
        known, name = instance_types(self), normalise(instance_type)
        check_arguments(self, ("FMB-09",), {"instance_type": name, "types": known})
        if cluster.cluster_role is None:
            raise FindingsError([fault("cluster", "has no Karpenter", "make it with karpenter=True")])
        kind = known[name]
        taint = TAINTS.get(kind.accelerator_vendor or "")
        if taint is None and kind.vcpus is None:
            text = f"of {name} the catalogue knows no vcpus, by which the pool is limited"
            raise FindingsError([fault("instance_type", text, "add them under fmblocks:catalog")])
        limits = {taint: max_count * kind.accelerator_count} if taint else {"cpu": max_count * (kind.vcpus or 0)}
        template: dict[str, Any] = {
            "nodeClassRef": {
                "group": "karpenter.sagemaker.amazonaws.com",
                "kind": "HyperpodNodeClass",
                "name": group_name,
            },
            # HyperPod's nodes carry the name with its prefix.
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [f"ml.{name}"]}],
            # A node that runs a job for a month must not be replaced for its age.
            "expireAfter": "Never",
        }
        self.manifest = eks.KubernetesManifest(
            self,
            "Manifest",
            cluster=cast(eks.ICluster, eks_cluster),
            manifest=[
                {
                    "apiVersion": "karpenter.sagemaker.amazonaws.com/v1",
                    "kind": "HyperpodNodeClass",
                    "metadata": {"name": group_name},
                    "spec": {"instanceGroups": [group_name]},
                },
                {
                    "apiVersion": "karpenter.sh/v1",
                    "kind": "NodePool",
                    "metadata": {"name": group_name},
                    "spec": {
                        "template": {"spec": template},
                        "disruption": DISRUPTION,
                        "limits": {resource: str(number) for resource, number in limits.items()},
                    },
                },
            ],
        )
        self.manifest.node.add_dependency(
            after or HyperPodReady(self, "KarpenterReady", cluster=cluster, karpenter=True)
        )
