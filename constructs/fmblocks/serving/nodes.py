"""Node groups of a project file as endpoints see them."""

from __future__ import annotations

from dataclasses import dataclass

from fmblocks.catalog import Types
from fmblocks.cluster.rules import interfaces_of
from fmblocks.cluster.settings import Cluster, NodeGroup, NodeRole, Orchestrator


@dataclass(frozen=True, slots=True)
class ServedNodes:
    """A node group: :class:`fmblocks.cluster.node_group.INodeGroup` of settings."""

    group_name: str
    instance_type: str
    count: int
    efa_interfaces: int


def served_nodes(cluster: Cluster, types: Types) -> list[ServedNodes]:
    """The node groups of a cluster that endpoints may name."""
    return [
        ServedNodes(group.name, group.instance_type, group.count, _efa_interfaces(cluster.orchestrator, group, types))
        for group in cluster.groups
        if group.role is not NodeRole.SYSTEM
    ]


def _efa_interfaces(orchestrator: Orchestrator, group: NodeGroup, types: Types) -> int:
    if group.instance_type not in types:
        return 0  # FMB-09
    if orchestrator.hyperpod:
        return types[group.instance_type].max_efa_interfaces
    return sum(one.interface_type.has_efa for one in interfaces_of(orchestrator, group, types))
