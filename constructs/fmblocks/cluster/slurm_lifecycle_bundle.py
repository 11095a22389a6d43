"""Lifecycle scripts of our own for nodes of HyperPod with Slurm."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_s3 as s3
from constructs import Construct

from fmblocks._edge import check_arguments, instance_types, raise_kinds, typed
from fmblocks.catalog import InstanceType, normalise
from fmblocks.cluster import rules
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.settings import NodeRole
from fmblocks.compute import rules as compute_rules  # noqa: F401  registers FMB-09
from fmblocks.compute.boot import shell_function
from fmblocks.compute.launch_profile import as_script, launch_profile
from fmblocks.governance import rules as governance_rules  # noqa: F401  registers FMB-105
from fmblocks.governance.settings import Team, User
from fmblocks.guard.judgement import USER_NUMBERS

_SCRIPTS = Path(__file__).with_name("lifecycle")
_SHELL = "# shellcheck shell=bash\n"
# A job starts again on another node where its step asks for it, on HyperPod. Source: SageMaker AI Developer Guide,
# *Automatic node recovery and auto-resume*.
_AUTO_RESUME = "[ ! -e /opt/sagemaker_cluster ] || export FMBLOCKS_SRUN_OPTIONS=--auto-resume=1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmUser:
    """Somebody who works on the nodes.

    Attributes:
        name: of the Linux account.
        uid: 2000 to 60000, the same on every node for ever: files belong to numbers.
        account: in Slurm, one of the bundle's. Default: none.
    """

    name: str
    uid: int
    account: str | None = None

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        raise_kinds({name: (getattr(self, name), hints[name]) for name in hints}, f"SlurmUser {self.name}")


class SlurmLifecycleBundle(LifecycleBundle):
    """What a node gets once HyperPod has set it up; then your own script, where there is one.

    Users with fixed numbers, whose homes are on the OpenZFS file system, else on Lustre, else on each node; accounts in
    Slurm's database; docker's data on NVMe where the type has it, else on the second volume; the map of GPUs to jobs
    that dcgm-exporter reads, where the image has none; launch profiles in /etc/fmblocks, which name HyperPod's
    auto-resume. Nothing is downloaded. A node without its users, or whose own script failed, does not join; whatever
    else fails is told in the log.

    It replaces no set-up of HyperPod: scripts run with OnInitComplete. A changed script is a changed prefix; new nodes
    run it, and ``fmblocks nodes run-scripts`` runs it on live ones.

    Args:
        bucket: as for a :class:`LifecycleBundle`.
        users: who works on the nodes. Default: none.
        accounts: of Slurm, with the share of each, or None for Slurm's default. Default: none.
        lustre_mount_path: where nodes mount Lustre. Default: they do not.
        open_directories: of Lustre, like ``/checkpoints``, where everybody writes, and nobody removes what is somebody
            else's. Links to S3 belong to root otherwise. Default: none.
        home_mount_path: where nodes mount home directories. Default: they do not.
        types: of the compute nodes, for launch profiles. Default: none.
        path: a folder with scripts of your own. Default: none.
        on_init_complete: the one of them that is started, with ``path``.

    Raises:
        FindingsError: rules FMB-09, FMB-105, HP-08.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        bucket: s3.IBucket,
        users: Sequence[SlurmUser] = (),
        accounts: Mapping[str, int | None] | None = None,
        lustre_mount_path: str | None = None,
        open_directories: Sequence[str] = (),
        home_mount_path: str | None = None,
        types: Sequence[str] = (),
        path: str | Path | None = None,
        on_init_complete: str | None = None,
    ) -> None:
        shares = dict(accounts or {})
        told = {
            "users": [User.model_construct(name=one.name, uid=one.uid, account=one.account) for one in users],
            "teams": [Team.model_construct(name=name) for name in shares],
            "slurm": True,
            "kubernetes_teams": False,
            "task_governance": False,
            "admins": (),
            "nodes": {},
            "types": instance_types(scope),
        }
        check_arguments(scope, ("FMB-103", "FMB-105"), told, names={"access.users": "users", "teams": "accounts"})
        if path is not None:
            own = {"path": str(path), "on_init_complete": on_init_complete or ""}
            check_arguments(scope, rules.SCRIPTS, own)
        known, kinds = instance_types(scope), []
        for name in sorted(set(map(normalise, types))):
            check_arguments(scope, ("FMB-09",), {"instance_type": name, "types": known})
            kinds.append(known[name])
        with tempfile.TemporaryDirectory() as folder:
            _compose(
                Path(folder),
                users=sorted(users, key=lambda one: one.uid),
                shares=shares,
                settings={
                    "FMBLOCKS_LUSTRE": lustre_mount_path or "",
                    "FMBLOCKS_HOME": home_mount_path or "",
                    "FMBLOCKS_OWN": on_init_complete or "",
                },
                opened=sorted(set(open_directories)) if lustre_mount_path else (),
                kinds=kinds,
                own=Path(path) if path is not None else None,
            )
            super().__init__(scope, id, bucket=bucket, path=folder, on_init_complete=f"{NodeRole.COMPUTE}.sh")
        # `fmblocks guard` compares them: in the scripts nobody sees a number change.
        made = self.resource.node.default_child
        assert isinstance(made, cdk.CfnResource)
        made.add_metadata(USER_NUMBERS, {one.name: one.uid for one in users})

    def entry(self, role: NodeRole) -> str:
        """The script that HyperPod starts on nodes of a role."""
        return f"{role}.sh"


def _compose(
    folder: Path,
    *,
    users: Sequence[SlurmUser],
    shares: Mapping[str, int | None],
    settings: Mapping[str, str],
    opened: Sequence[str],
    kinds: Sequence[InstanceType],
    own: Path | None,
) -> None:
    """Write the bundle into an empty folder."""
    for file in sorted(_SCRIPTS.glob("*.sh")):
        shutil.copy(file, folder)
    # What nodes of your own do at boot too.
    parts = "\n\n".join(shell_function(name) for name in ("retry", "containers"))
    (folder / "parts.sh").write_text(f"{_SHELL}{parts}\n", encoding="utf-8")
    given = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in settings.items())
    (folder / "settings.sh").write_text(f"{_SHELL}{given}", encoding="utf-8")
    rows = [f"{one.name}\t{one.uid}\t{one.account or ''}\n" for one in users]
    (folder / "users").write_text("".join(rows), encoding="utf-8")
    rows = [f"{name}\t{'' if share is None else share}\n" for name, share in sorted(shares.items())]
    (folder / "accounts").write_text("".join(rows), encoding="utf-8")
    (folder / "open").write_text("".join(f"{path}\n" for path in opened), encoding="utf-8")
    for kind in kinds:
        if launch_profile(kind):
            (folder / "profiles").mkdir(exist_ok=True)
            file = folder / "profiles" / f"launch-profile-{kind.name}.sh"
            file.write_text(as_script(kind) + _AUTO_RESUME, encoding="utf-8")
    if own is not None:
        shutil.copytree(own, folder / "own", ignore=shutil.ignore_patterns("__pycache__"))
