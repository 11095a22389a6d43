"""Reads what the acceptance jobs print, and says whether the nodes are fit for work.

Formats: aws-ofi-nccl's line *Selected provider is efa, fabric is efa-direct (found 32 nics)*, NCCL's *Using network*,
nccl-tests' table, DCGM's JSON, and lines of our own that begin with FMBLOCKS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from fmblocks.compute.acceptance import Job, Nodes

# Of a node's or a cluster's own best: what is below is worth a look. AWS's own thresholds are above its measurements.
_OF_BASELINE = 0.85
# Of what the file system is sold for. No published target was found: this is ours.
_OF_LUSTRE = 0.7


class Status(StrEnum):
    """What a line of a verdict says."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at."""

    status: Status
    text: str

    def __str__(self) -> str:
        return f"{self.status.upper():4} {self.text}"


def judge(
    job: Job, log: str, nodes: Nodes, *, baseline_gbps: float | None = None, lustre_mbps: float | None = None
) -> list[Line]:
    """What the log of a job says about the nodes.

    Args:
        job: the one that printed it.
        log: everything it printed, of all nodes.
        nodes: those that it ran on.
        baseline_gbps: bus bandwidth in GB/s of an earlier all-reduce that was good; None: the figure is told only.
        lustre_mbps: throughput of the file system in MB/s; None: the figure is told only.
    """
    told = [
        Line(Status.FAIL, f"{match[2]} {'is missing' if match[1] == 'missing' else 'failed'}")
        for match in re.finditer(r"FMBLOCKS (missing|failed) (.+)", log)
    ]
    if told:
        return told
    # What Slurm says of a job that it or a node has ended, wherever in the job that was.
    told = [
        Line(Status.FAIL, f"the job was ended: {match[0].strip()}")
        for match in re.finditer(r"^.*(?:CANCELLED (?:AT|DUE TO)|srun: error:|oom_kill event).*$", log, re.MULTILINE)
    ]
    if told:
        return told
    match job:
        case Job.NCCL_ALL_REDUCE:
            return [*_network(log, nodes), *_bandwidth(log, baseline_gbps)]
        case Job.DCGM_LEVEL_2:
            return [*_dcgm(log, nodes)]
        case Job.NVLINK:
            return [*_nvlink(log, nodes)]
        case Job.LUSTRE:
            return [*_lustre(log, nodes, lustre_mbps)]


def failed(lines: list[Line]) -> bool:
    """Whether a verdict says that the nodes are not fit."""
    return any(line.status is Status.FAIL for line in lines)


def _network(log: str, nodes: Nodes) -> Iterator[Line]:
    sockets = re.search(
        r"NET/Socket : Using|Using network Socket|Selected provider is (tcp|sockets)", log, re.IGNORECASE
    )
    group = re.search(r"[Uu]nexpected group size 0|group size 0\b", log)
    found = re.findall(r"Selected provider is (\S+?)(?:, fabric is (\S+))? \(found (\d+) nics\)", log, re.IGNORECASE)
    if nodes.count < 2 or not nodes.interfaces:
        yield Line(Status.PASS, "one node, or no EFA: nothing to say about the network")
        return
    if sockets:
        yield Line(Status.FAIL, f"NCCL talks over TCP: {sockets[0]}; check the EFA group and aws-ofi-nccl")
    if group:
        yield Line(Status.FAIL, f"aws-ofi-nccl found no devices: {group[0]}")
    if not found:
        if not sockets:
            yield Line(Status.FAIL, "no word of aws-ofi-nccl: is NCCL_DEBUG=INFO set, and the plugin installed?")
        return
    providers = {provider.lower() for provider, _fabric, _number in found}
    if providers != {"efa"}:
        yield Line(Status.FAIL, f"the provider is {', '.join(sorted(providers))}, not efa")
    hosts = set(re.findall(r"(\S+?):\d+:\d+ \[\d+\] NCCL INFO NET/OFI Selected provider", log, re.IGNORECASE))
    ranks = nodes.count * nodes.kind.accelerator_count
    heard = len(hosts) >= nodes.count
    if not heard:
        yield Line(Status.FAIL, f"{len(hosts)} of {nodes.count} nodes said what they talk over")
    elif len(found) < ranks:
        yield Line(Status.WARN, f"{len(found)} of {ranks} ranks said what they talk over")
    numbers = {int(number) for _provider, _fabric, number in found}
    if numbers != {nodes.interfaces}:
        told = ", ".join(map(str, sorted(numbers)))
        yield Line(Status.FAIL, f"{told} NICs where {nodes.kind.name} is launched with {nodes.interfaces}")
    elif providers == {"efa"} and not sockets and heard:
        fabrics = {fabric for _provider, fabric, _number in found if fabric} or {"not named"}
        yield Line(
            Status.PASS,
            f"EFA with {nodes.interfaces} NICs on every rank that was heard, fabric {', '.join(sorted(fabrics))}",
        )


_ROW = re.compile(
    r"^\s*(?:\[[^\]]*\][^:]*:|\d+:)?\s*(\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+\s+[\d.]+\s+[\d.]+\s+([\d.]+)", re.MULTILINE
)


# A row of the same table whose column #wrong was not filled; other lines may end in N/A too.
_UNCHECKED = re.compile(_ROW.pattern + r".*\sN/A\b.*$", re.MULTILINE)


def _bandwidth(log: str, baseline_gbps: float | None) -> Iterator[Line]:
    rows = {int(size): float(bus) for size, bus in _ROW.findall(log)}
    wrong = re.search(r"Out of bounds values\s*:\s*(\d+)\s+(\w+)", log)
    if wrong is None or not rows:
        yield Line(Status.FAIL, "the all-reduce did not end: there is no table of results")
        return
    if wrong[1] != "0":
        yield Line(Status.FAIL, f"{wrong[1]} values are wrong: an accelerator or its memory computes falsely")
    if unchecked := _UNCHECKED.search(log):
        yield Line(Status.FAIL, f"values were not checked, run it with -c 1: {unchecked[0].strip()}")
    best = max(rows.values())
    at = max(size for size, bus in rows.items() if bus == best)
    text = f"{best:g} GB/s bus bandwidth at best, with {at / 2**20:g} MiB"
    if baseline_gbps is None:
        yield Line(Status.PASS, f"{text}; keep it as the baseline of later runs")
    elif best < _OF_BASELINE * baseline_gbps:
        yield Line(Status.FAIL, f"{text}: below {_OF_BASELINE:.0%} of the baseline, {baseline_gbps:g}")
    else:
        yield Line(Status.PASS, f"{text}, baseline {baseline_gbps:g}")


def _dcgm(log: str, nodes: Nodes) -> Iterator[Line]:
    seen = {}
    for host, text in re.findall(r"FMBLOCKS dcgm (\S+) (.*)", log):
        try:
            answer = json.loads(text)
            seen[host] = [*_statuses(answer)]
            if not seen[host]:
                said = re.search(r'"(?:runtime_error|Error)": *"([^"]*)"', text)
                yield Line(Status.FAIL, f"{host}: nothing was diagnosed: {said[1] if said else text[:80]}")
        except json.JSONDecodeError:
            yield Line(Status.FAIL, f"{host}: the diagnostics printed no JSON: {text[:80]}")
            seen[host] = []
    if len(seen) != nodes.count:
        yield Line(Status.FAIL, f"{len(seen)} of {nodes.count} nodes were heard")
    for host, results in sorted(seen.items()):
        bad = [f"{test} of {entity}" for test, entity, status in results if status.lower() == "fail"]
        gpus = {entity for _, entity, _ in results if entity != "all"}
        odd = [f"{test} of {entity}" for test, entity, status in results if status.lower() == "warn"]
        if bad:
            yield Line(Status.FAIL, f"{host}: failed: {', '.join(bad)}")
        elif odd:
            yield Line(Status.WARN, f"{host}: warned: {', '.join(odd)}")
        elif results and not any(status.lower() == "pass" for *_, status in results):
            yield Line(Status.FAIL, f"{host}: every test was skipped")
        elif results and len(gpus) < nodes.kind.accelerator_count:
            told = f"{len(gpus)} GPUs were diagnosed where {nodes.kind.name} has {nodes.kind.accelerator_count}"
            yield Line(Status.FAIL, f"{host}: {told}")
        elif results:
            yield Line(Status.PASS, f"{host}: {len(results)} results without a failure")


def _statuses(node: object, test: str = "", entity: str = "all") -> Iterator[tuple[str, str, str]]:
    """Test, entity and status of every result, in the JSON of DCGM 3 and 4."""
    if isinstance(node, list):
        for item in node:
            yield from _statuses(item, test, entity)
    elif isinstance(node, dict):
        test = str(node.get("name", test))
        number = node.get("entity_id", node.get("gpu_id"))
        entity = entity if number is None else f"GPU {number}"
        if isinstance(node.get("status"), str):
            yield test, entity, node["status"]
        for key, item in node.items():
            if key != "test_summary":
                yield from _statuses(item, test, entity)


def _nvlink(log: str, nodes: Nodes) -> Iterator[Line]:
    found = re.findall(r"FMBLOCKS nvlink (\S+) gpus=(\d+) up=(\d+) down=(\d+)", log)
    if len({host for host, *_ in found}) != nodes.count:
        yield Line(Status.FAIL, f"{len({host for host, *_ in found})} of {nodes.count} nodes were heard")
    gpus = nodes.kind.accelerator_count
    links = gpus * (nodes.kind.nvlinks_per_accelerator or 0)
    for host, seen, up, down in sorted(found):
        if int(seen) != gpus:
            yield Line(Status.FAIL, f"{host}: {seen} GPUs where {nodes.kind.name} has {gpus}")
        if int(down) or int(up) != links:
            yield Line(Status.FAIL, f"{host}: {up} NVLinks are up and {down} down, of {links}")
        elif int(seen) == gpus:
            yield Line(Status.PASS, f"{host}: {gpus} GPUs, {links} NVLinks up")


_IO = re.compile(r"FMBLOCKS lustre (write|read) (\S+) bytes=(\d+) begin=([\d.]+) end=([\d.]+)")


def _lustre(log: str, nodes: Nodes, lustre_mbps: float | None) -> Iterator[Line]:
    rows = _IO.findall(log)
    for what in ("write", "read"):
        own = [(host, int(size), float(begin), float(end)) for kind, host, size, begin, end in rows if kind == what]
        if len({host for host, *_ in own}) != nodes.count:
            yield Line(Status.FAIL, f"{what}: {len({host for host, *_ in own})} of {nodes.count} nodes were heard")
            continue
        seconds = max(end for *_, end in own) - min(begin for _, _, begin, _ in own)
        mbps = sum(size for _, size, *_ in own) / seconds / 1e6 if seconds > 0 else 0.0
        text = f"{what}: {mbps:,.0f} MB/s over {nodes.count} nodes"
        if lustre_mbps is None:
            yield Line(Status.PASS, text)
        elif mbps < _OF_LUSTRE * lustre_mbps:
            hint = "few nodes may not fill a large file system"
            yield Line(Status.WARN, f"{text}, below {_OF_LUSTRE:.0%} of {lustre_mbps:,.0f}: {hint}")
        else:
            yield Line(Status.PASS, f"{text}, of {lustre_mbps:,.0f}")
