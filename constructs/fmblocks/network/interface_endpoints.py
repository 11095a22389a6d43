"""The interface endpoints of a VPC."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import check_arguments, typed
from fmblocks.network import rules
from fmblocks.network.settings import CLOSED_NETWORK_SERVICES


class InterfaceEndpoints(Construct):
    """One interface endpoint for each service, with private DNS, behind one security group.

    The group takes HTTPS from the addresses of the VPC and sends nothing: services never open a connection. All zones
    of the VPC reach endpoints of one zone; two zones cost twice, and outlive the failure of one.

    Args:
        vpc: with DNS support and DNS host names; its address range must be known.
        subnets: one in each zone that gets endpoints, private ones.
        services: the last part of each service's name, ``com.amazonaws.<region>.<part>``. Default: what nodes of
            HyperPod, EC2 and EKS call in a network without a way out.

    Attributes:
        security_group: of the endpoints.
        endpoints: by service.

    Raises:
        FindingsError: rule FMB-52.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet],
        services: Sequence[str] = CLOSED_NETWORK_SERVICES,
    ) -> None:
        super().__init__(scope, id)
        # Zones are told by their subnets here.
        zones = ["given"] if subnets else []
        values = {"endpoint_services": services, "endpoint_availability_zones": zones, "availability_zones": ()}
        names = {"endpoints.services": "services", "endpoints.availability_zones": "subnets"}
        check_arguments(self, rules.ENDPOINTS_CONSTRUCT, values, names=names)
        self.security_group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Interface endpoints: HTTPS from the VPC",
            allow_all_outbound=False,
        )
        self.security_group.add_ingress_rule(ec2.Peer.ipv4(vpc.vpc_cidr_block), ec2.Port.tcp(443), "HTTPS from the VPC")
        self.endpoints = {
            name: ec2.InterfaceVpcEndpoint(
                self,
                name,
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(name),
                subnets=ec2.SubnetSelection(subnets=list(subnets)),
                security_groups=[self.security_group],
                open=False,  # the group says who may
            )
            for name in sorted(services)
        }
