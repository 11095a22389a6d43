"""What a project adds up to: accelerators, bandwidth, storage, times, quotas, and what bills while nothing runs.

Formulas: docs/plan.md. A value that needs a fact without a source is None, and printed as unknown; there are no prices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fmblocks.capacity.settings import CapacityMode
from fmblocks.catalog import InstanceType, Types
from fmblocks.cluster.rules import addresses_per_node, interfaces_of
from fmblocks.cluster.settings import Cluster, NodeGroup, NodeRole, Orchestrator, Provisioner
from fmblocks.rulebook import entries
from fmblocks.serving.figures import Figures, figures
from fmblocks.serving.nodes import served_nodes
from fmblocks.serving.rules import group_of

if TYPE_CHECKING:
    from fmblocks.project import Project

_GIB_PER_TIB = 1024
# EC2 keeps five addresses of every subnet (VPC User Guide, *Subnet CIDR blocks*).
_KEPT_ADDRESSES = 5
_ONE_PLANE = "the control plane of EKS, by the hour, and its logs"
_PRECISIONS = ("bf16", "fp8", "fp4")


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota the project needs, by its name, its code where it is known, and how much of it."""

    name: str
    code: str | None
    needed: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The sums of a project. None is unknown.

    Attributes:
        nodes: nodes of all groups.
        accelerators: accelerators of all nodes.
        hbm_gib: their memory.
        dense_pflops: dense PFLOPS by precision.
        efa_gbps_per_node: by node group, for those with EFA.
        efa_gbps: of all nodes.
        addresses_needed: at least, in the private subnet of the primary zone.
        addresses_usable: what that subnet has.
        network_interfaces: at most, over all nodes.
        lustre_mbps: throughput of the file system, in MB/s.
        metadata_iops: of the file system.
        checkpoint_gb: size of a checkpoint, in GB.
        checkpoint_seconds: writing it at the throughput of the file system.
        staging_seconds: reading the data set into the file system, at its throughput.
        endpoints: what fits into a replica, by endpoint, or by half of one.
        quotas: what the account must allow.
        bills_while_idle: what costs money while no job runs.
        advice: notes of the rule book that this project should know, as id and text.
    """

    nodes: int
    accelerators: int
    hbm_gib: int | None
    dense_pflops: dict[str, float | None]
    efa_gbps_per_node: dict[str, int | None]
    efa_gbps: int | None
    addresses_needed: int
    addresses_usable: int | None
    network_interfaces: int | None
    lustre_mbps: float | None
    metadata_iops: int | None
    checkpoint_gb: float | None
    checkpoint_seconds: float | None
    staging_seconds: float | None
    endpoints: dict[str, Figures]
    quotas: tuple[Quota, ...]
    bills_while_idle: tuple[str, ...]
    advice: tuple[tuple[str, str], ...]


def make_plan(
    project: Project,
    *,
    primary_subnet_size: int | None,
    storage_addresses: int,
    parameters: float | None = None,
    bytes_per_parameter: float = 14,
    dataset_tib: float | None = None,
) -> Plan:
    """Add a project up.

    Args:
        project: a project without errors.
        primary_subnet_size: addresses of the private subnet of the primary zone.
        storage_addresses: addresses that file systems take of them.
        parameters: of the model, for the checkpoint. Default: no checkpoint.
        bytes_per_parameter: with optimizer state: 2 for BF16 weights, 4 for a master copy, 8 for two Adam moments.
        dataset_tib: TiB to stage. Default: no data set.
    """
    types = project.instance_types
    of_clusters = [(cluster, group) for cluster in project.clusters.values() for group in cluster.groups if group.count]
    groups = [group for _, group in of_clusters]
    interfaces = sum(group.count * _interfaces(cluster.orchestrator, group, types) for cluster, group in of_clusters)
    paired = [(group, types[group.instance_type]) for group in groups]
    accelerated = [(group, kind) for group, kind in paired if kind.accelerator_count]
    with_efa = [(group, kind) for group, kind in paired if kind.max_efa_interfaces]
    mbps = lustre_mbps(project)
    checkpoint = parameters * bytes_per_parameter if parameters else None
    dataset = dataset_tib * 2**40 if dataset_tib else None
    return Plan(
        nodes=sum(group.count for group in groups),
        accelerators=sum(group.count * kind.accelerator_count for group, kind in accelerated),
        hbm_gib=_sum(group.count * kind.hbm_gib_total if kind.hbm_gib_total else None for group, kind in accelerated),
        dense_pflops={precision: _pflops(accelerated, precision) for precision in _PRECISIONS},
        efa_gbps_per_node={group.name: kind.efa_gbps_total for group, kind in with_efa},
        efa_gbps=_sum(group.count * kind.efa_gbps_total if kind.efa_gbps_total else None for group, kind in with_efa),
        addresses_needed=storage_addresses + _node_addresses(project, types),
        addresses_usable=None if primary_subnet_size is None else primary_subnet_size - _KEPT_ADDRESSES,
        network_interfaces=interfaces,
        lustre_mbps=mbps,
        metadata_iops=project.storage.lustre.metadata_iops if project.storage.lustre else None,
        checkpoint_gb=checkpoint / 1e9 if checkpoint else None,
        checkpoint_seconds=checkpoint / (mbps * 1e6) if checkpoint and mbps else None,
        staging_seconds=dataset / (mbps * 1e6) if dataset and mbps else None,
        endpoints=dict(_endpoints(project)),
        quotas=_quotas(of_clusters, types, interfaces),
        bills_while_idle=tuple(_bills(project, of_clusters)),
        advice=tuple((id, entries()[id].rule) for id in _advice(project, groups)),
    )


def _endpoints(project: Project) -> Iterable[tuple[str, Figures]]:
    cluster = project.serving_cluster
    if project.inference is None or cluster is None:
        return
    nodes = served_nodes(cluster, project.instance_types)
    for endpoint in project.inference.endpoints:
        for half, role in endpoint.roles().items():
            group = group_of(role, nodes, project.instance_types)
            if group is not None:
                kind = project.instance_types[group.instance_type]
                name = f"{endpoint.name} {half}".rstrip()
                yield name, figures(endpoint, kind, role.accelerators_per_replica or 0)


def _sum(values: Iterable[int | None]) -> int | None:
    listed = list(values)
    known = [value for value in listed if value is not None]
    return sum(known) if len(known) == len(listed) else None


def _pflops(accelerated: Sequence[tuple[NodeGroup, InstanceType]], precision: str) -> float | None:
    total = 0.0
    for group, kind in accelerated:
        each = getattr(kind, f"peak_dense_tflops_{precision}")
        if each is None:
            return None
        total += group.count * kind.accelerator_count * each / 1000
    return total if accelerated else None


def lustre_mbps(project: Project) -> float | None:
    """Throughput of the file system in MB/s; None where none is sold by number."""
    lustre = project.storage.lustre
    if lustre is None:
        return None
    if lustre.throughput_mbps_per_tib is None or lustre.capacity_gib is None:
        return lustre.throughput_capacity_mbps
    return lustre.capacity_gib / _GIB_PER_TIB * lustre.throughput_mbps_per_tib


def _node_addresses(project: Project, types: Types) -> int:
    """Of the primary zone's nodes."""
    primary = project.network.primary
    return sum(
        group.count * addresses_per_node(cluster.orchestrator, group, types)
        for cluster in project.clusters.values()
        for group in cluster.groups
        if (group.availability_zone or primary) == primary
    )


def _interfaces(orchestrator: Orchestrator, group: NodeGroup, types: Types) -> int:
    if orchestrator.hyperpod:  # an ENA interface beside every EFA one at most: it does not say how it lays them out
        return types[group.instance_type].max_efa_interfaces + 1
    return len(interfaces_of(orchestrator, group, types))


def _quotas(groups: Sequence[tuple[Cluster, NodeGroup]], types: Types, interfaces: int) -> tuple[Quota, ...]:
    by_name: Counter[str] = Counter()
    for cluster, group in groups:
        vcpus = types[group.instance_type].vcpus
        # System nodes beside HyperPod's are instances of the account itself.
        if cluster.orchestrator.hyperpod and group.role is not NodeRole.SYSTEM:
            by_name[f"SageMaker: ml.{group.instance_type} for cluster usage"] += group.count
        elif group.capacity.mode is not CapacityMode.CAPACITY_BLOCK and vcpus is not None:  # a block counts in none
            family = group.instance_type.split(".")[0]
            bought = "Spot" if group.capacity.mode is CapacityMode.SPOT else "On-Demand"
            by_name[f"EC2: vCPUs of the {bought} quota that {family} is in"] += group.count * vcpus
    needed = [Quota(name, None, count) for name, count in sorted(by_name.items())]
    return (*needed, Quota("VPC: network interfaces per Region", "L-DF5E4CA3", interfaces))


def _bills(project: Project, groups: Sequence[tuple[Cluster, NodeGroup]]) -> Iterable[str]:
    for cluster, group in groups:
        if group.capacity.mode is CapacityMode.TRAINING_PLAN:
            yield f"{group.name}: {group.count} × {group.instance_type}, paid with the training plan"
        elif group.capacity.create is not None:
            yield f"{group.name}: {group.count} × {group.instance_type} reserved, used or not, until CapacityStack goes"
        elif group.capacity.mode is CapacityMode.ODCR:
            yield f"{group.name}: {group.count} × {group.instance_type}, with the reservation, which bills used or not"
        elif group.capacity.mode is CapacityMode.CAPACITY_BLOCK:
            yield f"{group.name}: {group.count} × {group.instance_type}, paid with the Capacity Block"
        elif group.provisioned_by is Provisioner.KARPENTER:
            yield f"{group.name}: up to {group.count} × {group.instance_type}, while pods ask for them"
        elif cluster.orchestrator is Orchestrator.PCS and group.min_count == 0:
            yield f"{group.name}: up to {group.count} × {group.instance_type}, while jobs ask for them"
        else:
            yield f"{group.name}: {group.count} × {group.instance_type}, from creation to destruction"
    orchestrators = [cluster.orchestrator for cluster in project.clusters.values()]
    if planes := sum(orchestrator.kubernetes for orchestrator in orchestrators):
        yield f"{planes} control planes of EKS, by the hour, and their logs" if planes > 1 else _ONE_PLANE
    if Orchestrator.PCS in orchestrators:
        yield "the controller of PCS, by the hour and size, and its accounting"
    if balancers := _load_balancers(project):
        yield f"{balancers} load balancer{'s' if balancers > 1 else ''} of endpoints, by the hour and by use"
    if nat := project.network.nat_gateways:
        yield f"{nat} NAT gateway{'s' if nat > 1 else ''}, by the hour and by the GB"
    if services := project.network.endpoint_services:
        zones = len(project.network.endpoint_availability_zones)
        places = f"{zones} zone{'s' if zones > 1 else ''}"
        yield f"{len(services)} interface endpoints in {places}, by the hour and by the GB"
    if (lustre := project.storage.lustre) is not None:
        size = f"{lustre.capacity_gib} GiB" if lustre.capacity_gib else "for what it holds and for its throughput"
        yield f"Lustre, {size}, even after FoundationStack is destroyed"
    if (home := project.storage.home) is not None:
        yield f"OpenZFS for home directories, {home.capacity_gib} GiB, even after FoundationStack is destroyed"
    if (database := project.storage.accounting_database) is not None:
        capacity = f"{database.min_capacity_acu:g} to {database.max_capacity_acu:g} ACU"
        yield f"Aurora for Slurm's accounting, {capacity}, even after FoundationStack is destroyed"
    yield "the KMS key, and what is stored in buckets, log groups and the metrics workspace"


def _load_balancers(project: Project) -> int:
    """HyperPod's operator makes one for each endpoint."""
    cluster = project.serving_cluster
    if project.inference is None or cluster is None:
        return 0
    return sum(cluster.orchestrator.hyperpod or one.load_balancer for one in project.inference.endpoints)


def _advice(project: Project, groups: Sequence[NodeGroup]) -> Iterable[str]:
    """Notes that concern the project."""
    types = {group.instance_type for group in groups}
    if any(group.capacity.mode is CapacityMode.TRAINING_PLAN for group in groups):
        yield from ("TP-05", "TP-09")
    orchestrators = {cluster.orchestrator for cluster in project.clusters.values()}
    if Orchestrator.EKS in orchestrators:
        yield "EFA-22"
        if any(group.capacity.mode is CapacityMode.CAPACITY_BLOCK for group in groups):
            yield "CB-12"
    if Orchestrator.HYPERPOD_EKS in orchestrators:
        yield "HP-23"
    if types & {"p4d.24xlarge", "p4de.24xlarge"}:
        yield "EFA-16"
    if "p5.4xlarge" in types:
        yield "EFA-17"
    if project.storage.lustre and project.storage.lustre.data_repository_associations:
        yield "DRA-09"
