"""A VPC whose subnets have fixed places by zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, Dependable, DependencyGroup

from fmblocks._edge import check_arguments, concrete, label, typed
from fmblocks._handlers import custom_resource, handler_function
from fmblocks.catalog import parse_zone
from fmblocks.network import rules
from fmblocks.network.addresses import ZoneAddresses, slots
from fmblocks.network.interface_endpoints import InterfaceEndpoints
from fmblocks.network.settings import default_endpoint_services

# The AWS Load Balancer Controller finds subnets by these. Source: EKS User Guide, *Route application traffic*.
_PRIVATE_ROLE = cdk.CfnTag(key="kubernetes.io/role/internal-elb", value="1")
_PUBLIC_ROLE = cdk.CfnTag(key="kubernetes.io/role/elb", value="1")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateSubnet:
    """A private subnet that is there already.

    Attributes:
        subnet_id: its id, ``subnet-…``.
        cidr: its IPv4 range.
        route_table_id: of its route table, ``rtb-…``.
    """

    subnet_id: str
    cidr: str
    route_table_id: str


class IClusterVpc(Protocol):
    """A VPC whose private subnets are known by zone, made here or elsewhere."""

    @property
    def vpc(self) -> ec2.IVpc: ...
    @property
    def availability_zones(self) -> tuple[str, ...]: ...
    @property
    def primary_availability_zone(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    @property
    def primary_subnet(self) -> ec2.ISubnet: ...
    def private_subnet(self, zone: str) -> ec2.ISubnet: ...
    def private_route_table_id(self, zone: str) -> str: ...
    def zone_name(self, zone: str) -> str | None: ...


class ClusterVpc(Construct):
    """A VPC for accelerator clusters: one large private subnet in the primary zone, fixed slots in the others.

    Creates the VPC, an internet gateway, per zone a public and a private subnet with their route tables, NAT gateways,
    the S3 gateway endpoint on every private route table, flow logs into CloudWatch Logs, and a lock on the default
    security group. Nothing is looked up: the template is the same whoever synthesizes it.

    With ``nat_gateways=0`` the network is closed: no internet gateway, no public subnets, and interface endpoints in
    their place. The private subnets are the same, so that a network can be opened and closed later.

    It stands on the L1 resources, since ``ec2.Vpc`` deals addresses out by position (a zone that joins moves the
    subnets of the others), records a look-up for zone names and refuses zone ids.

    Args:
        availability_zones: zone ids (``usw2-az1``), zone names (``us-west-2a``), or ``1`` and ``2`` in a stack without
            a Region. Order has no meaning. Zone ids mean the same place in every account.
        primary_availability_zone: the zone of accelerators and Lustre; its private subnet is half of the VPC. Default:
            the only zone, or zone ``1``.
        cidr: IPv4 range, /16 to /20. Default: 10.20.0.0/16.
        nat_gateways: 1, in the primary zone, which the others use too; one in every zone; or 0. Default: 1.
        interface_endpoints: services with an interface endpoint, as :class:`InterfaceEndpoints` takes them. Default:
            with ``nat_gateways=0`` those that nodes call, else none.
        endpoint_availability_zones: the zones of those endpoints. Default: the primary one, which all zones reach.
        subnets: address ranges by zone, instead of the slots; Local Zones need it.
        kms_key: encrypts the flow logs; its policy must let CloudWatch Logs use it, as :class:`ProjectKey` does.
            Default: CloudWatch Logs' own key.
        flow_log_retention: how long flow logs are kept. Default: one month.
        removal_policy: of the VPC and the primary private subnet, on which kept data may stand; the other subnets,
            gateways and logs go with the stack. Default: RETAIN_ON_UPDATE_OR_DELETE.
        kept_availability_zones: further zones whose private subnet kept data stands on. Default: none.

    Raises:
        FindingsError: rules NET-01, FMB-01 to FMB-07, FMB-14 and FMB-52. FMB-17 and FMB-53 warn.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        availability_zones: Sequence[str],
        primary_availability_zone: str | None = None,
        cidr: str = "10.20.0.0/16",
        nat_gateways: int = 1,
        interface_endpoints: Sequence[str] | None = None,
        endpoint_availability_zones: Sequence[str] | None = None,
        subnets: Mapping[str, ZoneAddresses] | None = None,
        kms_key: kms.IKey | None = None,
        flow_log_retention: logs.RetentionDays = logs.RetentionDays.ONE_MONTH,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        kept_availability_zones: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, id)
        for name, value in (
            ("cidr", cidr),
            ("availability_zones", availability_zones),
            ("primary_availability_zone", primary_availability_zone),
            ("nat_gateways", nat_gateways),
            ("interface_endpoints", interface_endpoints),
            ("endpoint_availability_zones", endpoint_availability_zones),
            ("subnets", subnets),
        ):
            concrete(name, value)
        self.availability_zones = tuple(sorted(availability_zones, key=_by_slot))
        primary = primary_availability_zone or (self.availability_zones or ("",))[0]
        region = cdk.Stack.of(self).region
        services = default_endpoint_services(nat_gateways) if interface_endpoints is None else interface_endpoints
        endpoint_zones = (primary,) if endpoint_availability_zones is None else endpoint_availability_zones
        check_arguments(
            self,
            (*rules.RULES, *rules.WHOLE),
            {
                "cidr": cidr,
                "availability_zones": self.availability_zones,
                "primary_availability_zone": primary_availability_zone,
                "primary": primary,
                "region": None if cdk.Token.is_unresolved(region) else region,
                "nat_gateways": nat_gateways,
                "subnets": subnets or {},
                "vpc": None,
                "endpoint_services": services,
                "endpoint_availability_zones": endpoint_zones,
            },
            names={
                "endpoints.services": "interface_endpoints",
                "endpoints.availability_zones": "endpoint_availability_zones",
            },
        )
        self.closed = nat_gateways == 0
        self.primary_availability_zone = primary
        addresses = {
            zone: (subnets or {}).get(zone) or slots(cidr, zone, primary=zone == primary)
            for zone in self.availability_zones
        }

        self.cfn_vpc = ec2.CfnVPC(
            self,
            "Resource",
            cidr_block=cidr,
            enable_dns_hostnames=True,  # EKS nodes and interface endpoints cannot be reached by name without both
            enable_dns_support=True,
        )
        self.cfn_vpc.apply_removal_policy(removal_policy)
        cdk.Tags.of(self.cfn_vpc).add("Name", label(self))
        internet = None if self.closed else _Internet(self, self.cfn_vpc)

        self._zones: dict[str, _ZoneSubnets] = {}
        zones = Construct(self, "Zones")
        for zone in self.availability_zones:
            ranges = addresses[zone]
            assert ranges is not None  # FMB-06 has refused a zone without addresses
            self._zones[zone] = _ZoneSubnets(zones, zone, vpc=self.cfn_vpc, addresses=ranges, internet=internet)
        # The primary zone's subnet carries the interfaces of a kept file system, and cannot be deleted under them.
        for zone in {primary, *kept_availability_zones}:
            self._zones[zone].cfn_private.apply_removal_policy(removal_policy)

        if internet is not None:
            with_nat = [primary] if nat_gateways == 1 else self.availability_zones
            for zone in with_nat:
                self._zones[zone].add_nat_gateway(internet)
            for zone, found in self._zones.items():
                found.route_through(self._zones[zone if zone in with_nat else primary])

        ec2.CfnVPCEndpoint(
            self,
            "S3Endpoint",
            vpc_id=self.cfn_vpc.ref,
            service_name=f"com.amazonaws.{region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[found.private_route_table.ref for found in self._zones.values()],
        )
        ordered = [self._zones[zone] for zone in self.availability_zones]
        self.vpc: ec2.IVpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=self.cfn_vpc.ref,
            vpc_cidr_block=cidr,
            availability_zones=[found.zone_name for found in ordered],
            private_subnet_ids=[found.cfn_private.ref for found in ordered],
            private_subnet_route_table_ids=[found.private_route_table.ref for found in ordered],
            public_subnet_ids=[found.public.subnet.ref for found in ordered if found.public],
            public_subnet_route_table_ids=[found.public.route_table.ref for found in ordered if found.public],
        )
        # Whoever depends on the VPC waits for its routes too: a node that boots before them cannot reach S3.
        Dependable.implement(self.vpc, Dependable.of(self))
        if services:
            self.interface_endpoints: InterfaceEndpoints | None = InterfaceEndpoints(
                self,
                "Endpoints",
                vpc=self.vpc,
                subnets=[self.private_subnet(zone) for zone in sorted(endpoint_zones, key=_by_slot)],
                services=services,
            )
        else:
            self.interface_endpoints = None
        self._log_flows(kms_key, flow_log_retention)
        self._lock_default_group()

    @staticmethod
    def from_cluster_vpc_attributes(
        scope: Construct,
        id: str,
        *,
        vpc_id: str,
        cidr: str,
        private_subnets: Mapping[str, PrivateSubnet],
        primary_availability_zone: str | None = None,
    ) -> IClusterVpc:
        """A VPC that was made elsewhere. Nothing is created, looked up or checked.

        Its private subnets need a way to S3 and to what nodes call: NAT, or endpoints as :class:`InterfaceEndpoints`.

        Args:
            vpc_id: its id, ``vpc-…``.
            cidr: its IPv4 range.
            private_subnets: one in each zone, by zone id or name.
            primary_availability_zone: where nodes and Lustre stand. Default: the only zone.

        Raises:
            FindingsError: rule FMB-04.
        """
        return _ImportedVpc(scope, id, vpc_id, cidr, private_subnets, primary_availability_zone)

    @property
    def primary_subnet(self) -> ec2.ISubnet:
        """The private subnet of the primary zone."""
        return self.private_subnet(self.primary_availability_zone)

    def private_subnet(self, zone: str) -> ec2.ISubnet:
        """The private subnet of ``zone``, written as in ``availability_zones``.

        Raises:
            KeyError: the VPC has no such zone.
        """
        return self._zones[zone].private

    def zone_name(self, zone: str) -> str | None:
        """The name of ``zone`` in the account that is deployed to (a token)."""
        return self._zones[zone].zone_name

    def private_route_table_id(self, zone: str) -> str:
        """The route table of the private subnet of ``zone``."""
        return self._zones[zone].private_route_table.ref

    def _log_flows(self, key: kms.IKey | None, retention: logs.RetentionDays) -> None:
        group = logs.LogGroup(
            self, "FlowLogGroup", encryption_key=key, retention=retention, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        ec2.FlowLog(
            self,
            "FlowLog",
            resource_type=ec2.FlowLogResourceType.from_vpc(self.vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group),
        )

    def _lock_default_group(self) -> None:
        function = handler_function(
            self,
            "DefaultGroupLock",
            module="default_security_group",
            description="Takes every rule off the default security group of the VPC",
        )
        # Describe takes no resource. Source: Service Authorization Reference, Amazon EC2.
        function.add_to_role_policy(iam.PolicyStatement(actions=["ec2:DescribeSecurityGroupRules"], resources=["*"]))
        function.add_to_role_policy(
            iam.PolicyStatement(
                actions=["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"],
                resources=[
                    cdk.Stack.of(self).format_arn(
                        service="ec2",
                        resource="security-group",
                        resource_name=self.cfn_vpc.attr_default_security_group,
                    )
                ],
            )
        )
        custom_resource(
            self,
            "DefaultGroup",
            handler=function,
            resource_type="Custom::DefaultSecurityGroupLock",
            properties={"SecurityGroupId": self.cfn_vpc.attr_default_security_group},
        )


def _by_slot(zone: str) -> tuple[int, str]:
    found = parse_zone(zone)
    return (found.slot if found and found.slot is not None else 99, zone)


class _ImportedVpc(Construct):
    """A VPC that was made elsewhere, with the private subnets that a user named."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        vpc_id: str,
        cidr: str,
        private_subnets: Mapping[str, PrivateSubnet],
        primary_availability_zone: str | None,
    ) -> None:
        super().__init__(scope, id)
        self.availability_zones = tuple(sorted(private_subnets, key=_by_slot))
        given = {
            "availability_zones": self.availability_zones,
            "primary_availability_zone": primary_availability_zone,
        }
        check_arguments(self, ("FMB-04",), given, names={"availability_zones": "private_subnets"})
        self.primary_availability_zone = primary_availability_zone or (self.availability_zones or ("",))[0]
        self.closed = False
        listed = [private_subnets[zone] for zone in self.availability_zones]
        self.vpc: ec2.IVpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=vpc_id,
            vpc_cidr_block=cidr,
            # Zone ids are no names, and the L2 wants names: nothing here asks it where a subnet stands.
            availability_zones=list(self.availability_zones),
            private_subnet_ids=[one.subnet_id for one in listed],
            private_subnet_route_table_ids=[one.route_table_id for one in listed],
        )
        self._subnets = private_subnets
        subnets = Construct(self, "Zones")
        self._private = {
            zone: ec2.Subnet.from_subnet_attributes(
                subnets,
                zone,
                subnet_id=one.subnet_id,
                availability_zone=zone,
                ipv4_cidr_block=one.cidr,
                route_table_id=one.route_table_id,
            )
            for zone, one in private_subnets.items()
        }

    @property
    def primary_subnet(self) -> ec2.ISubnet:
        return self.private_subnet(self.primary_availability_zone)

    def private_subnet(self, zone: str) -> ec2.ISubnet:
        return self._private[zone]

    def private_route_table_id(self, zone: str) -> str:
        return self._subnets[zone].route_table_id

    def zone_name(self, zone: str) -> str | None:
        """Which name a zone id has, only the account knows."""
        parsed = parse_zone(zone)
        return zone if parsed is not None and not parsed.by_id else None


class _Internet:
    """The internet gateway, and its attachment, which must be there before anything uses it."""

    def __init__(self, scope: Construct, vpc: ec2.CfnVPC) -> None:
        self.gateway = ec2.CfnInternetGateway(scope, "InternetGateway")
        self.attachment = ec2.CfnVPCGatewayAttachment(
            scope, "InternetGatewayAttachment", vpc_id=vpc.ref, internet_gateway_id=self.gateway.ref
        )


class _Public(NamedTuple):
    """The public subnet of a zone, with its route table and the route to the internet."""

    subnet: ec2.CfnSubnet
    route_table: ec2.CfnRouteTable
    route: ec2.CfnRoute


class _ZoneSubnets(Construct):
    """The private subnet of a zone, the public one unless the network is closed, and their route tables."""

    def __init__(
        self,
        scope: Construct,
        zone: str,
        *,
        vpc: ec2.CfnVPC,
        addresses: ZoneAddresses,
        internet: _Internet | None,
    ) -> None:
        super().__init__(scope, zone)
        self._vpc = vpc
        self._nat: ec2.CfnNatGateway | None = None
        self.cfn_private, self.private_route_table = self._subnet("Private", zone, addresses.private, _PRIVATE_ROLE)
        self.public = self._public(zone, addresses.public, internet) if internet else None
        self.private: ec2.ISubnet = ec2.Subnet.from_subnet_attributes(
            self,
            "PrivateSubnet",
            subnet_id=self.cfn_private.ref,
            availability_zone=self.zone_name,
            ipv4_cidr_block=addresses.private,
            route_table_id=self.private_route_table.ref,
        )

    @property
    def zone_name(self) -> str:
        return self.cfn_private.attr_availability_zone

    def _public(self, zone: str, cidr: str, internet: _Internet) -> _Public:
        subnet, table = self._subnet("Public", zone, cidr, _PUBLIC_ROLE)
        route = ec2.CfnRoute(
            self,
            "PublicRoute",
            route_table_id=table.ref,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=internet.gateway.ref,
        )
        # EC2 refuses the route while the gateway is not attached: "belong to different networks", intermittently.
        route.add_resource_dependency(internet.attachment)
        return _Public(subnet, table, route)

    def add_nat_gateway(self, internet: _Internet) -> None:
        assert self.public is not None
        address = ec2.CfnEIP(self, "NatAddress", domain="vpc")
        address.add_resource_dependency(internet.attachment)
        self._nat = ec2.CfnNatGateway(
            self, "NatGateway", subnet_id=self.public.subnet.ref, allocation_id=address.attr_allocation_id
        )
        self._nat.add_resource_dependency(self.public.route)
        cdk.Tags.of(self._nat).add("Name", label(self))

    def route_through(self, other: _ZoneSubnets) -> None:
        assert other._nat is not None
        route = ec2.CfnRoute(
            self,
            "PrivateRoute",
            route_table_id=self.private_route_table.ref,
            destination_cidr_block="0.0.0.0/0",
            nat_gateway_id=other._nat.ref,
        )
        # Whoever waits for the subnet's way out waits for this route, as with the subnets of ec2.Vpc.
        established = self.private.internet_connectivity_established
        assert isinstance(established, DependencyGroup)
        established.add(route)

    def _subnet(self, kind: str, zone: str, cidr: str, role: cdk.CfnTag) -> tuple[ec2.CfnSubnet, ec2.CfnRouteTable]:
        parsed = parse_zone(zone)
        by_id = parsed is not None and parsed.by_id
        name = cdk.Fn.select(parsed.slot or 0, cdk.Fn.get_azs()) if parsed and parsed.kind == "number" else zone
        subnet = ec2.CfnSubnet(
            self,
            kind,
            vpc_id=self._vpc.ref,
            cidr_block=cidr,
            availability_zone_id=zone if by_id else None,
            availability_zone=None if by_id else name,
            map_public_ip_on_launch=False,
            tags=[role],
        )
        if parsed and parsed.kind != "number" and not by_id:
            # Where the clusters stand is the point of this VPC: zones are named by whoever writes the project.
            cdk.Validations.of(subnet).acknowledge(
                cdk.Acknowledgment(id="CloudFormation-Validate::W3010", reason="the zone is the project's own choice")
            )
        cdk.Tags.of(subnet).add("Name", label(subnet))
        table = ec2.CfnRouteTable(self, f"{kind}RouteTable", vpc_id=self._vpc.ref)
        cdk.Tags.of(table).add("Name", label(subnet))
        ec2.CfnSubnetRouteTableAssociation(
            self, f"{kind}RouteTableAssociation", subnet_id=subnet.ref, route_table_id=table.ref
        )
        return subnet, table
