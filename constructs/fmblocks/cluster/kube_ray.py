"""Ray clusters on Kubernetes: the KubeRay operator."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.add_ons import ROLE_LABEL
from fmblocks.cluster.images import KUBE_RAY, chart_source
from fmblocks.cluster.settings import NodeRole


class KubeRay(Construct):
    """The KubeRay operator from its chart, on the system nodes; Ray clusters themselves are made by their users.

    Args:
        cluster: with a kubectl provider.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        chart_registry: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.chart = eks.HelmChart(
            self,
            "Chart",
            cluster=cast(eks.ICluster, cluster),
            chart=KUBE_RAY.name,
            release="kuberay-operator",
            repository=chart_source(KUBE_RAY, chart_registry),
            version=KUBE_RAY.version,
            namespace="kuberay-operator",
            values={"nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value}},
            wait=True,
            timeout=cdk.Duration.minutes(15),
        )
        self.chart.node.add_dependency(cluster)
