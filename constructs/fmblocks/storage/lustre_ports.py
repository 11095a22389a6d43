"""The ports of Lustre."""

from __future__ import annotations

# TCP, first and last. Source: FSx for Lustre User Guide, *File system access control with Amazon VPC*.
LUSTRE_PORTS = ((988, 988), (1018, 1023))
