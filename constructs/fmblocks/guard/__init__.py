"""What a deployment would replace or take away, told before it does: ``fmblocks guard``."""
