"""What only the account knows about a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fmblocks.network.settings import ExistingVpc, Network
from fmblocks.preflight import Account, Outcome, Question, Result

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef

# Source: EC2 API DescribeAvailabilityZones, ZoneType.
_REGULAR = "availability-zone"


def questions(network: Network, region: str, account: Account) -> Iterator[Question]:
    """The questions about a project's network.

    Args:
        network: its settings.
        region: where it is deployed.
        account: clients.
    """
    zones = [zone for zone in network.zones if not zone.isdecimal()]
    if zones:
        yield Question(
            "FMB-70", "network.availability_zones", "zones are there", lambda: _zones(network, zones, account)
        )
    if network.endpoint_services:
        yield Question(
            "FMB-71",
            "network.endpoints",
            "services have endpoints in their zones",
            lambda: _endpoints(network, region, account),
        )
    if (vpc := network.vpc) is not None:
        yield Question("FMB-72", "network.vpc", "is as written", lambda: _vpc(vpc, account))
        if (group := vpc.efa_security_group_id) is not None:
            yield Question(
                "EFA-10", "network.vpc.efa_security_group_id", "is open to itself", lambda: _group(vpc, group, account)
            )


def _zones(network: Network, zones: list[str], account: Account) -> Iterator[Result]:
    known = _zone_facts(account)
    key = "network.vpc.private_subnets" if network.vpc else "network.availability_zones"
    for zone in zones:
        found = known.get(zone)
        if found is None:
            text = f"{zone} is no zone of this account"
            yield Result("FMB-70", Outcome.FAIL, key, text, "list them: aws ec2 describe-availability-zones")
        elif found["ZoneType"] != _REGULAR:
            text = f"{zone} is of ZoneType {found['ZoneType']}: EKS, NAT and FSx refuse it, or offer less there"
            yield Result("FMB-70", Outcome.FAIL, key, text, f"use a zone of ZoneType {_REGULAR}")
        elif found.get("OptInStatus") == "not-opted-in":
            yield Result("FMB-70", Outcome.FAIL, key, f"the account has not opted in to {zone}", "opt in, or change it")


def _zone_facts(account: Account) -> Mapping[str, Any]:
    """Zones by their ids and by their names."""
    listed = account.ec2.describe_availability_zones(AllAvailabilityZones=True)["AvailabilityZones"]
    return {key: zone for zone in listed for key in (zone["ZoneName"], zone["ZoneId"])}


def _endpoints(network: Network, region: str, account: Account) -> Iterator[Result]:
    facts = _zone_facts(account)
    names = [facts[zone]["ZoneName"] for zone in network.endpoint_availability_zones if zone in facts]
    listed: dict[str, set[str]] = {}
    for page in account.ec2.get_paginator("describe_vpc_endpoint_services").paginate(
        Filters=[{"Name": "service-type", "Values": ["Interface"]}]
    ):
        for service in page["ServiceDetails"]:
            listed[service["ServiceName"]] = set(service["AvailabilityZones"])
    for part in network.endpoint_services:
        offered = listed.get(f"com.amazonaws.{region}.{part}")
        key = "network.endpoints.services"
        if offered is None:
            text = f"{part} has no interface endpoint in {region}"
            yield Result("FMB-71", Outcome.FAIL, key, text, "leave it out, and see who calls it")
            continue
        for zone in names:
            if zone not in offered:
                text = f"{part} has no interface endpoint in {zone}, only in {', '.join(sorted(offered))}"
                hint = "write network.endpoints.availability_zones: a zone that has it serves all"
                yield Result("FMB-71", Outcome.FAIL, key, text, hint)


def _vpc(vpc: ExistingVpc, account: Account) -> Iterator[Result]:
    def fail(key: str, text: str, hint: str) -> Result:
        return Result("FMB-72", Outcome.FAIL, f"network.vpc.{key}", text, hint)

    ids = [subnet.id for subnet in vpc.private_subnets]
    vpcs = account.ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [vpc.id]}])["Vpcs"]
    if not vpcs:
        yield fail("id", f"{vpc.id} is not there", "check account, region and id")
        return
    ranges = [one["CidrBlock"] for one in vpcs[0].get("CidrBlockAssociationSet", [])] or [vpcs[0]["CidrBlock"]]
    if vpc.cidr not in ranges:
        yield fail("cidr", f"{vpc.id} has {', '.join(ranges)}, not {vpc.cidr}", "write what EC2 shows")
    listed = account.ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": ids}])["Subnets"]
    found = {subnet["SubnetId"]: subnet for subnet in listed}
    for index, subnet in enumerate(vpc.private_subnets):
        key, there = f"private_subnets[{index}]", found.get(subnet.id)
        if there is None:
            yield fail(f"{key}.id", f"{subnet.id} is not there", "check account, region and id")
            continue
        if there["VpcId"] != vpc.id:
            yield fail(f"{key}.id", f"{subnet.id} is in {there['VpcId']}, not in {vpc.id}", "name subnets of one VPC")
        if subnet.availability_zone not in (there["AvailabilityZone"], there["AvailabilityZoneId"]):
            text = f"{subnet.id} is in {there['AvailabilityZone']} ({there['AvailabilityZoneId']})"
            yield fail(f"{key}.availability_zone", text, f"not in {subnet.availability_zone}: change it")
        if there["CidrBlock"] != subnet.cidr:
            yield fail(
                f"{key}.cidr", f"{subnet.id} has {there['CidrBlock']}, not {subnet.cidr}", "write what EC2 shows"
            )


def _group(vpc: ExistingVpc, id: str, account: Account) -> Iterator[Result]:
    key = "network.vpc.efa_security_group_id"
    listed = account.ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": [id]}])["SecurityGroups"]
    if not listed or listed[0].get("VpcId") != vpc.id:
        yield Result("EFA-10", Outcome.FAIL, key, f"{id} is no group of {vpc.id}", "name a group of that VPC")
        return
    for direction, rules in (("inbound", listed[0]["IpPermissions"]), ("outbound", listed[0]["IpPermissionsEgress"])):
        if not any(_all_of(rule, id) for rule in rules):
            text = f"{id} has no {direction} rule for all traffic of itself, which EFA needs"
            yield Result("EFA-10", Outcome.FAIL, key, text, "add it, by the group's own id")


def _all_of(rule: IpPermissionOutputTypeDef, group: str) -> bool:
    pairs = rule.get("UserIdGroupPairs", [])
    return rule.get("IpProtocol") == "-1" and any(pair.get("GroupId") == group for pair in pairs)
