"""Which changes are refused: those that lose data, capacity, a cluster, or what others were built on."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fmblocks.findings import Finding, Severity
from fmblocks.guard.templates import (
    FOLLOWS,
    Action,
    Change,
    Replacement,
    Template,
    at,
    construct_path,
    follow,
    inputs,
    published,
    references,
    resources,
)

_FILE_SYSTEM = "AWS::FSx::FileSystem"
# What stacks of fmblocks tell each other.
PREFIX = "/fmblocks/"
# Key of a resource's metadata: the numbers of Linux users by their names.
USER_NUMBERS = "fmblocks:user-numbers"


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A type that is looked after: under which id, what a person calls it, and what replacing it costs."""

    rule: str
    noun: str
    loss: str
    severity: Severity = Severity.ERROR
    removal: Severity | None = None  # where taking it out of the project is less than replacing it


_EMPTY = "the new one is empty"
_GUARDED: Mapping[str, _Guarded] = {
    _FILE_SYSTEM: _Guarded("FSX-25", "file system", _EMPTY),
    "AWS::FSx::Volume": _Guarded("FSX-25", "volume", _EMPTY),
    "AWS::S3::Bucket": _Guarded("FMB-49", "bucket", _EMPTY),
    "AWS::KMS::Key": _Guarded("FMB-49", "key", "what the old one encrypted cannot be read with the new one"),
    "AWS::APS::Workspace": _Guarded("FMB-49", "metrics workspace", _EMPTY),
    "AWS::EC2::CapacityReservation": _Guarded("CR-08", "reservation", "the capacity is needed twice for a while"),
    "AWS::SageMaker::Cluster": _Guarded("FMB-49", "cluster", "its jobs and its nodes end"),
    "AWS::EKS::Cluster": _Guarded("FMB-49", "cluster", "everything that runs in it ends"),
    "AWS::PCS::Cluster": _Guarded("PCS-03", "cluster", "its jobs and its nodes end"),
    # The new one would have the old one's name, which is fixed: CloudFormation fails, and nothing has changed.
    "AWS::PCS::ComputeNodeGroup": _Guarded(
        "PCS-03", "node group", "its name is taken: rename the group", removal=Severity.WARNING
    ),
    "AWS::RDS::DBCluster": _Guarded("FMB-49", "database", _EMPTY),
    "AWS::RDS::DBInstance": _Guarded("FMB-49", "database instance", "no job is recorded meanwhile", Severity.WARNING),
    "AWS::SecretsManager::Secret": _Guarded("FMB-49", "secret", "the new one has another password than the database"),
    "AWS::SageMaker::ComputeQuota": _Guarded("FMB-49", "quota", "the team's namespace goes with it", Severity.WARNING),
    "AWS::EC2::VPC": _Guarded("FMB-49", "VPC", "everything in it has to move"),
    "AWS::AutoScaling::AutoScalingGroup": _Guarded("FMB-49", "fleet", "its nodes end", Severity.WARNING),
    "AWS::EKS::Nodegroup": _Guarded("EKS-05", "node group", "its nodes end", Severity.WARNING),
    "AWS::EC2::PlacementGroup": _Guarded(
        "PG-09", "placement group", "EC2 refuses to delete one that is in use", Severity.WARNING
    ),
    "AWS::FSx::DataRepositoryAssociation": _Guarded(
        "DRA-12", "association", "its metadata is imported anew", Severity.WARNING
    ),
    "AWS::APS::Scraper": _Guarded("AMP-05", "scraper", "it collects nothing meanwhile", Severity.WARNING),
}
_MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
_POOL = _Guarded("EKS-05", "node pool", "its nodes end", Severity.WARNING)
# What a stack publishes was built on by another one.
_BUILT_ON = ("AWS::EC2::Subnet", "AWS::EC2::SecurityGroup")
_PUBLISHED = _Guarded("FMB-49", "published resource", "what was built on it follows it")


@dataclass(frozen=True, slots=True)
class Input:
    """An SSM parameter that a deployed stack reads: what it got when it was deployed, and what it would get now."""

    key: str
    name: str
    deployed: str | None
    current: str | None


@dataclass(frozen=True, slots=True)
class StackChange:
    """What a deployment would do to one stack.

    Attributes:
        name: as the CDK CLI calls it.
        old: the deployed template; None for a stack that is not deployed yet.
        new: the template to be deployed.
        changes: by resource.
        inputs: what the deployed stack reads from others.
    """

    name: str
    old: Template | None
    new: Template
    changes: tuple[Change, ...] = ()
    inputs: tuple[Input, ...] = ()


def judge(stacks: Sequence[StackChange], *, allow: Collection[str] = ()) -> list[Finding]:
    """What is refused or warned about, stack by stack.

    Args:
        stacks: in the order of deployment.
        allow: places whose findings are wanted, as the findings name them: construct paths (logical ids where CDK wrote
            no path) and names of SSM parameters.
    """
    findings: list[Finding] = []
    for stack in stacks:
        if stack.old is None:
            continue
        followed = list(_changed_inputs(stack, stacks))
        # An image that AWS publishes anew is no value that somebody built on: only what it replaces is told.
        findings += [finding for _, finding in followed if finding.path.startswith(PREFIX)]
        changes = {change.logical_id: change for change in stack.changes}
        for change in follow(stack.new, [key for key, _ in followed]):
            known = changes.get(change.logical_id)
            changes[change.logical_id] = known.with_causes(change) if known else change
        for change in changes.values():
            named = replace(change, causes=_named(change.causes, inputs(stack.new)))
            findings += _of_change(stack, stack.old, named, changes.values())
        findings += _lost_policies(stack.old, stack.new)
        findings += _changed_numbers(stack.old, stack.new)
        findings += _changed_routing(stack.old, stack.new)
    left = [one for one in findings if not _allowed(one, allow)]
    return sorted(left, key=lambda finding: finding.severity)


def unknown_allowances(findings: Iterable[Finding], allow: Iterable[str]) -> list[str]:
    """Words of ``--allow`` that name nothing which is refused."""
    listed = list(findings)
    return [word for word in allow if not any(_allowed(finding, [word]) for finding in listed)]


def _allowed(finding: Finding, allow: Collection[str]) -> bool:
    return any(word.removesuffix("/Resource") == finding.path for word in allow)


def _of_change(stack: StackChange, old: Template, change: Change, others: Iterable[Change]) -> Iterator[Finding]:
    guarded = _GUARDED.get(change.resource_type)
    if change.resource_type == _MANIFEST and change.action is Action.REMOVE:
        # The nodes of Karpenter's pools are in no template; taking the pool away ends them.
        guarded = _POOL if _has_pool(resources(old)[change.logical_id]) else None
    if guarded is None and change.resource_type in _BUILT_ON and change.logical_id in _published_ids(old):
        noun = change.resource_type.rsplit("::", 1)[-1]
        guarded = replace(_PUBLISHED, noun=f"published {noun}")
    if guarded is None or change.action is Action.ADD:
        return
    path = construct_path(old, change.logical_id)
    before = resources(old)[change.logical_id]
    if change.action is Action.REMOVE:
        text = f"the {guarded.noun} would {_leave(before)}"
        if new := _renamed_to(stack, change, before, others):
            text += f": its construct is called {new} now, and CloudFormation makes a new one"
        hint = "give it its old name back" if new else "leave it in the project, or move what it holds first"
        yield _finding(guarded.rule, guarded.removal or guarded.severity, path, text, hint)
        return
    after = resources(stack.new)[change.logical_id]
    if all(cause.split(",")[0] == "ClusterId" for cause in change.causes):
        # In another cluster its name is free; that the cluster goes is told already.
        guarded = replace(guarded, loss="its nodes end", severity=guarded.removal or guarded.severity)
    if change.replacement is not Replacement.NO:
        sure = "would" if change.replacement is Replacement.YES else "may"
        causes = "; ".join(f"{cause} {_values(before, after, cause)}".rstrip() for cause in change.causes)
        loss = "the new one holds what the backup holds" if "BackupId" in change.causes else guarded.loss
        text = f"the {guarded.noun} {sure} be replaced: {causes}; {loss}, and the old one would {_replaced(after)}"
        yield _finding(_rule(guarded, change), guarded.severity, path, text, "put the old value back")
    else:
        yield from _in_place(change.resource_type, path, before, after)


def _rule(guarded: _Guarded, change: Change) -> str:
    first = change.causes[0].split(",")[0]
    return {"PlacementGroupArn": "CR-17", "LustreConfiguration/EfaEnabled": "FSX-14"}.get(first, guarded.rule)


def _lost_policies(old: Template, new: Template) -> Iterator[Finding]:
    """Policies are no change of a resource to CloudFormation, so they are looked at in the templates."""
    for id, before in resources(old).items():
        guarded, after = _GUARDED.get(before["Type"]), resources(new).get(id)
        if guarded is None or guarded.severity is not Severity.ERROR or after is None:
            continue
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if _kept(before, policy) and not _kept(after, policy):
                text = f"the {guarded.noun} would lose its {policy}, {before[policy]}"
                path = construct_path(old, id)
                yield _finding(guarded.rule, Severity.WARNING, path, text, "a later change would delete it")


def _changed_numbers(old: Template, new: Template) -> Iterator[Finding]:
    """Numbers of Linux users, which are no property of anything: files belong to them (rule FMB-108)."""
    for id, before in resources(old).items():
        told, now = (one.get("Metadata", {}).get(USER_NUMBERS, {}) for one in (before, resources(new).get(id, {})))
        for name in sorted(set(told) & set(now)):
            if told[name] != now[name]:
                text = f"the number of {name} would go from {told[name]} to {now[name]}, and files belong to numbers"
                yield _finding("FMB-108", Severity.ERROR, construct_path(old, id), text, f"write {told[name]}")
        former = {number: name for name, number in told.items()}
        for name in sorted(set(now) - set(told)):
            if (owner := former.get(now[name])) is not None and owner != name:
                text = f"{name} would get {now[name]}, the number of {owner}, and with it {owner}'s files"
                yield _finding("FMB-108", Severity.ERROR, construct_path(old, id), text, "take a number of its own")


def _changed_routing(old: Template, new: Template) -> Iterator[Finding]:
    """HyperPod's operator refuses routing that comes to an endpoint, or goes from it (rule FMB-134)."""
    for id, before in resources(old).items():
        after = resources(new).get(id)
        if before["Type"] != _MANIFEST or after is None:
            continue
        was, becomes = _routing(before), _routing(after)
        for name in sorted(set(was) & set(becomes)):
            if (was[name] is None) != (becomes[name] is None):
                shown = "come" if was[name] is None else "go"
                text = f"the routing of {name} would {shown}, which its operator refuses"
                hint = "keep it, or take the endpoint out, deploy, and write it again"
                yield _finding("FMB-134", Severity.ERROR, construct_path(old, id), text, hint)


def _routing(manifest: Template) -> dict[str, str | None]:
    """How the endpoints of a manifest are routed, by name."""
    text = at(manifest, "Manifest")
    if isinstance(text, dict):
        parts = text.get("Fn::Join", ["", []])[1]
        text = "".join(part if isinstance(part, str) else "token" for part in parts)
    try:
        objects = json.loads(str(text))
    except ValueError:
        return {}  # somebody else's
    return {
        one["metadata"]["name"]: (one["spec"].get("intelligentRoutingSpec") or {}).get("routingStrategy")
        for one in objects
        if one.get("kind") == "InferenceEndpointConfig"
    }


def _in_place(kind: str, path: str, before: Template, after: Template) -> Iterator[Finding]:
    """What is lost although the resource stays."""
    for key, rule, text in _LESS.get(kind, ()):
        old, new = _number(at(before, key)), _number(at(after, key))
        if old is not None and new is not None and new < old:
            yield _finding(rule, Severity.ERROR, path, f"{key} would go from {old} to {new}: {text}", f"write {old}")
    if kind == "AWS::S3::Bucket" and at(before, _VERSIONED) == "Enabled" != at(after, _VERSIONED):
        text = "the bucket would keep no versions any more: what is overwritten or deleted then is lost"
        yield _finding("FMB-49", Severity.ERROR, path, text, "leave versioning on")
    if kind == "AWS::KMS::Key" and at(after, "Enabled") in (False, "false"):
        text = "the key would be disabled: what it encrypted cannot be read"
        yield _finding("FMB-49", Severity.ERROR, path, text, "leave it enabled")
    if kind == "AWS::SageMaker::Cluster":
        gone = set(_by_name(before)) - set(_by_name(after))
        if gone:
            text = f"the nodes of {', '.join(sorted(gone))} would end, with what they run"
            yield _finding("FMB-49", Severity.WARNING, path, text, "wait for their jobs")
        yield from _of_instance_groups(path, before, after)
        yield from _of_hyperpod(path, before, after)
    if kind == _FILE_SYSTEM:
        yield from _of_file_system(path, before, after)
    if kind == "AWS::EKS::Cluster":
        yield from _of_kubernetes(path, before, after)


def _has_pool(manifest: Template) -> bool:
    return "karpenter.sh/" in json.dumps(at(manifest, "Manifest"))


def _of_kubernetes(path: str, before: Template, after: Template) -> Iterator[Finding]:
    """One minor version at a time, and no way back (rule FMB-95)."""
    old, new = (_minor(at(one, "Version")) for one in (before, after))
    if old is None or new is None or new in (old, old + 1):
        return
    text = f"Version {_values(before, after, 'Version')}, and a cluster goes up by one minor version at a time"
    yield _finding("FMB-95", Severity.ERROR, path, text, f"write 1.{old}" + (f" or 1.{old + 1}" if new > old else ""))


def _minor(value: object) -> int | None:
    found = re.fullmatch(r"1\.([0-9]+)", str(value))
    return int(found[1]) if found else None


_VERSIONED = "VersioningConfiguration/Status"
# What gets lost when a number goes down.
_LESS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "AWS::EC2::CapacityReservation": (("InstanceCount", "CR-08", "capacity that is given back may be gone"),),
    "AWS::APS::Workspace": (("WorkspaceConfiguration/RetentionPeriodInDays", "FMB-49", "older samples are deleted"),),
}


# What a group of HyperPod keeps, and what a person calls it.
_STAYS = {
    "OverrideVpcConfig": "subnet and security groups",
    "SlurmConfig/NodeType": "role",
    "InstanceType": "instance type",
}
_UNDOCUMENTED = {"ExecutionRole": "the role", "TrainingPlanArn": "the training plan"}


def _of_instance_groups(path: str, before: Template, after: Template) -> Iterator[Finding]:
    """What HyperPod refuses, or does to nodes, group by group (rule FMB-108)."""
    old, new = (_by_name(one) for one in (before, after))
    for name in sorted(set(old) & set(new)):
        for key, noun in _STAYS.items():
            if _part(old[name], key) != _part(new[name], key):
                text = f"{noun} of {name} would change, and a group keeps them"
                yield _finding("FMB-108", Severity.ERROR, path, text, "add a group with another name, then take it out")
        less = [_number(_part(one, "InstanceCount")) for one in (old[name], new[name])]
        if less[0] is not None and less[1] is not None and less[1] < less[0]:
            text = f"{less[0] - less[1]} of the {less[0]} nodes of {name} would end, with what they run"
            yield _finding("FMB-108", Severity.WARNING, path, text, "wait for their jobs")
        for key, noun in _UNDOCUMENTED.items():
            if _part(old[name], key) != _part(new[name], key):
                text = f"{noun} of {name} would change: what becomes of its nodes is not documented"
                yield _finding("FMB-108", Severity.WARNING, path, text, "wait for their jobs")
        key = "ImageReleaseVersion"
        if _part(old[name], key) != _part(new[name], key):
            text = f"the nodes of {name} get another image: their root volumes go, with what they run"
            yield _finding("FMB-108", Severity.WARNING, path, text, "wait for their jobs")


_DATABASE = "Orchestrator/Slurm/AccountingDatabase"


def _of_hyperpod(path: str, before: Template, after: Template) -> Iterator[Finding]:
    """What AWS refuses, or does not say, about the cluster as a whole (rule FMB-108)."""
    if at(before, _DATABASE) is not None and at(after, _DATABASE) is None:
        text = "Slurm's accounting would go back to the controller, and HyperPod cannot"
        yield _finding("FMB-108", Severity.ERROR, path, text, "keep storage.accounting_database")
    modes = [str(at(one, "NodeProvisioningMode") or "Standard") for one in (before, after)]
    if modes[0] != modes[1]:
        text = f"node provisioning would go from {modes[0]} to {modes[1]}: what becomes of nodes is not documented"
        yield _finding("FMB-108", Severity.WARNING, path, text, "try it on a cluster without jobs")


def _part(group: Template, path: str) -> object:
    found: object = group
    for key in path.split("/"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _by_name(cluster: Template) -> dict[str, Template]:
    listed = at(cluster, "InstanceGroups")
    return {str(one.get("InstanceGroupName")): one for one in listed} if isinstance(listed, list) else {}


def _of_file_system(path: str, before: Template, after: Template) -> Iterator[Finding]:
    """Changes of a file system that CloudFormation tries in place and FSx refuses."""
    for key in ("StorageCapacity", "LustreConfiguration/MetadataConfiguration/Iops"):
        old, new = _number(at(before, key)), _number(at(after, key))
        if old is not None and new is not None and new < old:
            text = f"{key} would go from {old} to {new}, and it can only grow"
            yield _finding("FMB-51", Severity.ERROR, path, text, f"write {old} or more")
    old_version, new_version = (_version(at(one, "FileSystemTypeVersion")) for one in (before, after))
    if old_version and new_version and new_version < old_version:
        text = f"FileSystemTypeVersion {_values(before, after, 'FileSystemTypeVersion')}, and versions only upgrade"
        yield _finding("FSX-06", Severity.ERROR, path, text, "put the old version back")
    tier = "LustreConfiguration/PerUnitStorageThroughput"
    if at(before, "LustreConfiguration/EfaEnabled") in (True, "true") and at(before, tier) != at(after, tier):
        text = f"{tier} {_values(before, after, tier)}, and a file system with EFA keeps its throughput per TiB"
        yield _finding("FSX-14", Severity.ERROR, path, text, "put the old value back")
    configured = "LustreConfiguration/MetadataConfiguration"
    if (at(before, configured) is None) != (at(after, configured) is None):
        text = f"{configured} cannot be added to a file system, nor taken from it"
        yield _finding("FMB-51", Severity.ERROR, path, text, "put back what was deployed")


def _changed_inputs(stack: StackChange, stacks: Sequence[StackChange]) -> Iterator[tuple[str, Finding]]:
    for one in stack.inputs:
        if one.deployed is None:
            continue
        coming, who = _coming(one, stacks)
        if coming == one.deployed:
            continue
        place = one.name
        if coming is None:
            text = f"{stack.name} was built with {one.deployed}; what it would get is known only after {who}"
        elif who is None:
            text = f"{stack.name} was built with {one.deployed} and would get {coming}, which is published already"
        else:
            text = f"{stack.name} was built with {one.deployed} and would get {coming} from {who}"
        yield one.key, _finding("FMB-50", Severity.ERROR, place, text, "undo what changes it")


def _coming(one: Input, stacks: Sequence[StackChange]) -> tuple[str | None, str | None]:
    """The value after the deployment (None: not known before it), and which stack changes it."""
    for producer in stacks:
        new = published(producer.new).get(one.name)
        old = published(producer.old).get(one.name) if producer.old else None
        if new is None and old is None:
            continue
        if new is None:
            return None, f"{producer.name} has stopped publishing it"
        value = new[1]
        if isinstance(value, str):
            return value, producer.name if old is None or old[1] != value else None
        if old is None or old[1] != value:
            return None, f"the deployment of {producer.name}"
        unsettled = {
            change.logical_id
            for change in producer.changes
            if change.action is not Action.MODIFY or change.replacement is not Replacement.NO
        } | {key.key for key in producer.inputs if key.deployed != key.current}
        if any(reference.target in unsettled or reference.imported for reference in references(value)):
            return None, f"the deployment of {producer.name}"
        return one.current, None
    return one.current, None


def _named(causes: Iterable[str], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Causes with the names of SSM parameters in place of the template's own, each once."""
    found = []
    for cause in causes:
        path, follows, target = cause.partition(FOLLOWS)
        if (named := f"{path}{follows}{parameters.get(target, target)}") not in found:
            found.append(named)
    return tuple(found)


def _published_ids(template: Template) -> set[str]:
    return {one.target for _, value in published(template).values() for one in references(value)}


def _renamed_to(stack: StackChange, change: Change, before: Template, others: Iterable[Change]) -> str | None:
    added = [one.logical_id for one in others if one.action is Action.ADD and one.resource_type == change.resource_type]
    alike = {id: _likeness(before, resources(stack.new)[id]) for id in added}
    best = max(alike, key=lambda id: alike[id], default=None)
    return construct_path(stack.new, best) if best is not None and alike[best] > 0.6 else None


def _likeness(one: Template, other: Template) -> float:
    mine, theirs = (str(each.get("Properties", {})) for each in (one, other))
    return float(difflib.SequenceMatcher(None, mine, theirs, autojunk=False).quick_ratio())


def _kept(resource: Template, policy: str) -> bool:
    return str(resource.get(policy, "Delete")).startswith("Retain")


def _leave(resource: Template) -> str:
    if _kept(resource, "DeletionPolicy"):
        return f"leave its stack: it stays ({resource['DeletionPolicy']}), bills on, and nobody manages it"
    return "be deleted"


def _replaced(resource: Template) -> str:
    if _kept(resource, "UpdateReplacePolicy"):
        return f"stay ({resource['UpdateReplacePolicy']}), bill on, and nobody would manage it"
    return "be deleted"


def _values(before: Template, after: Template, cause: str) -> str:
    """``a → b`` where both are plain."""
    old, new = at(before, cause), at(after, cause)
    plain = (str, int, float, bool)
    if isinstance(old, plain) and isinstance(new, plain) and old != new:
        return f"{old} → {new}"
    return ""


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, (int, str)) and str(value).isdecimal() else None


def _version(value: object) -> tuple[int, ...]:
    return tuple(int(part) for part in str(value).split(".") if part.isdecimal()) if value is not None else ()


def _finding(rule: str, severity: Severity, path: str, text: str, hint: str) -> Finding:
    meant = f"; if it is meant: --allow {path}" if severity is Severity.ERROR else ""
    return Finding(rule, severity, path, text, hint + meant)
