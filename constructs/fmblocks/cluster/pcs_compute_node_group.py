"""A group of nodes of AWS PCS."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
import jsii
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from fmblocks._edge import member, typed
from fmblocks.capacity.settings import CapacityMode, Launch
from fmblocks.cluster.pcs_cluster import IPcsCluster, check_pcs_name
from fmblocks.cluster.pcs_launch_template import PcsLaunchTemplate
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute.own_nodes import check_own_nodes

_PURCHASE_OPTIONS = {CapacityMode.SPOT: "SPOT", CapacityMode.CAPACITY_BLOCK: "CAPACITY_BLOCK"}


@jsii.implements(ec2.IConnectable, iam.IGrantable)
class PcsComputeNodeGroup(cdk.Resource):
    """Nodes of one launch template. A group in no queue is a login group.

    All nodes are there always, or with ``min_count=0`` all come with jobs and go when idle. A Capacity Block that has
    not begun is used with ``launch=scheduled``: nodes come with jobs then, and none is asked for before. Nothing
    empties the group before the block ends: PCS lets only those change its size who may start instances and pass roles,
    which no schedule should. EC2 terminates the nodes 30 minutes before the end: give jobs a time limit.

    In place: count, launch template, settings. Replaces: name, instance type. The name is fixed, so that a new type is
    a new group.

    Args:
        cluster: it belongs to.
        launch_template: how a node is launched.
        group_name: 3 to 25 letters, digits and hyphens, beginning with a letter; nodes are called ``<name>-1``….
        count: nodes.
        min_count: 0 or all. Default: all.
        launch: with a Capacity Block. Default: now.
        slurm_custom_settings: Features, Weight, RealMemory… Default: none; GPUs are known to Slurm by the type.

    Raises:
        FindingsError: rules CB-07, CB-15, CR-07, FMB-24, NET-05, PCS-06, PG-04; group_name is none that PCS takes.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: IPcsCluster,
        launch_template: PcsLaunchTemplate,
        group_name: str,
        count: int,
        min_count: int | None = None,
        launch: Launch = Launch.NOW,
        slurm_custom_settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        launch = member(Launch, launch, "launch")
        check_pcs_name("group_name", group_name, 25)
        self.template = launch_template
        block = check_own_nodes(
            self,
            template=launch_template,
            subnet=launch_template.vpc_subnet,
            count=count,
            min_count=count if min_count is None else min_count,
            launch=launch,
            orchestrator=Orchestrator.PCS,
        )
        later = block is not None and launch is Launch.SCHEDULED
        least = 0 if later else count if min_count is None else min_count
        mode = launch_template.capacity.capacity_mode
        self.resource = pcs.CfnComputeNodeGroup(
            self,
            "Resource",
            cluster_id=cluster.cluster_id,
            name=group_name,
            instance_configs=[
                pcs.CfnComputeNodeGroup.InstanceConfigProperty(instance_type=launch_template.instance_type)
            ],
            custom_launch_template=pcs.CfnComputeNodeGroup.CustomLaunchTemplateProperty(
                template_id=launch_template.launch_template_id, version=launch_template.latest_version
            ),
            iam_instance_profile_arn=launch_template.instance_profile.instance_profile_arn,
            subnet_ids=[launch_template.vpc_subnet.subnet_id],
            scaling_configuration=pcs.CfnComputeNodeGroup.ScalingConfigurationProperty(
                min_instance_count=least, max_instance_count=count
            ),
            purchase_option=_PURCHASE_OPTIONS.get(mode, "ONDEMAND"),
            slurm_configuration=pcs.CfnComputeNodeGroup.SlurmConfigurationProperty(
                slurm_custom_settings=[
                    pcs.CfnComputeNodeGroup.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in sorted(slurm_custom_settings.items())
                ]
            )
            if slurm_custom_settings
            else None,
        )
        # Nodes that start before their way out stands mount nothing, and register nowhere without their permissions.
        self.resource.node.add_dependency(
            launch_template,
            *launch_template.security_groups,
            launch_template.vpc_subnet.internet_connectivity_established,
        )

    @property
    def compute_node_group_id(self) -> str:
        """The id, ``pcs_…``; instances carry it in the tag aws:pcs:compute-node-group-id."""
        return self.resource.attr_id

    @property
    def compute_node_group_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_arn

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the nodes."""
        return self.template.connections

    @property
    def grant_principal(self) -> iam.IPrincipal:
        """The role of the nodes."""
        return self.template.role.grant_principal
