"""A training cluster on AWS PCS: settings in, constructs out."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks.capacity.settings import Launch
from fmblocks.cluster.pcs_cluster import PcsCluster
from fmblocks.cluster.pcs_compute_node_group import PcsComputeNodeGroup
from fmblocks.cluster.pcs_launch_template import PcsLaunchTemplate
from fmblocks.cluster.pcs_queue import PcsQueue
from fmblocks.cluster.rules import smallest_controller
from fmblocks.cluster.settings import NodeGroup, NodeRole, Slurm, Training
from fmblocks.project import Project
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem
from fmblocks_stacks.contract import Subscriber
from fmblocks_stacks.fleet import GroupParts


class PcsTraining(Construct):
    """The controller, its node groups, and a queue for each group that computes.

    Attributes:
        cluster: the controller.
        groups: the node groups, by name.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        training: Training,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
        subnet: ec2.ISubnet,
        file_system: ILustreFileSystem | None,
        home: IOpenZfsFileSystem | None,
    ) -> None:
        super().__init__(scope, id)
        slurm = training.slurm or Slurm()
        self.cluster = PcsCluster(
            self,
            "Cluster",
            vpc_subnet=subnet,
            security_groups=[security_group],
            size=slurm.size or smallest_controller(training.node_groups),
            scheduler_version=training.slurm_version,
            accounting=slurm.accounting,
            accounting_purge=cdk.Duration.days(slurm.accounting_purge_days) if slurm.accounting_purge_days else None,
            rest_api=slurm.rest_api,
            open_metrics=slurm.open_metrics,
            scale_down_idle_time=cdk.Duration.seconds(slurm.scale_down_idle_seconds)
            if slurm.scale_down_idle_seconds
            else None,
            slurm_custom_settings=slurm.custom_settings,
        )
        self.groups: dict[str, PcsComputeNodeGroup] = {}
        queued = sorted(group.name for group in training.node_groups if group.role is NodeRole.COMPUTE)
        for group in sorted(training.node_groups, key=lambda group: group.name):
            nodes = PcsGroup(
                self,
                f"Group-{group.name}",
                project=project,
                group=group,
                foundation=foundation,
                security_group=security_group,
                cluster=self.cluster,
                subnet=subnet,
                file_system=file_system,
                home=home,
            ).nodes
            self.groups[group.name] = nodes
            if group.name in queued:
                PcsQueue(
                    self,
                    f"Queue-{group.name}",
                    cluster=self.cluster,
                    queue_name=group.name,
                    compute_node_groups=[nodes],
                    default=group.name == queued[0],  # groups have no order
                )
        cdk.CfnOutput(self, "ClusterId", value=self.cluster.cluster_id).override_logical_id("ClusterId")


class PcsGroup(GroupParts):
    """A node group of PCS: its launch template and its nodes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        group: NodeGroup,
        foundation: Subscriber,
        security_group: ec2.ISecurityGroup,
        cluster: PcsCluster,
        subnet: ec2.ISubnet,
        file_system: ILustreFileSystem | None,
        home: IOpenZfsFileSystem | None,
    ) -> None:
        super().__init__(scope, id, project=project, group=group, foundation=foundation, security_group=security_group)
        template = PcsLaunchTemplate(
            self,
            "Template",
            vpc_subnet=subnet,
            **self._template(),
            **self._mounts(file_system, home),
            machine_image=self._image(),
            root_device_name=(group.image.root_device_name if group.image else None) or "/dev/sda1",
        )
        self.nodes = PcsComputeNodeGroup(
            self,
            "Nodes",
            cluster=cluster,
            launch_template=template,
            group_name=group.name,
            count=group.count,
            min_count=group.min_count,
            launch=group.capacity.launch or Launch.NOW,
        )
        self._publish_launch_profile()
