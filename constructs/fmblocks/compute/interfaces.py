"""Which network interfaces a node gets: from the catalogue, since every type has its own cards.

Source of the layouts: EC2 User Guide, *Maximize network bandwidth on Amazon EC2 instances with multiple network cards*.
"""

from __future__ import annotations

from fmblocks.catalog import InstanceType
from fmblocks.compute.settings import (
    Efa,
    EfaMode,
    InterfaceType,
    NetworkInterface,
    NetworkInterfaceType,
    Profile,
)


def layout(kind: InstanceType, efa: Efa) -> tuple[NetworkInterface, ...]:
    """The interfaces of a node, by card and device.

    With efa-only interfaces a node takes one address: card 0 carries an ENA interface at device 0 and, where it can do
    EFA, an efa-only one at device 1. With ``efa`` ones each takes an address.
    """
    if efa.mode is EfaMode.NONE or not kind.max_efa_interfaces:
        return (_interface(0, 0, NetworkInterfaceType.INTERFACE),)
    cards = kind.efa_layout_cards or kind.efa_network_cards or tuple(range(kind.max_efa_interfaces))
    chosen = cards[: efa.count or kind.efa_layout_count or kind.max_efa_interfaces]
    bearing = efa.interface_type is InterfaceType.EFA
    found = {}
    if not (bearing and 0 in chosen):
        found[0, 0] = NetworkInterfaceType.INTERFACE
    first = 0 if bearing else 1
    others = efa.secondary_device_index if efa.secondary_device_index is not None else 1 - first
    for card in chosen:
        found[card, others if card else first] = NetworkInterfaceType.EFA if bearing else NetworkInterfaceType.EFA_ONLY
    if efa.profile is Profile.MAX_IP_BANDWIDTH:
        # Device 1 is free in the layout with device 0; beside the older one EFA-04 finds the card full.
        taken = {card: max(at for on, at in found if on == card) for card, _ in found}
        for card in kind.ip_interface_cards:
            found[card, taken.get(card, 0) + 1] = NetworkInterfaceType.INTERFACE
    return tuple(_interface(card, at, kind) for (card, at), kind in sorted(found.items()))


def _interface(card: int, device: int, kind: NetworkInterfaceType) -> NetworkInterface:
    return NetworkInterface(network_card_index=card, device_index=device, interface_type=kind)


def addresses(interfaces: tuple[NetworkInterface, ...]) -> int:
    """Addresses that the interfaces of one node take: efa-only ones take none."""
    return sum(one.interface_type is not NetworkInterfaceType.EFA_ONLY for one in interfaces)
