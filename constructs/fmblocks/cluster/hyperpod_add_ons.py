"""Add-ons of EKS that HyperPod brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from fmblocks._edge import fault, member, typed
from fmblocks.cluster.add_ons import HYPERPOD_ADD_ONS, hyperpod_pinned, laid_over
from fmblocks.cluster.eks_cluster import EksAddOn, pod_role
from fmblocks.cluster.hyperpod_cluster import HyperPodCluster, IHyperPodCluster
from fmblocks.cluster.hyperpod_ready import HyperPodReady
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.cluster.settings import HyperPodAddOn
from fmblocks.findings import FindingsError
from fmblocks.observability.metrics_workspace import IMetricsWorkspace, workspace_address

# Service accounts: SageMaker AI Developer Guide, *Installing the training operator*, *Setting up the SageMaker
# HyperPod observability add-on*.
_ACCOUNTS = {
    HyperPodAddOn.TRAINING_OPERATOR: ("aws-hyperpod", "hp-training-operator-controller-manager"),
    HyperPodAddOn.OBSERVABILITY: ("hyperpod-observability", "hyperpod-observability-operator-otel-collector"),
}
# What the observability add-on writes and reads of the cluster's logs. Source: the second page above.
_LOG_ACTIONS = (
    "logs:CreateLogGroup",
    "logs:CreateLogStream",
    "logs:DescribeLogGroups",
    "logs:DescribeLogStreams",
    "logs:FilterLogEvents",
    "logs:GetLogEvents",
    "logs:PutLogEvents",
)


class HyperPodAddOns(Construct):
    """HyperPod's add-ons, each once nodes run: on an empty cluster their installation fails.

    Roles are bound by pod identity in associations of their own: one version of the training operator refuses them
    inline. That operator asks for the tag SageMaker=true on the cluster, which it gets. Task governance brings Kueue,
    whose webhook is waited for: quotas that come before it are refused.

    Args:
        eks_cluster: with the agent for pod identities and cert-manager, as an :class:`EksCluster` has.
        hyperpod_cluster: whose nodes they run on. One that was made elsewhere needs the tag already.
        add_ons: which.
        workspace: where observability writes to; required with it. Default: none.
        overrides: versions and settings by the names of EKS. Default: pinned versions.
        after: a wait for nodes. Default: one of its own.

    Raises:
        FindingsError: observability without a workspace.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        eks_cluster: eks.ICluster | eks.Cluster,
        hyperpod_cluster: IHyperPodCluster,
        add_ons: Sequence[HyperPodAddOn],
        workspace: IMetricsWorkspace | None = None,
        overrides: Sequence[EksAddOn] = (),
        after: IDependable | None = None,
    ) -> None:
        super().__init__(scope, id)
        wanted = [member(HyperPodAddOn, one, "add_ons") for one in add_ons]
        if HyperPodAddOn.OBSERVABILITY in wanted and workspace is None:
            raise FindingsError([fault("workspace", "is required with observability", "pass a MetricsWorkspace")])
        self._eks, self._overrides = eks_cluster, {one.name: one for one in overrides}
        self._after = after or HyperPodReady(self, "NodesReady", cluster=hyperpod_cluster, nodes=1)
        if HyperPodAddOn.TRAINING_OPERATOR in wanted and isinstance(hyperpod_cluster, HyperPodCluster):
            cdk.Tags.of(hyperpod_cluster.resource).add("SageMaker", "true")
        self._made = {one: self._add(one, workspace) for one in HyperPodAddOn if one in wanted}
        self._webhook = self._wait_for_kueue() if HyperPodAddOn.TASK_GOVERNANCE in wanted else None

    @property
    def governed(self) -> IDependable:
        """Task governance with its webhook, to wait for before quotas.

        Raises:
            FindingsError: it is not among the add-ons.
        """
        if self._webhook is None:
            raise FindingsError([fault("add_ons", "has no task_governance", "add it: quotas need it")])
        return self._webhook

    def add_on(self, one: HyperPodAddOn) -> eks.CfnAddon:
        """The resource of an add-on, to wait for it."""
        return self._made[one]

    def _add(self, one: HyperPodAddOn, workspace: IMetricsWorkspace | None) -> eks.CfnAddon:
        name = HYPERPOD_ADD_ONS[one]
        told = self._overrides.get(name)
        values = laid_over(self._values(one, workspace), (told and told.configuration_values) or {})
        home = Construct(self, f"AddOn-{one}")
        resource = eks.CfnAddon(
            home,
            "Resource",
            cluster_name=self._eks.cluster_name,
            addon_name=name,
            addon_version=(told and told.version) or hyperpod_pinned()[name],
            configuration_values=cdk.Stack.of(self).to_json_string(values) if values else None,
            # Settings that somebody made by hand would stop every later deployment.
            resolve_conflicts="OVERWRITE",
        )
        if one in _ACCOUNTS:
            namespace, account = _ACCOUNTS[one]
            association = eks.CfnPodIdentityAssociation(
                home,
                "Association",
                cluster_name=self._eks.cluster_name,
                namespace=namespace,
                service_account=account,
                role_arn=self._role(home, one, workspace).role_arn,
            )
            resource.add_resource_dependency(association)
        resource.node.add_dependency(self._after)
        return resource

    def _values(self, one: HyperPodAddOn, workspace: IMetricsWorkspace | None) -> Mapping[str, Any]:
        if one is not HyperPodAddOn.OBSERVABILITY or workspace is None:
            return {}
        endpoint = workspace_address(self, workspace)
        return {"ampWorkspace": {"arn": workspace.workspace_arn, "prometheusEndpoint": endpoint}}

    def _role(self, home: Construct, one: HyperPodAddOn, workspace: IMetricsWorkspace | None) -> iam.Role:
        role = pod_role(home, "Role")
        if one is HyperPodAddOn.TRAINING_OPERATOR:
            policy = "AmazonSageMakerHyperPodTrainingOperatorAccess"
            role.add_managed_policy(iam.ManagedPolicy.from_aws_managed_policy_name(policy))
            return role
        assert workspace is not None
        workspace.grant_remote_write(role)
        groups = cdk.Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name="/aws/sagemaker/Clusters/*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        role.add_to_policy(iam.PolicyStatement(actions=list(_LOG_ACTIONS), resources=[groups]))
        return role

    def _wait_for_kueue(self) -> eks.KubernetesObjectValue:
        waited = eks.KubernetesObjectValue(
            self,
            "Kueue",
            cluster=cast(eks.ICluster, self._eks),
            object_type="deployment",
            object_name="kueue-controller-manager",
            object_namespace="kueue-system",
            json_path=".status.availableReplicas",
            timeout=cdk.Duration.minutes(10),
        )
        wait_until_ready(waited, self._eks)
        waited.node.add_dependency(self._made[HyperPodAddOn.TASK_GOVERNANCE])
        return waited
