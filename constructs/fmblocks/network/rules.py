"""What is refused about a network. Ids NET-… stand in the rule book; FMB-… are this library's own contract."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fmblocks.catalog import REGIONS, parse_zone, zone_id_prefix
from fmblocks.findings import Violation, rule
from fmblocks.network.addresses import (
    LARGEST_VPC_PREFIX,
    NUMBERED_ZONES,
    RFC_1918,
    SMALLEST_VPC_PREFIX,
    Cidr,
    ZoneAddresses,
    parse_cidr,
    slots,
)
from fmblocks.network.settings import CLOSED_NETWORK_SERVICES, ExistingVpc

# EC2's smallest subnet. Source: VPC User Guide, Subnet CIDR blocks.
_SMALLEST_SUBNET_PREFIX = 28


@rule("NET-01")
def vpc_cidr(*, cidr: str, vpc: ExistingVpc | None) -> Iterator[Violation]:
    """A VPC is a /16 to a /28, and ours needs room for its slots."""
    key, network = "vpc.cidr" if vpc else "cidr", parse_cidr(cidr)
    if network is None:
        yield Violation(key, f"{cidr} is no IPv4 network", "write one like 10.20.0.0/16, with no host bits set")
    elif network.prefixlen < LARGEST_VPC_PREFIX:
        yield Violation(key, f"{cidr} is larger than the /16 that a VPC may have", "use a /16")
    elif vpc is not None:
        if network.prefixlen > _SMALLEST_SUBNET_PREFIX:
            yield Violation(
                key, f"{cidr} is smaller than a VPC can be", f"the smallest is a /{_SMALLEST_SUBNET_PREFIX}"
            )
    elif network.prefixlen > SMALLEST_VPC_PREFIX:
        yield Violation(
            "cidr",
            f"{cidr} is too small for the subnets of six zones: at least a /{SMALLEST_VPC_PREFIX} is needed",
            "use a /16 unless addresses are scarce",
        )


@rule("FMB-17")
def private_range(*, cidr: str) -> Iterator[Violation]:
    """A VPC on somebody else's addresses cannot reach them."""
    network = parse_cidr(cidr)
    if network is not None and not any(network.subnet_of(private) for private in RFC_1918):
        text = f"{cidr} is outside the private ranges {', '.join(map(str, RFC_1918))}"
        yield Violation("cidr", text, "use a range of those unless these addresses are yours")


@rule("FMB-01")
def zones_of_region(*, availability_zones: Sequence[str], region: str | None) -> Iterator[Violation]:
    """Every zone is a zone, and one of the Region's."""
    for text in availability_zones:
        zone = parse_zone(text)
        if zone is None:
            yield Violation(
                "availability_zones",
                f"{text} is neither a zone id (usw2-az1) nor a zone name (us-west-2a)",
                "list zone ids, as `aws ec2 describe-availability-zones` prints them",
            )
        elif region in REGIONS and zone.region_part not in ("", region, zone_id_prefix(region or "")):
            yield Violation(
                "availability_zones",
                f"{text} is not a zone of region {region}, whose zones begin {zone_id_prefix(region)}- or {region}",
                "change the zone or the region",
            )


@rule("FMB-02")
def zones_need_region(*, availability_zones: Sequence[str], region: str | None) -> Iterator[Violation]:
    """Literal zones belong to a Region; a count belongs to a project without one."""
    kinds = {zone.kind for text in availability_zones if (zone := parse_zone(text))}
    if region is None and kinds - {"number"}:
        listed = ", ".join(availability_zones)
        yield Violation(
            "availability_zones",
            f"{listed} can only be used with a region",
            "add region, or write a count of 1 or 2 instead of the zones",
        )
    beyond = [text for text in availability_zones if text.isdecimal() and int(text) > NUMBERED_ZONES]
    if region is None and beyond:
        text = f"{', '.join(beyond)}: a template without a region knows the zones 1 and {NUMBERED_ZONES} only"
        yield Violation("availability_zones", text, "write a count of 1 or 2, or add region and name the zones")
    if region is not None and "number" in kinds:
        yield Violation(
            "availability_zones",
            f"a count ({len(availability_zones)}) does not say which zones of {region} are meant",
            f"list zone ids, for example [{zone_id_prefix(region)}-az1, {zone_id_prefix(region)}-az2]",
        )


@rule("FMB-03")
def zones_of_one_kind(*, availability_zones: Sequence[str]) -> Iterator[Violation]:
    """Ids and names are not mixed: us-west-2a and usw2-az2 can be the same zone."""
    kinds = {zone.by_id for text in availability_zones if (zone := parse_zone(text))}
    if len(kinds) > 1:
        listed = ", ".join(availability_zones)
        yield Violation("availability_zones", f"{listed} mixes zone ids and zone names", "use ids for all of them")


@rule("FMB-04")
def primary_zone(*, availability_zones: Sequence[str], primary_availability_zone: str | None) -> Iterator[Violation]:
    """The primary zone is known: order has no meaning, so the first of a list is not it."""
    key, listed = "primary_availability_zone", ", ".join(availability_zones)
    if primary_availability_zone is None:
        if len(set(availability_zones)) > 1 and "1" not in availability_zones:
            yield Violation(key, f"is not given, and {listed} are {len(availability_zones)} zones", "name one of them")
    elif availability_zones and primary_availability_zone not in availability_zones:
        yield Violation(key, f"{primary_availability_zone} is not one of availability_zones: {listed}", "name one")


@rule("FMB-05")
def known_region(*, region: str | None) -> Iterator[Violation]:
    """The Region exists."""
    if region is not None and region not in REGIONS:
        alike = difflib.get_close_matches(region.lower(), REGIONS, n=2)
        hint = f"did you mean {' or '.join(alike)}?" if alike else "check the spelling"
        yield Violation("region", f"{region} is not an AWS region", hint)


@rule("FMB-06")
def zone_addresses(
    *,
    cidr: str,
    availability_zones: Sequence[str],
    primary: str,
    subnets: Mapping[str, ZoneAddresses],
    vpc: ExistingVpc | None,
) -> Iterator[Violation]:
    """Every zone has addresses: a slot, or its own entry in subnets; inside the VPC and without overlap."""
    if vpc is not None:
        return  # FMB-55 looks at its subnets
    network = parse_cidr(cidr)
    if network is None or not LARGEST_VPC_PREFIX <= network.prefixlen <= SMALLEST_VPC_PREFIX:
        return  # NET-01 says so
    taken: list[tuple[str, Cidr]] = []
    # Slots never overlap each other, so they go first and an entry of subnets is what gets blamed.
    for zone in sorted(set(availability_zones), key=lambda name: (name in subnets, name)):
        given = subnets.get(zone)
        found = given or slots(cidr, zone, primary=zone == primary)
        if found is None:
            if parse_zone(zone) is not None:
                hint = f"check that the zone exists, then add network.subnets: {{{zone}: {{private: …, public: …}}}}"
                yield Violation("availability_zones", f"{zone} has no fixed place in {cidr}", hint)
            continue
        for kind, text in (("private", found.private), ("public", found.public)):
            name, key, part = f"the {kind} subnet of {zone}", f"subnets.{zone}.{kind}", parse_cidr(text)
            if part is None:
                yield Violation(key, f"{text} is no IPv4 network", "write one like 10.20.128.0/20, no host bits set")
            elif part.prefixlen > _SMALLEST_SUBNET_PREFIX:
                yield Violation(key, f"{text} is smaller than the /{_SMALLEST_SUBNET_PREFIX} of a subnet", "widen it")
            elif not part.subnet_of(network):
                yield Violation(key, f"{text} is not inside the VPC, {cidr}", "take a range of the VPC")
            elif clash := next((other for other in taken if part.overlaps(other[1])), None):
                yield Violation(key, f"{text} overlaps {clash[0]}, {clash[1]}", "take a free range")
            else:
                taken.append((name, part))
    for zone in sorted(set(subnets) - set(availability_zones)):
        yield Violation(f"subnets.{zone}", "is not one of availability_zones", "add the zone there, or drop the entry")


@rule("FMB-07")
def nat_gateways(*, nat_gateways: int, availability_zones: Sequence[str], primary: str) -> Iterator[Violation]:
    """One NAT gateway, in the primary zone, one in every zone, or none: a number between would go by position."""
    zones = len(availability_zones)
    if nat_gateways == 0:
        return  # a closed network
    if nat_gateways not in (1, zones):
        text = f"{nat_gateways} is neither one NAT gateway nor one for each of {zones} zone{'s' if zones > 1 else ''}"
        hint = "write 1" + (f" or {zones}" if zones > 1 else "") + ", or 0 for a closed network"
        yield Violation("nat_gateways", text, hint)
    elif (parsed := parse_zone(primary)) and parsed.kind == "local":
        text = f"the NAT gateway would stand in {primary}, a Local Zone, whose addresses this version does not ask for"
        yield Violation("primary_availability_zone", text, "make a zone of the region the primary one")


# What people call services that have several endpoints, or another name.
_SERVICES_BY_OTHER_NAMES = {
    "ecr": "ecr.api and ecr.dkr",
    "sagemaker": "sagemaker.api",
    "cloudwatch": "logs and monitoring",
    "prometheus": "aps-workspaces",
    "systems-manager": "ssm and ssmmessages",
    "s3": "nothing: the S3 gateway endpoint is always there",
}


@rule("FMB-52")
def endpoints(
    *,
    endpoint_services: Sequence[str],
    endpoint_availability_zones: Sequence[str],
    availability_zones: Sequence[str],
) -> Iterator[Violation]:
    """Endpoints are of services by their names, each once, in zones of the network."""
    key = "endpoints.services"
    for name in endpoint_services:
        bare = re.sub(r"^com\.amazonaws\.[a-z0-9-]+\.", "", name)
        if bare != name:
            yield Violation(key, f"{name} is a whole name", f"write the part behind the region: {bare}")
        elif name in _SERVICES_BY_OTHER_NAMES:
            yield Violation(key, f"{name} is no endpoint's name", f"write {_SERVICES_BY_OTHER_NAMES[name]}")
        elif not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
            yield Violation(key, f"{name} is no endpoint's name", "write one like ecr.api")
        elif name not in CLOSED_NETWORK_SERVICES and (
            alike := difflib.get_close_matches(name, CLOSED_NETWORK_SERVICES, n=1, cutoff=0.85)
        ):
            yield Violation(key, f"{name} is no endpoint's name", f"did you mean {alike[0]}?")
    for name in sorted({one for one in endpoint_services if list(endpoint_services).count(one) > 1}):
        yield Violation(key, f"{name} stands twice, and a VPC takes one endpoint of a service", "name it once")
    if endpoint_services and not endpoint_availability_zones:
        yield Violation("endpoints.availability_zones", "names no zone", "name one, or leave the key out")
    for zone in endpoint_availability_zones:
        if zone and availability_zones and zone not in availability_zones:
            listed = ", ".join(availability_zones)
            text = f"{zone} is not one of availability_zones: {listed}"
            yield Violation("endpoints.availability_zones", text, "name zones of the network")


@rule("FMB-53")
def closed_network(
    *, nat_gateways: int, endpoint_services: Sequence[str], endpoint_availability_zones: Sequence[str]
) -> Iterator[Violation]:
    """Nodes of a closed network reach nothing but what has an endpoint; Local Zones may lack them."""
    missing = [name for name in CLOSED_NETWORK_SERVICES if name not in endpoint_services]
    if nat_gateways == 0 and missing:
        text = f"no endpoint for {', '.join(missing)}, which nodes of a closed network may call"
        yield Violation("endpoints.services", text, "add them, or make sure that nothing calls them")
    for zone in endpoint_availability_zones if endpoint_services else ():
        if (parsed := parse_zone(zone)) and parsed.kind == "local":
            text = f"{zone} is a Local Zone, where nobody documents interface endpoints"
            yield Violation("endpoints.availability_zones", text, "name a zone of the region")


_MADE = ("cidr", "availability_zones", "nat_gateways", "endpoints", "subnets")


@rule("FMB-54")
def made_or_existing(*, vpc: ExistingVpc | None, given: Collection[str]) -> Iterator[Violation]:
    """Of an existing VPC nothing is made."""
    for key in _MADE if vpc is not None else ():
        if key in given:
            yield Violation(key, "says how a VPC is made, and vpc names one that is there", "leave one of the two out")


# Ids of EC2 have eight or seventeen hexadecimal digits. Source: EC2 User Guide, *Resource IDs*.
_ID = r"{}-([0-9a-f]{{8}}|[0-9a-f]{{17}})"


@rule("FMB-55")
def existing_vpc(*, vpc: ExistingVpc | None) -> Iterator[Violation]:
    """An existing VPC is named by ids, and its subnets do not share addresses."""
    if vpc is None:
        return
    ids = [("id", vpc.id, "vpc"), ("efa_security_group_id", vpc.efa_security_group_id, "sg")]
    for index, subnet in enumerate(vpc.private_subnets):
        where = f"private_subnets[{index}]"
        ids += [(f"{where}.id", subnet.id, "subnet"), (f"{where}.route_table_id", subnet.route_table_id, "rtb")]
    for key, id, prefix in ids:
        if id is not None and not re.fullmatch(_ID.format(prefix), id):
            yield Violation(f"vpc.{key}", f"{id} is no id", f"write one like {prefix}-0123456789abcdef0")
    if not vpc.private_subnets:
        yield Violation("vpc.private_subnets", "names no subnet", "name one in each zone that is used")
    taken: list[tuple[str, Cidr]] = []
    for index, subnet in enumerate(vpc.private_subnets):
        key, part = f"vpc.private_subnets[{index}].cidr", parse_cidr(subnet.cidr)
        if part is None:
            yield Violation(key, f"{subnet.cidr} is no IPv4 network", "write what EC2 shows for the subnet")
        elif clash := next((other for other in taken if part.overlaps(other[1])), None):
            yield Violation(
                key, f"{subnet.cidr} overlaps {clash[1]} of {clash[0]}", "write what EC2 shows for each subnet"
            )
        else:
            taken.append((subnet.id, part))


@rule("FMB-14")
def distinct_zones(*, availability_zones: Sequence[str], vpc: ExistingVpc | None) -> Iterator[Violation]:
    """There is a zone, and none is named twice."""
    if not availability_zones and vpc is None:
        yield Violation("availability_zones", "names no zone", "name one or more, or an existing vpc")
    twice = sorted({zone for zone in availability_zones if list(availability_zones).count(zone) > 1})
    if twice:
        yield Violation("availability_zones", f"{', '.join(twice)} is named twice", "name each zone once")


@rule("NET-05")
def private_subnets(*, public_subnets: Mapping[int, str]) -> Iterator[Violation]:
    """Nodes stand in private subnets: those with several interfaces get no public address, and never join."""
    for index, subnet in public_subnets.items():
        text = f"{subnet} is public, and its nodes would get no address there"
        yield Violation(f"subnets[{index}]", text, "pass private subnets, with a NAT gateway or endpoints")


@dataclass(frozen=True, slots=True)
class SelfRules:
    """Which all-traffic rules to itself a security group has."""

    name: str
    ingress: bool
    egress: bool


@rule("EFA-12")
def open_to_themselves(*, self_rules: Sequence[SelfRules]) -> Iterator[Violation]:
    """Each group of the nodes lets all traffic of its own in and out."""
    for group in self_rules:
        missing = [kind for kind, there in (("inbound", group.ingress), ("outbound", group.egress)) if not there]
        if missing:
            text = f"{group.name} has no {' and no '.join(missing)} rule for all traffic of itself, which EFA needs"
            yield Violation(
                "security_groups", text, "pass an EfaSecurityGroup, or add both rules by the group's own id"
            )


RULES = (
    "NET-01", "FMB-17", "FMB-01", "FMB-02", "FMB-03", "FMB-04", "FMB-06", "FMB-07", "FMB-14", "FMB-52", "FMB-53",
)  # fmt: skip
# What only a project file says.
EXISTING = ("FMB-54", "FMB-55")
# Of the zones and the range of an existing VPC.
OF_EXISTING = ("NET-01", "FMB-17", "FMB-01", "FMB-02", "FMB-03", "FMB-04", "FMB-14")
# About a key that stands outside network.
WHOLE = ("FMB-05",)
# Of endpoints in subnets that are given.
ENDPOINTS_CONSTRUCT = ("FMB-52",)
# Of whatever puts nodes into subnets.
NODES_CONSTRUCT = ("NET-05",)
