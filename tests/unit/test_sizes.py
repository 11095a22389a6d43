"""Every size that FSx for Lustre sells, and its neighbours that it does not: the lists are AWS's, written out again."""

from __future__ import annotations

from typing import Any

import pytest

from fmblocks.findings import check
from fmblocks.storage import rules
from fmblocks.storage.settings import DeploymentType, LustreMetadataMode, ReadCacheSizingMode, StorageType

P1, P2 = DeploymentType.PERSISTENT_1, DeploymentType.PERSISTENT_2
S1, S2 = DeploymentType.SCRATCH_1, DeploymentType.SCRATCH_2
SSD, HDD, TIERING = StorageType.SSD, StorageType.HDD, StorageType.INTELLIGENT_TIERING


# The rules register themselves when they are loaded.
assert rules.RULES


def passes(rule: str, **values: Any) -> bool:
    return check([rule], values) == []


@pytest.mark.parametrize(
    ("kind", "media", "throughput", "sold"),
    [
        (S1, SSD, None, [1200, 2400, *range(3600, 72001, 3600)]),
        (S2, SSD, None, [1200, *range(2400, 72001, 2400)]),
        (P1, SSD, 50, [1200, *range(2400, 72001, 2400)]),
        (P2, SSD, 125, [1200, *range(2400, 72001, 2400)]),
        (P1, HDD, 12, [*range(6000, 72001, 6000)]),
        (P1, HDD, 40, [*range(1800, 72001, 1800)]),
    ],
)
def test_capacities(kind: DeploymentType, media: StorageType, throughput: int | None, sold: list[int]) -> None:
    values = {"deployment_type": kind, "storage_type": media, "throughput_mbps_per_tib": throughput}
    told = {size for size in range(0, 72001, 600) if passes("FSX-02", capacity_gib=size, **values)}
    assert told == set(sold)
    for size in sold:
        assert not passes("FSX-02", capacity_gib=size - 1, **values)
        assert not passes("FSX-02", capacity_gib=size + 1, **values)


@pytest.mark.parametrize(
    ("kind", "media", "sold"),
    [
        (P1, SSD, {50, 100, 200}),
        (P1, HDD, {12, 40}),
        (P2, SSD, {125, 250, 500, 1000}),
        (S1, SSD, {None}),
        (S2, SSD, {None}),
        (P2, HDD, set()),
        (S2, HDD, set()),
    ],
)
def test_throughputs(kind: DeploymentType, media: StorageType, sold: set[int | None]) -> None:
    tried: list[int | None] = [None, *range(1101)]
    values = {"deployment_type": kind, "storage_type": media}
    assert {size for size in tried if passes("FSX-03", throughput_mbps_per_tib=size, **values)} == sold


def test_metadata_iops() -> None:
    sold = {1500, 3000, 6000, *range(12000, 192001, 12000)}
    tried = {number for size in sold for number in (size - 1, size, size + 1)} | {0, 750, 4500, 9000, 204000}
    given = {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED}
    assert {size for size in tried if passes("FSX-11", metadata_iops=size, **given)} == sold


@pytest.mark.parametrize(("throughput", "step"), [(1000, 4800), (500, 9600), (250, 19200), (125, 38400)])
def test_capacities_with_efa(throughput: int, step: int) -> None:
    values = {
        "deployment_type": P2,
        "efa_enabled": True,
        "throughput_mbps_per_tib": throughput,
        "throughput_capacity_mbps": None,
    }
    told = {size for size in range(2400, 5 * step + 1, 2400) if passes("FSX-13", capacity_gib=size, **values)}
    assert told == {step, 2 * step, 3 * step, 4 * step, 5 * step}


@pytest.mark.parametrize(("throughput", "efa"), [(4000, True), (8000, True), (1000, False), (2000, False)])
def test_tiering_with_efa(throughput: int, efa: bool) -> None:
    values = {"deployment_type": P2, "efa_enabled": True, "throughput_mbps_per_tib": None, "capacity_gib": None}
    assert passes("FSX-13", throughput_capacity_mbps=throughput, **values) == efa


@pytest.mark.parametrize("throughput", [1000, 2000, *range(4000, 40001, 4000), 2000000])
def test_read_caches(throughput: int) -> None:
    least, most = 8 * throughput // 1000, 32768 * throughput // 1000
    tried = {least - 1, least, least + 1, most - 1, most, most + 1}
    given = {
        "storage_type": TIERING,
        "throughput_capacity_mbps": throughput,
        "read_cache_sizing_mode": ReadCacheSizingMode.USER_PROVISIONED,
    }
    sold = {size for size in tried if passes("FSX-10", read_cache_size_gib=size, **given)}
    assert sold == tried - {least - 1, most + 1}


def test_chunks_of_imported_files() -> None:
    tried = {0, 1, 2, 511999, 512000, 512001}
    assert {size for size in tried if passes("DRA-07", imported_file_chunk_size_mib=size)} == tried - {0, 512001}
