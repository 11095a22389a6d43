"""What changes the number of replicas by a metric: KEDA."""

from __future__ import annotations

from typing import cast

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.add_ons import ROLE_LABEL
from fmblocks.cluster.eks_cluster import pod_role
from fmblocks.cluster.images import KEDA
from fmblocks.cluster.pinned_chart import pinned_chart
from fmblocks.cluster.settings import NodeRole
from fmblocks.observability.metrics_workspace import IMetricsWorkspace

_NAMESPACE, _ACCOUNT = "keda", "keda-operator"


class Keda(Construct):
    """KEDA from its chart, on the system nodes, with a role of its own that reads a metrics workspace.

    One a cluster: Kubernetes asks one server for external metrics. That of HyperPod's inference operator is another
    one. Its kinds stay when the release goes: with them would go every ScaledObject.

    Args:
        cluster: with a kubectl provider and the agent for pod identities.
        workspace: that its triggers ask.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.
        image_registry: a mirror of ghcr.io. Default: the registry itself.

    Attributes:
        chart: to wait for.
        role: of the operator.
        authentication_name: the ClusterTriggerAuthentication by which triggers sign what they ask.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        workspace: IMetricsWorkspace,
        chart_registry: str | None = None,
        image_registry: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.authentication_name = "fmblocks-metrics"
        self.role = pod_role(self, "Role")
        grant = workspace.grant_query(self.role)
        association = eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster.cluster_name,
            namespace=_NAMESPACE,
            service_account=_ACCOUNT,
            role_arn=self.role.role_arn,
        )
        self.chart = pinned_chart(
            self,
            "Chart",
            cluster=cluster,
            chart=KEDA,
            registry=chart_registry,
            namespace=_NAMESPACE,
            values={
                "nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value},
                "crds": {"additionalAnnotations": {"helm.sh/resource-policy": "keep"}},
                **({"global": {"image": {"registry": image_registry}}} if image_registry else {}),
            },
        )
        # A pod that starts without its role goes on without it.
        self.chart.node.add_dependency(association, self.role, grant)
        self.authentication = eks.KubernetesManifest(
            self,
            "Authentication",
            cluster=cast(eks.ICluster, cluster),
            manifest=[
                {
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ClusterTriggerAuthentication",
                    "metadata": {"name": self.authentication_name},
                    "spec": {"podIdentity": {"provider": "aws"}},
                }
            ],
        )
        self.authentication.node.add_dependency(self.chart)
