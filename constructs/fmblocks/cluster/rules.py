"""What is refused about a cluster: HyperPod, EKS and PCS."""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from fmblocks import catalog
from fmblocks.capacity.rules import Bought
from fmblocks.capacity.settings import Capacity, CapacityMode, Tenancy
from fmblocks.cluster.add_ons import ADD_ONS, HYPERPOD_ADD_ONS, pinned_kubernetes
from fmblocks.cluster.dependency_chart import unknown_values
from fmblocks.cluster.settings import (
    ADD_ON_VERSION,
    DEFAULT_SLURM,
    POD_ADDRESSES,
    SYSTEM,
    ControllerSize,
    DeepHealthCheck,
    EndpointAccess,
    HyperPodAddOn,
    Kubernetes,
    NodeProvisioning,
    NodeRecovery,
    NodeRole,
    Orchestrator,
    PatchingStrategy,
    Provisioner,
    Slurm,
    TieredStorage,
)
from fmblocks.compute.interfaces import addresses as interface_addresses
from fmblocks.compute.interfaces import layout
from fmblocks.compute.settings import (
    Efa,
    EfaMode,
    Image,
    InterfaceType,
    NetworkInterface,
    NetworkInterfaceType,
    Placement,
    PlacementMode,
)
from fmblocks.findings import FindingsError, Severity, Violation, check, rule
from fmblocks.network.addresses import RFC_1918, parse_cidr


class Group(Protocol):
    """What the rules look at in a node group; settings and the construct's groups both have it."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> NodeRole: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def ebs_volume_gib(self) -> int: ...
    @property
    def training_plan_arn(self) -> str | None: ...


class Checked(Group, Protocol):
    """A node group of HyperPod with EKS, as the rules over several of them see it."""

    @property
    def provisioned_by(self) -> Provisioner: ...
    @property
    def deep_health_checks(self) -> Sequence[DeepHealthCheck]: ...


class OfEks(Group, Protocol):
    """A node group of EKS as the rules over several of them see it."""

    @property
    def provisioned_by(self) -> Provisioner: ...


class Wired(Protocol):
    """A node group as the rules over interfaces and addresses see it."""

    @property
    def name(self) -> str: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def every_type(self) -> Sequence[str]: ...
    @property
    def count(self) -> int: ...
    @property
    def efa(self) -> Efa: ...
    @property
    def network_interfaces(self) -> Sequence[NetworkInterface]: ...


@rule("HP-03")
def hyperpod_type(*, instance_type: str, types: catalog.Types) -> Iterator[Violation]:
    """HyperPod takes the type."""
    found = types.get(instance_type)
    if found is not None and not found.hyperpod:
        alike = [name for name in catalog.nearest(instance_type, types) if types[name].hyperpod]
        hint = f"did you mean {' or '.join(alike)}?" if alike else "choose another type"
        yield Violation("instance_type", f"{instance_type} is not sold for HyperPod", hint)


@rule("HP-02")
def groups(*, node_groups: Sequence[Group]) -> Iterator[Violation]:
    """Names are unique; a group has at most 6758 nodes."""
    if not 1 <= len(node_groups) <= 100:
        yield Violation("node_groups", f"{len(node_groups)} node groups: HyperPod takes 1 to 100", "add or join groups")
    for name, times in Counter(group.name for group in node_groups).items():
        if times > 1:
            yield Violation("node_groups", f"{times} groups are called {name}", "give each a name of its own")
    for index, group in enumerate(node_groups):
        if not 0 <= group.count <= 6758:
            text = f"{group.count} is not between 0 and the 6758 nodes of a HyperPod group"
            yield Violation(f"node_groups[{index}].count", text, "change the count, or split the group")


@rule("HP-04")
def flexible_types(
    *,
    instance_type: str,
    alternative_instance_types: Sequence[str],
    node_provisioning: NodeProvisioning,
    types: catalog.Types,
) -> Iterator[Violation]:
    """A flexible group takes up to 20 types, with continuous provisioning."""
    if not alternative_instance_types:
        return
    key = "alternative_instance_types"
    if node_provisioning is not NodeProvisioning.CONTINUOUS:
        text = f"{', '.join(alternative_instance_types)}: a group of several types needs continuous provisioning"
        yield Violation(key, text, "write node_provisioning: continuous, or leave the types out")
    if (number := 1 + len(alternative_instance_types)) > 20:
        yield Violation(key, f"{number} types with instance_type: HyperPod takes 20", "leave some out")
    every = [instance_type, *alternative_instance_types]
    for index, name in enumerate(alternative_instance_types):
        where = f"{key}[{index}]"
        if every.index(name) != index + 1:
            yield Violation(where, f"{name} is named twice", "name each type once")
        elif name not in types:
            yield Violation(where, f"{name} is not an instance type of the catalogue", "check the spelling")
        elif not types[name].hyperpod:
            yield Violation(where, f"{name} is not sold for HyperPod", "choose another type")


def _too_many(min_count: int | None, count: int) -> Iterator[Violation]:
    if min_count is not None and not 0 <= min_count <= count:
        yield Violation("min_count", f"{min_count} is not between 0 and count, {count}", "lower it, or raise count")


@rule("HP-05")
def hyperpod_min_count(
    *, orchestrator: Orchestrator, min_count: int | None, count: int, node_provisioning: NodeProvisioning
) -> Iterator[Violation]:
    """The least count of a HyperPod group comes with continuous provisioning, and fits its count."""
    if min_count is None or not orchestrator.hyperpod:
        return
    if node_provisioning is not NodeProvisioning.CONTINUOUS:
        text = f"{min_count} is read with continuous provisioning only, and node_provisioning is {node_provisioning}"
        yield Violation("min_count", text, "leave it out, or write node_provisioning: continuous")
    yield from _too_many(min_count, count)


@rule("PCS-06")
def pcs_min_count(*, orchestrator: Orchestrator, min_count: int | None, count: int) -> Iterator[Violation]:
    """The least count of a PCS group fits its count."""
    yield from _too_many(min_count, count) if orchestrator is Orchestrator.PCS else ()


@rule("FMB-32")
def own_min_count(*, orchestrator: Orchestrator, min_count: int | None, count: int) -> Iterator[Violation]:
    """The least count of a group fits its count."""
    yield from _too_many(min_count, count) if orchestrator in (Orchestrator.EKS, Orchestrator.EC2) else ()


@rule("FMB-48")
def group_ids(*, extra_security_group_ids: Sequence[str]) -> Iterator[Violation]:
    """Security groups are named by their ids, each once; an interface carries five with that of the fabric."""
    given = list(extra_security_group_ids)
    for index, id in enumerate(given):
        key = f"extra_security_group_ids[{index}]"
        if not re.fullmatch(r"sg-[0-9a-f]{8,17}", id):
            yield Violation(key, f"{id} is no id of a security group", "it looks like sg-0123456789abcdef0")
        elif given.index(id) != index:
            yield Violation(key, f"{id} is named twice", "name each group once")
    if len(given) > 4:
        text = f"{len(given)} beside the group of the fabric: an interface carries 5 by default"
        yield Violation("extra_security_group_ids", text, "join some, or suppress this once the quota is raised")


@rule("HP-16")
def deep_checks(
    *, deep_health_checks: Sequence[DeepHealthCheck], every_type: Sequence[str], types: catalog.Types
) -> Iterator[Violation]:
    """Deep health checks are for accelerators, each once."""
    if len(set(deep_health_checks)) != len(deep_health_checks):
        text = f"{', '.join(deep_health_checks)} names a check twice"
        yield Violation("deep_health_checks", text, "name each once")
    for name in every_type if deep_health_checks else ():
        if name in types and not types[name].accelerator_count:
            text = f"{', '.join(deep_health_checks)} cannot be run on {name}, which has no accelerator"
            yield Violation("deep_health_checks", text, "leave it out")


@rule("HP-18")
def hyperpod_image(
    *, orchestrator: Orchestrator, image: Image | None, threads_per_core: int | None
) -> Iterator[Violation]:
    """HyperPod takes an image by its id, and one or two threads per core."""
    if not orchestrator.hyperpod:
        return
    if threads_per_core not in (None, 1, 2):
        yield Violation("threads_per_core", f"{threads_per_core} is neither 1 nor 2", "leave it out, or write 1 or 2")
    for key in sorted(image.model_fields_set - {"id"}) if image else ():
        text = f"{getattr(image, key)} cannot be used by HyperPod, which takes the id of an image"
        yield Violation(f"image.{key}", text, "write image: {id: ami-…}, or leave it out")


# Kubernetes versions that HyperPod takes. Source: the rule.
_HYPERPOD_KUBERNETES = range(30, 36)


@rule("HP-19")
def hyperpod_kubernetes(*, orchestrator: Orchestrator, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """HyperPod takes some Kubernetes versions."""
    version = kubernetes.version if kubernetes and orchestrator is Orchestrator.HYPERPOD_EKS else None
    if version is not None and int(version.removeprefix("1.")) not in _HYPERPOD_KUBERNETES:
        first, last = _HYPERPOD_KUBERNETES[0], _HYPERPOD_KUBERNETES[-1]
        text = f"{version} is not taken by HyperPod: 1.{first} to 1.{last}"
        yield Violation("kubernetes.version", text, "take one of these")


@rule("HP-28")
def tiered_memory(*, tiered_storage: TieredStorage | None) -> Iterator[Violation]:
    """Checkpoints take 0 to 100 per cent of a node's memory."""
    share = tiered_storage.instance_memory_allocation_percentage if tiered_storage else None
    if share is not None and not 0 <= share <= 100:
        key = "tiered_storage.instance_memory_allocation_percentage"
        yield Violation(key, f"{share} is no percentage", "take 0 to 100, or leave it out")


_HYPERPOD = (Orchestrator.HYPERPOD_SLURM, Orchestrator.HYPERPOD_EKS)
# Keys that some orchestrators only have a use for.
_READ_BY: dict[str, tuple[Orchestrator, ...]] = {
    "node_provisioning": _HYPERPOD,
    "node_recovery": _HYPERPOD,
    "lifecycle_scripts": _HYPERPOD,
    "kubernetes": (Orchestrator.HYPERPOD_EKS, Orchestrator.EKS),
    "slurm": (Orchestrator.PCS,),
    "tiered_storage": (Orchestrator.HYPERPOD_EKS,),
    "alternative_instance_types": _HYPERPOD,
    "deep_health_checks": (Orchestrator.HYPERPOD_EKS,),  # AWS describes them for EKS only
    "threads_per_core": _HYPERPOD,
    "instance_refresh": (Orchestrator.EC2,),
    "provisioned_by": (Orchestrator.HYPERPOD_EKS, Orchestrator.EKS),
    "availability_zone": _HYPERPOD,
    "patching": _HYPERPOD,
    "extra_security_group_ids": (Orchestrator.EC2, Orchestrator.EKS, Orchestrator.PCS),
    "image_release_version": (Orchestrator.HYPERPOD_EKS,),
    "access.admins": (Orchestrator.HYPERPOD_EKS, Orchestrator.EKS),
}


@rule("FMB-33")
def keys_of_the_orchestrator(*, orchestrator: Orchestrator, given: Collection[str]) -> Iterator[Violation]:
    """A key that the orchestrator does not read would be ignored in silence."""
    for key in sorted(given):
        if orchestrator not in _READ_BY.get(key, (orchestrator,)):
            text = f"is not read with orchestrator {orchestrator}"
            yield Violation(key, text, f"leave it out: it is for {' and '.join(_READ_BY[key])}")


@rule("FMB-42")
def groups_of_ec2(*, orchestrator: Orchestrator, node_groups: Sequence[Group]) -> Iterator[Violation]:
    """Groups of nodes in your own account: one at least, each with a name of its own and a size."""
    if orchestrator.hyperpod:
        return  # HP-02, HP-13
    if not node_groups:
        yield Violation("node_groups", "is empty", "add one")
    for name, times in Counter(group.name for group in node_groups).items():
        if times > 1:
            yield Violation("node_groups", f"{times} groups are called {name}", "give each a name of its own")
    for index, group in enumerate(node_groups):
        if group.count < 0:
            yield Violation(f"node_groups[{index}].count", f"{group.count} is below 0", "write 0 or more")
        if group.ebs_volume_gib < 1:
            text = f"{group.ebs_volume_gib} is below 1"
            yield Violation(f"node_groups[{index}].ebs_volume_gib", text, "200 or more suits containers")


@rule("FMB-43")
def roles_of_the_orchestrator(*, orchestrator: Orchestrator, role: NodeRole) -> Iterator[Violation]:
    """A role that the orchestrator does not know would be ignored in silence."""
    known = {
        Orchestrator.EC2: (NodeRole.COMPUTE,),
        Orchestrator.PCS: (NodeRole.COMPUTE, NodeRole.LOGIN),  # the controller is the service's
    }.get(orchestrator, (NodeRole.COMPUTE, NodeRole.SYSTEM))
    if orchestrator is not Orchestrator.HYPERPOD_SLURM and role not in known:
        text = f"{role} is not read with orchestrator {orchestrator}"
        yield Violation("role", text, f"use {' or '.join(known)}")


@rule("HP-22")
def addresses_at_most(
    *, orchestrator: Orchestrator, node_groups: Sequence[Wired], types: catalog.Types, subnet_size: int
) -> Iterator[Violation]:
    """How many addresses a HyperPod node takes AWS says for P5 only; one per interface is the most."""
    if not orchestrator.hyperpod:
        return
    most = 0
    for group in node_groups:
        found = [types[name] for name in group.every_type if name in types]
        each = max((kind.max_efa_interfaces + 1 for kind in found), default=1)
        most += max(group.count, 0) * (each if group.instance_type != "p5.48xlarge" else 1)
    if most > (usable := subnet_size - 5):
        text = f"{most} addresses are the most that the nodes can take, and {usable} are usable: AWS gives no number"
        yield Violation("node_groups", text, "use a larger network.cidr unless you have seen it work")


@rule("FMB-44")
def interfaces_of_pcs(
    *,
    orchestrator: Orchestrator,
    efa: Efa,
    network_interfaces: Sequence[NetworkInterface],
    instance_type: str,
    types: catalog.Types,
) -> Iterator[Violation]:
    """PCS's guide shows efa interfaces; one of AWS's samples says that efa-only is refused there (PCS-08)."""
    if orchestrator is not Orchestrator.PCS or instance_type not in types:
        return
    found = network_interfaces or _interfaces_of_pcs(types[instance_type], efa)
    if any(one.interface_type is NetworkInterfaceType.EFA_ONLY for one in found):
        key = "network_interfaces" if network_interfaces else "efa.interface_type" if efa.interface_type else "efa"
        text = f"efa-only on {instance_type}: PCS's guide shows efa, and a sample of AWS says that efa-only is refused"
        yield Violation(key, text, "use another orchestrator unless you have seen it work")


@rule("HP-11")
def roles(*, node_groups: Sequence[Group]) -> Iterator[Violation]:
    """Slurm has exactly one controller, of one node, and something to compute on."""
    controllers = [(index, group) for index, group in enumerate(node_groups) if group.role is NodeRole.CONTROLLER]
    if len(controllers) != 1:
        names = ", ".join(group.name for _, group in controllers) or "none"
        text = f"{len(controllers)} groups have role controller ({names}): Slurm takes exactly one"
        yield Violation("node_groups", text, "give one group role: controller")
    for index, group in controllers:
        if group.count != 1:
            text = f"{group.count} controllers in {group.name}: Slurm takes exactly one"
            yield Violation(f"node_groups[{index}].count", text, "write count: 1")
    for index, group in enumerate(node_groups):
        if group.role is NodeRole.SYSTEM:
            text = f"{group.name} has role system, which belongs to Kubernetes"
            yield Violation(f"node_groups[{index}].role", text, "use controller, login or compute")
    logins = [group.name for group in node_groups if group.role is NodeRole.LOGIN]
    if len(logins) > 1:
        text = f"{len(logins)} groups have role login ({', '.join(logins)}): HyperPod takes one at most"
        yield Violation("node_groups", text, "join them")
    if not any(group.role is NodeRole.COMPUTE for group in node_groups):
        yield Violation("node_groups", "no group has role compute", "add one with role: compute")


@rule("HP-12")
def continuous_slurm(*, node_provisioning: NodeProvisioning) -> Iterator[Violation]:
    """AWS's own texts disagree whether Slurm takes continuous provisioning."""
    if node_provisioning is NodeProvisioning.CONTINUOUS:
        text = "the API text says that continuous is for EKS only, the HyperPod guide allows it with Slurm"
        hint = "use standard where you do without accounting_database, or see it work in your account first"
        yield Violation("node_provisioning", text, hint)


@rule("HP-13")
def ebs(*, ebs_volume_gib: int) -> Iterator[Violation]:
    """The second volume is 1 to 16384 GB."""
    if not 1 <= ebs_volume_gib <= 16384:
        yield Violation(
            "ebs_volume_gib", f"{ebs_volume_gib} is not between 1 and 16384", "200 or more suits containers"
        )


@rule("X-02")
def no_ec2_capacity(
    *,
    capacity_mode: CapacityMode,
    placement_mode: PlacementMode,
    placement_group_name: str | None,
) -> Iterator[Violation]:
    """HyperPod nodes run in a service account: reservations, blocks and placement groups do not reach them."""
    if capacity_mode in (CapacityMode.ODCR, CapacityMode.CAPACITY_BLOCK):
        text = f"{capacity_mode} cannot be used by HyperPod: its nodes run in an AWS account, out of reach of yours"
        yield Violation("capacity.mode", text, "buy a SageMaker training plan (mode: training_plan), or use on_demand")
    if placement_mode not in (PlacementMode.AUTO, PlacementMode.NONE):
        text = f"{placement_mode} cannot be used by HyperPod, which places nodes itself"
        yield Violation("placement.mode", text, "write placement: auto")
    if placement_group_name is not None:
        text = f"{placement_group_name} cannot be used by HyperPod, which places nodes itself"
        yield Violation("placement.group_name", text, "leave it out")


@rule("FMB-16")
def efa_stays(*, efa: Efa, network_interfaces: Sequence[NetworkInterface]) -> Iterator[Violation]:
    """HyperPod attaches the EFA interfaces of a type itself, all of them, in its own layout."""
    if efa.mode is EfaMode.NONE:
        text = "none cannot be had on HyperPod, which attaches every EFA interface of the type"
        yield Violation("efa.mode", text, "leave it out, or choose a type without EFA")
    for key in ("count", "profile", "secondary_device_index"):  # efa or efa-only can be had (HP-30)
        if getattr(efa, key) is not None:
            text = f"{getattr(efa, key)} cannot be chosen on HyperPod, which lays the interfaces out itself"
            yield Violation(f"efa.{key}", text, "leave it out")
    if network_interfaces:
        text = f"{len(network_interfaces)} interfaces cannot be chosen on HyperPod, which lays them out itself"
        yield Violation("network_interfaces", text, "leave it out")


@rule("X-04")
def one_zone(*, instance_types: Sequence[str], subnet_count: int, types: catalog.Types) -> Iterator[Violation]:
    """Nodes that talk over EFA stand in one subnet: HyperPod spreads a group over all it is given."""
    with_efa = [name for name in instance_types if (found := types.get(name)) and found.max_efa_interfaces]
    if with_efa and subnet_count > 1:
        text = f"{subnet_count} subnets for {', '.join(sorted(set(with_efa)))}, whose EFA traffic stays in one zone"
        yield Violation("subnets", text, "pass exactly one subnet")


def _far(lustre_zone: str | None, node_zones: Sequence[str | None]) -> Iterator[str]:
    """What is wrong when no node stands in the file system's zone; nothing where zones cannot be compared."""
    lustre = catalog.parse_zone(lustre_zone or "")
    nodes = [catalog.parse_zone(zone or "") for zone in node_zones]
    # us-west-2a and usw2-az2 can be the same zone.
    if lustre and nodes and all(zone and (zone.kind, zone.by_id) == (lustre.kind, lustre.by_id) for zone in nodes):
        where = sorted({zone.text for zone in nodes if zone})
        if lustre.text not in where:
            yield f"stands in {lustre.text}, the nodes in {', '.join(where)}"


@rule("X-05")
def lustre_in_reach_of_efa(
    *, lustre_zone: str | None, node_zones: Sequence[str | None], efa_enabled: bool
) -> Iterator[Violation]:
    """EFA traffic does not leave its zone, that of Lustre neither."""
    for text in _far(lustre_zone, node_zones) if efa_enabled else ():
        yield Violation("file_system", f"{text}: its EFA traffic does not get there", "put both in one zone")


@rule("FSX-26")
def lustre_near(*, lustre_zone: str | None, node_zones: Sequence[str | None], efa_enabled: bool) -> Iterator[Violation]:
    """A file system in another zone than its clients costs traffic and time on every read."""
    for text in () if efa_enabled else _far(lustre_zone, node_zones):
        yield Violation("file_system", f"{text}: every read pays for the way", "put both in one zone")


@rule("TP-03")
def plan_type(*, capacity_mode: CapacityMode, instance_type: str, types: catalog.Types) -> Iterator[Violation]:
    """Training plans are sold for accelerator types."""
    found = types.get(instance_type)
    if capacity_mode is CapacityMode.TRAINING_PLAN and found is not None and found.training_plans is False:
        text = f"training plans are not listed for {instance_type}"
        yield Violation("instance_type", text, "check the plan's type, or use on_demand")


def addresses_per_node(orchestrator: Orchestrator, group: Wired, types: catalog.Types) -> int:
    """Addresses that a node takes at least: on P5 of HyperPod what AWS says (HP-22), else one per ENA interface."""
    if orchestrator.hyperpod:
        if "p5.48xlarge" in group.every_type:
            return 81 if orchestrator.kubernetes else 32
        return 1
    pods = POD_ADDRESSES if orchestrator is Orchestrator.EKS else 0
    return interface_addresses(interfaces_of(orchestrator, group, types)) + pods


def interfaces_of(orchestrator: Orchestrator, group: Wired, types: catalog.Types) -> tuple[NetworkInterface, ...]:
    """The interfaces of a node of a group; none where its type is not known."""
    found = types.get(group.instance_type)
    if found is None:
        return tuple(group.network_interfaces)
    return laid_out(orchestrator, found, group.efa, group.network_interfaces)


def laid_out(
    orchestrator: Orchestrator, kind: catalog.InstanceType, efa: Efa, written: Sequence[NetworkInterface]
) -> tuple[NetworkInterface, ...]:
    """The interfaces of a node of your own: those that were written, else those of the catalogue."""
    if written:
        return tuple(written)
    return _interfaces_of_pcs(kind, efa) if orchestrator is Orchestrator.PCS else layout(kind, efa)


def _interfaces_of_pcs(kind: catalog.InstanceType, efa: Efa) -> tuple[NetworkInterface, ...]:
    # The odd cards of p6e-gb200 take efa-only and nothing else (EFA-27).
    if efa.interface_type is None and not kind.name.startswith("p6e-gb200."):
        efa = efa.model_copy(update={"interface_type": InterfaceType.EFA})
    return layout(kind, efa)


@rule("NET-02")
def addresses(
    *,
    orchestrator: Orchestrator,
    node_groups: Sequence[Wired],
    types: catalog.Types,
    storage_addresses: int,
    others: Mapping[str, int],
    zone: str,
    subnet_size: int,
) -> Iterator[Violation]:
    """The private subnet of a zone has an address for what every node there takes at least."""
    per_group = {
        group.name: group.count * addresses_per_node(orchestrator, group, types)
        for group in node_groups
        if group.count > 0
    }
    if storage_addresses:
        per_group["file systems"] = storage_addresses
    per_group |= {f"the groups of {cluster}": number for cluster, number in others.items() if number}
    # EC2 keeps five addresses of every subnet.
    if (needed := sum(per_group.values())) > (usable := subnet_size - 5):
        listed = ", ".join(f"{name} {number}" for name, number in per_group.items())
        text = f"{needed} addresses ({listed}) do not fit the {usable} of the private subnet in {zone}"
        yield Violation("node_groups", text, "use a larger network.cidr, or fewer nodes")


_NO_HYPERPOD = frozenset(
    {
        "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
        "ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-2", "eu-south-1", "eu-west-3", "il-central-1",
        "me-central-1", "mx-central-1", "us-gov-east-1", "us-gov-west-1",
    }
)  # fmt: skip


@rule("HP-29")
def hyperpod_region(*, orchestrator: Orchestrator, region: str | None) -> Iterator[Violation]:
    """HyperPod clusters exist in some Regions only; the list moves, so this is a warning."""
    if orchestrator.hyperpod and region in _NO_HYPERPOD:
        yield Violation("region", f"AWS::SageMaker::Cluster is not listed for {region}", "check, or move the project")


@rule("FMB-19")
def spot_for_work_only(*, role: NodeRole, capacity_mode: CapacityMode) -> Iterator[Violation]:
    """A controller that is taken away takes the scheduler with it."""
    if capacity_mode is CapacityMode.SPOT and role is not NodeRole.COMPUTE:
        yield Violation("capacity.mode", f"spot nodes can be taken away, and role {role} cannot", "use on_demand")


@rule("FMB-28")
def spot_of_hyperpod(
    *, orchestrator: Orchestrator, node_provisioning: NodeProvisioning, capacity_mode: CapacityMode
) -> Iterator[Violation]:
    """AWS describes spot groups for EKS with continuous provisioning; about Slurm it says nothing."""
    if capacity_mode is not CapacityMode.SPOT or not orchestrator.hyperpod:
        return
    if not orchestrator.kubernetes:
        text = "AWS describes spot groups of HyperPod for EKS only, and says nothing about Slurm"
        yield Violation("capacity.mode", text, "use on_demand or a training plan unless you have seen it work")
    elif node_provisioning is not NodeProvisioning.CONTINUOUS:
        text = f"AWS describes spot groups with continuous provisioning, and node_provisioning is {node_provisioning}"
        yield Violation("capacity.mode", text, "write node_provisioning: continuous")


_PLAN = r"arn:aws[a-z\-]*:sagemaker:(?P<region>[a-z0-9\-]*):(?P<account>[0-9]{12}):training-plan/.*"


@rule("TP-01")
def training_plan(
    *, capacity_mode: CapacityMode, training_plan_arn: str | None, region: str | None, account: str | None
) -> Iterator[Violation]:
    """A training plan is named by its ARN, of the Region and account the cluster stands in."""
    key = "capacity.training_plan_arn"
    if capacity_mode is not CapacityMode.TRAINING_PLAN:
        if training_plan_arn is not None:
            yield Violation(key, f"is given, but the mode is {capacity_mode}", "write mode: training_plan")
        return
    if training_plan_arn is None:
        yield Violation(key, "is required with mode training_plan", "give the plan's ARN")
        return
    found = re.fullmatch(_PLAN, training_plan_arn)
    if found is None or not 50 <= len(training_plan_arn) <= 2048:
        hint = "it looks like arn:aws:sagemaker:<region>:<account>:training-plan/<name>"
        yield Violation(key, f"{training_plan_arn} is not the ARN of a training plan", hint)
        return
    if region is not None and found["region"] != region:
        text = f"the plan is in {found['region']}, the cluster in {region}"
        yield Violation(key, text, "a plan serves its own region only")
    if account is not None and found["account"] != account:
        text = f"the plan belongs to {found['account']}, the cluster to {account}"
        yield Violation(key, text, "plans cannot be shared")


@rule("HP-08")
def scripts(*, path: str, on_init_complete: str) -> Iterator[Violation]:
    """The folder exists and holds the script that is to be started."""
    folder = Path(path)
    if not folder.is_dir():
        yield Violation("path", f"{path} is not a folder", "give a folder, relative to the project file")
    elif not (folder / on_init_complete).resolve().is_relative_to(folder.resolve()):
        text = f"{on_init_complete} lies outside {path}, so it would not reach the nodes"
        yield Violation("on_init_complete", text, "name a script of the folder")
    elif not (folder / on_init_complete).is_file():
        yield Violation("on_init_complete", f"{folder / on_init_complete} is not a file", "name a script of the folder")
    if not 1 <= len(on_init_complete) <= 128:
        yield Violation(
            "on_init_complete", f"{len(on_init_complete)} characters: 1 to 128 are taken", "rename the file"
        )


@rule("HP-01")
def group_name(*, name: str) -> Iterator[Violation]:
    """Group names are what HyperPod takes; dots, which partition names refuse too, are out."""
    if not re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9])*", name) or len(name) > 63:
        text = f"{name} is no group name: 1 to 63 letters, digits and inner hyphens"
        yield Violation("name", text, "rename the group")


@rule("FMB-116")
def partition_name(*, orchestrator: Orchestrator, name: str) -> Iterator[Violation]:
    """A group's partition has its name, and Slurm takes ``default``, in any case, for what holds for all partitions."""
    if orchestrator is Orchestrator.HYPERPOD_SLURM and name.lower() == "default":
        text = f"{name} names no partition in slurm.conf, but the defaults of all"
        yield Violation("name", text, "rename the group")


@rule("HP-09")
def vpc_config(*, subnet_count: int, security_group_count: int) -> Iterator[Violation]:
    """A cluster stands in 1 to 16 subnets, and its nodes carry 1 to 5 groups."""
    if not 1 <= subnet_count <= 16:
        yield Violation("subnets", f"{subnet_count} subnets: HyperPod takes 1 to 16", "pass private subnets")
    if not 1 <= security_group_count <= 5:
        yield Violation("security_groups", f"{security_group_count} groups: HyperPod takes 1 to 5", "pass 1 to 5")


@rule("FMB-12")
def volume_key(*, node_provisioning: NodeProvisioning, volume_kms_key_given: bool) -> Iterator[Violation]:
    """Customer keys for volumes come with continuous provisioning only."""
    if volume_kms_key_given and node_provisioning is not NodeProvisioning.CONTINUOUS:
        text = f"cannot be used with node_provisioning {node_provisioning}"
        yield Violation("volume_kms_key", text, "leave it out: HyperPod then encrypts with a key that AWS owns")


@rule("FMB-18")
def scripts_beside(*, scripts: str) -> Iterator[Violation]:
    """The folder stands beside the project file: everything in it is uploaded."""
    if "://" in scripts:
        yield Violation("path", f"{scripts} is an address", "give a folder beside the project file: it is uploaded")
    elif Path(scripts).is_absolute() or ".." in Path(scripts).parts:
        yield Violation("path", f"{scripts} is not below the project file's folder", "move the scripts beside the file")


@rule("FMB-23")
def chart_is_there(*, orchestrator: Orchestrator, chart: str) -> Iterator[Violation]:
    """HyperPod's own chart is in a repository of AWS only: it is fetched before the first synth."""
    if orchestrator is Orchestrator.HYPERPOD_EKS and not (Path(chart) / "Chart.yaml").is_file():
        text = f"{chart} holds no chart, and HyperPod's nodes need its health agents"
        yield Violation(
            "kubernetes.dependency_chart.path", text, "run `fmblocks chart pull FILE` where git and helm are"
        )


def refuse_without_chart(chart: str) -> None:
    """What FMB-23 advises in a project file, where nothing goes on without it.

    Raises:
        FindingsError: always.
    """
    told = {"orchestrator": Orchestrator.HYPERPOD_EKS, "chart": chart}
    raise FindingsError(replace(one, severity=Severity.ERROR) for one in check(("FMB-23",), told))


@rule("FMB-100")
def values_of_the_chart(*, chart: str, chart_values: Mapping[str, object] | None) -> Iterator[Violation]:
    """Values are those that the chart has: Helm ignores any other key."""
    if chart_values is None or not (Path(chart) / "Chart.yaml").is_file():
        return  # FMB-23
    for key in unknown_values(Path(chart), chart_values):
        text = f"{key} is no value of the chart in {chart}, which would ignore it"
        yield Violation("kubernetes.dependency_chart.values", text, "check its values.yaml")


# Of the schedule of updates (CloudFormation, ScheduledUpdateConfig).
_CRON = (
    r"cron\((?:[0-5][0-9]|[0-9]|) (?:[01][0-9]|2[0-3]|[0-9]) (?:[1-9]|0[1-9]|[12][0-9]|3[01]|\?)"
    r" (?:[1-9]|0[1-9]|1[0-2]|\*|\*/(?:[1-9]|1[0-2])|)"
    r" (?:MON|TUE|WED|THU|FRI|SAT|SUN|[1-7]|\?|L|(?:[1-7]#[1-5])|(?:[1-7]L)) (?:20[2-9][0-9]|\*|)\)"
)


class Patched(Protocol):
    """What the rules look at in a patching."""

    @property
    def strategy(self) -> PatchingStrategy | None: ...
    @property
    def schedule(self) -> str | None: ...
    @property
    def batch_count(self) -> int | None: ...
    @property
    def batch_percentage(self) -> int | None: ...
    @property
    def wait_seconds(self) -> int | None: ...
    @property
    def rollback_alarms(self) -> Sequence[object]: ...


@rule("FMB-96")
def patching_fits(*, orchestrator: Orchestrator, patching: Patched | None) -> Iterator[Violation]:
    """Nodes are patched once idle or by the clock, in batches that HyperPod takes."""
    if patching is None or not orchestrator.hyperpod:
        return  # FMB-33
    if patching.strategy is not None and not orchestrator.kubernetes:
        text = f"{patching.strategy} is for clusters with EKS"
        yield Violation("patching.strategy", text, "write schedule: cron(30 3 ? * SUN *), or leave it out")
    if (patching.strategy is None) == (patching.schedule is None):
        yield Violation("patching", "takes strategy or schedule, one of the two", "write strategy: when_idle")
    if patching.schedule is not None and not re.fullmatch(_CRON, patching.schedule):
        text = f"{patching.schedule} is no time that HyperPod takes"
        yield Violation("patching.schedule", text, "write one like cron(30 3 ? * SUN *), in UTC")
    if patching.batch_count is not None and patching.batch_percentage is not None:
        yield Violation("patching.batch_percentage", "is given beside batch_count", "keep one of the two")
    if patching.batch_count is not None and patching.batch_count < 1:
        yield Violation("patching.batch_count", f"{patching.batch_count} is below 1", "write 1 or more")
    if patching.batch_percentage is not None and not 1 <= patching.batch_percentage <= 100:
        yield Violation("patching.batch_percentage", f"{patching.batch_percentage} is no percentage", "take 1 to 100")
    if patching.wait_seconds is not None and not 0 <= patching.wait_seconds <= 3600:
        yield Violation("patching.wait_seconds", f"{patching.wait_seconds} is not between 0 and 3600", "wait less")
    if (number := len(patching.rollback_alarms)) > 10:
        yield Violation("patching.rollback_alarms", f"{number} alarms: HyperPod takes 10", "name fewer")


@rule("FMB-97")
def keys_of_hyperpod(*, orchestrator: Orchestrator, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """What HyperPod brings is for HyperPod, each once; its task governance is a Kueue of its own."""
    if kubernetes is None:
        return
    given = kubernetes.model_fields_set
    for key in ("hyperpod_add_ons", "dependency_chart") if orchestrator is Orchestrator.EKS else ():
        if key in given and getattr(kubernetes, key):
            text = f"is not read with orchestrator {orchestrator}"
            yield Violation(f"kubernetes.{key}", text, "leave it out: it is for hyperpod-eks")
    brought = {HYPERPOD_ADD_ONS[one] for one in kubernetes.hyperpod_add_ons}
    for at, add_on in enumerate(kubernetes.add_ons):
        if add_on.name in set(HYPERPOD_ADD_ONS.values()) - brought:
            text = f"{add_on.name} is not among hyperpod_add_ons, without which nothing waits for its nodes"
            yield Violation(f"kubernetes.add_ons[{at}].name", text, "add it there; here stands its version")
    for at, one in enumerate(kubernetes.hyperpod_add_ons):
        if kubernetes.hyperpod_add_ons.index(one) != at:
            yield Violation(f"kubernetes.hyperpod_add_ons[{at}]", f"{one} is named twice", "name each once")
    if kubernetes.kueue and HyperPodAddOn.TASK_GOVERNANCE in kubernetes.hyperpod_add_ons:
        text = "true, but task_governance brings a Kueue of its own, and two answer each other's jobs"
        yield Violation("kubernetes.kueue", text, "leave it out, or take task_governance out of hyperpod_add_ons")


@rule("FMB-98")
def zone_of_the_group(*, availability_zone: str | None, availability_zones: Sequence[str]) -> Iterator[Violation]:
    """A group stands in a zone of the network: it has a private subnet there."""
    if availability_zone is not None and availability_zone not in availability_zones:
        text = f"{availability_zone} is not among network.availability_zones ({', '.join(availability_zones)})"
        yield Violation("availability_zone", text, "add it there, or take one of these")


@rule("FMB-99")
def karpenter_of_hyperpod(
    *,
    orchestrator: Orchestrator,
    node_groups: Sequence[OfEks],
    node_provisioning: NodeProvisioning,
    node_recovery: NodeRecovery,
) -> Iterator[Violation]:
    """HyperPod's Karpenter needs continuous provisioning and automatic recovery."""
    pools = [group.name for group in node_groups if group.provisioned_by is Provisioner.KARPENTER]
    if orchestrator is not Orchestrator.HYPERPOD_EKS or not pools:
        return
    if len(pools) > 10:
        text = f"{len(pools)} groups are started by Karpenter ({', '.join(pools)}), and it knows 10"
        yield Violation("node_groups", text, "join some")
    if node_provisioning is not NodeProvisioning.CONTINUOUS:
        text = f"{node_provisioning}, and Karpenter starts nodes of {', '.join(pools)} with continuous only"
        yield Violation("node_provisioning", text, "leave it out")
    if node_recovery is not NodeRecovery.AUTOMATIC:
        text = f"{node_recovery}, and Karpenter starts nodes of {', '.join(pools)} with automatic recovery only"
        yield Violation("node_recovery", text, "leave it out")


@rule("FMB-101")
def karpenter_group_of_hyperpod(
    *,
    orchestrator: Orchestrator,
    provisioned_by: Provisioner,
    capacity: Capacity,
    min_count: int | None,
    alternative_instance_types: Sequence[str],
    deep_health_checks: Sequence[DeepHealthCheck],
    every_type: Sequence[str],
    types: catalog.Types,
) -> Iterator[Violation]:
    """HyperPod's Karpenter starts nodes on demand, of x86 types, that are not tried first."""
    if orchestrator is not Orchestrator.HYPERPOD_EKS or provisioned_by is not Provisioner.KARPENTER:
        return
    if capacity.mode is not CapacityMode.ON_DEMAND:
        text = f"{capacity.mode} cannot be used with provisioned_by karpenter, which starts nodes on demand only"
        yield Violation("capacity.mode", text, "leave provisioned_by out for this group")
    if min_count is not None:
        text = f"{min_count} is not read with provisioned_by karpenter: nodes come when pods ask for them"
        yield Violation("min_count", text, "leave it out")
    if alternative_instance_types:
        text = (
            f"{', '.join(alternative_instance_types)} cannot be used with provisioned_by karpenter: a pool has one type"
        )
        yield Violation("alternative_instance_types", text, "leave it out, or make a group of each")
    if deep_health_checks:
        text = f"{', '.join(deep_health_checks)} cannot be used with provisioned_by karpenter"
        yield Violation("deep_health_checks", text, "leave it out")
    for name in every_type:
        if name in types and types[name].architecture == "arm64":
            text = f"{name} is of ARM, which HyperPod's Karpenter does not start"
            yield Violation("provisioned_by", text, "leave it out for this group")


# Where the chart's health agent has an image. Source: the rule.
_AGENT_REGIONS = frozenset(
    {
        "ap-northeast-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "eu-central-1", "eu-north-1", "eu-west-1",
        "eu-west-2", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
    }
)  # fmt: skip


@rule("FMB-112")
def nodes_of_add_ons(
    *, orchestrator: Orchestrator, kubernetes: Kubernetes | None, node_groups: Sequence[Checked]
) -> Iterator[Violation]:
    """HyperPod's add-ons need a node that runs within the hour: not asked for by pods, and not tried first."""
    if orchestrator is not Orchestrator.HYPERPOD_EKS or kubernetes is None or not kubernetes.hyperpod_add_ons:
        return
    soon = [
        group
        for group in node_groups
        if group.role is not NodeRole.SYSTEM
        and group.count > 0
        and group.provisioned_by is not Provisioner.KARPENTER
        and not group.deep_health_checks
    ]
    if not soon:
        names = ", ".join(kubernetes.hyperpod_add_ons)
        text = f"{names} are installed on a node of HyperPod, and none runs within the hour that CloudFormation waits"
        hint = "add a small group: count 1 or more, not by karpenter, without deep_health_checks"
        yield Violation("kubernetes.hyperpod_add_ons", text, hint)


@rule("FMB-113")
def chart_beside(*, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """The folder of the chart stands below the project file's: what is in it is replaced."""
    path = Path(kubernetes.dependency_chart.path) if kubernetes else Path("x")
    if path.is_absolute() or ".." in path.parts or not path.parts:
        text = f"{path} is not below the project file's folder, and `fmblocks chart pull` replaces it"
        yield Violation("kubernetes.dependency_chart.path", text, "write one like charts/hyperpod")


@rule("FMB-114")
def images_of_the_chart(*, orchestrator: Orchestrator, closed: bool) -> Iterator[Violation]:
    """HyperPod's chart brings images of public registries, which no mirror of ours stands for."""
    if closed and orchestrator is Orchestrator.HYPERPOD_EKS:
        text = "is 0, and parts of HyperPod's chart pull images from public registries"
        hint = "mirror them and name them in kubernetes.dependency_chart.values"
        yield Violation("network.nat_gateways", text, hint)


@rule("FMB-115")
def lustre_of_restricted_groups(*, capacity_gib: int, throughput: int) -> Iterator[Violation]:
    """HyperPod makes the file system of a restricted group, of some sizes."""
    if not 1200 <= capacity_gib <= 100800:
        text = f"{capacity_gib} is not between 1200 and 100800"
        yield Violation("lustre_capacity_gib", text, "change it")
    if not 125 <= throughput <= 1000:
        yield Violation("lustre_throughput_mbps_per_tib", f"{throughput} is not between 125 and 1000", "change it")


@rule("FMB-102")
def agent_region(*, orchestrator: Orchestrator, region: str | None) -> Iterator[Violation]:
    """The chart's health agent has an image in some Regions; the list moves, so this is a warning."""
    if orchestrator is Orchestrator.HYPERPOD_EKS and region is not None and region not in _AGENT_REGIONS:
        text = f"the chart's health agent is not listed for {region}, whose nodes would have none"
        yield Violation("region", text, "check the chart's image map, or set health-monitoring-agent.hmaimage")


# Where quotas and scheduler policies exist. Source: the rule.
_GOVERNED_REGIONS = frozenset(
    {
        "ap-northeast-1", "ap-south-1", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "eu-central-1",
        "eu-north-1", "eu-south-2", "eu-west-1", "eu-west-2", "sa-east-1", "us-east-1", "us-east-2", "us-west-1",
        "us-west-2",
    }
)  # fmt: skip


@rule("FMB-107")
def governed_region(*, kubernetes: Kubernetes | None, region: str | None) -> Iterator[Violation]:
    """Task governance exists in some Regions; the list moves, so this is a warning."""
    asked = kubernetes is not None and HyperPodAddOn.TASK_GOVERNANCE in kubernetes.hyperpod_add_ons
    if asked and region is not None and region not in _GOVERNED_REGIONS:
        text = f"AWS::SageMaker::ComputeQuota is not listed for {region}"
        yield Violation("region", text, "check, or take task_governance out of hyperpod_add_ons")


@rule("FMB-109")
def accounting_of_slurm(
    *, orchestrator: Orchestrator, node_provisioning: NodeProvisioning, accounting_database_given: bool
) -> Iterator[Violation]:
    """HyperPod takes a database for Slurm's accounting with continuous provisioning only."""
    if not accounting_database_given:
        return
    key = "storage.accounting_database"
    if orchestrator is not Orchestrator.HYPERPOD_SLURM:
        text = f"is not read with orchestrator {orchestrator}"
        yield Violation(key, text, "leave it out: it is for hyperpod-slurm; PCS keeps its own")
    elif node_provisioning is not NodeProvisioning.CONTINUOUS:
        text = f"needs continuous provisioning, and node_provisioning is {node_provisioning}"
        yield Violation(key, text, "write node_provisioning: continuous, or leave it out")


# Zone ids in which EKS puts no control plane. Source: the rule.
_NO_CONTROL_PLANE = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})


def control_plane_zones_among(zones: Sequence[str]) -> list[str]:
    """The zones that take an EKS control plane."""
    local = {zone for zone in zones if (parsed := catalog.parse_zone(zone)) and parsed.kind == "local"}
    return [zone for zone in zones if zone not in _NO_CONTROL_PLANE | local]


@rule("EKS-01")
def control_plane_zones(*, orchestrator: Orchestrator, availability_zones: Sequence[str]) -> Iterator[Violation]:
    """An EKS control plane needs two zones that take one; nodes may stay in one of them."""
    if not orchestrator.kubernetes:
        return
    usable = control_plane_zones_among(availability_zones)
    if len(usable) < 2:
        without = sorted(set(availability_zones) - set(usable))
        because = f", and {', '.join(without)} takes no control plane" if without else ""
        text = f"{len(availability_zones)} zones{because}: {orchestrator} needs two"
        yield Violation("network.availability_zones", text, "add a zone; nodes stay in the primary one")


@rule("EKS-03")
def service_cidr(*, kubernetes: Kubernetes | None, cidr: str) -> Iterator[Violation]:
    """Services have private addresses of their own, beside those of the VPC."""
    given = kubernetes.service_cidr if kubernetes else None
    if given is None:
        return
    key, network, vpc = "kubernetes.service_cidr", parse_cidr(given), parse_cidr(cidr)
    if network is None or not 12 <= network.prefixlen <= 24 or not any(network.subnet_of(one) for one in RFC_1918):
        listed = ", ".join(map(str, RFC_1918))
        text = f"{given} is no /12 to /24 inside {listed}"
        yield Violation(key, text, "write one like 172.20.0.0/16, or leave it out")
    elif vpc is not None and network.overlaps(vpc):
        yield Violation(key, f"{given} overlaps the VPC, {cidr}", "take another range, or leave it out")


_SERVICE_CIDRS = ("172.20.0.0/16", "10.100.0.0/16")


def service_cidr_beside(vpc_cidr: str | None) -> str:
    """One of the ranges that EKS chooses from, beside the VPC's; nodes with an image of their own have to know it."""
    vpc = parse_cidr(vpc_cidr) if vpc_cidr else None
    return next(one for one in _SERVICE_CIDRS if vpc is None or not vpc.overlaps(ipaddress.IPv4Network(one)))


@rule("FMB-78")
def public_endpoint(*, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """A public endpoint says who reaches it, as ranges of addresses."""
    if kubernetes is None:
        return
    key, given = "kubernetes.public_access_cidrs", kubernetes.public_access_cidrs
    if kubernetes.endpoint is EndpointAccess.PRIVATE:
        if given:
            hint = "leave it out, or write endpoint: public_and_private"
            yield Violation(key, f"{', '.join(given)} reach nothing: the endpoint is private", hint)
        return
    if not given:
        yield Violation(key, "is required with a public endpoint", "give the ranges of those who use kubectl")
    for at, one in enumerate(given):
        if parse_cidr(one) is None or "/" not in one:
            yield Violation(f"{key}[{at}]", f"{one} is no IPv4 range", "write one like 203.0.113.0/24")
        elif one == "0.0.0.0/0":
            yield Violation(f"{key}[{at}]", f"{one} is everybody", "give the ranges of those who use kubectl")


_ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+"
_PRINCIPAL = _ROLE.replace("role", "(role|user)")


@rule("FMB-79")
def admins_are_principals(*, admins: Sequence[str]) -> Iterator[Violation]:
    """Access entries are for IAM roles and users, each once."""
    for at, arn in enumerate(admins):
        if not re.fullmatch(_PRINCIPAL, arn):
            text = f"{arn} is the ARN of no IAM role or user"
            yield Violation(f"access.admins[{at}]", text, "it looks like arn:aws:iam::111122223333:role/Admin")
        elif admins.index(arn) != at:
            yield Violation(f"access.admins[{at}]", f"{arn} is named twice", "name each once")


@rule("FMB-80")
def somebody_gets_in(*, orchestrator: Orchestrator, admins: Sequence[str]) -> Iterator[Violation]:
    """Without an access entry nobody reaches the Kubernetes API, whoever deployed the cluster."""
    if orchestrator.kubernetes and not admins:
        yield Violation("access.admins", "is empty, so that nobody can use kubectl", "add access: {admins: [arn:…]}")


@rule("FMB-81")
def add_ons_pinned(*, orchestrator: Orchestrator, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """Add-ons have a version of their own for each Kubernetes version."""
    version = kubernetes.version if kubernetes and orchestrator.kubernetes else None
    if version is None or version in pinned_kubernetes():
        return
    named = {one.name for one in kubernetes.add_ons if one.version} if kubernetes else set()
    if left := [name for name in ADD_ONS if name not in named]:
        text = f"{version} has no pinned version of {', '.join(left)}: EKS takes its default of the day it is created"
        hint = f"take {' or '.join(pinned_kubernetes())}, or add them to add_ons"
        package = f"aws-cdk.lambda-layer-kubectl-v{version.removeprefix('1.')}"
        yield Violation("kubernetes.version", text, f"{hint} and install {package}, its kubectl")


@rule("FMB-82")
def add_ons_once(*, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """An add-on is named once; a role goes to a service account."""
    names = [one.name for one in kubernetes.add_ons] if kubernetes else []
    for at, one in enumerate(kubernetes.add_ons if kubernetes else ()):
        key = f"kubernetes.add_ons[{at}]"
        if names.index(one.name) != at:
            yield Violation(f"{key}.name", f"{one.name} is named twice", "name each once")
        if (one.role_arn is None) != (one.service_account is None):
            text = "role_arn and service_account go together"
            yield Violation(key, text, "give both, or none")
        if one.role_arn is not None and not re.fullmatch(_ROLE, one.role_arn):
            text = f"{one.role_arn} is the ARN of no IAM role"
            yield Violation(f"{key}.role_arn", text, "it looks like arn:aws:iam::111122223333:role/Name")
        if one.version is not None and not re.fullmatch(ADD_ON_VERSION, one.version):
            yield Violation(f"{key}.version", f"{one.version} is no version", "it looks like v1.2.3-eksbuild.1")


@rule("FMB-83")
def system_nodes(
    *, orchestrator: Orchestrator, node_groups: Sequence[OfEks], types: catalog.Types
) -> Iterator[Violation]:
    """One group of an EKS cluster has role system: it has nodes, and no accelerators."""
    if not orchestrator.kubernetes:
        return
    found = [(index, group) for index, group in enumerate(node_groups) if group.role is NodeRole.SYSTEM]
    if len(found) > 1:
        text = f"{len(found)} groups have role system ({', '.join(group.name for _, group in found)})"
        yield Violation("node_groups", text, "join them; further nodes have role compute")
    # Karpenter's two replicas do not share a node.
    pools = [group.name for group in node_groups if group.provisioned_by is Provisioner.KARPENTER]
    pools = [] if orchestrator.hyperpod else pools  # there it runs with the service
    for index, group in found:
        if group.count < (least := 2 if pools else 1):
            text = f"{group.count} nodes for DNS, webhooks and controllers"
            text += f", and Karpenter ({', '.join(pools)}) needs {least}" if pools else ""
            yield Violation(f"node_groups[{index}].count", text, "write 2 or more")
        if (kind := types.get(group.instance_type)) and kind.accelerator_count:
            text = f"{group.instance_type} has accelerators, which the system group would hold back"
            yield Violation(f"node_groups[{index}].instance_type", text, "take a type without, like m7i.xlarge")
    for index, group in enumerate(node_groups):
        if group.name == SYSTEM.name and group.role is not NodeRole.SYSTEM:
            text = f"{group.name} is what the nodes of controllers are labelled with"
            yield Violation(f"node_groups[{index}].name", text, "rename the group, or write role: system")


_OF_SYSTEM_NODES = frozenset({"name", "role", "instance_type", "count", "ebs_volume_gib"})


@rule("FMB-94")
def keys_of_system_nodes(*, orchestrator: Orchestrator, role: NodeRole, given: Collection[str]) -> Iterator[Violation]:
    """System nodes of EKS are on demand, on EKS's image, all there: other keys would be ignored in silence."""
    if orchestrator.kubernetes and role is NodeRole.SYSTEM:
        for key in sorted(set(given) - _OF_SYSTEM_NODES):
            text = "is not read for the system group, whose nodes are on demand and on EKS's image"
            yield Violation(key, text, "leave it out")


# What is called beside what nodes of every cluster call: by CDK's kubectl function, by nodes that register with PCS.
# Source: rule FMB-84.
_CALLED = {
    Orchestrator.EKS: ("eks", "lambda"),
    Orchestrator.HYPERPOD_EKS: ("eks", "eks-auth", "lambda", "sagemaker.api"),
    Orchestrator.PCS: ("pcs",),
}


@rule("FMB-84")
def closed_network(
    *,
    orchestrator: Orchestrator,
    kubernetes: Kubernetes | None,
    node_groups: Sequence[OfEks],
    collected: bool,
    accounting_database_given: bool,
    serving_charts: bool,
    types: catalog.Types,
    closed: bool,
    endpoint_services: Collection[str],
) -> Iterator[Violation]:
    """A closed network reaches neither public charts nor public images, nor services without an endpoint."""
    if not closed:
        return
    called = _CALLED.get(orchestrator, ()) + (("secretsmanager",) if accounting_database_given else ())
    if missing := [name for name in called if name not in endpoint_services]:
        text = f"has no endpoint of {' and '.join(missing)}, without which {orchestrator} does not come up"
        every = [*sorted(endpoint_services), *missing]
        yield Violation("network.endpoints", text, f"write network: {{endpoints: [{', '.join(every)}]}}")
    if not orchestrator.kubernetes:
        return
    for at, group in enumerate(node_groups):
        if group.provisioned_by is Provisioner.KARPENTER and not orchestrator.hyperpod:
            text = "karpenter needs IAM's API, which no endpoint reaches"
            yield Violation(f"training.node_groups[{at}].provisioned_by", text, "leave it out in a closed network")
    charts = serving_charts or bool(kubernetes and (kubernetes.kueue or kubernetes.kube_ray))
    if charts and not (kubernetes and kubernetes.chart_registry):
        text = "is not given, and a closed network reaches no public charts"
        hint = "mirror them: oci://<account>.dkr.ecr.<region>.amazonaws.com/…"
        yield Violation("training.kubernetes.chart_registry", text, hint)
    accelerated = any((kind := types.get(group.instance_type)) and kind.accelerator_count for group in node_groups)
    if (charts or accelerated or collected) and not (kubernetes and kubernetes.image_registry):
        text = "is not given, and a closed network reaches no public images"
        yield Violation(
            "training.kubernetes.image_registry", text, "mirror them into ECR: docs/kubernetes.md lists them"
        )


@rule("FMB-86")
def lustre_of_pods(*, orchestrator: Orchestrator, efa_enabled: bool) -> Iterator[Violation]:
    """AWS shows no EFA for Lustre on EKS's own Amazon Linux nodes: pods mount over TCP."""
    if orchestrator.kubernetes and efa_enabled:
        text = "true, but pods on Amazon Linux nodes of EKS mount over TCP: AWS shows EFA for it on Ubuntu nodes only"
        yield Violation("efa_enabled", text, "leave it out unless other clients use it")


@rule("FMB-87")
def karpenter_groups(
    *,
    orchestrator: Orchestrator,
    provisioned_by: Provisioner,
    role: NodeRole,
    capacity: Capacity,
    placement: Placement,
    image: Image | None,
    min_count: int | None,
    efa: Efa,
    network_interfaces: Sequence[NetworkInterface],
) -> Iterator[Violation]:
    """Karpenter starts nodes when pods ask for them: it has no least count, no schedule and no reservation group."""
    dedicated = capacity.create is not None and capacity.create.tenancy is Tenancy.DEDICATED
    if orchestrator is not Orchestrator.EKS or provisioned_by is not Provisioner.KARPENTER:
        return
    if role is NodeRole.SYSTEM:
        yield Violation("provisioned_by", "karpenter runs on the system nodes itself", "leave it out for this group")
    for key, wrong, why in (
        ("capacity.resource_group_arn", capacity.resource_group_arn, "Karpenter selects reservations by their ids"),
        ("capacity.launch", capacity.launch, "Karpenter uses a block while it is active"),
        ("placement.partition_count", placement.partition_count, "Karpenter joins one group as it is"),
        ("min_count", min_count, "Karpenter starts nodes when pods ask for them"),
        ("image", image, "Karpenter takes EKS's image for the type"),
        ("efa.interface_type", efa.interface_type, "interfaces are those of the catalogue"),
        ("efa.secondary_device_index", efa.secondary_device_index, "interfaces are those of the catalogue"),
        ("network_interfaces", network_interfaces or None, "interfaces are those of the catalogue"),
        ("capacity.create.tenancy", dedicated or None, "Karpenter starts no dedicated instances"),
    ):
        if wrong is not None:
            yield Violation(key, f"is not read with provisioned_by karpenter: {why}", "leave it out")


# Slurm versions of PCS; the list moves, so this is a warning.
_SLURM = ("24.11", "25.05", "25.11", "26.05")
_NODES = {ControllerSize.SMALL: 32, ControllerSize.MEDIUM: 512, ControllerSize.LARGE: 2048}


@rule("PCS-02")
def pcs_slurm(*, slurm: Slurm | None) -> Iterator[Violation]:
    """PCS has some versions of Slurm; the list moves."""
    if slurm is not None and slurm.version is not None and slurm.version not in _SLURM:
        text = f"{slurm.version} is not listed for PCS: {', '.join(_SLURM)}"
        yield Violation("slurm.version", text, "take one of these, or check")


@rule("FMB-88")
def static_or_dynamic(
    *, orchestrator: Orchestrator, role: NodeRole, min_count: int | None, count: int
) -> Iterator[Violation]:
    """Nodes of a PCS group are all there always, or all come with jobs."""
    if orchestrator is Orchestrator.PCS and min_count not in (None, 0, count) and count > 0:
        text = f"{min_count} of {count}: PCS keeps all nodes of a group, or starts them all with jobs"
        yield Violation("min_count", text, "write 0, or leave it out to keep all")
    if orchestrator is Orchestrator.PCS and role is NodeRole.LOGIN and min_count == 0 < count:
        text = "0, but no job starts a login node, which is in no queue"
        yield Violation("min_count", text, "leave it out to keep all")


@rule("FMB-89")
def image_of_pcs(
    *, orchestrator: Orchestrator, instance_type: str, image: Image | None, types: catalog.Types
) -> Iterator[Violation]:
    """PCS has an image with NVIDIA's driver, and none with Neuron's."""
    found = types.get(instance_type)
    if orchestrator is Orchestrator.PCS and image is None and found and found.accelerator_vendor == "aws":
        text = f"is not given, and AWS describes no image for PCS with the Neuron driver of {instance_type}"
        yield Violation("image", text, "build one with PCS's agent and Slurm, and give its id")


# Parameters of slurm.conf that PCS takes for a cluster; the list moves, so this is a warning.
_PARAMETERS = frozenset(
    {
        "AccountingStorageEnforce", "AccountingStorageTRES", "AccountingStoreFlags", "AuthAltParameters",
        "CliFilterParameters", "CliFilterPlugins", "CommunicationParameters", "DefMemPerCPU", "EnforcePartLimits",
        "Epilog", "FairShareDampeningFactor", "FirstJobId", "HealthCheckInterval", "HealthCheckNodeState",
        "HealthCheckProgram", "JobRequeue", "LaunchParameters", "Licenses", "MetricsType", "MinJobAge", "OverTimeLimit",
        "PreemptExemptTime", "PreemptMode", "PreemptParameters", "PreemptType", "PriorityCalcPeriod",
        "PriorityDecayHalfLife", "PriorityFavorSmall", "PriorityFlags", "PriorityMaxAge", "PriorityUsageResetPeriod",
        "PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairshare", "PriorityWeightJobSize",
        "PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES", "Prolog", "PrologFlags", "RequeueExit",
        "RequeueExitHold", "SchedulerParameters", "SelectTypeParameters", "SrunPortRange", "TaskEpilog",
        "TaskPluginParam", "TaskProlog", "TrackWCKey", "UnkillableStepProgram", "UnkillableStepTimeout",
    }
)  # fmt: skip
_OPEN_METRICS = _SLURM[2]


def serves_metrics(slurm: Slurm) -> bool:
    """Whether a PCS cluster serves its metrics: where it was asked to, else where its version can."""
    if slurm.open_metrics is not None:
        return slurm.open_metrics
    return (slurm.version or DEFAULT_SLURM) >= _OPEN_METRICS


@rule("FMB-90")
def pcs_settings(*, slurm: Slurm | None) -> Iterator[Violation]:
    """What is said about Slurm fits its version and itself."""
    if slurm is None:
        return
    version = slurm.version or DEFAULT_SLURM
    if slurm.open_metrics and version < _OPEN_METRICS:
        text = f"true, which needs Slurm {_OPEN_METRICS}, and the version is {version}"
        yield Violation("slurm.open_metrics", text, f"write version: {_OPEN_METRICS!r} or later")
    if slurm.open_metrics is not False and version >= _OPEN_METRICS:
        for name in sorted({"MetricsType", "CommunicationParameters"} & set(slurm.custom_settings)):
            text = f"{slurm.custom_settings[name]}, but open_metrics sets it"
            yield Violation(f"slurm.custom_settings.{name}", text, "leave it out, or write open_metrics: false")
    if slurm.accounting_purge_days is not None:
        if not slurm.accounting:
            yield Violation("slurm.accounting_purge_days", "is not read without accounting", "leave it out")
        elif not 1 <= slurm.accounting_purge_days <= 10000:
            text = f"{slurm.accounting_purge_days} is not between 1 and 10000"
            yield Violation("slurm.accounting_purge_days", text, "leave it out to keep records for ever")
    if not slurm.accounting and "AccountingStorageEnforce" in slurm.custom_settings:
        yield Violation(
            "slurm.custom_settings.AccountingStorageEnforce", "is not read without accounting", "leave it out"
        )
    if slurm.scale_down_idle_seconds is not None and slurm.scale_down_idle_seconds < 1:
        text = f"{slurm.scale_down_idle_seconds} is below 1"
        yield Violation("slurm.scale_down_idle_seconds", text, "write seconds, or leave it out")


@rule("FMB-91")
def pcs_parameters(*, slurm: Slurm | None) -> Iterator[Violation]:
    """PCS takes some parameters of slurm.conf; the list moves."""
    for name in sorted(slurm.custom_settings if slurm else ()):
        if name not in _PARAMETERS:
            alike = difflib.get_close_matches(name, _PARAMETERS, n=1)
            hint = f"did you mean {alike[0]}?" if alike else "check AWS PCS User Guide, custom Slurm settings"
            yield Violation(f"slurm.custom_settings.{name}", "is not listed among the parameters that PCS takes", hint)


@rule("FMB-92")
def home_of_pods(*, orchestrator: Orchestrator | None, home_given: bool) -> Iterator[Violation]:
    """Home directories are for people on nodes; pods have none."""
    if orchestrator is not None and orchestrator.kubernetes and home_given:
        yield Violation("storage.home", "is made, but pods of EKS do not mount it", "leave it out")


@rule("PCS-10")
def pcs_size(*, orchestrator: Orchestrator, slurm: Slurm | None, node_groups: Sequence[Wired]) -> Iterator[Violation]:
    """The REST API came with Slurm 25.05; a controller serves as many nodes as its size says."""
    if orchestrator is not Orchestrator.PCS:
        return
    if slurm is not None and slurm.rest_api and slurm.version is not None and slurm.version < _SLURM[1]:
        text = f"true, which needs Slurm {_SLURM[1]}, and the version is {slurm.version}"
        yield Violation("slurm.rest_api", text, f"write version: {_SLURM[1]!r} or later")
    size = (slurm and slurm.size) or ControllerSize.LARGE
    nodes = sum(group.count for group in node_groups)
    if nodes > _NODES[size]:
        key = "slurm.size" if slurm and slurm.size else "node_groups"
        text = f"{nodes} nodes are more than the {_NODES[size]} of size {size}"
        yield Violation(key, text, "take a larger size" if size is not ControllerSize.LARGE else "use fewer nodes")


def smallest_controller(node_groups: Sequence[Wired]) -> ControllerSize:
    """The smallest controller that serves the nodes."""
    nodes = sum(group.count for group in node_groups)
    return next((size for size in ControllerSize if nodes <= _NODES[size]), ControllerSize.LARGE)


_NO_PCS = frozenset(
    {
        "ap-east-1", "ap-east-2", "ap-southeast-7", "ca-west-1", "cn-north-1", "cn-northwest-1", "eu-central-2",
        "il-central-1", "me-central-1", "mx-central-1", "us-west-1",
    }
)  # fmt: skip


@rule("REG-02")
def pcs_region(*, orchestrator: Orchestrator, region: str | None) -> Iterator[Violation]:
    """PCS exists in some Regions only; the list moves, so this is a warning."""
    if orchestrator is Orchestrator.PCS and region in _NO_PCS:
        yield Violation("region", f"AWS::PCS::Cluster is not listed for {region}", "check, or move the project")


@rule("PCS-01")
def pcs_zone(*, orchestrator: Orchestrator, primary: str) -> Iterator[Violation]:
    """A PCS cluster stands in one subnet of an ordinary zone."""
    zone = catalog.parse_zone(primary)
    if orchestrator is Orchestrator.PCS and zone is not None and zone.kind == "local":
        text = f"{primary} is a Local Zone, in which PCS makes no cluster"
        yield Violation("network.primary_availability_zone", text, "use a zone of the Region")


@rule("PCS-07")
def pcs_blocks(
    *, orchestrator: Orchestrator, slurm: Slurm | None, node_groups: Sequence[Bought]
) -> Iterator[Violation]:
    """On PCS a Capacity Block serves one node group, and Slurm is new enough to know it."""
    if orchestrator is not Orchestrator.PCS:
        return
    blocks = any(group.capacity.mode is CapacityMode.CAPACITY_BLOCK for group in node_groups)
    if blocks and slurm is not None and slurm.version is not None and slurm.version < "24.05":
        text = f"{slurm.version}, and Capacity Blocks need Slurm 24.05"
        yield Violation("slurm.version", text, f"write {DEFAULT_SLURM!r}")
    users: dict[str, str] = {}
    for index, group in enumerate(node_groups):
        block = group.capacity.capacity_reservation_id
        if block is None or group.capacity.mode is not CapacityMode.CAPACITY_BLOCK:
            continue
        if (first := users.setdefault(block, group.name)) != group.name:
            text = f"{block} serves {first} already: on PCS a Capacity Block serves one node group"
            yield Violation(f"node_groups[{index}].capacity.capacity_reservation_id", text, "join the two groups")


SCRIPTS = ("HP-08",)
# Of one group, on HyperPod, at both edges.
HYPERPOD_GROUP = (
    "FMB-116", "FMB-19", "FMB-28", "FMB-96", "HP-03", "HP-04", "HP-05", "HP-13", "HP-16", "HP-18", "TP-01", "TP-03",
    "X-02",
)  # fmt: skip
GROUP = (*HYPERPOD_GROUP, "FMB-101", "FMB-16", "FMB-33", "FMB-43", "FMB-98")
GROUP_CONSTRUCT = (*HYPERPOD_GROUP, "HP-01")
# Of the system nodes of HyperPod with EKS, which are EC2's.
SYSTEM_GROUP = ("FMB-33", "FMB-94")
EC2_GROUP = (
    "FMB-32", "FMB-33", "FMB-43", "FMB-44", "FMB-48", "FMB-87", "FMB-88", "FMB-89", "FMB-94", "PCS-06",
)  # fmt: skip
HYPERPOD = ("HP-02",)
SLURM = ("HP-11", "HP-12")
CLUSTER = (*HYPERPOD, *SLURM)
TRAINING = (
    "EKS-03", "FMB-100", "FMB-112", "FMB-113", "FMB-23", "FMB-33", "FMB-42", "FMB-78", "FMB-81", "FMB-82", "FMB-83",
    "FMB-90", "FMB-91", "FMB-97", "FMB-99", "HP-19", "HP-28", "PCS-02", "PCS-07", "PCS-10",
)  # fmt: skip
# About keys that stand outside training.
WHOLE = (
    "EKS-01",
    "FMB-102",
    "FMB-107",
    "FMB-109",
    "FMB-114",
    "FMB-79",
    "FMB-80",
    "FMB-84",
    "FMB-92",
    "HP-29",
    "PCS-01",
    "REG-02",
)
# Of a PCS cluster, at the construct.
PCS_CONSTRUCT = ("FMB-90", "FMB-91", "PCS-02", "PCS-10")
PCS_TEMPLATE_CONSTRUCT = ("FMB-44", "FMB-89")
# Of an EKS cluster, at the construct.
EKS_CONSTRUCT = ("EKS-01", "FMB-78", "FMB-79", "FMB-80", "FMB-81", "FMB-82", "FMB-83")
# Where the file system stands.
FILE_SYSTEM = ("FSX-26", "X-05")
EKS_CLUSTER_CONSTRUCT = (*HYPERPOD, "HP-09", "FMB-12", "X-04")
CLUSTER_CONSTRUCT = (*CLUSTER, "HP-09", "HP-14", "FMB-12", "X-04", *FILE_SYSTEM)
CLIENT_CONSTRUCT = ("FSX-15",)
OWN_NODES_CONSTRUCT = ("FMB-32", "FMB-88", "PCS-06")
PROJECT = ("HP-22", "NET-02")
