"""The security group of a Lustre file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.storage.file_system_security_group import FileSystemSecurityGroup
from fmblocks.storage.lustre_ports import LUSTRE_PORTS


class LustreSecurityGroup(FileSystemSecurityGroup):
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

    PORTS: ClassVar = {
        name: ("tcp", first, last) for name, (first, last) in zip(("Lnet", "LnetHigh"), LUSTRE_PORTS, strict=True)
    }
    TRAFFIC: ClassVar = "Lustre LNET"

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
            allow_all_outbound=allow_all_outbound,
            clients=clients,
            removal_policy=removal_policy,
        )
