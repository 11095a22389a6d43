"""What is refused about bought capacity, on every orchestrator that runs in your own account."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Protocol

from fmblocks import catalog
from fmblocks.capacity.settings import Capacity, CapacityMode, Launch, Match, Tenancy
from fmblocks.compute.settings import Image, InstancePlatform, Placement, PlacementMode
from fmblocks.findings import Violation, choice, rule

_GROUPED = (PlacementMode.CLUSTER, PlacementMode.PARTITION, PlacementMode.SPREAD)


class Bought(Protocol):
    """A node group as the rules over several of them see it."""

    @property
    def name(self) -> str: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def every_type(self) -> Sequence[str]: ...
    @property
    def count(self) -> int: ...
    @property
    def capacity(self) -> Capacity: ...


@rule("X-01")
def no_placement_group_in_a_block(*, capacity: Capacity, placement: Placement) -> Iterator[Violation]:
    """A Capacity Block is co-located already, and refuses a placement group."""
    if capacity.mode is not CapacityMode.CAPACITY_BLOCK:
        return
    if placement.mode in _GROUPED:
        text = f"{placement.mode} cannot be used with a Capacity Block, whose instances are co-located already"
        yield Violation("placement.mode", text, "write placement: auto")
    elif placement.group_name is not None:
        text = f"{placement.group_name} cannot be used with a Capacity Block, whose instances are co-located already"
        yield Violation("placement.group_name", text, "leave it out")


@rule("X-03")
def plans_are_for_hyperpod(*, capacity: Capacity) -> Iterator[Violation]:
    """A training plan feeds HyperPod, training jobs and endpoints, not EC2 instances of your own."""
    if capacity.mode is CapacityMode.TRAINING_PLAN or capacity.training_plan_arn is not None:
        key = "mode" if capacity.mode is CapacityMode.TRAINING_PLAN else "training_plan_arn"
        text = "a SageMaker training plan cannot feed instances of your own account"
        yield Violation(f"capacity.{key}", text, "use a Capacity Block, or orchestrator hyperpod-slurm or hyperpod-eks")


@rule("X-07")
def one_zone_per_block(*, node_groups: Sequence[Bought]) -> Iterator[Violation]:
    """A block, a reservation or a plan stands in one zone, whichever groups use it."""
    zones: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for index, group in enumerate(node_groups):
        bought = group.capacity.capacity_reservation_id or group.capacity.training_plan_arn
        if bought is None or group.capacity.availability_zone is None:
            continue
        seen = zones[bought]
        seen.setdefault(group.capacity.availability_zone, group.name)
        if len(seen) > 1:
            (first_zone, first), *_ = seen.items()
            key = f"node_groups[{index}].capacity.availability_zone"
            text = f"{group.capacity.availability_zone}, but {first} uses {bought} in {first_zone}"
            yield Violation(key, text, "one of the two zones is wrong")


@rule("X-08")
def reservation_in_its_group(*, capacity: Capacity, placement: Placement) -> Iterator[Violation]:
    """A reservation that was not made in a placement group cannot be used inside one."""
    reserved = capacity.capacity_reservation_id or capacity.resource_group_arn
    if capacity.mode is CapacityMode.ODCR and reserved and placement.mode in _GROUPED and placement.group_name is None:
        text = f"{placement.mode} makes a new group, in which {reserved} cannot be used"
        yield Violation("placement.mode", text, "give the group_name the reservation was made in, or placement: none")


@rule("CR-03")
def reservation_size(*, capacity: Capacity, count: int) -> Iterator[Violation]:
    """A reservation that is created holds 1 to 1000 instances."""
    if capacity.create is not None and not 1 <= count <= 1000:
        text = f"a reservation of {count} cannot be made: 1 to 1000 instances"
        yield Violation("count", text, "split the group, or reserve less")


choice("CR-04", Match)
choice("CR-05", Tenancy)
choice("CR-06", InstancePlatform)


@rule("CR-06")
def reservation_platform(*, capacity: Capacity, image: Image | None) -> Iterator[Violation]:
    """A reservation serves instances of its own platform."""
    runs = image.platform if image else InstancePlatform.LINUX_UNIX
    if capacity.create is not None and capacity.create.platform is not runs:
        text = f"{capacity.create.platform}, but the image of the group is {runs}: its instances would never match"
        yield Violation("capacity.create.platform", text, "write the same platform in both places")


@rule("CR-13")
def one_target(*, capacity: Capacity) -> Iterator[Violation]:
    """Mode odcr names exactly one of a reservation, a group of them, or one to create."""
    if capacity.mode is not CapacityMode.ODCR:
        return
    given = [
        key for key in ("capacity_reservation_id", "resource_group_arn", "create") if getattr(capacity, key) is not None
    ]
    if len(given) != 1:
        named = ", ".join(given) or "none of them"
        text = f"{named} given: mode odcr takes one of capacity_reservation_id, resource_group_arn and create"
        yield Violation("capacity", text, "give exactly one")


_RESERVATION = r"cr-[0-9a-f]{8,}"


@rule("CB-06")
def block_named(*, capacity: Capacity) -> Iterator[Violation]:
    """A Capacity Block is named by its reservation: the market type alone launches nothing."""
    if capacity.mode is CapacityMode.CAPACITY_BLOCK and capacity.capacity_reservation_id is None:
        yield Violation("capacity.capacity_reservation_id", "is required with mode capacity_block", "give the cr-… id")


@rule("FMB-25")
def reservation_spelled(*, capacity: Capacity) -> Iterator[Violation]:
    """A reservation's id is one."""
    given = capacity.capacity_reservation_id
    if given is not None and not re.fullmatch(_RESERVATION, given):
        text = f"{given} is no id of a reservation"
        yield Violation("capacity.capacity_reservation_id", text, "it looks like cr-0123456789abcdef0")
    group = capacity.resource_group_arn
    if group is not None and not re.fullmatch(r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/.+", group):
        text = f"{group} is not the ARN of a resource group"
        hint = "it looks like arn:aws:resource-groups:<region>:<account>:group/<name>"
        yield Violation("capacity.resource_group_arn", text, hint)


@rule("CB-02")
def block_type(*, capacity: Capacity, instance_type: str, types: catalog.Types) -> Iterator[Violation]:
    """Capacity Blocks are sold for accelerator types."""
    found = types.get(instance_type)
    if capacity.mode is CapacityMode.CAPACITY_BLOCK and found is not None and not found.capacity_blocks:
        yield Violation("instance_type", f"Capacity Blocks are not sold for {instance_type}", "use odcr or on_demand")


@rule("CB-03")
def block_size(*, node_groups: Sequence[Bought]) -> Iterator[Violation]:
    """A Capacity Block holds at most 64 instances, whichever groups use it."""
    taken: Counter[object] = Counter()
    for index, group in enumerate(node_groups):
        if group.capacity.mode is CapacityMode.CAPACITY_BLOCK:
            block = group.capacity.capacity_reservation_id or index
            taken[block] += max(group.count, 0)
            if taken[block] > 64:
                text = f"{taken[block]} is more than the 64 instances of a Capacity Block"
                yield Violation(f"node_groups[{index}].count", text, "make a group per block")


@rule("FMB-40")
def one_type_per_reservation(*, node_groups: Sequence[Bought]) -> Iterator[Violation]:
    """A reservation and a Capacity Block hold instances of one type, and one is not the other."""
    users: dict[str, Bought] = {}
    for index, group in enumerate(node_groups):
        reservation = group.capacity.capacity_reservation_id
        first = users.setdefault(reservation, group) if reservation else group
        if first.instance_type != group.instance_type:
            text = f"{reservation} serves {first.name}, of {first.instance_type}: it cannot feed {group.instance_type}"
            yield Violation(f"node_groups[{index}].capacity.capacity_reservation_id", text, "one of the two is wrong")
        elif first.capacity.mode is not group.capacity.mode:
            text = f"{group.capacity.mode}, but {first.name} uses {reservation} as {first.capacity.mode}"
            yield Violation(f"node_groups[{index}].capacity.mode", text, "one of the two is wrong")


# Instances of one NVLink domain. Source: the rule.
_ULTRASERVER = {"p6e-gb200.36xlarge": (9, 18)}


@rule("CB-15")
def whole_ultraservers(*, capacity: Capacity, instance_type: str, count: int) -> Iterator[Violation]:
    """UltraServers are sold whole."""
    sizes = _ULTRASERVER.get(instance_type)
    if sizes and capacity.mode is CapacityMode.CAPACITY_BLOCK and count % sizes[0]:
        text = f"{count} is no whole number of UltraServers, which have {' or '.join(map(str, sizes))} instances"
        yield Violation("count", text, f"take a multiple of {sizes[0]}")


@rule("TP-02")
def one_type_per_plan(*, node_groups: Sequence[Bought]) -> Iterator[Violation]:
    """A training plan holds instances of one type."""
    types: dict[str, Bought] = {}
    for index, group in enumerate(node_groups):
        plan = group.capacity.training_plan_arn
        if plan is None:
            continue
        if len(group.every_type) > 1:
            text = f"{', '.join(group.every_type[1:])}: a training plan holds instances of one type"
            yield Violation(f"node_groups[{index}].alternative_instance_types", text, "leave it out")
        first = types.setdefault(plan, group)
        if first.instance_type != group.instance_type:
            text = f"the plan of {first.name}, of {first.instance_type}, cannot feed {group.instance_type}"
            yield Violation(
                f"node_groups[{index}].capacity.training_plan_arn", text, "give each type a plan of its own"
            )


@rule("CB-04")
def block_days(*, capacity: Capacity) -> Iterator[Violation]:
    """Blocks are sold for 1 to 14 days, then in weeks up to 182."""
    if capacity.mode is not CapacityMode.CAPACITY_BLOCK or capacity.start is None or capacity.end is None:
        return
    days = (capacity.end - capacity.start).total_seconds() / 86400
    # A block starts and ends at 11:30 UTC; one that starts at once has a broken first day.
    whole = -(-days // 1)
    if not (1 <= whole <= 14 or (whole % 7 == 0 and whole <= 182)):
        text = f"{days:g} days is no length that blocks are sold for: 1 to 14, then multiples of 7 up to 182"
        yield Violation("capacity.end", text, "check start and end with what was bought")


@rule("CB-05")
def block_hour(*, capacity: Capacity) -> Iterator[Violation]:
    """A Capacity Block ends at 11:30 UTC, and its instances are terminated from 30 minutes before."""
    if capacity.mode is not CapacityMode.CAPACITY_BLOCK or capacity.end is None:
        return
    end = capacity.end.astimezone(UTC)
    if (end.hour, end.minute) != (11, 30):
        text = f"{end:%Y-%m-%dT%H:%MZ}: blocks end at 11:30 UTC, and nodes are stopped by this time"
        yield Violation("capacity.end", text, "write the end that EC2 shows, with its zone")


@rule("FMB-24")
def block_times(*, capacity: Capacity) -> Iterator[Violation]:
    """start, end and launch belong to a Capacity Block, and start comes before end."""
    if capacity.mode is CapacityMode.CAPACITY_BLOCK:
        if capacity.start is not None and capacity.end is not None and capacity.start >= capacity.end:
            text = f"{capacity.end.isoformat()} is not after start, {capacity.start.isoformat()}"
            yield Violation("capacity.end", text, "swap the two, or correct them")
        return
    for key in ("start", "end", "launch"):
        if getattr(capacity, key) is not None:
            hint = "leave it out; a created reservation ends by create: {end}"
            yield Violation(f"capacity.{key}", f"belongs to a Capacity Block, and the mode is {capacity.mode}", hint)


@rule("FMB-26")
def keys_of_the_mode(*, capacity: Capacity) -> Iterator[Violation]:
    """A key that the mode does not read would be ignored in silence."""
    read = {
        CapacityMode.ODCR: {"capacity_reservation_id", "resource_group_arn", "create"},
        CapacityMode.CAPACITY_BLOCK: {"capacity_reservation_id"},
    }.get(capacity.mode, set())
    for key in ("capacity_reservation_id", "resource_group_arn", "create"):
        if getattr(capacity, key) is not None and key not in read:
            text = f"is not read with mode {capacity.mode}"
            yield Violation(f"capacity.{key}", text, "leave it out, or write mode: odcr or mode: capacity_block")


@rule("NET-06")
def zone_by_id(*, capacity: Capacity, availability_zones: Sequence[str]) -> Iterator[Violation]:
    """What was bought stands in a zone id; names map to other zones in every account."""
    named = [zone for zone in availability_zones if (parsed := catalog.parse_zone(zone)) and parsed.kind == "name"]
    if named and capacity.mode in (CapacityMode.ODCR, CapacityMode.CAPACITY_BLOCK, CapacityMode.TRAINING_PLAN):
        text = f"{capacity.mode} is matched with zone names ({', '.join(named)}), which differ between accounts"
        yield Violation("capacity.mode", text, "use zone ids in network.availability_zones")


def _elsewhere(capacity: Capacity, primary: str) -> Iterator[Violation]:
    zone = capacity.availability_zone
    if zone is None or not primary or zone == primary:
        return
    bought, here = catalog.parse_zone(zone), catalog.parse_zone(primary)
    if bought and here and bought.by_id != here.by_id:  # us-west-2a and usw2-az2 can be the same zone
        text = f"{zone} cannot be compared with {primary}, where the nodes stand: one is a name, the other an id"
        yield Violation("capacity.availability_zone", text, "write zone ids in both places")
    else:
        text = f"{zone}, but the nodes stand in {primary}"
        yield Violation(
            "capacity.availability_zone", text, "change network.primary_availability_zone, or the zone here"
        )


@rule("CR-07")
def reservation_zone(*, capacity: Capacity, primary: str) -> Iterator[Violation]:
    """A reservation serves instances of its own zone."""
    if capacity.mode not in (CapacityMode.CAPACITY_BLOCK, CapacityMode.TRAINING_PLAN):
        yield from _elsewhere(capacity, primary)


@rule("TP-07")
def plan_zone(*, capacity: Capacity, primary: str) -> Iterator[Violation]:
    """A training plan serves nodes of its own zone."""
    if capacity.mode is CapacityMode.TRAINING_PLAN:
        yield from _elsewhere(capacity, primary)


@rule("CB-07")
def block_zone(*, capacity: Capacity, primary: str) -> Iterator[Violation]:
    """A Capacity Block serves instances of its own zone."""
    if capacity.mode is CapacityMode.CAPACITY_BLOCK:
        yield from _elsewhere(capacity, primary)


@rule("CB-21")
def block_region(
    *, capacity: Capacity, instance_type: str, region: str | None, types: catalog.Types
) -> Iterator[Violation]:
    """Capacity Blocks of a type are offered in some Regions; the list moves, so this is a warning."""
    found = types.get(instance_type)
    if capacity.mode is not CapacityMode.CAPACITY_BLOCK or region is None or found is None:
        return
    offered = found.capacity_blocks_regions
    if offered and region not in offered:
        text = f"Capacity Blocks of {instance_type} are not listed for {region}: {', '.join(offered)}"
        yield Violation("instance_type", text, "check where the block was bought")


@rule("CR-02")
def reservation_end(*, capacity: Capacity, now: datetime) -> Iterator[Violation]:
    """A reservation that is created ends in the future."""
    if capacity.create is not None and capacity.create.end is not None and capacity.create.end <= now:
        text = f"{capacity.create.end.isoformat()} is past"
        yield Violation("capacity.create.end", text, "give a time to come, or leave it out")


@rule("FMB-27")
def block_over(*, capacity: Capacity, now: datetime) -> Iterator[Violation]:
    """A Capacity Block whose end has passed launches nothing."""
    if capacity.mode is CapacityMode.CAPACITY_BLOCK and capacity.end is not None and capacity.end <= now:
        yield Violation("capacity.end", f"{capacity.end.isoformat()} is past", "name the block that follows it")


@rule("CB-13")
def block_to_come(*, capacity: Capacity, count: int, now: datetime) -> Iterator[Violation]:
    """Nodes that are asked for before a Capacity Block starts find no capacity."""
    if capacity.mode is not CapacityMode.CAPACITY_BLOCK or capacity.launch is Launch.SCHEDULED:
        return
    if capacity.start is not None and capacity.start > now and count > 0:
        text = f"{count} nodes are asked for before {capacity.start.isoformat()}, when the block starts"
        yield Violation("count", text, "write launch: scheduled, or deploy after the start")


@rule("FMB-45")
def block_begun(*, capacity: Capacity, now: datetime) -> Iterator[Violation]:
    """Auto Scaling refuses an action in the past: once a block has begun, a change of its start or size fails."""
    if capacity.launch is Launch.SCHEDULED and capacity.start is not None and capacity.start <= now:
        text = f"scheduled, but the block began {capacity.start.isoformat()}: a new or changed start action is refused"
        yield Violation("capacity.launch", text, "write launch: now")


@rule("FMB-46")
def schedule_told(*, capacity: Capacity) -> Iterator[Violation]:
    """Nodes that are launched by schedule need to know when."""
    if capacity.mode is CapacityMode.CAPACITY_BLOCK and capacity.launch is Launch.SCHEDULED and capacity.start is None:
        yield Violation("capacity.start", "is required with launch scheduled", "give the block's start, or launch: now")


@rule("FMB-47")
def end_told(*, capacity: Capacity, emptied: bool) -> Iterator[Violation]:
    """Nodes of a Capacity Block stop before EC2 terminates them, where something stops them."""
    if emptied and capacity.mode is CapacityMode.CAPACITY_BLOCK and capacity.end is None:
        text = "is not given, so the nodes are not stopped before EC2 terminates them"
        yield Violation("capacity.end", text, "give the block's end")


EC2_GROUP = (
    "X-01", "X-03", "X-08", "CR-03", "CR-06", "CR-13", "CB-02", "CB-04", "CB-05", "CB-06", "CB-15", "CB-21", "FMB-25",
    "FMB-46", "FMB-47",
)  # fmt: skip
# At the constructs' edge.
RESERVATION_CONSTRUCT = ("CR-03",)
TEMPLATE_CONSTRUCT = ("X-01", "X-03", "X-08", "CB-02", "CB-21")
FLEET_CONSTRUCT = ("CB-04", "CB-05", "CB-07", "CB-15", "CR-07", "FMB-24", "FMB-46", "FMB-47")
EVERY_GROUP = ("CB-07", "CR-07", "FMB-24", "FMB-26", "NET-06", "TP-07")
# What depends on the day: `fmblocks validate` only, never a synth, whose result is the same next year.
DATED = ("CB-13", "CR-02", "FMB-27", "FMB-45")
TRAINING = ("CB-03", "FMB-40", "TP-02", "X-07")
