"""Lifecycle scripts of HyperPod with Slurm, run for real with the commands of the system replaced.

This proves control flow and repetition, nothing else: no node of HyperPod has run them.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_s3 as s3

import fmblocks as fm
from fmblocks.findings import FindingsError

REAL = (
    "bash", "chmod", "date", "mkdir", "cat", "grep", "cp", "mv", "python3", "tee", "dirname", "cut", "ln", "rm",
    "touch",
)  # fmt: skip
# Each notes that it was called, and answers what the test says.
STUBBED = (
    "mountpoint", "getent", "id", "groupadd", "useradd", "chown", "ssh-keygen", "docker", "systemctl", "mount", "curl",
    "sleep", "stat", "sync",
)  # fmt: skip
USERS = "ana\t10001\tpretrain\nben\t10002\t\n"
# Accounts of a node: getent and id know who was added before.
ACCOUNTS = """\
known=$FMBLOCKS_ROOT/passwd; touch "$known"
case $0:$1 in
  */id:*) grep -q "^$2:" "$known" && grep "^$2:" "$known" | cut -d: -f2 || exit 1 ;;
  */getent:passwd) grep ":$2$" "$known" || exit 2 ;;
  */getent:group) exit 2 ;;
esac"""
ADDED = 'touch "$FMBLOCKS_ROOT/passwd"; echo "${!#}:$2" >>"$FMBLOCKS_ROOT/passwd"'
# Who owns what: chown writes it down, stat reads it; what nobody was given is root's.
OWNED = 'for one; do :; done; echo "$one ${2%%:*}" >>"$FMBLOCKS_ROOT/owners"'
OWNER = 'touch "$FMBLOCKS_ROOT/owners"; grep "^$3 " "$FMBLOCKS_ROOT/owners" | cut -d" " -f2 | grep . || echo 0'
# Slurm's database: an account or an association is there once it was added.
SACCTMGR = """\
known=$FMBLOCKS_ROOT/slurmdb; touch "$known"
case $* in
  *"show cluster"*) echo cluster ;;
  *"show account"*) grep -x "account $4" "$known" ;;
  *"show association where user="*" account="*) grep -x "user ${5#user=} ${6#account=}" "$known" ;;
  *"show association where user="*) grep "^user ${5#user=} " "$known" | cut -d' ' -f3 ;;
  *"delete user"*) grep -vx "user ${5#name=} ${6#account=}" "$known" >"$known.new"; mv "$known.new" "$known" ;;
  *"add account"*) echo "account $4" >>"$known" ;;
  *"add user"*) echo "user $4 ${5#Account=}" >>"$known" ;;
esac
true"""


@dataclass(frozen=True)
class Node:
    """A folder that the scripts take for a node, and the bundle that HyperPod put on it."""

    root: Path
    bundle: Path
    bin: Path

    def answer(self, command: str, script: str) -> None:
        """Let a command do something else than nothing."""
        folder = self.root / "opt/slurm/bin" if command == "sacctmgr" else self.bin
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / command
        file.write_text(f'#!/bin/bash\necho "{command} $*" >>"{self.root}/calls"\n{script}\n')
        file.chmod(file.stat().st_mode | stat.S_IEXEC)

    def run(self, role: str = "compute") -> tuple[int, list[str], str]:
        """Start the entry of a role as HyperPod does; give back its end, what it called, and what it printed."""
        calls = self.root / "calls"
        calls.write_text("")
        done = subprocess.run(
            ["bash", str(self.bundle / f"{role}.sh")],
            env={"PATH": str(self.bin), "FMBLOCKS_ROOT": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert ": line " not in done.stdout, done.stdout
        return done.returncode, calls.read_text().splitlines(), done.stdout


def bundle_of(folder: Path, **arguments: object) -> Path:
    """The bundle as it goes into the bucket."""
    app = cdk.App(outdir=str(folder / "out"))
    stack = cdk.Stack(app, "S")
    bucket = s3.Bucket.from_bucket_name(stack, "B", "sagemaker-scripts")
    fm.SlurmLifecycleBundle(stack, "Bundle", bucket=bucket, **arguments)  # type: ignore[arg-type]
    app.synth()
    (entry,) = (folder / "out").glob("asset.*/setup.sh")
    return entry.parent


Make = Callable[..., Node]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def once(**arguments: object) -> Node:
        given: dict[str, object] = {
            "users": [
                fm.SlurmUser(name="ben", uid=10002),
                fm.SlurmUser(name="ana", uid=10001, account="pretrain"),
            ],
            "accounts": {"pretrain": 80, "research": None},
            "lustre_mount_path": "/fsx",
            "home_mount_path": "/home",
            "types": ["p5en.48xlarge"],
        }
        node = Node(tmp_path / "node", bundle_of(tmp_path, **{**given, **arguments}), tmp_path / "bin")
        node.bin.mkdir()
        for folder in ("var/log", "etc/skel", "etc/docker", "opt/slurm/etc", "home", "fsx"):
            (node.root / folder).mkdir(parents=True)
        (node.root / "etc/skel/.bashrc").write_text("# shell\n")
        (node.root / "etc/fstab").write_text("")
        for name in REAL:
            os.symlink(shutil.which(name) or "", node.bin / name)
        for name in STUBBED:
            node.answer(name, "true")
        node.answer("getent", ACCOUNTS)
        node.answer("id", ACCOUNTS.replace("$2", "$2"))
        node.answer("useradd", ADDED)
        node.answer("chown", OWNED)
        node.answer("stat", OWNER)
        node.answer("sacctmgr", SACCTMGR)
        node.answer("ssh-keygen", 'file=${!#}; echo key >"$file"; echo pub >"$file.pub"')
        node.answer("curl", "[[ $* != *instance-type* ]] || echo p5en.48xlarge")
        return node

    return once


def test_the_bundle_says_who_works_here(make: Make) -> None:
    node = make()
    assert (node.bundle / "users").read_text() == USERS
    assert (node.bundle / "accounts").read_text() == "pretrain\t80\nresearch\t\n"
    # A file of this name beside Slurm settings of the API makes HyperPod refuse the cluster.
    assert not list(node.bundle.rglob("provisioning_parameters.json"))
    found = subprocess.run(
        ["shellcheck", "-x", *map(str, node.bundle.glob("*.sh"))], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def test_nothing_is_downloaded(make: Make) -> None:
    text = "\n".join(file.read_text() for file in make().bundle.glob("*.sh"))
    for tool in ("wget", "git clone", "pip install", "apt-get", "yum ", "https://"):
        assert tool not in text
    assert {line.split()[-1] for line in text.splitlines() if "http://" in line} <= {
        "http://169.254.169.254/latest/api/token)",
        "http://169.254.169.254/latest/meta-data/instance-type)",
        "&&",
        "||",
    }


@pytest.mark.parametrize("role", ["controller", "login", "compute"])
def test_every_role_runs_twice_and_changes_nothing_the_second_time(make: Make, role: str) -> None:
    node = make()
    code, calls, said = node.run(role)
    assert code == 0, said
    assert "useradd --uid 10001 --gid 10001 --home-dir /home/ana --no-create-home --shell /bin/bash ana" in calls
    assert (node.root / "home/ana/.bashrc").exists()
    assert (node.root / "etc/fmblocks/launch-profile-p5en.48xlarge.sh").exists()
    assert said.rstrip().endswith("done")
    before = sorted(str(file) for file in node.root.rglob("*"))
    code, calls, said = node.run(role)
    assert code == 0, said
    changing = ("useradd", "groupadd", "chown", "ssh-keygen", "add account", "add user", "mount --bind")
    assert [call for call in calls if any(word in call for word in changing)] == []
    assert sorted(str(file) for file in node.root.rglob("*")) == before


def test_the_controller_fills_slurms_database_and_makes_keys(make: Make) -> None:
    node = make()
    _, calls, _ = node.run("controller")
    assert "sacctmgr -i add account pretrain Description=pretrain Organization=pretrain Fairshare=80" in calls
    assert "sacctmgr -i add account research Description=research Organization=research" in [
        call.rstrip() for call in calls
    ]
    assert "sacctmgr -i add user ana Account=pretrain DefaultAccount=pretrain" in calls
    assert not [call for call in calls if "add user ben" in call]
    assert (node.root / "home/ana/.ssh/authorized_keys").read_text() == "pub\n"
    _, calls, _ = node.run("controller")
    assert "sacctmgr -i modify account where name=pretrain set Fairshare=80" in calls


def test_other_nodes_touch_neither_database_nor_keys(make: Make) -> None:
    node = make()
    _, calls, _ = node.run("login")
    assert not [call for call in calls if call.startswith(("sacctmgr", "ssh-keygen", "docker", "systemctl"))]


def test_a_database_that_is_not_there_yet_is_waited_for(make: Make) -> None:
    node = make()
    late = f'echo x >>"$FMBLOCKS_ROOT/asked"; (( $(grep -c x "$FMBLOCKS_ROOT/asked") > 3 )) || exit 1\n{SACCTMGR}'
    node.answer("sacctmgr", late)
    code, calls, said = node.run("controller")
    assert code == 0, said
    assert calls.count("sleep 10") == 3
    assert "sacctmgr -i add user ana Account=pretrain DefaultAccount=pretrain" in calls


def test_a_database_that_never_comes_is_told_and_the_controller_stays(make: Make) -> None:
    """A controller whose script fails ends the whole cluster, and everything else works."""
    node = make()
    node.answer("sacctmgr", "exit 1")
    code, _, said = node.run("controller")
    assert code == 0
    assert "failed: accounts" in said


@pytest.mark.parametrize(
    ("passwd", "text"),
    [
        ("eve:10001\n", "the number 10001 of ana is that of eve here"),
        ("ana:999\n", "ana has the number 999 here, not 10001: the files of one would belong to another"),
    ],
)
def test_a_taken_number_keeps_the_node_out(make: Make, passwd: str, text: str) -> None:
    node = make()
    (node.root / "passwd").write_text(passwd)
    code, calls, said = node.run()
    assert code == 1
    assert text in said
    assert "failed: users" in said
    assert calls[-2:] == ["sync ", "sleep 60"]
    assert "useradd" in " ".join(calls), "the others are added all the same"


def test_a_useradd_that_fails_once_is_tried_again(make: Make) -> None:
    node = make()
    node.answer("useradd", f'[[ -e $FMBLOCKS_ROOT/tried ]] || {{ touch "$FMBLOCKS_ROOT/tried"; exit 1; }}\n{ADDED}')
    code, calls, said = node.run()
    assert code == 0, said
    assert len([call for call in calls if call.startswith("useradd")]) == 3


def test_a_mount_that_is_late_changes_nothing_but_the_time(make: Make) -> None:
    """What is told meanwhile must not get into what a function answers."""
    node = make()
    node.answer("mountpoint", 'echo x >>"$FMBLOCKS_ROOT/asked"; (( $(grep -c x "$FMBLOCKS_ROOT/asked") > 2 ))')
    node.answer(
        "curl",
        """echo x >>"$FMBLOCKS_ROOT/curled"
(( $(grep -c x "$FMBLOCKS_ROOT/curled") % 2 == 0 )) || exit 1
[[ $* != *instance-type* ]] && echo token || { [[ $* == *"token: token "* ]] && echo p5en.48xlarge; }""",
    )
    code, calls, said = node.run()
    assert code == 0, said
    assert "useradd --uid 10001 --gid 10001 --home-dir /home/ana --no-create-home --shell /bin/bash ana" in calls
    assert calls.count("sleep 5") == 2
    assert os.readlink(node.root / "etc/fmblocks/launch-profile.sh") == "launch-profile-p5en.48xlarge.sh"


def test_a_home_that_another_node_left_half_made_is_finished(make: Make) -> None:
    node = make()
    (node.root / "home/ana").mkdir()
    code, calls, said = node.run()
    assert code == 0, said
    assert f"chown -R 10001:10001 {node.root}/home/ana" in calls
    assert (node.root / "home/ana/.bashrc").exists()


def test_somebody_who_changes_teams_works_for_the_new_one_alone(make: Make) -> None:
    node = make()
    node.run("controller")
    accounts = node.root / "slurmdb"
    accounts.write_text(accounts.read_text() + "user ana theirs\n")
    (node.bundle / "users").write_text("ana\t10001\tresearch\n")
    _, calls, said = node.run("controller")
    assert "failed" not in said, said
    assert "sacctmgr -i add user ana Account=research DefaultAccount=research" in calls
    assert "sacctmgr -i delete user where name=ana account=pretrain" in calls
    # An account that nobody of this project made stays.
    assert accounts.read_text().split("\n").count("user ana theirs") == 1


def test_directories_of_lustre_are_opened_by_the_controller(make: Make) -> None:
    node = make(open_directories=["/check points", "/scratch"])
    assert node.run()[0] == 0
    assert not (node.root / "fsx/scratch").exists()
    code, _, said = node.run("controller")
    assert code == 0
    assert "failed" not in said, said
    for name in ("check points", "scratch"):
        assert stat.S_IMODE((node.root / "fsx" / name).stat().st_mode) == 0o1777
    node.answer("mountpoint", "exit 1")
    assert "failed: directories for everybody" in node.run("controller")[2]


def test_a_group_of_the_image_is_nobodys_name(make: Make) -> None:
    node = make()
    node.answer("getent", ACCOUNTS.replace("*/getent:group) exit 2 ;;", '*/getent:group) echo "$2:x:44:" ;;'))
    code, calls, said = node.run()
    assert code == 1
    assert "ana is a group of the image, with the number 44" in said
    assert not [call for call in calls if call.startswith("useradd")]


def test_running_containers_are_left_alone(make: Make) -> None:
    node = make()
    node.answer("docker", "echo 0123456789ab")
    code, calls, said = node.run()
    assert code == 0
    assert "containers run: docker's data stays where it is" in said
    assert not [call for call in calls if call.startswith(("systemctl stop", "mount --bind"))]


def test_the_place_of_containers_outlives_a_reboot(make: Make) -> None:
    node = make()
    for _ in range(2):
        (node.root / "etc/docker/daemon.json").unlink(missing_ok=True)
        node.run()
        (line,) = (node.root / "etc/fstab").read_text().splitlines()
    assert line.startswith("/opt/dlami/nvme/containerd /var/lib/containerd none bind,nofail")
    unit = node.root / "etc/systemd/system/docker.service.d/fmblocks.conf"
    assert unit.read_text() == "[Unit]\nRequiresMountsFor=/opt/dlami/nvme\n"


def test_homes_that_are_not_mounted_keep_the_node_out(make: Make) -> None:
    """Else people would find an empty home on this node, and write into it."""
    node = make()
    node.answer("mountpoint", "[[ $2 != */home ]]")
    code, calls, said = node.run()
    assert code == 1
    assert "the file system of home directories is not mounted" in said
    assert calls.count("sleep 5") >= 23


def test_homes_are_on_lustre_without_openzfs_and_local_without_both(make: Make) -> None:
    node = make(home_mount_path=None)
    assert node.run()[0] == 0
    assert (node.root / "fsx/home/ana").is_dir()


def test_homes_of_their_own(make: Make) -> None:
    node = make(home_mount_path=None, lustre_mount_path=None)
    node.answer("mountpoint", "exit 1")
    assert node.run()[0] == 0
    assert (node.root / "home/ana").is_dir()


@pytest.mark.parametrize(
    ("mounted", "place"), [("/opt/dlami/nvme", "/opt/dlami/nvme/docker"), ("/opt/sagemaker", "/opt/sagemaker/docker")]
)
def test_containers_get_the_largest_local_place(make: Make, mounted: str, place: str) -> None:
    node = make()
    node.answer("mountpoint", f"[[ $2 == *{mounted} || $2 == */home ]]")
    code, _, said = node.run()
    assert code == 0, said
    assert json.loads((node.root / "etc/docker/daemon.json").read_text())["data-root"] == place


def test_a_place_that_docker_has_already_stays(make: Make) -> None:
    node = make()
    (node.root / "etc/docker/daemon.json").write_text('{"data-root": "/elsewhere"}')
    assert "docker has a place for its data already" in node.run()[2]
    assert json.loads((node.root / "etc/docker/daemon.json").read_text()) == {"data-root": "/elsewhere"}


@pytest.mark.parametrize("broken", ["systemctl", "mount", "docker", "curl"])
def test_what_is_only_useful_does_not_keep_a_node_out(make: Make, broken: str) -> None:
    node = make()
    node.answer(broken, "exit 1")
    assert node.run()[0] == 0


def test_gpus_are_mapped_where_the_image_does_not(make: Make) -> None:
    node = make()
    node.run()
    prolog = node.root / "opt/slurm/etc/prolog.d/700_fmblocks_gpu_jobs_prolog.sh"
    assert prolog.stat().st_mode & stat.S_IXUSR
    shutil.rmtree(node.root / "opt/slurm/etc/prolog.d")
    (node.root / "opt/slurm/etc/prolog.d").mkdir()
    (node.root / "opt/slurm/etc/prolog.d/700_dcgm_job_map_register.sh").touch()
    assert "the image maps GPUs to jobs" in node.run()[2]
    assert not prolog.exists()


def test_the_launch_profile_is_that_of_the_type_and_resumes(make: Make) -> None:
    node = make()
    node.run()
    profile = node.root / "etc/fmblocks/launch-profile.sh"
    assert os.readlink(profile) == "launch-profile-p5en.48xlarge.sh"
    assert "FMBLOCKS_SRUN_OPTIONS=--auto-resume=1" in profile.read_text()
    done = subprocess.run(["sh", "-c", f". {profile}; env"], capture_output=True, text=True, check=True)
    assert "NCCL_SOCKET_IFNAME" in done.stdout
    assert "FMBLOCKS_SRUN_OPTIONS" not in done.stdout, "this is no node of HyperPod"


def test_the_projects_own_script_runs_last_and_may_refuse(make: Make, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "main.sh").write_text('#!/usr/bin/env bash\necho "own in $(basename "$PWD")"; . ./more.sh\n')
    (own / "more.sh").write_text("exit 0\n")
    node = make(path=own, on_init_complete="main.sh")
    for name in ("basename", "env"):
        os.symlink(shutil.which(name) or "", node.bin / name)
    code, _, said = node.run("login")
    assert (code, "own in own" in said) == (0, True)
    (node.bundle / "own/more.sh").write_text("exit 3\n")
    code, _, said = node.run("login")
    assert code == 1
    assert "failed: the project's own script" in said


def test_a_bundle_of_nothing_does_nothing(make: Make) -> None:
    node = make(users=(), accounts={}, types=["m7i.xlarge"])
    code, calls, said = node.run("controller")
    assert code == 0, said
    assert calls == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"users": [fm.SlurmUser(name="ana", uid=10001, account="nobodys")]}, "nobodys is no team"),
        ({"users": [fm.SlurmUser(name="ana", uid=100)]}, "100 is not between 2000 and 60000"),
        ({"path": "nowhere", "on_init_complete": "x.sh"}, "nowhere is not a folder"),
        ({"types": ["p99.large"]}, "FMB-09"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, arguments: dict[str, object], text: str) -> None:
    with pytest.raises(FindingsError, match=text):
        bundle_of(tmp_path, **arguments)


def test_the_map_survives_jobs_that_share_a_gpu(tmp_path: Path) -> None:
    script = Path(fm.__file__).parent / "cluster/lifecycle/gpu-jobs.sh"
    jobs = tmp_path / "map"

    def call(when: str, job: str, gpus: str) -> None:
        name = shutil.copy(script, tmp_path / f"700_{when}.sh")
        environment = {"FMBLOCKS_GPU_JOBS": str(jobs), "SLURM_JOB_ID": job, "SLURM_JOB_GPUS": gpus}
        subprocess.run(["bash", name], env=environment, check=True)

    def shown() -> dict[str, str]:
        return {file.name: file.read_text() for file in jobs.iterdir() if file.name != ".lock"}

    call("prolog", "7", "0,2-3")
    call("prolog", "7", "0,2-3")  # a second step
    call("prolog", "8", "3")
    assert shown() == {"0": "7\n", "2": "7\n", "3": "7\n8\n"}
    call("epilog", "7", "0,2-3")
    assert shown() == {"3": "8\n"}
    call("epilog", "8", "3")
    call("epilog", "8", "3")
    assert shown() == {}
    call("prolog", "9", "")
    assert shown() == {}
