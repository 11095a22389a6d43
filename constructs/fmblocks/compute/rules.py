"""What is refused about placement and EFA, on every orchestrator that runs in your own account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from fmblocks import catalog
from fmblocks.capacity.settings import Capacity, CapacityMode
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute.settings import (
    Efa,
    EfaMode,
    Image,
    NetworkInterface,
    NetworkInterfaceType,
    Placement,
    PlacementMode,
    Profile,
    SpreadLevel,
)
from fmblocks.findings import Violation, choice, rule


class Fabric(Protocol):
    """A node group as the rules over several of them see it."""

    @property
    def name(self) -> str: ...
    @property
    def every_type(self) -> Sequence[str]: ...
    @property
    def efa(self) -> Efa: ...


@rule("EFA-01")
def efa_exists(
    *, instance_type: str, efa: Efa, network_interfaces: Sequence[NetworkInterface], types: catalog.Types
) -> Iterator[Violation]:
    """EFA that is asked for by name needs a type that has it; mode auto takes what there is."""
    found = types.get(instance_type)
    if found is None or found.max_efa_interfaces:
        return
    asked = ["mode"] if efa.mode is EfaMode.REQUIRED else []
    asked += [key for key in _EFA_KEYS if getattr(efa, key) is not None and efa.mode is not EfaMode.NONE]
    keys = [f"efa.{key}" for key in asked]
    keys += [f"network_interfaces[{at}]" for at, one in enumerate(network_interfaces) if one.interface_type.has_efa]
    for key in keys[:1]:
        text = f"EFA is not available on {instance_type}"
        yield Violation(key, text, "write efa: auto, which gives one plain interface, or choose a type with EFA")


_EFA_KEYS = ("count", "interface_type", "profile", "secondary_device_index")


@rule("FMB-41")
def efa_keys(*, efa: Efa, network_interfaces: Sequence[NetworkInterface]) -> Iterator[Violation]:
    """A key of efa that is not read would be ignored in silence."""
    for key in (key for key in _EFA_KEYS if getattr(efa, key) is not None):
        if efa.mode is EfaMode.NONE or network_interfaces:
            beside = "network_interfaces" if network_interfaces else "mode none"
            yield Violation(f"efa.{key}", f"{getattr(efa, key)} is not read with {beside}", "leave one of the two out")
    if efa.mode is EfaMode.NONE and any(one.interface_type.has_efa for one in network_interfaces):
        yield Violation("efa.mode", "none, but network_interfaces has EFA", "leave one of the two out")


@rule("EFA-02")
def efa_count(*, instance_type: str, efa: Efa, types: catalog.Types) -> Iterator[Violation]:
    """No more EFA interfaces than the type has; that is not its number of network cards."""
    found = types.get(instance_type)
    if efa.count is None or found is None or not found.max_efa_interfaces:
        return
    if not 1 <= efa.count <= found.max_efa_interfaces:
        text = f"{efa.count} EFA interfaces: {instance_type} supports at most {found.max_efa_interfaces}"
        yield Violation("efa.count", text, "leave it out to get all of them")


@rule("EFA-18")
def efa_all(
    *, instance_type: str, efa: Efa, network_interfaces: Sequence[NetworkInterface], types: catalog.Types
) -> Iterator[Violation]:
    """Fewer EFA interfaces are less bandwidth than is paid for, save where AWS's layout has no more."""
    found = types.get(instance_type)
    own = sum(one.interface_type.has_efa for one in network_interfaces) if network_interfaces else None
    key, count = ("efa.count", efa.count) if own is None else ("network_interfaces", own)
    if count is None or found is None or count == found.efa_layout_count or efa.mode is EfaMode.NONE:
        return
    if 0 < count < found.max_efa_interfaces:
        text = f"{count} of the {found.max_efa_interfaces} EFA interfaces of {instance_type} are used"
        yield Violation(key, text, "leave it out to get all of them")


def _place(interface: NetworkInterface) -> str:
    return f"{interface.interface_type} at card {interface.network_card_index}, device {interface.device_index}"


@rule("EFA-03")
def one_per_card(*, network_interfaces: Sequence[NetworkInterface]) -> Iterator[Violation]:
    """A network card takes one EFA interface."""
    seen: dict[int, NetworkInterface] = {}
    for index, interface in enumerate(network_interfaces):
        if not interface.interface_type.has_efa:
            continue
        first = seen.setdefault(interface.network_card_index, interface)
        if first is not interface:
            text = f"{_place(interface)}: the card has an EFA interface already, at device {first.device_index}"
            yield Violation(f"network_interfaces[{index}]", text, "take another card, or type interface")


@rule("EFA-04")
def places(
    *, network_interfaces: Sequence[NetworkInterface], instance_type: str, types: catalog.Types
) -> Iterator[Violation]:
    """Every interface has a place of its own, on a card and at a device that the type has."""
    found = types.get(instance_type)
    cards, most = (found.network_cards, found.max_enis_per_card) if found else (None, None)
    taken: dict[tuple[int, int], int] = {}
    for index, interface in enumerate(network_interfaces):
        key, card, device = f"network_interfaces[{index}]", interface.network_card_index, interface.device_index
        first = taken.setdefault((card, device), index)
        if card < 0 or device < 0:
            yield Violation(key, f"{_place(interface)}: neither is below 0", "count from 0")
        elif cards is not None and card >= cards:
            text = f"{_place(interface)}: {instance_type} has the cards 0 to {cards - 1}"
            yield Violation(f"{key}.network_card_index", text, "take one of these cards")
        elif first != index:
            text = f"{_place(interface)}: network_interfaces[{first}] stands there"
            yield Violation(key, text, "give each interface a place of its own")
        elif most is not None and device >= most:
            text = f"{_place(interface)}: a card of {instance_type} has the devices 0 to {most - 1}"
            yield Violation(f"{key}.device_index", text, "count device_index anew on every card")


@rule("EFA-05")
def primary(*, network_interfaces: Sequence[NetworkInterface]) -> Iterator[Violation]:
    """The primary interface stands at card 0, device 0, and has an address."""
    first = [
        (index, one)
        for index, one in enumerate(network_interfaces)
        if one.network_card_index == 0 and one.device_index == 0
    ]
    if not first:
        text = "no interface stands at network card 0, device 0, where the primary one belongs"
        yield Violation("network_interfaces", text, "add {device_index: 0, interface_type: interface}")
    for index, interface in first:
        if interface.interface_type is NetworkInterfaceType.EFA_ONLY:
            text = (
                f"{_place(interface)}: the primary interface of network card 0 needs an address, and efa-only has none"
            )
            yield Violation(f"network_interfaces[{index}].interface_type", text, "write interface or efa")


@rule("EFA-06")
def cards_with_efa(
    *, network_interfaces: Sequence[NetworkInterface], instance_type: str, types: catalog.Types
) -> Iterator[Violation]:
    """Some types have cards without EFA, the first one above all."""
    found = types.get(instance_type)
    if found is None or not found.efa_network_cards:
        return
    for index, interface in enumerate(network_interfaces):
        card = interface.network_card_index
        if (
            interface.interface_type.has_efa
            and card not in found.efa_network_cards
            and card < (found.network_cards or 0)
        ):
            text = f"{_place(interface)}: card {card} of {instance_type} has no EFA"
            yield Violation(f"network_interfaces[{index}].interface_type", text, "write interface")


# Card pairs that share a NIC, and four cards that share no GPU. Source: the rule.
_GB200_ODD = frozenset(range(1, 17, 2))
_GB200_FOUR = frozenset({1, 5, 9, 13})


@rule("EFA-27")
def gb200_cards(*, network_interfaces: Sequence[NetworkInterface], instance_type: str) -> Iterator[Violation]:
    """On p6e-gb200 EFA runs over efa-only interfaces of four odd cards, or of all eight."""
    if not instance_type.startswith("p6e-gb200."):
        return
    with_efa = [(index, one) for index, one in enumerate(network_interfaces) if one.interface_type.has_efa]
    for index, interface in with_efa:
        if interface.network_card_index in _GB200_ODD and interface.interface_type is NetworkInterfaceType.EFA:
            text = f"{_place(interface)}: the odd cards of {instance_type} take efa-only"
            yield Violation(f"network_interfaces[{index}].interface_type", text, "write efa-only")
    cards = {one.network_card_index for _, one in with_efa}
    if cards and cards not in (_GB200_ODD, _GB200_FOUR):
        listed, four = ", ".join(map(str, sorted(cards))), ", ".join(map(str, sorted(_GB200_FOUR)))
        text = f"EFA on the cards {listed}, which share NICs or GPUs of {instance_type}"
        yield Violation("network_interfaces", text, f"take the cards {four}, or all eight odd ones")


@rule("FMB-30")
def known_profile(*, instance_type: str, efa: Efa, types: catalog.Types) -> Iterator[Violation]:
    """The most IP bandwidth is laid out where AWS says how."""
    found = types.get(instance_type)
    if efa.profile is Profile.MAX_IP_BANDWIDTH and found is not None and not found.ip_interface_cards:
        text = f"{efa.profile} has no documented layout on {instance_type}"
        yield Violation("efa.profile", text, "leave it out, or write network_interfaces")


@rule("EFA-19")
def no_windows(*, efa: Efa, image: Image | None, instance_type: str, types: catalog.Types) -> Iterator[Violation]:
    """EFA of P and Trn instances does not run under Windows."""
    found = types.get(instance_type)
    if image is None or not image.platform.windows or efa.mode is EfaMode.NONE:
        return
    if found is not None and found.max_efa_interfaces and instance_type.startswith(("p", "trn")):
        text = f"{image.platform} does not run EFA on {instance_type}"
        yield Violation("image.platform", text, "use a Linux image, or write efa: none")


@rule("X-10")
def architecture(*, image: Image | None, every_type: Sequence[str], types: catalog.Types) -> Iterator[Violation]:
    """An image boots on the architecture that it was built for."""
    if image is None:
        return
    named = re.search(r"(?<![a-z0-9])(x86_64|x86-64|amd64|arm64|aarch64)(?![a-z0-9])", image.ssm_parameter or "")
    said = image.architecture or (named and ("arm64" if named[1] in ("arm64", "aarch64") else "x86_64"))
    for name in every_type:
        found = types.get(name)
        if said and found is not None and found.architecture not in (None, said):
            key = "image.architecture" if image.architecture else "image.ssm_parameter"
            given = image.architecture or image.ssm_parameter
            text = f"{given} does not boot on {name}, which is {found.architecture}"
            yield Violation(key, text, f"use an image for {found.architecture}")


@rule("FMB-31")
def one_image(*, image: Image | None, orchestrator: Orchestrator) -> Iterator[Violation]:
    """An image is named once, and an id is one."""
    if image is None:
        return
    if image.id is not None and image.ssm_parameter is not None:
        yield Violation("image.ssm_parameter", f"is given beside id, {image.id}", "leave one of the two out")
    own = orchestrator.hyperpod and image.id == "default"
    if image.id is not None and not own and not re.fullmatch(r"ami-[0-9a-f]{8,17}", image.id):
        yield Violation("image.id", f"{image.id} is no id of an image", "it looks like ami-0123456789abcdef0")


@rule("FMB-09")
def known_type(*, instance_type: str, types: catalog.Types) -> Iterator[Violation]:
    """The instance type is in the catalogue."""
    if instance_type not in types:
        alike = catalog.nearest(instance_type, types)
        hint = f"did you mean {' or '.join(alike)}? " if alike else "check the spelling, "
        hint += "else add it under catalog"
        yield Violation("instance_type", f"{instance_type} is not an instance type of the catalogue", hint)


# Source: the rule; they are never sold as spot.
_NO_SPOT = ("p6e-gb200.", "trn2u.")


@rule("EFA-25")
def spot_sold(*, instance_type: str, capacity: Capacity) -> Iterator[Violation]:
    """Some types are not sold as spot."""
    if capacity.mode is CapacityMode.SPOT and instance_type.startswith(_NO_SPOT):
        yield Violation(
            "capacity.mode", f"{instance_type} is not sold as spot", "buy it another way: see CB-02 and TP-03"
        )


choice("PG-01", PlacementMode, "take one of these; a group that exists is {group_name: …}")


@rule("PG-02")
def spread_level(*, placement: Placement) -> Iterator[Violation]:
    """A spread level goes with mode spread; host is for Outposts."""
    if placement.spread_level is None:
        return
    if placement.mode is not PlacementMode.SPREAD:
        text = f"{placement.spread_level} is not read with mode {placement.mode}"
        yield Violation("placement.spread_level", text, "leave it out, or write mode: spread")
    elif placement.spread_level is SpreadLevel.HOST:
        yield Violation("placement.spread_level", "host is for Outposts only", "write rack, or leave it out")


@rule("PG-03")
def partitions(*, placement: Placement) -> Iterator[Violation]:
    """partition_count goes with mode partition, at most 7 in a zone."""
    if placement.partition_count is None:
        return
    if placement.mode is not PlacementMode.PARTITION:
        text = f"{placement.partition_count} is not read with mode {placement.mode}"
        yield Violation("placement.partition_count", text, "leave it out, or write mode: partition")
    elif not 1 <= placement.partition_count <= 7:
        text = f"{placement.partition_count} is not between 1 and the 7 partitions of a zone"
        yield Violation("placement.partition_count", text, "take 7 or fewer")


@rule("PG-04")
def spread_size(*, placement: Placement, count: int) -> Iterator[Violation]:
    """A rack-level spread group takes 7 running instances in a zone."""
    if placement.mode is PlacementMode.SPREAD and count > 7:
        text = f"{count} is more than the 7 running instances that a spread group takes in a zone"
        yield Violation("count", text, "use partition, or placement: none")


_BURSTABLE = ("t2.", "t3.", "t3a.", "t4g.", "mac1.", "m7i-flex.")


@rule("PG-07")
def cluster_types(*, placement: Placement, instance_type: str) -> Iterator[Violation]:
    """Burstable, Mac1 and M7i-flex instances do not go into a cluster group."""
    if placement.mode is PlacementMode.CLUSTER and instance_type.startswith(_BURSTABLE):
        text = f"cluster cannot be used with {instance_type}"
        yield Violation("placement.mode", text, "write placement: none, or choose another type")


@rule("PG-12")
def reservation_group(*, placement: Placement, capacity: Capacity) -> Iterator[Violation]:
    """A reservation is made in a cluster group or in none, and serves no instances in another group."""
    if capacity.mode is CapacityMode.ODCR and placement.mode in (PlacementMode.PARTITION, PlacementMode.SPREAD):
        text = f"a reservation cannot be used in a {placement.mode} group"
        yield Violation("placement.mode", text, "use cluster, auto or none")


@rule("PG-13")
def in_the_reserved_group(*, reserved_in: str | None, placed_in: str | None) -> Iterator[Violation]:
    """Instances that target a reservation of a placement group name the same group, or none."""
    if reserved_in is not None and placed_in is not None and reserved_in != placed_in:
        text = f"{placed_in} is not {reserved_in}, in which the reservation was made"
        yield Violation("placement_group", text, "leave it out: that of the reservation is taken")


# Source: EC2 User Guide, *Elastic Fabric Adapter*, limitations.
_ALONE = ("p4d.24xlarge", "p4de.24xlarge", "dl1.24xlarge")


@rule("X-09")
def fabrics(*, node_groups: Sequence[Fabric], types: catalog.Types) -> Iterator[Violation]:
    """EFA traffic between p4d, p4de or dl1 and any other type is not supported."""
    with_efa = {
        name
        for group in node_groups
        for name in group.every_type
        if group.efa.mode is not EfaMode.NONE
        and (found := types.get(name))
        and found.max_efa_interfaces
        and found.accelerator_count
    }
    for alone in sorted(with_efa & set(_ALONE))[:1]:
        if others := sorted(with_efa - {alone}):
            text = f"{alone} cannot talk over EFA with {', '.join(others)}"
            yield Violation("node_groups", text, "give it a project of its own, or efa: none to it or the others")


# Over the interfaces of a node, written by hand or laid out from the catalogue.
INTERFACES = ("EFA-03", "EFA-04", "EFA-05", "EFA-06", "EFA-27")
EC2_GROUP = ("EFA-01", "EFA-02", "EFA-18", "EFA-19", "FMB-30", "FMB-41", "PG-04", "PG-07", "PG-12")
EVERY_GROUP = ("EFA-25", "FMB-09", "FMB-31", "PG-02", "PG-03", "X-10")
# At the constructs' edge.
GROUP_CONSTRUCT = ("PG-03",)
TEMPLATE_CONSTRUCT = ("EFA-01", "EFA-02", "EFA-18", "EFA-25", "FMB-30", "FMB-41", "PG-07", "PG-13")
FLEET_CONSTRUCT = ("PG-04",)
# What reaches a construct of ours on HyperPod.
HYPERPOD_CONSTRUCT = ("EFA-25", "FMB-09", "FMB-31")
TRAINING = ("X-09",)
