"""What only the account knows about a cluster: versions that EKS offers, and roles that services made once."""

from __future__ import annotations

from collections.abc import Iterator

from fmblocks.capacity.settings import CapacityMode
from fmblocks.cluster.add_ons import ADD_ONS, pinned
from fmblocks.cluster.settings import Orchestrator, Training
from fmblocks.preflight import Account, Outcome, Question, Result

# Whose first use makes a role, which a narrow deploy role may not (rule FMB-93). Source: IAM User Guide, *AWS services
# that work with IAM*; EKS, EC2 and Auto Scaling User Guides, *Service-linked roles*.
_EKS = {"AWSServiceRoleForAmazonEKS": "eks.amazonaws.com"}
_NODEGROUP = {"AWSServiceRoleForAmazonEKSNodegroup": "eks-nodegroup.amazonaws.com"}
_AUTO_SCALING = {"AWSServiceRoleForAutoScaling": "autoscaling.amazonaws.com"}
_PCS = {"AWSServiceRoleForPCS": "pcs.amazonaws.com"}
_SPOT = {"AWSServiceRoleForEC2Spot": "spot.amazonaws.com"}


def questions(training: Training, account: Account) -> Iterator[Question]:
    """The questions of the cluster room.

    Args:
        training: the cluster.
        account: clients.
    """
    if training.orchestrator is Orchestrator.EKS:
        yield Question(
            "FMB-85",
            "training.kubernetes.version",
            f"Kubernetes {training.kubernetes_version} and the versions of its add-ons are offered",
            lambda: _add_ons(training, account),
        )
    if roles := _roles(training):
        passes = "the service-linked roles are there"
        yield Question("FMB-93", "training.orchestrator", passes, lambda: _missing(roles, account))


def _add_ons(training: Training, account: Account) -> Iterator[Result]:
    version = training.kubernetes_version
    offered: dict[str, set[str]] = {}
    pages = account.eks.get_paginator("describe_addon_versions").paginate(kubernetesVersion=version)
    for page in pages:
        for one in page["addons"]:
            listed = offered.setdefault(one["addonName"], set())
            listed |= {found["addonVersion"] for found in one["addonVersions"]}
    if not offered:
        text = f"EKS offers no add-on for Kubernetes {version} here"
        yield Result("FMB-85", Outcome.FAIL, "training.kubernetes.version", text, "take another version")
        return
    named = {one.name: one.version for one in (training.kubernetes.add_ons if training.kubernetes else ())}
    for name, wanted in {**{name: pinned(version).get(name) for name in ADD_ONS}, **named}.items():
        if wanted is not None and wanted not in offered.get(name, set()):
            newest = ", ".join(sorted(offered.get(name, set()), reverse=True)[:3]) or "none at all"
            text = f"{name} {wanted} is not offered for Kubernetes {version} here, but {newest}"
            hint = f"write kubernetes: {{add_ons: [{{name: {name}, version: …}}]}}"
            yield Result("FMB-85", Outcome.FAIL, "training.kubernetes.add_ons", text, hint)


def _roles(training: Training) -> dict[str, str]:
    spot = any(group.capacity.mode is CapacityMode.SPOT for group in training.node_groups)
    if training.orchestrator is Orchestrator.EKS:
        return {**_EKS, **_NODEGROUP, **_AUTO_SCALING, **(_SPOT if spot else {})}
    if training.orchestrator is Orchestrator.EC2:
        return {**_AUTO_SCALING, **(_SPOT if spot else {})}
    if training.orchestrator is Orchestrator.PCS:
        return {**_PCS, **(_SPOT if spot else {})}
    return {}


def _missing(roles: dict[str, str], account: Account) -> Iterator[Result]:
    for name, service in roles.items():
        try:
            account.iam.get_role(RoleName=name)
        except account.iam.exceptions.NoSuchEntityException:
            text = f"{name} is not there yet: a deploy role that may not create it fails at the first use"
            hint = f"aws iam create-service-linked-role --aws-service-name {service}"
            yield Result("FMB-93", Outcome.WARN, "training.orchestrator", text, hint)
