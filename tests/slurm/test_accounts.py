"""The accounts of a project in a real slurmdbd with a real database, put there by our lifecycle scripts, twice."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import fmblocks as fm
from tests.slurm.conftest import Slurm, needed, stop
from tests.unit.test_lifecycle import Node, make

__all__ = ["make"]  # a fixture
_DATABASE, _DAEMON = 13306, 16819
_DBD = """\
DbdHost=localhost
DbdPort={daemon}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={slurm}/run/munge.sock
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct_db
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""


@dataclass(frozen=True)
class Accounting:
    """What asks the daemon, and the configuration that finds it."""

    sacctmgr: Callable[..., str]
    conf: Path


@pytest.fixture(scope="module")
def accounting(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounting]:
    """A daemon with an empty database."""
    needed("slurmdbd", "mariadbd", "mariadb-install-db", "sacctmgr")
    folder = tmp_path_factory.mktemp("accounting")
    data = folder / "data"
    made = ["mariadb-install-db", f"--datadir={data}", "--user=root", "--skip-test-db"]
    subprocess.run([*made, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    (folder / "slurmdbd.conf").write_text(
        _DBD.format(folder=folder, slurm=slurm.folder, daemon=_DAEMON, database=_DATABASE)
    )
    (folder / "slurmdbd.conf").chmod(0o600)
    conf = (slurm.folder / "slurm.conf").read_text()
    # With munge the password is the place of its socket.
    place = f"AccountingStoragePass={slurm.folder}/run/munge.sock"
    where = f"AccountingStorageHost=localhost\nAccountingStoragePort={_DAEMON}\n{place}"
    storage = f"AccountingStorageType=accounting_storage/slurmdbd\n{where}"
    (folder / "slurm.conf").write_text(conf.replace("AccountingStorageType=accounting_storage/none", storage))
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def sacctmgr(*words: str) -> str:
        done = subprocess.run(["sacctmgr", *words], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    started: list[subprocess.Popen[bytes]] = []
    with contextlib.ExitStack() as stack:
        stack.callback(stop, started)

        def start(*command: str) -> None:
            with (folder / f"{command[0]}.out").open("wb") as output:
                started.append(subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT))

        start(
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={folder}/db.sock",
            f"--port={_DATABASE}", "--bind-address=127.0.0.1", "--skip-grant-tables", "--innodb-buffer-pool-size=64M",
        )  # fmt: skip
        start("slurmdbd", "-D")  # its settings stand beside slurm.conf
        until = time.monotonic() + 60
        ask = ["sacctmgr", "-n", "show", "cluster"]
        while (asked := subprocess.run(ask, env=environment, capture_output=True, text=True, check=False)).returncode:
            assert time.monotonic() < until, asked.stderr + (folder / "slurmdbd.out").read_text()[-2000:]
            time.sleep(0.5)
        sacctmgr("-i", "add", "cluster", "t")
        yield Accounting(sacctmgr, folder / "slurm.conf")


def test_accounts_users_and_shares_are_in_the_database(accounting: Accounting, make: Callable[..., Node]) -> None:
    users = [fm.SlurmUser(name="ana", uid=10001, account="pretrain"), fm.SlurmUser(name="ben", uid=10002)]
    node = make(users=users, accounts={"pretrain": 80, "research": None})
    real = shutil.which("sacctmgr")
    node.answer("sacctmgr", f'SLURM_CONF={accounting.conf} exec {real} "$@"')
    for _ in range(2):
        code, _calls, said = node.run("controller")
        assert code == 0, said
        assert "failed" not in said, said
        shown = accounting.sacctmgr("-nP", "show", "assoc", "format=account,user,fairshare").splitlines()
        assert {"pretrain||80", "research||1", "pretrain|ana|1"} <= set(shown), shown
        assert not [line for line in shown if "|ben|" in line]
        told = accounting.sacctmgr("-nP", "show", "user", "ana", "format=defaultaccount")
        assert told.strip() == "pretrain"
    # A share that changes in the project file changes in the database.
    (node.bundle / "accounts").write_text("pretrain\t60\nresearch\t\n")
    assert node.run("controller")[0] == 0
    assert "pretrain||60" in accounting.sacctmgr("-nP", "show", "assoc", "format=account,user,fairshare").splitlines()
    # Somebody who goes to another team works for that one alone.
    (node.bundle / "users").write_text("ana\t10001\tresearch\n")
    code, _calls, said = node.run("controller")
    assert "failed" not in said, said
    shown = accounting.sacctmgr("-nP", "show", "assoc", "user=ana", "format=account,user").splitlines()
    assert shown == ["research|ana"]
    assert accounting.sacctmgr("-nP", "show", "user", "ana", "format=defaultaccount").strip() == "research"
