"""What training clusters on HyperPod have in common: settings in, arguments of constructs out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from fmblocks.cluster.hyperpod_access import HyperPodAccess
from fmblocks.cluster.hyperpod_cluster import HyperPodCluster, session_target
from fmblocks.cluster.hyperpod_instance_group import NodePatching
from fmblocks.cluster.settings import NodeGroup, Patching
from fmblocks.observability.settings import Alerts
from fmblocks_stacks.contract import Subscriber


def arguments(scope: Construct, group: NodeGroup, subnets: Mapping[str, ec2.ISubnet]) -> dict[str, Any]:
    """What groups of both orchestrators are made with.

    Args:
        scope: of what is imported.
        group: the settings.
        subnets: private subnets by zone, of groups that name theirs.
    """
    return {
        "name": group.name,
        "instance_type": group.instance_type,
        "count": group.count,
        "ebs_volume_gib": group.ebs_volume_gib,
        "capacity": group.capacity.mode,
        "training_plan_arn": group.capacity.training_plan_arn,
        "min_count": group.min_count,
        "alternative_instance_types": group.alternative_instance_types,
        "threads_per_core": group.threads_per_core,
        "image_id": group.image.id if group.image else None,
        "subnet": subnets[group.availability_zone] if group.availability_zone else None,
        "interface_type": group.efa.interface_type,
        "patching": _patching(scope, group.name, group.patching) if group.patching else None,
    }


def _patching(scope: Construct, group: str, patching: Patching) -> NodePatching:
    return NodePatching(
        strategy=patching.strategy,
        schedule=patching.schedule,
        batch_count=patching.batch_count,
        batch_percentage=patching.batch_percentage,
        wait=cdk.Duration.seconds(patching.wait_seconds) if patching.wait_seconds is not None else None,
        rollback_alarms=[
            cloudwatch.Alarm.from_alarm_name(scope, f"Alarm-{group}-{name}", name) for name in patching.rollback_alarms
        ],
    )


def private_subnets(scope: Construct, foundation: Subscriber, groups: tuple[NodeGroup, ...]) -> dict[str, ec2.ISubnet]:
    """The subnets that groups name by zone."""
    found: dict[str, ec2.ISubnet] = {}
    for zone in sorted({group.availability_zone for group in groups if group.availability_zone}):
        subnet = ec2.Subnet.from_subnet_id(scope, f"Subnet-{zone}", foundation.value(f"subnet/{zone}"))
        cdk.Annotations.of(subnet).acknowledge_warning(
            "@aws-cdk/aws-ec2:noSubnetRouteTableId", "nothing here looks at the route table"
        )
        found[zone] = subnet
    return found


def watch(scope: Construct, cluster: HyperPodCluster, foundation: Subscriber, alerts: Alerts | None) -> None:
    """Tell the topic of alerts of unhealthy nodes and of errors."""
    if (topic := foundation.alert_topic(scope, alerts)) is None:
        return
    target = targets.SnsTopic(topic)
    for rule in (cluster.on_node_health("NodeHealth", target=target), cluster.on_error("Errors", target=target)):
        cdk.Annotations.of(rule).acknowledge_warning(
            "@aws-cdk/aws-events:ruleUnresolvedEnvironment", "the foundation stands in the same Region"
        )


def let_in(scope: Construct, cluster: HyperPodCluster, eks_cluster: eks.Cluster | None = None) -> None:
    """Policies of people, to be attached to their roles, and what the cluster is called."""
    access = HyperPodAccess(scope, "Access", cluster=cluster, eks_cluster=eks_cluster)
    for name, policy in (("UsersPolicyArn", access.users), ("AdminsPolicyArn", access.admins)):
        cdk.CfnOutput(scope, name, value=policy.managed_policy_arn).override_logical_id(name)
    cdk.CfnOutput(scope, "ClusterArn", value=cluster.cluster_arn).override_logical_id("ClusterArn")
    cdk.CfnOutput(
        scope,
        "SessionTarget",
        value=f"sagemaker-cluster:{session_target(cluster.cluster_arn, group='GROUP', instance='INSTANCE')}",
        description="aws ssm start-session --target, with the group and the id of a node",
    ).override_logical_id("SessionTarget")
