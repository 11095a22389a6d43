"""A SageMaker HyperPod cluster with Slurm."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from fmblocks._edge import (
    check_arguments,
    instance_types,
    member,
    public_among,
    raise_kinds,
    typed,
    unresolved,
    zone_of,
)
from fmblocks.capacity.bought import ICapacity
from fmblocks.capacity.settings import Capacity, CapacityMode
from fmblocks.catalog import normalise
from fmblocks.cluster import rules
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.settings import NodeProvisioning, NodeRecovery, NodeRole, Orchestrator
from fmblocks.compute import rules as compute_rules
from fmblocks.compute.settings import Image, PlacementMode
from fmblocks.network import rules as network_rules
from fmblocks.network.self_rules import SelfRulesValidation
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmInstanceGroup:
    """Nodes of one type and one role.

    Attributes:
        name: 1 to 63 letters, digits and single inner hyphens; a compute group's partition has the same name.
        role: controller, login or compute.
        instance_type: EC2 or ``ml.`` name, or an ``ec2.InstanceType``.
        count: nodes.
        ebs_volume_gib: second volume in GiB, mounted at /opt/sagemaker. Default: 500.
        capacity: on_demand, spot or training_plan, or a description of what was bought (:class:`TrainingPlan`);
            reservations and Capacity Blocks of EC2 are refused (rule X-02). Default: on_demand.
        training_plan_arn: with training_plan.
        min_count: nodes with which the group is in service; with continuous provisioning. Default: all.
        alternative_instance_types: other types that HyperPod may take; with continuous provisioning. Default: none.
        threads_per_core: 1 or 2. Default: chosen by HyperPod.
        image_id: ``ami-…``, unencrypted and of the same account. Default: HyperPod's own image.
    """

    name: str
    role: NodeRole
    instance_type: str | ec2.InstanceType
    count: int
    ebs_volume_gib: int = 500
    capacity: CapacityMode | ICapacity = CapacityMode.ON_DEMAND
    training_plan_arn: str | None = None
    min_count: int | None = None
    alternative_instance_types: Sequence[str | ec2.InstanceType] = ()
    threads_per_core: int | None = None
    image_id: str | None = None

    @property
    def every_type(self) -> tuple[str, ...]:
        """The types that its nodes can have."""
        return (str(self.instance_type), *map(str, self.alternative_instance_types))

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        raise_kinds({name: (getattr(self, name), hints[name]) for name in hints}, f"SlurmInstanceGroup {self.name}")


class IHyperPodCluster(Protocol):
    """A HyperPod cluster, made here or elsewhere."""

    @property
    def cluster_arn(self) -> str: ...
    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant: ...


# What the managed policy AmazonSageMakerClusterInstanceRolePolicy does not hold and nodes in a customer VPC need.
# Source of all: SageMaker AI Developer Guide, *IAM role for SageMaker HyperPod*, Slurm. Which take a resource: Service
# Authorization Reference, Amazon EC2.
_INTERFACE_ACTIONS = (
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
)
_DESCRIBE_ACTIONS = (
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeVpcs",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeSubnets",
    "ec2:DescribeSecurityGroups",
)
# Source: Service Authorization Reference, Amazon SageMaker: all three take a cluster.
_READ_ACTIONS = ("sagemaker:DescribeCluster", "sagemaker:DescribeClusterNode", "sagemaker:ListClusterNodes")


@jsii.implements(ec2.IConnectable)
class HyperPodSlurmCluster(cdk.Resource):
    """A HyperPod cluster that HyperPod sets Slurm up on, in one static, reviewable resource.

    Counts, groups and scripts change in place; name and VPC configuration replace the cluster. HyperPod runs new
    scripts on new nodes only.

    Args:
        vpc: its private subnets are used when ``subnets`` is not given; the cluster waits for its routes.
        subnets: private subnets; types with EFA take exactly one.
        security_groups: one to five, each open to itself in both directions (see :class:`EfaSecurityGroup`): HyperPod's
            EFA health check fails on any that is not.
        instance_groups: exactly one controller of one node, at least one compute group.
        file_system: a Lustre file system that every node mounts, in the zone of the nodes; where its group is a
            :class:`LustreSecurityGroup`, the nodes' groups are let in. Default: none.
        mount_path: where. Default: /fsx.
        home_file_system: an OpenZFS file system with home directories, which every node mounts; where its group is an
            :class:`OpenZfsSecurityGroup`, the nodes' groups are let in. Default: each node has its own.
        home_mount_path: where. Default: /home.
        lifecycle_bundle: scripts that run on a node once HyperPod has set it up. Default: none.
        node_recovery: whether HyperPod replaces faulty nodes. Default: automatic.
        node_provisioning: default standard; AWS's texts disagree whether Slurm takes continuous.
        volume_kms_key: encrypts the second volumes; HyperPod takes one with continuous provisioning only (SageMaker AI
            Developer Guide, *Customer managed AWS KMS key encryption for HyperPod*). Default: a key that AWS owns.
        execution_role: assumed by the nodes; the managed policy of HyperPod nodes and the permissions they need are
            added; one that is imported as immutable must have them already. Default: a new role.
        cluster_name: a name blocks replacement. Default: chosen by CloudFormation.

    Raises:
        FindingsError: rules FMB-09, FMB-12, FMB-19, FSX-15, FSX-26, HP-01 to 05, 09, 11, 13, 14, 16 and 18,
            NET-05, TP-01, X-02, X-04, X-05.

    At synth EFA-12 refuses a group of this app that is not open to itself.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_groups: Sequence[SlurmInstanceGroup],
        vpc: ec2.IVpc | None = None,
        subnets: Sequence[ec2.ISubnet] = (),
        file_system: ILustreFileSystem | None = None,
        mount_path: str = "/fsx",
        home_file_system: IOpenZfsFileSystem | None = None,
        home_mount_path: str = "/home",
        lifecycle_bundle: LifecycleBundle | None = None,
        node_recovery: NodeRecovery = NodeRecovery.AUTOMATIC,
        node_provisioning: NodeProvisioning = NodeProvisioning.STANDARD,
        volume_kms_key: kms.IKey | None = None,
        execution_role: iam.IRole | None = None,
        cluster_name: str | None = None,
    ) -> None:
        super().__init__(scope, id)
        node_recovery = member(NodeRecovery, node_recovery, "node_recovery")
        node_provisioning = member(NodeProvisioning, node_provisioning, "node_provisioning")
        groups = [_plain(group) for group in instance_groups]
        types = instance_types(self)
        of_nodes = list(subnets or (vpc.private_subnets if vpc else ()))
        subnet_ids = [subnet.subnet_id for subnet in of_nodes]
        self._check(
            groups,
            {
                "public_subnets": public_among(subnets, vpc),
                "node_provisioning": node_provisioning,
                "subnet_count": len(set(subnet_ids)),
                "security_group_count": len({group.security_group_id for group in security_groups}),
                "mount_path": mount_path,
                "efa_enabled": bool(file_system and file_system.efa_enabled),
                "lustre_zone": file_system.availability_zone if file_system else None,
                "node_zones": [zone_of(subnet) for subnet in of_nodes] if file_system else [],
                "volume_kms_key_given": volume_kms_key is not None,
            },
        )
        self.execution_role = execution_role or iam.Role(
            self,
            "ExecutionRole",
            # No source condition: whether HyperPod sends one is not documented, and a missing key would deny.
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
        )
        self.execution_role.add_managed_policy(
            iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSageMakerClusterInstanceRolePolicy")
        )
        self._allow_nodes(subnet_ids, security_groups, file_system, lifecycle_bundle, volume_kms_key)

        if any(types[name].max_efa_interfaces for group in groups for name in group.every_type if name in types):
            self.node.add_validation(SelfRulesValidation(self, security_groups))
        self._connections = ec2.Connections(security_groups=list(security_groups))
        for mounted, below in ((file_system, None), (home_file_system, "Home")):
            if mounted is None:
                continue
            doors = Construct(self, below) if below else self
            for group in security_groups:
                mounted.add_client(f"Nodes{group.node.addr[-8:]}", group, scope=doors)

        standard = node_provisioning is NodeProvisioning.STANDARD
        mounts = (
            [
                sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty(
                    fsx_lustre_config=sagemaker.CfnCluster.ClusterFsxLustreConfigProperty(
                        dns_name=file_system.dns_name, mount_name=file_system.mount_name, mount_path=mount_path
                    )
                )
            ]
            if file_system
            else []
        )
        if home_file_system is not None:
            mounts.append(
                sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty(
                    fsx_open_zfs_config=sagemaker.CfnCluster.ClusterFsxOpenZfsConfigProperty(
                        dns_name=home_file_system.dns_name, mount_path=home_mount_path
                    )
                )
            )
        self.resource = sagemaker.CfnCluster(
            self,
            "Resource",
            cluster_name=cluster_name,
            instance_groups=[
                self._group(group, mounts, lifecycle_bundle, volume_kms_key)
                # By name: a group that joins in the middle must not look like a change of all that follow.
                for group in sorted(groups, key=lambda group: group.name)
            ],
            # With continuous provisioning the block is left out: there it has no strategy, and must not be empty.
            orchestrator=sagemaker.CfnCluster.OrchestratorProperty(
                slurm=sagemaker.CfnCluster.ClusterOrchestratorSlurmConfigProperty(slurm_config_strategy="Managed")
            )
            if standard
            else None,
            node_recovery=node_recovery.capitalize(),
            node_provisioning_mode=None if standard else "Continuous",
            vpc_config=sagemaker.CfnCluster.VpcConfigProperty(
                subnets=subnet_ids, security_group_ids=[group.security_group_id for group in security_groups]
            ),
        )
        # The list behind this check comes from price data and misses types that the API takes: ml.m7i.xlarge in
        # us-west-2, for one (rule REG-01). Rule HP-03 checks against the API's own list.
        cdk.Validations.of(self.resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::E3644", reason="regional type lists miss types, see REG-01")
        )
        # The same for Regions: rule HP-29 warns in the project file, and the list moves.
        cdk.Validations.of(self.resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::F3006", reason="the list of Regions moves, see HP-29")
        )
        # Nodes boot while the stack goes on: routes, rules, scripts and permissions must stand before the first one.
        for needed in (vpc, self.execution_role, *security_groups, lifecycle_bundle):
            if needed is not None:
                self.resource.node.add_dependency(needed)
        for rule in self.node.find_all():  # where a file system is of another stack, its doors are opened here
            if isinstance(rule, (ec2.CfnSecurityGroupIngress, ec2.CfnSecurityGroupEgress)):
                self.resource.add_resource_dependency(rule)

    @property
    def cluster_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_cluster_arn

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the nodes."""
        return self._connections

    @staticmethod
    def from_cluster_arn(scope: Construct, id: str, cluster_arn: str) -> IHyperPodCluster:
        """A cluster that was made elsewhere. Nothing is created, nothing is checked."""
        return _Imported(scope, id, cluster_arn)

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` look at the cluster and its nodes."""
        return _grant_read(self.cluster_arn, grantee)

    def on_node_health(self, id: str, *, target: events.IRuleTarget) -> events.Rule:
        """Tell ``target`` when HyperPod finds a node unhealthy, or healthy again.

        The event names the node, why, and what HyperPod does or recommends. Source: SageMaker AI Developer Guide,
        *SageMaker HyperPod cluster events reference*.
        """
        return self._rule(id, target, events.EventPattern(detail_type=["SageMaker HyperPod Cluster Node Health Event"]))

    def on_error(self, id: str, *, target: events.IRuleTarget) -> events.Rule:
        """Tell ``target`` of errors of provisioning, scaling and patching. Source: as for ``on_node_health``."""
        detail = {"EventDetails": {"EventLevel": ["Error"]}}
        pattern = events.EventPattern(detail_type=["SageMaker HyperPod Cluster Event"], detail=detail)
        return self._rule(id, target, pattern)

    def _rule(self, id: str, target: events.IRuleTarget, pattern: events.EventPattern) -> events.Rule:
        rule = events.Rule(self, id, event_pattern=pattern, targets=[target])
        rule.add_event_pattern(source=["aws.sagemaker"], resources=[self.cluster_arn])
        return rule

    def _check(self, groups: Sequence[SlurmInstanceGroup], values: dict[str, object]) -> None:
        stack = cdk.Stack.of(self)
        types = [name for group in groups for name in group.every_type]
        known = instance_types(self)
        # One count that is not known yet must not hide two controllers: what these rules read is filled in.
        named = [
            dataclasses.replace(
                group,
                count=1 if unresolved(group.count) else group.count,
                instance_type="",
                training_plan_arn=None,
            )
            for group in groups
        ]
        given = {**values, "node_groups": named, "instance_types": [*filter(_known, types)], "types": known}
        of_cluster = (*rules.CLUSTER_CONSTRUCT, *network_rules.NODES_CONSTRUCT)
        check_arguments(self, of_cluster, given, names={"node_groups": "instance_groups"})
        typed_groups = [group for group in groups if not unresolved(group.instance_type)]
        mounted = {
            "node_groups": [dataclasses.replace(group, count=1, training_plan_arn=None) for group in typed_groups],
            "types": known,
            "efa_enabled": values["efa_enabled"],
        }
        check_arguments(self, rules.CLIENT_CONSTRUCT, mounted, names={"efa_enabled": "file_system"})
        for index, group in enumerate(groups):
            check_arguments(
                self,
                (*rules.GROUP_CONSTRUCT, *compute_rules.HYPERPOD_CONSTRUCT),
                {
                    "name": group.name,
                    "role": group.role,
                    "instance_type": group.instance_type,
                    "types": known,
                    "placement_group_name": None,
                    "ebs_volume_gib": group.ebs_volume_gib,
                    "orchestrator": Orchestrator.HYPERPOD_SLURM,
                    "node_provisioning": values["node_provisioning"],
                    "capacity_mode": group.capacity,
                    "placement_mode": PlacementMode.AUTO,
                    "training_plan_arn": group.training_plan_arn,
                    "count": group.count,
                    "min_count": group.min_count,
                    "alternative_instance_types": group.alternative_instance_types,
                    "threads_per_core": group.threads_per_core,
                    "image": Image(id=group.image_id) if _known(group.image_id or "${") else None,
                    "capacity": Capacity.model_construct(mode=group.capacity),
                    "region": None if cdk.Token.is_unresolved(stack.region) else stack.region,
                    "account": None if cdk.Token.is_unresolved(stack.account) else stack.account,
                },
                path=f"instance_groups[{index}]",
                names={
                    f"instance_groups[{index}].capacity.mode": f"instance_groups[{index}].capacity",
                    f"instance_groups[{index}].image.id": f"instance_groups[{index}].image_id",
                },
            )

    def _group(
        self,
        group: SlurmInstanceGroup,
        mounts: Sequence[sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty],
        bundle: LifecycleBundle | None,
        volume_key: kms.IKey | None,
    ) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        volume = sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty(
            ebs_volume_config=sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty(
                volume_size_in_gb=group.ebs_volume_gib, volume_kms_key_id=volume_key.key_arn if volume_key else None
            )
        )
        flexible = bool(group.alternative_instance_types)
        return sagemaker.CfnCluster.ClusterInstanceGroupProperty(
            instance_group_name=group.name,
            instance_type=None if flexible else f"ml.{group.instance_type}",
            instance_requirements=sagemaker.CfnCluster.InstanceRequirementsProperty(
                instance_types=[f"ml.{name}" for name in (group.instance_type, *group.alternative_instance_types)]
            )
            if flexible
            else None,
            instance_count=group.count,
            min_instance_count=group.min_count,
            threads_per_core=group.threads_per_core,
            image_id=group.image_id,
            execution_role=self.execution_role.role_arn,
            instance_storage_configs=[volume, *mounts],
            slurm_config=sagemaker.CfnCluster.ClusterSlurmConfigProperty(
                node_type=group.role.capitalize(),
                partition_names=[group.name] if group.role is NodeRole.COMPUTE else None,
            ),
            training_plan_arn=group.training_plan_arn,
            capacity_requirements=sagemaker.CfnCluster.ClusterCapacityRequirementsProperty(spot={})
            if group.capacity is CapacityMode.SPOT
            else None,
            life_cycle_config=sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
                source_s3_uri=bundle.source_s3_uri, on_init_complete=bundle.on_init_complete
            )
            if bundle
            else None,
        )

    def _allow_nodes(
        self,
        subnet_ids: Sequence[str],
        groups: Sequence[ec2.ISecurityGroup],
        file_system: ILustreFileSystem | None,
        bundle: LifecycleBundle | None,
        volume_key: kms.IKey | None,
    ) -> None:
        stack = cdk.Stack.of(self)

        def shared(resource: str, name: str) -> str:
            # A subnet that another account shares carries that account in its ARN; the id says which one is meant.
            return stack.format_arn(service="ec2", account="*", resource=resource, resource_name=name)

        interfaces = stack.format_arn(service="ec2", resource="network-interface", resource_name="*")
        placed = [shared("subnet", id) for id in subnet_ids] + [
            shared("security-group", group.security_group_id) for group in groups
        ]
        self._allow(["ec2:CreateNetworkInterface"], [interfaces, *placed])
        self._allow([*_INTERFACE_ACTIONS, "ec2:CreateTags"], [interfaces])
        # The node is an instance of a service account, so its ARN is not one of this account's.
        instances = f"arn:{cdk.Aws.PARTITION}:ec2:*:*:instance/*"
        self._allow(["ec2:DetachNetworkInterface"], [interfaces, instances])
        # These take no resource. Source: Service Authorization Reference, Amazon EC2.
        self._allow(list(_DESCRIBE_ACTIONS), ["*"])
        if file_system is not None:
            # Without it the EFA check of the mount falls back to TCP in silence (rule HP-15). It takes no resource.
            self._allow(["fsx:DescribeFileSystems"], ["*"])
        if bundle is not None:
            bundle.grant_read(self.execution_role)
        if volume_key is not None:
            # SageMaker AI Developer Guide, *Customer managed AWS KMS key encryption for HyperPod*.
            service = {"StringEquals": {"kms:ViaService": f"sagemaker.{stack.region}.{cdk.Aws.URL_SUFFIX}"}}
            grants = {**service, "Bool": {"kms:GrantIsForAWSResource": "true"}}
            self._allow(["kms:CreateGrant"], [volume_key.key_arn], grants)
            self._allow(["kms:DescribeKey"], [volume_key.key_arn], service)

    def _allow(
        self, actions: list[str], resources: list[str], conditions: dict[str, dict[str, str]] | None = None
    ) -> None:
        self.execution_role.add_to_principal_policy(
            iam.PolicyStatement(actions=actions, resources=resources, conditions=conditions)
        )


class _Imported(cdk.Resource):
    def __init__(self, scope: Construct, id: str, cluster_arn: str) -> None:
        super().__init__(scope, id, environment_from_arn=cluster_arn)
        self.cluster_arn = cluster_arn

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        return _grant_read(self.cluster_arn, grantee)


def _plain(group: SlurmInstanceGroup) -> SlurmInstanceGroup:
    """The group with the catalogue's name of its type and members of our enums, whatever was passed."""
    mode = group.capacity if isinstance(group.capacity, str) else CapacityMode.ON_DEMAND
    bought = None if isinstance(group.capacity, str) else group.capacity
    return dataclasses.replace(
        group,
        role=member(NodeRole, group.role, "role"),
        capacity=bought.capacity_mode if bought else member(CapacityMode, mode, "capacity"),
        training_plan_arn=(bought and bought.training_plan_arn) or group.training_plan_arn,
        instance_type=_type_name(group.instance_type),
        alternative_instance_types=tuple(map(_type_name, group.alternative_instance_types)),
    )


def _type_name(kind: str | ec2.InstanceType) -> str:
    text = kind.to_string() if isinstance(kind, ec2.InstanceType) else kind
    return text if cdk.Token.is_unresolved(text) else normalise(text)  # small letters would break a token


def _known(text: str) -> bool:
    return not unresolved(text)


def _grant_read(cluster_arn: str, grantee: iam.IGrantable) -> iam.Grant:
    return iam.Grant.add_to_principal(grantee=grantee, actions=list(_READ_ACTIONS), resource_arns=[cluster_arn])
