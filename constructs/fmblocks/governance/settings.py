"""What a project file says about the project itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from fmblocks.catalog import normalise
from fmblocks.settings import AnyCase, Email, Name, Number, Settings, Text, WholeNumber

_ACCOUNT = r"^\d{12}$"


def _account(value: str) -> str:
    if not (len(value) == 12 and value.isascii() and value.isdecimal()):
        raise PydanticCustomError("account", "takes exactly 12 digits")
    return value


Account = Annotated[Text, AfterValidator(_account), WithJsonSchema({"type": "string", "pattern": _ACCOUNT})]


class Suppression(Settings):
    """A rule that a project does without, and why."""

    rule: Text
    reason: Annotated[Text, Field(description="why the rule does not matter here; it is printed with the plan")]


class Budget(Settings):
    """What the project may cost, and who hears of it."""

    FOREIGN: ClassVar = {
        "amount": "the key is monthly_usd",
        "limit": "the key is monthly_usd",
        "monthly_limit_usd": "the key is monthly_usd",
        "currency": "budgets are in USD: leave the key out",
        "emails": "the key is email",
        "thresholds": "it is told at 80 and 100 per cent and by forecast: leave the key out",
    }

    monthly_usd: Annotated[Number, Field(description="US dollars a month")]
    email: Annotated[tuple[Email, ...], Field(description="up to ten addresses")]


class Sharing(StrEnum):
    """What becomes of a team's idle share (API CreateComputeQuota, ResourceSharingConfig)."""

    LEND = "lend"
    DONT_LEND = "dont_lend"
    LEND_AND_BORROW = "lend_and_borrow"


class Preemption(StrEnum):
    """Whether a team's urgent work ends its own less urgent (API CreateComputeQuota, PreemptTeamTasks)."""

    LOWER_PRIORITY = "lower_priority"
    NEVER = "never"


class Quota(Settings):
    """What a team has of one instance type: one of the four amounts, from which HyperPod works out the others."""

    FOREIGN: ClassVar = {
        "gpus": "the key is accelerators",
        "memory_in_gib": "the key is memory_gib",
        "vcpu": "the key is vcpus",
    }

    instance_type: Annotated[Text, AfterValidator(normalise), Field(description="of a node group")]
    count: Annotated[WholeNumber | None, Field(description="whole nodes")] = None
    accelerators: Annotated[WholeNumber | None, Field(description="accelerators")] = None
    vcpus: Annotated[WholeNumber | None, Field(description="vCPUs; no accelerators then")] = None
    memory_gib: Annotated[WholeNumber | None, Field(description="GiB of memory; no accelerators then")] = None


class Team(Settings):
    """People who share a part of the cluster: a quota and a namespace on Kubernetes, an account on Slurm."""

    FOREIGN: ClassVar = {
        "weight": "the key is fair_share_weight",
        "members": "write access: {users: [{name, account: <team>, …}]}",
        "users": "write access: {users: [{name, account: <team>, …}]}",
        "strategy": "the key is sharing",
        "borrow_limit": "the key is borrow_limit_percentage",
        "preempt_team_tasks": "the key is preemption",
    }

    name: Annotated[Name, Field(description="names the namespace hyperpod-ns-<name>, or the account of Slurm")]
    quotas: Annotated[tuple[Quota, ...], Field(description="what the team has, on Kubernetes")] = ()
    sharing: Annotated[Sharing, AnyCase, Field(description="of what is idle, on Kubernetes")] = Sharing.LEND_AND_BORROW
    borrow_limit_percentage: Annotated[
        WholeNumber | None, Field(description="of idle capacity, per cent of the team's own; default: HyperPod's, 50")
    ] = None
    preemption: Annotated[Preemption, AnyCase, Field(description="of the team's own work")] = Preemption.LOWER_PRIORITY
    fair_share_weight: Annotated[
        WholeNumber | None, Field(description="0 to 100: who gets idle capacity first; a share on Slurm")
    ] = None


class Priority(Settings):
    """A class of work on Kubernetes, which jobs name as ``<name>-priority``."""

    name: Name
    weight: Annotated[WholeNumber, Field(description="0 to 100; more goes first")]


class User(Settings):
    """Somebody who works on the cluster."""

    FOREIGN: ClassVar = {
        "team": "the key is account",
        "arn": "the key is principal_arn",
        "username": "the key is name",
        "groups": "a user has one account: write account",
        "password": "people log in through Session Manager: leave the key out",
        "ssh_key": "people log in through Session Manager: leave the key out",
    }

    name: Annotated[Text, Field(description="of the Linux account on Slurm nodes; of the access entry on Kubernetes")]
    uid: Annotated[WholeNumber | None, Field(description="on Slurm: the same on every node, for ever")] = None
    account: Annotated[Text | None, Field(description="a team")] = None
    principal_arn: Annotated[Text | None, Field(description="of an IAM role or user")] = None


class Access(Settings):
    """Who reaches the cluster."""

    FOREIGN: ClassVar = {
        "masters": "the key is admins",
        "masters_role": "the key is admins",
        "admin_role_arn": "the key is admins",
    }

    admins: Annotated[
        tuple[Text, ...], Field(description="ARNs of IAM roles and users that administer Kubernetes")
    ] = ()
    users: Annotated[tuple[User, ...], Field(description="who works on the cluster")] = ()
