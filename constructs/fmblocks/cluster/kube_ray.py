"""Ray clusters on Kubernetes: the KubeRay operator."""

from __future__ import annotations

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.add_ons import ROLE_LABEL
from fmblocks.cluster.images import KUBE_RAY, KUBE_RAY_IMAGE, mirrored
from fmblocks.cluster.pinned_chart import pinned_chart
from fmblocks.cluster.settings import NodeRole


class KubeRay(Construct):
    """The KubeRay operator from its chart, on the system nodes; Ray clusters themselves are made by their users.

    Helm installs the kinds of a chart once and never changes them: apply those of a later version by hand.

    Args:
        cluster: with a kubectl provider.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.
        image_registry: a mirror of quay.io. Default: the registry itself.
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
        self.chart = pinned_chart(
            self,
            "Chart",
            cluster=cluster,
            chart=KUBE_RAY,
            registry=chart_registry,
            namespace="kuberay-operator",
            values={
                "nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value},
                **({"image": {"repository": mirrored(KUBE_RAY_IMAGE, image_registry)}} if image_registry else {}),
            },
        )
