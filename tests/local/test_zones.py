"""Zones that come, go and come back; none of it touches another subnet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.conftest import LocalAws

pytestmark = pytest.mark.enable_socket

PROJECT = """\
name: zones
account: "111122223333"
region: us-west-2
network: {{availability_zones: [{zones}], primary_availability_zone: usw2-az2}}
storage: {{lustre: {{deployment_type: scratch_2, capacity_gib: 1200}}}}
"""


def test_zones_come_and_go(aws: LocalAws, tmp_path: Path) -> None:
    file = tmp_path / "zones.yaml"

    def deploy(*zones: str) -> dict[str, str]:
        file.write_text(PROJECT.format(zones=", ".join(zones)))
        aws.deploy(file, "FoundationStack")
        return {
            logical: id
            for logical, (kind, id) in aws.resources("zones-FoundationStack").items()
            if kind[10:] == "Subnet"
        }

    two = deploy("usw2-az1", "usw2-az2")
    three = deploy("usw2-az3", "usw2-az2", "usw2-az1")
    assert len(three) == 6
    assert two.items() <= three.items()
    without = deploy("usw2-az3", "usw2-az2")
    assert without.items() <= three.items()
    assert len(without) == 4
    again = deploy("usw2-az2", "usw2-az1", "usw2-az3")
    assert without.items() <= again.items()
    assert len(again) == 6
