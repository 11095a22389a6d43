"""The security group of an EFA fabric."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import typed


class EfaSecurityGroup(ec2.SecurityGroup):
    """A security group that allows all traffic to and from itself, and out.

    EFA is not IP traffic: a rule for 0.0.0.0/0 does not cover it, so both directions name the group itself. Without
    the outbound one, jobs hang or fall back to TCP, EFA-enabled Lustre is refused, and HyperPod's EFA health check
    fails. Source: FSx for Lustre User Guide, *Working with EFA-enabled file systems*; rules EFA-10 and EFA-11.

    The two rules are stand-alone resources below this construct (:attr:`self_ingress`, :attr:`self_egress`): written
    inline they would make the group depend on itself, and ``add_egress_rule`` drops them in silence while all outbound
    traffic is allowed. Whoever adds a dependency on the group waits for both.

    Args:
        vpc: where the group stands; its address range must be known when ``allow_all_outbound`` is false.
        allow_all_outbound: false for a closed network: beside itself the group then reaches the addresses of the VPC,
            and HTTPS, since the S3 gateway endpoint answers from S3's public addresses and CloudFormation knows no id
            of their prefix list. Default: true.
        removal_policy: of the group and its rules; kept things that carry it need it kept. Default: DESTROY.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        allow_all_outbound: bool = True,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY,
    ) -> None:
        super().__init__(
            scope,
            id,
            vpc=vpc,
            description="EFA fabric: all traffic to and from itself",
            allow_all_outbound=allow_all_outbound,
        )
        if not allow_all_outbound:
            # Inline on purpose: EC2 adds "everything to 0.0.0.0/0" to a group that is made without outbound rules.
            self.add_egress_rule(ec2.Peer.ipv4(vpc.vpc_cidr_block), ec2.Port.all_traffic(), "everything in the VPC")
            self.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "S3, through its gateway endpoint")
        self.self_ingress = ec2.CfnSecurityGroupIngress(
            self,
            "SelfIngress",
            group_id=self.security_group_id,
            source_security_group_id=self.security_group_id,
            ip_protocol="-1",
            description="EFA: everything from this group",
        )
        self.self_egress = ec2.CfnSecurityGroupEgress(
            self,
            "SelfEgress",
            group_id=self.security_group_id,
            destination_security_group_id=self.security_group_id,
            ip_protocol="-1",
            description="EFA: everything to this group",
        )
        # A policy on the group alone does not reach its rules, and a kept group without them lets nobody in.
        cdk.RemovalPolicies.of(self).apply(removal_policy)
