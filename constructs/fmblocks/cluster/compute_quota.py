"""What a team has of a HyperPod cluster."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aws_cdk as cdk
import jsii
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, member, raise_kinds, typed, unresolved
from fmblocks._tags import RegistryTags
from fmblocks.catalog import normalise
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster
from fmblocks.governance import rules as governance_rules  # noqa: F401  registers FMB-103
from fmblocks.governance.settings import Preemption, Quota, Sharing, Team
from fmblocks.settings import pascal_case


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaOfType:
    """What a team has of one instance type: one of the four amounts, from which HyperPod works out the others.

    Attributes:
        instance_type: EC2 or ``ml.`` name.
        count: whole nodes.
        accelerators: accelerators.
        vcpus: vCPUs; no accelerators then.
        memory_gib: GiB of memory; no accelerators then.
    """

    instance_type: str
    count: int | None = None
    accelerators: int | None = None
    vcpus: int | None = None
    memory_gib: int | None = None

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        raise_kinds({name: (getattr(self, name), hints[name]) for name in hints}, f"QuotaOfType {self.instance_type}")


@jsii.implements(cdk.ITaggableV2)
class ComputeQuota(cdk.Resource):
    """A team's share of a HyperPod cluster with EKS: the namespace hyperpod-ns-<team> with a queue in it.

    HyperPod makes both (SageMaker AI Developer Guide, *SageMaker HyperPod task governance*). aws-cdk-lib has no class
    for the resource yet, so this is the type as CloudFormation's registry describes it.

    In place: quotas, sharing, weight. Replaces: team and cluster.

    Args:
        cluster: with EKS; its task governance has to be there (``HyperPodAddOns.governed``).
        team_name: names the namespace.
        quotas: what the team has, by instance type.
        sharing: what becomes of idle shares. Default: lend_and_borrow.
        borrow_limit_percentage: of idle capacity, per cent of the team's own. Default: HyperPod's, 50.
        preemption: whether the team's urgent work ends its own less urgent. Default: lower_priority.
        fair_share_weight: 0 to 100. Default: HyperPod's, 0.

    Attributes:
        namespace: that jobs of the team run in.
        queue_name: that they name.

    Raises:
        FindingsError: rule FMB-103.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: IHyperPodCluster,
        team_name: str,
        quotas: Sequence[QuotaOfType],
        sharing: Sharing = Sharing.LEND_AND_BORROW,
        borrow_limit_percentage: int | None = None,
        preemption: Preemption = Preemption.LOWER_PRIORITY,
        fair_share_weight: int | None = None,
    ) -> None:
        super().__init__(scope, id)
        sharing = member(Sharing, sharing, "sharing")
        preemption = member(Preemption, preemption, "preemption")
        named = [Quota.model_construct(**_fields(one)) for one in quotas]
        team = Team.model_construct(
            name=team_name,
            quotas=tuple(named),
            sharing=sharing,
            borrow_limit_percentage=borrow_limit_percentage,
            preemption=preemption,
            fair_share_weight=fair_share_weight,
        )
        check_arguments(
            self,
            ("FMB-103",),
            {
                "teams": [team],
                "slurm": False,
                "task_governance": True,
                # What the cluster has is not told here: any type may be there.
                "nodes": dict.fromkeys((one.instance_type for one in named), 0),
                "types": instance_types(self),
            },
            names={"teams[0].name": "team_name"}
            | {f"teams[0].{key}": key for key in ("quotas", "borrow_limit_percentage", "fair_share_weight")},
        )
        # A generic resource takes part in tags by hand.
        self.tags = cdk.TagManager(cdk.TagType.STANDARD, "AWS::SageMaker::ComputeQuota", None)
        self.team_name = team_name
        self.namespace = f"hyperpod-ns-{team_name}"
        self.queue_name = f"{self.namespace}-localqueue"
        shared: dict[str, Any] = {"Strategy": pascal_case(sharing)}
        if sharing is Sharing.LEND_AND_BORROW and borrow_limit_percentage is not None:
            shared["BorrowLimit"] = borrow_limit_percentage
        target: dict[str, Any] = {"TeamName": team_name}
        if fair_share_weight is not None:
            target["FairShareWeight"] = fair_share_weight
        self.resource = cdk.CfnResource(
            self,
            "Resource",
            type="AWS::SageMaker::ComputeQuota",
            properties={
                "Name": team_name,
                "ClusterArn": cluster.cluster_arn,
                "ComputeQuotaTarget": target,
                "ComputeQuotaConfig": {
                    "ComputeQuotaResources": [
                        _resource(one) for one in sorted(quotas, key=lambda one: normalise(one.instance_type))
                    ],
                    "ResourceSharingConfig": shared,
                    "PreemptTeamTasks": pascal_case(preemption),
                },
                "Tags": cdk.Lazy.any(RegistryTags(self.tags)),
            },
        )
        # Where the type exists moves: rule FMB-107 warns in the project file.
        cdk.Validations.of(self.resource).acknowledge(
            cdk.Acknowledgment(id="CloudFormation-Validate::F3006", reason="the list of Regions moves, see FMB-107")
        )

    @property
    def cdk_tag_manager(self) -> cdk.TagManager:
        """What aspects put tags into."""
        return self.tags

    @property
    def compute_quota_arn(self) -> str:
        """The ARN."""
        return self.resource.get_att("ComputeQuotaArn").to_string()


def _fields(one: QuotaOfType) -> dict[str, Any]:
    found: dict[str, Any] = {
        "count": one.count,
        "accelerators": one.accelerators,
        "vcpus": one.vcpus,
        "memory_gib": one.memory_gib,
    }
    # What is not known yet is a number below any: the rules look at whether there is one.
    found = {key: 1 if unresolved(value) else value for key, value in found.items()}
    return {**found, "instance_type": normalise(one.instance_type)}


def _resource(one: QuotaOfType) -> dict[str, Any]:
    amounts = {
        "Count": one.count,
        "Accelerators": one.accelerators,
        "VCpu": one.vcpus,
        "MemoryInGiB": one.memory_gib,
    }
    given = {key: value for key, value in amounts.items() if value is not None}
    return {"InstanceType": f"ml.{normalise(one.instance_type)}", **given}
