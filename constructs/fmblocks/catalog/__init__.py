"""What EC2 and SageMaker sell: instance types and Regions, each value with its source.

Facts about an instance type stand in ``instances.json`` and nowhere else. A missing or null value means that no
trustworthy source was found; nothing here guesses.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fmblocks.catalog.regions import REGIONS, Zone, parse_zone, zone_id_prefix

__all__ = [
    "REGIONS",
    "InstanceType",
    "Types",
    "Zone",
    "instance_types",
    "merged",
    "nearest",
    "normalise",
    "parse_zone",
    "zone_id_prefix",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """One EC2 instance type. None means that no trustworthy source was found.

    Attributes:
        name: the EC2 name, for example ``p5en.48xlarge``.
        architecture: ``x86_64`` or ``arm64``.
        accelerator_vendor: ``nvidia`` or ``aws``; None on a CPU type.
        accelerator_model: the accelerator as AWS prints it; None on a CPU type.
        accelerator_count: accelerators per instance.
        nvlinks_per_accelerator: NVLinks of one accelerator.
        hbm_gib_per_accelerator: memory of one accelerator in GiB.
        hbm_gib_total: memory of all of them in GiB, as AWS prints it.
        peak_dense_tflops_bf16: dense TFLOPS of one accelerator at BF16; likewise fp8 and fp4.
        vcpus: virtual CPUs per instance.
        memory_gib: memory per instance in GiB.
        network_cards: network cards per instance.
        max_efa_interfaces: Elastic Fabric Adapter interfaces per instance; 0 means that the type has no EFA.
        efa_network_cards: cards that take an EFA interface; empty where no source was found.
        efa_layout_cards: the same cards in the order in which AWS's layouts fill them.
        efa_layout_count: EFA interfaces of AWS's layout with the fewest addresses; None means all of them.
        ip_interface_cards: cards that get an ENA interface more for the most IP bandwidth; empty where AWS names none.
        efa_gbps_total: what an EFA job can use, in Gbps per instance.
        max_enis_per_card: network interfaces per card, efa-only ones among them.
        local_nvme_count: instance-store volumes.
        local_nvme_size_gb: size of one of them in GB.
        fsx_lustre_efa_client: whether the type can mount FSx for Lustre over EFA.
        hyperpod: whether SageMaker HyperPod takes the type (as ``ml.<name>``).
        training_plans: whether SageMaker training plans are sold for the type.
        capacity_blocks: how Capacity Blocks are sold: ``instance``, ``ultraserver-only``, or None.
        capacity_blocks_regions: Regions that list them for the type; empty where no source was found. The list moves.
    """

    name: str
    architecture: str | None = None
    accelerator_vendor: str | None = None
    accelerator_model: str | None = None
    accelerator_count: int = 0
    nvlinks_per_accelerator: int | None = None
    hbm_gib_per_accelerator: int | None = None
    hbm_gib_total: int | None = None
    peak_dense_tflops_bf16: int | None = None
    peak_dense_tflops_fp8: int | None = None
    peak_dense_tflops_fp4: int | None = None
    vcpus: int | None = None
    memory_gib: int | None = None
    network_cards: int | None = None
    max_efa_interfaces: int = 0
    efa_network_cards: tuple[int, ...] = ()
    efa_layout_cards: tuple[int, ...] = ()
    efa_layout_count: int | None = None
    ip_interface_cards: tuple[int, ...] = ()
    efa_gbps_total: int | None = None
    max_enis_per_card: int | None = None
    local_nvme_count: int | None = None
    local_nvme_size_gb: int | None = None
    fsx_lustre_efa_client: bool | None = None
    hyperpod: bool = False
    training_plans: bool | None = None
    capacity_blocks: str | None = None
    capacity_blocks_regions: tuple[str, ...] = ()


Types = Mapping[str, InstanceType]
_FIELDS = {field.name for field in dataclasses.fields(InstanceType)}


@functools.cache
def instance_types() -> Types:
    """Every type of the catalogue, by name."""
    text = Path(__file__).with_name("instances.json").read_text(encoding="utf-8")
    return {row["name"]: _instance_type(row) for row in json.loads(text)["instances"]}


def _instance_type(row: Mapping[str, Any]) -> InstanceType:
    known = {key: value for key, value in row.items() if key in _FIELDS and value is not None}
    # Local Zones stand in the list too, as "us-east-1-atl-2a (Local Zone)": what counts is their Region.
    listed = row.get("capacity_blocks_regions") or ()
    regions = sorted(region for region in REGIONS if any(where.startswith(region) for where in listed))
    layout = row.get("recommended_efa_layout") or {}
    more = (layout.get("max_ip_bandwidth_variant") or {}).get("extra_interfaces", ())
    return InstanceType(
        **{
            **known,
            "capacity_blocks_regions": tuple(regions),
            "efa_network_cards": tuple(row.get("efa_capable_network_cards") or ()),
            "efa_layout_cards": tuple(_cards([*layout.get("interfaces", ()), *more], "efa")),
            "efa_layout_count": layout.get("efa_count"),
            "ip_interface_cards": tuple(_cards(more, "interface")),
        }
    )


def _cards(interfaces: Iterable[str], kind: str) -> Iterator[int]:
    """The cards of the interfaces of a kind, which stand as card/device/kind."""
    for interface in interfaces:
        card, _, written = interface.split("/")
        if written.startswith(kind):
            yield int(card)


def merged(overrides: Iterable[Mapping[str, Any]]) -> Types:
    """The catalogue with types added, or some of their values replaced.

    Args:
        overrides: rows with a ``name`` and any other attributes of :class:`InstanceType`; None leaves a value alone.
    """
    types = dict(instance_types())
    for row in overrides:
        given = {key: value for key, value in row.items() if value is not None}
        name = given["name"]
        types[name] = dataclasses.replace(types[name], **given) if name in types else _instance_type(given)
    return types


def normalise(name: str) -> str:
    """The EC2 name of ``name``, in small letters and without SageMaker's ``ml.`` prefix."""
    return name.lower().removeprefix("ml.")


def nearest(name: str, types: Types) -> list[str]:
    """The names of ``types`` that look most like ``name``, best first."""
    return difflib.get_close_matches(normalise(name), types, n=3, cutoff=0.5)
