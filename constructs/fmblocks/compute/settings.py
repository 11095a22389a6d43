"""What a project file says about placement and EFA of a node group."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from fmblocks.settings import AnyCase, Settings, Text, WholeNumber


class PlacementMode(StrEnum):
    """Which placement group the nodes of a group stand in (API CreatePlacementGroup, Strategy)."""

    AUTO = "auto"
    NONE = "none"
    CLUSTER = "cluster"
    PARTITION = "partition"
    SPREAD = "spread"


class SpreadLevel(StrEnum):
    """What the nodes of a spread group do not share (API CreatePlacementGroup, SpreadLevel)."""

    RACK = "rack"
    HOST = "host"


class Placement(Settings):
    """The placement group of a node group."""

    mode: Annotated[PlacementMode, AnyCase] = PlacementMode.AUTO
    group_name: Annotated[Text | None, Field(description="an existing group")] = None
    partition_count: Annotated[WholeNumber | None, Field(description="with mode partition")] = None
    spread_level: Annotated[SpreadLevel | None, AnyCase, Field(description="with mode spread")] = None


class EfaMode(StrEnum):
    """Whether nodes get their EFA interfaces: auto takes what the type has, required refuses a type that has none."""

    AUTO = "auto"
    REQUIRED = "required"
    NONE = "none"


class InterfaceType(StrEnum):
    """What the EFA interfaces of a node are (API NetworkInterface, InterfaceType)."""

    EFA = "efa"
    EFA_ONLY = "efa-only"


class Profile(StrEnum):
    """How interfaces are laid out (EC2 User Guide, *Maximize network bandwidth*)."""

    SAVE_IP_ADDRESSES = "save-ip-addresses"
    MAX_IP_BANDWIDTH = "max-ip-bandwidth"


class NetworkInterfaceType(StrEnum):
    """What an interface of a launch template is (API NetworkInterface, InterfaceType)."""

    INTERFACE = "interface"
    EFA = "efa"
    EFA_ONLY = "efa-only"

    @property
    def has_efa(self) -> bool:
        """Whether EFA traffic runs over it."""
        return self is not NetworkInterfaceType.INTERFACE


_NO_ADDRESSES = "interfaces take one address of the subnet, efa-only ones none: leave the key out"


class NetworkInterface(Settings):
    """One interface of a node, where the layout of the catalogue is not wanted.

    It takes one address of its subnet, or none when it is efa-only: several nodes share the description.
    """

    FOREIGN: ClassVar = {
        "associate_public_ip_address": "instances with several network interfaces get no public address",
        "private_ip_address": _NO_ADDRESSES,
        "secondary_private_ip_address_count": _NO_ADDRESSES,
        "ipv4_prefix_count": _NO_ADDRESSES,
        "ipv6_address_count": _NO_ADDRESSES,
        "ipv6_prefix_count": _NO_ADDRESSES,
    }
    FOREIGN_RULES: ClassVar = {
        "associate_public_ip_address": "EFA-08",
        "private_ip_address": "EFA-07",
        "secondary_private_ip_address_count": "EFA-07",
        "ipv4_prefix_count": "EFA-07",
        "ipv6_address_count": "EFA-07",
        "ipv6_prefix_count": "EFA-07",
    }

    network_card_index: Annotated[WholeNumber, Field(description="the card it stands on")] = 0
    device_index: Annotated[WholeNumber, Field(description="its place on the card")]
    interface_type: Annotated[NetworkInterfaceType, AnyCase]


class InstancePlatform(StrEnum):
    """What an image runs (API CapacityReservationInstancePlatform)."""

    LINUX_UNIX = "Linux/UNIX"
    RED_HAT_ENTERPRISE_LINUX = "Red Hat Enterprise Linux"
    SUSE_LINUX = "SUSE Linux"
    WINDOWS = "Windows"
    WINDOWS_WITH_SQL_SERVER = "Windows with SQL Server"
    WINDOWS_WITH_SQL_SERVER_ENTERPRISE = "Windows with SQL Server Enterprise"
    WINDOWS_WITH_SQL_SERVER_STANDARD = "Windows with SQL Server Standard"
    WINDOWS_WITH_SQL_SERVER_WEB = "Windows with SQL Server Web"
    LINUX_WITH_SQL_SERVER_STANDARD = "Linux with SQL Server Standard"
    LINUX_WITH_SQL_SERVER_WEB = "Linux with SQL Server Web"
    LINUX_WITH_SQL_SERVER_ENTERPRISE = "Linux with SQL Server Enterprise"
    RHEL_WITH_SQL_SERVER_STANDARD = "RHEL with SQL Server Standard"
    RHEL_WITH_SQL_SERVER_ENTERPRISE = "RHEL with SQL Server Enterprise"
    RHEL_WITH_SQL_SERVER_WEB = "RHEL with SQL Server Web"
    RHEL_WITH_HA = "RHEL with HA"
    RHEL_WITH_HA_AND_SQL_SERVER_STANDARD = "RHEL with HA and SQL Server Standard"
    RHEL_WITH_HA_AND_SQL_SERVER_ENTERPRISE = "RHEL with HA and SQL Server Enterprise"
    UBUNTU_PRO = "Ubuntu Pro"

    @property
    def windows(self) -> bool:
        """Whether it is one of the Windows platforms."""
        return self.value.startswith("Windows")


def _platform(value: object) -> object:
    same = [one for one in InstancePlatform if isinstance(value, str) and one.lower() == value.strip().lower()]
    return same[0] if same else value


Platform = Annotated[InstancePlatform, BeforeValidator(_platform)]


class Architecture(StrEnum):
    """Processors that an image is built for (API DescribeImages, Architecture)."""

    X86_64 = "x86_64"
    ARM64 = "arm64"


class Image(Settings):
    """The machine image of a node group."""

    FOREIGN: ClassVar = {
        "ami": "the key is id",
        "ami_id": "the key is id",
        "name": "images are found by id or ssm_parameter, not by name",
    }

    id: Annotated[Text | None, Field(description="ami-…")] = None
    ssm_parameter: Annotated[Text | None, Field(description="a public or own parameter that holds the id")] = None
    architecture: Annotated[Architecture | None, Field(description="what the image is built for")] = None
    platform: Platform = InstancePlatform.LINUX_UNIX
    root_device_name: Annotated[
        Text | None, Field(description="of the image, on EC2; default: /dev/xvda, Amazon Linux's; Ubuntu has /dev/sda1")
    ] = None


class Efa(Settings):
    """Elastic Fabric Adapter of a node group."""

    mode: Annotated[EfaMode, AnyCase] = EfaMode.AUTO
    count: Annotated[WholeNumber | None, Field(description="EFA interfaces per node; default: all of the type")] = None
    interface_type: Annotated[InterfaceType | None, AnyCase] = None
    profile: Annotated[Profile | None, AnyCase] = None
    secondary_device_index: Annotated[
        WholeNumber | None, Field(description="device of EFA interfaces on cards above 0; 1 is AWS's older layout")
    ] = None
