"""What the security groups of file systems have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import fault
from fmblocks.findings import FindingsError


class FileSystemSecurityGroup(ec2.SecurityGroup):
    """Lets the traffic of a file system in, from itself and from its clients.

    The rules are stand-alone resources below this construct, and a file system must wait for all of them: FSx looks at
    the rules when it creates one.

    ``PORTS`` names protocol, first and last port of each rule; ``TRAFFIC`` says what it is; ``CONNECTS`` whether the
    servers open connections of their own.
    """

    PORTS: ClassVar[Mapping[str, tuple[str, int, int]]]
    TRAFFIC: ClassVar[str]
    CONNECTS: ClassVar[bool] = True

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        allow_all_outbound: bool,
        clients: Mapping[str, ec2.ISecurityGroup] | None,
        removal_policy: cdk.RemovalPolicy,
    ) -> None:
        super().__init__(
            scope,
            id,
            vpc=vpc,
            description=f"{self.TRAFFIC.replace(' ', ': ', 1)} from itself and its clients",
            allow_all_outbound=allow_all_outbound,
        )
        self._clients: set[str] = set()
        self.add_client("Self", self)
        for name, group in (clients or {}).items():
            self.add_client(name, group)
        # A policy on the group alone does not reach its rules, and a kept group without them lets nobody in.
        cdk.RemovalPolicies.of(self).apply(removal_policy)

    def add_client(self, name: str, group: ec2.ISecurityGroup, *, scope: Construct | None = None) -> None:
        """Let ``group`` in; once is enough: EC2 refuses the same rule twice.

        Args:
            name: becomes part of the rules' construct ids.
            group: carried by the nodes that mount the file system.
            scope: where the rules go when it is of another stack: rules here would make this stack wait for that of the
                nodes, and that one for this. Default: this group.

        Raises:
            FindingsError: ``name`` stands for another group already.
        """
        if group.security_group_id in self._clients:
            return
        self._clients.add(group.security_group_id)
        own = scope is None or cdk.Stack.of(scope).node.addr == cdk.Stack.of(self).node.addr
        home = self if own or scope is None else scope
        if any(home.node.try_find_child(f"{name}{ports}") is not None for ports in self.PORTS):
            text = f"{name} stands for another group already"
            raise FindingsError([fault("name", text, "give each group a name of its own")])
        for ports, (protocol, first, last) in self.PORTS.items():
            ec2.CfnSecurityGroupIngress(
                home,
                f"{name}{ports}",
                group_id=self.security_group_id,
                source_security_group_id=group.security_group_id,
                ip_protocol=protocol,
                from_port=first,
                to_port=last,
                description=f"{self.TRAFFIC} from {name}",
            )
            if self.CONNECTS and not self.allow_all_outbound:
                ec2.CfnSecurityGroupEgress(
                    home,
                    f"{name}{ports}Out",
                    group_id=self.security_group_id,
                    destination_security_group_id=group.security_group_id,
                    ip_protocol=protocol,
                    from_port=first,
                    to_port=last,
                    description=f"{self.TRAFFIC} to {name}",
                )
