"""What a node does when it starts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from aws_cdk import aws_ec2 as ec2

from fmblocks._edge import unresolved
from fmblocks.catalog import InstanceType
from fmblocks.compute.launch_profile import as_script
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem


def boot_script(
    kind: InstanceType,
    *,
    file_system: ILustreFileSystem | None,
    mount_path: str,
    over_efa: bool,
    home: IOpenZfsFileSystem | None = None,
    home_path: str = "/home",
) -> ec2.UserData:
    """The script of cloud-init: instance store, containers, Lustre, home directories and the launch profile.

    Args:
        kind: the node's type.
        file_system: to mount; None: none.
        mount_path: where.
        over_efa: whether Lustre is mounted over EFA, falling back to TCP where the node cannot.
        home: file system with home directories; None: the node's own.
        home_path: where it is mounted.
    """
    values = {"FMBLOCKS_INSTANCE_TYPE": kind.name, "FMBLOCKS_LAUNCH_PROFILE": as_script(kind)}
    if file_system is not None:
        values |= {
            "FMBLOCKS_LUSTRE_DNS": file_system.dns_name,
            "FMBLOCKS_LUSTRE_NAME": file_system.mount_name,
            "FMBLOCKS_LUSTRE_PATH": mount_path,
            "FMBLOCKS_LUSTRE_EFA": "true" if over_efa else "false",
        }
    if home is not None:
        values |= {"FMBLOCKS_HOME_DNS": home.dns_name, "FMBLOCKS_HOME_PATH": home_path}
    # A token's text is put in by CloudFormation: DNS and mount names hold nothing that a shell reads.
    lines = [f"{name}={value if unresolved(value) else shlex.quote(value)}" for name, value in values.items()]
    script = Path(__file__).with_name("boot.sh").read_text(encoding="utf-8")
    boot = ec2.UserData.for_linux()
    boot.add_commands(*lines, script)
    return boot


def shell_function(name: str) -> str:
    """A function of the boot script, for other scripts that do the same on another kind of node.

    Raises:
        ValueError: the script has none of that name.
    """
    script = Path(__file__).with_name("boot.sh").read_text(encoding="utf-8")
    found = re.search(rf"^{re.escape(name)}\(\) \{{.*?^\}}$", script, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"boot.sh has no function {name}")
    return found[0]
