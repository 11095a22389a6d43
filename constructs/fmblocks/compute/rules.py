"""What is refused about placement and EFA, on every orchestrator that runs in your own account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from fmblocks import catalog
from fmblocks.capacity.settings import Capacity, CapacityMode
from fmblocks.compute.settings import Efa, EfaMode, Placement, PlacementMode
from fmblocks.findings import Violation, rule


class Fabric(Protocol):
    """A node group as the rules over several of them see it."""

    @property
    def name(self) -> str: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def efa(self) -> Efa: ...


@rule("EFA-01")
def efa_exists(*, instance_type: str, efa: Efa, types: catalog.Types) -> Iterator[Violation]:
    """EFA that is asked for by name needs a type that has it; mode auto takes what there is."""
    found = types.get(instance_type)
    asked = [key for key in ("count", "interface_type", "profile") if getattr(efa, key) is not None]
    if found is not None and not found.max_efa_interfaces and asked and efa.mode is not EfaMode.NONE:
        text = f"EFA is not available on {instance_type}"
        yield Violation(f"efa.{asked[0]}", text, "write efa: auto, or choose a type with EFA")


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
def efa_all(*, instance_type: str, efa: Efa, types: catalog.Types) -> Iterator[Violation]:
    """Fewer EFA interfaces are less bandwidth than is paid for."""
    found = types.get(instance_type)
    if efa.count is not None and found is not None and 0 < efa.count < found.max_efa_interfaces:
        text = f"{efa.count} of the {found.max_efa_interfaces} EFA interfaces of {instance_type} are used"
        yield Violation("efa.count", text, "leave it out to get all of them")


# Source: the rule; they are never sold as spot.
_NO_SPOT = ("p6e-gb200.", "trn2u.")


@rule("EFA-25")
def spot_sold(*, instance_type: str, capacity: Capacity) -> Iterator[Violation]:
    """Some types are not sold as spot."""
    if capacity.mode is CapacityMode.SPOT and instance_type.startswith(_NO_SPOT):
        yield Violation(
            "capacity.mode", f"{instance_type} is not sold as spot", "buy it another way: see CB-02 and TP-03"
        )


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
    """A reservation is made in a cluster group or in none."""
    if capacity.create is not None and placement.mode in (PlacementMode.PARTITION, PlacementMode.SPREAD):
        text = f"a reservation cannot be created in a {placement.mode} group"
        yield Violation("placement.mode", text, "use cluster, auto or none")


# Source: EC2 User Guide, *Elastic Fabric Adapter*, limitations.
_ALONE = ("p4d.24xlarge", "p4de.24xlarge", "dl1.24xlarge")


@rule("X-09")
def fabrics(*, node_groups: Sequence[Fabric], types: catalog.Types) -> Iterator[Violation]:
    """EFA traffic between p4d, p4de or dl1 and any other type is not supported."""
    with_efa = {
        group.instance_type
        for group in node_groups
        if group.efa.mode is not EfaMode.NONE
        and (found := types.get(group.instance_type))
        and found.max_efa_interfaces
        and found.accelerator_count
    }
    for alone in sorted(with_efa & set(_ALONE)):
        if others := sorted(with_efa - {alone}):
            text = f"{alone} cannot talk over EFA with {', '.join(others)}"
            yield Violation("node_groups", text, "give it a project of its own, or one type to all groups")


EC2_GROUP = ("EFA-01", "EFA-02", "EFA-18", "PG-04", "PG-07", "PG-12")
EVERY_GROUP = ("EFA-25", "PG-03")
TRAINING = ("X-09",)
