"""What is refused about a project's tags, teams and users."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from fmblocks.catalog import Types
from fmblocks.findings import Violation, rule
from fmblocks.governance.settings import Priority, Quota, Sharing, Team, User
from fmblocks.rulebook import Kind, entries

# One tag of 50 stays free for the one that every stack of ours adds.
_MOST_TAGS = 49
_ALLOWED = r"[\w .:/=+\-@]*"


@rule("FMB-10")
def tags(*, tags: Mapping[str, str]) -> Iterator[Violation]:
    """Tags fit what every AWS service takes."""
    if len(tags) > _MOST_TAGS:
        yield Violation("tags", f"{len(tags)} are more than the {_MOST_TAGS} there is room for", "drop some")
    for key in tags:
        if other := next((one for one in tags if one != key and one.lower() == key.lower() and one < key), None):
            yield Violation(
                f"tags.{key}", f"differs from {other} in case only, which IAM takes for the same", "drop one"
            )
    for key, value in tags.items():
        where = f"tags.{key}"
        if key.lower().startswith("aws:"):
            yield Violation(where, "begins with aws:, which AWS keeps for itself", "rename it")
        if key == "fmblocks:project":
            yield Violation(where, "is set by fmblocks itself", "drop it")
        if not 1 <= len(key) <= 128 or len(value) > 256:
            text = f"key of {len(key)} and value of {len(value)} characters: 1 to 128 and up to 256 are taken"
            yield Violation(where, text, "change its length")
        if not re.fullmatch(_ALLOWED, key) or not re.fullmatch(_ALLOWED, value):
            yield Violation(
                where, f"{value!r} has characters that tags do not take", "use letters, digits and .:/=+-@_"
            )


class Suppressed(Protocol):
    """A suppression as the rules see it."""

    @property
    def rule(self) -> str: ...
    @property
    def reason(self) -> str: ...


@rule("FMB-21")
def suppressions(*, suppress: Sequence[Suppressed]) -> Iterator[Violation]:
    """A suppression names a rule and a reason; what no function checks cannot be suppressed."""
    for index, one in enumerate(suppress):
        entry = entries().get(one.rule)
        where = f"suppress[{index}]"
        if entry is None:
            alike = difflib.get_close_matches(one.rule.upper(), entries(), n=2)
            hint = f"did you mean {' or '.join(alike)}?" if alike else "see `fmblocks explain`"
            yield Violation(f"{where}.rule", f"{one.rule} is no id of the rule book", hint)
        elif entry.kind is not Kind.RULE:
            yield Violation(f"{where}.rule", f"{one.rule} is {entry.kind}, which nothing refuses", "leave it out")
        elif entry.firm:
            yield Violation(f"{where}.rule", f"{one.rule} is what the constructs rely on", "change what it is about")
        elif one.rule in [other.rule for other in suppress[:index]]:
            yield Violation(f"{where}.rule", f"{one.rule} is suppressed twice", "keep one of the two")
        if not one.reason.strip():
            yield Violation(f"{where}.reason", "is empty", "say why the rule does not matter here")


@rule("FMB-103")
def teams_fit(
    *,
    teams: Sequence[Team],
    slurm: bool,
    task_governance: bool,
    nodes: Mapping[str, int],
    types: Types,
) -> Iterator[Violation]:
    """Teams have names of their own; on Kubernetes they need task governance, and quotas of types that are there."""
    if teams and not slurm and not task_governance:
        text = "are given, but nothing here would keep them apart"
        hint = "on hyperpod-eks write training.kubernetes.hyperpod_add_ons: [task_governance], else use hyperpod-slurm"
        yield Violation("teams", text, hint)
        return
    names = [team.name for team in teams]
    for at, team in enumerate(teams):
        if names.index(team.name) != at:
            yield Violation(f"teams[{at}].name", f"{team.name} is named twice", "give each a name of its own")
        if slurm and team.name == "root":
            text = "root is Slurm's own account, above all others"
            yield Violation(f"teams[{at}].name", text, "rename the team")
        if not re.fullmatch(_LABEL, team.name):
            text = f"{team.name} is no name of a team: up to 40 small letters, digits and inner hyphens"
            yield Violation(f"teams[{at}].name", text, "rename it")
        where, weight, limit = f"teams[{at}]", team.fair_share_weight, team.borrow_limit_percentage
        if weight is not None and not 0 <= weight <= 100:
            yield Violation(f"{where}.fair_share_weight", f"{weight} is not between 0 and 100", "0 is the least urgent")
        if slurm:
            for key in ("quotas", "sharing", "borrow_limit_percentage", "preemption"):
                if key in team.model_fields_set and getattr(team, key):
                    yield Violation(f"{where}.{key}", "is not read on Slurm", "leave it out: accounts share by weight")
            continue
        if limit is not None and not 0 <= limit <= 10000:
            text = f"{limit} is not between 0 and 10000"
            yield Violation(f"{where}.borrow_limit_percentage", text, "100 is as much again as the team has")
        elif limit is not None and team.sharing is not Sharing.LEND_AND_BORROW:
            text = f"{limit}, but a team with sharing {team.sharing} borrows nothing"
            yield Violation(f"{where}.borrow_limit_percentage", text, "leave it out")
        yield from _quotas(where, team.quotas, nodes, types)


def _quotas(where: str, quotas: Sequence[Quota], nodes: Mapping[str, int], types: Types) -> Iterator[Violation]:
    if not quotas:
        yield Violation(f"{where}.quotas", "is empty: the team would have nothing of its own", "name an instance type")
    if len(quotas) > 15:
        yield Violation(f"{where}.quotas", f"{len(quotas)} are more than the 15 of a team", "name fewer types")
    for at, one in enumerate(quotas):
        key = f"{where}.quotas[{at}]"
        # A type that nobody knows is told where the group names it.
        if one.instance_type not in nodes and all(name in types for name in nodes):
            listed = ", ".join(sorted(nodes)) or "none"
            yield Violation(f"{key}.instance_type", f"no group has {one.instance_type}", f"known here: {listed}")
        if [other.instance_type for other in quotas].index(one.instance_type) != at:
            yield Violation(f"{key}.instance_type", f"{one.instance_type} is named twice", "name each type once")
        given = [name for name in _AMOUNTS if getattr(one, name) is not None]
        if len(given) != 1:
            text = f"takes one of {', '.join(_AMOUNTS)}, not {len(given)}"
            yield Violation(key, text, "write count for whole nodes")
        if any(getattr(one, name) < 0 for name in given):
            yield Violation(key, f"{given[0]} is below 0", "write 0 or more")
        kind = types.get(one.instance_type)
        if one.accelerators and kind is not None and not kind.accelerator_count:
            yield Violation(f"{key}.accelerators", f"{one.instance_type} has none", "write count")


_AMOUNTS = ("count", "accelerators", "vcpus", "memory_gib")


@rule("FMB-104")
def quotas_within_the_cluster(*, teams: Sequence[Team], nodes: Mapping[str, int], types: Types) -> Iterator[Violation]:
    """What all teams have together is there: more is promised twice."""
    for name, count in nodes.items():
        kind = types.get(name)
        each = {"count": 1, "accelerators": 0, "vcpus": 0, "memory_gib": 0}
        if kind is not None:
            each |= {"accelerators": kind.accelerator_count}
            each |= {"vcpus": kind.vcpus or 0, "memory_gib": kind.memory_gib or 0}
        given = [one for team in teams for one in team.quotas if one.instance_type == name]
        promised = sum(
            (getattr(one, amount) or 0) / per_node for one in given for amount, per_node in each.items() if per_node
        )
        if promised > count:
            text = f"{promised:g} nodes of {name} are promised together, and the groups have {count}"
            yield Violation("teams", text, "lower some, or let teams borrow")


@rule("FMB-105")
def users_fit(
    *, users: Sequence[User], admins: Sequence[str], teams: Sequence[Team], slurm: bool, kubernetes_teams: bool
) -> Iterator[Violation]:
    """Users have a name and a number for ever on Slurm, an IAM principal on Kubernetes, and a team that is there."""
    if users and not slurm and not kubernetes_teams:
        if not teams:  # else FMB-103 says what is missing
            text = "are given, but nothing here lets them in"
            yield Violation("access.users", text, "use hyperpod-slurm, or hyperpod-eks with teams; access.admins else")
        return
    names, numbers = [one.name for one in users], [one.uid for one in users]
    known = [team.name for team in teams]
    for at, one in enumerate(users):
        key = f"access.users[{at}]"
        if names.index(one.name) != at:
            yield Violation(f"{key}.name", f"{one.name} is named twice", "give each a name of its own")
        if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", one.name) or one.name in _TAKEN:
            text = f"{one.name} is no name for a user"
            yield Violation(f"{key}.name", text, "up to 32 small letters, digits, - and _; no system account")
        if one.account is not None and one.account not in known:
            hint = f"known here: {', '.join(known)}" if known else f"write teams: [{{name: {one.account}}}]"
            yield Violation(f"{key}.account", f"{one.account} is no team", hint)
        if one.principal_arn is not None and not re.fullmatch(_PRINCIPAL, one.principal_arn):
            text = f"{one.principal_arn} is the ARN of no IAM role or user"
            yield Violation(f"{key}.principal_arn", text, "it looks like arn:aws:iam::111122223333:role/Name")
        if slurm:
            if one.uid is None:
                yield Violation(f"{key}.uid", "is required on Slurm: files belong to numbers", "take 10000 or more")
            elif not 2000 <= one.uid <= 60000:
                text = f"{one.uid} is not between 2000 and 60000"
                yield Violation(f"{key}.uid", text, "below are the image's own accounts, above are reserved ones")
            elif numbers.index(one.uid) != at:
                text = f"{one.uid} is that of {names[numbers.index(one.uid)]} already"
                yield Violation(f"{key}.uid", text, "give each a number of its own")
            continue
        if one.uid is not None:
            yield Violation(f"{key}.uid", "is not read on Kubernetes", "leave it out")
        for required in ("principal_arn", "account"):
            if getattr(one, required) is None:
                yield Violation(f"{key}.{required}", "is required on Kubernetes", "give it")
        if one.principal_arn in admins:
            text = f"{one.principal_arn} is among access.admins: an access entry has one principal"
            yield Violation(f"{key}.principal_arn", text, "leave it out in one of the two")
        if one.principal_arn in [other.principal_arn for other in users[:at]] and one.principal_arn:
            text = f"{one.principal_arn} is somebody else's: an access entry has one principal"
            yield Violation(f"{key}.principal_arn", text, "give each their own")


# Accounts and groups of HyperPod's and Ubuntu's images, which have numbers of their own.
_TAKEN = frozenset(
    {
        "root", "ubuntu", "slurm", "munge", "mysql", "ssm-user", "nobody", "daemon", "docker", "backup", "mail", "list",
        "man", "news", "games", "proxy", "sync", "uucp", "www-data", "irc", "gnats", "adm", "sudo", "admin", "users",
        "staff", "video", "render", "audio", "disk", "kvm", "lp", "operator", "plugdev", "shadow", "src", "sys", "tape",
        "tty", "utmp", "voice", "bin", "cdrom", "dialout", "dip", "fax", "floppy", "input", "crontab", "messagebus",
        "syslog", "sshd", "systemd-network", "systemd-resolve", "systemd-timesync", "tcpdump", "landscape", "pollinate",
        "tss", "uuidd", "lxd", "netdev", "nvidia-persistenced", "dcgm", "prometheus",
    }
)  # fmt: skip
_LABEL = r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?"
_PRINCIPAL = r"arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[\w+=,.@/-]+"


@rule("FMB-106")
def priorities_fit(*, priorities: Sequence[Priority], task_governance: bool) -> Iterator[Violation]:
    """Priorities come with task governance, up to 10, each once, from 0 to 100."""
    if priorities and not task_governance:
        hint = "on hyperpod-eks write training.kubernetes.hyperpod_add_ons: [task_governance], else leave it out"
        yield Violation("priorities", "are not read without task governance", hint)
        return
    if len(priorities) > 10:
        yield Violation("priorities", f"{len(priorities)} are more than 10", "join some")
    names = [one.name for one in priorities]
    for at, one in enumerate(priorities):
        if names.index(one.name) != at:
            yield Violation(f"priorities[{at}].name", f"{one.name} is named twice", "name each once")
        if not re.fullmatch(_LABEL, one.name):
            text = f"{one.name} is no name of a class: up to 40 small letters, digits and inner hyphens"
            yield Violation(f"priorities[{at}].name", text, "rename it")
        if not 0 <= one.weight <= 100:
            text = f"{one.weight} is not between 0 and 100"
            yield Violation(f"priorities[{at}].weight", text, "100 goes first")


@rule("FMB-137")
def budget_fits(*, monthly_usd: float, email: Sequence[str], tagged: bool) -> Iterator[Violation]:
    """A budget has a limit, one to ten addresses, and something that bills."""
    if monthly_usd <= 0:
        yield Violation("monthly_usd", f"{monthly_usd:g} is no limit", "write more than 0")
    if not 1 <= len(email) <= 10:
        yield Violation("email", f"{len(email)} addresses: a budget tells 1 to 10", "name a list's address")
    for at, address in enumerate(email):
        if list(email).index(address) != at:
            yield Violation(f"email[{at}]", f"{address} is named twice", "name each once")
    if not tagged:
        yield Violation("", "is given, and neither training nor inference", "leave it out, or write one of the two")


BUDGET = ("FMB-137",)
RULES = ("FMB-10", "FMB-21")
# What teams, users and priorities are.
PEOPLE = ("FMB-103", "FMB-104", "FMB-105", "FMB-106")
