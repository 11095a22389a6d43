"""What only the account knows about a cluster: versions that EKS offers, and roles that services made once."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from fmblocks.capacity.settings import CapacityMode
from fmblocks.cluster.add_ons import ADD_ONS, HYPERPOD_ADD_ONS, hyperpod_pinned, pinned
from fmblocks.cluster.settings import Cluster, NodeGroup, NodeRole, Orchestrator
from fmblocks.preflight import Account, Outcome, Question, Result

# Whose first use makes a role, which a narrow deploy role may not (rule FMB-93). Source: IAM User Guide, *AWS services
# that work with IAM*; EKS, EC2 and Auto Scaling User Guides, *Service-linked roles*.
_EKS = {"AWSServiceRoleForAmazonEKS": "eks.amazonaws.com"}
_NODEGROUP = {"AWSServiceRoleForAmazonEKSNodegroup": "eks-nodegroup.amazonaws.com"}
_AUTO_SCALING = {"AWSServiceRoleForAutoScaling": "autoscaling.amazonaws.com"}
_PCS = {"AWSServiceRoleForPCS": "pcs.amazonaws.com"}
_SPOT = {"AWSServiceRoleForEC2Spot": "spot.amazonaws.com"}


def questions(
    key: str, cluster: Cluster, primary: str, account: Account, further_add_ons: Sequence[str] = ()
) -> Iterator[Question]:
    """The questions of the cluster room.

    Args:
        key: of the cluster in the project file.
        cluster: the cluster.
        primary: the zone of groups that name none.
        account: clients.
        further_add_ons: of HyperPod, that something else than the cluster asks for.
    """
    if cluster.orchestrator.kubernetes:
        yield Question(
            "FMB-85",
            f"{key}.kubernetes.version",
            f"Kubernetes {cluster.kubernetes_version} and the versions of its add-ons are offered",
            lambda: _add_ons(key, cluster, account, further_add_ons),
        )
    if cluster.orchestrator.hyperpod:
        passes = "HyperPod's quotas of the types are large enough"
        yield Question("HP-24", f"{key}.node_groups", passes, lambda: _quotas(key, cluster, account))
        for index, group in enumerate(cluster.node_groups):
            if group.capacity.training_plan_arn is not None:
                where = f"{key}.node_groups[{index}].capacity.training_plan_arn"
                passes = f"the plan of {group.name} serves HyperPod, its type, its zone and its count"
                ask = functools.partial(_plan, group, group.availability_zone or primary, where, account)
                yield Question("TP-06", where, passes, ask)
    if roles := _roles(cluster):
        passes = "the service-linked roles are there"
        yield Question("FMB-93", f"{key}.orchestrator", passes, lambda: _missing(key, roles, account))


def _add_ons(key: str, cluster: Cluster, account: Account, further: Sequence[str]) -> Iterator[Result]:
    version = cluster.kubernetes_version
    offered: dict[str, set[str]] = {}
    pages = account.eks.get_paginator("describe_addon_versions").paginate(kubernetesVersion=version)
    for page in pages:
        for one in page["addons"]:
            listed = offered.setdefault(one["addonName"], set())
            listed |= {found["addonVersion"] for found in one["addonVersions"]}
    if not offered:
        text = f"EKS offers no add-on for Kubernetes {version} here"
        yield Result("FMB-85", Outcome.FAIL, f"{key}.kubernetes.version", text, "take another version")
        return
    kubernetes = cluster.kubernetes
    named = {one.name: one.version for one in (kubernetes.add_ons if kubernetes else ())}
    ours = {name: pinned(version).get(name) for name in ADD_ONS}
    brought = [HYPERPOD_ADD_ONS[add_on] for add_on in kubernetes.hyperpod_add_ons] if kubernetes else []
    ours |= {name: hyperpod_pinned()[name] for name in (*brought, *further)}
    for name, wanted in {**ours, **named}.items():
        if wanted is not None and wanted not in offered.get(name, set()):
            newest = ", ".join(sorted(offered.get(name, set()), reverse=True)[:3]) or "none at all"
            text = f"{name} {wanted} is not offered for Kubernetes {version} here, but {newest}"
            hint = f"write kubernetes: {{add_ons: [{{name: {name}, version: …}}]}}"
            yield Result("FMB-85", Outcome.FAIL, f"{key}.kubernetes.add_ons", text, hint)


def _quotas(key: str, cluster: Cluster, account: Account) -> Iterator[Result]:
    needed: Counter[str] = Counter()
    planned: Counter[str] = Counter()
    for group in cluster.node_groups:
        if group.role is NodeRole.SYSTEM:
            continue  # instances of the account itself
        counted = planned if group.capacity.mode is CapacityMode.TRAINING_PLAN else needed
        counted[f"ml.{group.instance_type} for cluster usage"] += group.count
    pages = account.service_quotas.get_paginator("list_service_quotas").paginate(ServiceCode="sagemaker")
    given = {one["QuotaName"]: one["Value"] for page in pages for one in page["Quotas"]}
    for name, count in sorted(needed.items()):
        if name not in given:
            text = f"{name} is not listed among the quotas of SageMaker here"
            yield Result("HP-24", Outcome.UNKNOWN, f"{key}.node_groups", text, "look in the console")
        elif given[name] < count:
            text = f"{name}: have {given[name]:g}, need {count}"
            hint = "ask for more in Service Quotas: it is not EC2's quota"
            yield Result("HP-24", Outcome.FAIL, f"{key}.node_groups", text, hint)
    for name, count in sorted(planned.items()):
        if given.get(name, 0) < count:
            text = f"{name}: have {given.get(name, 0):g}, and the plan's nodes are {count}: AWS's texts disagree"
            yield Result("TP-08", Outcome.WARN, f"{key}.node_groups", text, "ask for as many in Service Quotas")


def _plan(group: NodeGroup, zone: str, where: str, account: Account) -> Iterator[Result]:
    arn = group.capacity.training_plan_arn or ""
    found = account.sagemaker.describe_training_plan(TrainingPlanName=arn.rsplit("/", 1)[1])
    if "hyperpod-cluster" not in found.get("TargetResources", []):
        text = f"the plan is for {', '.join(found.get('TargetResources', [])) or 'nothing that is told'}"
        yield Result("TP-06", Outcome.FAIL, where, text, "what it is for is fixed when it is bought")
    if found["Status"] not in ("Active", "Scheduled"):
        text = f"the plan is {found['Status']}"
        yield Result("TP-06", Outcome.FAIL, where, text, "nodes start while it is Active")
    parts = found.get("ReservedCapacitySummaries", [])
    types = {one["InstanceType"] for one in parts}
    if types and types != {f"ml.{group.instance_type}"}:
        text = f"the plan holds {', '.join(sorted(types))}, and the group asks for ml.{group.instance_type}"
        yield Result("TP-02", Outcome.FAIL, where, text, "take the plan of the type")
    count = found.get("TotalInstanceCount")
    if count is not None and count < group.count:
        text = f"the plan holds {count} instances, and the group asks for {group.count}"
        yield Result("TP-02", Outcome.FAIL, where, text, "lower the count")
    keys: tuple[Literal["AvailabilityZone", "AvailabilityZoneId"], ...] = ("AvailabilityZone", "AvailabilityZoneId")
    zones = {one[key] for one in parts for key in keys if key in one}
    if zones and zone not in zones:
        text = f"the plan stands in {', '.join(sorted(zones))}, and the group in {zone}"
        yield Result("TP-07", Outcome.FAIL, where, text, "write availability_zone of the plan for the group")


def _roles(cluster: Cluster) -> dict[str, str]:
    spot = any(group.capacity.mode is CapacityMode.SPOT for group in cluster.node_groups)
    if cluster.orchestrator is Orchestrator.HYPERPOD_EKS:
        return {**_EKS, **_NODEGROUP, **_AUTO_SCALING}
    if cluster.orchestrator is Orchestrator.EKS:
        return {**_EKS, **_NODEGROUP, **_AUTO_SCALING, **(_SPOT if spot else {})}
    if cluster.orchestrator is Orchestrator.EC2:
        return {**_AUTO_SCALING, **(_SPOT if spot else {})}
    if cluster.orchestrator is Orchestrator.PCS:
        return {**_PCS, **(_SPOT if spot else {})}
    return {}


def _missing(key: str, roles: dict[str, str], account: Account) -> Iterator[Result]:
    for name, service in roles.items():
        try:
            account.iam.get_role(RoleName=name)
        except account.iam.exceptions.NoSuchEntityException:
            text = f"{name} is not there yet: a deploy role that may not create it fails at the first use"
            hint = f"aws iam create-service-linked-role --aws-service-name {service}"
            yield Result("FMB-93", Outcome.WARN, f"{key}.orchestrator", text, hint)
