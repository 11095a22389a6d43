"""A queue of AWS PCS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from fmblocks._edge import fault, typed
from fmblocks.cluster.pcs_cluster import IPcsCluster, check_pcs_name
from fmblocks.cluster.pcs_compute_node_group import PcsComputeNodeGroup
from fmblocks.findings import FindingsError


class PcsQueue(cdk.Resource):
    """A partition of Slurm over node groups.

    In place: groups, settings. Replaces: name.

    Args:
        cluster: it belongs to.
        queue_name: 3 to 25 letters, digits and hyphens, beginning with a letter; what ``sbatch -p`` takes.
        compute_node_groups: whose nodes run its jobs.
        default: jobs that name no partition go here. Default: false.
        slurm_custom_settings: MaxTime, PriorityTier… Default: none.

    Raises:
        FindingsError: no group; queue_name is none that PCS takes.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: IPcsCluster,
        queue_name: str,
        compute_node_groups: Sequence[PcsComputeNodeGroup],
        default: bool = False,
        slurm_custom_settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        if not compute_node_groups:
            raise FindingsError([fault("compute_node_groups", "is empty", "name the groups that run its jobs")])
        check_pcs_name("queue_name", queue_name, 25)
        custom = {**({"Default": "YES"} if default else {}), **(slurm_custom_settings or {})}
        self.queue_name = queue_name
        self.resource = pcs.CfnQueue(
            self,
            "Resource",
            cluster_id=cluster.cluster_id,
            name=queue_name,
            compute_node_group_configurations=[
                pcs.CfnQueue.ComputeNodeGroupConfigurationProperty(compute_node_group_id=group.compute_node_group_id)
                for group in compute_node_groups
            ],
            slurm_configuration=pcs.CfnQueue.SlurmConfigurationProperty(
                slurm_custom_settings=[
                    pcs.CfnQueue.SlurmCustomSettingProperty(parameter_name=name, parameter_value=value)
                    for name, value in sorted(custom.items())
                ]
            )
            if custom
            else None,
        )

    @property
    def queue_id(self) -> str:
        """The id, ``pcs_…``."""
        return self.resource.attr_id

    @property
    def queue_arn(self) -> str:
        """The ARN."""
        return self.resource.attr_arn
