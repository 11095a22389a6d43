"""A cluster on HyperPod with EKS: settings in, constructs out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks.cluster.add_ons import HYPERPOD_ADD_ONS
from fmblocks.cluster.compute_quota import ComputeQuota, QuotaOfType
from fmblocks.cluster.hyperpod_add_ons import HyperPodAddOns
from fmblocks.cluster.hyperpod_dependencies import HyperPodDependencies
from fmblocks.cluster.hyperpod_eks_cluster import HyperPodEksCluster
from fmblocks.cluster.hyperpod_instance_group import EksInstanceGroup
from fmblocks.cluster.hyperpod_node_pool import HyperPodNodePool
from fmblocks.cluster.hyperpod_ready import HyperPodReady
from fmblocks.cluster.kueue import Kueue
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.scheduler_policy import SchedulerPolicy
from fmblocks.cluster.settings import Cluster as ClusterSettings
from fmblocks.cluster.settings import HyperPodAddOn, NodeProvisioning, Provisioner
from fmblocks.cluster.team_access import TeamAccess, TeamMembers
from fmblocks.governance.settings import Team
from fmblocks.observability.metrics_workspace import MetricsWorkspace
from fmblocks.project import Project
from fmblocks_stacks import hyperpod
from fmblocks_stacks.contract import Subscriber
from fmblocks_stacks.kubernetes import ControlPlane


@dataclass(frozen=True, kw_only=True)
class _Queued:
    """Nodes of an instance group, as a queue sees them."""

    group_name: str
    instance_type: str
    count: int
    efa_interfaces: int


class HyperPodKubernetesCluster(ControlPlane):
    """A control plane, HyperPod's chart, the cluster that brings the nodes, its add-ons, and the teams on it.

    In this order: nodes need the chart's agents, add-ons need a node, quotas need the webhook of an add-on. System
    nodes of EKS are there from the start, so that nothing waits for what waits for it.

    Attributes:
        hyperpod: the cluster.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        settings: ClusterSettings,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
        charts: Path,
        bundle: LifecycleBundle | None,
    ) -> None:
        super().__init__(
            scope, id, project=project, settings=settings, foundation=foundation, security_group=security_group
        )
        chart = self._kubernetes.dependency_chart
        dependencies = HyperPodDependencies(
            self,
            "Dependencies",
            cluster=self.cluster,
            path=charts / chart.path,
            types=[name for group in self._work for name in group.every_type],
            training_operator=HyperPodAddOn.TRAINING_OPERATOR in self._kubernetes.hyperpod_add_ons,
            values=json.loads(chart.values) if chart.values else None,
        )
        self.hyperpod = self._hyperpod(dependencies, bundle)
        ready = None
        if settings.karpenter or self._kubernetes.hyperpod_add_ons:
            ready = HyperPodReady(
                self,
                "Ready",
                cluster=self.hyperpod,
                nodes=1 if self._kubernetes.hyperpod_add_ons else 0,
                karpenter=settings.karpenter,
            )
        for group in self._work:
            if group.provisioned_by is Provisioner.KARPENTER:
                HyperPodNodePool(
                    self,
                    f"Pool-{group.name}",
                    cluster=self.hyperpod,
                    eks_cluster=self.cluster,
                    group_name=group.name,
                    instance_type=group.instance_type,
                    max_count=group.count,
                    after=ready,
                )
        self._install_kube_ray()
        if self._kubernetes.kueue:
            self._queue()
        if self._kubernetes.hyperpod_add_ons:
            self._govern(self._add_ons(ready))
        hyperpod.watch(self, self.hyperpod, foundation, project.observability.alerts)
        hyperpod.let_in(self, self.hyperpod, self.cluster)

    def _hyperpod(self, dependencies: HyperPodDependencies, bundle: LifecycleBundle | None) -> HyperPodEksCluster:
        wanted, zones = self._wanted, hyperpod.private_subnets(self, self._foundation, self._wanted.groups)
        key = None
        if wanted.provisioning is NodeProvisioning.CONTINUOUS:
            key = kms.Key.from_key_arn(self, "VolumeKey", self._foundation.value("key-arn"))
        groups = []
        for group in self._work:
            told = hyperpod.arguments(self, group, zones)
            if group.provisioned_by is Provisioner.KARPENTER:
                told["count"] = 0  # which starts them itself
            groups.append(
                EksInstanceGroup(
                    **told,
                    image_release_version=group.image_release_version,
                    deep_health_checks=group.deep_health_checks,
                )
            )
        cluster = HyperPodEksCluster(
            self,
            "HyperPod",
            eks_cluster=self.cluster,
            subnets=[self._subnets[self._project.network.primary]],
            security_groups=[self._security_group],
            instance_groups=groups,
            dependency_chart=dependencies.chart,
            lifecycle_bundle=bundle,
            node_recovery=wanted.node_recovery,
            node_provisioning=wanted.provisioning,
            karpenter=wanted.karpenter,
            tiered_storage=wanted.tiered_storage,
            volume_kms_key=key,
        )
        # The VPC CNI asks HyperPod for interfaces of its nodes, with its own role where it has one. Not of this cluster
        # alone: its ARN is known once it is made, and no node gets ready before. Source: SageMaker API reference,
        # AttachClusterNodeNetworkInterface; aws/amazon-vpc-cni-k8s, pull request 3874.
        clusters = cdk.Stack.of(self).format_arn(service="sagemaker", resource="cluster", resource_name="*")
        self.cluster.add_on_roles["vpc-cni"].add_to_principal_policy(
            iam.PolicyStatement(actions=["sagemaker:AttachClusterNodeNetworkInterface"], resources=[clusters])
        )
        return cluster

    def _queue(self) -> None:
        Kueue(
            self,
            "Kueue",
            cluster=self.cluster,
            groups=[
                _Queued(
                    group_name=group.name,
                    instance_type=group.instance_type,
                    count=group.count,
                    efa_interfaces=self._project.instance_types[group.instance_type].max_efa_interfaces,
                )
                for group in self._work
            ],
            chart_registry=self._kubernetes.chart_registry,
            image_registry=self._kubernetes.image_registry,
            tainted=False,
        )

    def _add_ons(self, ready: HyperPodReady | None) -> HyperPodAddOns:
        names = set(HYPERPOD_ADD_ONS.values())
        return HyperPodAddOns(
            self,
            "AddOns",
            eks_cluster=self.cluster,
            hyperpod_cluster=self.hyperpod,
            add_ons=self._kubernetes.hyperpod_add_ons,
            workspace=MetricsWorkspace.from_workspace_attributes(
                self,
                "Workspace",
                workspace_arn=self._foundation.value("metrics/workspace-arn"),
            ),
            overrides=[self._add_on(one) for one in self._kubernetes.add_ons if one.name in names],
            after=ready,
        )

    def _govern(self, add_ons: HyperPodAddOns) -> None:
        if HyperPodAddOn.TASK_GOVERNANCE not in self._kubernetes.hyperpod_add_ons:
            return
        policy = SchedulerPolicy(
            self,
            "Policy",
            cluster=self.hyperpod,
            policy_name=self._project.name,
            priorities={one.name: one.weight for one in self._project.priorities},
        )
        policy.node.add_dependency(add_ons.governed)
        for team in sorted(self._project.teams, key=lambda team: team.name):
            self._team(team, add_ons)
        members = {
            one.principal_arn: [one.account] for one in self._project.access.users if one.principal_arn and one.account
        }
        TeamMembers(self, "Members", cluster=self.cluster, members=members)

    def _team(self, team: Team, add_ons: HyperPodAddOns) -> None:
        quota = ComputeQuota(
            self,
            f"Quota-{team.name}",
            cluster=self.hyperpod,
            team_name=team.name,
            quotas=[
                QuotaOfType(
                    instance_type=one.instance_type,
                    count=one.count,
                    accelerators=one.accelerators,
                    vcpus=one.vcpus,
                    memory_gib=one.memory_gib,
                )
                for one in team.quotas
            ],
            sharing=team.sharing,
            borrow_limit_percentage=team.borrow_limit_percentage,
            preemption=team.preemption,
            fair_share_weight=team.fair_share_weight,
        )
        quota.node.add_dependency(add_ons.governed)
        TeamAccess(
            self,
            f"Team-{team.name}",
            cluster=self.cluster,
            team_name=team.name,
            namespace=quota.namespace,
            after=quota,
        )
        self._publish_launch_profiles(quota.namespace, after=quota)
        if self._project.storage.lustre is not None:
            self._claim(self._project.storage.lustre, quota.namespace, after=quota)
