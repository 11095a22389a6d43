"""The security group of an OpenZFS file system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.storage.file_system_security_group import FileSystemSecurityGroup


class OpenZfsSecurityGroup(FileSystemSecurityGroup):
    """Lets NFS in: TCP and UDP 111, 2049 and 20001 to 20003, from itself and from its clients.

    FSx refuses to create a file system whose group does not let TCP 2049 in from itself. The servers open no connection
    of their own, so nothing goes out but answers.

    Args:
        vpc: where the group stands.
        clients: groups of the nodes that mount the file system, by a name that becomes part of the rules' ids. More can
            be added with :meth:`add_client`.
        removal_policy: of the group and its rules; a kept file system needs them kept. Default: DESTROY.
    """

    # Source: FSx for OpenZFS User Guide, *File system access control with Amazon VPC*.
    PORTS: ClassVar = {
        f"{name}{protocol.capitalize()}": (protocol, first, last)
        for name, first, last in (("Rpc", 111, 111), ("Nfs", 2049, 2049), ("Mount", 20001, 20003))
        for protocol in ("tcp", "udp")
    }
    TRAFFIC: ClassVar = "OpenZFS NFS"
    CONNECTS: ClassVar = False

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        clients: Mapping[str, ec2.ISecurityGroup] | None = None,
        removal_policy: cdk.RemovalPolicy = cdk.RemovalPolicy.DESTROY,
    ) -> None:
        super().__init__(scope, id, vpc=vpc, allow_all_outbound=False, clients=clients, removal_policy=removal_policy)
