"""What EC2 and SageMaker sell: instance types and Regions, each value with its source.

Facts about an instance type stand in ``instances.json`` and nowhere else. A missing or null value means that no
trustworthy source was found; nothing here guesses.
"""

from __future__ import annotations

import difflib
import functools
import json
from dataclasses import dataclass
from pathlib import Path

from fmblocks.catalog.regions import REGIONS, Zone, parse_zone, zone_id_prefix

__all__ = [
    "REGIONS",
    "InstanceType",
    "Zone",
    "instance_type",
    "instance_types",
    "nearest",
    "normalise",
    "parse_zone",
    "zone_id_prefix",
]


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One EC2 instance type.

    Attributes:
        name: the EC2 name, for example ``p5en.48xlarge``.
        architecture: ``x86_64`` or ``arm64``.
        accelerator_model: the accelerator as AWS prints it, or None on a CPU type.
        accelerator_count: accelerators per instance.
        vcpus: virtual CPUs per instance.
        max_efa_interfaces: Elastic Fabric Adapter interfaces per instance; 0 means that the type has no EFA.
        hyperpod: whether SageMaker HyperPod takes the type (as ``ml.<name>``).
        training_plans: whether SageMaker training plans are sold for the type, or None when unknown.
    """

    name: str
    architecture: str
    accelerator_model: str | None
    accelerator_count: int
    vcpus: int
    max_efa_interfaces: int
    hyperpod: bool
    training_plans: bool | None


@functools.cache
def instance_types() -> dict[str, InstanceType]:
    """Every type of the catalogue, by name."""
    text = Path(__file__).with_name("instances.json").read_text(encoding="utf-8")
    return {
        row["name"]: InstanceType(
            name=row["name"],
            architecture=row["architecture"],
            accelerator_model=row["accelerator_model"],
            accelerator_count=row["accelerator_count"] or 0,
            vcpus=row["vcpus"],
            max_efa_interfaces=row["max_efa_interfaces"] or 0,
            hyperpod=bool(row["hyperpod"]),
            training_plans=row["training_plans"],
        )
        for row in json.loads(text)["instances"]
    }


def normalise(name: str) -> str:
    """The EC2 name of ``name``, in small letters and without SageMaker's ``ml.`` prefix."""
    return name.lower().removeprefix("ml.")


def instance_type(name: str) -> InstanceType | None:
    """Look up a type by its EC2 or SageMaker name; None when the catalogue does not have it."""
    return instance_types().get(normalise(name))


def nearest(name: str) -> list[str]:
    """The catalogue's names that look most like ``name``, best first."""
    return difflib.get_close_matches(normalise(name), instance_types(), n=3, cutoff=0.5)
