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
from fmblocks.cluster.images import KARPENTER, chart_source
from fmblocks.cluster.settings import NodeRole

# Resources and conditions are those of Karpenter's own policy (karpenter.sh, *CloudFormation reference*, 1.15).
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
}


class Karpenter(Construct):
    """Karpenter from its chart, on the system nodes, with its role, its queue of interruptions and a role of nodes.

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
        self.chart = eks.HelmChart(
            self,
            "Chart",
            cluster=self.cluster,
            chart=KARPENTER.name,
            release="karpenter",
            repository=chart_source(KARPENTER, chart_registry),
            version=KARPENTER.version,
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
            wait=True,
            timeout=cdk.Duration.minutes(15),
        )
        self.chart.node.add_dependency(cluster, association, self.role, entry)

    def _statements(self) -> list[iam.PolicyStatement]:
        stack = cdk.Stack.of(self)

        def ec2_arns(*resources: str, account: str = "*") -> list[str]:
            return [
                stack.format_arn(service="ec2", account=account, resource=one, resource_name="*") for one in resources
            ]

        name = self.cluster.cluster_name
        requested = {"StringEquals": {"aws:RequestTag/eks:eks-cluster-name": name}}
        tagged = {"StringEquals": {"aws:ResourceTag/eks:eks-cluster-name": name}}
        profile = stack.format_arn(service="iam", region="", resource="instance-profile", resource_name="*")
        made = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
        return [
            iam.PolicyStatement(
                actions=list(_LAUNCH),
                resources=[
                    f"arn:{cdk.Aws.PARTITION}:ec2:{stack.region}::image/*",
                    *ec2_arns("security-group", "subnet", "capacity-reservation", "placement-group", "snapshot"),
                ],
            ),
            iam.PolicyStatement(actions=list(_LAUNCH), resources=ec2_arns("launch-template"), conditions=tagged),
            iam.PolicyStatement(
                actions=[*_LAUNCH, "ec2:CreateLaunchTemplate"], resources=ec2_arns(*made), conditions=requested
            ),
            iam.PolicyStatement(
                actions=["ec2:CreateTags"],
                resources=ec2_arns(*made),
                conditions={
                    **requested,
                    "ForAnyValue:StringEquals": {
                        "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]
                    },
                },
            ),
            iam.PolicyStatement(actions=["ec2:CreateTags"], resources=ec2_arns("instance"), conditions=tagged),
            iam.PolicyStatement(
                actions=["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
                resources=ec2_arns("instance", "launch-template"),
                conditions=tagged,
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
            iam.PolicyStatement(
                actions=["iam:CreateInstanceProfile", "iam:TagInstanceProfile"],
                resources=[profile],
                conditions=requested,
            ),
            iam.PolicyStatement(
                actions=[
                    "iam:AddRoleToInstanceProfile",
                    "iam:RemoveRoleFromInstanceProfile",
                    "iam:DeleteInstanceProfile",
                ],
                resources=[profile],
                conditions=tagged,
            ),
            iam.PolicyStatement(actions=["iam:GetInstanceProfile"], resources=[profile]),
            iam.PolicyStatement(actions=["eks:DescribeCluster"], resources=[self.cluster.cluster_arn]),
        ]
