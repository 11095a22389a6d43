"""The operator that turns custom resources into endpoints on HyperPod."""

from __future__ import annotations

from typing import cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from fmblocks._edge import typed
from fmblocks._stack_id import end_of_stack_id
from fmblocks.cluster.add_ons import INFERENCE_OPERATOR, hyperpod_pinned, laid_over
from fmblocks.cluster.eks_cluster import EksAddOn
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.observability.metrics_workspace import IMetricsWorkspace
from fmblocks.serving.web_identity_role import web_identity_role

_NAMESPACE = "hyperpod-inference-system"
# The operator hands its role to SageMaker, and AWS's policy lets it do so under names that begin like this.
_ROLE_PREFIX = "SageMakerHyperPodInferenceRole"
# What the controller of load balancers looks at and changes. Source: aws-load-balancer-controller v2.13,
# docs/install/iam_policy.json, without Cognito, WAF, Shield and Outposts, which endpoints do not use.
_LB_READ = (
    "acm:DescribeCertificate",
    "acm:ListCertificates",
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcPeeringConnections",
    "ec2:DescribeVpcs",
    "ec2:GetSecurityGroupsForVpc",
    "elasticloadbalancing:DescribeCapacityReservation",
    "elasticloadbalancing:DescribeListenerAttributes",
    "elasticloadbalancing:DescribeListenerCertificates",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancerAttributes",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeRules",
    "elasticloadbalancing:DescribeSSLPolicies",
    "elasticloadbalancing:DescribeTags",
    "elasticloadbalancing:DescribeTargetGroupAttributes",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
    "elasticloadbalancing:DescribeTrustStores",
)
# Its own things carry this tag; it adds it as it makes them.
_LB_TAG = "elbv2.k8s.aws/cluster"
_LB_CREATE = ("elasticloadbalancing:CreateLoadBalancer", "elasticloadbalancing:CreateTargetGroup")
_LB_CHANGE = (
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:DeleteSecurityGroup",
    "ec2:RevokeSecurityGroupIngress",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DeleteTargetGroup",
    "elasticloadbalancing:ModifyListenerAttributes",
    "elasticloadbalancing:ModifyLoadBalancerAttributes",
    "elasticloadbalancing:ModifyTargetGroup",
    "elasticloadbalancing:ModifyTargetGroupAttributes",
    "elasticloadbalancing:SetIpAddressType",
    "elasticloadbalancing:SetSecurityGroups",
    "elasticloadbalancing:SetSubnets",
)
_LB_LISTENERS = (
    "elasticloadbalancing:AddListenerCertificates",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:CreateRule",
    "elasticloadbalancing:DeleteListener",
    "elasticloadbalancing:DeleteRule",
    "elasticloadbalancing:ModifyListener",
    "elasticloadbalancing:ModifyRule",
    "elasticloadbalancing:RemoveListenerCertificates",
    "elasticloadbalancing:SetRulePriorities",
)


class HyperPodInferenceOperator(Construct):
    """HyperPod's inference operator as an add-on of EKS, with the load-balancer controller and KEDA that it brings.

    Once a cluster: a second controller or KEDA would fight with them. It needs add-ons that an :class:`EksCluster`
    always has: cert-manager, metrics-server, the drivers of S3 and FSx; its roles are assumed through OpenID Connect.
    It refuses to be installed without them, and cannot be repaired then: it is deleted and made again.

    Endpoints go before it: their finalizers are its own. A :class:`HyperPodModelEndpoint` sees to that.

    Source: SageMaker AI Developer Guide, *Setting up your HyperPod clusters for model deployment*; AWS managed policy
    AmazonSageMakerHyperPodInferenceAccess.

    Args:
        eks_cluster: with a kubectl provider.
        oidc_provider_arn: of the cluster's OpenID Connect provider.
        hyperpod_cluster: whose nodes endpoints run on.
        certificates_bucket: where the operator puts certificates that it makes; its name begins ``hyperpod-tls-``:
            AWS's policy writes to such buckets only.
        workspace: that scaling asks. Default: any of the account's.
        override: another version, or settings over ours. Default: a pinned version.

    Attributes:
        add_on: to wait for.
        execution_role: of the operator.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        eks_cluster: eks.ICluster | eks.Cluster,
        oidc_provider_arn: str,
        hyperpod_cluster: IHyperPodCluster,
        certificates_bucket: s3.IBucket,
        workspace: IMetricsWorkspace | None = None,
        override: EksAddOn | None = None,
    ) -> None:
        super().__init__(scope, id)
        self._provider_arn = oidc_provider_arn
        self.certificates_bucket = certificates_bucket
        self.execution_role = self._execution_role()
        balancers, scaler = self._load_balancer_role(), self._scaler_role(workspace)
        namespace = eks.KubernetesManifest(
            self,
            "Namespace",
            cluster=cast(eks.ICluster, eks_cluster),
            manifest=[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}],
        )
        wait_until_ready(namespace, eks_cluster)
        ours = {
            "executionRoleArn": self.execution_role.role_arn,
            "tlsCertificateS3Bucket": certificates_bucket.bucket_name,
            "hyperpodClusterArn": hyperpod_cluster.cluster_arn,
            "alb": {"enabled": True, "serviceAccount": {"create": True, "roleArn": balancers.role_arn}},
            "keda": {"enabled": True, "auth": {"aws": {"irsa": {"enabled": True, "roleArn": scaler.role_arn}}}},
        }
        values = laid_over(ours, (override and override.configuration_values) or {})
        self.add_on = eks.CfnAddon(
            self,
            "Resource",
            cluster_name=eks_cluster.cluster_name,
            addon_name=INFERENCE_OPERATOR,
            addon_version=(override and override.version) or hyperpod_pinned()[INFERENCE_OPERATOR],
            configuration_values=cdk.Stack.of(self).to_json_string(values),
            # Settings that somebody made by hand would stop every later deployment.
            resolve_conflicts="OVERWRITE",
        )
        # The bucket with what empties it: it does so once nobody writes there any more.
        needed: list[IDependable] = [self.execution_role, balancers, scaler, namespace, certificates_bucket]
        self.add_on.node.add_dependency(*needed)

    def use_certificate(self, certificate_arn: str, hosted_zone_id: str | None = None) -> None:
        """Let the operator use a certificate of yours, and write its name into a hosted zone."""
        role = self.execution_role
        role.add_to_policy(
            iam.PolicyStatement(actions=["acm:DescribeCertificate", "acm:GetCertificate"], resources=[certificate_arn])
        )
        if hosted_zone_id is not None:
            zone = f"arn:{cdk.Aws.PARTITION}:route53:::hostedzone/{hosted_zone_id}"
            actions = ["route53:GetHostedZone", "route53:ListResourceRecordSets", "route53:ChangeResourceRecordSets"]
            role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[zone]))

    def _role(self, id: str, account: str, *, services: list[str] | None = None, name: str | None = None) -> iam.Role:
        return web_identity_role(
            self,
            id,
            provider_arn=self._provider_arn,
            namespace=_NAMESPACE,
            service_account=account,
            services=services or (),
            role_name=name,
        )

    def _execution_role(self) -> iam.Role:
        role = self._role(
            "ExecutionRole",
            "hyperpod-inference-controller-manager",
            services=["sagemaker.amazonaws.com"],
            name=f"{_ROLE_PREFIX}-{end_of_stack_id(self)}",
        )
        policy = "AmazonSageMakerHyperPodInferenceAccess"
        role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
        if self.certificates_bucket.encryption_key is not None:
            self.certificates_bucket.encryption_key.grant(role, "kms:Decrypt", "kms:GenerateDataKey")
        return role

    def _scaler_role(self, workspace: IMetricsWorkspace | None) -> iam.Role:
        role = self._role("ScalerRole", "keda-operator")
        read = ["cloudwatch:GetMetricData", "cloudwatch:GetMetricStatistics", "cloudwatch:ListMetrics"]
        role.add_to_policy(iam.PolicyStatement(actions=read, resources=["*"]))  # take no resource
        if workspace is not None:
            workspace.grant_query(role)
            return role
        any_workspace = cdk.Stack.of(self).format_arn(service="aps", resource="workspace", resource_name="*")
        role.add_to_policy(iam.PolicyStatement(actions=["aps:QueryMetrics"], resources=[any_workspace]))
        return role

    def _load_balancer_role(self) -> iam.Role:
        role, stack = self._role("LoadBalancerRole", "aws-load-balancer-controller"), cdk.Stack.of(self)

        def arn(service: str, resource: str) -> str:
            return stack.format_arn(service=service, resource=resource, resource_name="*")

        def allow(actions: tuple[str, ...], resources: list[str], **conditions: object) -> None:
            role.add_to_policy(
                iam.PolicyStatement(actions=list(actions), resources=resources, conditions=conditions or None)
            )

        linked = {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"}
        roles = f"arn:{cdk.Aws.PARTITION}:iam::*:role/aws-service-role/elasticloadbalancing.amazonaws.com/*"
        allow(("iam:CreateServiceLinkedRole",), [roles], StringEquals=linked)
        allow(_LB_READ, ["*"])
        groups = arn("ec2", "security-group")
        # Those of nodes, which are not its own, let its load balancers in.
        allow(("ec2:AuthorizeSecurityGroupIngress", "ec2:RevokeSecurityGroupIngress"), [groups])
        allow(("ec2:CreateSecurityGroup",), [groups, arn("ec2", "vpc")])
        asked, owned = {f"aws:RequestTag/{_LB_TAG}": "false"}, {f"aws:ResourceTag/{_LB_TAG}": "false"}
        made = {"ec2:CreateAction": "CreateSecurityGroup"}
        allow(("ec2:CreateTags",), [groups], StringEquals=made, Null=asked)
        own = {f"aws:RequestTag/{_LB_TAG}": "true", **owned}
        allow(("ec2:CreateTags", "ec2:DeleteTags"), [groups], Null=own)
        things = [arn("elasticloadbalancing", kind) for kind in ("targetgroup", "loadbalancer/net", "loadbalancer/app")]
        ways = [f"{kind}/{way}" for kind in ("listener", "listener-rule") for way in ("net", "app")]
        listeners = [arn("elasticloadbalancing", way) for way in ways]
        allow(_LB_CREATE, things, Null=asked)
        allow(_LB_CHANGE, [*things, *listeners, groups], Null=owned)
        allow(_LB_LISTENERS, [*things, *listeners])
        tags = ("elasticloadbalancing:AddTags", "elasticloadbalancing:RemoveTags")
        allow(tags, things, Null=own)
        allow(tags, listeners)
        creating = {"elasticloadbalancing:CreateAction": ["CreateTargetGroup", "CreateLoadBalancer"]}
        allow(("elasticloadbalancing:AddTags",), things, StringEquals=creating, Null=asked)
        targets = ("elasticloadbalancing:RegisterTargets", "elasticloadbalancing:DeregisterTargets")
        allow(targets, [arn("elasticloadbalancing", "targetgroup")])
        return role
