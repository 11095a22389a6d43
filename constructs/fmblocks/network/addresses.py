"""Which addresses each zone gets: fixed slots, keyed by zone, never by position in a list.

So adding, removing or reordering zones changes no other subnet. A subnet's CIDR is create-only; one that moved would be
replaced under whatever stands in it.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from fmblocks.catalog import parse_zone

Cidr = ipaddress.IPv4Network
# Without a Region zones are numbers: 1 and 2 are all that an account-agnostic template can name (Fn::GetAZs).
NUMBERED_ZONES = 2
# The smallest VPC whose public slots (1/256 of it) still reach EC2's smallest subnet, a /28.
SMALLEST_VPC_PREFIX = 20
# The largest VPC that EC2 sells (rule NET-01).
LARGEST_VPC_PREFIX = 16
# Addresses that belong to nobody else. Source: RFC 1918.
RFC_1918 = (Cidr("10.0.0.0/8"), Cidr("172.16.0.0/12"), Cidr("192.168.0.0/16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneAddresses:
    """The two ranges of one zone."""

    private: str
    public: str


def parse_cidr(text: str) -> Cidr | None:
    """``text`` as a network, or None when it is no IPv4 CIDR or has host bits set."""
    try:
        return ipaddress.IPv4Network(text)
    except ValueError:
        return None


def slots(cidr: str, zone: str, *, primary: bool) -> ZoneAddresses | None:
    """The fixed ranges of ``zone`` in a VPC of ``cidr``.

    In 10.20.0.0/16 the primary zone's private subnet is the lower half, 10.20.0.0/17; zone i has private
    10.20.(128+16*i).0/20 unless it is the primary one, and public 10.20.(240+i).0/24. Smaller VPCs in proportion.

    Returns:
        None for a zone without a slot: Local Zones, and letters or numbers past the sixth.
    """
    parsed = parse_zone(zone)
    network = parse_cidr(cidr)
    if parsed is None or parsed.slot is None or network is None or network.prefixlen > SMALLEST_VPC_PREFIX:
        return None
    private = _part(network, 1, 0) if primary else _part(network, 4, 8 + parsed.slot)
    return ZoneAddresses(private=str(private), public=str(_part(network, 8, 240 + parsed.slot)))


def _part(network: Cidr, bits: int, index: int) -> Cidr:
    prefix = network.prefixlen + bits
    return Cidr((int(network.network_address) + index * 2 ** (32 - prefix), prefix))
