"""Waits until nodes of a HyperPod cluster run."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from fmblocks._edge import typed
from fmblocks._handlers import custom_resource, handler_function
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster


class HyperPodNodesReady(Construct):
    """Waits up to 55 minutes until nodes run; whatever depends on it is made then.

    Why a custom resource: with continuous provisioning a cluster is in service before its first node is, and
    CloudFormation has nothing to wait with. Add-ons that are installed without a node fail.

    Args:
        cluster: whose nodes.
        count: how many have to run. Default: 1.
    """

    @typed
    def __init__(self, scope: Construct, id: str, *, cluster: IHyperPodCluster, count: int = 1) -> None:
        super().__init__(scope, id)
        begin = handler_function(
            self, "Begin", module="hyperpod_nodes", description="Begins to wait for nodes of HyperPod"
        )
        asked = handler_function(
            self,
            "Ask",
            module="hyperpod_nodes",
            function="is_complete",
            description="Asks whether nodes of HyperPod run",
        )
        asked.add_to_role_policy(
            # Source: Service Authorization Reference, Amazon SageMaker: it takes a cluster.
            iam.PolicyStatement(actions=["sagemaker:ListClusterNodes"], resources=[cluster.cluster_arn])
        )
        self.resource = custom_resource(
            self,
            "Resource",
            handler=begin,
            waiter=asked,
            resource_type="Custom::HyperPodNodesReady",
            properties={"ClusterArn": cluster.cluster_arn, "Count": str(count)},
        )
        self.resource.node.add_dependency(asked)
