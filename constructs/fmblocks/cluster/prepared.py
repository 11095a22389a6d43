"""What constructs that go into a cluster ask of it beyond aws-cdk-lib's own interface."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct, IDependable


@runtime_checkable
class PreparedCluster(Protocol):
    """A cluster that brings its add-ons: an :class:`EksCluster`.

    Attributes:
        kubernetes_version: that its nodes follow.
        network: what a node needs to get ready.
        ready: everything that is always there: add-ons, system nodes, whoever is let in.
    """

    kubernetes_version: str
    network: IDependable
    ready: IDependable


def wait_until_ready(part: Construct, cluster: eks.ICluster | eks.Cluster) -> None:
    """Let ``part`` wait for what a cluster always has; of one that was there before nothing is known."""
    if isinstance(cluster, PreparedCluster):
        part.node.add_dependency(cluster.ready)
