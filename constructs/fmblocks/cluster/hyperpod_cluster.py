"""What HyperPod clusters of both orchestrators have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IDependable

from fmblocks._edge import check_arguments, instance_types, public_among, unresolved, zone_of
from fmblocks.capacity.settings import Capacity, CapacityMode
from fmblocks.cluster import rules
from fmblocks.cluster.hyperpod_instance_group import (
    EksInstanceGroup,
    HyperPodInstanceGroup,
    SlurmInstanceGroup,
    patching_properties,
    role_of,
)
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.settings import NodeProvisioning, NodeRecovery, NodeRole, Orchestrator
from fmblocks.compute import rules as compute_rules
from fmblocks.compute.settings import Image, PlacementMode
from fmblocks.network import rules as network_rules
from fmblocks.network.self_rules import SelfRulesValidation
from fmblocks.settings import pascal_case

Storage = sagemaker.CfnCluster.ClusterInstanceStorageConfigProperty


class IHyperPodCluster(Protocol):
    """A HyperPod cluster, made here or elsewhere."""

    @property
    def cluster_arn(self) -> str: ...
    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant: ...
    def grant_sessions(self, grantee: iam.IGrantable) -> iam.Grant: ...


# What the managed policy AmazonSageMakerClusterInstanceRolePolicy does not hold and nodes in a customer VPC need.
# Source of all: SageMaker AI Developer Guide, *IAM role for SageMaker HyperPod*. Which take a resource: Service
# Authorization Reference, Amazon EC2.
_INTERFACE_ACTIONS = (
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
)
_LOOK_ACTIONS = (
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeVpcs",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeSubnets",
    "ec2:DescribeSecurityGroups",
)
# Source: Service Authorization Reference, Amazon SageMaker: all three take a cluster.
_READ_ACTIONS = ("sagemaker:DescribeCluster", "sagemaker:DescribeClusterNode", "sagemaker:ListClusterNodes")


@jsii.implements(ec2.IConnectable)
class HyperPodCluster(cdk.Resource):
    """What :class:`HyperPodSlurmCluster` and :class:`HyperPodEksCluster` share. Make one of these.

    Attributes:
        execution_role: assumed by the nodes.
        controller_role: assumed by the controller of Slurm.
        roles: the two, or the one.
        resource: the cluster in CloudFormation.
    """

    resource: sagemaker.CfnCluster

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        orchestrator: Orchestrator,
        groups: Sequence[HyperPodInstanceGroup],
        vpc: ec2.IVpc | None,
        subnets: Sequence[ec2.ISubnet],
        security_groups: Sequence[ec2.ISecurityGroup],
        node_provisioning: NodeProvisioning,
        lifecycle_bundle: LifecycleBundle | None,
        volume_kms_key: kms.IKey | None,
        execution_role: iam.IRole | None,
        checked: Mapping[str, Any],
        own_controller_role: bool = False,
        controller_role: iam.IRole | None = None,
        beside: Sequence[HyperPodInstanceGroup] = (),
    ) -> None:
        super().__init__(scope, id)
        self._groups, self._security_groups = groups, security_groups
        self._bundle, self._volume_key = lifecycle_bundle, volume_kms_key
        # Groups that are made in another way are checked, and let in, as the others.
        every = [*groups, *beside]
        types = instance_types(self)
        of_nodes = list(subnets or (vpc.private_subnets if vpc else ()))
        self._subnet_ids = [subnet.subnet_id for subnet in of_nodes]
        own = [group.subnet for group in every if group.subnet is not None]
        # Groups with a subnet of their own stand there, the others in those of the cluster.
        stand_in = own if len(own) == len(every) else [*of_nodes, *own]
        self._check(
            orchestrator,
            every,
            {
                "public_subnets": public_among([*subnets, *own], vpc),
                "node_provisioning": node_provisioning,
                "subnet_count": len(set(self._subnet_ids)),
                "security_group_count": len({group.security_group_id for group in security_groups}),
                "node_zones": [zone_of(subnet) for subnet in stand_in],
                "volume_kms_key_given": volume_kms_key is not None,
                **checked,
            },
        )
        # No source condition: whether HyperPod sends one is not documented, and a missing key would deny.
        service = iam.ServicePrincipal("sagemaker.amazonaws.com")
        self.execution_role = execution_role or iam.Role(self, "ExecutionRole", assumed_by=service)
        self.controller_role = self.execution_role
        if own_controller_role:
            self.controller_role = controller_role or iam.Role(self, "ControllerRole", assumed_by=service)
        self.roles: list[iam.IRole] = list(
            {role.node.path: role for role in (self.execution_role, self.controller_role)}.values()
        )
        for role in self.roles:
            role.add_managed_policy(
                iam.ManagedPolicy.from_aws_managed_policy_name("AmazonSageMakerClusterInstanceRolePolicy")
            )
        self._allow_nodes([*self._subnet_ids, *(subnet.subnet_id for subnet in own)])
        if any(types[name].max_efa_interfaces for group in every for name in group.every_type if name in types):
            self.node.add_validation(SelfRulesValidation(self, security_groups))
        self._connections = ec2.Connections(security_groups=list(security_groups))

    @property
    def cluster_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_cluster_arn

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the nodes."""
        return self._connections

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` look at the cluster and its nodes."""
        return _grant_read(self.cluster_arn, grantee)

    def grant_sessions(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` log in to nodes through Session Manager, and look at the cluster to find them.

        AWS documents no resource of a node, so it is every node of HyperPod, and no instance of the account.
        """
        return _grant_sessions(self, self.cluster_arn, grantee)

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

    def _make(
        self,
        *,
        cluster_name: str | None,
        orchestrator: sagemaker.CfnCluster.OrchestratorProperty | None,
        node_recovery: NodeRecovery,
        node_provisioning: NodeProvisioning,
        mounts: Sequence[Storage],
        needed: Sequence[IDependable | None],
        **others: Any,
    ) -> sagemaker.CfnCluster:
        resource = sagemaker.CfnCluster(
            self,
            "Resource",
            cluster_name=cluster_name,
            # By name: a group that joins in the middle must not look like a change of all that follow.
            instance_groups=[self._group(group, mounts) for group in sorted(self._groups, key=lambda group: group.name)]
            or None,
            orchestrator=orchestrator,
            node_recovery=node_recovery.capitalize(),
            node_provisioning_mode="Continuous" if node_provisioning is NodeProvisioning.CONTINUOUS else None,
            vpc_config=self._vpc_config(self._subnet_ids),
            **others,
        )
        # The list behind this check comes from price data and misses types that the API takes: ml.m7i.xlarge in
        # us-west-2, for one (rule REG-01). Rule HP-03 checks against the API's own list.
        cdk.Validations.of(resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::E3644", reason="regional type lists miss types, see REG-01")
        )
        # The same for Regions: rule HP-29 warns in the project file, and the list moves.
        cdk.Validations.of(resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::F3006", reason="the list of Regions moves, see HP-29")
        )
        if any(getattr(group, "image_release_version", None) for group in self._groups):
            reason = "the registry's description in some Regions is older than the property"
            cdk.Validations.of(resource).acknowledge(
                cdk.Acknowledgment(id="CloudFormation-Validate::F3002", reason=reason)
            )
        # Nodes boot while the stack goes on: routes, rules, scripts and permissions must stand before the first one.
        for one in (*needed, *self.roles, *self._security_groups, self._bundle):
            if one is not None:
                resource.node.add_dependency(one)
        for rule in self.node.find_all():  # where a file system is of another stack, its doors are opened here
            if isinstance(rule, (ec2.CfnSecurityGroupIngress, ec2.CfnSecurityGroupEgress)):
                resource.add_resource_dependency(rule)
        return resource

    def _vpc_config(self, subnet_ids: Sequence[str]) -> sagemaker.CfnCluster.VpcConfigProperty:
        return sagemaker.CfnCluster.VpcConfigProperty(
            subnets=list(subnet_ids), security_group_ids=[group.security_group_id for group in self._security_groups]
        )

    def _check(
        self, orchestrator: Orchestrator, groups: Sequence[HyperPodInstanceGroup], values: dict[str, object]
    ) -> None:
        stack = cdk.Stack.of(self)
        types = [name for group in groups if group.subnet is None for name in group.every_type]
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
        slurm = orchestrator is Orchestrator.HYPERPOD_SLURM
        of_cluster: tuple[str, ...] = rules.CLUSTER_CONSTRUCT if slurm else rules.EKS_CLUSTER_CONSTRUCT
        of_all = (*of_cluster, *network_rules.NODES_CONSTRUCT)
        check_arguments(self, of_all, given, names={"node_groups": "instance_groups"})
        if slurm:
            typed_groups = [group for group in groups if not unresolved(group.instance_type)]
            mounted = {
                "node_groups": [dataclasses.replace(group, count=1, training_plan_arn=None) for group in typed_groups],
                "types": known,
                "efa_enabled": values["efa_enabled"],
            }
            check_arguments(self, rules.CLIENT_CONSTRUCT, mounted, names={"efa_enabled": "file_system"})
        for index, group in enumerate(groups):
            where = f"instance_groups[{index}]"
            check_arguments(
                self,
                (*rules.GROUP_CONSTRUCT, *compute_rules.HYPERPOD_CONSTRUCT),
                {
                    "name": group.name,
                    "role": role_of(group),
                    "instance_type": group.instance_type,
                    "types": known,
                    "placement_group_name": None,
                    "ebs_volume_gib": group.ebs_volume_gib,
                    "orchestrator": orchestrator,
                    "node_provisioning": values["node_provisioning"],
                    "capacity_mode": group.capacity,
                    "placement_mode": PlacementMode.AUTO,
                    "training_plan_arn": group.training_plan_arn,
                    "count": group.count,
                    "min_count": group.min_count,
                    "alternative_instance_types": group.alternative_instance_types,
                    "every_type": group.every_type,
                    "threads_per_core": group.threads_per_core,
                    "image": Image(id=group.image_id) if _known(group.image_id or "${") else None,
                    "capacity": Capacity.model_construct(mode=group.capacity),
                    "deep_health_checks": getattr(group, "deep_health_checks", ()),
                    "patching": group.patching,
                    "region": None if cdk.Token.is_unresolved(stack.region) else stack.region,
                    "account": None if cdk.Token.is_unresolved(stack.account) else stack.account,
                },
                path=where,
                names={f"{where}.capacity.mode": f"{where}.capacity", f"{where}.image.id": f"{where}.image_id"},
            )

    def _group(
        self, group: HyperPodInstanceGroup, mounts: Sequence[Storage]
    ) -> sagemaker.CfnCluster.ClusterInstanceGroupProperty:
        key, bundle = self._volume_key, self._bundle
        volumes = [
            Storage(
                ebs_volume_config=sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty(
                    volume_size_in_gb=group.ebs_volume_gib, volume_kms_key_id=key.key_arn if key else None
                )
            )
        ]
        if key is not None:  # the root volume takes a key and no size (rule HP-13)
            root = sagemaker.CfnCluster.ClusterEbsVolumeConfigProperty(root_volume=True, volume_kms_key_id=key.key_arn)
            volumes.append(Storage(ebs_volume_config=root))
        flexible = bool(group.alternative_instance_types)
        auto_patch, scheduled_update = patching_properties(group.patching)
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
            execution_role=(
                self.controller_role if role_of(group) is NodeRole.CONTROLLER else self.execution_role
            ).role_arn,
            instance_storage_configs=[*volumes, *mounts],
            training_plan_arn=group.training_plan_arn,
            capacity_requirements=sagemaker.CfnCluster.ClusterCapacityRequirementsProperty(spot={})
            if group.capacity is CapacityMode.SPOT
            else None,
            life_cycle_config=sagemaker.CfnCluster.ClusterLifeCycleConfigProperty(
                source_s3_uri=bundle.source_s3_uri, on_init_complete=bundle.entry(role_of(group))
            )
            if bundle
            else None,
            override_vpc_config=self._vpc_config([group.subnet.subnet_id]) if group.subnet else None,
            network_interface=sagemaker.CfnCluster.ClusterNetworkInterfaceProperty(interface_type=group.interface_type)
            if group.interface_type
            else None,
            auto_patch_config=auto_patch,
            scheduled_update_config=scheduled_update,
            **_of_orchestrator(group),
        )

    def _allow_nodes(self, subnet_ids: Sequence[str]) -> None:
        stack = cdk.Stack.of(self)

        def shared(resource: str, name: str) -> str:
            # A subnet that another account shares carries that account in its ARN; the id says which one is meant.
            return stack.format_arn(service="ec2", account="*", resource=resource, resource_name=name)

        interfaces = stack.format_arn(service="ec2", resource="network-interface", resource_name="*")
        placed = [shared("subnet", id) for id in dict.fromkeys(subnet_ids)] + [
            shared("security-group", group.security_group_id) for group in self._security_groups
        ]
        self._allow(["ec2:CreateNetworkInterface"], [interfaces, *placed])
        self._allow([*_INTERFACE_ACTIONS, "ec2:CreateTags"], [interfaces])
        # The node is an instance of a service account, so its ARN is not one of this account's.
        instances = f"arn:{cdk.Aws.PARTITION}:ec2:*:*:instance/*"
        self._allow(["ec2:DetachNetworkInterface"], [interfaces, instances])
        # These take no resource. Source: Service Authorization Reference, Amazon EC2.
        self._allow(list(_LOOK_ACTIONS), ["*"])
        if any(group.patching and group.patching.rollback_alarms for group in self._groups):
            # AWS's own templates give it; HyperPod's guide does not list it. Of alarms by name it takes no resource.
            self._allow(["cloudwatch:DescribeAlarms"], ["*"])
        if self._bundle is not None:
            for role in self.roles:
                self._bundle.grant_read(role)
        for role in self.roles:
            self._allow_volumes(role)

    def _allow_volumes(self, role: iam.IRole) -> None:
        """Let a role use the key of volumes.

        Source: SageMaker AI Developer Guide, *Customer managed AWS KMS key encryption for HyperPod*.
        """
        if self._volume_key is None:
            return
        service = {"kms:ViaService": f"sagemaker.{cdk.Stack.of(self).region}.{cdk.Aws.URL_SUFFIX}"}
        granted = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
        for action, more in (("kms:CreateGrant", granted), ("kms:DescribeKey", {})):
            conditions = {"StringEquals": service, **more}
            role.add_to_principal_policy(
                iam.PolicyStatement(actions=[action], resources=[self._volume_key.key_arn], conditions=conditions)
            )

    def _allow(self, actions: list[str], resources: list[str]) -> None:
        for role in self.roles:
            role.add_to_principal_policy(iam.PolicyStatement(actions=actions, resources=resources))


def _of_orchestrator(group: HyperPodInstanceGroup) -> dict[str, Any]:
    """What a group says to its scheduler."""
    if isinstance(group, SlurmInstanceGroup):
        slurm = sagemaker.CfnCluster.ClusterSlurmConfigProperty(
            node_type=group.role.capitalize(),
            partition_names=[group.name] if group.role is NodeRole.COMPUTE else None,
        )
        return {"slurm_config": slurm}
    assert isinstance(group, EksInstanceGroup)
    checks = [pascal_case(one) for one in group.deep_health_checks]
    return {
        "image_release_version": group.image_release_version,
        "on_start_deep_health_checks": checks or None,
        "kubernetes_config": sagemaker.CfnCluster.ClusterKubernetesConfigProperty(labels=dict(group.labels))
        if group.labels
        else None,
    }


class ImportedHyperPodCluster(cdk.Resource):
    """A cluster that was made elsewhere."""

    def __init__(self, scope: Construct, id: str, cluster_arn: str) -> None:
        super().__init__(scope, id, environment_from_arn=cluster_arn)
        self.cluster_arn = cluster_arn

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` look at the cluster and its nodes."""
        return _grant_read(self.cluster_arn, grantee)

    def grant_sessions(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let ``grantee`` log in to nodes through Session Manager."""
        return _grant_sessions(self, self.cluster_arn, grantee)


def _known(text: str) -> bool:
    return not unresolved(text)


def _grant_read(cluster_arn: str, grantee: iam.IGrantable) -> iam.Grant:
    return iam.Grant.add_to_principal(grantee=grantee, actions=list(_READ_ACTIONS), resource_arns=[cluster_arn])


def session_target(cluster_arn: str, *, group: str, instance: str) -> str:
    """What Session Manager calls a node: ``<cluster id>_<group>-<instance id>``."""
    return f"{cdk.Fn.select(1, cdk.Fn.split('/', cluster_arn))}_{group}-{instance}"


def _grant_sessions(scope: Construct, cluster_arn: str, grantee: iam.IGrantable) -> iam.Grant:
    stack = cdk.Stack.of(scope)
    # AWS shows "*" here: a node of HyperPod is no instance of this account, and what IAM calls it is not documented.
    # What else takes sessions is. Sources: SageMaker AI Developer Guide, *IAM users for cluster admin*; Service
    # Authorization Reference, AWS Systems Manager.
    others = [
        stack.format_arn(service=service, region="*", account="*", resource=resource, resource_name=name)
        for service, resource, name in (
            ("ec2", "instance", "i-*"),
            ("ecs", "task", "*"),
            ("ssm", "managed-instance", "mi-*"),
        )
    ]
    # A person's own sessions. Source: Systems Manager User Guide, *Sample IAM policies for Session Manager*.
    own = stack.format_arn(service="ssm", region="*", account="*", resource="session", resource_name="${aws:userid}-*")
    grant = _grant_read(cluster_arn, grantee)
    for statement in (
        iam.PolicyStatement(actions=["ssm:StartSession"], not_resources=others),
        iam.PolicyStatement(actions=["ssm:ResumeSession", "ssm:TerminateSession"], resources=[own]),
    ):
        grantee.grant_principal.add_to_principal_policy(statement)
    return grant
