"""kubectl for a cluster that another stack made."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_lambda as lambda_
from constructs import Construct, IDependable

from fmblocks._edge import typed
from fmblocks.cluster.eks_cluster import forget_logs, kubectl_layer_for
from fmblocks.cluster.settings import DEFAULT_KUBERNETES


class EksClusterAccess(Construct):
    """Lets a stack apply manifests and charts to a cluster of another one.

    With a function and an access entry of its own: what the other stack applies with may change without this one, and
    nothing of the other stack is changed. Whatever is applied has to wait for ``ready``.

    Args:
        cluster_name: as EKS calls it.
        cluster_security_group_id: that EKS made for it: with it the function reaches the API.
        vpc: of the cluster.
        subnets: private ones, in which the function runs.
        kubernetes_version: default 1.35.
        kubectl_layer: default: the matching package ``aws-cdk.lambda-layer-kubectl-v<minor>``.

    Attributes:
        cluster: for constructs that take an ``eks.ICluster``.
        ready: the access entry.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        cluster_security_group_id: str,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        kubernetes_version: str = DEFAULT_KUBERNETES,
        kubectl_layer: lambda_.ILayerVersion | None = None,
    ) -> None:
        super().__init__(scope, id)

        def imported(id: str, provider: eks.IKubectlProvider | None) -> eks.ICluster:
            return eks.Cluster.from_cluster_attributes(
                self,
                id,
                cluster_name=cluster_name,
                cluster_security_group_id=cluster_security_group_id,
                vpc=vpc,
                kubectl_provider=provider,
            )

        # aws-cdk-lib makes no function for a cluster that is imported, whatever options it is given.
        provider = eks.KubectlProvider(
            self,
            "KubectlProvider",
            cluster=imported("Reached", None),
            kubectl_layer=kubectl_layer or kubectl_layer_for(scope, kubernetes_version),
            private_subnets=list(subnets),
        )
        forget_logs(provider)
        self.cluster = imported("Cluster", provider)
        role = provider.role
        assert role is not None
        scopes = eks.CfnAccessEntry.AccessScopeProperty(type="cluster")
        entry = eks.CfnAccessEntry(
            self,
            "Entry",
            cluster_name=cluster_name,
            principal_arn=role.role_arn,
            access_policies=[
                eks.CfnAccessEntry.AccessPolicyProperty(
                    policy_arn=f"arn:{cdk.Aws.PARTITION}:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                    access_scope=scopes,
                )
            ],
        )
        self.ready: IDependable = entry
