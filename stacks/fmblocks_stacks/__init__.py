"""The deployable stacks, composed from the library."""
