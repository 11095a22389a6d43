"""Whatever stands in a project file: findings or a project, never anything else."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fmblocks.findings import FindingsError
from fmblocks.project import Project

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [(ROOT / "projects" / name).read_text() for name in ("trial-g6.yaml", "slurm-p5en.yaml")]
QUICK = settings(
    max_examples=150,
    deadline=2000,
    derandomize=True,  # the same files in every run
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def load(folder: Path, text: str) -> bool:
    """Whether a file has no error; anything but findings fails the test."""
    file = folder / "project.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        Project.load(file)
    except FindingsError as error:
        said = [str(finding) for finding in error.findings]
    else:
        return True
    assert said
    assert all(line.isprintable() for line in said)
    assert not any("the rule itself failed" in line for line in said)
    return False


@QUICK
@given(st.sampled_from(EXAMPLES), st.data())
def test_mutated_text(tmp_path: Path, text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        gone = data.draw(st.integers(0, 12))
        new = data.draw(st.text(alphabet=string.printable + "é–🚀\x00\x85", max_size=8))
        text = text[:at] + new + text[at + gone :]
    load(tmp_path, text)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=True),
    st.text(max_size=12),
    st.sampled_from(
        ["on_demand", "spot", "usw2-az1", "1200", "p5.48xlarge", "s3://x", "arn:x", "/", "-", "10.0.0.0/8"]
    ),
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


def places(node: object, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place of a tree."""
    found = [here] if here else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found += places(value, (*here, key))
    return found


@QUICK
@given(st.sampled_from(EXAMPLES), st.data())
def test_mutated_structure(tmp_path: Path, text: str, data: st.DataObject) -> None:
    tree = yaml.load(text, Loader=yaml.BaseLoader)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(places(tree)))
        node = tree
        for part in place[:-1]:
            node = node[part]
        if data.draw(st.booleans()):
            node[place[-1]] = data.draw(TREES)
        else:
            del node[place[-1]]
        if not places(tree):
            break
    load(tmp_path, yaml.safe_dump(tree, allow_unicode=True))


HARD_DISKS = {"storage_type": "hdd", "drive_cache_type": "read"}


@st.composite
def file_systems(draw: st.DrawFn) -> dict[str, Any]:
    """Lustre as a person might write it."""
    kinds: list[tuple[dict[str, Any], list[int], list[int | None]]] = [
        ({"deployment_type": "persistent_2"}, [1200, 2400, 4800], [125, 250, 500, 1000, 200]),
        ({"deployment_type": "persistent_1"}, [1200, 7200, 3600], [50, 100, 200]),
        (
            {"deployment_type": "persistent_1", "storage_type": "hdd", "drive_cache_type": "read"},
            [6000, 1800],
            [12, 40],
        ),
        ({"deployment_type": "scratch_2"}, [1200, 9600], [None]),
    ]
    kind, sizes, speeds = draw(st.sampled_from(kinds))
    speed = draw(st.sampled_from(speeds))
    lustre: dict[str, Any] = {**kind, "capacity_gib": draw(st.sampled_from(sizes))}
    if speed is not None:
        lustre["throughput_mbps_per_tib"] = speed
    if draw(st.integers(0, 4)) == 0:
        lustre = {
            "storage_type": "intelligent_tiering",
            "throughput_capacity_mbps": draw(st.sampled_from([4000, 8000, 5000])),
            "read_cache": draw(
                st.sampled_from([{"sizing_mode": "no_cache"}, {"sizing_mode": "user_provisioned", "size_gib": 64}])
            ),
            "metadata": {"mode": "user_provisioned", "iops": draw(st.sampled_from([6000, 12000]))},
        }
    elif draw(st.booleans()):
        paths = draw(st.lists(st.sampled_from(["/a", "/b", "/a/c", "/d"]), max_size=3, unique=True))
        lustre["data_repository_associations"] = [{"path": path, "auto_export": ["new"]} for path in paths]
    elif draw(st.booleans()):
        lustre |= {"automatic_backup_retention_days": 7, "daily_automatic_backup_start_time": "05:00"}
    return lustre


BOUGHT = [
    "on_demand",
    "spot",
    {"mode": "odcr", "create": {}},
    {"mode": "odcr", "create": {"match": "open", "end": "2027-06-01T00:00:00Z"}},
    {"mode": "odcr", "capacity_reservation_id": "cr-0123456789abcdef0"},
    {"mode": "capacity_block", "capacity_reservation_id": "cr-0123456789abcdef0"},
]
WIRED = [
    "auto",
    {"count": 1},
    {"interface_type": "efa"},
    {"secondary_device_index": 1},
    {"profile": "max-ip-bandwidth"},
]


@st.composite
def node_groups(draw: st.DrawFn, orchestrator: str) -> list[dict[str, Any]]:
    """Groups as a person might write them for an orchestrator."""
    types = st.sampled_from(["p5.48xlarge", "p5en.48xlarge", "g6.12xlarge", "ml.trn2.48xlarge", "m7i.xlarge"])
    compute: list[dict[str, Any]] = [
        {"name": f"group-{index}", "instance_type": draw(types), "count": draw(st.integers(0, 64))}
        for index in range(draw(st.integers(1, 3)))
    ]
    if orchestrator != "hyperpod-slurm":
        for group in compute:
            group["capacity"] = draw(st.sampled_from(BOUGHT[:2] if orchestrator.startswith("hyperpod") else BOUGHT))
            if not orchestrator.startswith("hyperpod"):
                group["placement"] = draw(st.sampled_from(["auto", "auto", "none", "cluster", "spread"]))
                group["efa"] = draw(st.sampled_from(WIRED))
        return compute
    controller = {"name": "controller", "role": "controller", "instance_type": "m7i.xlarge", "count": 1}
    return [controller, *compute]


@st.composite
def projects(draw: st.DrawFn) -> dict[str, Any]:
    """Projects that a person might write, most of them right."""
    zones = draw(
        st.lists(st.sampled_from(["usw2-az1", "usw2-az2", "usw2-az3", "usw2-az4"]), min_size=1, max_size=4, unique=True)
    )
    orchestrator = draw(st.sampled_from(["hyperpod-slurm"] * 4 + ["hyperpod-eks", "eks", "ec2", "pcs"]))
    project: dict[str, Any] = {
        "name": draw(st.from_regex(r"[a-z]{3,8}(-[a-z0-9]{1,5})?", fullmatch=True)),
        "region": draw(st.sampled_from(["us-west-2", "us-west-2", "us-west-2", "us-east-1"])),
        "network": {
            "cidr": draw(st.sampled_from(["10.0.0.0/16", "10.1.0.0/18", "172.16.0.0/20"])),
            "availability_zones": zones,
            "primary_availability_zone": draw(st.sampled_from(zones)),
            "nat_gateways": draw(st.sampled_from([1, 1, len(zones)])),
        },
        "storage": {"lustre": draw(file_systems())},
        "training": {"orchestrator": orchestrator, "node_groups": draw(node_groups(orchestrator))},
    }
    if draw(st.integers(0, 4)) == 0:
        project["observability"] = {
            "grafana": draw(st.sampled_from([{}, {"vpc": True}, {"workspace": "none"}, {"authentication": ["saml"]}])),
            "alerts": {
                "email": ["oncall@example.com"],
                "repeat_interval": draw(st.sampled_from(["4h", "1d12h", "6d"])),
            },
        }
    return project


def test_plausible_projects_are_mostly_right(tmp_path: Path) -> None:
    """At least 30 % without an error: else the property that right files synthesize would say nothing."""
    right = []

    @QUICK
    @given(projects())
    def collect(project: dict[str, Any]) -> None:
        right.append(load(tmp_path, yaml.safe_dump(project)))

    collect()
    assert sum(right) >= 0.3 * len(right), f"{sum(right)} of {len(right)}"


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_themselves_are_right(tmp_path: Path, text: str) -> None:
    assert load(
        tmp_path,
        text.replace("  lifecycle_scripts: {path: slurm-p5en-scripts, on_init_complete: on_init_complete.sh}\n", ""),
    )
