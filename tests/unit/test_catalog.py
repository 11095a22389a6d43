"""The catalogue and the Regions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fmblocks import catalog
from fmblocks.catalog import REGIONS, parse_zone, zone_id_prefix


@pytest.mark.parametrize(
    ("region", "prefix"),
    [
        ("us-east-1", "use1"),
        ("us-west-2", "usw2"),
        ("ap-northeast-1", "apne1"),
        ("ap-southeast-2", "apse2"),
        ("ap-south-1", "aps1"),
        ("eu-central-1", "euc1"),
        ("ca-central-1", "cac1"),
        ("sa-east-1", "sae1"),
        ("me-south-1", "mes1"),
        ("us-gov-west-1", "usgw1"),
        ("cn-north-1", "cnn1"),
        ("cn-northwest-1", "cnnw1"),
    ],
)
def test_zone_ids_begin_with_the_region(region: str, prefix: str) -> None:
    assert zone_id_prefix(region) == prefix


def test_no_two_regions_share_a_prefix() -> None:
    assert len({zone_id_prefix(region) for region in REGIONS}) == len(REGIONS)


@pytest.mark.parametrize(
    ("text", "kind", "slot"),
    [
        ("usw2-az1", "id", 0),
        ("usw2-az6", "id", 5),
        ("usw2-az7", "id", None),
        ("us-west-2a", "name", 0),
        ("us-east-1f", "name", 5),
        ("us-west-2-lax-1a", "local", None),
        ("usw2-lax1-az1", "local", None),
        ("1", "number", 0),
    ],
)
def test_zones_are_taken_apart(text: str, kind: str, slot: int | None) -> None:
    zone = parse_zone(text)
    assert zone is not None
    assert (zone.kind, zone.slot) == (kind, slot)


@pytest.mark.parametrize("text", ["", "a", "us-west-2", "usw2", "US-WEST-2A", "usw2-az", "us-west-2aa"])
def test_what_is_no_zone_is_none(text: str) -> None:
    assert parse_zone(text) is None


def test_a_type_of_the_catalogue() -> None:
    found = catalog.instance_types()[catalog.normalise("ML.p5en.48xlarge")]
    assert (found.accelerator_count, found.max_efa_interfaces, found.hyperpod) == (8, 16, True)
    assert catalog.instance_types()["p6-b300.48xlarge"].peak_dense_tflops_fp4 is None  # no source, no number


def test_types_are_added_and_corrected() -> None:
    types = catalog.merged([{"name": "p9.48xlarge", "hyperpod": True}, {"name": "p5.48xlarge", "vcpus": 7}])
    assert types["p9.48xlarge"].hyperpod
    assert types["p9.48xlarge"].accelerator_count == 0
    assert (types["p5.48xlarge"].vcpus, types["p5.48xlarge"].max_efa_interfaces) == (7, 32)
    assert catalog.instance_types()["p5.48xlarge"].vcpus == 192
    assert "p9.48xlarge" not in catalog.instance_types()


def test_every_value_has_a_known_source(root: Path) -> None:
    data = json.loads((root / "constructs/fmblocks/catalog/instances.json").read_text())
    known = {*data["source_keys"], "NONE"}
    for row in data["instances"]:
        for key in set(row) - {"name", "sources", "notes", "conflicts"}:
            named = row["sources"].get(key, row["sources"].get("*", []))
            assert named, (row["name"], key)
            assert set(named) <= known, (row["name"], key)
