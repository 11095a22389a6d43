"""What a project file says about placement and EFA of a node group."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fmblocks.settings import AnyCase, Settings, Text, WholeNumber


class PlacementMode(StrEnum):
    """Which placement group the nodes of a group stand in (API CreatePlacementGroup, Strategy)."""

    AUTO = "auto"
    NONE = "none"
    CLUSTER = "cluster"
    PARTITION = "partition"
    SPREAD = "spread"


class Placement(Settings):
    """The placement group of a node group."""

    mode: Annotated[PlacementMode, AnyCase] = PlacementMode.AUTO
    group_name: Annotated[Text | None, Field(description="an existing group")] = None
    partition_count: Annotated[WholeNumber | None, Field(description="with mode partition")] = None


class EfaMode(StrEnum):
    """Whether nodes get their EFA interfaces."""

    AUTO = "auto"
    NONE = "none"


class InterfaceType(StrEnum):
    """What the EFA interfaces of a node are (API NetworkInterface, InterfaceType)."""

    EFA = "efa"
    EFA_ONLY = "efa-only"


class Profile(StrEnum):
    """How interfaces are laid out (EC2 User Guide, *Maximize network bandwidth*)."""

    SAVE_IP_ADDRESSES = "save-ip-addresses"
    MAX_IP_BANDWIDTH = "max-ip-bandwidth"


class Efa(Settings):
    """Elastic Fabric Adapter of a node group."""

    mode: Annotated[EfaMode, AnyCase] = EfaMode.AUTO
    count: Annotated[WholeNumber | None, Field(description="EFA interfaces per node; default: all of the type")] = None
    interface_type: Annotated[InterfaceType | None, AnyCase] = None
    profile: Annotated[Profile | None, AnyCase] = None
