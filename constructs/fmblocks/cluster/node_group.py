"""Nodes as what runs on them sees them."""

from __future__ import annotations

from typing import Protocol


class INodeGroup(Protocol):
    """Nodes that queues hand out and endpoints stand on: an :class:`EksGpuNodeGroup`, a :class:`KarpenterNodePool`."""

    @property
    def group_name(self) -> str: ...
    @property
    def instance_type(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def efa_interfaces(self) -> int: ...
