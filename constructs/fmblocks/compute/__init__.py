"""How instances are placed and attached to the network."""
