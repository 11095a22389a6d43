"""The project file: one typed description of a cluster, from which the stacks are made.

Shape errors (unknown keys, wrong types) are all told at once; a file with the right shape then goes through the rules,
whose findings are told all at once too. Nothing here imports aws_cdk or boto3, and nothing asks AWS.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
import types
import typing
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from fmblocks.capacity import rules as capacity_rules
from fmblocks.catalog import Types, merged
from fmblocks.catalog.settings import CatalogEntry
from fmblocks.cluster import rules as cluster_rules
from fmblocks.cluster.settings import Cluster, HyperPodAddOn, Kubernetes, NodeGroup, NodeRole, Orchestrator, Training
from fmblocks.compute import rules as compute_rules
from fmblocks.document import Document, Location, path_text, read
from fmblocks.findings import RULES, Finding, FindingsError, Severity, check, not_a_member
from fmblocks.governance import rules as governance_rules
from fmblocks.governance.settings import Access, Account, Budget, Priority, Suppression, Team
from fmblocks.network import rules as network_rules
from fmblocks.network.addresses import parse_cidr, slots
from fmblocks.network.settings import Network
from fmblocks.observability import rules as observability_rules
from fmblocks.observability.settings import Collector, Observability
from fmblocks.rulebook import entries
from fmblocks.serving import rules as serving_rules
from fmblocks.serving.nodes import served_nodes
from fmblocks.serving.settings import Inference, ServingCluster
from fmblocks.settings import Name, Settings, Text, snake_case
from fmblocks.storage import rules as storage_rules
from fmblocks.storage.settings import Lustre, Storage

# Made here: they look at other findings, or at what is absent.
PROJECT_RULES = frozenset({"FMB-11", "FMB-22"})
# What only the project file can be wrong about: no construct says it again.
PROJECT_ONLY = PROJECT_RULES | {
    "FSX-16", "FSX-29", "HP-22", "HP-29", "NET-06", "FMB-102", "FMB-107", "FMB-114", "FMB-129", "FMB-144", "FMB-76",
    "FMB-86", "FMB-92", "REG-02",
}  # fmt: skip
_LATER = "this version does not build it yet: leave the key out"


# What each cluster of a project stands in.
STACKS_OF_CLUSTERS = {"training": "TrainingStack", "inference": "InferenceStack"}


class Project(Settings):
    """A whole project file."""

    FOREIGN: ClassVar = {
        "foundation": _LATER,
        "project": "the key is name",
        "fleets": "write training: {node_groups: […]}",
        "fsx": "write storage: {lustre: …}",
        "dra": "write storage: {lustre: {data_repository_associations: […]}}",
        "monitoring": "the key is observability",
    }

    name: Annotated[Name, Field(description="names the project's stacks and parameters")]
    account: Annotated[Account | None, Field(description="12 digits; absent: any account")] = None
    region: Annotated[Text | None, Field(description="AWS region; absent: any region")] = None
    tags: Annotated[dict[str, Text], Field(description="put on every resource that takes tags")] = {}
    network: Network
    storage: Storage = Storage()
    training: Annotated[Training | None, Field(description="absent: no TrainingStack")] = None
    inference: Annotated[Inference | None, Field(description="absent: no InferenceStack")] = None
    access: Access = Access()
    teams: Annotated[tuple[Team, ...], Field(description="quotas (Kubernetes), accounts (Slurm)")] = ()
    priorities: Annotated[tuple[Priority, ...], Field(description="of work, on Kubernetes")] = ()
    observability: Observability = Observability()
    budget: Annotated[Budget | None, Field(description="what the project may cost; default: nobody is told")] = None
    catalog: Annotated[tuple[CatalogEntry, ...], Field(description="instance types to add or to correct")] = ()
    suppress: Annotated[tuple[Suppression, ...], Field(description="rules this project does without")] = ()

    @property
    def instance_types(self) -> Types:
        """The catalogue with what the project adds to it."""
        return merged(entry.row() for entry in self.catalog)

    @property
    def clusters(self) -> dict[str, Cluster]:
        """The clusters that are made, by the key of the file."""
        found: dict[str, Cluster] = {}
        if self.training is not None:
            found["training"] = self.training
        if self.inference is not None and self.inference.cluster is ServingCluster.OWN:
            found["inference"] = self.inference
        return found

    @property
    def serving_cluster(self) -> Cluster | None:
        """The cluster that endpoints run on."""
        if self.inference is not None and self.inference.cluster is ServingCluster.TRAINING:
            return self.training
        return self.inference

    @property
    def linked_lustre(self) -> Lustre | None:
        """The Lustre file system with every link that it gets: that of the model store, too."""
        lustre, store = self.storage.lustre, self.storage.model_store
        if lustre is None or store is None or store.lustre_path is None:
            return lustre
        links = (*lustre.data_repository_associations, store.link)
        return lustre.model_copy(update={"data_repository_associations": links})

    @property
    def suppressed(self) -> frozenset[str]:
        """The ids that the project does without."""
        return frozenset(one.rule for one in self.suppress)

    @classmethod
    def load(cls, path: Path | str, *, now: datetime | None = None, charts: Path | None = None) -> LoadedProject:
        """Read, shape and check a project file.

        Args:
            path: the file.
            now: the time that ends and starts are compared with. Default: they are not, so that two synths agree.
            charts: what relative paths of charts start from. Default: the file's folder.

        Raises:
            FindingsError: with every error of the file; nothing else is raised for what a user wrote.
        """
        document = read(Path(path))
        try:
            project = cls.model_validate(document.values)
        except ValidationError as error:
            found = [_shape_finding(cls, document, details) for details in error.errors(include_url=False)]
            raise FindingsError(sorted(found, key=lambda finding: finding.line or 0)) from None
        folder = Path(path).parent
        findings = [_placed(finding, document) for finding in project.check(folder, now=now, charts=charts)]
        if any(finding.severity is Severity.ERROR for finding in findings):
            raise FindingsError(findings)
        return LoadedProject(project, Path(path), findings, charts or folder)

    def check(self, folder: Path = Path(), *, now: datetime | None = None, charts: Path | None = None) -> list[Finding]:
        """Run every rule over the project.

        Args:
            folder: what relative paths in the project start from.
            now: the time that ends and starts are compared with. Default: they are not.
            charts: what relative paths of charts start from. Default: ``folder``.
        """
        findings = list(_check(self, folder, now, charts or folder))
        left = [one for one in findings if one.rule not in self.suppressed or entries()[one.rule].firm]
        found = {finding.rule for finding in findings}
        unasked = () if now else capacity_rules.DATED
        for index, one in enumerate(self.suppress):
            if one.rule not in found and one.rule in RULES and one.rule not in unasked:
                text = f"{one.rule} has no finding here"
                where = f"suppress[{index}]"
                left.append(Finding("FMB-22", Severity.WARNING, where, text, "leave the suppression out"))
        return sorted(left, key=lambda finding: finding.severity)


class LoadedProject(typing.NamedTuple):
    """A project without errors, where it came from, the warnings about it, and where its charts are."""

    project: Project
    path: Path
    findings: list[Finding]
    charts: Path


def refused_keys(model: type[BaseModel] = Project) -> dict[str, str]:
    """Rules that a key breaks whatever stands below it, with the key."""
    found: dict[str, str] = {}
    for key, id in getattr(model, "FOREIGN_RULES", {}).items():
        found.setdefault(id, key)
    for field in model.model_fields.values():
        if (inner := _inner(field.annotation)) is not None:
            found |= {id: key for id, key in refused_keys(inner).items() if id not in found}
    return found


def schema() -> str:
    """The JSON schema of project files, for editors."""
    return json.dumps(Project.model_json_schema(), indent=2)


def _check(project: Project, folder: Path, now: datetime | None, charts: Path) -> Iterator[Finding]:
    network = {
        **_fields(project.network),
        "cidr": project.network.ipv4_range,
        "availability_zones": project.network.zones,
        "given": _given(project.network),
        "region": project.region,
        "primary": project.network.primary,
        "endpoint_services": project.network.endpoint_services,
        "endpoint_availability_zones": project.network.endpoint_availability_zones,
    }
    yield from check(network_rules.EXISTING, network, path="network")
    if project.network.vpc is None:
        # Endpoints that nobody wrote are ours.
        unwritten = {"FMB-52"} if project.network.endpoints is None else set()
        yield from check([id for id in network_rules.RULES if id not in unwritten], network, path="network")
    else:
        places = {
            "network.availability_zones": "network.vpc.private_subnets",
            "network.cidr": "network.vpc.cidr",
        }
        for finding in check(network_rules.OF_EXISTING, network, path="network"):
            yield replace(finding, path=places.get(finding.path, finding.path))
    yield from check(network_rules.WHOLE, network)
    yield from check(governance_rules.RULES, {"tags": project.tags, "suppress": project.suppress})
    if (budget := project.budget) is not None:
        told = {**_fields(budget), "tagged": project.training is not None or project.inference is not None}
        yield from check(governance_rules.BUDGET, told, path="budget")
    prometheus = _fields(project.observability.prometheus)
    yield from check(observability_rules.RULES, prometheus, path="observability.prometheus")
    watched = {
        **_fields(project.observability),
        "given": project.observability.model_fields_set,
        "account": project.account,
        "region": project.region,
        "availability_zones": project.network.zones,
        "orchestrator": _watched(project),
    }
    yield from check(observability_rules.OBSERVABILITY, watched, path="observability")
    if (grafana := project.observability.grafana) is not None:
        yield from check(("FMB-05",), {"region": grafana.region}, path="observability.grafana")
    if project.region is None:
        yield Finding(
            "FMB-11",
            Severity.WARNING,
            "region",
            "is not given, so the rules that compare zones, ARNs and offers with a region are skipped",
            "add region to have them checked",
        )
    if (linked := project.linked_lustre) is not None:
        for finding in _check_lustre(project, linked):
            yield _of_store(finding, project)
    store = {"model_store": project.storage.model_store, "lustre_given": project.storage.lustre is not None}
    yield from check(("FMB-133",), store, path="storage")
    yield from check(("FMB-69",), _fields(project.storage.buckets), path="storage.buckets")
    if (home := project.storage.home) is not None:
        lustre = project.storage.lustre
        values = {**_fields(home), "region": project.region, "lustre_mount_path": lustre.mount_path if lustre else None}
        yield from check(storage_rules.HOME, values, path="storage.home")
    if (database := project.storage.accounting_database) is not None:
        stands = {
            "accounting_database": database,
            "availability_zones": project.network.zones,
            "primary": project.network.primary,
            "zones": project.network.zones,
        }
        yield from check(storage_rules.ACCOUNTING_PROJECT, stands, path="storage")
    yield from check(governance_rules.PEOPLE, _people(project))
    for key, cluster in project.clusters.items():
        if _of_no_endpoints(key, cluster):
            continue
        yield from _check_cluster(project, key, cluster, charts)
        for index, group in enumerate(cluster.node_groups):
            yield from _check_group(project, cluster, group, f"{key}.node_groups[{index}]", now)
        if (scripts := cluster.lifecycle_scripts) is not None:
            where = f"{key}.lifecycle_scripts"
            outside = check(("FMB-18",), {"scripts": scripts.path}, path=where)
            values = {"path": str(folder / scripts.path), "on_init_complete": scripts.on_init_complete}
            yield from outside or check(cluster_rules.SCRIPTS, values, path=where)
    if project.inference is not None:
        yield from _check_inference(project, project.inference)


def _serving_charts(project: Project, cluster: Cluster) -> bool:
    """Whether endpoints bring charts: KEDA, LeaderWorkerSet. On HyperPod the operator does."""
    endpoints = project.inference.endpoints if project.inference else ()
    roles = [role for endpoint in endpoints for role in endpoint.roles().values()]
    return not cluster.orchestrator.hyperpod and any(
        role.autoscaling is not None or (role.nodes_per_replica or 1) > 1 for role in roles
    )


def _check_inference(project: Project, inference: Inference) -> Iterator[Finding]:
    training, types = project.training, project.instance_types
    values = {
        **_fields(inference),
        "given": _given(inference),
        "training": training.orchestrator if training else None,
    }
    yield from check(serving_rules.INFERENCE, values, path="inference")
    own = inference.cluster is ServingCluster.OWN
    names = {
        "training_groups": {group.name for group in training.node_groups if group.role is not NodeRole.SYSTEM}
        if training
        else set(),
        "inference_groups": [group.name for group in inference.node_groups] if own else [],
    }
    yield from check(("FMB-118",), names)
    cluster = project.serving_cluster
    if cluster is None or not cluster.orchestrator.kubernetes:
        return  # FMB-117
    groups = [group for group in cluster.groups if group.role is not NodeRole.SYSTEM]
    kubernetes = cluster.kubernetes or Kubernetes()
    watched = cluster.orchestrator is Orchestrator.EKS and project.observability.collector is Collector.AGENTS
    values = {
        "endpoints": inference.endpoints,
        "nodes": served_nodes(cluster, types),
        "zones": {group.name: group.availability_zone or project.network.primary for group in groups},
        "types": types,
        "orchestrator": cluster.orchestrator,
        # On a cluster of its own it is switched on with the first endpoint that asks for it.
        "tiered_storage_on": cluster.orchestrator.hyperpod and (own or cluster.tiered_storage is not None),
        "metrics_collected": watched or HyperPodAddOn.OBSERVABILITY in kubernetes.hyperpod_add_ons,
        "model_store_given": project.storage.model_store is not None,
        "lustre_given": project.storage.lustre is not None,
        "region": project.region,
        "account": project.account,
    }
    yield from check(serving_rules.ENDPOINTS, values, path="inference")
    for index, endpoint in enumerate(inference.endpoints):
        of_one = {**values, **_fields(endpoint), "endpoint": endpoint}
        yield from check(serving_rules.ENDPOINT, of_one, path=f"inference.endpoints[{index}]")


def _watched(project: Project) -> Orchestrator | None:
    """Whose metrics ``collector`` is about: those of EKS, where agents are built."""
    found = [cluster.orchestrator for key, cluster in project.clusters.items() if not _of_no_endpoints(key, cluster)]
    if not found and project.inference is not None:
        return Orchestrator.EKS  # FMB-117: the cluster is missing, not the collector
    return Orchestrator.EKS if Orchestrator.EKS in found else next(iter(found), None)


def _of_no_endpoints(key: str, cluster: Cluster) -> bool:
    """Whether it is one of inference that has to become another one (FMB-117): what it lacks helps nobody."""
    return key == "inference" and not cluster.orchestrator.kubernetes


def _of_store(finding: Finding, project: Project) -> Finding:
    """A finding about the link of the model store names what the user wrote."""
    written = len(project.storage.lustre.data_repository_associations) if project.storage.lustre else 0
    ours = f"storage.lustre.data_repository_associations[{written}]"
    if not finding.path.startswith(ours):
        return finding
    return replace(finding, path="storage.model_store.lustre_path")


def _people(project: Project) -> dict[str, object]:
    training = project.training
    kubernetes = (training and training.kubernetes) or Kubernetes()
    hyperpod_eks = training is not None and training.orchestrator is Orchestrator.HYPERPOD_EKS
    nodes: Counter[str] = Counter()
    for group in training.node_groups if training else ():
        for name in group.every_type if group.role is NodeRole.COMPUTE else ():
            nodes[name] += group.count
    governed = hyperpod_eks and HyperPodAddOn.TASK_GOVERNANCE in kubernetes.hyperpod_add_ons
    return {
        "teams": project.teams,
        "users": project.access.users,
        "admins": project.access.admins,
        "priorities": project.priorities,
        "slurm": training is not None and training.orchestrator is Orchestrator.HYPERPOD_SLURM,
        "task_governance": governed,
        "kubernetes_teams": governed and bool(project.teams),
        "nodes": nodes,
        "types": project.instance_types,
    }


def _check_lustre(project: Project, lustre: Lustre) -> Iterator[Finding]:
    values = {
        **_fields(lustre),
        "metadata_mode": lustre.metadata_mode,
        "metadata_iops": lustre.metadata_iops,
        "read_cache_sizing_mode": lustre.read_cache_sizing_mode,
        "read_cache_size_gib": lustre.read_cache_size_gib,
        "kms_key_given": False,  # the stack gives the project's key where one is taken
        "region": project.region,
    }
    where = "storage.lustre"
    vpc = project.network.vpc
    stands = {
        **values,
        "given": _given(lustre),
        "vpc_given": vpc is not None,
        "efa_security_group_given": vpc is not None and vpc.efa_security_group_id is not None,
    }
    yield from check(storage_rules.EXISTING, stands, path=where)
    made = (*storage_rules.RULES, *storage_rules.LUSTRE_PROJECT)
    yield from check(made if lustre.existing is None else storage_rules.RULES_OF_EXISTING, values, path=where)
    if lustre.existing is not None:
        zones = {
            "lustre_zone": lustre.existing.availability_zone,
            "node_zones": [project.network.primary],
            "efa_enabled": lustre.efa_enabled,
        }
        for finding in check(cluster_rules.FILE_SYSTEM, zones, path=where):
            yield replace(finding, path=f"{where}.existing.availability_zone")
    elif (size := primary_subnet_size(project.network)) is not None:
        room = {"lustre_addresses": lustre_addresses(lustre), "subnet_size": size}
        yield from check(("FSX-27",), room, path=where)
    for index, link in enumerate(lustre.data_repository_associations):
        told = {
            **_fields(link),
            "region": project.region,
            "given": link.model_fields_set,
            "bucket_versioned": link.bucket_versioned or link.bucket is None,  # created ones are
        }
        yield from check(storage_rules.ASSOCIATION_PROJECT, told, path=f"{where}.data_repository_associations[{index}]")
    # Pods mount over TCP, whatever the type; where nodes mount too, theirs is the say.
    reads = sorted(project.clusters.values(), key=lambda cluster: cluster.orchestrator.kubernetes)
    if reads:
        mounted = {**values, "node_groups": reads[0].node_groups, "types": project.instance_types}
        if reads[0].orchestrator.kubernetes:
            told = {"orchestrator": reads[0].orchestrator, "efa_enabled": lustre.efa_enabled}
            yield from check(("FMB-86", "X-06"), {**mounted, **told}, path=where)
        else:
            yield from check(storage_rules.CLIENTS, mounted, path=where)


def _check_cluster(project: Project, key: str, cluster: Cluster, charts: Path) -> Iterator[Finding]:
    kubernetes = cluster.kubernetes or Kubernetes()
    values = {
        **_fields(cluster),
        "slurm": cluster.slurm if isinstance(cluster, Training) else None,
        "given": _given(cluster),
        "node_provisioning": cluster.provisioning,
        "cidr": project.network.ipv4_range,
        "availability_zones": project.network.zones,
        "primary": project.network.primary,
        "region": project.region,
        "types": project.instance_types,
        "admins": project.access.admins,
        "closed": project.network.vpc is None and not project.network.nat_gateways,
        "endpoint_services": project.network.endpoint_services,
        "home_given": project.storage.home is not None,
        "accounting_database_given": project.storage.accounting_database is not None,
        "collected": project.observability.collector is Collector.AGENTS,
        "serving_charts": cluster is project.serving_cluster and _serving_charts(project, cluster),
        "chart": str(charts / kubernetes.dependency_chart.path),
        "chart_values": json.loads(kubernetes.dependency_chart.values) if kubernetes.dependency_chart.values else None,
    }
    of_all: tuple[str, ...] = (*cluster_rules.TRAINING, *capacity_rules.TRAINING, *compute_rules.TRAINING)
    of_all += cluster_rules.HYPERPOD if cluster.orchestrator.hyperpod else ()
    of_all += cluster_rules.SLURM if cluster.orchestrator is Orchestrator.HYPERPOD_SLURM else ()
    yield from check(of_all, values, path=key)
    who = {"access.admins"} if project.access.admins else set()
    yield from check(("FMB-33",), {**values, "given": who})
    for finding in check(cluster_rules.WHOLE, values):
        yield replace(finding, path=re.sub(r"^training\b", key, finding.path))
    for zone in project.network.zones:
        here = _groups_in(project, cluster, zone)
        if here and (size := private_subnet_size(project.network, zone)) is not None:
            primary = zone == project.network.primary
            values["storage_addresses"] = storage_addresses(project.storage) if primary else 0
            values["others"] = {
                name: sum(
                    group.count * cluster_rules.addresses_per_node(other.orchestrator, group, project.instance_types)
                    for group in _groups_in(project, other, zone)
                )
                for name, other in project.clusters.items()
                if name != key
            }
            whole = {**values, "node_groups": here, "zone": zone, "subnet_size": size}
            yield from check(cluster_rules.PROJECT, whole, path=key)


def _groups_in(project: Project, cluster: Cluster, zone: str) -> list[NodeGroup]:
    return [one for one in cluster.groups if (one.availability_zone or project.network.primary) == zone]


def _check_group(
    project: Project, cluster: Cluster, group: NodeGroup, where: str, now: datetime | None
) -> Iterator[Finding]:
    types = project.instance_types
    zone = group.availability_zone or project.network.primary
    lustre = project.storage.lustre
    values = {
        **_fields(group),
        "every_type": group.every_type,
        "given": _given(group),
        "orchestrator": cluster.orchestrator,
        "node_provisioning": cluster.provisioning,
        "capacity_mode": group.capacity.mode,
        "emptied": cluster.orchestrator is not Orchestrator.PCS,
        "training_plan_arn": group.capacity.training_plan_arn,
        "placement_mode": group.placement.mode,
        "placement_group_name": group.placement.group_name,
        "types": types,
        "region": project.region,
        "account": project.account,
        "primary": zone,
        "availability_zones": project.network.zones,
        "now": now,
        "lustre_zone": (lustre.existing.availability_zone if lustre.existing else project.network.primary)
        if lustre
        else None,
        "node_zones": [zone],
        "efa_enabled": bool(lustre and lustre.efa_enabled),
    }
    kinds = [types[name] for name in group.every_type if name in types]
    elsewhere = group.availability_zone and cluster.orchestrator.hyperpod and group.role is not NodeRole.SYSTEM
    if elsewhere and any(kind.accelerator_count for kind in kinds):
        # Over EFA only types that have it read; the others pay for the way, and may.
        values["efa_enabled"] = values["efa_enabled"] and any(kind.max_efa_interfaces for kind in kinds)
        for finding in check(cluster_rules.FILE_SYSTEM, values, path=where):
            text = f"{zone}: the file system {finding.message}"
            yield replace(finding, path=f"{where}.availability_zone", message=text)
    rules: tuple[str, ...] = cluster_rules.GROUP
    if group.role is NodeRole.SYSTEM and cluster.orchestrator is Orchestrator.HYPERPOD_EKS:
        rules = cluster_rules.SYSTEM_GROUP
    elif not cluster.orchestrator.hyperpod:
        rules = (*cluster_rules.EC2_GROUP, *capacity_rules.EC2_GROUP, *compute_rules.EC2_GROUP)
        wired = {**values, "network_interfaces": cluster_rules.interfaces_of(cluster.orchestrator, group, types)}
        found = check(compute_rules.INTERFACES, wired, path=where) if wired["network_interfaces"] else []
        if group.network_interfaces:
            yield from found
        else:  # what was laid out from the catalogue nobody wrote: the key behind it is efa, and one word is enough
            yield from {finding.rule: replace(finding, path=f"{where}.efa") for finding in reversed(found)}.values()
    rules += (*capacity_rules.EVERY_GROUP, *compute_rules.EVERY_GROUP)
    yield from check((*rules, *(capacity_rules.DATED if now else ())), values, path=where)


def lustre_addresses(lustre: Lustre | None) -> int:
    """Addresses of the file system in the private subnet of the primary zone."""
    if lustre is None or lustre.existing is not None:
        return 0  # an existing one has its addresses
    fields = {field.name for field in dataclasses.fields(storage_rules.LustreSize)}
    return storage_rules.addresses(storage_rules.LustreSize(**{name: getattr(lustre, name) for name in fields}))


def storage_addresses(storage: Storage) -> int:
    """Addresses of all file systems in that subnet."""
    return lustre_addresses(storage.lustre) + (storage.home.deployment_type.addresses if storage.home else 0)


def primary_subnet_size(network: Network) -> int | None:
    """Addresses of the private subnet of the primary zone; None where another rule has something to say."""
    return private_subnet_size(network, network.primary)


def private_subnet_size(network: Network, zone: str) -> int | None:
    """Addresses of the private subnet of a zone; None where another rule has something to say."""
    found: str | None
    if network.vpc is not None:
        existing = {subnet.availability_zone: subnet.cidr for subnet in network.vpc.private_subnets}
        found = existing.get(zone)
    else:
        ranges = network.subnets.get(zone) or slots(network.cidr, zone, primary=zone == network.primary)
        found = ranges.private if ranges else None
    parsed = parse_cidr(found) if found else None
    return parsed.num_addresses if parsed else None


def _fields(settings: BaseModel) -> dict[str, object]:
    return {name: getattr(settings, name) for name in type(settings).model_fields}


def _given(settings: BaseModel) -> set[str]:
    """The keys that ask for something: an empty list does not."""
    return {name for name in settings.model_fields_set if getattr(settings, name) not in (None, ())}


def _placed(finding: Finding, document: Document) -> Finding:
    return replace(finding, file=document.file, line=document.line(_location(finding.path)))


def _location(path: str) -> Location:
    parts: list[str | int] = []
    for part in path.replace("[", ".[").split("."):
        if part:
            index = re.fullmatch(r"\[(\d+)\]", part)  # a key of the user's can hold brackets too
            parts.append(int(index[1]) if index else part)
    return tuple(parts)


def _shape_finding(model: type[BaseModel], document: Document, details: ErrorDetails) -> Finding:
    """One pydantic error in a user's words."""
    location = tuple(part for part in details["loc"] if part != "[key]")
    if details["type"] == "empty":
        location += (str((details.get("ctx") or {})["key"]),)
    where, line = path_text(location), document.line(location)
    if details["type"] == "enum":
        found = not_a_member(_enum_at(model, location), _written(document, location), where)
        return replace(found, file=document.file, line=line)
    message, hint = _shape_text(model, location, details)
    rule = "SHAPE"
    if details["type"] == "extra_forbidden":
        foreign = getattr(_model_at(model, location[:-1]), "FOREIGN_RULES", {})
        rule = foreign.get(location[-1]) or foreign.get(snake_case(str(location[-1])), rule)
    return Finding(rule, Severity.ERROR, where, message, hint, document.file, line)


def _shape_text(model: type[BaseModel], location: Location, details: ErrorDetails) -> tuple[str, str]:
    value, context = details["input"], details.get("ctx") or {}
    shown = "null" if value is None else f"{value}" if isinstance(value, str) else json.dumps(value, default=str)
    match details["type"]:
        case "extra_forbidden":
            return _unknown_key(model, location)
        case "missing":
            return "is required", f"add {location[-1]}:"
        case "int_parsing" | "int_type" | "int_from_float" | "int_parsing_size" | "number":
            return f"{shown} is not a whole number", "write digits only"
        case "bool_parsing" | "bool_type":
            return f"{shown} is neither true nor false", "write true or false"
        case "string_type" | "text":
            return f"{shown} is not text", "write text; put quotes around true, false and null"
        case "greater_than_equal" | "greater_than":
            least = context.get("ge", context.get("gt"))
            return f"{shown} is too small", f"the least is {least}" if "ge" in context else f"write more than {least}"
        case "less_than_equal":
            return f"{shown} is too large", f"the most is {context['le']}"
        case "model_type" | "dict_type":
            return f"{shown} is not a mapping", "write keys below it"
        case "tuple_type" | "list_type":
            return f"{shown} is not a list", "write a list: [a, b], or lines that begin with -"
        case "spelled":
            return f"{shown} is not {context['form']}", f"write {context['form']}"
        case "empty":
            return details["msg"], "write its keys, or leave it out"
        case _:
            return f"{shown} {details['msg']}", "see docs/project-file.md"


def _unknown_key(model: type[BaseModel], location: Location) -> tuple[str, str]:
    key, around = str(location[-1]), _model_at(model, location[:-1])
    foreign = getattr(around, "FOREIGN", {})
    if key in foreign:
        return "cannot be used here", foreign[key]
    known = list(around.model_fields) if around else []
    snake = snake_case(key)  # as AWS spells it
    if snake in foreign:
        return "cannot be used here", foreign[snake]
    if snake in known:
        return "is an unknown key", f"did you mean {snake}?"
    return "is an unknown key", _alike(key, known) or f"known here: {', '.join(known)}"


def _alike(word: str, known: list[str]) -> str:
    found = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    return f"did you mean {found[0]}?" if found else ""


def _model_at(model: type[BaseModel], location: Location) -> type[BaseModel] | None:
    """The model that stands at ``location``."""
    current: Any = model
    for part in location:
        if isinstance(part, str) and _is_model(current):
            field = cast("type[BaseModel]", current).model_fields.get(part)
            current = field.annotation if field else None
        else:  # an index of a list, or a key of a mapping: go on with what the list or mapping holds
            current = _inner(current)
        current = _unwrapped(current)
    return current if _is_model(current) else None


def _written(document: Document, location: Location) -> object:
    """What the user wrote at ``location``: validators have small letters by then."""
    node: Any = document.values
    for part in location:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):  # capacity: spot is short for {mode: spot}
            return node
    return node


def _enum_at(model: type[BaseModel], location: Location) -> type[StrEnum]:
    """The enum of which the value at ``location`` is no member."""
    at = max(index for index, part in enumerate(location) if isinstance(part, str))  # the list that an item is of
    around = cast("type[BaseModel]", _model_at(model, location[:at]))
    return cast("type[StrEnum]", _enum_in(around.model_fields[str(location[at])].annotation))


def _enum_in(annotation: Any) -> type[StrEnum] | None:
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return annotation
    return next(filter(None, map(_enum_in, typing.get_args(annotation))), None)


def _unwrapped(annotation: Any) -> Any:
    """``X`` of ``X | None``; anything else as it is."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next((part for part in typing.get_args(annotation) if part is not type(None)), None)
    return annotation


def _inner(annotation: Any) -> Any:
    """The model inside a tuple or dict annotation."""
    if _is_model(annotation):
        return annotation
    for argument in typing.get_args(annotation):
        if _is_model(found := _inner(argument)):
            return found
    return None


def _is_model(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, BaseModel)
