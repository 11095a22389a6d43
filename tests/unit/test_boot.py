"""The boot script, run for real with the commands of the system replaced: control flow and repetition, nothing else."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
import pytest

import fmblocks as fm
from fmblocks.catalog import instance_types
from fmblocks.compute.boot import boot_script
from fmblocks.compute.launch_profile import LEFT_ALONE, as_script, launch_profile

REAL = ("bash", "chmod", "date", "mkdir", "cat", "grep", "awk", "cp", "mv", "readlink", "python3")
# Commands of the system: each notes that it was called, and answers what the test says.
STUBBED = (
    "logger", "mountpoint", "mdadm", "blkid", "mkfs.xfs", "mount", "docker", "systemctl", "ip", "modprobe", "lnetctl",
    "dnf", "mount.lustre", "mount.nfs4", "sleep", "umount",
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A folder that the script takes for a node."""

    root: Path
    bin: Path

    def answer(self, command: str, script: str) -> None:
        """Let a command do something else than nothing."""
        self._write(command, script)

    def _write(self, command: str, script: str) -> None:
        file = self.bin / command
        file.write_text(f'#!/bin/bash\necho "{command} $*" >>"{self.root}/calls"\n{script}\n')
        file.chmod(file.stat().st_mode | stat.S_IEXEC)

    def boot(self, script: str) -> list[str]:
        """Run the script as cloud-init does; give back what it called."""
        file = self.root / "boot.sh"
        file.write_text(script)
        return self._run(file)

    def reboot(self) -> list[str]:
        """Lose what a reboot loses, and run what systemd runs."""
        for gone in ("mounted", "nets"):
            (self.root / gone).unlink(missing_ok=True)
        return self._run(self.root / "usr/local/sbin/fmblocks-boot")

    def efa(self, *names: str, driver: str = "efa") -> None:
        """Make network devices of a driver, as sysfs shows them."""
        (self.root / "drivers" / driver).mkdir(parents=True, exist_ok=True)
        for name in names:
            device = self.root / "sys/class/infiniband" / name / "device"
            device.mkdir(parents=True)
            (device / "driver").symlink_to(self.root / "drivers" / driver)

    def _run(self, file: Path) -> list[str]:
        (self.root / "calls").write_text("")
        environment = {"PATH": str(self.bin), "FMBLOCKS_ROOT": str(self.root), "HOSTNAME": "node-1"}
        subprocess.run([shutil.which("bash") or "bash", str(file)], env=environment, check=True, timeout=60)
        return (self.root / "calls").read_text().splitlines()

    @property
    def log(self) -> str:
        """What the node says about its boot."""
        return (self.root / "var/log/fmblocks-boot.log").read_text()

    def devices(self, folder: str, *names: str) -> None:
        """Make device files, which are empty ones."""
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            (place / name).touch()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path / "root", tmp_path / "bin")
    (made.root / "var/log").mkdir(parents=True)
    (made.root / "etc").mkdir()
    made.bin.mkdir()
    for command in REAL:
        found = shutil.which(command)
        assert found is not None
        os.symlink(found, made.bin / command)
    for command in STUBBED:
        made.answer(command, "exit 0")
    # Nothing is mounted until mount was called for it.
    made.answer("mountpoint", f'grep -qx "${{2#{made.root}}}" "{made.root}/mounted" 2>/dev/null')
    made.answer(
        "mount",
        f'echo "${{@: -1}}" | grep -o "[^ ]*$" | awk -v r="{made.root}" \'{{sub(r, ""); print}}\' >>"{made.root}/mounted"',
    )
    made.answer("blkid", "exit 2")
    made.answer("ip", 'echo "default via 10.0.0.1 dev ens5"')
    # LNet remembers what was added until the next start.
    made.answer(
        "lnetctl",
        f'nets="{made.root}/nets"; case "$1 $2" in "net add") echo "$4 $6" >>"$nets" ;; "net show") grep -s "$4" "$nets" ;; esac; exit 0',
    )
    return made


@pytest.fixture
def script(cdk_context: dict[str, object]) -> Callable[..., str]:
    """The script as cloud-init gets it, for a node type."""
    stack = cdk.Stack(cdk.App(context=cdk_context), "S")
    system = fm.LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Lustre", file_system_id="fs-1", dns_name="fs-1.fsx.us-west-2.amazonaws.com", mount_name="abcdef"
    )

    homes = fm.OpenZfsFileSystem.from_open_zfs_file_system_attributes(
        stack, "Home", file_system_id="fs-2", dns_name="fs-2.fsx.us-west-2.amazonaws.com"
    )

    def write(name: str = "p5.48xlarge", *, lustre: bool = True, efa: bool = False, home: bool = False) -> str:
        return boot_script(
            instance_types()[name],
            file_system=system if lustre else None,
            mount_path="/fsx",
            over_efa=efa,
            home=homes if home else None,
        ).render()

    return write


STORE = "dev/disk/by-id"
DISK = "nvme-Amazon_EC2_NVMe_Instance_Storage_AWS"


def test_the_script_is_clean(script: Callable[..., str], tmp_path: Path) -> None:
    for index, text in enumerate([script(efa=True, home=True), script("m7i.xlarge", lustre=False)]):
        file = tmp_path / f"{index}.sh"
        file.write_text(text)
        found = subprocess.run(["shellcheck", str(file)], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stdout
        assert file.stat().st_size < 16 * 1024  # EC2 takes no longer user data


def test_a_plain_node_does_next_to_nothing(node: Node, script: Callable[..., str]) -> None:
    calls = node.boot(script("m7i.xlarge", lustre=False))
    assert not any(call.startswith(("mdadm", "mkfs.xfs", "mount ", "docker", "dnf")) for call in calls)
    assert "done" in node.log


def test_instance_store_becomes_one_volume_with_containers_on_it(node: Node, script: Callable[..., str]) -> None:
    node.devices("dev", *[f"nvme{n}n1" for n in range(1, 9)])
    node.devices(STORE, f"{DISK}0-part1", "nvme-Amazon_Elastic_Block_Store_vol")
    for n in range(1, 9):  # as udev names them
        for name in (f"{DISK}{n}", f"{DISK}{n}_1", f"{DISK}{n}-ns-1"):
            (node.root / STORE / name).symlink_to(node.root / f"dev/nvme{n}n1")
    (node.root / "etc/docker").mkdir()
    (node.root / "etc/docker/daemon.json").write_text('{"runtimes": {"nvidia": {}}}')
    calls = node.boot(script(lustre=False))
    (raid,) = [call for call in calls if call.startswith("mdadm")]
    assert "--raid-devices=8" in raid
    assert [word.rsplit("/", 1)[1] for word in raid.split() if "nvme" in word] == [f"nvme{n}n1" for n in range(1, 9)]
    assert any(call.startswith("mkfs.xfs") for call in calls)
    settings = json.loads((node.root / "etc/docker/daemon.json").read_text())
    assert settings == {"runtimes": {"nvidia": {}}, "data-root": "/local/docker"}
    # Engines that keep images with containerd are moved too; both were running when cloud-init came.
    assert (node.root / "mounted").read_text().splitlines() == ["/local", "/var/lib/containerd"]
    stopped, started = (
        calls.index("systemctl stop docker.socket docker containerd"),
        calls.index("systemctl start containerd docker"),
    )
    assert stopped < next(n for n, call in enumerate(calls) if call.startswith("mount --bind")) < started


def test_one_disk_needs_no_array(node: Node, script: Callable[..., str]) -> None:
    node.devices(STORE, f"{DISK}0")
    calls = node.boot(script("p5.4xlarge", lustre=False))
    assert not any(call.startswith("mdadm") for call in calls)
    assert any(call.startswith("mkfs.xfs") and call.endswith(f"{DISK}0") for call in calls)


def test_what_the_image_has_made_is_used(node: Node, script: Callable[..., str]) -> None:
    (node.root / "mounted").write_text("/opt/dlami/nvme\n")
    calls = node.boot(script(lustre=False))
    assert not any(call.startswith(("mdadm", "mkfs.xfs")) for call in calls)
    assert json.loads((node.root / "etc/docker/daemon.json").read_text()) == {"data-root": "/opt/dlami/nvme/docker"}


def test_lustre_over_tcp(node: Node, script: Callable[..., str]) -> None:
    calls = node.boot(script())
    assert not any(call.startswith("lnetctl") for call in calls)
    assert "mount /fsx" in calls
    (line,) = (node.root / "etc/fstab").read_text().splitlines()
    assert line.startswith(
        "fs-1.fsx.us-west-2.amazonaws.com@tcp:/abcdef /fsx lustre noauto,noatime,flock,lazystatfs,_netdev"
    )


def test_again_changes_nothing(node: Node, script: Callable[..., str]) -> None:
    text = script(efa=True)
    node.efa("rdmap0s31", "rdmap1s31")
    node.devices(STORE, f"{DISK}0")
    first = node.boot(text)
    before = {
        file: file.read_bytes()
        for file in node.root.rglob("*")
        if file.is_file() and file.name not in ("calls", "fmblocks-boot.log")
    }
    second = node.boot(text)
    assert any(call.startswith("mkfs.xfs") for call in first)
    assert not any(call.startswith(("mkfs.xfs", "mount ", "lnetctl net add")) for call in second)
    after = {file: file.read_bytes() for file in before}
    assert after == before


def test_a_reboot_brings_everything_back(node: Node, script: Callable[..., str]) -> None:
    """Cloud-init runs user data once: without the unit Lustre came back over TCP and containers on the root volume."""
    node.efa("rdmap0s31", "rdmap1s31")
    node.devices(STORE, f"{DISK}0")
    assert "systemctl enable fmblocks-boot.service" in node.boot(script(efa=True))
    unit = (node.root / "etc/systemd/system/fmblocks-boot.service").read_text()
    assert "ExecStart=/usr/local/sbin/fmblocks-boot\n" in unit
    assert "Before=containerd.service docker.service slurmd.service\n" in unit
    assert os.access(node.root / "usr/local/sbin/fmblocks-boot", os.X_OK)
    # Both wait for the unit; the disk has kept its file system.
    node.answer("systemctl", "[[ $1 != is-active ]]")
    node.answer("blkid", "exit 0")
    calls = node.reboot()
    assert not any(
        call.startswith(("mkfs.xfs", "systemctl start", "systemctl stop", "systemctl enable")) for call in calls
    )
    assert [call for call in calls if call.startswith("lnetctl net add --net efa")]
    assert (node.root / "mounted").read_text().splitlines() == ["/local", "/var/lib/containerd", "/fsx"]
    (line,) = (node.root / "etc/fstab").read_text().splitlines()
    assert " lustre noauto," in line  # else systemd mounts it before LNet knows EFA


def test_instance_store_that_fails_is_told(node: Node, script: Callable[..., str]) -> None:
    node.devices(STORE, f"{DISK}0")
    node.answer("mkfs.xfs", "exit 1")
    calls = node.boot(script(lustre=False))
    assert "the instance store could not be set up" in node.log
    assert not any(call.startswith("mount ") for call in calls)


@pytest.mark.parametrize(
    ("number", "chosen"),
    [
        (32, range(0, 32, 4)),
        (16, range(0, 16, 2)),
        (8, range(8)),
        (4, (0, 3)),
        (1, (0,)),
    ],
)
def test_lustre_over_efa_uses_some_of_the_devices(
    node: Node, script: Callable[..., str], number: int, chosen: Iterable[int]
) -> None:
    node.efa(*[f"rdmap{n:02}s0" for n in range(number)])
    calls = node.boot(script(efa=True))
    added = [call.split()[6] for call in calls if call.startswith("lnetctl net add --net efa")]
    assert added == [f"rdmap{n:02}s0" for n in chosen]
    assert "modprobe kefalnd ipif_name=ens5" in calls
    assert calls.index("lnetctl udsp add --src efa --priority 0") < calls.index("mount /fsx")


def test_devices_of_other_drivers_are_no_efa(node: Node, script: Callable[..., str]) -> None:
    """Nodes with B200 have NVIDIA's own beside EFA's, and they come first."""
    node.efa("ibp115s0f0", "ibp116s0f0", driver="mlx5_core")
    node.efa("rdmap0s31", "rdmap1s31")
    calls = node.boot(script("p6-b200.48xlarge", efa=True))
    added = [call.split()[6] for call in calls if call.startswith("lnetctl net add --net efa")]
    assert added == ["rdmap0s31", "rdmap1s31"]


def test_a_device_that_fails_does_not_take_the_others_with_it(node: Node, script: Callable[..., str]) -> None:
    node.efa("rdmap0s31", "rdmap1s31")
    node.answer(
        "lnetctl",
        f'[[ "$*" == *add*rdmap0* ]] && exit 1; [[ $2 == add ]] && echo "$4 $6" >>"{node.root}/nets"; '
        f'[[ $2 == show ]] && grep -s "$4" "{node.root}/nets"; exit 0',
    )
    node.boot(script(efa=True))
    assert "Lustre does without the EFA device rdmap0s31" in node.log
    assert "Lustre talks over EFA" in node.log


@pytest.mark.parametrize(
    ("command", "said"),
    [("modprobe", "EFA for Lustre could not be set up: it is mounted over TCP"), ("mount", "Lustre is not mounted")],
)
def test_what_fails_is_told_and_keeps_the_node_alive(
    node: Node, script: Callable[..., str], command: str, said: str
) -> None:
    node.efa("rdmap0s31")
    node.answer(command, "exit 1")
    calls = node.boot(script(efa=True))
    assert said in node.log
    assert "done" in node.log
    assert len([call for call in calls if call == "mount /fsx"]) == (10 if command == "mount" else 1)


def test_a_missing_client_is_installed_with_patience(node: Node, script: Callable[..., str]) -> None:
    (node.bin / "mount.lustre").unlink()
    node.answer("dnf", f'[[ $(grep -c ^dnf "{node.root}/calls") -ge 3 ]]')
    calls = node.boot(script())
    assert len([call for call in calls if call.startswith("dnf install")]) == 3
    assert "mount /fsx" in calls


def test_on_ubuntu_the_client_comes_from_the_repository_of_aws(node: Node, script: Callable[..., str]) -> None:
    for name in ("mount.lustre", "dnf"):
        (node.bin / name).unlink()
    (node.root / "etc/os-release").write_text("VERSION_CODENAME=noble\n")
    node.answer("uname", "echo 6.14.0-1018-aws")
    node.answer("curl", f'[[ $(grep -c ^curl "{node.root}/calls") -ge 2 ]]')
    node.answer("apt-get", "exit 0")
    calls = node.boot(script())
    bucket = "https://fsx-lustre-client-repo"
    key = "/usr/share/keyrings/fsx-ubuntu-public-key.asc"
    asked = f"curl -fsS -o {node.root}{key} {bucket}-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc"
    assert calls.count(asked) == 2
    assert "apt-get install -y -q lustre-client-modules-6.14.0-1018-aws" in calls
    source = (node.root / "etc/apt/sources.list.d/fsxlustreclientrepo.list").read_text()
    assert source == f"deb [signed-by={key}] {bucket}.s3.amazonaws.com/ubuntu noble main\n"
    assert "mount /fsx" in calls


def test_the_launch_profile_is_written_here_and_on_the_file_system(node: Node, script: Callable[..., str]) -> None:
    node.boot(script())
    here = (node.root / "etc/fmblocks/launch-profile.sh").read_text()
    assert here == (node.root / "fsx/fmblocks/launch-profiles/p5.48xlarge.sh").read_text()
    assert "export NCCL_SOCKET_IFNAME='^lo,docker,veth,eni,pod-id-link0'" in here
    assert f"unset {' '.join(LEFT_ALONE)}" in here
    shown = subprocess.run(
        ["bash", "-c", 'NCCL_PROTO=simple; export NCCL_PROTO; . "$0"; env', str(node.root / "etc/fmblocks/launch-profile.sh")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "NCCL_PROTO" not in shown.stdout
    assert "NCCL_DEBUG=INFO" in shown.stdout


def test_profiles_by_family() -> None:
    types = instance_types()
    assert launch_profile(types["m7i.xlarge"]) == {}
    assert launch_profile(types["trn2.48xlarge"]) == {}
    assert launch_profile(types["p6e-gb200.36xlarge"])["NCCL_MNNVL_ENABLE"] == "1"
    assert "NCCL_MNNVL_ENABLE" not in launch_profile(types["p5.48xlarge"])
    assert "FI_EFA_SET_CUDA_SYNC_MEMOPS" not in launch_profile(types["g6.xlarge"])
    for kind in types.values():
        assert not set(launch_profile(kind)) & set(LEFT_ALONE)
        assert as_script(kind).startswith(f"# {kind.name}")


def test_home_directories_are_mounted_over_those_of_the_image(node: Node, script: Callable[..., str]) -> None:
    (node.root / "home/ec2-user/.ssh").mkdir(parents=True)
    (node.root / "home/ec2-user/.ssh/authorized_keys").write_text("key")
    (node.root / "run/fmblocks-home/ec2-user").mkdir(parents=True)
    (node.root / "run/fmblocks-home/ec2-user/mine").write_text("kept")
    calls = node.boot(script(lustre=False, home=True))
    shared = node.root / "run/fmblocks-home/ec2-user"  # what the file system would hold
    assert (shared / ".ssh/authorized_keys").read_text() == "key"
    assert (shared / "mine").read_text() == "kept"
    mounts = [call for call in calls if call.startswith(("mount ", "umount "))]
    aside = f"{node.root}/run/fmblocks-home"
    assert mounts == [
        f"mount -t nfs4 -o nfsvers=4.2,nconnect=16 fs-2.fsx.us-west-2.amazonaws.com:/fsx {aside}",
        f"umount {aside}",
        "mount /home",
    ]
    table = (node.root / "etc/fstab").read_text()
    assert table.startswith("fs-2.fsx.us-west-2.amazonaws.com:/fsx /home nfs4 nfsvers=4.2,nconnect=16,")
    assert table.count("\n") == 1
    node.boot(script(lustre=False, home=True))
    assert (node.root / "etc/fstab").read_text() == table


def test_a_node_without_an_nfs_client_installs_one(node: Node, script: Callable[..., str]) -> None:
    (node.bin / "mount.nfs4").unlink()
    calls = node.boot(script(lustre=False, home=True))
    assert "dnf install -y -q nfs-utils" in calls


def test_an_nfs_client_comes_from_apt_on_ubuntu(node: Node, script: Callable[..., str]) -> None:
    (node.bin / "mount.nfs4").unlink()
    (node.bin / "dnf").unlink()
    node.answer("apt-get", "exit 0")
    calls = node.boot(script(lustre=False, home=True))
    assert [one for one in calls if one.startswith("apt")] == ["apt-get update -q", "apt-get install -y -q nfs-common"]
    unit = (node.root / "etc/systemd/system/fmblocks-boot.service").read_text()
    assert "Before=containerd.service docker.service slurmd.service" in unit


def test_home_directories_that_cannot_be_mounted_do_not_stop_the_node(node: Node, script: Callable[..., str]) -> None:
    node.answer("mount", "exit 32")
    node.boot(script(lustre=False, home=True))
    assert "home directories are not mounted: they are this node's own" in node.log
    assert "done" in node.log
