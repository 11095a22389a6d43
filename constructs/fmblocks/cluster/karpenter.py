"""Nodes when pods ask for them: Karpenter."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.add_ons import ROLE_LABEL
from fmblocks.cluster.eks_cluster import pod_role
from fmblocks.cluster.eks_gpu_node_group import eks_node_role
from fmblocks.cluster.images import KARPENTER, KARPENTER_KINDS
from fmblocks.cluster.pinned_chart import pinned_chart
from fmblocks.cluster.settings import NodeRole

# Actions, resources and the tags in conditions are those of Karpenter's own policy (karpenter.sh, *CloudFormation
# reference*). Left out are conditions on kubernetes.io/cluster/<name>, a key that CloudFormation cannot make of a name
# it chose: eks:eks-cluster-name, which Karpenter puts beside it, says the same.
_LAUNCH = ("ec2:RunInstances", "ec2:CreateFleet")
_DESCRIBE = (
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "pricing:GetProducts",
    "iam:ListInstanceProfiles",
)
# What it has to hear before nodes go. Source: the same page.
_EVENTS = {
    "Health": ("aws.health", "AWS Health Event"),
    "Spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "Rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "State": ("aws.ec2", "EC2 Instance State-change Notification"),
    "Reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}


class Karpenter(Construct):
    """Karpenter from its chart, on the system nodes, with its role, its queue of interruptions and a role of nodes.

    Two system nodes at least: its two replicas do not share one.

    Args:
        cluster: an :class:`EksCluster`, or another with a kubectl provider and the pod identity agent.
        chart_registry: a mirror, ``oci://…``. Default: where the project publishes it.

    Attributes:
        node_role: of every node that Karpenter starts.
        queue: tells of interruptions.
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
        self.cluster = cast(eks.ICluster, cluster)
        self.node_role = eks_node_role(self, "NodeRole")
        # Managed node groups have such an entry from EKS; Karpenter's nodes would never be let in.
        entry = eks.CfnAccessEntry(
            self,
            "NodeAccess",
            cluster_name=cluster.cluster_name,
            principal_arn=self.node_role.role_arn,
            type="EC2_LINUX",
        )
        self.queue = sqs.Queue(
            self,
            "Interruptions",
            retention_period=cdk.Duration.minutes(5),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        self.queue.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sqs:SendMessage"],
                principals=[iam.ServicePrincipal("events.amazonaws.com"), iam.ServicePrincipal("sqs.amazonaws.com")],
                resources=[self.queue.queue_arn],
                conditions={"StringEquals": {"aws:SourceAccount": cdk.Stack.of(self).account}},
            )
        )
        for name, (source, kind) in _EVENTS.items():
            events.CfnRule(
                self,
                name,
                event_pattern={"source": [source], "detail-type": [kind]},
                targets=[events.CfnRule.TargetProperty(id="Queue", arn=self.queue.queue_arn)],
            )
        self.role = pod_role(self, "Role")
        for statement in self._statements():
            self.role.add_to_policy(statement)
        association = eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster.cluster_name,
            namespace="kube-system",
            service_account="karpenter",
            role_arn=self.role.role_arn,
        )
        kinds = pinned_chart(
            self,
            "Kinds",
            cluster=cluster,
            chart=KARPENTER_KINDS,
            registry=chart_registry,
            namespace="kube-system",
        )
        self.chart = pinned_chart(
            self,
            "Chart",
            cluster=cluster,
            chart=KARPENTER,
            registry=chart_registry,
            namespace="kube-system",
            values={
                "settings": {
                    "clusterName": cluster.cluster_name,
                    "interruptionQueue": self.queue.queue_name,
                    "featureGates": {"reservedCapacity": True},
                },
                "serviceAccount": {"name": "karpenter"},
                "nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value},
            },
            skip_crds=True,
        )
        self.chart.node.add_dependency(kinds, association, self.role, entry)

    def _statements(self) -> list[iam.PolicyStatement]:
        stack = cdk.Stack.of(self)

        def ec2_arns(*resources: str, account: str = "*") -> list[str]:
            return [
                stack.format_arn(service="ec2", account=account, resource=one, resource_name="*") for one in resources
            ]

        name = self.cluster.cluster_name
        asked = {
            "StringEquals": {"aws:RequestTag/eks:eks-cluster-name": name},
            "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
        }
        owned = {
            "StringEquals": {"aws:ResourceTag/eks:eks-cluster-name": name},
            "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
        }
        profile = stack.format_arn(service="iam", region="", resource="instance-profile", resource_name="*")
        new_profile = {
            "StringEquals": {"aws:RequestTag/eks:eks-cluster-name": name},
            "StringLike": {"aws:RequestTag/karpenter.k8s.aws/ec2nodeclass": "*"},
        }
        own_profile = {
            "StringEquals": {"aws:ResourceTag/eks:eks-cluster-name": name},
            "StringLike": {"aws:ResourceTag/karpenter.k8s.aws/ec2nodeclass": "*"},
        }
        made = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
        return [
            iam.PolicyStatement(
                actions=list(_LAUNCH),
                resources=[
                    f"arn:{cdk.Aws.PARTITION}:ec2:{stack.region}::image/*",
                    *ec2_arns("security-group", "subnet", "capacity-reservation", "placement-group", "snapshot"),
                ],
            ),
            iam.PolicyStatement(actions=list(_LAUNCH), resources=ec2_arns("launch-template"), conditions=owned),
            iam.PolicyStatement(
                actions=[*_LAUNCH, "ec2:CreateLaunchTemplate"], resources=ec2_arns(*made), conditions=asked
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateTags"],
                resources=ec2_arns(*made),
                conditions={
                    "StringEquals": {
                        **asked["StringEquals"],
                        "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
                    },
                    "StringLike": asked["StringLike"],
                },
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateTags"],
                resources=ec2_arns("instance"),
                conditions={
                    **owned,
                    "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": name},
                    "ForAllValues:StringEquals": {
                        "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
                    },
                },
            ),
            iam.PolicyStatement(
                actions=["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
                resources=ec2_arns("instance", "launch-template"),
                conditions=owned,
            ),
            # These take no resource.
            iam.PolicyStatement(actions=list(_DESCRIBE), resources=["*"]),
            iam.PolicyStatement(
                actions=["ssm:GetParameter"],
                resources=[f"arn:{cdk.Aws.PARTITION}:ssm:{stack.region}::parameter/aws/service/*"],
            ),
            iam.PolicyStatement(
                actions=["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                resources=[self.queue.queue_arn],
            ),
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[self.node_role.role_arn],
                conditions={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
            ),
            iam.PolicyStatement(actions=["iam:CreateInstanceProfile"], resources=[profile], conditions=new_profile),
            iam.PolicyStatement(
                actions=["iam:TagInstanceProfile"],
                resources=[profile],
                conditions={kind: {**own_profile[kind], **new_profile[kind]} for kind in own_profile},
            ),
            iam.PolicyStatement(
                actions=[
                    "iam:AddRoleToInstanceProfile",
                    "iam:RemoveRoleFromInstanceProfile",
                    "iam:DeleteInstanceProfile",
                ],
                resources=[profile],
                conditions=own_profile,
            ),
            iam.PolicyStatement(actions=["iam:GetInstanceProfile"], resources=[profile]),
            iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[self.cluster.cluster_arn]),
        ]
