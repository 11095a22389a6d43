"""What file systems of FSx have in common, made here or elsewhere."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from fmblocks.storage.file_system_security_group import FileSystemSecurityGroup


class FsxFileSystem(cdk.Resource):
    """A file system that nodes mount.

    Attributes:
        file_system_id: the id, ``fs-…``.
        dns_name: the DNS name that clients mount.
        security_group: of its interfaces; None where it is not known.
    """

    file_system_id: str
    dns_name: str
    security_group: ec2.ISecurityGroup | None
    _connections: ec2.Connections

    def _known_as(
        self, *, file_system_id: str, dns_name: str, security_group: ec2.ISecurityGroup | None, port: ec2.Port
    ) -> None:
        self.file_system_id = file_system_id
        self.dns_name = dns_name
        self.security_group = security_group
        groups = [security_group] if security_group else []
        self._connections = ec2.Connections(security_groups=groups, default_port=port)

    @property
    def connections(self) -> ec2.Connections:
        """The network connections of the file system; the default port is that of its traffic."""
        return self._connections

    def add_client(self, name: str, group: ec2.ISecurityGroup, *, scope: Construct | None = None) -> None:
        """Let the nodes that carry ``group`` mount the file system.

        Does nothing where the file system's group is none of ours: its rules are their owner's.

        Args:
            name: becomes part of the rules' construct ids.
            group: carried by the nodes.
            scope: where the rules go when it is of another stack than the file system. Default: the group.
        """
        if isinstance(self.security_group, FileSystemSecurityGroup):
            self.security_group.add_client(name, group, scope=scope)

    def metric(
        self,
        metric_name: str,
        *,
        statistic: str = cloudwatch.Stats.SUM,
        period: cdk.Duration | None = None,
        dimensions: dict[str, str] | None = None,
    ) -> cloudwatch.Metric:
        """A metric of this file system in the namespace AWS/FSx.

        Args:
            metric_name: as FSx writes it.
            statistic: default: the sum.
            period: default: five minutes.
            dimensions: beside the id of the file system.
        """
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name=metric_name,
            dimensions_map={"FileSystemId": self.file_system_id, **(dimensions or {})},
            statistic=statistic,
            period=period,
        )
