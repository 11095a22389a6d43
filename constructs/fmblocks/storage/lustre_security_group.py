"""The security group of a Lustre file system."""

from __future__ import annotations

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import fault, typed
from fmblocks.findings import FindingsError

# Source: FSx for Lustre User Guide, *File system access control with Amazon VPC*.
_PORTS = {"Lnet": (988, 988), "LnetHigh": (1018, 1023)}


class LustreSecurityGroup(ec2.SecurityGroup):
    """Lets Lustre's traffic in: TCP 988 and 1018 to 1023, from itself and from its clients.

    With 988 alone a mount works and clients hang later. The servers of a file system talk to each other, so the group
    allows itself too. The rules are stand-alone resources below this construct, and a file system must wait for all of
    them: FSx refuses to create one whose groups do not permit 988 yet.

    Args:
        vpc: where the group stands.
        allow_all_outbound: false for a closed network: outbound goes what comes in, and nothing else. Default: true.
        clients: groups of the nodes that mount the file system, by a name that becomes part of the rules' ids. More can
            be added with :meth:`add_client`; a HyperPodSlurmCluster adds its own.
        removal_policy: of the group and its rules; a kept file system needs them kept. Default: DESTROY.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        allow_all_outbound: bool = True,
        clients: Mapping[str, ec2.ISecurityGroup] | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY,
    ) -> None:
        super().__init__(
            scope,
            id,
            vpc=vpc,
            description="Lustre: LNET from itself and its clients",
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
        if home.node.try_find_child(f"{name}Lnet") is not None:
            text = f"{name} stands for another group already"
            raise FindingsError([fault("name", text, "give each group a name of its own")])
        for ports, (first, last) in _PORTS.items():
            ec2.CfnSecurityGroupIngress(
                home,
                f"{name}{ports}",
                group_id=self.security_group_id,
                source_security_group_id=group.security_group_id,
                ip_protocol="tcp",
                from_port=first,
                to_port=last,
                description=f"Lustre LNET from {name}",
            )
            if not self.allow_all_outbound:
                ec2.CfnSecurityGroupEgress(
                    home,
                    f"{name}{ports}Out",
                    group_id=self.security_group_id,
                    destination_security_group_id=group.security_group_id,
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    description=f"Lustre LNET to {name}",
                )
