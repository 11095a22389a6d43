"""A SageMaker HyperPod cluster with Kubernetes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from fmblocks._edge import check_arguments, instance_types, member, typed
from fmblocks.capacity.settings import CapacityMode
from fmblocks.catalog import normalise
from fmblocks.cluster.add_ons import GROUP_LABEL
from fmblocks.cluster.eks_gpu_node_group import node_labels
from fmblocks.cluster.hyperpod_cluster import (
    HyperPodCluster,
    IHyperPodCluster,
    ImportedHyperPodCluster,
    Storage,
)
from fmblocks.cluster.hyperpod_instance_group import EksInstanceGroup, plain
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.prepared import PreparedCluster
from fmblocks.cluster.settings import (
    DeepHealthCheck,
    NodeProvisioning,
    NodeRecovery,
    NodeRole,
    Orchestrator,
    Provisioner,
    TieredStorage,
)
from fmblocks.settings import pascal_case

# Beside those of a Slurm cluster: the VPC CNI on the nodes gives pods their addresses with the nodes' role. Source and
# which take a resource: as there.
_POD_INTERFACES = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
)
_PULL_ACTIONS = ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer")
_DESCRIBE_ACTIONS = ("ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeTags")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestrictedInstanceGroup:
    """Nodes that only Amazon Nova's recipes run on; nobody logs in to them.

    Source: API CreateCluster of SageMaker, RestrictedInstanceGroups.

    Attributes:
        name: as of an :class:`EksInstanceGroup`.
        instance_type: as there.
        count: nodes.
        subnet: the one private subnet. Default: those of the cluster.
        training_plan_arn: of what was bought. Default: on demand.
        lustre_capacity_gib: of the file system that HyperPod makes for the group, 1200 to 100800.
        lustre_throughput_mbps_per_tib: of that file system, 125 to 1000.
        threads_per_core: 1 or 2. Default: chosen by HyperPod.
        deep_health_checks: tried on nodes before work is placed there. Default: none.
        buckets: that recipes read from and write to; the nodes' role may. Default: none.
    """

    name: str
    instance_type: str
    count: int
    lustre_capacity_gib: int
    lustre_throughput_mbps_per_tib: int
    subnet: ec2.ISubnet | None = None
    training_plan_arn: str | None = None
    threads_per_core: int | None = None
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    buckets: Sequence[s3.IBucket] = ()

    def as_group(self) -> EksInstanceGroup:
        """What the rules look at, which are those of other groups."""
        return EksInstanceGroup(
            name=self.name,
            instance_type=self.instance_type,
            count=self.count,
            subnet=self.subnet,
            training_plan_arn=self.training_plan_arn,
            capacity=CapacityMode.TRAINING_PLAN if self.training_plan_arn else CapacityMode.ON_DEMAND,
            threads_per_core=self.threads_per_core,
            deep_health_checks=self.deep_health_checks,
        )


class HyperPodEksCluster(HyperPodCluster):
    """A HyperPod cluster whose nodes join an EKS cluster, in one static, reviewable resource.

    Counts, groups, image releases and patching change in place; name, VPC configuration and EKS cluster replace it. A
    new release re-images the nodes of its group.

    Args:
        eks_cluster: with authentication mode API or API_AND_CONFIG_MAP (rule HP-20), as an :class:`EksCluster` has.
        vpc: its private subnets are used when ``subnets`` is not given; the cluster waits for its routes.
        subnets: private subnets; types with EFA take exactly one.
        security_groups: one to five, each open to itself in both directions (see :class:`EfaSecurityGroup`), and one
            that the control plane carries too. The cluster's own group lets all out by addresses, which EFA's traffic
            has none of: HyperPod's EFA health check fails on it.
        instance_groups: of work. System nodes stand beside them, in a node group of EKS.
        dependency_chart: HyperPod's chart, to wait for: its agents must be there before the first node.
        lifecycle_bundle: scripts that run on a node once HyperPod has set it up. Default: none.
        node_recovery: whether HyperPod replaces faulty nodes. Default: automatic.
        node_provisioning: default continuous: groups grow as nodes come.
        karpenter: let HyperPod's Karpenter start nodes; makes the role that it assumes. Default: False.
        tiered_storage: checkpoints in the memory of nodes. Default: none.
        restricted_instance_groups: for Amazon Nova. Default: none.
        volume_kms_key: encrypts root and second volumes. Default: a key that AWS owns.
        execution_role: assumed by the nodes; the managed policy of HyperPod nodes and the permissions they need are
            added. Default: a new role.
        cluster_name: a name blocks replacement. Default: chosen by CloudFormation.

    Attributes:
        cluster_role: what HyperPod's Karpenter assumes; None without it.

    Raises:
        FindingsError: rules FMB-12, FMB-96, FMB-99, FMB-115, HP-01 to 05, 09, 13, 16, 18 and 28, NET-05, TP-01, X-02,
            X-04.

    At synth EFA-12 refuses a group of this app that is not open to itself.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        eks_cluster: eks.ICluster | eks.Cluster,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_groups: Sequence[EksInstanceGroup],
        vpc: ec2.IVpc | None = None,
        subnets: Sequence[ec2.ISubnet] = (),
        dependency_chart: eks.HelmChart | None = None,
        lifecycle_bundle: LifecycleBundle | None = None,
        node_recovery: NodeRecovery = NodeRecovery.AUTOMATIC,
        node_provisioning: NodeProvisioning = NodeProvisioning.CONTINUOUS,
        karpenter: bool = False,
        tiered_storage: TieredStorage | None = None,
        restricted_instance_groups: Sequence[RestrictedInstanceGroup] = (),
        volume_kms_key: kms.IKey | None = None,
        execution_role: iam.IRole | None = None,
        cluster_name: str | None = None,
    ) -> None:
        node_recovery = member(NodeRecovery, node_recovery, "node_recovery")
        node_provisioning = member(NodeProvisioning, node_provisioning, "node_provisioning")
        super().__init__(
            scope,
            id,
            orchestrator=Orchestrator.HYPERPOD_EKS,
            groups=[_labelled(scope, plain(group)) for group in instance_groups],
            vpc=vpc,
            subnets=subnets,
            security_groups=security_groups,
            node_provisioning=node_provisioning,
            lifecycle_bundle=lifecycle_bundle,
            volume_kms_key=volume_kms_key,
            execution_role=execution_role,
            checked={},
            beside=[plain(group.as_group()) for group in restricted_instance_groups],
        )
        check_arguments(self, ("HP-28",), {"tiered_storage": tiered_storage})
        for at, one in enumerate(restricted_instance_groups):
            told = {"capacity_gib": one.lustre_capacity_gib, "throughput": one.lustre_throughput_mbps_per_tib}
            check_arguments(self, ("FMB-115",), told, path=f"restricted_instance_groups[{at}]")
            for bucket in one.buckets:
                bucket.grant_read_write(self.execution_role)
        if karpenter:
            pools = [_Pool(name=group.name) for group in instance_groups[:1]]
            told_of = {"node_provisioning": node_provisioning, "node_recovery": node_recovery, "node_groups": pools}
            check_arguments(self, ("FMB-99",), {**told_of, "orchestrator": Orchestrator.HYPERPOD_EKS})
        self._eks = eks_cluster
        self._allow_pods()
        self.cluster_role = self._karpenter_role() if karpenter else None
        prepared: list[IDependable] = []
        if isinstance(eks_cluster, PreparedCluster):
            # The add-ons of the network and whoever is let in; not what itself needs nodes of HyperPod.
            prepared = [eks_cluster.network, eks_cluster.ready]
        self.resource = self._make(
            cluster_name=cluster_name,
            orchestrator=sagemaker.CfnCluster.OrchestratorProperty(
                eks=sagemaker.CfnCluster.ClusterOrchestratorEksConfigProperty(cluster_arn=eks_cluster.cluster_arn)
            ),
            node_recovery=node_recovery,
            node_provisioning=node_provisioning,
            mounts=(),
            needed=[vpc, dependency_chart, *prepared],
            auto_scaling=sagemaker.CfnCluster.ClusterAutoScalingConfigProperty(
                mode="Enable", auto_scaler_type="Karpenter"
            )
            if karpenter
            else None,
            cluster_role=self.cluster_role.role_arn if self.cluster_role else None,
            tiered_storage_config=sagemaker.CfnCluster.TieredStorageConfigProperty(
                mode="Enable",
                instance_memory_allocation_percentage=tiered_storage.instance_memory_allocation_percentage,
            )
            if tiered_storage
            else None,
            restricted_instance_groups=[
                self._restricted(group) for group in sorted(restricted_instance_groups, key=lambda one: one.name)
            ]
            or None,
        )
        if self.cluster_role is not None:
            self.resource.node.add_dependency(self.cluster_role)

    @staticmethod
    def from_cluster_arn(scope: Construct, id: str, cluster_arn: str) -> IHyperPodCluster:
        """A cluster that was made elsewhere. Nothing is created, nothing is checked."""
        return ImportedHyperPodCluster(scope, id, cluster_arn)

    def _restricted(
        self, group: RestrictedInstanceGroup
    ) -> sagemaker.CfnCluster.ClusterRestrictedInstanceGroupProperty:
        checks = [pascal_case(one) for one in group.deep_health_checks]
        key = self._volume_key
        volume = sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty(
            root_volume=True, volume_kms_key_id=key.key_arn if key else None
        )
        return sagemaker.CfnCluster.ClusterRestrictedInstanceGroupProperty(
            instance_group_name=group.name,
            instance_type=f"ml.{normalise(group.instance_type)}",
            instance_count=group.count,
            execution_role=self.execution_role.role_arn,
            environment_config=sagemaker.CfnCluster.EnvironmentConfigProperty(
                f_sx_lustre_config=sagemaker.CfnCluster.FSxLustreConfigProperty(
                    size_in_gib=group.lustre_capacity_gib,
                    per_unit_storage_throughput=group.lustre_throughput_mbps_per_tib,
                )
            ),
            instance_storage_configs=[Storage(ebs_volume_config=volume)] if key else None,
            override_vpc_config=self._vpc_config([group.subnet.subnet_id]) if group.subnet else None,
            on_start_deep_health_checks=checks or None,
            threads_per_core=group.threads_per_core,
            training_plan_arn=group.training_plan_arn,
        )

    def _allow_pods(self) -> None:
        stack = cdk.Stack.of(self)
        interfaces = stack.format_arn(service="ec2", resource="network-interface", resource_name="*")
        instances = f"arn:{cdk.Aws.PARTITION}:ec2:*:*:instance/*"
        self._allow(list(_POD_INTERFACES), [interfaces, instances])
        self._allow(list(_DESCRIBE_ACTIONS), ["*"])
        self._allow(["eks-auth:AssumeRoleForPodIdentity"], [self._eks.cluster_arn])
        self._allow(["ecr:GetAuthorizationToken"], ["*"])  # takes no resource
        # Images of AWS's accounts and of this one.
        self._allow(list(_PULL_ACTIONS), [f"arn:{cdk.Aws.PARTITION}:ecr:*:*:repository/*"])

    def _karpenter_role(self) -> iam.Role:
        role = iam.Role(self, "ClusterRole", assumed_by=iam.ServicePrincipal("hyperpod.sagemaker.amazonaws.com"))
        stack = cdk.Stack.of(self)
        clusters = stack.format_arn(service="sagemaker", resource="cluster", resource_name="*")
        # Of any cluster of the account: this one's ARN is known only once it is made, with this role. Source of all:
        # SageMaker AI Developer Guide, page sagemaker-hyperpod-eks-autoscaling-iam.
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["sagemaker:BatchAddClusterNodes", "sagemaker:BatchDeleteClusterNodes"],
                resources=[clusters],
                conditions={"StringEquals": {"aws:ResourceAccount": stack.account}},
            )
        )
        self._allow_volumes(role)
        return role


@dataclass(frozen=True, kw_only=True)
class _Pool:
    name: str
    provisioned_by: Provisioner = Provisioner.KARPENTER


def _labelled(scope: Construct, group: EksInstanceGroup) -> EksInstanceGroup:
    """The group with the labels by which device plugins and jobs select its nodes."""
    kinds = [instance_types(scope).get(name) for name in group.every_type]
    ours = {GROUP_LABEL: group.name}
    if kinds and all(kinds):
        for kind in kinds:
            assert kind is not None
            efa = bool(kind.max_efa_interfaces)
            ours |= node_labels(kind, group=group.name, role=NodeRole.COMPUTE, efa=efa)
    return dataclasses.replace(group, labels={**ours, **group.labels})
