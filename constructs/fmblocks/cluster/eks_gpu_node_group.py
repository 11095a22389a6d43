"""A managed node group of EKS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from constructs import Construct

from fmblocks._edge import check_arguments, fault, member, typed, unresolved
from fmblocks.capacity.block_schedule import BlockSchedule, last_use
from fmblocks.capacity.bought import CapacityBlock
from fmblocks.capacity.settings import CapacityMode, Launch
from fmblocks.catalog import InstanceType
from fmblocks.cluster.add_ons import ACCELERATOR_LABEL, EFA_LABEL, GROUP_LABEL, ROLE_LABEL, TAINTS
from fmblocks.cluster.eks_launch_template import EksLaunchTemplate
from fmblocks.cluster.prepared import PreparedCluster
from fmblocks.cluster.settings import NodeRole, Orchestrator
from fmblocks.compute.own_nodes import check_own_nodes
from fmblocks.findings import FindingsError

# Of a label's value and of an object's name at once: Kubernetes, *Labels and Selectors*, *Object Names and IDs*.
_NAME = r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"
_CAPACITY_TYPES = {CapacityMode.SPOT: "SPOT", CapacityMode.CAPACITY_BLOCK: "CAPACITY_BLOCK"}


def check_group_name(name: str) -> None:
    """Refuse what nodes could not be labelled with.

    Raises:
        FindingsError: with an example.
    """
    if not unresolved(name) and not re.fullmatch(_NAME, name):
        text = f"{name} is no name of Kubernetes: 63 small letters, digits, inner hyphens and dots at most"
        raise FindingsError([fault("group_name", text, "write one like gpu-1")])


def ami_type(kind: InstanceType) -> str:
    """The image of EKS with the drivers of a type (API CreateNodegroup, amiType; rule EKS-07)."""
    architecture = "ARM_64" if kind.architecture == "arm64" else "x86_64"
    drivers = {"nvidia": "NVIDIA", "aws": "NEURON"}.get(kind.accelerator_vendor or "", "STANDARD")
    return f"AL2023_{architecture}_{drivers}"


def node_labels(kind: InstanceType, *, group: str, role: NodeRole, efa: bool) -> dict[str, str]:
    """What nodes of a group carry, for device plugins, add-ons and jobs to select on."""
    labels = {GROUP_LABEL: group, ROLE_LABEL: role.value}
    if kind.accelerator_vendor:
        labels[ACCELERATOR_LABEL] = "neuron" if kind.accelerator_vendor == "aws" else kind.accelerator_vendor
    if efa:
        labels[EFA_LABEL] = "true"
    return labels


def eks_node_role(scope: Construct, id: str) -> iam.Role:
    """A role of nodes; pods get theirs by pod identity, the VPC CNI too."""
    return iam.Role(
        scope,
        id,
        assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"),
        managed_policies=[
            iam.ManagedPolicy.from_aws_managed_policy_name(name)
            for name in (
                "AmazonEKSWorkerNodePolicy",
                "AmazonEC2ContainerRegistryPullOnly",
                "AmazonSSMManagedInstanceCore",
            )
        ],
    )


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class EksGpuNodeGroup(cdk.Resource):
    """Nodes of one launch template in one subnet, as a managed node group of EKS.

    Image, labels and taint follow from the type: NVIDIA, NVIDIA on ARM, Neuron, or plain for a type without
    accelerators, whose nodes have no taint. Faulty nodes are repaired, save GPUs on ARM. Where the capacity was
    reserved a node goes before the next one comes (MINIMAL): there is no spare one. The nodes of an :class:`EksCluster`
    follow its version.

    With a :class:`CapacityBlock`, ``launch`` says when nodes start. scheduled: the group is made empty, EventBridge
    Scheduler fills it at the block's start and empties it 45 minutes before the end; EKS would do the latter 40 minutes
    before. now: the group is made full, and emptied before the end. No template reads the clock.

    Args:
        cluster: with an :class:`EksCluster` the group waits for the add-ons of the network and follows its version.
        launch_template: how a node is launched.
        vpc_subnet: the one private subnet; in the zone of what was bought.
        group_name: the value of the label fmblocks/node-group, by which jobs ask for these nodes.
        count: nodes.
        min_count: the group's least size. Default: 0, so that schedules and hands may empty it.
        launch: with a Capacity Block. Default: now.
        group_role: compute or system, the value of the label fmblocks/role. Default: compute.
        node_role: assumed by the nodes. Default: a new one.

    Attributes:
        block_schedule: what fills and empties the group; None without a block, or without its times.

    Raises:
        FindingsError: rules CB-07, CB-15, CR-07, FMB-24, FMB-32, FMB-43, NET-05, PG-04; group_name is no name of
            Kubernetes.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        launch_template: EksLaunchTemplate,
        vpc_subnet: ec2.ISubnet,
        group_name: str,
        count: int,
        min_count: int = 0,
        launch: Launch = Launch.NOW,
        group_role: NodeRole = NodeRole.COMPUTE,
        node_role: iam.IRole | None = None,
    ) -> None:
        super().__init__(scope, id)
        launch = member(Launch, launch, "launch")
        group_role = member(NodeRole, group_role, "group_role")
        told = {"orchestrator": Orchestrator.EKS, "role": group_role}
        check_arguments(self, ("FMB-43",), told, names={"role": "group_role"})
        check_group_name(group_name)
        self.template = launch_template
        self.group_name, self.count = group_name, count
        self.instance_type = launch_template.instance_type
        self.efa_interfaces = sum(one.interface_type.has_efa for one in launch_template.network_interfaces)
        block = check_own_nodes(
            self,
            template=launch_template,
            subnet=vpc_subnet,
            count=count,
            min_count=min_count,
            launch=launch,
            orchestrator=Orchestrator.EKS,
        )
        kind, mode = launch_template.kind, launch_template.capacity.capacity_mode
        own_image = launch_template.image_id is not None
        self.node_role = node_role or eks_node_role(self, "NodeRole")
        scheduled = block is not None and launch is Launch.SCHEDULED
        taint = TAINTS.get(kind.accelerator_vendor or "")
        self.resource = eks.CfnNodegroup(
            self,
            "Resource",
            cluster_name=cluster.cluster_name,
            node_role=self.node_role.role_arn,
            subnets=[vpc_subnet.subnet_id],
            # EKS refuses both beside an image of your own (rule EKS-04).
            ami_type=None if own_image else ami_type(kind),
            version=cluster.kubernetes_version if isinstance(cluster, PreparedCluster) and not own_image else None,
            capacity_type=_CAPACITY_TYPES.get(mode, "ON_DEMAND"),
            launch_template=eks.CfnNodegroup.LaunchTemplateSpecificationProperty(
                id=launch_template.launch_template_id, version=launch_template.latest_version
            ),
            scaling_config=eks.CfnNodegroup.ScalingConfigProperty(
                min_size=0 if scheduled else min_count,
                max_size=max(count, 1),  # the least that EKS takes
                desired_size=0 if scheduled else count,
            ),
            labels=node_labels(kind, group=group_name, role=group_role, efa=launch_template.has_efa),
            taints=[eks.CfnNodegroup.TaintProperty(key=taint, value="present", effect="NO_SCHEDULE")]
            if taint
            else None,
            # EKS runs DCGM's host engine on x86 only, and repairs GPU nodes that cannot ask one.
            node_repair_config=eks.CfnNodegroup.NodeRepairConfigProperty(
                enabled=not (kind.architecture == "arm64" and kind.accelerator_vendor == "nvidia")
            ),
            update_config=eks.CfnNodegroup.UpdateConfigProperty(
                max_unavailable=1,
                update_strategy="MINIMAL" if mode in (CapacityMode.ODCR, CapacityMode.CAPACITY_BLOCK) else None,
            ),
        )
        # Nodes that start before their way out stands pull no image; before the VPC CNI they never get ready.
        self.resource.node.add_dependency(launch_template, self.node_role, vpc_subnet.internet_connectivity_established)
        if isinstance(cluster, PreparedCluster):
            self.resource.node.add_dependency(cluster.network)
        self.block_schedule = self._schedule(cluster, block, count, min_count, scheduled=scheduled) if block else None

    def _schedule(
        self, cluster: eks.ICluster | eks.Cluster, block: CapacityBlock, count: int, min_count: int, *, scheduled: bool
    ) -> BlockSchedule | None:
        calls: dict[str, tuple[datetime, Mapping[str, object]]] = {}

        def size(least: int, wanted: int) -> dict[str, object]:
            return {
                "ClusterName": cluster.cluster_name,
                "NodegroupName": self.node_group_name,
                "ScalingConfig": {"MinSize": least, "MaxSize": max(count, 1), "DesiredSize": wanted},
            }

        if scheduled and block.start is not None:
            calls["Start"] = (block.start, size(min_count, count))
        if block.end is not None:
            calls["End"] = (last_use(block.end, self.template.instance_type), size(0, 0))
        if not calls:
            return None
        return BlockSchedule(
            self,
            "Block",
            service="eks",
            action="updateNodegroupConfig",
            # Source: Service Authorization Reference, Amazon EKS.
            permission="eks:UpdateNodegroupConfig",
            resource_arn=self.resource.attr_arn,
            calls=calls,
        )

    @property
    def node_group_name(self) -> str:
        """The name, as EKS's API takes it."""
        return self.resource.attr_nodegroup_name

    @property
    def node_group_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_arn

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the nodes."""
        return self.template.connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the nodes. Pods have their own, by pod identity."""
        return self.node_role.grant_principal
