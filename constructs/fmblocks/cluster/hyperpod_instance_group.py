"""Instance groups of HyperPod: what both orchestrators have in common."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sagemaker as sagemaker

from fmblocks._edge import fault, member, raise_kinds
from fmblocks.capacity.bought import ICapacity
from fmblocks.capacity.settings import CapacityMode
from fmblocks.catalog import normalise
from fmblocks.cluster.settings import DeepHealthCheck, NodeRole, PatchingStrategy
from fmblocks.compute.settings import InterfaceType
from fmblocks.findings import FindingsError
from fmblocks.settings import pascal_case


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePatching:
    """When HyperPod brings a newer image onto running nodes, and when it stops doing so.

    Give ``strategy`` or ``schedule``. Source: API CreateCluster of SageMaker, AutoPatchConfig, ScheduledUpdateConfig.

    Attributes:
        strategy: when_idle: each node once it has no jobs; when_all_idle: all, once none has. Patch releases only.
        schedule: ``cron(minute hour day month weekday year)``, for any release.
        batch_count: nodes at a time. Default: HyperPod's own.
        batch_percentage: nodes at a time, in per cent of the group; not with ``batch_count``.
        wait: between two batches, up to an hour. Default: none.
        rollback_alarms: up to 10; one that rings takes the nodes back to the old image. Default: none.
    """

    strategy: PatchingStrategy | None = None
    schedule: str | None = None
    batch_count: int | None = None
    batch_percentage: int | None = None
    wait: cdk.Duration | None = None
    rollback_alarms: Sequence[cloudwatch.IAlarm] = ()

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        raise_kinds({name: (getattr(self, name), hints[name]) for name in hints}, "NodePatching")

    @property
    def wait_seconds(self) -> int | None:
        """The wait as the rules read it."""
        return int(self.wait.to_seconds()) if self.wait else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperPodInstanceGroup:
    """Nodes of one type: what the groups of both orchestrators have.

    Attributes:
        name: 1 to 63 letters, digits and single inner hyphens.
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
        subnet: the one private subnet of this group. Default: those of the cluster.
        interface_type: efa, or efa-only to save addresses. Default: chosen by HyperPod.
        patching: when running nodes get a newer image. Default: by hand.
    """

    name: str
    instance_type: str | ec2.InstanceType
    count: int
    ebs_volume_gib: int = 500
    capacity: CapacityMode | ICapacity = CapacityMode.ON_DEMAND
    training_plan_arn: str | None = None
    min_count: int | None = None
    alternative_instance_types: Sequence[str | ec2.InstanceType] = ()
    threads_per_core: int | None = None
    image_id: str | None = None
    subnet: ec2.ISubnet | None = None
    interface_type: InterfaceType | None = None
    patching: NodePatching | None = None

    @property
    def every_type(self) -> tuple[str, ...]:
        """The types that its nodes can have."""
        return (str(self.instance_type), *map(str, self.alternative_instance_types))

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        values = {name: (getattr(self, name), hints[name]) for name in hints}
        raise_kinds(values, f"{type(self).__name__} {self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmInstanceGroup(HyperPodInstanceGroup):
    """Nodes of one type and one role, as :class:`HyperPodInstanceGroup` has them.

    Attributes:
        role: controller, login or compute; a compute group's partition has the group's name.
    """

    role: NodeRole


@dataclass(frozen=True, slots=True, kw_only=True)
class EksInstanceGroup(HyperPodInstanceGroup):
    """Nodes of one type for Kubernetes, as :class:`HyperPodInstanceGroup` has them.

    Attributes:
        image_release_version: ``1.2.3``, the release of HyperPod's image; a change re-images the running nodes.
            Default: the newest at creation, and that of the oldest group later.
        deep_health_checks: tried on nodes before work is placed there. Default: none.
        labels: of the nodes. Default: those by which our device plugins and jobs select.
    """

    image_release_version: str | None = None
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)


Group = typing.TypeVar("Group", bound=HyperPodInstanceGroup)


def plain(group: Group) -> Group:
    """The group with the catalogue's name of its type and members of our enums, whatever was passed."""
    mode = group.capacity if isinstance(group.capacity, str) else CapacityMode.ON_DEMAND
    bought = None if isinstance(group.capacity, str) else group.capacity
    changed = dataclasses.replace(
        group,
        capacity=bought.capacity_mode if bought else member(CapacityMode, mode, "capacity"),
        training_plan_arn=(bought and bought.training_plan_arn) or group.training_plan_arn,
        instance_type=_type_name(group.instance_type),
        alternative_instance_types=tuple(map(_type_name, group.alternative_instance_types)),
        interface_type=member(InterfaceType, group.interface_type, "interface_type") if group.interface_type else None,
    )
    if isinstance(changed, SlurmInstanceGroup):
        return dataclasses.replace(changed, role=member(NodeRole, changed.role, "role"))
    if isinstance(changed, EksInstanceGroup):
        checks = tuple(member(DeepHealthCheck, one, "deep_health_checks") for one in changed.deep_health_checks)
        return dataclasses.replace(changed, deep_health_checks=checks)
    text = "is neither a SlurmInstanceGroup nor an EksInstanceGroup"
    raise FindingsError([fault("instance_groups", text, "take the one of the orchestrator")])


def role_of(group: HyperPodInstanceGroup) -> NodeRole:
    """What the nodes of a group are for; those of Kubernetes work."""
    return group.role if isinstance(group, SlurmInstanceGroup) else NodeRole.COMPUTE


def _type_name(kind: str | ec2.InstanceType) -> str:
    text = kind.to_string() if isinstance(kind, ec2.InstanceType) else kind
    return text if cdk.Token.is_unresolved(text) else normalise(text)  # small letters would break a token


def patching_properties(
    patching: NodePatching | None,
) -> tuple[
    sagemaker.CfnCluster.AutoPatchConfigProperty | None, sagemaker.CfnCluster.ScheduledUpdateConfigProperty | None
]:
    """What CloudFormation takes: patches by state of the nodes, or updates by the clock."""
    if patching is None:
        return None, None
    batch = patching.batch_count if patching.batch_count is not None else patching.batch_percentage
    policy = (
        sagemaker.CfnCluster.RollingUpdatePolicyProperty(
            maximum_batch_size=sagemaker.CfnCluster.CapacitySizeConfigProperty(
                type="INSTANCE_COUNT" if patching.batch_count is not None else "CAPACITY_PERCENTAGE", value=batch
            )
        )
        if batch is not None
        else None
    )
    alarms = [sagemaker.CfnCluster.AlarmDetailsProperty(alarm_name=one.alarm_name) for one in patching.rollback_alarms]
    given = policy is not None or alarms or patching.wait is not None
    how = (
        sagemaker.CfnCluster.DeploymentConfigProperty(
            auto_rollback_configuration=alarms or None,
            rolling_update_policy=policy,
            wait_interval_in_seconds=patching.wait_seconds,
        )
        if given
        else None
    )
    if patching.schedule is not None:
        return None, sagemaker.CfnCluster.ScheduledUpdateConfigProperty(
            schedule_expression=patching.schedule, deployment_config=how
        )
    strategy = pascal_case(str(patching.strategy))
    return sagemaker.CfnCluster.AutoPatchConfigProperty(patching_strategy=strategy, deployment_config=how), None
