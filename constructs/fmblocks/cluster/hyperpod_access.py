"""What administrators and users of a HyperPod cluster may do in AWS."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster

# What no resource of CloudFormation does: a faulty node, newer software. Source: SageMaker AI Developer Guide, *IAM
# users for cluster admin*, and the API reference of the two further ones; all take a cluster (Service Authorization
# Reference, Amazon SageMaker).
_ADMIN_ACTIONS = (
    "sagemaker:BatchDeleteClusterNodes",
    "sagemaker:BatchRebootClusterNodes",
    "sagemaker:BatchReplaceClusterNodes",
    "sagemaker:UpdateClusterSoftware",
)


class HyperPodAccess(Construct):
    """Two managed policies: attach them to roles of people, or to permission sets by their names.

    Users see the cluster. With Slurm they log in to its nodes through Session Manager; with EKS they find the API
    server, where access entries decide, and no node: whoever is on one reads what every team's pods hold there.
    Administrators log in either way, and reboot, replace and update nodes. Neither changes what CloudFormation made,
    and nobody comes in by SSH: no group lets it in.

    Sessions are not for instances of the account, its managed instances and its tasks. AWS documents no resource of a
    node of HyperPod, so which of its nodes cannot be said, the controller's among them, whose session can become root;
    on Slurm the tag SSMSessionRunAs of a person's role says as whom they log in (Systems Manager User Guide, *Turn on
    Run As support*).

    Args:
        cluster: whose nodes.
        eks_cluster: that they join. Default: none.

    Attributes:
        users: the policy of people who work on it.
        admins: the policy of people who look after it.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: IHyperPodCluster,
        eks_cluster: eks.ICluster | eks.Cluster | None = None,
    ) -> None:
        super().__init__(scope, id)
        self.users = iam.ManagedPolicy(self, "Users", description="Work on a HyperPod cluster")
        self.admins = iam.ManagedPolicy(self, "Admins", description="Look after a HyperPod cluster")
        cluster.grant_sessions(self.admins)
        if eks_cluster is None:
            cluster.grant_sessions(self.users)
        else:
            cluster.grant_read(self.users)
        for policy in (self.users, self.admins):
            policy.add_statements(
                # The stack says which cluster it is: `fmblocks nodes` asks it.
                iam.PolicyStatement(actions=["cloudformation:DescribeStacks"], resources=[cdk.Stack.of(self).stack_id])
            )
            if eks_cluster is not None:
                policy.add_statements(
                    # Source: EKS User Guide, *Connect kubectl to an EKS cluster*.
                    iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[eks_cluster.cluster_arn])
                )
        self.admins.add_statements(iam.PolicyStatement(actions=list(_ADMIN_ACTIONS), resources=[cluster.cluster_arn]))
