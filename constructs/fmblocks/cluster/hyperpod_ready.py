"""Waits until a HyperPod cluster is as far as what comes next needs it."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from fmblocks._edge import typed
from fmblocks._handlers import custom_resource, handler_function
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster


class HyperPodReady(Construct):
    """Waits up to 55 minutes until nodes run, and until Karpenter is there; whatever depends on it is made then.

    Why a custom resource: with continuous provisioning a cluster is in service before its first node is, and the kinds
    of its Karpenter come some time after it. CloudFormation has nothing to wait with. A node that is tried by deep
    health checks does not run yet, and they take longer than the wait.

    Args:
        cluster: that is waited for.
        nodes: how many have to run. Default: none.
        karpenter: whether HyperPod's Karpenter has to be in service. Default: False.
    """

    @typed
    def __init__(
        self, scope: Construct, id: str, *, cluster: IHyperPodCluster, nodes: int = 0, karpenter: bool = False
    ) -> None:
        super().__init__(scope, id)
        begin = handler_function(
            self, "Begin", module="hyperpod_nodes", description="Begins to wait for a HyperPod cluster"
        )
        asked = handler_function(
            self,
            "Ask",
            module="hyperpod_nodes",
            function="is_complete",
            description="Asks how far a HyperPod cluster is",
        )
        asked.add_to_role_policy(
            # Source: Service Authorization Reference, Amazon SageMaker: both take a cluster.
            iam.PolicyStatement(
                actions=["sagemaker:DescribeCluster", "sagemaker:ListClusterNodes"], resources=[cluster.cluster_arn]
            )
        )
        self.resource = custom_resource(
            self,
            "Resource",
            handler=begin,
            waiter=asked,
            resource_type="Custom::HyperPodReady",
            properties={
                "ClusterArn": cluster.cluster_arn,
                "Nodes": str(nodes),
                "Karpenter": "true" if karpenter else "false",
            },
        )
        self.resource.node.add_dependency(asked)
