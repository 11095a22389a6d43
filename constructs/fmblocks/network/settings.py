"""What a project file says about its network."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.network.addresses import NUMBERED_ZONES
from fmblocks.settings import Settings, Text, WholeNumber


def _zones(value: object) -> object:
    """A count stands for the zones 1 to count; a list is a set, so its order is dropped here."""
    if isinstance(value, str) and value.isdecimal():
        if not 1 <= int(value) <= NUMBERED_ZONES:
            raise PydanticCustomError(
                "zones", "takes a count of 1 or {most}; for more, name region and the zones", {"most": NUMBERED_ZONES}
            )
        return tuple(str(number) for number in range(1, int(value) + 1))
    if isinstance(value, str) or not isinstance(value, (list, tuple)) or not value:
        raise PydanticCustomError("zones", "takes a list of zone ids or names, or a count of 1 or 2 without a region")
    texts = [item for item in value if isinstance(item, str)]
    if len(texts) != len(value):
        raise PydanticCustomError("zones", "takes zone ids or names only")
    return tuple(sorted(texts))


Zones = Annotated[tuple[str, ...], BeforeValidator(_zones)]

# What nodes of HyperPod, EC2 and EKS call. Sources: Systems Manager User Guide, *Improve the security of EC2 instances
# by using VPC endpoints* (ssm, ssmmessages); Managed Prometheus User Guide, *Interface VPC endpoints* (aps-workspaces,
# and sts for its signatures); CloudWatch agent (logs, monitoring); EKS User Guide, *Deploy private clusters with
# limited internet access* (ec2, ecr.api, ecr.dkr, logs, eks-auth); awslabs/agent-plugins, *HyperPod node diagnostics*
# (sagemaker.api and most of the others). The key of the data and the file system are called about by name (kms, fsx).
CLOSED_NETWORK_SERVICES = (
    "aps-workspaces",
    "ec2",
    "ecr.api",
    "ecr.dkr",
    "eks-auth",
    "fsx",
    "kms",
    "logs",
    "monitoring",
    "sagemaker.api",
    "ssm",
    "ssmmessages",
    "sts",
)


def default_endpoint_services(nat_gateways: int) -> tuple[str, ...]:
    """A network that reaches the internet needs no interface endpoints."""
    return () if nat_gateways else CLOSED_NETWORK_SERVICES


def _services(value: object) -> object:
    """A list alone names the services."""
    return {"services": value} if isinstance(value, (list, tuple)) else value


class Endpoints(Settings):
    """Interface endpoints: how nodes reach AWS without an internet gateway."""

    FOREIGN: ClassVar = {
        "subnets": "write availability_zones: the endpoints stand in their private subnets",
        "gateway": "the S3 gateway endpoint is always there: leave the key out",
    }

    services: Annotated[
        tuple[Text, ...] | None,
        Field(description="the last part of each service's name, com.amazonaws.<region>.<part>"),
    ] = None
    availability_zones: Annotated[
        Zones | None, Field(description="zones of the endpoints; default: the primary one, which all nodes reach")
    ] = None


class SubnetPair(Settings):
    """The two address ranges of a zone, where the fixed slots are not wanted."""

    private: Annotated[Text, Field(description="IPv4 CIDR of the private subnet")]
    public: Annotated[Text, Field(description="IPv4 CIDR of the public subnet")]


class ExistingSubnet(Settings):
    """A private subnet that is there already."""

    id: Annotated[Text, Field(description="subnet-…")]
    availability_zone: Annotated[Text, Field(description="zone id or name")]
    cidr: Annotated[Text, Field(description="its IPv4 range")]
    route_table_id: Annotated[Text, Field(description="rtb-…")]


class ExistingVpc(Settings):
    """A VPC that is there already: nothing of it is made or changed, and nothing is looked up."""

    FOREIGN: ClassVar = {
        "vpc_id": "the key is id",
        "cidr_block": "the key is cidr",
        "subnets": "the key is private_subnets, a list of {id, availability_zone, cidr, route_table_id}",
        "subnet_ids": "write private_subnets: [{id, availability_zone, cidr, route_table_id}]",
        "public_subnets": "nodes always stand in private subnets: leave the key out",
        "availability_zones": "each of private_subnets names its own",
        "security_group_id": "the key is efa_security_group_id",
    }

    id: Annotated[Text, Field(description="vpc-…")]
    cidr: Annotated[Text, Field(description="its IPv4 range")]
    private_subnets: Annotated[tuple[ExistingSubnet, ...], Field(description="one in each zone")]
    efa_security_group_id: Annotated[
        Text | None, Field(description="open to itself, and let in by what it mounts; without it one is made")
    ] = None


class Network(Settings):
    """The VPC of a project."""

    FOREIGN: ClassVar = {
        "vpc_id": "write vpc: {id, cidr, private_subnets: [{id, availability_zone, cidr, route_table_id}]}",
        "subnet_ids": "write vpc: {id, cidr, private_subnets: [{id, availability_zone, cidr, route_table_id}]}",
        "vpc_cidr": "the key is cidr",
        "azs": "the key is availability_zones",
        "nat": "the key is nat_gateways",
        "subnet": "nodes always stand in private subnets: leave the key out",
        "associate_public_ip": "instances with several network interfaces get no public address: leave the key out",
        "vpc_endpoints": "the key is endpoints",
    }

    vpc: Annotated[ExistingVpc | None, Field(description="an existing VPC; without it one is made")] = None
    cidr: Annotated[Text, Field(description="IPv4 CIDR of the VPC, /16 to /20")] = "10.20.0.0/16"
    availability_zones: Annotated[
        Zones | None, Field(description="zone ids or names; a count of 1 or 2 without a region; not beside vpc")
    ] = None
    primary_availability_zone: Annotated[
        Text | None, Field(description="where accelerators and Lustre live; default: the only zone, or zone 1")
    ] = None
    nat_gateways: Annotated[
        WholeNumber, Field(description="1, one for each zone, or 0: a closed network with endpoints instead")
    ] = 1
    endpoints: Annotated[
        Endpoints | None,
        BeforeValidator(_services),
        Field(description="interface endpoints; a list names the services"),
    ] = None
    subnets: Annotated[
        dict[str, SubnetPair], Field(description="address ranges by zone, instead of the fixed slots")
    ] = {}

    @property
    def endpoint_services(self) -> tuple[str, ...]:
        """The interface endpoints that are made."""
        given = self.endpoints.services if self.endpoints else None
        if self.vpc is not None:
            return ()
        return default_endpoint_services(self.nat_gateways) if given is None else given

    @property
    def endpoint_availability_zones(self) -> tuple[str, ...]:
        """The zones they stand in."""
        given = self.endpoints.availability_zones if self.endpoints else None
        return (self.primary,) if given is None else given

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones of the subnets, sorted; empty when the file names none (rule FMB-14 refuses that)."""
        if self.vpc is not None:
            return tuple(sorted(subnet.availability_zone for subnet in self.vpc.private_subnets))
        return self.availability_zones or ()

    @property
    def ipv4_range(self) -> str:
        """The addresses of the VPC."""
        return self.vpc.cidr if self.vpc else self.cidr

    @property
    def primary(self) -> str:
        """The primary zone; empty when the file leaves it open (rule FMB-04 refuses that)."""
        if self.primary_availability_zone is not None:
            return self.primary_availability_zone
        if self.zones and (len(self.zones) == 1 or self.zones[0] == "1"):
            return self.zones[0]
        return ""
