"""The interfaces of every type: what AWS's guide lays out, and nothing that EC2 refuses."""

from __future__ import annotations

from typing import Any

import pytest

from fmblocks.catalog import instance_types
from fmblocks.compute.interfaces import addresses, layout
from fmblocks.compute.rules import INTERFACES
from fmblocks.compute.settings import Efa
from fmblocks.findings import check

# Settings are written as a project file writes them: as text.
# mypy: disable-error-code="arg-type"

TYPES = instance_types()
WITH_EFA = sorted(name for name, one in TYPES.items() if one.max_efa_interfaces)


def written(name: str, **efa: Any) -> list[str]:
    """The layout in the notation of the guide: card/device kind."""
    return [
        f"{one.network_card_index}/{one.device_index} {one.interface_type}" for one in layout(TYPES[name], Efa(**efa))
    ]


def only(*cards: int) -> list[str]:
    return [f"{card}/0 efa-only" for card in cards]


# EC2 User Guide, *Maximize network bandwidth on Amazon EC2 instances with multiple network cards*.
FEWEST_ADDRESSES = {
    "p4d.24xlarge": ["0/0 interface", "0/1 efa-only", *only(1, 2, 3)],
    "p4de.24xlarge": ["0/0 interface", "0/1 efa-only", *only(1, 2, 3)],
    "p5.4xlarge": ["0/0 interface", "0/1 efa-only"],
    "p5.48xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 32))],
    "p5e.48xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 32))],
    "p5en.48xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 16))],
    "p6-b200.48xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 8))],
    "p6-b300.48xlarge": ["0/0 interface", *only(*range(1, 17))],
    "p6e-gb200.36xlarge": ["0/0 interface", *only(1, 5, 9, 13)],
    "trn1.32xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 8))],
    "trn1n.32xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 16))],
    "trn2.3xlarge": ["0/0 interface", "0/1 efa-only"],
    "trn2.48xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 16))],
    "trn2u.48xlarge": ["0/0 interface", "0/1 efa-only", *only(*range(1, 16))],
    "g6e.48xlarge": ["0/0 interface", "0/1 efa-only", *only(1, 2, 3)],
    "g5.8xlarge": ["0/0 interface", "0/1 efa-only"],
    "g6e.4xlarge": ["0/0 interface"],
    "trn1.2xlarge": ["0/0 interface"],
}


@pytest.mark.parametrize("name", FEWEST_ADDRESSES)
def test_the_fewest_addresses(name: str) -> None:
    assert written(name) == FEWEST_ADDRESSES[name]
    assert addresses(layout(TYPES[name], Efa())) == 1


def test_all_accelerated_types_with_efa_are_written_down() -> None:
    accelerated = {name for name in WITH_EFA if TYPES[name].accelerator_count and name.startswith(("p", "trn"))}
    assert accelerated <= set(FEWEST_ADDRESSES)


def test_the_most_ip_bandwidth() -> None:
    more = [f"{card}/1 interface" for card in range(4, 32, 4)]
    assert sorted(set(written("p5.48xlarge", profile="max-ip-bandwidth")) - set(written("p5.48xlarge"))) == sorted(more)
    assert addresses(layout(TYPES["p5.48xlarge"], Efa(profile="max-ip-bandwidth"))) == 8
    assert addresses(layout(TYPES["p6-b200.48xlarge"], Efa(profile="max-ip-bandwidth"))) == 8
    assert addresses(layout(TYPES["p6-b300.48xlarge"], Efa(profile="max-ip-bandwidth"))) == 17


def test_the_older_layout() -> None:
    assert written("p4d.24xlarge", secondary_device_index=1)[2:] == ["1/1 efa-only", "2/1 efa-only", "3/1 efa-only"]
    assert written("p4d.24xlarge", interface_type="efa") == ["0/0 efa", "1/1 efa", "2/1 efa", "3/1 efa"]
    assert written("p6-b300.48xlarge", interface_type="efa")[:2] == ["0/0 interface", "1/1 efa"]
    assert addresses(layout(TYPES["p5.48xlarge"], Efa(interface_type="efa"))) == 32


def test_fewer_interfaces_than_there_are() -> None:
    assert written("p5.48xlarge", count=2) == ["0/0 interface", "0/1 efa-only", "1/0 efa-only"]
    assert written("p6e-gb200.36xlarge", count=8) == ["0/0 interface", *only(*range(1, 17, 2))]
    assert written("p5.48xlarge", mode="none") == ["0/0 interface"]


@pytest.mark.parametrize("name", WITH_EFA)
@pytest.mark.parametrize(
    "efa", [Efa(), Efa(secondary_device_index=1), Efa(interface_type="efa")], ids=["default", "older", "efa"]
)
def test_no_layout_breaks_a_rule(name: str, efa: Efa) -> None:
    interfaces = layout(TYPES[name], efa)
    found = check(INTERFACES, {"network_interfaces": interfaces, "instance_type": name, "types": TYPES})
    # The odd cards of p6e-gb200 take efa-only, so efa is refused there, and nowhere else.
    refused = {"EFA-27"} if name.startswith("p6e-gb200") and efa.interface_type else set()
    assert {finding.rule for finding in found} == refused
    wanted = TYPES[name].efa_layout_count or TYPES[name].max_efa_interfaces
    assert sum(one.interface_type.has_efa for one in interfaces) == wanted
