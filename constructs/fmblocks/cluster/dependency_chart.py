"""HyperPod's own chart: where it is, and which keys it has.

It stands in a git repository of AWS and in no registry, so it is fetched onto the machine that synthesizes (``fmblocks
chart pull``) and goes to the cluster as an asset. Source of what it is made of: its Chart.yaml at the commit below.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = "https://github.com/aws/sagemaker-hyperpod-cli.git"
COMMIT = "067d658b2d5c3d347afbadd75e1425214e965dcb"
FOLDER = "helm_chart/HyperPodHelmChart"
# Says which commit a folder was fetched from.
MARK = ".fmblocks-commit"


def unknown_values(folder: Path, values: Mapping[str, object]) -> list[str]:
    """The keys of ``values`` that a chart does not have: Helm ignores them, whatever they were meant to do.

    Args:
        folder: the chart, with the charts it is made of.
        values: what is to be set.
    """
    return list(_unknown(values, _known(folder), ""))


def dependencies(folder: Path) -> dict[str, str]:
    """The charts that a chart is made of, and the key that switches each on."""
    listed = _read(folder / "Chart.yaml").get("dependencies") or []
    return {str(one.get("alias") or one["name"]): str(one.get("condition") or "") for one in listed}


def _unknown(values: Mapping[str, object], known: Mapping[str, Any], path: str) -> Iterator[str]:
    for key, value in values.items():
        where = f"{path}.{key}" if path else key
        if key not in known:
            yield where
        elif isinstance(value, Mapping) and isinstance(known[key], Mapping) and known[key]:
            yield from _unknown(value, known[key], where)


def _known(folder: Path) -> dict[str, Any]:
    """The chart's values, those of its parts, and the keys that switch parts on, which need not stand among them."""
    found = _read(folder / "values.yaml")
    found.setdefault("global", {})
    for name, condition in dependencies(folder).items():
        part = _values_of(folder / "charts", name)
        _lay(found.setdefault(name, {}), part) if isinstance(found.get(name, {}), dict) else None
        place: Any = found
        *way, last = condition.split(".") if condition else [""]
        for step in way:
            place = place.setdefault(step, {})
        if last and isinstance(place, dict):
            place.setdefault(last, None)
    return found


def _lay(onto: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(onto.get(key), dict):
            _lay(onto[key], value)
        else:
            onto.setdefault(key, value)


def _values_of(folder: Path, name: str) -> dict[str, Any]:
    """The values of one part: a folder, or an archive that Helm made of one."""
    if (folder / name / "values.yaml").is_file():
        return _read(folder / name / "values.yaml")
    for archive in sorted(folder.glob(f"{name}-*.tgz")):
        with tarfile.open(archive) as opened:
            try:
                member = opened.extractfile(f"{name}/values.yaml")
            except KeyError:
                continue
            text = member.read().decode() if member else ""
            return dict(yaml.safe_load(text) or {})
    return {}


def _read(file: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")) or {}) if file.is_file() else {}
