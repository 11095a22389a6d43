"""Replicas over several nodes: LeaderWorkerSet."""

from __future__ import annotations

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.add_ons import ROLE_LABEL
from fmblocks.cluster.images import LEADER_WORKER_SET, LEADER_WORKER_SET_IMAGE, mirrored
from fmblocks.cluster.pinned_chart import pinned_chart
from fmblocks.cluster.settings import NodeRole


class LeaderWorkerSets(Construct):
    """The controller of LeaderWorkerSet from its chart, on the system nodes.

    Args:
        cluster: with a kubectl provider.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.
        image_registry: a mirror of registry.k8s.io. Default: the registry itself.

    Attributes:
        chart: to wait for.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        chart_registry: str | None = None,
        image_registry: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        image = {"repository": mirrored(LEADER_WORKER_SET_IMAGE, image_registry)} if image_registry else {}
        self.chart = pinned_chart(
            self,
            "Chart",
            cluster=cluster,
            chart=LEADER_WORKER_SET,
            registry=chart_registry,
            namespace="lws-system",
            values={
                "nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value},
                # Charts tagged before their release name the branch.
                "image": {"manager": {**image, "tag": f"v{LEADER_WORKER_SET.version}"}},
                # A job with an image of its own, which only a change of the kinds needs.
                "crdUpgrade": {"enabled": False},
            },
        )
