"""Which work goes first on a HyperPod cluster."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from fmblocks._edge import check_arguments, typed
from fmblocks.cluster import rules  # noqa: F401  registers HP-01
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster
from fmblocks.governance import rules as governance_rules  # noqa: F401  registers FMB-106
from fmblocks.governance.settings import Priority


class SchedulerPolicy(cdk.Resource):
    """Classes of work and what becomes of idle capacity, on a HyperPod cluster with EKS. A cluster has one.

    Jobs name a class as ``<name>-priority``. Source: API CreateClusterSchedulerConfig of SageMaker.

    In place: all but name and cluster.

    Args:
        cluster: with EKS; its task governance has to be there (``HyperPodAddOns.governed``).
        policy_name: 1 to 63 letters, digits and inner hyphens, of this cluster only.
        priorities: by name of the class, 0 to 100; more goes first. Default: none.
        fair_share: whether teams get idle capacity by their weights. Default: True.

    Raises:
        FindingsError: rules FMB-106, HP-01.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: IHyperPodCluster,
        policy_name: str,
        priorities: Mapping[str, int] | None = None,
        fair_share: bool = True,
    ) -> None:
        super().__init__(scope, id)
        classes = [Priority.model_construct(name=name, weight=weight) for name, weight in (priorities or {}).items()]
        told = {"priorities": classes, "task_governance": True, "name": policy_name}
        check_arguments(self, ("FMB-106", "HP-01"), told, names={"name": "policy_name"})
        self.resource = sagemaker.CfnClusterSchedulerConfig(
            self,
            "Resource",
            name=policy_name,
            cluster_arn=cluster.cluster_arn,
            scheduler_config=sagemaker.CfnClusterSchedulerConfig.SchedulerConfigProperty(
                priority_classes=[
                    sagemaker.CfnClusterSchedulerConfig.PriorityClassProperty(name=one.name, weight=one.weight)
                    for one in sorted(classes, key=lambda one: one.name)
                ]
                or None,
                fair_share="Enabled" if fair_share else "Disabled",
            ),
        )
        # Where the type exists moves: rule FMB-107 warns in the project file.
        cdk.Validations.of(self.resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::F3006", reason="the list of Regions moves, see FMB-107")
        )
