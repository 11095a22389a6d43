"""How instances are bought: on demand, spot, reservations, Capacity Blocks, training plans."""
