"""Regions and how their Availability Zones are spelled.

Source of the list: botocore 1.44.8 ``endpoints.json``, partitions aws, aws-cn, aws-us-gov, aws-eusc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

REGIONS: frozenset[str] = frozenset(
    [
        "af-south-1",
        "ap-east-1",
        "ap-east-2",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-northeast-3",
        "ap-south-1",
        "ap-south-2",
        "ap-southeast-1",
        "ap-southeast-2",
        "ap-southeast-3",
        "ap-southeast-4",
        "ap-southeast-5",
        "ap-southeast-6",
        "ap-southeast-7",
        "ca-central-1",
        "ca-west-1",
        "cn-north-1",
        "cn-northwest-1",
        "eu-central-1",
        "eu-central-2",
        "eu-north-1",
        "eu-south-1",
        "eu-south-2",
        "eu-west-1",
        "eu-west-2",
        "eu-west-3",
        "eusc-de-east-1",
        "il-central-1",
        "me-central-1",
        "me-south-1",
        "mx-central-1",
        "sa-east-1",
        "us-east-1",
        "us-east-2",
        "us-gov-east-1",
        "us-gov-west-1",
        "us-west-1",
        "us-west-2",
    ]
)

_DIRECTIONS = {
    "north": "n",
    "south": "s",
    "east": "e",
    "west": "w",
    "central": "c",
    "northeast": "ne",
    "northwest": "nw",
    "southeast": "se",
    "southwest": "sw",
}


def zone_id_prefix(region: str) -> str:
    """How zone ids of ``region`` begin: ``us-west-2`` gives ``usw2``.

    Source: EC2 User Guide, *Availability Zone IDs* (use1, usw2, apne1, usgw1, cnnw1).
    """
    country, *middle, number = region.split("-")
    return country + "".join(_DIRECTIONS.get(word, word[0]) for word in middle) + number


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone as a user wrote it, taken apart.

    Attributes:
        text: what was written.
        kind: ``id`` (``usw2-az1``), ``name`` (``us-west-2a``), ``local`` (``us-west-2-lax-1a``, ``usw2-lax1-az1``)
            or ``number`` (``1``, the form of a project without a Region).
        region_part: the part that must fit the Region: a zone-id prefix or a Region name; empty for a number.
        by_id: whether it is written as an id (``usw2-az1``, ``usw2-lax1-az1``).
        slot: 0 for az1, a or 1, up to 5 for az6 or f; None where the zone has no fixed place (local zones, g and on).
    """

    text: str
    kind: str
    region_part: str
    by_id: bool
    slot: int | None


_ID = re.compile(r"(?P<region>[a-z]+\d+)-az(?P<number>[1-9]\d?)")
_NAME = re.compile(r"(?P<region>[a-z]+(?:-[a-z]+)+-\d+)(?P<letter>[a-z])")
_LOCAL_ID = re.compile(r"(?P<region>[a-z]+\d+)-[a-z]+\d+-az[1-9]\d?")
_LOCAL_NAME = re.compile(r"(?P<region>[a-z]+(?:-[a-z]+)+-\d+)-[a-z]+-\d+[a-z]")
SLOTS = 6


def parse_zone(text: str) -> Zone | None:
    """Take a zone apart; None when it is no zone at all."""
    if text.isdecimal():
        return Zone(text, "number", "", False, int(text) - 1 if 0 < int(text) <= SLOTS else None)
    if found := _ID.fullmatch(text):
        slot = int(found["number"]) - 1
        return Zone(text, "id", found["region"], True, slot if 0 <= slot < SLOTS else None)
    if found := _NAME.fullmatch(text):
        slot = ord(found["letter"]) - ord("a")
        return Zone(text, "name", found["region"], False, slot if slot < SLOTS else None)
    if found := _LOCAL_ID.fullmatch(text):
        return Zone(text, "local", found["region"], True, None)
    if found := _LOCAL_NAME.fullmatch(text):
        return Zone(text, "local", found["region"], False, None)
    return None
