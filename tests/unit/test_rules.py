"""Every rule, each side of its limit, with the message."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fmblocks.capacity.settings import Capacity, CapacityMode, Launch
from fmblocks.catalog import instance_types
from fmblocks.cluster.add_ons import ADD_ONS
from fmblocks.cluster.settings import (
    AddOn,
    DeepHealthCheck,
    Kubernetes,
    NodeProvisioning,
    NodeRecovery,
    NodeRole,
    Orchestrator,
    Patching,
    Provisioner,
    Slurm,
    TieredStorage,
)
from fmblocks.compute.settings import Efa, Image, NetworkInterface, Placement, PlacementMode
from fmblocks.findings import CHOICES, RULES, Finding, Rule, Severity, Violation, check, not_a_member, rule
from fmblocks.governance.settings import Priority, Suppression, Team, User
from fmblocks.network.addresses import ZoneAddresses
from fmblocks.network.rules import SelfRules
from fmblocks.network.settings import CLOSED_NETWORK_SERVICES, ExistingSubnet, ExistingVpc
from fmblocks.observability.settings import Alerts, Collector, Grafana
from fmblocks.project import PROJECT_RULES, Project
from fmblocks.rulebook import Kind, entries
from fmblocks.serving.nodes import ServedNodes
from fmblocks.serving.settings import Endpoint, ServingCluster
from fmblocks.storage.settings import (
    AccountingDatabase,
    DataRepositoryAssociation,
    DataRepositoryEvent,
    DeploymentType,
    DriveCacheType,
    ExistingLustre,
    LustreLogLevel,
    LustreMetadataMode,
    ModelStore,
    OpenZfsDeploymentType,
    ReadCacheSizingMode,
    Release,
    StorageType,
)

# Settings are written as a project file writes them: as text.
# mypy: disable-error-code="arg-type"


@dataclasses.dataclass(frozen=True)
class Group:
    """A node group as the rules see it."""

    name: str = "gpu"
    role: NodeRole = NodeRole.COMPUTE
    instance_type: str = "p5.48xlarge"
    count: int = 1
    ebs_volume_gib: int = 500
    training_plan_arn: str | None = None
    efa: Efa = dataclasses.field(default_factory=Efa)
    network_interfaces: tuple[NetworkInterface, ...] = ()
    capacity: Capacity = dataclasses.field(default_factory=Capacity)
    provisioned_by: Provisioner = Provisioner.NODE_GROUP
    alternative_instance_types: tuple[str, ...] = ()

    @property
    def every_type(self) -> tuple[str, ...]:
        """As settings and the construct's groups have it."""
        return (self.instance_type, *self.alternative_instance_types)


def unbuilt(*given: str, **keys: Any) -> dict[str, Any]:
    return {"given": given, "grafana": None, "alerts": None, "collector": None, "orchestrator": None, **keys}


def api(**keys: Any) -> dict[str, Any]:
    return {"kubernetes": Kubernetes(**keys), "orchestrator": Orchestrator.EKS}


def admins(*arns: str, orchestrator: str = "eks") -> dict[str, Any]:
    return {"admins": arns, "orchestrator": Orchestrator(orchestrator)}


def eks_groups(*groups: Group, orchestrator: str = "eks") -> dict[str, Any]:
    return {"orchestrator": Orchestrator(orchestrator), "node_groups": groups, "types": TYPES}


SYSTEM_GROUP = Group("system", NodeRole.SYSTEM, "m7i.xlarge", 2)
MIRRORED = {"chart_registry": "oci://r/charts", "image_registry": "r"}


def closed(
    *groups: Group,
    services: Sequence[str] = ("eks", "lambda"),
    closed: bool = True,
    collected: bool = False,
    database: bool = False,
    serving: bool = False,
    orchestrator: Orchestrator = Orchestrator.EKS,
    **keys: Any,
) -> dict[str, Any]:
    told = {**eks_groups(*groups), "kubernetes": Kubernetes(**keys), "orchestrator": orchestrator}
    watched = {"collected": collected, "accounting_database_given": database, "serving_charts": serving}
    return {**told, **watched, "closed": closed, "endpoint_services": services}


ON_DEMAND_POOL = dataclasses.replace(Group(), provisioned_by=Provisioner.KARPENTER)


def keys(
    *given: str, role: NodeRole = NodeRole.SYSTEM, orchestrator: Orchestrator = Orchestrator.EKS
) -> dict[str, Any]:
    return {"orchestrator": orchestrator, "role": role, "given": given}


def pool(**keys: Any) -> dict[str, Any]:
    usual = {
        "network_interfaces": (),
        "role": NodeRole.COMPUTE,
        "capacity": Capacity(),
        "placement": Placement(),
        "image": None,
        "min_count": None,
    }
    told = {"orchestrator": Orchestrator.EKS, "provisioned_by": Provisioner.KARPENTER, "efa": Efa()}
    return {**usual, **told, **keys}


def slurm(**keys: Any) -> dict[str, Any]:
    return {"slurm": Slurm(**keys)}


def of_pcs(
    min_count: int | None, count: int = 4, orchestrator: str = "pcs", role: NodeRole = NodeRole.COMPUTE
) -> dict[str, Any]:
    return {"orchestrator": Orchestrator(orchestrator), "role": role, "min_count": min_count, "count": count}


def add_on(**keys: Any) -> dict[str, Any]:
    """As a construct has it, whose arguments pydantic does not see."""
    usual = {"name": "a", "version": "v1.0.0-eksbuild.1", "role_arn": None, "service_account": None}
    return {"kubernetes": Kubernetes.model_construct(add_ons=(AddOn.model_construct(**{**usual, **keys}),))}


def booted(kind: str, image: Image | None = None, orchestrator: str = "pcs") -> dict[str, Any]:
    return {"orchestrator": Orchestrator(orchestrator), "instance_type": kind, "image": image, "types": TYPES}


def link(path: str = "/data", bucket: str | None = "my-data", prefix: str = "") -> DataRepositoryAssociation:
    return DataRepositoryAssociation(path=path, bucket=bucket, prefix=prefix)


CONTROLLER = Group("controller", NodeRole.CONTROLLER, "m7i.xlarge")
P1, P2, S1, S2 = (
    DeploymentType.PERSISTENT_1,
    DeploymentType.PERSISTENT_2,
    DeploymentType.SCRATCH_1,
    DeploymentType.SCRATCH_2,
)
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/llm-pretrain"
TYPES = instance_types()
SSD, HDD, TIERING = StorageType.SSD, StorageType.HDD, StorageType.INTELLIGENT_TIERING
SIZE = {"storage_type": SSD, "throughput_mbps_per_tib": 125}
AUTOMATIC, PROVISIONED = LustreMetadataMode.AUTOMATIC, LustreMetadataMode.USER_PROVISIONED
SLOTS: dict[str, ZoneAddresses] = {}


CR = "cr-0123456789abcdef0"
BLOCK = Capacity(mode="capacity_block", capacity_reservation_id=CR)
ODCR = Capacity(mode="odcr", capacity_reservation_id=CR)
CREATE = Capacity(mode="odcr", create={})


def far(lustre: str | None, *nodes: str | None, efa: bool = False) -> dict[str, Any]:
    return {"lustre_zone": lustre, "node_zones": nodes, "efa_enabled": efa}


def room(
    groups: list[Group], lustre: int, size: int, orchestrator: Orchestrator = Orchestrator.HYPERPOD_SLURM
) -> dict[str, Any]:
    sizes = {"others": {}, "storage_addresses": lustre, "subnet_size": size, "zone": "usw2-az2"}
    return {"orchestrator": orchestrator, "node_groups": groups, "types": TYPES, **sizes}


CHART = str(Path(__file__).parent.parent / "charts/charts/hyperpod")
GOVERNANCE = AddOn(name="amazon-sagemaker-hyperpod-taskgovernance", version="v1.6.0-eksbuild.1")
TEAM: dict[str, Any] = {"name": "red", "quotas": [{"instance_type": "p5.48xlarge", "count": 1}]}
MEMBER = {"uid": None, "account": "red", "principal_arn": "arn:aws:iam::111122223333:role/Ana"}


def patched(orchestrator: Orchestrator = Orchestrator.HYPERPOD_EKS, **keys: Any) -> dict[str, Any]:
    return {"orchestrator": orchestrator, "patching": Patching.model_validate(keys)}


def brought(orchestrator: Orchestrator = Orchestrator.HYPERPOD_EKS, **keys: Any) -> dict[str, Any]:
    return {"orchestrator": orchestrator, "kubernetes": Kubernetes.model_validate(keys)}


def pools(number: int = 1, **more: Any) -> dict[str, Any]:
    groups = [SimpleNamespace(name="gpu", provisioned_by=Provisioner.KARPENTER) for _ in range(number)]
    return {
        "orchestrator": Orchestrator.HYPERPOD_EKS,
        "node_groups": groups,
        "node_provisioning": NodeProvisioning.CONTINUOUS,
        "node_recovery": NodeRecovery.AUTOMATIC,
        **more,
    }


def pooled(**more: Any) -> dict[str, Any]:
    return {
        "orchestrator": Orchestrator.HYPERPOD_EKS,
        "provisioned_by": Provisioner.KARPENTER,
        "capacity": Capacity(),
        "min_count": None,
        "alternative_instance_types": (),
        "deep_health_checks": (),
        "every_type": ["m7i.xlarge"],
        "types": TYPES,
        **more,
    }


def team(keys: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    told = {"teams": [{**TEAM, **(keys or {})}], "slurm": False, "task_governance": True, **more}
    nodes = {"p5.48xlarge": 4, "m5.large": 1}
    made = [
        Team.model_validate({**one, "name": "red"}).model_copy(update={"name": one["name"]}) for one in told["teams"]
    ]
    return {**told, "teams": made, "nodes": nodes, "types": TYPES}


def shares(amount: int, key: str = "count") -> dict[str, Any]:
    given = {"name": "red", "quotas": [{"instance_type": "p5.48xlarge", key: amount}]}
    return {"teams": [Team.model_validate(given)], "nodes": {"p5.48xlarge": 4}, "types": TYPES}


def shared_two(*amounts: dict[str, int]) -> dict[str, Any]:
    quotas = [
        {"name": f"team-{at}", "quotas": [{"instance_type": "p5.48xlarge", **one}]} for at, one in enumerate(amounts)
    ]
    return {**shares(0), "teams": [Team.model_validate(one) for one in quotas]}


def soon(
    *,
    count: int = 1,
    deep: bool = False,
    by: Provisioner = Provisioner.NODE_GROUP,
    role: NodeRole = NodeRole.COMPUTE,
    add_ons: Sequence[str] = ("observability",),
) -> dict[str, Any]:
    checks = (DeepHealthCheck.INSTANCE_STRESS,) if deep else ()
    group = SimpleNamespace(role=role, count=count, provisioned_by=by, deep_health_checks=checks)
    found = Kubernetes.model_validate({"hyperpod_add_ons": list(add_ons)})
    return {"orchestrator": Orchestrator.HYPERPOD_EKS, "kubernetes": found, "node_groups": [group]}


def placed(path: str) -> dict[str, Any]:
    return {"kubernetes": Kubernetes.model_validate({"dependency_chart": {"path": path}})}


def users(
    *people: dict[str, Any], slurm: bool = True, kubernetes_teams: bool = False, teams_given: bool = True
) -> dict[str, Any]:
    found = [User.model_validate({"name": "ana", "uid": 10001, **one}) for one in people]
    teams = [Team.model_validate(TEAM)] if teams_given else []
    told = {"users": found, "teams": teams, "slurm": slurm, "kubernetes_teams": kubernetes_teams}
    return {**told, "admins": ["arn:aws:iam::111122223333:role/Admin"]}


def priorities(*given: tuple[str, int], governed: bool = True) -> dict[str, Any]:
    found = [Priority.model_construct(name=name, weight=weight) for name, weight in given]
    return {"priorities": found, "task_governance": governed}


def accounted(
    provisioning: NodeProvisioning = NodeProvisioning.CONTINUOUS,
    orchestrator: Orchestrator = Orchestrator.HYPERPOD_SLURM,
    *,
    given: bool = True,
) -> dict[str, Any]:
    return {"orchestrator": orchestrator, "node_provisioning": provisioning, "accounting_database_given": given}


def database(zones: Sequence[str] = ("usw2-az1", "usw2-az2"), **keys: Any) -> dict[str, Any]:
    return {"accounting_database": AccountingDatabase.model_validate(keys), "zones": zones}


def database_in(*others: str, given: str | None = None) -> dict[str, Any]:
    found = AccountingDatabase(availability_zone=given)
    return {"accounting_database": found, "availability_zones": ["p", *others], "primary": "p"}


def governed(region: str) -> dict[str, Any]:
    return {"kubernetes": Kubernetes.model_validate({"hyperpod_add_ons": ["task_governance"]}), "region": region}


def day(number: int) -> datetime.datetime:
    return datetime.datetime(2026, 12, number, tzinfo=datetime.UTC)


def reservation(end: int | None) -> dict[str, Any]:
    create = {"end": day(end).isoformat()} if end else {}
    return {"capacity": Capacity.model_validate({"mode": "odcr", "create": create}), "now": day(10)}


def offered(region: str | None) -> dict[str, Any]:
    return {"capacity": block(days=1), "instance_type": "p4d.24xlarge", "region": region, "types": TYPES}


def to_come(now: datetime.datetime, launch: str | None = None, count: int = 2) -> dict[str, Any]:
    capacity = block(days=1).model_copy(update={"launch": launch and Launch(launch)})
    return {"capacity": capacity, "count": count, "now": now}


def block(days: int) -> Capacity:
    start = datetime.datetime(2026, 12, 10, 11, 30, tzinfo=datetime.UTC)
    end = start + datetime.timedelta(days=days)
    return Capacity(mode="capacity_block", capacity_reservation_id=CR, start=start.isoformat(), end=end.isoformat())


def hdd(throughput: int, capacity: int) -> dict[str, Any]:
    sold = {"throughput_mbps_per_tib": throughput, "capacity_gib": capacity}
    return {"deployment_type": P1, "storage_type": HDD, **sold}


def tiering(**changed: Any) -> dict[str, Any]:
    """What FSX-08 looks at, of an Intelligent-Tiering file system that it takes."""
    given = {
        "deployment_type": P2,
        "storage_type": TIERING,
        "capacity_gib": None,
        "throughput_mbps_per_tib": None,
        "throughput_capacity_mbps": 4000,
        "read_cache_sizing_mode": ReadCacheSizingMode.NO_CACHE,
        "metadata_mode": PROVISIONED,
    }
    return {**given, **changed}


def cached(mode: ReadCacheSizingMode, size: int | None, throughput: int = 4000) -> dict[str, Any]:
    return {
        "storage_type": TIERING,
        "read_cache_sizing_mode": mode,
        "read_cache_size_gib": size,
        "throughput_capacity_mbps": throughput,
    }


def backed_up(days: int, deployment_type: DeploymentType = P2, start: str | None = None, tags: bool = False) -> Any:
    return {
        "deployment_type": deployment_type,
        "automatic_backup_retention_days": days,
        "daily_automatic_backup_start_time": start,
        "copy_tags_to_backups": tags,
    }


def at(weekly: str | None, daily: str | None = None) -> dict[str, Any]:
    return {"weekly_maintenance_start_time": weekly, "daily_automatic_backup_start_time": daily}


def ec2_groups(*groups: Group) -> dict[str, Any]:
    return {"orchestrator": Orchestrator.EC2, "node_groups": groups}


def on_pcs(instance_type: str, efa: Efa, *interfaces: NetworkInterface) -> dict[str, Any]:
    return {**wired(instance_type, *interfaces), "orchestrator": Orchestrator.PCS, "efa": efa}


def scheduled() -> Capacity:
    return block(days=7).model_copy(update={"launch": Launch.SCHEDULED})


def scripts(name: str) -> dict[str, Any]:
    return {"path": str(Path(__file__).parent), "on_init_complete": name}


def nic(card: int, device: int, kind: str = "efa-only", **more: Any) -> NetworkInterface:
    return NetworkInterface(network_card_index=card, device_index=device, interface_type=kind, **more)


def wired(instance_type: str, *interfaces: NetworkInterface) -> dict[str, Any]:
    return {"network_interfaces": interfaces, "instance_type": instance_type, "types": TYPES}


PRIMARY = nic(0, 0, "interface")


def cards(*numbers: int, kind: str = "efa-only") -> dict[str, Any]:
    interfaces = (PRIMARY, *(nic(number, 0, kind) for number in numbers))
    return {"network_interfaces": interfaces, "instance_type": "p6e-gb200.36xlarge"}


def imaged(instance_type: str, **image: Any) -> dict[str, Any]:
    given = {"every_type": [instance_type], "instance_type": instance_type, "types": TYPES}
    return {"image": Image(**image), "orchestrator": Orchestrator.EC2, **given}


def on_windows(instance_type: str, efa: Efa, platform: str = "Windows") -> dict[str, Any]:
    return {**imaged(instance_type, platform=platform), "efa": efa}


def planned(first: str, second: str, plan: str = PLAN) -> dict[str, Any]:
    groups = [
        Group("a", instance_type=first, capacity=Capacity(mode="training_plan", training_plan_arn=PLAN)),
        Group("b", instance_type=second, capacity=Capacity(mode="training_plan", training_plan_arn=plan)),
        Group("c", instance_type="m5.large"),
    ]
    return {"node_groups": groups}


def reserved(platform: str, image: Image | None) -> dict[str, Any]:
    return {"capacity": Capacity(mode="odcr", create={"platform": platform}), "image": image}


def ultra(count: int, instance_type: str = "p6e-gb200.36xlarge") -> dict[str, Any]:
    return {"capacity": BLOCK, "instance_type": instance_type, "count": count}


def flexible(*more: str, provisioning: str = "continuous") -> dict[str, Any]:
    return {
        "instance_type": "p5.48xlarge",
        "alternative_instance_types": more,
        "node_provisioning": NodeProvisioning(provisioning),
        "types": TYPES,
    }


def least(orchestrator: str, min_count: int | None, provisioning: str | None = None) -> dict[str, Any]:
    given = {"orchestrator": Orchestrator(orchestrator), "min_count": min_count, "count": 4}
    return given | ({"node_provisioning": NodeProvisioning(provisioning)} if provisioning else {})


def checked(instance_type: str, *checks: str) -> dict[str, Any]:
    return {
        "deep_health_checks": [DeepHealthCheck(one) for one in checks],
        "every_type": ["p5.48xlarge", instance_type],
        "types": TYPES,
    }


def hyperpod_image(orchestrator: str = "hyperpod-eks", **given: Any) -> dict[str, Any]:
    nothing = {"image": None, "threads_per_core": None}
    return {"orchestrator": Orchestrator(orchestrator), **nothing, **given}


def kubernetes(version: str, orchestrator: str = "hyperpod-eks") -> dict[str, Any]:
    return {"orchestrator": Orchestrator(orchestrator), "kubernetes": Kubernetes(version=version)}


def services(service_cidr: str | None) -> dict[str, Any]:
    return {"kubernetes": Kubernetes(service_cidr=service_cidr), "cidr": "10.20.0.0/16"}


def pcs(nodes: int, orchestrator: str = "pcs", **slurm: Any) -> dict[str, Any]:
    given = Slurm(**slurm) if slurm else None
    return {"orchestrator": Orchestrator(orchestrator), "slurm": given, "node_groups": [Group(count=nodes)]}


def tiered(share: int | None) -> dict[str, Any]:
    return {"tiered_storage": TieredStorage(instance_memory_allocation_percentage=share)}


def read_by(orchestrator: str, *keys: str) -> dict[str, Any]:
    return {"orchestrator": Orchestrator(orchestrator), "given": keys}


def shown(region: str | None = "us-west-2", zones: tuple[str, ...] = ("usw2-az1", "usw2-az2"), **grafana: Any) -> Any:
    return {"grafana": Grafana(**grafana), "region": region, "availability_zones": zones}


def grafana(**given: Any) -> dict[str, Any]:
    return {"grafana": Grafana(**given)}


def scraped(interval: str | None, timeout: str | None = None, collector: str | None = None) -> dict[str, Any]:
    return {"scrape_interval": interval, "scrape_timeout": timeout, "collector": collector and Collector(collector)}


def collected(orchestrator: str | None, *zones: str, collector: str = "managed") -> dict[str, Any]:
    known = orchestrator and Orchestrator(orchestrator)
    return {"collector": Collector(collector), "orchestrator": known, "availability_zones": zones}


def topic(account: str | None = "111122223333", region: str | None = "us-west-2", **alerts: Any) -> dict[str, Any]:
    return {"alerts": Alerts(**alerts), "account": account, "region": region}


TOPIC = "arn:aws:sns:us-west-2:111122223333:ops"
SAML = {"idp_metadata_url": "https://idp.example.com/metadata", "admin_roles": ["admin"]}


def bought(name: str, zone: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, capacity=BLOCK.model_copy(update={"availability_zone": zone}))


def blocks(orchestrator: Orchestrator, *ids: str, count: int = 1) -> dict[str, Any]:
    groups = [
        Group(f"g{index}", count=count, capacity=Capacity(mode="capacity_block", capacity_reservation_id=id))
        for index, id in enumerate(ids)
    ]
    return {"orchestrator": orchestrator, "node_groups": groups, "slurm": None}


def spotty(orchestrator: Orchestrator, provisioning: str, mode: str = "spot") -> dict[str, Any]:
    given = {"node_provisioning": NodeProvisioning(provisioning), "capacity_mode": CapacityMode(mode)}
    return {"orchestrator": orchestrator, **given}


def fabric(instance_type: str) -> Group:
    return Group("g", instance_type=instance_type)


def plan(**changed: Any) -> dict[str, Any]:
    given = {
        "capacity_mode": CapacityMode.TRAINING_PLAN,
        "training_plan_arn": PLAN,
        "region": "us-west-2",
        "account": "111122223333",
    }
    return {**given, **changed}


def x02(
    capacity_mode: CapacityMode = CapacityMode.ON_DEMAND,
    placement_mode: PlacementMode = PlacementMode.AUTO,
    **changed: str,
) -> dict[str, Any]:
    given = {"placement_group_name": None}
    return {"capacity_mode": capacity_mode, "placement_mode": placement_mode, **given, **changed}


def zones(*names: str, **changed: Any) -> dict[str, Any]:
    return {
        "cidr": "10.20.0.0/16",
        "availability_zones": names,
        "primary": names[0],
        "subnets": SLOTS,
        "vpc": None,
        **changed,
    }


# rule, what passes, what does not, and the text of the finding
def subnet(id: str, zone: str, cidr: str) -> ExistingSubnet:
    return ExistingSubnet(id=f"subnet-{id:0>17}", availability_zone=zone, cidr=cidr, route_table_id=f"rtb-{id:0>17}")


EVENT = DataRepositoryEvent
ZFS = OpenZfsDeploymentType
LINK = DataRepositoryAssociation(path="/c", auto_export=["new"])
VPC = ExistingVpc(
    id="vpc-0123456789abcdef0",
    cidr="10.0.0.0/16",
    private_subnets=(subnet("1", "usw2-az1", "10.0.0.0/20"), subnet("2", "usw2-az2", "10.0.16.0/20")),
)
FILE_SYSTEM = ExistingLustre(
    file_system_id="fs-0123456789abcdef0",
    dns_name="fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com",
    mount_name="abcd1234",
    security_group_id="sg-0123456789abcdef0",
    availability_zone="usw2-az2",
)
STANDS = {
    "existing": FILE_SYSTEM,
    "region": "us-west-2",
    "vpc_given": True,
    "efa_enabled": False,
    "efa_security_group_given": False,
}


def budget(*names: str, **more: Any) -> dict[str, Any]:
    email = tuple(f"{name}@example.com" for name in names or "a")
    return {"monthly_usd": 1000.0, "email": email, "tagged": True, **more}


def served(
    *nodes: tuple[str, str, int, int],
    zones: Mapping[str, str] | None = None,
    orchestrator: Orchestrator = Orchestrator.EKS,
    tiered: bool = False,
    collected: bool = True,
    **keys: Any,
) -> dict[str, Any]:
    """An endpoint, on nodes that are told as name, type, count and EFA interfaces."""
    given = {
        "name": "chat",
        "server": "vllm",
        "image": "a/b:v1",
        "model": {"path": "/m"},
        "accelerators_per_replica": 8,
    }
    endpoint = Endpoint.model_validate({**given, **keys})
    return {
        **{name: getattr(endpoint, name) for name in Endpoint.model_fields},
        "endpoint": endpoint,
        "nodes": [ServedNodes(*one) for one in nodes or [("gpu", "p5en.48xlarge", 4, 16)]],
        "zones": zones or {},
        "types": TYPES,
        "orchestrator": orchestrator,
        "tiered_storage_on": tiered,
        "metrics_collected": collected,
        "model_store_given": False,
        "lustre_given": True,
        "region": "us-west-2",
        "account": "111122223333",
    }


def on_hyperpod(*nodes: tuple[str, str, int, int], **keys: Any) -> dict[str, Any]:
    return served(*nodes, orchestrator=Orchestrator.HYPERPOD_EKS, **keys)


def together(*counts: int, count: int = 4, scaling: dict[str, Any] | None = None) -> dict[str, Any]:
    """Endpoints of so many replicas of a node each, or scaled up to that many."""
    given = served()["endpoint"]
    told = [{"min": 1, "max": number} if scaling else number for number in counts]
    endpoints = [
        Endpoint.model_validate(
            {**given.model_dump(exclude_unset=True), "name": f"chat-{at}", "replicas": one, "autoscaling": scaling}
            if scaling
            else {**given.model_dump(exclude_unset=True), "name": f"chat-{at}", "replicas": one}
        )
        for at, one in enumerate(told)
    ]
    return {"endpoints": endpoints, "nodes": [ServedNodes("gpu", "p5en.48xlarge", count, 16)], "types": TYPES}


def ground(
    cluster: str = "own", orchestrator: str = "eks", training: str | None = None, *given: str, **kubernetes: Any
) -> dict[str, Any]:
    return {
        "cluster": ServingCluster(cluster),
        "orchestrator": Orchestrator(orchestrator),
        "given": given,
        "training": Orchestrator(training) if training else None,
        "kubernetes": Kubernetes.model_validate(kubernetes) if kubernetes else None,
    }


def named(name: str) -> Endpoint:
    return served()["endpoint"].model_copy(update={"name": name})  # type: ignore[no-any-return]


def halves_of(count: int, *sizes: int) -> dict[str, Any]:
    """Endpoints of so many accelerators each, one replica, on nodes of eight."""
    endpoints = [
        Endpoint.model_validate(
            {
                **served()["endpoint"].model_dump(exclude_unset=True),
                "name": f"chat-{at}",
                "accelerators_per_replica": size,
            }
        )
        for at, size in enumerate(sizes)
    ]
    return {"endpoints": endpoints, "nodes": [ServedNodes("gpu", "p5en.48xlarge", count, 16)], "types": TYPES}


KEY_OF_MODELS = "arn:aws:kms:us-west-2:111122223333:key/0a1b2c3d-0000-4000-8000-0123456789ab"
HEADS = {"layers": 80, "kv_heads": 8, "head_dim": 128}
SPLIT = {"prefill": {"node_group": "gpu"}, "decode": {"node_group": "more"}}
TWO_GROUPS = (("gpu", "p5en.48xlarge", 4, 16), ("more", "p5en.48xlarge", 4, 16))
QUEUE = {"metric": "waiting_requests", "target": "8"}
LARGE = {"path": "/m", "parameters_billion": "671", "precision": "bf16"}
TLS = {"certificate_arn": "arn:aws:acm:us-west-2:111122223333:certificate/0a1b2c3d"}
ROUTED = {"prefill_decode": SPLIT, "router_image": "a/r:v1"}


CASES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("FMB-84", closed(serving=True, **MIRRORED), closed(serving=True), "training.kubernetes.chart_registry: is not given, and a closed network reaches no public charts"),
    ("FMB-137", budget(), budget(monthly_usd=0.0), "monthly_usd: 0 is no limit"),
    ("FMB-137", budget(*"abcdefghij"), budget(*"abcdefghijk"), "email: 11 addresses: a budget tells 1 to 10"),
    ("FMB-137", budget("a"), {**budget(), "email": ()}, "email: 0 addresses"),
    ("FMB-137", budget("a", "b"), budget("a", "b", "a"), "email[2]: a@example.com is named twice"),
    ("FMB-137", budget(), budget(tagged=False), "is given, and neither training nor inference"),
    ("FMB-117", ground(), ground(orchestrator="pcs"), "orchestrator: pcs runs no endpoints"),
    ("FMB-117", ground("training", "eks", "eks"), ground("training", "eks", "hyperpod-slurm"), "cluster: training, but training.orchestrator is hyperpod-slurm"),
    ("FMB-117", ground("training", "eks", "hyperpod-eks", "endpoints"), ground("training"), "cluster: training, which is not given"),
    ("FMB-117", ground("own", "eks", None, "node_groups"), ground("training", "eks", "eks", "node_groups"), "node_groups: is not read with cluster: training; leave it out: write training: {node_groups: …}"),
    ("FMB-144", {"endpoints": [served()["endpoint"]]}, {"endpoints": []}, "endpoints: is empty: what is made serves nothing, and bills"),
    ("FMB-118", {"training_groups": {"gpu"}, "inference_groups": ["serve"]}, {"training_groups": {"gpu"}, "inference_groups": ["serve", "gpu"]}, "inference.node_groups[1].name: gpu is a group of training too"),
    ("FMB-119", together(1, 1), {"endpoints": [served()["endpoint"]] * 2}, "endpoints[1].name: chat is named twice"),
    *[
        ("FMB-119", {"endpoints": [named("chat"), named(right)]}, {"endpoints": [named("chat"), named(wrong)]}, f"endpoints[1].name: {wrong} is {said}")
        for right, wrong, said in (
            ("chat-routers", "chat-router", "also what a part of chat is called"),
            ("chat-serving", "chat-server-group", "also what a part of chat is called"),
            ("defaults", "default", "a name of Kubernetes' own"),
        )
    ],
    ("FMB-120", served(), served(node_group="cpu"), "node_group: cpu is no group that endpoints run on; known here: gpu"),
    ("FMB-120", served(*TWO_GROUPS, node_group="more"), served(*TWO_GROUPS), "node_group: is required: several groups have accelerators; known here: gpu, more"),
    ("FMB-120", served(), served(("gpu", "p5en.48xlarge", 4, 16), ("cpu", "m7i.xlarge", 4, 0), node_group="cpu"), "node_group: cpu is of m7i.xlarge, which has no accelerators"),
    ("FMB-120", served(), served(accelerators_per_replica=9), "accelerators_per_replica: 9 on 1 node, and p5en.48xlarge has 8"),
    ("FMB-120", served(nodes_per_replica=2, accelerators_per_replica=16), served(nodes_per_replica=2, accelerators_per_replica=9), "9 cannot be shared among 2 nodes"),
    ("FMB-120", served(nodes_per_replica=2, accelerators_per_replica=16), served(nodes_per_replica=2, accelerators_per_replica=8), "8 on 2 nodes leaves accelerators of p5en.48xlarge over; write 16"),
    ("FMB-120", served(tensor_parallel_size=4), served(tensor_parallel_size=3), "tensor_parallel_size: 3 does not divide the 8 accelerators"),
    ("FMB-120", served(("trn", "trn2.48xlarge", 1, 16), server="own"), served(("trn", "trn2.48xlarge", 1, 16)), "server: vllm, whose command line is written for NVIDIA's, and trn2.48xlarge has others"),
    ("FMB-120", on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT), on_hyperpod(*TWO_GROUPS, prefill_decode={**SPLIT, "decode": {"node_group": "more", "accelerators_per_replica": 9}}), "prefill_decode.decode.accelerators_per_replica: 9 on 1 node"),
    ("FMB-120", served(), served(("cpu", "m7i.xlarge", 4, 0)), "node_group: no group has accelerators; add one that has some"),
    ("FMB-121", served(model={"path": "/m/run-7"}), served(model={"path": "/m/../etc"}), "model.path: /m/../etc is no folder of the file system"),
    ("FMB-121", served(model={"path": "/m"}), served(model={"path": "m"}), "model.path: m is no folder of the file system"),
    ("FMB-121", served(model={"bucket": "b-1", "kms_key_arn": KEY_OF_MODELS}), served(model={"bucket": "b-1", "kms_key_arn": "alias/x"}), "model.kms_key_arn: alias/x is not the ARN of a key"),
    ("FMB-121", served(), served(model={}), "model: takes one of store, path and bucket, not none"),
    ("FMB-121", served(), served(model={"path": "/m", "bucket": "b"}), "model: takes one of store, path and bucket, not path and bucket"),
    ("FMB-121", {**served(model={"store": "a/v1"}), "model_store_given": True}, served(model={"store": "a/v1"}), "model.store: a/v1, and the project has no model store"),
    ("FMB-121", served(), {**served(), "lustre_given": False}, "model.path: /m, and the project has no Lustre file system"),
    ("FMB-121", served(model={"bucket": "b-1", "prefix": "x/"}), served(model={"path": "/m", "prefix": "x/"}), "model.prefix: is not read without bucket"),
    ("FMB-121", served(model={"bucket": "my-models"}), served(model={"bucket": "My_Models"}), "model.bucket: My_Models "),
    ("FMB-121", served(model={"bucket": "b-1", "kms_key_arn": KEY_OF_MODELS}), served(model={"path": "/m", "kms_key_arn": KEY_OF_MODELS}), "model.kms_key_arn: is not read without bucket"),
    ("FMB-121", served(model={"path": "/m", "kv_cache": {"layers": 1, "kv_heads": 1, "head_dim": 1}}), served(model={"path": "/m", "kv_cache": {"layers": 1, "kv_heads": 1}}), "model.kv_cache: takes kv_heads and head_dim, or latent_dim"),
    ("FMB-121", served(model={"path": "/m", "kv_cache": {"layers": 1, "latent_dim": 1}}), served(model={"path": "/m", "kv_cache": {"layers": 1, "latent_dim": 1, "kv_heads": 1, "head_dim": 1}}), "model.kv_cache: takes kv_heads and head_dim, or latent_dim"),
    ("FMB-122", served(nodes_per_replica=2, accelerators_per_replica=16), served(("gpu", "p5en.48xlarge", 4, 0), nodes_per_replica=2, accelerators_per_replica=16), "nodes_per_replica: the nodes of gpu, p5en.48xlarge, have no EFA: they would talk over TCP"),
    ("FMB-122", on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT, zones={"gpu": "usw2-az1", "more": "usw2-az1"}), on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT, zones={"gpu": "usw2-az1", "more": "usw2-az2"}), "prefill_decode: the halves stand in usw2-az1 and usw2-az2, and EFA traffic does not leave its zone"),
    ("FMB-122", on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT), on_hyperpod(("gpu", "p5en.48xlarge", 4, 16), ("more", "g5.48xlarge", 4, 0), prefill_decode=SPLIT), "prefill_decode: the nodes of more, g5.48xlarge, have no EFA"),
    ("FMB-123", on_hyperpod(kv_cache_tiers=["tiered_storage"], tiered=True), on_hyperpod(kv_cache_tiers=["tiered_storage"]), "kv_cache_tiers: tiered_storage, which the cluster has not switched on"),
    ("FMB-123", served(), served(kv_cache_tiers=["tiered_storage"]), "kv_cache_tiers: tiered_storage is HyperPod's, and the orchestrator is eks"),
    ("FMB-123", on_hyperpod(kv_cache_tiers=["cpu"]), on_hyperpod(kv_cache_tiers=["cpu", "cpu"]), "kv_cache_tiers: cpu, cpu names a tier twice"),
    ("FMB-123", on_hyperpod(kv_cache_tiers=["redis"], kv_cache_redis_url="redis://a:6379"), on_hyperpod(kv_cache_tiers=["redis"]), "kv_cache_redis_url: is required with tier redis"),
    ("FMB-123", on_hyperpod(), on_hyperpod(kv_cache_redis_url="redis://a:6379"), "kv_cache_redis_url: is not read without tier redis"),
    ("FMB-123", on_hyperpod(kv_cache_tiers=["tiered_storage"], tiered=True), on_hyperpod(kv_cache_tiers=["tiered_storage", "redis"], kv_cache_redis_url="redis://a", tiered=True), "kv_cache_tiers: tiered_storage and redis are both the second tier"),
    ("FMB-123", on_hyperpod(kv_cache_tiers=["cpu"]), on_hyperpod(kv_cache_tiers=["cpu"], server="sglang"), "kv_cache_tiers: cpu, which is for containers of vLLM here, and the server is sglang"),
    ("FMB-123", served(kv_cache_tiers=["cpu"], kv_cache_cpu_gib=64), served(kv_cache_tiers=["redis"], kv_cache_redis_url="redis://a"), "kv_cache_tiers: redis is set up by HyperPod's operator only"),
    ("FMB-123", served(kv_cache_tiers=["cpu"], kv_cache_cpu_gib=64), served(kv_cache_tiers=["cpu"]), "kv_cache_cpu_gib: is required with tier cpu on eks"),
    ("FMB-123", served(), served(kv_cache_cpu_gib=64), "kv_cache_cpu_gib: is read with tier cpu on eks only"),
    ("FMB-123", served(kv_cache_tiers=["cpu"], kv_cache_cpu_gib=768), served(kv_cache_tiers=["cpu"], kv_cache_cpu_gib=769), "kv_cache_cpu_gib: 769 of the 2,048 GiB that go with 8 accelerators of p5en.48xlarge; 768 is the most"),
    ("FMB-123", served(*TWO_GROUPS, **ROUTED, server="sglang", kv_cache_tiers=["cpu"], kv_cache_cpu_gib=64), served(*TWO_GROUPS, **ROUTED, kv_cache_tiers=["cpu"], kv_cache_cpu_gib=64), "kv_cache_tiers: cpu, which takes the place of what carries keys and values"),
    ("FMB-124", served(model={**LARGE, "precision": "fp8"}), served(model=LARGE), "accelerators_per_replica: 8 × H200 hold 90% of 1,128 GiB, and the weights are 1,250 GiB at bf16; take more accelerators, or a smaller precision"),
    ("FMB-124", served(), served(accelerators_per_replica=1, model={**LARGE, "parameters_billion": "70"}), "1 × H200 hold 90% of 141 GiB, and the weights are 130 GiB"),
    ("FMB-124", served(), served(model={**LARGE, "parameters_billion": 70e9}), "model.parameters_billion: 8 × H200 hold 90% of 1,128 GiB, and the weights are 130,385,160,446 GiB at bf16; write billions: 70.6 for a model of 70.6 billion"),
    ("FMB-124", served(), served(accelerator_memory_share=0.1, model={**LARGE, "parameters_billion": 70.6}), "hold 10% of 1,128 GiB, and the weights are 132 GiB at bf16; raise accelerator_memory_share, or take more accelerators"),
    ("FMB-124", served(server="sglang"), served(server="sglang", model=LARGE), "8 × H200 hold 1,128 GiB, and the weights are 1,250 GiB"),
    ("FMB-124", served(nodes_per_replica=2, accelerators_per_replica=16, model=LARGE), on_hyperpod(*TWO_GROUPS, prefill_decode={**SPLIT, "decode": {"node_group": "more", "accelerators_per_replica": 4}}, model={**LARGE, "precision": "fp8"}), "prefill_decode.decode.accelerators_per_replica: 4 × H200"),
    ("FMB-125", served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE), served(replicas={"min": 1, "max": 4}), "replicas: 1 to 4, and nothing says when"),
    ("FMB-125", served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE), served(replicas=2, autoscaling=QUEUE), "replicas: from 2 to 2 there is nothing to scale"),
    ("FMB-125", served(replicas=1), served(replicas={"min": 0, "max": 0} | {"max": 1}), "replicas: 0 to 1, and nothing says when"),
    ("FMB-125", served(replicas=1), served(replicas={"min": 3, "max": 2}), "replicas: min 3 is more than max 2"),
    ("FMB-125", served(replicas={"min": 0, "max": 4}, autoscaling={"metric": "query", "target": "1", "query": "x"}), served(replicas={"min": 0, "max": 4}, autoscaling=QUEUE), "replicas.min: 0, and without a replica there is no waiting_requests: the first would never start"),
    ("FMB-135", served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE), served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE, collected=False), "autoscaling: waiting_requests is read from the metrics workspace, and nobody writes it there; write observability: {collector: agents}"),
    ("FMB-135", on_hyperpod(replicas={"min": 1, "max": 4}, autoscaling=QUEUE), on_hyperpod(replicas={"min": 1, "max": 4}, autoscaling=QUEUE, collected=False), "add observability to the cluster's kubernetes.hyperpod_add_ons"),
    ("FMB-125", served(replicas={"min": 1, "max": 4}, autoscaling={"metric": "query", "target": "1", "query": "x"}), served(replicas={"min": 1, "max": 4}, autoscaling={"metric": "query", "target": "1"}), "autoscaling.query: is required with metric query"),
    ("FMB-125", served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE), served(replicas={"min": 1, "max": 4}, autoscaling={**QUEUE, "query": "x"}), "autoscaling.query: is read with metric query only"),
    ("FMB-125", served(replicas={"min": 1, "max": 4}, autoscaling={"metric": "kv_cache_usage", "target": "1"}), served(replicas={"min": 1, "max": 4}, autoscaling={"metric": "kv_cache_usage", "target": "80"}), "autoscaling.target: 80 is more than 1, which is a full cache"),
    ("FMB-125", served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE), served(replicas={"min": 1, "max": 4}, autoscaling=QUEUE, server="own"), "autoscaling.metric: waiting_requests is a metric of vLLM and SGLang"),
    ("FMB-125", on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT), on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT, replicas=2), "replicas: is not read beside prefill_decode"),
    ("FMB-125", served(*TWO_GROUPS, router_image="a/r:v1", prefill_decode={**SPLIT, "decode": {"node_group": "more", "replicas": {"min": 1, "max": 2}, "autoscaling": QUEUE}}), on_hyperpod(*TWO_GROUPS, prefill_decode={**SPLIT, "decode": {"node_group": "more", "replicas": {"min": 1, "max": 2}, "autoscaling": QUEUE}}), "prefill_decode.decode.autoscaling.metric: waiting_requests does not say of which half it is on HyperPod"),
    ("FMB-126", on_hyperpod(routing="session"), served(routing="session", router_image="a/r:v1"), "routing: session is HyperPod's; use prefix_aware or round_robin, or hyperpod-eks"),
    ("FMB-126", served(routing="prefix_aware", router_image="a/r:v1"), served(routing="prefix_aware"), "router_image: is required with routing and prefill_decode; name an image with vllm-router in it"),
    ("FMB-126", served(routing="prefix_aware", router_image="a/r:v1", server="sglang"), served(routing="prefix_aware", server="sglang"), "name an image with sglang_router in it"),
    ("FMB-126", served(), served(router_image="a/r:v1"), "router_image: is not read without them"),
    ("FMB-126", served(), served(routing="round_robin", router_image="a/r:v1", server="own"), "routing: is for vLLM and SGLang, and the server is own"),
    ("FMB-126", on_hyperpod(invocation_path="v1/completions"), served(invocation_path="v1/completions"), "invocation_path: is read on hyperpod-eks only"),
    ("FMB-126", served(tls=TLS, load_balancer=True), served(tls=TLS), "tls: is not read without load_balancer"),
    ("FMB-126", on_hyperpod(), on_hyperpod(nodes_per_replica=2, accelerators_per_replica=16), "nodes_per_replica: 2, and a replica of HyperPod's operator stays on one node; use orchestrator eks"),
    ("FMB-126", on_hyperpod(), on_hyperpod(gdrcopy=True), "gdrcopy: is read on eks only"),
    ("FMB-126", served(load_balancer=True), on_hyperpod(load_balancer=True), "load_balancer: HyperPod's operator makes one for each endpoint"),
    ("FMB-126", on_hyperpod(port=1024), on_hyperpod(port=1023), "port: 1023 is below 1024, from which on the operator reads metrics"),
    ("FMB-126", on_hyperpod(routing="prefix_aware"), on_hyperpod(routing="prefix_aware", server="sglang"), "routing: is for containers of vLLM, and the server is sglang"),
    ("FMB-126", on_hyperpod(routing="kv_aware", invocation_path="v1/completions"), on_hyperpod(routing="kv_aware"), "invocation_path: v1/chat/completions cannot be routed by kv_aware"),
    ("FMB-127", on_hyperpod(*TWO_GROUPS, prefill_decode=SPLIT), on_hyperpod(("gpu", "p4d.24xlarge", 4, 4), ("more", "p5en.48xlarge", 4, 16), prefill_decode=SPLIT), "prefill_decode: p4d.24xlarge is not listed for prefill and decode: p5.48xlarge"),
    ("FMB-127", served(*TWO_GROUPS, **ROUTED), served(("gpu", "p4d.24xlarge", 4, 4), ("more", "p5en.48xlarge", 4, 16), **ROUTED), "prefill_decode: the EFA of p4d.24xlarge has no remote writes"),
    ("FMB-128", together(4), together(5), "endpoints[0].replicas: chat-0 takes 5 nodes of gpu at least, which has 4"),
    ("FMB-128", together(4), together(10**9), "endpoints[0].replicas: chat-0 takes 1,000,000,000 nodes of gpu at least, which has 4"),
    ("FMB-128", halves_of(3, 7, 5, 3, 1), halves_of(2, 7, 5, 4, 1), "take 3 nodes of gpu at least, which has 2"),
    ("FMB-128", together(2, 2), together(2, 3), "endpoints: chat-0, chat-1 take 5 nodes of gpu at least, which has 4"),
    # A pod stands on one node: what is left of two nodes is no third place.
    ("FMB-128", halves_of(3, 6, 6, 6, 2, 2, 2), halves_of(3, 6, 6, 6, 6), "endpoints: chat-0, chat-1, chat-2, chat-3 take 4 nodes of gpu at least, which has 3"),
    ("FMB-129", together(4, scaling=QUEUE), together(5, scaling=QUEUE), "endpoints[0].replicas: chat-0 takes 5 nodes of gpu at most, which has 4"),
    ("FMB-130", ground("own", "hyperpod-eks", None, hyperpod_add_ons=["observability"]), ground("own", "hyperpod-eks", None, hyperpod_add_ons=["task_governance"]), "kubernetes.hyperpod_add_ons: task_governance is for teams"),
    *[
        ("FMB-131", {"image": right}, {"image": wrong}, f"image: {wrong} changes under its name")
        for right, wrong in (("a/b:v1", "a/b"), ("host:5000/a/b:v1", "host:5000/a/b"), ("a/b@sha256:00", "a/b:latest"))
    ],
    ("FMB-132", served(tls=TLS), served(tls={"certificate_arn": "arn:aws:iam::111122223333:server-certificate/x"}), "tls.certificate_arn: arn:aws:iam::111122223333:server-certificate/x is not the ARN of a certificate"),
    ("FMB-132", served(tls=TLS), served(tls={"certificate_arn": TLS["certificate_arn"].replace("us-west-2", "us-east-1")}), "tls.certificate_arn: the certificate is of us-east-1, the load balancer of us-west-2"),
    ("FMB-132", on_hyperpod(tls={**TLS, "domain_name": "a.example.com"}), on_hyperpod(tls=TLS), "tls.domain_name: is required by HyperPod"),
    ("FMB-132", on_hyperpod(tls={**TLS, "domain_name": "a.example.com", "hosted_zone_id": "Z0123456789"}), on_hyperpod(tls={**TLS, "domain_name": "a.example.com", "hosted_zone_id": "example.com"}), "tls.hosted_zone_id: example.com is not the id of a hosted zone"),
    ("FMB-132", served(tls=TLS), served(tls={**TLS, "hosted_zone_id": "Z0123456789"}), "tls.hosted_zone_id: is read by HyperPod only"),
    ("FMB-132", served(tls={"certificate_arn": "arn:aws-us-gov:acm:us-west-2:111122223333:certificate/0a"}), on_hyperpod(tls={"certificate_arn": "arn:aws-us-gov:acm:us-west-2:111122223333:certificate/0a", "domain_name": "a.example.com"}), "is of a partition that HyperPod's operator does not take"),
    ("FMB-132", served(tls=TLS), served(tls={**TLS, "domain_name": "a.example.com"}), "tls.domain_name: is read by HyperPod only"),
    ("FMB-132", on_hyperpod(tls={**TLS, "domain_name": "a.example.com"}), on_hyperpod(tls={**TLS, "domain_name": "*.example.com"}), "tls.domain_name: *.example.com is no name of a host"),
    ("FMB-132", served(tls=TLS), served(tls={"certificate_arn": TLS["certificate_arn"].replace("1111", "4444")}), "tls.certificate_arn: the certificate is of account 444422223333, the load balancer of 111122223333"),
    ("FMB-138", served(model={"path": "/m", "parameters_billion": 8}), served(("gpu", "g6e.48xlarge", 1, 4), model={"path": "/m", "parameters_billion": 8}), "model.parameters_billion: the memory of g6e.48xlarge's accelerators is not known here"),
    ("FMB-138", served(("gpu", "g6e.48xlarge", 1, 4)), served(("gpu", "g6e.48xlarge", 1, 4), model={"path": "/m", "parameters_billion": 8}), "hbm_gib_total"),
    ("FMB-139", served(context_tokens=2_700_000, model={**LARGE, "parameters_billion": 70.6, "kv_cache": HEADS}), served(context_tokens=2_900_000, model={**LARGE, "parameters_billion": 70.6, "kv_cache": HEADS}), "context_tokens: 2,900,000 tokens, and the KV cache has room for 2,8"),
    *[
        ("FMB-140", served(args=["--enable-prefix-caching"], **more), served(args=["--trust-remote-code", *words], **more), f"args[1]: {words[0]} is written by fmblocks; leave it out, and write {key}")
        for words, key, more in (
            (["--port", "9000"], "port", {}),
            (["--tensor_parallel_size=4"], "accelerators_per_replica, nodes_per_replica and tensor_parallel_size", {}),
            (["-tp", "4"], "accelerators_per_replica, nodes_per_replica and tensor_parallel_size", {}),
            (["--max-model-len=1"], "context_tokens", {}),
            (["--context-length", "1"], "context_tokens", {"server": "sglang"}),
        )
    ],
    ("FMB-140", served(server="own", args=["--port", "9000"]), served(args=["--port", "9000"]), "args[0]: --port is written by fmblocks"),
    ("FMB-140", served(*TWO_GROUPS, **ROUTED), served(*TWO_GROUPS, **{**ROUTED, "prefill_decode": {**SPLIT, "decode": {"node_group": "more", "args": ["--port=1"]}}}), "prefill_decode.decode.args[0]: --port=1 is written by fmblocks"),
    *[
        ("FMB-141", served(image=right), served(image=wrong), f"image: {wrong} is no name of an image; it looks like registry/path/name:tag")
        for right, wrong in (
            ("vllm/vllm-openai:v0.33.0", "vLLM image:!!"),
            ("111122223333.dkr.ecr.us-west-2.amazonaws.com/team/a__b:1@sha256:" + "0a" * 32, "a/b@sha256:0"),
            ("host:5000/a/b.c-d:v1_2", "https://host/a:v1"),
        )
    ],
    ("FMB-141", served(**{**ROUTED, "router_image": "a/b:v1"}), served(**{**ROUTED, "router_image": "A:1"}), "router_image: A:1 is no name of an image"),
    ("FMB-142", served(model={"path": "/m", "kv_cache": HEADS}), served(accelerators_per_replica=6, model={"path": "/m", "kv_cache": HEADS}), "accelerators_per_replica: 6 ranks cannot share the 8 KV heads of the model evenly"),
    ("FMB-142", served(model={"path": "/m", "kv_cache": {**HEADS, "kv_heads": 2}}), served(accelerators_per_replica=6, tensor_parallel_size=3, model={"path": "/m", "kv_cache": HEADS}), "tensor_parallel_size: 3 ranks cannot share the 8 KV heads"),
    *[
        ("FMB-145", served(load_balancer=True, source_ranges=["10.0.0.0/8", "192.168.1.0/24"]), served(load_balancer=True, source_ranges=["10.0.0.0/8", wrong]), f"source_ranges[1]: {wrong} is no range; it looks like 10.0.0.0/8")
        for wrong in ("10.0.0.1/8", "office", "::/0")
    ],
    ("FMB-145", served(load_balancer=True), served(source_ranges=["10.0.0.0/8"]), "source_ranges: is read on eks, with load_balancer: true"),
    ("FMB-145", on_hyperpod(), on_hyperpod(source_ranges=["10.0.0.0/8"]), "source_ranges: is read on eks, with load_balancer: true"),
    ("FMB-136", served(environment={"A_B": "1"}), served(environment={"A B": "1"}), "environment.A B: A B is no name of a variable"),
    ("FMB-133", {"model_store": ModelStore(lustre_path="/models"), "lustre_given": True}, {"model_store": ModelStore(lustre_path="/models"), "lustre_given": False}, "model_store.lustre_path: /models, and the project has no Lustre file system"),
    ("NET-01", {"cidr": "10.0.0.0/28", "vpc": VPC}, {"cidr": "10.0.0.0/29", "vpc": VPC}, "vpc.cidr: 10.0.0.0/29 is smaller than a VPC can be; the smallest is a /28"),
    *[
        ("FMB-63", {"deployment_type": kind, "throughput_capacity_mbps": size}, {"deployment_type": kind, "throughput_capacity_mbps": size + off}, f"throughput_capacity_mbps: {size + off} MB/s is not sold for {kind}")
        for kinds, sizes in (
            ((ZFS.SINGLE_AZ_1, ZFS.SINGLE_AZ_HA_1), (64, 128, 256, 512, 1024, 2048, 3072, 4096)),
            ((ZFS.SINGLE_AZ_2, ZFS.SINGLE_AZ_HA_2), (160, 320, 640, 1280, 2560, 3840, 5120, 7680, 10240)),
        )
        for kind in kinds
        for size in sizes
        for off in (-1, 1)
    ],
    ("FMB-63", {"deployment_type": ZFS.SINGLE_AZ_HA_2, "throughput_capacity_mbps": 160}, {"deployment_type": ZFS.MULTI_AZ_1, "throughput_capacity_mbps": 160}, "deployment_type: multi_az_1 spans two zones, and nodes stand in one; use single_az_ha_2"),
    ("FMB-64", {"deployment_type": ZFS.SINGLE_AZ_1, "throughput_capacity_mbps": 64}, {"deployment_type": ZFS.SINGLE_AZ_HA_1, "throughput_capacity_mbps": 64}, "64 MB/s is allowed for single_az_ha_1 by the API's text, and not by the guide; take 128"),
    ("FMB-75", {"deployment_type": ZFS.SINGLE_AZ_1, "region": "ap-east-1"}, {"deployment_type": ZFS.SINGLE_AZ_HA_2, "region": "ap-east-1"}, "deployment_type: single_az_ha_2 is not listed for ap-east-1; check, or use single_az_ha_1"),
    ("FMB-75", {"deployment_type": ZFS.SINGLE_AZ_HA_2, "region": "us-west-2"}, {"deployment_type": ZFS.SINGLE_AZ_HA_1, "region": "us-west-2"}, "single_az_ha_1 is not listed for us-west-2; check, or use single_az_ha_2"),
    ("FMB-75", {"deployment_type": ZFS.SINGLE_AZ_HA_2, "region": None}, {"deployment_type": ZFS.SINGLE_AZ_2, "region": "ap-northeast-3"}, "single_az_2 is not listed"),
    ("FMB-65", {"capacity_gib": 64}, {"capacity_gib": 63}, "capacity_gib: 63 GiB is not between 64 and 524288"),
    ("FMB-65", {"capacity_gib": 524288}, {"capacity_gib": 524289}, "524289 GiB is not between"),
    ("FMB-66", {"deployment_type": ZFS.SINGLE_AZ_2, "capacity_gib": 100, "iops": 300}, {"deployment_type": ZFS.SINGLE_AZ_2, "capacity_gib": 100, "iops": 299}, "iops: 299 is not between 300 and 100000 for 100 GiB of single_az_2"),
    ("FMB-66", {"deployment_type": ZFS.SINGLE_AZ_1, "capacity_gib": 1000, "iops": 160000}, {"deployment_type": ZFS.SINGLE_AZ_1, "capacity_gib": 1000, "iops": 160001}, "160001 is not between 3000 and 160000"),
    ("FMB-66", {"deployment_type": ZFS.SINGLE_AZ_HA_2, "capacity_gib": 1000, "iops": 400000}, {"deployment_type": ZFS.SINGLE_AZ_HA_2, "capacity_gib": 1000, "iops": 400001}, "400001 is not between 3000 and 400000"),
    ("FMB-66", {"deployment_type": ZFS.SINGLE_AZ_HA_2, "capacity_gib": 100, "iops": None}, {"deployment_type": ZFS.SINGLE_AZ_HA_2, "capacity_gib": 100, "iops": 100001}, "100001 is not between 300 and 100000"),
    ("FMB-67", {"mount_path": "/home", "lustre_mount_path": "/fsx"}, {"mount_path": "home", "lustre_mount_path": "/fsx"}, "mount_path: home is no plain path below /; write /home"),
    ("FMB-67", {"mount_path": "/export/home", "lustre_mount_path": None}, {"mount_path": "/usr/home", "lustre_mount_path": None}, "/usr/home is in the way of /usr"),
    ("FMB-67", {"mount_path": "/var/home", "lustre_mount_path": None}, {"mount_path": "/var", "lustre_mount_path": None}, "/var is in the way of /var"),
    ("FMB-67", {"mount_path": "/home", "lustre_mount_path": "/fsx"}, {"mount_path": "/fsx/home", "lustre_mount_path": "/fsx"}, "/fsx/home and /fsx of Lustre lie inside each other"),
    ("FMB-68", {"automatic_backup_retention_days": 90}, {"automatic_backup_retention_days": 91}, "automatic_backup_retention_days: 91 is not between 0 and 90"),
    ("FMB-68", {"automatic_backup_retention_days": 0}, {"automatic_backup_retention_days": -1}, "-1 is not between 0 and 90"),
    ("FMB-57", {**STANDS, "region": None}, {**STANDS, "region": "eu-west-1"}, "existing.dns_name: fs-0123456789abcdef0.fsx.us-west-2.amazonaws.com is not in eu-west-1"),
    ("FMB-57", STANDS, {**STANDS, "existing": FILE_SYSTEM.model_copy(update={"file_system_id": "fs-0123456789abcdef1"})}, "is the name of fs-0123456789abcdef0, not of fs-0123456789abcdef1"),
    ("FMB-76", {"alerts": Alerts(email=("a@example.com",))}, {"alerts": Alerts(email=("a@example.com",), topic_arn=TOPIC)}, "alerts.email: a@example.com would hear nothing"),
    ("FMB-76", {"alerts": None}, {"alerts": Alerts(email=("a@example.com", "b@example.com"), topic_arn=TOPIC)}, "a@example.com, b@example.com would hear nothing"),
    ("FMB-77", {"bucket": "data", "given": {"bucket", "bucket_region"}, "bucket_region": "us-east-1"}, {"bucket": None, "given": {"bucket_region"}, "bucket_region": "us-east-1"}, "bucket_region: is about a bucket that is there, and the association gets one of its own"),
    ("FMB-77", {"bucket": None, "given": set(), "bucket_region": None}, {"bucket": "data", "given": {"bucket_region"}, "bucket_region": "eu-middle-1"}, "bucket_region: eu-middle-1 is not an AWS region"),
    ("FMB-61", {"release": Release(days_since_last_access=1, schedule="cron(59 23 * * ? *)"), "data_repository_associations": [LINK]}, {"release": Release(days_since_last_access=1, schedule="cron(60 23 * * ? *)"), "data_repository_associations": [LINK]}, "release.schedule: cron(60 23 * * ? *) has no minute 60: the last is 59"),
    ("FMB-61", {"release": Release(days_since_last_access=1, schedule="cron(0 */6 * * ? *)"), "data_repository_associations": [LINK]}, {"release": Release(days_since_last_access=1, schedule="cron(0 24 * * ? *)"), "data_repository_associations": [LINK]}, "has no hour 24: the last is 23"),
    ("FMB-61", {"release": Release(days_since_last_access=1, schedule="cron(0 3 1 * ? *)"), "data_repository_associations": [LINK]}, {"release": Release(days_since_last_access=1, schedule="cron(0 3 * * * *)"), "data_repository_associations": [LINK]}, "has to have ? for the day of the month or for that of the week"),
    ("FMB-52", {"endpoint_services": ["bedrock-runtime", "ssmmessages"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, {"endpoint_services": ["ecr-api"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, "ecr-api is no endpoint's name; did you mean ecr.api?"),
    ("FMB-69", {"noncurrent_version_days": 1, "intelligent_tiering_after_days": 0}, {"noncurrent_version_days": 0, "intelligent_tiering_after_days": None}, "noncurrent_version_days: 0 would leave nothing to bring back"),
    ("FMB-69", {"noncurrent_version_days": 7, "intelligent_tiering_after_days": None}, {"noncurrent_version_days": 7, "intelligent_tiering_after_days": -1}, "intelligent_tiering_after_days: -1 is no age"),
    ("FMB-58", {"deployment_type": P2, "backup_id": "backup-0123456789abcdef0"}, {"deployment_type": P2, "backup_id": "fs-1"}, "backup_id: fs-1 is no id of a backup; write one like backup-"),
    ("FMB-58", {"deployment_type": DeploymentType.SCRATCH_2, "backup_id": None}, {"deployment_type": DeploymentType.SCRATCH_2, "backup_id": "backup-0123456789abcdef0"}, "backup_id: scratch_2 cannot be made of a backup"),
    ("FMB-59", {"auto_export": [EVENT.NEW, EVENT.DELETED], "bucket_versioned": True}, {"auto_export": [EVENT.DELETED], "bucket_versioned": False}, "auto_export: deleted removes the object of every removed file, and the bucket is not known to keep versions"),
    ("FMB-59", {"auto_export": [EVENT.NEW, EVENT.CHANGED], "bucket_versioned": False}, {"auto_export": [EVENT.NEW, EVENT.DELETED], "bucket_versioned": False}, "or switch versioning on and write bucket_versioned: true"),
    ("FMB-60", {"auto_import": [], "bucket_region": "us-east-1", "region": "us-west-2"}, {"auto_import": [EVENT.NEW], "bucket_region": "us-east-1", "region": "us-west-2"}, "auto_import: the bucket is in us-east-1 and the file system in us-west-2: only auto_export crosses Regions"),
    ("FMB-60", {"auto_import": [EVENT.NEW], "bucket_region": None, "region": "us-west-2"}, {"auto_import": [EVENT.NEW], "bucket_region": "eu-west-1", "region": "us-west-2"}, "replicate the bucket to us-west-2"),
    ("FMB-61", {"release": Release(days_since_last_access=0), "data_repository_associations": [LINK]}, {"release": Release(days_since_last_access=7), "data_repository_associations": []}, "release: releases files that were exported, and no association has auto_export"),
    ("FMB-61", {"release": None, "data_repository_associations": []}, {"release": Release(days_since_last_access=-1), "data_repository_associations": [LINK]}, "release.days_since_last_access: -1 is less than 0"),
    ("FMB-61", {"release": Release(days_since_last_access=1, schedule="rate(12 hours)"), "data_repository_associations": [LINK]}, {"release": Release(days_since_last_access=1, schedule="0 3 * * *"), "data_repository_associations": [LINK]}, "release.schedule: 0 3 * * * is neither cron(…) with six fields nor rate(…)"),
    ("FMB-61", {"release": Release(days_since_last_access=1, schedule="cron(0 3 ? * MON *)"), "data_repository_associations": [LINK]}, {"release": Release(days_since_last_access=1, schedule="cron(0 3 * * ?)"), "data_repository_associations": [LINK]}, "cron(0 3 * * ?) is neither"),
    ("FMB-62", {"log_level": LustreLogLevel.WARN_ERROR, "log_group_name": "/aws/fsx/mine"}, {"log_level": LustreLogLevel.WARN_ERROR, "log_group_name": "/mine"}, "log_group: /mine does not begin with /aws/fsx"),
    ("FMB-62", {"log_level": LustreLogLevel.DISABLED, "log_group_name": None}, {"log_level": LustreLogLevel.DISABLED, "log_group_name": "/aws/fsx/mine"}, "log_group: is given, and log_level is disabled"),
    ("FMB-54", {"vpc": VPC, "given": {"vpc", "primary_availability_zone"}}, {"vpc": VPC, "given": {"vpc", "cidr"}}, "cidr: says how a VPC is made, and vpc names one that is there"),
    ("FMB-54", {"vpc": None, "given": {"cidr", "nat_gateways"}}, {"vpc": VPC, "given": {"nat_gateways"}}, "nat_gateways: says how a VPC is made"),
    ("FMB-55", {"vpc": VPC}, {"vpc": VPC.model_copy(update={"id": "vpc-main"})}, "vpc.id: vpc-main is no id; write one like vpc-0123456789abcdef0"),
    ("FMB-55", {"vpc": VPC.model_copy(update={"efa_security_group_id": "sg-01234567"})}, {"vpc": VPC.model_copy(update={"efa_security_group_id": "sg-0123"})}, "vpc.efa_security_group_id: sg-0123 is no id"),
    ("FMB-55", {"vpc": None}, {"vpc": VPC.model_copy(update={"private_subnets": ()})}, "vpc.private_subnets: names no subnet"),
    ("FMB-55", {"vpc": VPC}, {"vpc": VPC.model_copy(update={"private_subnets": (subnet("1", "a", "10.0.0.0/20"), subnet("2", "b", "10.0.8.0/24"))})}, "vpc.private_subnets[1].cidr: 10.0.8.0/24 overlaps 10.0.0.0/20 of subnet-00000000000000001"),
    ("FMB-55", {"vpc": VPC}, {"vpc": VPC.model_copy(update={"private_subnets": (subnet("1", "a", "10.0.0.1/20"),)})}, "vpc.private_subnets[0].cidr: 10.0.0.1/20 is no IPv4 network"),
    ("FMB-56", {"existing": FILE_SYSTEM, "given": {"existing", "mount_path", "efa_enabled"}}, {"existing": FILE_SYSTEM, "given": {"existing", "capacity_gib"}}, "capacity_gib: says how a file system is made, and existing names one that is there"),
    ("FMB-56", {"existing": None, "given": {"capacity_gib"}}, {"existing": FILE_SYSTEM, "given": {"version"}}, "version: says how"),
    ("FMB-57", STANDS, {**STANDS, "vpc_given": False}, "existing: fs-0123456789abcdef0 stands in a VPC that is there already, and the project makes another one; write network: {vpc: {id,"),
    ("FMB-57", {**STANDS, "existing": None, "vpc_given": False}, {**STANDS, "efa_enabled": True}, "efa_enabled: true, and a file system with EFA talks to the group of the fabric"),
    ("FMB-57", {**STANDS, "efa_enabled": True, "efa_security_group_given": True}, {**STANDS, "existing": FILE_SYSTEM.model_copy(update={"file_system_id": "my-fs"})}, "existing.file_system_id: my-fs is none; write one like fs-0123456789abcdef0"),
    ("FMB-57", STANDS, {**STANDS, "existing": FILE_SYSTEM.model_copy(update={"mount_name": "/fsx"})}, "existing.mount_name: /fsx is none"),
    ("FMB-57", STANDS, {**STANDS, "existing": FILE_SYSTEM.model_copy(update={"dns_name": "fsx.example.com"})}, "existing.dns_name: fsx.example.com is none"),
    ("FMB-57", STANDS, {**STANDS, "existing": FILE_SYSTEM.model_copy(update={"security_group_id": "default"})}, "existing.security_group_id: default is none"),
    ("NET-01", {"cidr": "10.0.0.0/20", "vpc": None}, {"cidr": "10.0.0.0/21", "vpc": None}, "cidr: 10.0.0.0/21 is too small for the subnets of six"),
    ("NET-01", {"cidr": "10.0.0.0/16", "vpc": None}, {"cidr": "10.0.0.0/15", "vpc": None}, "cidr: 10.0.0.0/15 is larger than the /16"),
    ("NET-01", {"cidr": "10.0.0.0/16", "vpc": None}, {"cidr": "10.0.0.1/16", "vpc": None}, "cidr: 10.0.0.1/16 is no IPv4 network"),
    (
        "FMB-01",
        {"availability_zones": ["usw2-az1", "us-west-2b"], "region": "us-west-2"},
        {"availability_zones": ["use1-az1"], "region": "us-west-2"},
        "availability_zones: use1-az1 is not a zone of region us-west-2",
    ),
    (
        "FMB-01",
        {"availability_zones": ["apne1-az4"], "region": "ap-northeast-1"},
        {"availability_zones": ["us-west-2-a"], "region": "us-west-2"},
        "us-west-2-a is neither a zone id (usw2-az1) nor a zone name",
    ),
    (
        "FMB-02",
        {"availability_zones": ["1", "2"], "region": None},
        {"availability_zones": ["usw2-az1"], "region": None},
        "usw2-az1 can only be used with a region",
    ),
    (
        "FMB-02",
        {"availability_zones": ["usw2-az1"], "region": "us-west-2"},
        {"availability_zones": ["1", "2"], "region": "us-west-2"},
        "a count (2) does not say which zones of us-west-2 are meant; list zone ids, for example [usw2-az1, usw2-az2]",
    ),
    (
        "FMB-03",
        {"availability_zones": ["usw2-az1", "usw2-az2"]},
        {"availability_zones": ["usw2-az1", "us-west-2b"]},
        "usw2-az1, us-west-2b mixes zone ids and zone names",
    ),
    (
        "FMB-04",
        {"availability_zones": ["a1", "a2"], "primary_availability_zone": "a1"},
        {"availability_zones": ["a1", "a2"], "primary_availability_zone": None},
        "primary_availability_zone: is not given, and a1, a2 are 2 zones",
    ),
    (
        "FMB-04",
        {"availability_zones": ["a1"], "primary_availability_zone": None},
        {"availability_zones": ["a1"], "primary_availability_zone": "a2"},
        "a2 is not one of availability_zones: a1",
    ),
    ("FMB-05", {"region": "us-west-2"}, {"region": "us-west-3"}, "region: us-west-3 is not an AWS region; did you mean"),
    (
        "FMB-06",
        zones("usw2-az1", "usw2-az6"),
        zones("usw2-az1", "usw2-az7"),
        "usw2-az7 has no fixed place in 10.20.0.0/16; check that the zone exists, then add network.subnets",
    ),
    (
        "FMB-06",
        zones("us-west-2-lax-1a", subnets={"us-west-2-lax-1a": ZoneAddresses(private="10.20.0.0/17", public="10.20.240.0/24")}),
        zones("us-west-2-lax-1a", subnets={"us-west-2-lax-1a": ZoneAddresses(private="10.21.0.0/17", public="10.20.240.0/24")}),
        "subnets.us-west-2-lax-1a.private: 10.21.0.0/17 is not inside the VPC, 10.20.0.0/16",
    ),
    (
        "FMB-06",
        zones("usw2-az1", "usw2-az2", subnets={"usw2-az2": ZoneAddresses(private="10.20.192.0/20", public="10.20.250.0/24")}),
        zones("usw2-az1", "usw2-az2", subnets={"usw2-az2": ZoneAddresses(private="10.20.16.0/20", public="10.20.250.0/24")}),
        "10.20.16.0/20 overlaps the private subnet of usw2-az1, 10.20.0.0/17",
    ),
    (
        "FMB-06",
        zones("usw2-az1"),
        zones("usw2-az1", subnets={"usw2-az3": ZoneAddresses(private="10.20.16.0/20", public="10.20.250.0/24")}),
        "subnets.usw2-az3: is not one of availability_zones",
    ),
    (
        "FMB-06",
        zones("usw2-az1", subnets={"usw2-az1": ZoneAddresses(private="10.20.0.0/28", public="10.20.250.0/28")}),
        zones("usw2-az1", subnets={"usw2-az1": ZoneAddresses(private="10.20.0.0/29", public="10.20.250.0/28")}),
        "10.20.0.0/29 is smaller than the /28 of a subnet",
    ),
    (
        "FMB-06",
        zones("usw2-az1"),
        zones("usw2-az1", subnets={"usw2-az1": ZoneAddresses(private="ten", public="10.20.250.0/28")}),
        "ten is no IPv4 network",
    ),
    (
        "FMB-07",
        {"nat_gateways": 2, "availability_zones": ["a", "b"], "primary": "a"},
        {"nat_gateways": 2, "availability_zones": ["a"], "primary": "a"},
        "nat_gateways: 2 is neither one NAT gateway nor one for each of 1 zone; write 1, or 0 for a closed network",
    ),
    ("FMB-07", {"nat_gateways": 3, "availability_zones": ["a", "b", "c"], "primary": "a"}, {"nat_gateways": 2, "availability_zones": ["a", "b", "c"], "primary": "a"}, "2 is neither one NAT gateway nor one for each of 3 zones; write 1 or 3, or 0 for a closed network"),
    ("FMB-07", {"nat_gateways": 0, "availability_zones": ["a", "b"], "primary": "us-west-2-lax-1a"}, {"nat_gateways": -1, "availability_zones": ["a"], "primary": "a"}, "-1 is neither one NAT gateway"),
    ("FMB-52", {"endpoint_services": ["ecr.api", "ssm"], "endpoint_availability_zones": ["a"], "availability_zones": ["a", "b"]}, {"endpoint_services": ["ecr"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, "endpoints.services: ecr is no endpoint's name; write ecr.api and ecr.dkr"),
    ("FMB-52", {"endpoint_services": [], "endpoint_availability_zones": [], "availability_zones": ["a"]}, {"endpoint_services": ["ssm"], "endpoint_availability_zones": [], "availability_zones": ["a"]}, "endpoints.availability_zones: names no zone"),
    ("FMB-52", {"endpoint_services": ["ssm"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, {"endpoint_services": ["ssm"], "endpoint_availability_zones": ["c"], "availability_zones": ["a", "b"]}, "c is not one of availability_zones: a, b; name zones of the network"),
    ("FMB-52", {"endpoint_services": ["ssm"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, {"endpoint_services": ["ssm", "ssm"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, "ssm stands twice"),
    ("FMB-52", {"endpoint_services": ["sagemaker.api"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, {"endpoint_services": ["com.amazonaws.us-west-2.sagemaker.api"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, "is a whole name; write the part behind the region: sagemaker.api"),
    ("FMB-52", {"endpoint_services": ["bedrock-runtime"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, {"endpoint_services": ["Bedrock Runtime"], "endpoint_availability_zones": ["a"], "availability_zones": ["a"]}, "Bedrock Runtime is no endpoint's name; write one like ecr.api"),
    ("FMB-53", {"nat_gateways": 1, "endpoint_services": [], "endpoint_availability_zones": ["usw2-az1"]}, {"nat_gateways": 0, "endpoint_services": [name for name in CLOSED_NETWORK_SERVICES if name != "sts"], "endpoint_availability_zones": ["usw2-az1"]}, "endpoints.services: no endpoint for sts, which nodes of a closed network may call"),
    ("FMB-53", {"nat_gateways": 0, "endpoint_services": CLOSED_NETWORK_SERVICES, "endpoint_availability_zones": ["usw2-az1"]}, {"nat_gateways": 1, "endpoint_services": ["ssm"], "endpoint_availability_zones": ["us-west-2-lax-1a"]}, "endpoints.availability_zones: us-west-2-lax-1a is a Local Zone, where nobody documents interface endpoints"),
    ("FMB-08", {"data_repository_associations": [link()]}, {"data_repository_associations": [link(bucket="My_Data")]}, "data_repository_associations[0].bucket: My_Data is no bucket name"),
    ("FMB-08", {"data_repository_associations": [link(bucket="a-b.c")]}, {"data_repository_associations": [link(bucket="s3://a")]}, "s3://a is an address, not a bucket name"),
    ("FMB-08", {"data_repository_associations": [link(bucket="abc")]}, {"data_repository_associations": [link(bucket="ab")]}, "3 to 63"),
    ("FMB-08", {"data_repository_associations": [link(bucket="a" * 63)]}, {"data_repository_associations": [link(bucket="a" * 64)]}, "3 to 63"),
    ("FMB-08", {"data_repository_associations": [link(bucket="a.b")]}, {"data_repository_associations": [link(bucket="a..b")]}, "two dots"),
    ("FMB-08", {"data_repository_associations": [link(bucket="abc")]}, {"data_repository_associations": [link(bucket="10.0.0.1")]}, "IP addresses"),
    ("FMB-08", {"data_repository_associations": [link(bucket="abc")]}, {"data_repository_associations": [link(bucket="xn--a")]}, "what S3 keeps for itself"),
    ("FMB-09", {"instance_type": "p5en.48xlarge", "types": TYPES}, {"instance_type": "p5em.48xlarge", "types": TYPES}, "did you mean p5e.48xlarge or p5en.48xlarge"),
    ("FMB-10", {"tags": {"a": "b" * 256}}, {"tags": {"a": "b" * 257}}, "tags.a: key of 1 and value of 257 characters: 1 to 128 and up to 256"),
    ("FMB-10", {"tags": {"a": "b"}}, {"tags": {"aws:a": "b"}}, "begins with aws:"),
    ("FMB-10", {"tags": {"a": "b"}}, {"tags": {"a": "b*"}}, "has characters that tags do not take"),
    ("FMB-10", {"tags": {"a": "b"}}, {"tags": {"fmblocks:project": "b"}}, "is set by fmblocks itself"),
    ("FMB-10", {"tags": {f"k{n}": "" for n in range(49)}}, {"tags": {f"k{n}": "" for n in range(50)}}, "50 are more than the 49"),
    (
        "FMB-12",
        {"node_provisioning": NodeProvisioning.CONTINUOUS, "volume_kms_key_given": True},
        {"node_provisioning": NodeProvisioning.STANDARD, "volume_kms_key_given": True},
        "volume_kms_key: cannot be used with node_provisioning standard",
    ),
    ("FMB-13", {"data_repository_associations": [link("/a b")]}, {"data_repository_associations": [link("/a b", None)]}, "/a b has characters or levels"),
    ("FMB-13", {"data_repository_associations": [link("/a/b", None)]}, {"data_repository_associations": [link("/a" * 9, None)]}, "has characters or levels"),
    ("FSX-02", {**SIZE, "deployment_type": P2, "capacity_gib": 2400}, {**SIZE, "deployment_type": P2, "capacity_gib": 3600}, "capacity_gib: 3600 GiB is not sold for persistent_2: 1200 GiB, or a multiple of 2400; nearest: 2400 and 4800"),
    ("FSX-02", {**SIZE, "deployment_type": S1, "capacity_gib": 3600}, {**SIZE, "deployment_type": S2, "capacity_gib": 3600}, "3600 GiB is not sold for scratch_2"),
    ("FSX-02", {**SIZE, "deployment_type": P2, "capacity_gib": 1200}, {**SIZE, "deployment_type": P2, "capacity_gib": 1000}, "nearest: 1200"),
    ("FSX-02", {**SIZE, "deployment_type": S1, "capacity_gib": 2400}, {**SIZE, "deployment_type": S1, "capacity_gib": 4800}, "1200 or 2400 GiB, or a multiple of 3600; nearest: 3600 and 7200"),
    ("FSX-03", {"storage_type": StorageType.SSD, "deployment_type": P2, "throughput_mbps_per_tib": 250}, {"storage_type": StorageType.SSD, "deployment_type": P2, "throughput_mbps_per_tib": 200}, "200 is not sold for persistent_2 ssd; take one of 125, 250, 500, 1000"),
    ("FSX-03", {"storage_type": StorageType.SSD, "deployment_type": P1, "throughput_mbps_per_tib": 200}, {"storage_type": StorageType.SSD, "deployment_type": P1, "throughput_mbps_per_tib": 250}, "take one of 50, 100, 200"),
    ("FSX-03", {"storage_type": StorageType.SSD, "deployment_type": S2, "throughput_mbps_per_tib": None}, {"storage_type": StorageType.SSD, "deployment_type": S2, "throughput_mbps_per_tib": 125}, "125 cannot be chosen for scratch_2"),
    ("FSX-03", {"storage_type": StorageType.SSD, "deployment_type": P2, "throughput_mbps_per_tib": 125}, {"storage_type": StorageType.SSD, "deployment_type": P2, "throughput_mbps_per_tib": None}, "throughput_mbps_per_tib: is required for persistent_2"),
    ("FSX-05", {"deployment_type": S2, "version": "2.10", "metadata_mode": None}, {"deployment_type": P2, "version": "2.10", "metadata_mode": None}, "2.10 is not offered for persistent_2"),
    ("FSX-05", {"deployment_type": P2, "version": "2.15", "metadata_mode": LustreMetadataMode.AUTOMATIC}, {"deployment_type": P2, "version": "2.12", "metadata_mode": LustreMetadataMode.AUTOMATIC}, "2.12 has no metadata configuration"),
    ("FSX-05", {"deployment_type": P1, "version": "2.12", "metadata_mode": None}, {"deployment_type": P1, "version": "2.14", "metadata_mode": None}, "2.14 is not a Lustre version of FSx"),
    ("FSX-07", {"storage_type": StorageType.SSD, "drive_cache_type": None, "deployment_type": P1, "kms_key_given": True}, {"storage_type": StorageType.SSD, "drive_cache_type": None, "deployment_type": S2, "kms_key_given": True}, "kms_key: scratch_2 takes no key"),
    ("FSX-11", {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED, "metadata_iops": 24000}, {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED, "metadata_iops": 18000}, "metadata.iops: 18000 is not sold"),
    ("FSX-11", {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED, "metadata_iops": 192000}, {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED, "metadata_iops": 204000}, "up to 192000"),
    ("FSX-11", {"deployment_type": P2, "metadata_mode": LustreMetadataMode.AUTOMATIC, "metadata_iops": None}, {"deployment_type": P2, "metadata_mode": LustreMetadataMode.AUTOMATIC, "metadata_iops": 1500}, "1500 cannot be chosen with mode automatic"),
    ("FSX-11", {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED, "metadata_iops": 1500}, {"deployment_type": P2, "metadata_mode": LustreMetadataMode.USER_PROVISIONED, "metadata_iops": None}, "is required with mode user_provisioned"),
    ("FSX-11", {"deployment_type": P1, "metadata_mode": None, "metadata_iops": None}, {"deployment_type": P1, "metadata_mode": LustreMetadataMode.AUTOMATIC, "metadata_iops": None}, "metadata: persistent_1 has no metadata configuration"),
    ("FSX-13", {"throughput_capacity_mbps": None, "deployment_type": P2, "efa_enabled": True, "capacity_gib": 9600, "throughput_mbps_per_tib": 500}, {"throughput_capacity_mbps": None, "deployment_type": P2, "efa_enabled": True, "capacity_gib": 4800, "throughput_mbps_per_tib": 500}, "4800 GiB cannot serve EFA at 500 MB/s per TiB: a multiple of 9600; take 9600"),
    ("FSX-13", {"throughput_capacity_mbps": None, "deployment_type": P2, "efa_enabled": True, "capacity_gib": 38400, "throughput_mbps_per_tib": 125}, {"throughput_capacity_mbps": None, "deployment_type": P2, "efa_enabled": True, "capacity_gib": 19200, "throughput_mbps_per_tib": 125}, "a multiple of 38400"),
    ("FSX-13", {"throughput_capacity_mbps": None, "deployment_type": S2, "efa_enabled": False, "capacity_gib": 1200, "throughput_mbps_per_tib": None}, {"throughput_capacity_mbps": None, "deployment_type": S2, "efa_enabled": True, "capacity_gib": 1200, "throughput_mbps_per_tib": None}, "efa_enabled: scratch_2 cannot serve EFA"),
    ("FMB-20", {"efa_enabled": True, "efa_security_group_given": True}, {"efa_enabled": True, "efa_security_group_given": False}, "efa_security_group: is required with efa_enabled"),
    ("DRA-01", {"data_repository_associations": [link()] * 8}, {"data_repository_associations": [link()] * 9}, "data_repository_associations: 9 are more than the 8 of a file system"),
    ("DRA-02", {"storage_type": StorageType.SSD, "deployment_type": S2, "version": "2.12", "data_repository_associations": [link()]}, {"storage_type": StorageType.SSD, "deployment_type": S1, "version": "2.12", "data_repository_associations": [link()]}, "deployment_type: scratch_1 takes no data_repository_associations"),
    ("DRA-02", {"storage_type": StorageType.SSD, "deployment_type": S2, "version": "2.10", "data_repository_associations": []}, {"storage_type": StorageType.SSD, "deployment_type": S2, "version": "2.10", "data_repository_associations": [link()]}, "version: 2.10 takes no data_repository_associations"),
    ("DRA-03", {"data_repository_associations": [link("/a"), link("/ab")]}, {"data_repository_associations": [link("/a"), link("/a/b")]}, "data_repository_associations[1].path: /a/b overlaps /a of data_repository_associations[0]"),
    ("DRA-03", {"data_repository_associations": [link("/")]}, {"data_repository_associations": [link("/a"), link("/")]}, "/ overlaps /a"),
    ("DRA-03", {"data_repository_associations": [link("/a")]}, {"data_repository_associations": [link("a")]}, "a does not begin with /; write /a"),
    ("DRA-04", {"data_repository_associations": [link(prefix="a/"), link(prefix="ab/")]}, {"data_repository_associations": [link(prefix="a/"), link(prefix="a/b/")]}, "data_repository_associations[1].prefix: s3://my-data/a/b/ overlaps"),
    ("DRA-04", {"data_repository_associations": [link(bucket=None), link(bucket=None)]}, {"data_repository_associations": [link(), link(prefix="x/")]}, "link separate prefixes"),
    ("DRA-06", {"auto_import": [DataRepositoryEvent.NEW, DataRepositoryEvent.CHANGED], "auto_export": []}, {"auto_import": [DataRepositoryEvent.NEW, DataRepositoryEvent.NEW], "auto_export": []}, "auto_import: new, new names an event twice"),
    ("FMB-116", {"orchestrator": Orchestrator.HYPERPOD_EKS, "name": "default"}, {"orchestrator": Orchestrator.HYPERPOD_SLURM, "name": "Default"}, "name: Default names no partition in slurm.conf"),
    ("HP-01", {"name": "a-b"}, {"name": "a_b"}, "name: a_b is no group name"),
    ("HP-01", {"name": "a" * 63}, {"name": "a" * 64}, "1 to 63"),
    ("HP-01", {"name": "a--b"}, {"name": "a-"}, "a- is no group name"),
    ("HP-02", {"node_groups": [Group()]}, {"node_groups": []}, "0 node groups: HyperPod takes 1 to 100"),
    ("HP-02", {"node_groups": [Group(f"g{n}") for n in range(100)]}, {"node_groups": [Group(f"g{n}") for n in range(101)]}, "101 node groups"),
    ("HP-02", {"node_groups": [Group(count=6758)]}, {"node_groups": [Group(count=6759)]}, "node_groups[0].count: 6759 is not between 0 and the 6758"),
    ("HP-02", {"node_groups": [Group("a"), Group("b")]}, {"node_groups": [Group("a"), Group("a")]}, "2 groups are called a"),
    ("HP-03", {"instance_type": "m7i.xlarge", "types": TYPES}, {"instance_type": "trn2u.48xlarge", "types": TYPES}, "trn2u.48xlarge is not sold for HyperPod; did you mean trn2.48xlarge"),
    ("HP-09", {"subnet_count": 1, "security_group_count": 5}, {"subnet_count": 1, "security_group_count": 6}, "security_groups: 6 groups: HyperPod takes 1 to 5"),
    ("HP-09", {"subnet_count": 16, "security_group_count": 1}, {"subnet_count": 0, "security_group_count": 1}, "subnets: 0 subnets: HyperPod takes 1 to 16"),
    ("HP-11", {"node_groups": [CONTROLLER, Group()]}, {"node_groups": [Group()]}, "0 groups have role controller (none): Slurm takes exactly one"),
    ("HP-11", {"node_groups": [CONTROLLER, Group()]}, {"node_groups": [CONTROLLER, Group("c2", NodeRole.CONTROLLER), Group()]}, "2 groups have role controller (controller, c2)"),
    ("HP-11", {"node_groups": [CONTROLLER, Group()]}, {"node_groups": [dataclasses.replace(CONTROLLER, count=2), Group()]}, "node_groups[0].count: 2 controllers in controller"),
    ("HP-11", {"node_groups": [CONTROLLER, Group()]}, {"node_groups": [CONTROLLER]}, "no group has role compute"),
    ("HP-12", {"node_provisioning": NodeProvisioning.STANDARD}, {"node_provisioning": NodeProvisioning.CONTINUOUS}, "the API text says that continuous is for EKS only"),
    ("HP-13", {"ebs_volume_gib": 16384}, {"ebs_volume_gib": 16385}, "ebs_volume_gib: 16385 is not between 1 and 16384"),
    ("HP-13", {"ebs_volume_gib": 1}, {"ebs_volume_gib": 0}, "0 is not between 1 and 16384"),
    ("HP-14", {"mount_path": "/fsx"}, {"mount_path": "fsx"}, "mount_path: fsx is no plain path"),
    ("X-02", x02(CapacityMode.SPOT, PlacementMode.AUTO), x02(CapacityMode.ODCR, PlacementMode.AUTO), "capacity.mode: odcr cannot be used by HyperPod"),
    ("X-02", x02(CapacityMode.ON_DEMAND, PlacementMode.NONE), x02(CapacityMode.CAPACITY_BLOCK, PlacementMode.NONE), "capacity_block cannot be used by HyperPod"),
    ("X-02", x02(CapacityMode.ON_DEMAND, PlacementMode.AUTO), x02(CapacityMode.ON_DEMAND, PlacementMode.CLUSTER), "placement.mode: cluster cannot be used by HyperPod"),
    ("X-02", x02(), x02(placement_group_name="pg"), "placement.group_name: pg cannot be used by HyperPod"),
    ("X-04", {"instance_types": ["m5.large"], "subnet_count": 2, "types": TYPES}, {"instance_types": ["m5.large", "p5.48xlarge"], "subnet_count": 2, "types": TYPES}, "subnets: 2 subnets for p5.48xlarge, whose EFA traffic stays in one zone"),
    ("X-04", {"instance_types": ["p5.48xlarge"], "subnet_count": 1, "types": TYPES}, {"instance_types": ["g5.8xlarge"], "subnet_count": 2, "types": TYPES}, "2 subnets for g5.8xlarge"),
    ("HP-14", {"mount_path": "/data/etc"}, {"mount_path": "/etc"}, "/etc would hide /etc"),
    ("FMB-17", {"cidr": "172.31.0.0/16"}, {"cidr": "8.8.0.0/16"}, "cidr: 8.8.0.0/16 is outside the private ranges"),
    ("FMB-18", {"scripts": "a/b"}, {"scripts": "a/../../b"}, "path: a/../../b is not below the project file's folder"),
    ("FMB-18", {"scripts": "etc"}, {"scripts": "/etc"}, "/etc is not below"),
    ("FMB-19", {"role": NodeRole.COMPUTE, "capacity_mode": CapacityMode.SPOT}, {"role": NodeRole.CONTROLLER, "capacity_mode": CapacityMode.SPOT}, "capacity.mode: spot nodes can be taken away, and role controller cannot"),
    ("FSX-02", {**SIZE, "deployment_type": P2, "capacity_gib": 2147481600}, {**SIZE, "deployment_type": P2, "capacity_gib": 2147484000}, "2147484000 GiB is more than FSx can count"),
    ("FMB-21", {"suppress": [Suppression(rule="FSX-02", reason="x")]}, {"suppress": [Suppression(rule="FSX-99", reason="x")]}, "suppress[0].rule: FSX-99 is no id of the rule book; did you mean FSX-"),
    ("FMB-21", {"suppress": []}, {"suppress": [Suppression(rule="FSX-02", reason=" ")]}, "suppress[0].reason: is empty"),
    ("FMB-21", {"suppress": []}, {"suppress": [Suppression(rule="FSX-17", reason="x")]}, "FSX-17 is built in, which nothing refuses"),
    ("FMB-21", {"suppress": []}, {"suppress": [Suppression(rule="FMB-07", reason="x")]}, "FMB-07 is what the constructs rely on"),
    ("FMB-21", {"suppress": []}, {"suppress": [Suppression(rule="FSX-02", reason="x")] * 2}, "suppress[1].rule: FSX-02 is suppressed twice"),
    ("FMB-07", {"nat_gateways": 1, "availability_zones": ["usw2-az1"], "primary": "usw2-az1"}, {"nat_gateways": 1, "availability_zones": ["us-west-2-lax-1a"], "primary": "us-west-2-lax-1a"}, "primary_availability_zone: the NAT gateway would stand in us-west-2-lax-1a, a Local Zone"),
    ("FMB-02", {"availability_zones": ["1", "2"], "region": None}, {"availability_zones": ["1", "3"], "region": None}, "3: a template without a region knows the zones 1 and 2 only"),
    ("FMB-01", {"availability_zones": ["usw2-az1"], "region": "us-west-2"}, {"availability_zones": ["usw2-az01"], "region": "us-west-2"}, "usw2-az01 is neither a zone id"),
    ("HP-14", {"mount_path": "/data/home"}, {"mount_path": "/home"}, "/home would hide /home"),
    ("FMB-14", {"availability_zones": ["a"], "vpc": None}, {"availability_zones": [], "vpc": None}, "availability_zones: names no zone"),
    ("FMB-14", {"availability_zones": ["a", "b"], "vpc": None}, {"availability_zones": ["a", "b", "a"], "vpc": None}, "availability_zones: a is named twice"),
    ("FMB-15", {"retention_days": 1}, {"retention_days": 0}, "retention_days: 0 is not between 1 and 1095"),
    ("FMB-15", {"retention_days": 1095}, {"retention_days": 1096}, "1096 is not between"),
    ("FMB-16", {"efa": Efa(), "network_interfaces": ()}, {"network_interfaces": (), "efa": Efa(mode="none")}, "efa.mode: none cannot be had on HyperPod"),
    ("FMB-16", {"efa": Efa(), "network_interfaces": ()}, {"network_interfaces": (), "efa": Efa(count=4)}, "efa.count: 4 cannot be chosen on HyperPod"),
    ("HP-11", {"node_groups": [CONTROLLER, Group()]}, {"node_groups": [CONTROLLER, Group(), Group("s", NodeRole.SYSTEM)]}, "node_groups[2].role: s has role system, which belongs to Kubernetes"),
    ("FMB-23", {"orchestrator": Orchestrator.HYPERPOD_EKS, "chart": CHART}, {"orchestrator": Orchestrator.HYPERPOD_EKS, "chart": "charts/hyperpod"}, "kubernetes.dependency_chart.path: charts/hyperpod holds no chart, and HyperPod's nodes need its health agents; run `fmblocks chart pull FILE`"),
    ("FMB-23", {"orchestrator": Orchestrator.EKS, "chart": "charts/hyperpod"}, {"orchestrator": Orchestrator.HYPERPOD_EKS, "chart": "tests"}, "tests holds no chart"),
    ("EKS-01", {"orchestrator": Orchestrator.EKS, "availability_zones": ["usw2-az1", "usw2-az2"]}, {"orchestrator": Orchestrator.EKS, "availability_zones": ["usw2-az1"]}, "network.availability_zones: 1 zones: eks needs two"),
    ("EKS-01", {"orchestrator": Orchestrator.EC2, "availability_zones": ["use1-az3"]}, {"orchestrator": Orchestrator.HYPERPOD_EKS, "availability_zones": ["use1-az1", "use1-az3"]}, "2 zones, and use1-az3 takes no control plane: hyperpod-eks needs two"),
    ("REG-02", {"orchestrator": Orchestrator.EC2, "region": "us-west-1"}, {"orchestrator": Orchestrator.PCS, "region": "us-west-1"}, "region: AWS::PCS::Cluster is not listed for us-west-1"),
    ("X-01", {"capacity": BLOCK, "placement": Placement()}, {"capacity": BLOCK, "placement": Placement(mode="cluster")}, "placement.mode: cluster cannot be used with a Capacity Block"),
    ("X-01", {"capacity": Capacity(), "placement": Placement(group_name="pg")}, {"capacity": BLOCK, "placement": Placement(group_name="pg")}, "placement.group_name: pg cannot be used with a Capacity Block"),
    ("X-03", {"capacity": Capacity()}, {"capacity": Capacity(mode="training_plan", training_plan_arn=PLAN)}, "capacity.mode: a SageMaker training plan cannot feed instances of your own account"),
    ("X-07", {"node_groups": [bought("a", "usw2-az1"), bought("b", "usw2-az1")]}, {"node_groups": [bought("a", "usw2-az1"), bought("b", "usw2-az2")]}, "node_groups[1].capacity.availability_zone: usw2-az2, but a uses cr-0123456789abcdef0 in usw2-az1"),
    ("X-08", {"capacity": ODCR, "placement": Placement(mode="cluster", group_name="theirs")}, {"capacity": ODCR, "placement": Placement(mode="cluster")}, "placement.mode: cluster makes a new group, in which cr-0123456789abcdef0 cannot be used"),
    ("X-09", {"node_groups": [fabric("p4d.24xlarge"), fabric("m5.large")], "types": TYPES}, {"node_groups": [fabric("p4d.24xlarge"), fabric("p5.48xlarge")], "types": TYPES}, "node_groups: p4d.24xlarge cannot talk over EFA with p5.48xlarge"),
    ("X-06", {"efa_enabled": False, "node_groups": [Group(instance_type="p6e-gb200.36xlarge")]}, {"efa_enabled": True, "node_groups": [Group(instance_type="p6e-gb200.36xlarge")]}, "efa_enabled: persistent_2 has no EFA in the Local Zone"),
    ("FSX-15", {"efa_enabled": True, "node_groups": [Group()], "types": TYPES}, {"efa_enabled": True, "node_groups": [Group(instance_type="p4d.24xlarge")], "types": TYPES}, "efa_enabled: p4d.24xlarge of gpu cannot mount Lustre over EFA"),
    ("FSX-16", {"throughput_capacity_mbps": None, "efa_enabled": False, "capacity_gib": 10240, "throughput_mbps_per_tib": 1000}, {"throughput_capacity_mbps": None, "efa_enabled": False, "capacity_gib": 12000, "throughput_mbps_per_tib": 1000}, "efa_enabled: 11719 MB/s are served over TCP: AWS advises EFA above 10000"),
    ("FSX-29", {"deployment_type": P1, "region": "me-south-1"}, {"deployment_type": P2, "region": "me-south-1"}, "deployment_type: persistent_2 is not listed for me-south-1"),
    ("CR-03", {"capacity": CREATE, "count": 1000}, {"capacity": CREATE, "count": 1001}, "count: a reservation of 1001 cannot be made"),
    ("CR-07", {"capacity": Capacity(mode="odcr", availability_zone="usw2-az1"), "primary": "usw2-az1"}, {"capacity": Capacity(mode="odcr", availability_zone="usw2-az1"), "primary": "usw2-az2"}, "capacity.availability_zone: usw2-az1, but the nodes stand in usw2-az2"),
    ("CB-07", {"capacity": Capacity(mode="capacity_block", availability_zone="usw2-az1"), "primary": "usw2-az1"}, {"capacity": Capacity(mode="capacity_block", availability_zone="usw2-az1"), "primary": "usw2-az2"}, "usw2-az1, but the nodes stand in usw2-az2"),
    ("CR-13", {"capacity": ODCR}, {"capacity": Capacity(mode="odcr")}, "capacity: none of them given: mode odcr takes one of"),
    ("CR-13", {"capacity": CREATE}, {"capacity": Capacity(mode="odcr", create={}, capacity_reservation_id="cr-0123456789abcdef0")}, "capacity_reservation_id, create given"),
    ("CB-02", {"capacity": BLOCK, "instance_type": "p5.48xlarge", "types": TYPES}, {"capacity": BLOCK, "instance_type": "g6.xlarge", "types": TYPES}, "instance_type: Capacity Blocks are not sold for g6.xlarge"),
    ("X-05", far("usw2-az2", "usw2-az2", efa=True), far("usw2-az1", "usw2-az2", efa=True), "file_system: stands in usw2-az1, the nodes in usw2-az2: its EFA traffic does not get there"),
    ("X-05", far("usw2-az1", "usw2-az2", efa=False), far("us-west-2a", "us-west-2b", efa=True), "stands in us-west-2a"),
    ("X-05", far("us-west-2a", "usw2-az2", efa=True), far("1", "2", efa=True), "stands in 1, the nodes in 2"),
    ("FSX-26", far("usw2-az2", "usw2-az1", "usw2-az2"), far("usw2-az3", "usw2-az2", "usw2-az1"), "stands in usw2-az3, the nodes in usw2-az1, usw2-az2: every read pays for the way"),
    ("FSX-26", far("usw2-az1", "usw2-az2", None), far("usw2-az1", "usw2-az2"), "put both in one zone"),
    ("FSX-26", far(None, "usw2-az2"), far("usw2-az1", "usw2-az2"), "put both in one zone"),
    ("FSX-26", far("us-west-2a", "us-west-2-lax-1a"), far("usw2-az1", "usw2-az2"), "put both in one zone"),
    ("CR-07", {"capacity": Capacity(mode="odcr", availability_zone="us-west-2a"), "primary": "us-west-2a"}, {"capacity": Capacity(mode="odcr", availability_zone="us-west-2a"), "primary": "usw2-az2"}, "us-west-2a cannot be compared with usw2-az2, where the nodes stand: one is a name, the other an id; write zone ids"),
    ("FMB-08", {"data_repository_associations": [link(prefix="v1/")]}, {"data_repository_associations": [link(prefix="s3://my-data/v1")]}, "data_repository_associations[0].prefix: s3://my-data/v1/ is an address"),
    ("FMB-18", {"scripts": "scripts"}, {"scripts": "s3://bucket/x"}, "path: s3://bucket/x is an address; give a folder beside the project file"),
    ("FMB-28", spotty(Orchestrator.EC2, "standard"), spotty(Orchestrator.HYPERPOD_SLURM, "continuous"), "capacity.mode: AWS describes spot groups of HyperPod for EKS only"),
    ("FMB-28", spotty(Orchestrator.HYPERPOD_EKS, "continuous"), spotty(Orchestrator.HYPERPOD_EKS, "standard"), "node_provisioning is standard; write node_provisioning: continuous"),
    ("FMB-28", spotty(Orchestrator.HYPERPOD_SLURM, "standard", "on_demand"), spotty(Orchestrator.HYPERPOD_SLURM, "standard"), "says nothing about Slurm"),
    ("TP-07", {"capacity": Capacity(mode="training_plan", availability_zone="usw2-az1"), "primary": "usw2-az1"}, {"capacity": Capacity(mode="training_plan", availability_zone="usw2-az1"), "primary": "usw2-az2"}, "capacity.availability_zone: usw2-az1, but the nodes stand in usw2-az2"),
    ("CB-21", offered("us-east-1"), offered("eu-west-1"), "instance_type: Capacity Blocks of p4d.24xlarge are not listed for eu-west-1: us-east-1, us-east-2, us-west-2"),
    ("CB-21", offered(None), offered("us-gov-west-1"), "not listed for us-gov-west-1"),
    ("CR-02", reservation(end=11), reservation(end=9), "capacity.create.end: 2026-12-09T00:00:00+00:00 is past"),
    ("CR-02", reservation(end=None), reservation(end=10), "2026-12-10T00:00:00+00:00 is past"),
    ("FMB-27", {"capacity": block(days=1), "now": day(11)}, {"capacity": block(days=1), "now": day(12)}, "capacity.end: 2026-12-11T11:30:00+00:00 is past"),
    ("CB-13", to_come(now=day(11)), to_come(now=day(9)), "count: 2 nodes are asked for before 2026-12-10T11:30:00+00:00, when the block starts"),
    ("CB-13", to_come(now=day(9), launch="scheduled"), to_come(now=day(9), launch="now"), "write launch: scheduled"),
    ("CB-13", to_come(now=day(9), count=0), to_come(now=day(9)), "deploy after the start"),
    ("CB-04", {"capacity": block(days=14)}, {"capacity": block(days=15)}, "capacity.end: 15 days is no length that blocks are sold for"),
    ("CB-04", {"capacity": block(days=182)}, {"capacity": block(days=189)}, "189 days is no length"),
    ("CB-06", {"capacity": BLOCK}, {"capacity": Capacity(mode="capacity_block")}, "capacity.capacity_reservation_id: is required with mode capacity_block"),
    ("FMB-24", {"capacity": block(days=1)}, {"capacity": block(days=-1)}, "capacity.end: 2026-12-09T11:30:00+00:00 is not after start"),
    ("FMB-24", {"capacity": block(days=1)}, {"capacity": Capacity(mode="odcr", start="2026-12-10T11:30:00Z")}, "capacity.start: belongs to a Capacity Block, and the mode is odcr"),
    ("FMB-25", {"capacity": BLOCK}, {"capacity": Capacity(mode="odcr", capacity_reservation_id="cr-old")}, "cr-old is no id of a reservation"),
    ("FMB-26", {"capacity": ODCR}, {"capacity": Capacity(capacity_reservation_id="cr-0123456789abcdef0")}, "capacity.capacity_reservation_id: is not read with mode on_demand"),
    ("FMB-26", {"capacity": CREATE}, {"capacity": Capacity(mode="capacity_block", create={})}, "capacity.create: is not read with mode capacity_block"),
    ("NET-06", {"capacity": BLOCK, "availability_zones": ["usw2-az1"]}, {"capacity": BLOCK, "availability_zones": ["us-west-2a"]}, "capacity.mode: capacity_block is matched with zone names (us-west-2a)"),
    ("EFA-01", {"network_interfaces": (), "instance_type": "g6e.4xlarge", "efa": Efa(), "types": TYPES}, {"network_interfaces": (), "instance_type": "g6e.4xlarge", "efa": Efa(count=1), "types": TYPES}, "efa.count: EFA is not available on g6e.4xlarge"),
    ("EFA-01", {"network_interfaces": (), "instance_type": "g5.8xlarge", "efa": Efa(count=1), "types": TYPES}, {"network_interfaces": (), "instance_type": "g5.xlarge", "efa": Efa(interface_type="efa"), "types": TYPES}, "efa.interface_type: EFA is not available on g5.xlarge"),
    ("EFA-02", {"instance_type": "p4d.24xlarge", "efa": Efa(count=4), "types": TYPES}, {"instance_type": "p4d.24xlarge", "efa": Efa(count=32), "types": TYPES}, "efa.count: 32 EFA interfaces: p4d.24xlarge supports at most 4"),
    ("EFA-02", {"instance_type": "p6-b300.48xlarge", "efa": Efa(count=16), "types": TYPES}, {"instance_type": "p6-b300.48xlarge", "efa": Efa(count=17), "types": TYPES}, "supports at most 16"),
    ("EFA-18", {"instance_type": "p5.48xlarge", "efa": Efa(count=32), "network_interfaces": (), "types": TYPES}, {"instance_type": "p5.48xlarge", "efa": Efa(count=16), "network_interfaces": (), "types": TYPES}, "efa.count: 16 of the 32 EFA interfaces of p5.48xlarge are used"),
    ("EFA-25", {"instance_type": "p5.48xlarge", "capacity": Capacity(mode="spot")}, {"instance_type": "trn2u.48xlarge", "capacity": Capacity(mode="spot")}, "capacity.mode: trn2u.48xlarge is not sold as spot"),
    ("PG-03", {"placement": Placement(mode="partition", partition_count=7)}, {"placement": Placement(mode="partition", partition_count=8)}, "placement.partition_count: 8 is not between 1 and the 7"),
    ("PG-03", {"placement": Placement()}, {"placement": Placement(mode="spread", partition_count=2)}, "2 is not read with mode spread"),
    ("PG-04", {"placement": Placement(mode="spread"), "count": 7}, {"placement": Placement(mode="spread"), "count": 8}, "count: 8 is more than the 7 running instances"),
    ("PG-07", {"placement": Placement(), "instance_type": "t3.large"}, {"placement": Placement(mode="cluster"), "instance_type": "t3.large"}, "placement.mode: cluster cannot be used with t3.large"),
    ("TP-03", {"capacity_mode": CapacityMode.TRAINING_PLAN, "instance_type": "p5.48xlarge", "types": TYPES}, {"capacity_mode": CapacityMode.TRAINING_PLAN, "instance_type": "m5.xlarge", "types": TYPES}, "instance_type: training plans are not listed for m5.xlarge"),
    ("TP-03", {"capacity_mode": CapacityMode.SPOT, "instance_type": "m5.xlarge", "types": TYPES}, {"capacity_mode": CapacityMode.TRAINING_PLAN, "instance_type": "g6.xlarge", "types": TYPES}, "not listed for g6.xlarge"),
    ("NET-02", room([Group(count=50)], 0, 4096, Orchestrator.HYPERPOD_EKS), room([Group(count=51)], 0, 4096, Orchestrator.HYPERPOD_EKS), "4131 addresses (gpu 4131) do not fit the 4091"),
    ("NET-02", room([Group(count=127)], 0, 4096, Orchestrator.PCS), room([Group(count=128)], 0, 4096, Orchestrator.PCS), "4096 addresses (gpu 4096)"),
    ("NET-02", room([Group(count=11)], 0, 16, Orchestrator.EC2), room([Group(count=12)], 0, 16, Orchestrator.EC2), "12 addresses (gpu 12) do not fit the 11"),
    ("PCS-01", {"orchestrator": Orchestrator.PCS, "primary": "usw2-az1"}, {"orchestrator": Orchestrator.PCS, "primary": "usw2-lax1-az1"}, "network.primary_availability_zone: usw2-lax1-az1 is a Local Zone"),
    ("PCS-01", {"orchestrator": Orchestrator.EC2, "primary": "us-west-2-lax-1a"}, {"orchestrator": Orchestrator.PCS, "primary": "us-west-2-lax-1a"}, "us-west-2-lax-1a is a Local Zone"),
    ("PCS-07", blocks(Orchestrator.PCS, "cr-1", "cr-2"), blocks(Orchestrator.PCS, "cr-1", "cr-1"), "node_groups[1].capacity.capacity_reservation_id: cr-1 serves g0 already"),
    ("PCS-07", blocks(Orchestrator.EC2, "cr-1", "cr-1"), blocks(Orchestrator.PCS, "cr-1", "cr-2", "cr-1"), "node_groups[2].capacity.capacity_reservation_id: cr-1 serves g0 already"),
    ("PCS-07", {**blocks(Orchestrator.PCS, "cr-1"), "slurm": Slurm(version="24.05")}, {**blocks(Orchestrator.PCS, "cr-1"), "slurm": Slurm(version="23.11")}, "slurm.version: 23.11, and Capacity Blocks need Slurm 24.05; write '25.11'"),
    ("NET-02", room([Group(count=127)], 0, 4096), room([Group(count=128)], 0, 4096), "node_groups: 4096 addresses (gpu 4096) do not fit the 4091"),
    ("NET-02", room([Group(instance_type="m5.large", count=11)], 0, 16), room([Group(instance_type="m5.large", count=12)], 0, 16), "12 addresses (gpu 12) do not fit the 11"),
    ("NET-02", room([Group(count=1)], 90, 128), room([Group(count=1)], 92, 128), "124 addresses (gpu 32, file systems 92) do not fit the 123"),
    ("HP-29", {"orchestrator": Orchestrator.EC2, "region": "eu-west-3"}, {"orchestrator": Orchestrator.HYPERPOD_SLURM, "region": "eu-west-3"}, "region: AWS::SageMaker::Cluster is not listed for eu-west-3"),
    ("FMB-10", {"tags": {"a": "", "b": ""}}, {"tags": {"Team": "", "team": ""}}, "tags.team: differs from Team in case only"),
    ("FMB-10", {"tags": {"a": "b c"}}, {"tags": {"a": "b\nc"}}, "has characters that tags do not take"),
    ("DRA-03", {"data_repository_associations": [link("/a.b")]}, {"data_repository_associations": [link("/a/../b")]}, "/a/../b has empty parts, . or .."),
    ("HP-14", {"mount_path": "/fsx"}, {"mount_path": "/fsx/../etc"}, "is no plain path below /"),
    ("HP-02", {"node_groups": [Group(count=0)]}, {"node_groups": [Group(count=-1)]}, "node_groups[0].count: -1 is not between 0 and"),
    ("TP-01", plan(), plan(training_plan_arn=None), "capacity.training_plan_arn: is required with mode training_plan"),
    ("TP-01", plan(), plan(training_plan_arn=PLAN.replace("training-plan", "cluster")), "is not the ARN of a training plan"),
    ("TP-01", plan(), plan(region="us-east-1"), "the plan is in us-west-2, the cluster in us-east-1"),
    ("TP-01", plan(), plan(account="444455556666"), "the plan belongs to 111122223333, the cluster to 444455556666"),
    ("TP-01", plan(region=None, account=None), plan(capacity_mode=CapacityMode.SPOT), "is given, but the mode is spot"),
    ("FSX-02", hdd(12, 6000), hdd(12, 3000), "capacity_gib: 3000 GiB is not sold for hdd at 12 MB/s per TiB: a multiple of 6000; nearest: 6000"),
    ("FSX-02", hdd(40, 5400), hdd(40, 2400), "2400 GiB is not sold for hdd at 40 MB/s per TiB: a multiple of 1800; nearest: 1800 and 3600"),
    ("FSX-02", {**SIZE, "deployment_type": P2, "capacity_gib": None, "storage_type": TIERING}, {**SIZE, "deployment_type": P2, "capacity_gib": None}, "capacity_gib: is required with ssd"),
    ("FSX-03", {"deployment_type": P1, "storage_type": HDD, "throughput_mbps_per_tib": 40}, {"deployment_type": P1, "storage_type": HDD, "throughput_mbps_per_tib": 50}, "50 is not sold for persistent_1 hdd; take one of 12, 40"),
    ("FSX-03", {"deployment_type": P1, "storage_type": HDD, "throughput_mbps_per_tib": 12}, {"deployment_type": P2, "storage_type": HDD, "throughput_mbps_per_tib": 12}, "storage_type: hdd is not sold for persistent_2; use persistent_1"),
    ("FSX-03", {"deployment_type": S2, "storage_type": SSD, "throughput_mbps_per_tib": None}, {"deployment_type": S2, "storage_type": HDD, "throughput_mbps_per_tib": None}, "storage_type: hdd is not sold for scratch_2"),
    ("FSX-07", {"deployment_type": P1, "storage_type": HDD, "kms_key_given": True, "drive_cache_type": DriveCacheType.READ}, {"deployment_type": P1, "storage_type": HDD, "kms_key_given": True, "drive_cache_type": None}, "drive_cache_type: is required with storage_type hdd; write read or none"),
    ("FSX-07", {"deployment_type": P1, "storage_type": HDD, "kms_key_given": False, "drive_cache_type": DriveCacheType.NONE}, {"deployment_type": P1, "storage_type": SSD, "kms_key_given": False, "drive_cache_type": DriveCacheType.NONE}, "none belongs to hdd, and storage_type is ssd"),
    ("FSX-08", tiering(), tiering(deployment_type=P1), "storage_type: intelligent_tiering is not sold for persistent_1; use persistent_2"),
    ("FSX-08", tiering(), tiering(capacity_gib=1200), "capacity_gib: 1200 cannot be chosen with intelligent_tiering"),
    ("FSX-08", tiering(), tiering(throughput_mbps_per_tib=125), "throughput_mbps_per_tib: 125 cannot be chosen with intelligent_tiering"),
    ("FSX-08", tiering(), tiering(throughput_capacity_mbps=None), "throughput_capacity_mbps: is required with intelligent_tiering; take a multiple of 4000"),
    ("FSX-08", tiering(), tiering(read_cache_sizing_mode=None), "read_cache: is required with intelligent_tiering"),
    ("FSX-08", tiering(), tiering(metadata_mode=None), "metadata: is required with intelligent_tiering; write {mode: user_provisioned, iops: 6000}"),
    ("FSX-08", tiering(storage_type=SSD, throughput_capacity_mbps=None, read_cache_sizing_mode=None), tiering(storage_type=SSD), "throughput_capacity_mbps: 4000 belongs to intelligent_tiering, and storage_type is ssd"),
    ("FSX-09", {"storage_type": TIERING, "throughput_capacity_mbps": 4000}, {"storage_type": TIERING, "throughput_capacity_mbps": 6000}, "throughput_capacity_mbps: 6000 MB/s is not sold: a multiple of 4000 up to 2000000; take 8000"),
    ("FSX-09", {"storage_type": TIERING, "throughput_capacity_mbps": 2000000}, {"storage_type": TIERING, "throughput_capacity_mbps": 2004000}, "2004000 MB/s is not sold: a multiple of 4000 up to 2000000; take 2000000"),
    ("FSX-09", {"storage_type": TIERING, "throughput_capacity_mbps": 1000}, {"storage_type": TIERING, "throughput_capacity_mbps": 0}, "0 MB/s is not sold"),
    ("FMB-29", {"throughput_capacity_mbps": 4000}, {"throughput_capacity_mbps": 2000}, "2000 MB/s is allowed by the API's text, and not by the guide"),
    ("FSX-10", cached(ReadCacheSizingMode.NO_CACHE, None), cached(ReadCacheSizingMode.NO_CACHE, 100), "read_cache.size_gib: 100 cannot be chosen with sizing_mode no_cache"),
    ("FSX-10", cached(ReadCacheSizingMode.USER_PROVISIONED, 32), cached(ReadCacheSizingMode.USER_PROVISIONED, None), "read_cache.size_gib: is required with sizing_mode user_provisioned; take 32 to 131072"),
    ("FSX-10", cached(ReadCacheSizingMode.USER_PROVISIONED, 32), cached(ReadCacheSizingMode.USER_PROVISIONED, 31), "31 GiB is not between 32 and 131072 for 4000 MB/s"),
    ("FSX-10", cached(ReadCacheSizingMode.USER_PROVISIONED, 131072), cached(ReadCacheSizingMode.USER_PROVISIONED, 131073), "131073 GiB is not between"),
    ("FSX-12", {"storage_type": TIERING, "metadata_mode": PROVISIONED, "metadata_iops": 12000}, {"storage_type": TIERING, "metadata_mode": PROVISIONED, "metadata_iops": 1500}, "metadata: 1500 is allowed by the API's text, while the guide offers user_provisioned 6000 or 12000"),
    ("FSX-12", {"storage_type": SSD, "metadata_mode": AUTOMATIC, "metadata_iops": None}, {"storage_type": TIERING, "metadata_mode": AUTOMATIC, "metadata_iops": None}, "metadata: automatic is allowed by the API's text"),
    ("FSX-13", {"deployment_type": P2, "efa_enabled": True, "capacity_gib": None, "throughput_mbps_per_tib": None, "throughput_capacity_mbps": 4000}, {"deployment_type": P2, "efa_enabled": True, "capacity_gib": None, "throughput_mbps_per_tib": None, "throughput_capacity_mbps": 2000}, "throughput_capacity_mbps: 2000 MB/s cannot serve EFA: a multiple of 4000"),
    ("FSX-16", {"efa_enabled": False, "capacity_gib": None, "throughput_mbps_per_tib": None, "throughput_capacity_mbps": 8000}, {"efa_enabled": False, "capacity_gib": None, "throughput_mbps_per_tib": None, "throughput_capacity_mbps": 12000}, "12000 MB/s are served over TCP"),
    ("FSX-20", backed_up(90), backed_up(91), "automatic_backup_retention_days: 91 is not between 0 and 90"),
    ("FSX-20", backed_up(0), backed_up(-1), "-1 is not between 0 and 90"),
    ("FSX-20", backed_up(7), backed_up(7, S2), "scratch_2 makes no backups"),
    ("FSX-20", backed_up(7, start="05:00", tags=True), backed_up(0, start="05:00"), "daily_automatic_backup_start_time: 05:00 is read with backups only"),
    ("FSX-20", backed_up(0), backed_up(0, tags=True), "copy_tags_to_backups: true is read with backups only"),
    ("FSX-27", {"lustre_addresses": 11, "subnet_size": 16}, {"lustre_addresses": 12, "subnet_size": 16}, "capacity_gib: 12 addresses of its servers do not fit the 11 of the subnet"),
    ("FSX-30", at("7:05:00", "23:59"), at("8:05:00"), "weekly_maintenance_start_time: 8:05:00 is no time in UTC of the form d:HH:MM, d from 1 (Monday) to 7; write one like 7:05:00"),
    ("FSX-30", at("1:23:59"), at("1:24:00"), "1:24:00 is no time"),
    ("FSX-30", at(None, "00:00"), at(None, "5:00"), "daily_automatic_backup_start_time: 5:00 is no time in UTC of the form HH:MM"),
    ("DRA-02", {"storage_type": SSD, "deployment_type": P2, "version": "2.15", "data_repository_associations": [link()]}, {"storage_type": TIERING, "deployment_type": P2, "version": "2.15", "data_repository_associations": [link()]}, "storage_type: intelligent_tiering takes no data_repository_associations"),
    ("DRA-07", {"imported_file_chunk_size_mib": 512000}, {"imported_file_chunk_size_mib": 512001}, "imported_file_chunk_size_mib: 512001 MiB is not between 1 and 512000"),
    ("DRA-07", {"imported_file_chunk_size_mib": None}, {"imported_file_chunk_size_mib": 0}, "0 MiB is not between"),
    ("DRA-11", {"automatic_backup_retention_days": 0, "data_repository_associations": [link()]}, {"automatic_backup_retention_days": 7, "data_repository_associations": [link()]}, "automatic_backup_retention_days: 7 days of backups cannot be had beside data_repository_associations"),
    ("HP-08", scripts("test_rules.py"), scripts("missing.sh"), "missing.sh is not a file; name a script of the folder"),
    ("HP-08", scripts("test_rules.py"), {"path": "no/such/folder", "on_init_complete": "a.sh"}, "path: no/such/folder is not a folder"),
    ("CB-03", blocks(Orchestrator.EC2, "cr-1", "cr-2", count=64), blocks(Orchestrator.EC2, "cr-1", count=65), "node_groups[0].count: 65 is more than the 64 instances of a Capacity Block"),
    ("CB-03", blocks(Orchestrator.EC2, "cr-1", "cr-1", count=32), blocks(Orchestrator.EC2, "cr-1", "cr-1", count=33), "node_groups[1].count: 66 is more than the 64"),
    ("FMB-40", blocks(Orchestrator.EC2, "cr-1", "cr-1"), {"node_groups": [Group("a", capacity=BLOCK), Group("b", instance_type="p5en.48xlarge", capacity=BLOCK)]}, "node_groups[1].capacity.capacity_reservation_id: cr-0123456789abcdef0 serves a, of p5.48xlarge: it cannot feed p5en.48xlarge"),
    ("FMB-40", {"node_groups": [Group("a"), Group("b", instance_type="m5.large")]}, {"node_groups": [Group("a", instance_type="m5.large", capacity=ODCR), Group("b", capacity=ODCR)]}, "it cannot feed p5.48xlarge"),
    ("FMB-41", {"efa": Efa(count=4), "network_interfaces": ()}, {"efa": Efa(mode="none", count=4), "network_interfaces": ()}, "efa.count: 4 is not read with mode none"),
    ("FMB-41", {"efa": Efa(), "network_interfaces": (PRIMARY, nic(0, 1))}, {"efa": Efa(count=8), "network_interfaces": (PRIMARY,)}, "efa.count: 8 is not read with network_interfaces"),
    ("FMB-41", {"efa": Efa(mode="none"), "network_interfaces": (PRIMARY,)}, {"efa": Efa(mode="none"), "network_interfaces": (PRIMARY, nic(0, 1))}, "efa.mode: none, but network_interfaces has EFA"),
    ("FMB-42", ec2_groups(Group()), ec2_groups(), "node_groups: is empty; add one"),
    ("FMB-42", ec2_groups(Group("a"), Group("b")), ec2_groups(Group("a"), Group("a")), "node_groups: 2 groups are called a"),
    ("FMB-42", ec2_groups(Group(count=0)), ec2_groups(Group(count=-1)), "node_groups[0].count: -1 is below 0"),
    ("FMB-42", ec2_groups(Group(ebs_volume_gib=1)), ec2_groups(Group(ebs_volume_gib=0)), "node_groups[0].ebs_volume_gib: 0 is below 1"),
    ("FMB-42", {"orchestrator": Orchestrator.HYPERPOD_EKS, "node_groups": []}, ec2_groups(Group(), Group(), Group()), "3 groups are called gpu"),
    ("FMB-43", {"orchestrator": Orchestrator.EKS, "role": NodeRole.SYSTEM}, {"orchestrator": Orchestrator.EKS, "role": NodeRole.CONTROLLER}, "role: controller is not read with orchestrator eks; use compute or system"),
    ("FMB-43", {"orchestrator": Orchestrator.PCS, "role": NodeRole.LOGIN}, {"orchestrator": Orchestrator.EC2, "role": NodeRole.LOGIN}, "role: login is not read with orchestrator ec2; use compute"),
    ("FMB-43", {"orchestrator": Orchestrator.HYPERPOD_SLURM, "role": NodeRole.CONTROLLER}, {"orchestrator": Orchestrator.PCS, "role": NodeRole.SYSTEM}, "system is not read with orchestrator pcs"),
    ("FMB-44", on_pcs("p5.48xlarge", Efa()), on_pcs("p5.48xlarge", Efa(interface_type="efa-only")), "efa.interface_type: efa-only on p5.48xlarge: PCS's guide shows efa"),
    ("FMB-44", on_pcs("m5.large", Efa()), on_pcs("p6e-gb200.36xlarge", Efa()), "efa: efa-only on p6e-gb200.36xlarge"),
    ("FMB-44", on_pcs("p5.48xlarge", Efa(), PRIMARY), on_pcs("p5.48xlarge", Efa(), PRIMARY, nic(0, 1)), "network_interfaces: efa-only on p5.48xlarge"),
    ("HP-22", room([Group(instance_type="p5e.48xlarge", count=61)], 0, 2048), room([Group(instance_type="p5e.48xlarge", count=62)], 0, 2048), "node_groups: 2046 addresses are the most that the nodes can take, and 2043 are usable: AWS gives no number"),
    ("HP-22", room([Group(count=100)], 0, 2048), room([Group(instance_type="p6-b200.48xlarge", count=228)], 0, 2048), "2052 addresses are the most"),
    ("HP-22", room([Group(instance_type="p5e.48xlarge", count=62)], 0, 2048, Orchestrator.EC2), room([Group(instance_type="p5e.48xlarge", count=62)], 0, 2048, Orchestrator.HYPERPOD_EKS), "2046 addresses"),
    ("NET-02", room([Group(instance_type="g5.xlarge", count=50)], 0, 4096, Orchestrator.HYPERPOD_EKS), room([Group(instance_type="g5.xlarge", alternative_instance_types=("p5.48xlarge",), count=51)], 0, 4096, Orchestrator.HYPERPOD_EKS), "4131 addresses (gpu 4131)"),
    ("PG-12", {"placement": Placement(mode="cluster"), "capacity": CREATE}, {"placement": Placement(mode="spread"), "capacity": CREATE}, "placement.mode: a reservation cannot be used in a spread group"),
    ("PG-12", {"placement": Placement(mode="partition"), "capacity": BLOCK}, {"placement": Placement(mode="partition", group_name="pg-a"), "capacity": ODCR}, "a reservation cannot be used in a partition group"),
    ("PG-13", {"reserved_in": "pg-a", "placed_in": "pg-a"}, {"reserved_in": "pg-a", "placed_in": "pg-b"}, "placement_group: pg-b is not pg-a, in which the reservation was made"),
    ("PG-13", {"reserved_in": "pg-a", "placed_in": None}, {"reserved_in": "S/Reserved", "placed_in": "pg-b"}, "leave it out: that of the reservation is taken"),
    ("HP-14", {"mount_path": "/home/shared"}, {"mount_path": "/opt/sagemaker/x"}, "/opt/sagemaker/x lies in /opt/sagemaker, which is not yours"),
    ("HP-14", {"mount_path": "/var/lustre"}, {"mount_path": "/var"}, "/var would hide /var, which the nodes need"),
    ("CB-02", {"capacity": BLOCK, "instance_type": "trn1.32xlarge", "types": TYPES}, {"capacity": BLOCK, "instance_type": "trn1n.32xlarge", "types": TYPES}, "instance_type: Capacity Blocks are not sold for trn1n.32xlarge"),
    ("CB-05", {"capacity": Capacity(mode="capacity_block", capacity_reservation_id=CR, end=datetime.datetime(2027, 1, 18, 20, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=9))))}, {"capacity": Capacity(mode="capacity_block", capacity_reservation_id=CR, end=datetime.datetime(2027, 1, 18, 12, 0, tzinfo=datetime.UTC))}, "capacity.end: 2027-01-18T12:00Z: blocks end at 11:30 UTC"),
    ("EFA-01", {"network_interfaces": (PRIMARY,), "instance_type": "g5.2xlarge", "efa": Efa(), "types": TYPES}, {"network_interfaces": (nic(0, 0, "efa"),), "instance_type": "g5.2xlarge", "efa": Efa(), "types": TYPES}, "network_interfaces[0]: EFA is not available on g5.2xlarge"),
    ("EFA-01", {"network_interfaces": (), "instance_type": "g5.8xlarge", "efa": Efa(mode="required"), "types": TYPES}, {"network_interfaces": (), "instance_type": "g5.xlarge", "efa": Efa(mode="required"), "types": TYPES}, "efa.mode: EFA is not available on g5.xlarge; write efa: auto, which gives one plain interface"),
    ("EFA-18", {"instance_type": "p5en.48xlarge", "efa": Efa(), "network_interfaces": (), "types": TYPES}, {"instance_type": "p5en.48xlarge", "efa": Efa(), "network_interfaces": (PRIMARY, nic(1, 0, "efa-only")), "types": TYPES}, "network_interfaces: 1 of the 16 EFA interfaces of p5en.48xlarge are used"),
    ("EFA-18", {"instance_type": "p6e-gb200.36xlarge", "efa": Efa(count=4), "network_interfaces": (), "types": TYPES}, {"instance_type": "p6e-gb200.36xlarge", "efa": Efa(count=3), "network_interfaces": (), "types": TYPES}, "3 of the 8"),
    ("X-09", {"node_groups": [Group(instance_type="p5.48xlarge", alternative_instance_types=("p5e.48xlarge",))], "types": TYPES}, {"node_groups": [Group(instance_type="p5.48xlarge", alternative_instance_types=("p4d.24xlarge",))], "types": TYPES}, "p4d.24xlarge cannot talk over EFA with p5.48xlarge"),
    ("TP-02", planned("p5.48xlarge", "p5.48xlarge"), {"node_groups": [Group("a", capacity=Capacity(mode="training_plan", training_plan_arn=PLAN), alternative_instance_types=("p5e.48xlarge",))]}, "node_groups[0].alternative_instance_types: p5e.48xlarge: a training plan holds instances of one type"),
    ("EKS-01", {"orchestrator": Orchestrator.EKS, "availability_zones": ["usw2-az1", "usw2-az2"]}, {"orchestrator": Orchestrator.EKS, "availability_zones": ["usw2-lax1-az1", "usw2-az2"]}, "usw2-lax1-az1 takes no control plane"),
    ("AMP-04", collected("eks", "usw2-az1", "usw2-az2"), collected("eks", "usw2-lax1-az1", "usw2-az2"), "a collector takes two"),
    ("FMB-25", {"capacity": Capacity(mode="odcr", resource_group_arn="arn:aws:resource-groups:us-west-2:111122223333:group/g")}, {"capacity": Capacity(mode="odcr", resource_group_arn="my-group")}, "capacity.resource_group_arn: my-group is not the ARN of a resource group"),
    ("FMB-31", {"orchestrator": Orchestrator.HYPERPOD_EKS, "image": Image(id="default")}, {"orchestrator": Orchestrator.EC2, "image": Image(id="default")}, "image.id: default is no id of an image; it looks like ami-0123456789abcdef0"),
    ("HP-18", hyperpod_image(image=Image(id="ami-0123456789abcdef0")), hyperpod_image(image=Image(platform="Windows")), "image.platform: Windows cannot be used by HyperPod"),
    ("X-10", {"orchestrator": Orchestrator.HYPERPOD_EKS, "image": Image(architecture="x86_64"), "every_type": ["p5.48xlarge"], "types": TYPES}, {"image": Image(architecture="x86_64"), "every_type": ["p5.48xlarge", "p6e-gb200.36xlarge"], "types": TYPES}, "image.architecture: x86_64 does not boot on p6e-gb200.36xlarge"),
    ("FSX-15", {"efa_enabled": True, "node_groups": [Group()], "types": TYPES}, {"efa_enabled": True, "node_groups": [Group(alternative_instance_types=("p4d.24xlarge",))], "types": TYPES}, "p4d.24xlarge of gpu cannot mount Lustre over EFA"),
    ("X-03", {"capacity": BLOCK}, {"capacity": Capacity(training_plan_arn=PLAN)}, "capacity.training_plan_arn: a SageMaker training plan cannot feed"),
    ("FMB-48", {"extra_security_group_ids": ["sg-0123456789abcdef0"]}, {"extra_security_group_ids": ["my-group"]}, "extra_security_group_ids[0]: my-group is no id of a security group"),
    ("FMB-48", {"extra_security_group_ids": []}, {"extra_security_group_ids": ["sg-0123456789abcdef0"] * 2}, "extra_security_group_ids[1]: sg-0123456789abcdef0 is named twice"),
    ("FMB-48", {"extra_security_group_ids": [f"sg-0000000{n}" for n in range(4)]}, {"extra_security_group_ids": [f"sg-0000000{n}" for n in range(5)]}, "5 beside the group of the fabric: an interface carries 5 by default"),
    ("FMB-45", {"capacity": scheduled(), "now": day(9)}, {"capacity": scheduled(), "now": day(11)}, "capacity.launch: scheduled, but the block began 2026-12-10T11:30:00+00:00: a new or changed start action is refused; write launch: now"),
    ("FMB-45", {"capacity": block(days=7), "now": day(11)}, {"capacity": scheduled(), "now": day(20)}, "write launch: now"),
    ("FMB-46", {"capacity": scheduled()}, {"capacity": Capacity(mode="capacity_block", launch="scheduled")}, "capacity.start: is required with launch scheduled"),
    ("FMB-46", {"capacity": BLOCK}, {"capacity": Capacity(mode="capacity_block", launch="scheduled", end="2026-12-10T11:30:00Z")}, "capacity.start: is required"),
    ("FMB-47", {"capacity": block(days=1), "emptied": True}, {"capacity": BLOCK, "emptied": True}, "capacity.end: is not given, so the nodes are not stopped before EC2 terminates them"),
    ("FMB-47", {"capacity": ODCR, "emptied": True}, {"capacity": Capacity(mode="capacity_block", start="2026-12-10T11:30:00Z"), "emptied": True}, "give the block's end"),
    ("FMB-47", {"capacity": BLOCK, "emptied": False}, {"capacity": BLOCK, "emptied": True}, "is not given"),
    ("EFA-03", wired("p5.48xlarge", PRIMARY, nic(0, 1), nic(1, 0)), wired("p5.48xlarge", PRIMARY, nic(1, 0), nic(1, 1)), "network_interfaces[2]: efa-only at card 1, device 1: the card has an EFA interface already, at device 0"),
    ("EFA-03", wired("p5.48xlarge", PRIMARY, nic(1, 0), nic(1, 1, "interface")), wired("p5.48xlarge", nic(0, 0, "efa"), nic(0, 1)), "network_interfaces[1]: efa-only at card 0, device 1"),
    ("EFA-04", wired("p5.48xlarge", PRIMARY, nic(31, 1)), wired("p5.48xlarge", PRIMARY, nic(32, 0)), "network_interfaces[1].network_card_index: efa-only at card 32, device 0: p5.48xlarge has the cards 0 to 31"),
    ("EFA-04", wired("p5.48xlarge", PRIMARY, nic(2, 1)), wired("p5.48xlarge", PRIMARY, nic(2, 2)), "network_interfaces[1].device_index: efa-only at card 2, device 2: a card of p5.48xlarge has the devices 0 to 1"),
    ("EFA-04", wired("p5.48xlarge", PRIMARY, nic(0, 1)), wired("p5.48xlarge", PRIMARY, nic(0, 0)), "network_interfaces[1]: efa-only at card 0, device 0: network_interfaces[0] stands there"),
    ("EFA-04", wired("p5.48xlarge", PRIMARY), wired("p5.48xlarge", PRIMARY, nic(-1, 0)), "neither is below 0"),
    ("EFA-04", wired("p5.48xlarge", PRIMARY, nic(1, 0), nic(1, 1, "interface")), wired("p5.48xlarge", PRIMARY, nic(1, 0), nic(1, 1, "interface"), nic(1, 0, "interface")), "network_interfaces[1] stands there"),
    ("EFA-04", wired("p5en.48xlarge", PRIMARY, nic(1, 3)), wired("p5en.48xlarge", PRIMARY, *(nic(1, n, "interface") for n in (0, 1, 2, 3, 3))), "network_interfaces[4] stands there"),
    ("EFA-05", wired("p5.48xlarge", nic(0, 0, "efa")), wired("p5.48xlarge", nic(0, 0)), "network_interfaces[0].interface_type: efa-only at card 0, device 0: the primary interface of network card 0 needs an address"),
    ("EFA-05", wired("p5.48xlarge", PRIMARY), wired("p5.48xlarge", nic(1, 0)), "network_interfaces: no interface stands at network card 0, device 0"),
    ("EFA-06", wired("p6-b300.48xlarge", PRIMARY, nic(1, 0)), wired("p6-b300.48xlarge", PRIMARY, nic(0, 1)), "network_interfaces[1].interface_type: efa-only at card 0, device 1: card 0 of p6-b300.48xlarge has no EFA"),
    ("EFA-06", wired("p5.48xlarge", PRIMARY, nic(0, 1)), wired("p6e-gb200.36xlarge", nic(0, 0, "efa")), "card 0 of p6e-gb200.36xlarge has no EFA"),
    ("EFA-12", {"self_rules": [SelfRules("S/Group", True, True)]}, {"self_rules": [SelfRules("S/Group", True, False)]}, "security_groups: S/Group has no outbound rule for all traffic of itself"),
    ("EFA-12", {"self_rules": []}, {"self_rules": [SelfRules("S/Group", False, False)]}, "has no inbound and no outbound rule"),
    ("EFA-19", on_windows("g5.8xlarge", Efa()), on_windows("p5.48xlarge", Efa()), "image.platform: Windows does not run EFA on p5.48xlarge"),
    ("EFA-19", on_windows("p5.48xlarge", Efa(mode="none")), on_windows("trn1.32xlarge", Efa(), "windows with sql server"), "Windows with SQL Server does not run EFA"),
    ("EFA-19", on_windows("p5.48xlarge", Efa(), "Ubuntu Pro"), on_windows("p4d.24xlarge", Efa()), "does not run EFA on p4d.24xlarge"),
    ("EFA-27", cards(1, 5, 9, 13), cards(1, 2, 3, 4), "network_interfaces: EFA on the cards 1, 2, 3, 4, which share NICs or GPUs of p6e-gb200.36xlarge; take the cards 1, 5, 9, 13"),
    ("EFA-27", cards(*range(1, 17, 2)), cards(1, 5, 9, 13, kind="efa"), "network_interfaces[1].interface_type: efa at card 1, device 0: the odd cards of p6e-gb200.36xlarge take efa-only"),
    ("EFA-27", cards(), cards(1, 5), "EFA on the cards 1, 5"),
    ("FMB-30", {"instance_type": "p5.48xlarge", "efa": Efa(profile="max-ip-bandwidth"), "types": TYPES}, {"instance_type": "p5en.48xlarge", "efa": Efa(profile="max-ip-bandwidth"), "types": TYPES}, "efa.profile: max-ip-bandwidth has no documented layout on p5en.48xlarge"),
    ("FMB-30", {"instance_type": "p5en.48xlarge", "efa": Efa(profile="save-ip-addresses"), "types": TYPES}, {"instance_type": "g6.xlarge", "efa": Efa(profile="max-ip-bandwidth"), "types": TYPES}, "on g6.xlarge"),
    ("FMB-31", {"orchestrator": Orchestrator.EC2, "image": Image(id="ami-0123456789abcdef0")}, {"orchestrator": Orchestrator.EC2, "image": Image(id="ami-0123456789abcdef0", ssm_parameter="/a")}, "image.ssm_parameter: is given beside id, ami-0123456789abcdef0"),
    ("X-10", imaged("p6e-gb200.36xlarge", architecture="arm64"), imaged("p6e-gb200.36xlarge", architecture="x86_64"), "image.architecture: x86_64 does not boot on p6e-gb200.36xlarge, which is arm64"),
    ("X-10", imaged("p5.48xlarge", ssm_parameter="/aws/service/deeplearning/ami/x86_64/base/latest/ami-id"), imaged("p6e-gb200.36xlarge", ssm_parameter="/aws/service/deeplearning/ami/x86_64/base/latest/ami-id"), "image.ssm_parameter: /aws/service/deeplearning/ami/x86_64/base/latest/ami-id does not boot"),
    ("X-10", imaged("p5.48xlarge", id="ami-0123456789abcdef0"), imaged("p5.48xlarge", ssm_parameter="/own/arm64/ami"), "use an image for x86_64"),
    ("PG-02", {"placement": Placement(mode="spread", spread_level="rack")}, {"placement": Placement(mode="cluster", spread_level="rack")}, "placement.spread_level: rack is not read with mode cluster"),
    ("PG-02", {"placement": Placement()}, {"placement": Placement(mode="spread", spread_level="host")}, "placement.spread_level: host is for Outposts only"),
    ("CR-06", reserved("Linux/UNIX", None), reserved("windows", None), "capacity.create.platform: Windows, but the image of the group is Linux/UNIX"),
    ("CR-06", reserved("ubuntu pro", Image(platform="Ubuntu Pro")), reserved("Linux/UNIX", Image(platform="Ubuntu Pro")), "the image of the group is Ubuntu Pro: its instances would never match"),
    ("CR-06", {"capacity": ODCR, "image": Image(platform="Ubuntu Pro")}, reserved("RHEL with HA", Image()), "RHEL with HA, but"),
    ("CB-15", ultra(18), ultra(10), "count: 10 is no whole number of UltraServers, which have 9 or 18 instances; take a multiple of 9"),
    ("CB-15", ultra(10, "p5.48xlarge"), ultra(1), "1 is no whole number"),
    ("TP-02", planned("p5.48xlarge", "p5.48xlarge"), planned("p5.48xlarge", "p5en.48xlarge"), "node_groups[1].capacity.training_plan_arn: the plan of a, of p5.48xlarge, cannot feed p5en.48xlarge"),
    ("TP-02", planned("p5.48xlarge", "p5en.48xlarge", PLAN + "-2"), planned("p5en.48xlarge", "p5.48xlarge"), "give each type a plan of its own"),
    ("HP-04", flexible("p5e.48xlarge"), flexible("p5e.48xlarge", provisioning="standard"), "alternative_instance_types: p5e.48xlarge: a group of several types needs continuous provisioning"),
    ("HP-04", flexible(provisioning="standard"), flexible("p5.48xlarge"), "alternative_instance_types[0]: p5.48xlarge is named twice"),
    ("HP-04", flexible(*[name for name in sorted(TYPES) if TYPES[name].hyperpod and name != "p5.48xlarge"][:19]), flexible(*[name for name in sorted(TYPES) if TYPES[name].hyperpod and name != "p5.48xlarge"][:20]), "21 types with instance_type: HyperPod takes 20"),
    ("HP-04", flexible("p5en.48xlarge"), flexible("p9.48xlarge"), "p9.48xlarge is not an instance type of the catalogue"),
    ("HP-04", flexible("p5en.48xlarge"), flexible("trn2u.48xlarge"), "alternative_instance_types[0]: trn2u.48xlarge is not sold for HyperPod"),
    ("HP-05", least("hyperpod-eks", 4, "continuous"), least("hyperpod-eks", 5, "continuous"), "min_count: 5 is not between 0 and count, 4"),
    ("HP-05", least("hyperpod-slurm", None, "standard"), least("hyperpod-slurm", 1, "standard"), "min_count: 1 is read with continuous provisioning only"),
    ("HP-05", least("pcs", 5, "standard"), least("hyperpod-eks", -1, "continuous"), "-1 is not between"),
    ("PCS-06", least("pcs", 4), least("pcs", 5), "min_count: 5 is not between 0 and count, 4; lower it"),
    ("PCS-06", least("eks", 5), least("pcs", -1), "-1 is not between"),
    ("FMB-32", least("eks", 4), least("eks", 5), "min_count: 5 is not between"),
    ("FMB-32", least("pcs", 5), least("ec2", 5), "min_count: 5 is not between"),
    ("HP-16", checked("p5.48xlarge", "instance_stress", "instance_connectivity"), checked("p5.48xlarge", "instance_stress", "instance_stress"), "deep_health_checks: instance_stress, instance_stress names a check twice"),
    ("HP-16", checked("m7i.xlarge"), checked("m7i.xlarge", "instance_stress"), "instance_stress cannot be run on m7i.xlarge, which has no accelerator"),
    ("HP-18", hyperpod_image(threads_per_core=2), hyperpod_image(threads_per_core=3), "threads_per_core: 3 is neither 1 nor 2"),
    ("HP-18", hyperpod_image("ec2", threads_per_core=3), hyperpod_image(threads_per_core=0), "0 is neither"),
    ("HP-18", hyperpod_image(image=Image(id="ami-0123456789abcdef0")), hyperpod_image(image=Image(ssm_parameter="/a")), "image.ssm_parameter: /a cannot be used by HyperPod, which takes the id of an image"),
    ("HP-19", kubernetes("1.30"), kubernetes("1.29"), "kubernetes.version: 1.29 is not taken by HyperPod: 1.30 to 1.35"),
    ("HP-19", kubernetes("1.35"), kubernetes("1.36"), "1.36 is not taken"),
    ("HP-19", kubernetes("1.36", "eks"), kubernetes("1.36"), "take one of these"),
    ("HP-28", tiered(100), tiered(101), "tiered_storage.instance_memory_allocation_percentage: 101 is no percentage"),
    ("HP-28", tiered(None), tiered(-1), "-1 is no percentage"),
    ("FMB-33", read_by("hyperpod-slurm", "node_provisioning", "name"), read_by("ec2", "node_provisioning", "name"), "node_provisioning: is not read with orchestrator ec2; leave it out: it is for hyperpod-slurm and hyperpod-eks"),
    ("FMB-33", read_by("eks", "kubernetes"), read_by("pcs", "kubernetes"), "kubernetes: is not read with orchestrator pcs"),
    ("FMB-33", read_by("pcs", "slurm"), read_by("hyperpod-slurm", "slurm", "tiered_storage"), "slurm: is not read with orchestrator hyperpod-slurm"),
    ("FMB-33", read_by("eks", "access.admins"), read_by("pcs", "access.admins"), "access.admins: is not read with orchestrator pcs; leave it out: it is for hyperpod-eks and eks"),
    ("EKS-03", services("172.20.0.0/16"), services("172.20.0.0/25"), "kubernetes.service_cidr: 172.20.0.0/25 is no /12 to /24 inside"),
    ("EKS-03", services("172.16.0.0/12"), services("10.0.0.0/11"), "10.0.0.0/11 is no /12 to /24"),
    ("EKS-03", services(None), services("100.64.0.0/16"), "100.64.0.0/16 is no /12 to /24"),
    ("EKS-03", services("10.21.0.0/16"), services("10.20.8.0/24"), "10.20.8.0/24 overlaps the VPC, 10.20.0.0/16"),
    ("EKS-03", services("10.100.0.0/24"), services("ten"), "ten is no /12 to /24"),
    ("PCS-02", {"slurm": Slurm(version="25.11")}, {"slurm": Slurm(version="23.11")}, "slurm.version: 23.11 is not listed for PCS: 24.11, 25.05, 25.11, 26.05"),
    ("PCS-02", {"slurm": None}, {"slurm": Slurm(version="26.11")}, "26.11 is not listed"),
    ("PCS-10", pcs(1, version="25.05", rest_api=True), pcs(1, version="24.11", rest_api=True), "slurm.rest_api: true, which needs Slurm 25.05, and the version is 24.11"),
    ("PCS-10", pcs(32, size="small"), pcs(33, size="small"), "slurm.size: 33 nodes are more than the 32 of size small; take a larger size"),
    ("PCS-10", pcs(2048), pcs(2049), "node_groups: 2049 nodes are more than the 2048 of size large; use fewer nodes"),
    ("PCS-10", pcs(2049, "eks"), pcs(513, size="medium"), "513 nodes are more than the 512"),
    ("NET-05", {"public_subnets": {}}, {"public_subnets": {1: "S/Vpc/PublicSubnet1"}}, "subnets[1]: S/Vpc/PublicSubnet1 is public, and its nodes would get no address there; pass private subnets"),
    ("AMP-03", scraped("30s", collector="managed"), scraped("29s", collector="managed"), "scrape_interval: 29s is less than the 30s of a managed collector"),
    ("AMP-03", scraped("5s", collector="agents"), scraped("5s", collector="managed"), "write 30s or more"),
    ("AMP-04", collected("eks", "usw2-az1", "usw2-az2"), collected("eks", "usw2-az1"), "collector: managed, but network.availability_zones has usw2-az1 only: a collector takes two"),
    ("AMP-04", collected("ec2", "usw2-az1"), collected("hyperpod-eks", "usw2-az1"), "a collector takes two"),
    ("AMP-04", collected(None, "usw2-az1"), collected("eks", "usw2-az1"), "a collector takes two"),
    ("AMP-08", {"collector": Collector.MANAGED, "region": "us-west-2"}, {"collector": Collector.MANAGED, "region": "us-gov-west-1"}, "collector: AWS::APS::Scraper is not listed for us-gov-west-1"),
    ("AMP-08", {"collector": Collector.AGENTS, "region": "cn-north-1"}, {"collector": Collector.MANAGED, "region": "cn-north-1"}, "not listed for cn-north-1"),
    ("AMG-01", grafana(authentication=["SAML"], saml=SAML), grafana(authentication=["saml"]), "grafana.saml: is required with authentication saml"),
    ("AMG-01", grafana(), grafana(authentication=[]), "grafana.authentication: names no way to log in"),
    ("AMG-01", grafana(workspace="none", authentication=[]), grafana(saml=SAML), "grafana.saml: is not read without authentication saml"),
    ("AMG-03", grafana(account_access_type="organization", organizational_units=["ou-1"]), grafana(account_access_type="ORGANIZATION"), "grafana.organizational_units: are required with account_access_type organization"),
    ("AMG-03", grafana(), grafana(organizational_units=["ou-1"]), "are not read with account_access_type current_account"),
    ("AMG-04", grafana(name="a" * 255), grafana(name="a" * 256), "is no name of a workspace"),
    ("AMG-04", grafana(name="a-b.c_d~e"), grafana(name="a b"), "grafana.name: a b is no name of a workspace"),
    ("AMG-05", grafana(network_access={"prefix_list_ids": ["pl-1"] * 5}), grafana(network_access={"prefix_list_ids": ["pl-1"] * 6}), "grafana.network_access.prefix_list_ids: 6 are more than 5"),
    ("AMG-05", grafana(), grafana(network_access={}), "grafana.network_access: lets nobody in"),
    ("AMG-05", grafana(network_access={"vpc_endpoint_ids": ["vpce-1"]}), grafana(network_access={"vpc_endpoint_ids": ["vpce-1"] * 6}), "vpc_endpoint_ids: 6 are more than 5"),
    ("AMG-06", shown(vpc=True), shown(zones=("us-west-2a",), vpc=True), "grafana.vpc: true, but network.availability_zones has us-west-2a: a workspace takes 2 to 6 zones"),
    ("AMG-06", shown(zones=("us-west-2a",)), shown(zones=("us-west-2a", "us-west-2-lax-1a"), vpc=True), "a workspace takes 2 to 6 zones"),
    ("AMG-06", shown(vpc=True), shown(region="ap-northeast-2", vpc=True), "workspaces of ap-northeast-2 join no VPC"),
    ("AMG-09", {"grafana": Grafana(region="us-west-2"), "region": "us-west-1"}, {"grafana": Grafana(), "region": "us-west-1"}, "grafana: AWS::Grafana::Workspace is not listed for us-west-1; write grafana: {region: …}"),
    ("AMG-09", {"grafana": Grafana(workspace="none"), "region": "eu-west-3"}, {"grafana": Grafana(region="eu-west-3"), "region": "us-west-2"}, "grafana.region: AWS::Grafana::Workspace is not listed for eu-west-3"),
    ("FMB-34", unbuilt("grafana", "alerts", grafana=Grafana(workspace="none"), alerts=Alerts(email=("a@example.com",))), unbuilt("alerts", alerts=Alerts(repeat_interval="1h")), "alerts.repeat_interval: is checked here"),
    ("FMB-34", unbuilt("prometheus"), unbuilt("grafana", grafana=Grafana()), "grafana: is checked here, but this version does not build it"),
    ("FMB-34", unbuilt("collector", "scrape_interval", collector=Collector.AGENTS, orchestrator=Orchestrator.EKS), unbuilt("collector", collector=Collector.AGENTS, orchestrator=Orchestrator.EC2), "collector: is checked here"),
    ("FMB-34", unbuilt(), unbuilt("collector", collector=Collector.MANAGED, orchestrator=Orchestrator.EKS), "collector: is checked here"),
    ("FMB-34", unbuilt("scrape_interval", collector=Collector.AGENTS, orchestrator=Orchestrator.EKS), unbuilt("scrape_interval", orchestrator=Orchestrator.EKS), "leave it out to deploy, or write collector: agents"),
    ("FMB-35", scraped("30s", "30s"), scraped("30s", "31s"), "scrape_timeout: 31s is more than scrape_interval, 30s"),
    ("FMB-35", scraped(None, "30s"), scraped(None, "1m"), "1m is more than scrape_interval, 30s"),
    ("FMB-36", topic(topic_arn=TOPIC), topic("444455556666", topic_arn=TOPIC), "alerts.topic_arn: the topic belongs to 111122223333, the metrics workspace to 444455556666"),
    ("FMB-36", topic(None, topic_arn=TOPIC), topic(topic_arn="ops"), "ops is not the ARN of a topic"),
    ("FMB-37", topic(topic_arn=TOPIC), topic(region="us-east-1", topic_arn=TOPIC), "alerts.topic_arn: the topic is in us-west-2, the metrics workspace in us-east-1"),
    ("FMB-37", topic(region=None, topic_arn=TOPIC), topic(region="eu-west-1", topic_arn=TOPIC), "in eu-west-1"),
    ("FMB-38", {"alerts": Alerts(repeat_interval="120h")}, {"alerts": Alerts(repeat_interval="7d")}, "alerts.repeat_interval: 7d is more than 5d; write 5d or less"),
    ("FMB-38", {"alerts": None}, {"alerts": Alerts(repeat_interval="5d1s")}, "5d1s is more than 5d"),
    ("FMB-78", api(), api(endpoint="public_and_private"), "kubernetes.public_access_cidrs: is required with a public endpoint"),
    ("FMB-78", api(endpoint="public_and_private", public_access_cidrs=["203.0.113.0/24"]), api(public_access_cidrs=["203.0.113.0/24"]), "kubernetes.public_access_cidrs: 203.0.113.0/24 reach nothing: the endpoint is private"),
    ("FMB-78", {"kubernetes": None}, api(endpoint="public_and_private", public_access_cidrs=["office"]), "kubernetes.public_access_cidrs[0]: office is no IPv4 range"),
    ("FMB-78", api(endpoint="public_and_private", public_access_cidrs=["0.0.0.0/1"]), api(endpoint="public_and_private", public_access_cidrs=["0.0.0.0/0"]), "0.0.0.0/0 is everybody"),
    ("FMB-78", api(endpoint="public_and_private", public_access_cidrs=["198.51.100.7/32"]), api(endpoint="public_and_private", public_access_cidrs=["198.51.100.7"]), "198.51.100.7 is no IPv4 range"),
    ("FMB-79", admins("arn:aws:iam::111122223333:role/path/Admin"), admins("arn:aws:iam::111122223333:root"), "access.admins[0]: arn:aws:iam::111122223333:root is the ARN of no IAM role or user"),
    ("FMB-79", admins("arn:aws:iam::111122223333:user/ana"), admins("arn:aws:iam::111122223333:user/ana", "arn:aws:iam::111122223333:user/ana"), "access.admins[1]: arn:aws:iam::111122223333:user/ana is named twice"),
    ("FMB-80", admins("arn:aws:iam::111122223333:role/Admin"), admins(), "access.admins: is empty, so that nobody can use kubectl"),
    ("FMB-80", admins(orchestrator="pcs"), admins(), "add access: {admins: [arn:…]}"),
    ("FMB-81", api(version="1.36"), api(version="1.34"), "kubernetes.version: 1.34 has no pinned version of vpc-cni, kube-proxy"),
    ("FMB-81", api(version="1.34", add_ons=[{"name": name, "version": "v1.0.0-eksbuild.1"} for name in ADD_ONS]), api(version="1.34", add_ons=[{"name": name, "version": "v1.0.0-eksbuild.1"} for name in ADD_ONS[1:]]), "1.34 has no pinned version of vpc-cni: EKS takes its default"),
    ("FMB-81", api(), api(version="1.34"), "or add them to add_ons and install aws-cdk.lambda-layer-kubectl-v34, its kubectl"),
    ("FMB-82", api(add_ons=[{"name": "a", "version": "v1.0.0-eksbuild.1"}]), api(add_ons=[{"name": "a", "version": "v1.0.0-eksbuild.1"}] * 2), "kubernetes.add_ons[1].name: a is named twice"),
    ("FMB-82", {"kubernetes": None}, api(add_ons=[{"name": "a", "version": "v1.0.0-eksbuild.1", "service_account": "b"}]), "kubernetes.add_ons[0]: role_arn and service_account go together"),
    ("FMB-82", add_on(), add_on(version="latest"), "kubernetes.add_ons[0].version: latest is no version; it looks like v1.2.3-eksbuild.1"),
    ("FMB-82", add_on(role_arn="arn:aws:iam::111122223333:role/a", service_account="b"), add_on(role_arn="arn:aws:iam::aws:policy/a", service_account="b"), "kubernetes.add_ons[0].role_arn: arn:aws:iam::aws:policy/a is the ARN of no IAM role"),
    ("FMB-83", eks_groups(SYSTEM_GROUP, Group()), eks_groups(SYSTEM_GROUP, dataclasses.replace(SYSTEM_GROUP, name="more")), "node_groups: 2 groups have role system (system, more)"),
    ("FMB-83", eks_groups(dataclasses.replace(SYSTEM_GROUP, count=1)), eks_groups(dataclasses.replace(SYSTEM_GROUP, count=0)), "node_groups[0].count: 0 nodes for DNS"),
    ("FMB-83", eks_groups(), eks_groups(dataclasses.replace(SYSTEM_GROUP, instance_type="g6.2xlarge")), "node_groups[0].instance_type: g6.2xlarge has accelerators"),
    ("FMB-83", eks_groups(SYSTEM_GROUP, ON_DEMAND_POOL), eks_groups(dataclasses.replace(SYSTEM_GROUP, count=1), ON_DEMAND_POOL), "node_groups[0].count: 1 nodes for DNS, webhooks and controllers, and Karpenter (gpu) needs 2; write 2 or more"),
    ("FMB-83", eks_groups(SYSTEM_GROUP), eks_groups(dataclasses.replace(Group(), name="system")), "node_groups[0].name: system is what the nodes of controllers are labelled with"),
    ("FMB-84", closed(Group(), **MIRRORED), closed(Group(), services=["ec2", "eks"], **MIRRORED), "network.endpoints: has no endpoint of lambda, without which eks does not come up; write network: {endpoints: [ec2, eks, lambda]}"),
    ("FMB-84", closed(orchestrator=Orchestrator.HYPERPOD_SLURM, database=True, services=["secretsmanager"]), closed(orchestrator=Orchestrator.HYPERPOD_SLURM, database=True, services=[]), "network.endpoints: has no endpoint of secretsmanager, without which hyperpod-slurm does not come up"),
    ("FMB-84", closed(SYSTEM_GROUP, orchestrator=Orchestrator.HYPERPOD_EKS, services=["eks", "eks-auth", "lambda", "sagemaker.api"]), closed(SYSTEM_GROUP, orchestrator=Orchestrator.HYPERPOD_EKS), "network.endpoints: has no endpoint of eks-auth and sagemaker.api"),
    ("FMB-84", closed(SYSTEM_GROUP), closed(SYSTEM_GROUP, kueue=True, image_registry="r"), "training.kubernetes.chart_registry: is not given"),
    ("FMB-84", closed(SYSTEM_GROUP, closed=False, kube_ray=True), closed(SYSTEM_GROUP, kube_ray=True, image_registry="r"), "training.kubernetes.chart_registry: is not given"),
    ("FMB-84", closed(Group(), **MIRRORED), closed(dataclasses.replace(Group(), provisioned_by=Provisioner.KARPENTER), **MIRRORED), "training.node_groups[0].provisioned_by: karpenter needs IAM's API, which no endpoint reaches"),
    ("FMB-84", closed(SYSTEM_GROUP), closed(SYSTEM_GROUP, collected=True), "training.kubernetes.image_registry: is not given, and a closed network reaches no public images"),
    ("FMB-84", closed(orchestrator=Orchestrator.PCS, services=["pcs"]), closed(orchestrator=Orchestrator.PCS, services=["ec2"]), "network.endpoints: has no endpoint of pcs, without which pcs does not come up; write network: {endpoints: [ec2, pcs]}"),
    ("FMB-84", closed(orchestrator=Orchestrator.EC2, services=[]), closed(services=[]), "no endpoint of eks and lambda"),
    ("FMB-84", closed(Group(), closed=False), closed(Group(), chart_registry="oci://r"), "training.kubernetes.image_registry: is not given"),
    ("FMB-86", {"orchestrator": Orchestrator.PCS, "efa_enabled": True}, {"orchestrator": Orchestrator.EKS, "efa_enabled": True}, "efa_enabled: true, but pods on Amazon Linux nodes of EKS mount over TCP"),
    ("FMB-86", {"orchestrator": Orchestrator.EKS, "efa_enabled": False}, {"orchestrator": Orchestrator.EKS, "efa_enabled": True}, "leave it out unless"),
    ("FMB-87", pool(), pool(role=NodeRole.SYSTEM), "provisioned_by: karpenter runs on the system nodes itself"),
    ("FMB-87", pool(capacity=ODCR), pool(capacity=Capacity(mode="odcr", resource_group_arn="arn:x")), "capacity.resource_group_arn: is not read with provisioned_by karpenter: Karpenter selects reservations by their ids"),
    ("FMB-87", pool(provisioned_by=Provisioner.NODE_GROUP, min_count=1), pool(min_count=1), "min_count: is not read with provisioned_by karpenter"),
    ("FMB-87", pool(efa=Efa(mode="none")), pool(efa=Efa(interface_type="efa")), "efa.interface_type: is not read"),
    ("FMB-87", pool(), pool(image=Image(id="ami-0123456789abcdef0")), "image: is not read with provisioned_by karpenter: Karpenter takes EKS's image"),
    ("FMB-87", pool(), pool(efa=Efa(secondary_device_index=1)), "efa.secondary_device_index: is not read"),
    ("FMB-87", pool(), pool(network_interfaces=(NetworkInterface(network_card_index=0, device_index=0, interface_type="interface"),)), "network_interfaces: is not read with provisioned_by karpenter: interfaces are those of the catalogue"),
    ("FMB-87", pool(), pool(capacity=Capacity(mode="odcr", create={"tenancy": "dedicated"})), "capacity.create.tenancy: is not read with provisioned_by karpenter: Karpenter starts no dedicated instances"),
    ("FMB-94", keys("name", "count", "ebs_volume_gib"), keys("name", "capacity"), "capacity: is not read for the system group, whose nodes are on demand and on EKS's image; leave it out"),
    ("FMB-94", keys("efa", role=NodeRole.COMPUTE), keys("efa"), "efa: is not read"),
    ("FMB-94", keys("min_count", orchestrator=Orchestrator.PCS), keys("min_count"), "min_count: is not read"),
    ("FMB-88", of_pcs(0), of_pcs(1), "min_count: 1 of 4: PCS keeps all nodes of a group, or starts them all with jobs"),
    ("FMB-88", of_pcs(4), of_pcs(3), "write 0, or leave it out"),
    ("FMB-88", of_pcs(1, orchestrator="eks"), of_pcs(2), "2 of 4"),
    ("FMB-88", of_pcs(4, role=NodeRole.LOGIN), of_pcs(0, role=NodeRole.LOGIN), "min_count: 0, but no job starts a login node, which is in no queue; leave it out to keep all"),
    ("FMB-89", booted("p5.48xlarge"), booted("trn2.48xlarge"), "image: is not given, and AWS describes no image for PCS with the Neuron driver of trn2.48xlarge"),
    ("FMB-89", booted("trn2.48xlarge", Image(id="ami-0123456789abcdef0")), booted("trn1.32xlarge"), "build one with PCS's agent"),
    ("FMB-89", booted("trn2.48xlarge", orchestrator="ec2"), booted("trn2.48xlarge"), "is not given"),
    ("FMB-90", slurm(open_metrics=True), slurm(open_metrics=True, version="25.05"), "slurm.open_metrics: true, which needs Slurm 25.11, and the version is 25.05"),
    ("FMB-90", slurm(custom_settings={"MetricsType": "x"}, open_metrics=False), slurm(custom_settings={"MetricsType": "x"}), "slurm.custom_settings.MetricsType: x, but open_metrics sets it"),
    ("FMB-90", slurm(custom_settings={"MetricsType": "x"}, version="25.05"), slurm(custom_settings={"CommunicationParameters": "x"}), "slurm.custom_settings.CommunicationParameters: x, but open_metrics sets it"),
    ("FMB-90", slurm(accounting_purge_days=1), slurm(accounting_purge_days=0), "slurm.accounting_purge_days: 0 is not between 1 and 10000"),
    ("FMB-90", slurm(accounting_purge_days=10000), slurm(accounting_purge_days=10001), "10001 is not between"),
    ("FMB-90", slurm(accounting=False), slurm(accounting=False, accounting_purge_days=7), "slurm.accounting_purge_days: is not read without accounting"),
    ("FMB-90", slurm(scale_down_idle_seconds=1), slurm(scale_down_idle_seconds=0), "slurm.scale_down_idle_seconds: 0 is below 1"),
    ("FMB-90", slurm(custom_settings={"AccountingStorageEnforce": "limits"}), slurm(accounting=False, custom_settings={"AccountingStorageEnforce": "limits"}), "slurm.custom_settings.AccountingStorageEnforce: is not read without accounting"),
    ("FMB-91", slurm(custom_settings={"PreemptMode": "REQUEUE"}), slurm(custom_settings={"PreemtMode": "REQUEUE"}), "slurm.custom_settings.PreemtMode: is not listed among the parameters that PCS takes; did you mean PreemptMode?"),
    ("FMB-91", {"slurm": None}, slurm(custom_settings={"GresTypes": "gpu"}), "GresTypes: is not listed"),
    ("FMB-92", {"orchestrator": Orchestrator.EKS, "home_given": False}, {"orchestrator": Orchestrator.EKS, "home_given": True}, "storage.home: is made, but pods of EKS do not mount it"),
    ("FMB-96", patched(strategy="when_idle"), patched(), "patching: takes strategy or schedule, one of the two; write strategy: when_idle"),
    ("FMB-96", patched(schedule="cron(30 3 ? * SUN *)"), patched(schedule="cron(30 3 ? * SUN *)", strategy="when_idle"), "takes strategy or schedule"),
    ("FMB-96", patched(schedule="cron(0 1 1 * ? *)"), patched(schedule="rate(1 day)"), "patching.schedule: rate(1 day) is no time that HyperPod takes"),
    ("FMB-96", patched(strategy="when_idle"), patched(Orchestrator.HYPERPOD_SLURM, strategy="when_idle"), "patching.strategy: when_idle is for clusters with EKS"),
    ("FMB-96", patched(strategy="when_idle", batch_count=1), patched(strategy="when_idle", batch_count=0), "patching.batch_count: 0 is below 1"),
    ("FMB-96", patched(strategy="when_idle", batch_percentage=100), patched(strategy="when_idle", batch_percentage=101), "patching.batch_percentage: 101 is no percentage"),
    ("FMB-96", patched(strategy="when_idle", batch_count=1), patched(strategy="when_idle", batch_count=1, batch_percentage=5), "patching.batch_percentage: is given beside batch_count"),
    ("FMB-96", patched(strategy="when_idle", wait_seconds=3600), patched(strategy="when_idle", wait_seconds=3601), "patching.wait_seconds: 3601 is not between 0 and 3600"),
    ("FMB-96", patched(strategy="when_idle", rollback_alarms=["a"] * 10), patched(strategy="when_idle", rollback_alarms=["a"] * 11), "patching.rollback_alarms: 11 alarms: HyperPod takes 10"),
    ("FMB-97", brought(hyperpod_add_ons=["observability"]), brought(Orchestrator.EKS, hyperpod_add_ons=["observability"]), "kubernetes.hyperpod_add_ons: is not read with orchestrator eks; leave it out: it is for hyperpod-eks"),
    ("FMB-97", brought(hyperpod_add_ons=["observability"]), brought(hyperpod_add_ons=["observability", "observability"]), "kubernetes.hyperpod_add_ons[1]: observability is named twice"),
    ("FMB-97", brought(kueue=True), brought(kueue=True, hyperpod_add_ons=["task_governance"]), "kubernetes.kueue: true, but task_governance brings a Kueue of its own"),
    ("FMB-97", brought(hyperpod_add_ons=["task_governance"], add_ons=[GOVERNANCE]), brought(add_ons=[GOVERNANCE]), "kubernetes.add_ons[0].name: amazon-sagemaker-hyperpod-taskgovernance is not among hyperpod_add_ons"),
    ("FMB-98", {"availability_zone": "usw2-az1", "availability_zones": ["usw2-az1"]}, {"availability_zone": "usw2-az3", "availability_zones": ["usw2-az1", "usw2-az2"]}, "availability_zone: usw2-az3 is not among network.availability_zones (usw2-az1, usw2-az2)"),
    ("FMB-99", pools(), pools(node_provisioning=NodeProvisioning.STANDARD), "node_provisioning: standard, and Karpenter starts nodes of gpu with continuous only"),
    ("FMB-99", pools(), pools(node_recovery=NodeRecovery.NONE), "node_recovery: none, and Karpenter starts nodes of gpu with automatic recovery only"),
    ("FMB-99", pools(number=10), pools(number=11), "node_groups: 11 groups are started by Karpenter"),
    ("FMB-100", {"chart": CHART, "chart_values": {"trainingOperators": {"enabled": True}, "gpu-operator": {"enabled": False}, "global": {"region": "x"}, "health-monitoring-agent": {"hmaimage": "x"}}}, {"chart": CHART, "chart_values": {"trainingOperators": {"enable": True}}}, "kubernetes.dependency_chart.values: trainingOperators.enable is no value of the chart in"),
    ("FMB-100", {"chart": CHART, "chart_values": None}, {"chart": CHART, "chart_values": {"mlflow": {"enabled": True}}}, "mlflow is no value of the chart"),
    ("FMB-101", pooled(), pooled(capacity=Capacity(mode="spot")), "capacity.mode: spot cannot be used with provisioned_by karpenter, which starts nodes on demand only"),
    ("FMB-101", pooled(), pooled(min_count=1), "min_count: 1 is not read with provisioned_by karpenter"),
    ("FMB-101", pooled(), pooled(deep_health_checks=[DeepHealthCheck.INSTANCE_STRESS]), "deep_health_checks: instance_stress cannot be used with provisioned_by karpenter"),
    ("FMB-101", pooled(), pooled(every_type=["p6e-gb200.36xlarge"]), "provisioned_by: p6e-gb200.36xlarge is of ARM, which HyperPod's Karpenter does not start"),
    ("FMB-101", pooled(), pooled(alternative_instance_types=["m7i.2xlarge"]), "alternative_instance_types: m7i.2xlarge cannot be used with provisioned_by karpenter"),
    ("FMB-112", soon(), soon(deep=True), "kubernetes.hyperpod_add_ons: observability are installed on a node of HyperPod, and none runs within the hour that CloudFormation waits"),
    ("FMB-112", soon(deep=True, add_ons=[]), soon(count=0), "kubernetes.hyperpod_add_ons: observability"),
    ("FMB-112", soon(), soon(by=Provisioner.KARPENTER), "add a small group: count 1 or more, not by karpenter, without deep_health_checks"),
    ("FMB-112", soon(), soon(role=NodeRole.SYSTEM), "observability are installed"),
    ("FMB-113", placed("charts/hyperpod"), placed("."), "kubernetes.dependency_chart.path: . is not below the project file's folder, and `fmblocks chart pull` replaces it"),
    ("FMB-113", placed("x"), placed("/etc"), "/etc is not below"),
    ("FMB-113", {"kubernetes": None}, placed("charts/../.."), "charts/../.. is not below"),
    ("FMB-114", {"orchestrator": Orchestrator.HYPERPOD_EKS, "closed": False}, {"orchestrator": Orchestrator.HYPERPOD_EKS, "closed": True}, "network.nat_gateways: is 0, and parts of HyperPod's chart pull images from public registries"),
    ("FMB-115", {"capacity_gib": 1200, "throughput": 125}, {"capacity_gib": 1199, "throughput": 125}, "lustre_capacity_gib: 1199 is not between 1200 and 100800"),
    ("FMB-115", {"capacity_gib": 100800, "throughput": 1000}, {"capacity_gib": 1200, "throughput": 1001}, "lustre_throughput_mbps_per_tib: 1001 is not between 125 and 1000"),
    ("FMB-103", team(), team({"name": "a" * 41}), "teams[0].name: " + "a" * 41 + " is no name of a team"),
    ("FMB-105", users(MEMBER, slurm=False, kubernetes_teams=True), users({**MEMBER, "principal_arn": "arn:aws:iam::111122223333:role/Admin"}, slurm=False, kubernetes_teams=True), "access.users[0].principal_arn: arn:aws:iam::111122223333:role/Admin is among access.admins"),
    ("FMB-105", users({"name": "carol"}), users({"name": "docker"}), "docker is no name for a user"),
    ("FMB-104", shares(4), shared_two({"count": 3}, {"accelerators": 9}), "teams: 4.125 nodes of p5.48xlarge are promised together"),
    ("FMB-106", priorities(("high", 1)), priorities(("Bad_Name", 1)), "priorities[0].name: Bad_Name is no name of a class"),
    ("FMB-102", {"orchestrator": Orchestrator.HYPERPOD_EKS, "region": "us-west-2"}, {"orchestrator": Orchestrator.HYPERPOD_EKS, "region": "ca-central-1"}, "region: the chart's health agent is not listed for ca-central-1"),
    ("FMB-103", team(), team(task_governance=False), "teams: are given, but nothing here would keep them apart; on hyperpod-eks write training.kubernetes.hyperpod_add_ons: [task_governance], else use hyperpod-slurm"),
    ("FMB-103", team(), team(teams=[TEAM, TEAM]), "teams[1].name: red is named twice"),
    ("FMB-103", team({"quotas": [], "name": "roots"}, slurm=True), team({"quotas": [], "name": "root"}, slurm=True), "teams[0].name: root is Slurm's own account"),
    ("FMB-103", team({"fair_share_weight": 100}), team({"fair_share_weight": 101}), "teams[0].fair_share_weight: 101 is not between 0 and 100"),
    ("FMB-103", team({"borrow_limit_percentage": 10000}), team({"borrow_limit_percentage": 10001}), "teams[0].borrow_limit_percentage: 10001 is not between 0 and 10000"),
    ("FMB-103", team({"sharing": "lend"}), team({"sharing": "lend", "borrow_limit_percentage": 5}), "teams[0].borrow_limit_percentage: 5, but a team with sharing lend borrows nothing"),
    ("FMB-103", team(), team({"quotas": []}), "teams[0].quotas: is empty"),
    ("FMB-103", team(), team({"quotas": [{"instance_type": "g5.xlarge", "count": 1}]}), "teams[0].quotas[0].instance_type: no group has g5.xlarge; known here: m5.large, p5.48xlarge"),
    ("FMB-103", team(), team({"quotas": [{"instance_type": "p5.48xlarge", "count": 1}] * 2}), "teams[0].quotas[1].instance_type: p5.48xlarge is named twice"),
    ("FMB-103", team(), team({"quotas": [{"instance_type": "p5.48xlarge", "count": 1, "vcpus": 2}]}), "teams[0].quotas[0]: takes one of count, accelerators, vcpus, memory_gib, not 2"),
    ("FMB-103", team(), team({"quotas": [{"instance_type": "p5.48xlarge", "count": -1}]}), "teams[0].quotas[0]: count is below 0"),
    ("FMB-103", team(), team({"quotas": [{"instance_type": "m5.large", "accelerators": 1}]}), "teams[0].quotas[0].accelerators: m5.large has none"),
    ("FMB-103", team({"quotas": []}, slurm=True), team({"quotas": [{"instance_type": "p5.48xlarge", "count": 1}]}, slurm=True), "teams[0].quotas: is not read on Slurm"),
    ("FMB-103", team(), team({"quotas": [{"instance_type": "p5.48xlarge", "count": 1}] * 16}), "teams[0].quotas: 16 are more than the 15 of a team"),
    ("FMB-104", shares(4), shares(5), "teams: 5 nodes of p5.48xlarge are promised together, and the groups have 4"),
    ("FMB-104", shares(32, "accelerators"), shares(33, "accelerators"), "teams: 4.125 nodes of p5.48xlarge are promised together, and the groups have 4"),
    ("FMB-105", users({}), users({}, slurm=False, teams_given=False), "access.users: are given, but nothing here lets them in"),
    ("FMB-105", users({}), users({}, {}), "access.users[1].name: ana is named twice"),
    ("FMB-105", users({}, {"name": "ben", "uid": 10002}), users({}, {"name": "ben"}), "access.users[1].uid: 10001 is that of ana already"),
    ("FMB-105", users({"uid": 2000}), users({"uid": 1999}), "access.users[0].uid: 1999 is not between 2000 and 60000"),
    ("FMB-105", users({"uid": 60000}), users({"uid": None}), "access.users[0].uid: is required on Slurm: files belong to numbers"),
    ("FMB-105", users({}), users({"name": "Ana"}), "access.users[0].name: Ana is no name for a user"),
    ("FMB-105", users({}), users({"name": "ubuntu"}), "ubuntu is no name for a user"),
    ("FMB-105", users({"account": "red"}), users({"account": "blue"}), "access.users[0].account: blue is no team; known here: red"),
    ("FMB-105", users({"principal_arn": "arn:aws:iam::111122223333:role/Ana"}), users({"principal_arn": "Ana"}), "access.users[0].principal_arn: Ana is the ARN of no IAM role or user"),
    ("FMB-105", users(MEMBER, slurm=False, kubernetes_teams=True), users({**MEMBER, "uid": 10001}, slurm=False, kubernetes_teams=True), "access.users[0].uid: is not read on Kubernetes"),
    ("FMB-105", users(MEMBER, slurm=False, kubernetes_teams=True), users({**MEMBER, "account": None}, slurm=False, kubernetes_teams=True), "access.users[0].account: is required on Kubernetes"),
    ("FMB-105", users(MEMBER, slurm=False, kubernetes_teams=True), users(MEMBER, {**MEMBER, "name": "ben"}, slurm=False, kubernetes_teams=True), "access.users[1].principal_arn: arn:aws:iam::111122223333:role/Ana is somebody else's"),
    ("FMB-106", priorities(("high", 100)), priorities(("high", 101)), "priorities[0].weight: 101 is not between 0 and 100"),
    ("FMB-106", priorities(("high", 0)), priorities(("high", 1), ("high", 2)), "priorities[1].name: high is named twice"),
    ("FMB-106", priorities(), priorities(("high", 1), governed=False), "priorities: are not read without task governance"),
    ("FMB-106", priorities(*((f"p{n}", n) for n in range(10))), priorities(*((f"p{n}", n) for n in range(11))), "priorities: 11 are more than 10"),
    ("FMB-107", governed("us-west-2"), governed("ca-west-1"), "region: AWS::SageMaker::ComputeQuota is not listed for ca-west-1"),
    ("FMB-109", accounted(), accounted(NodeProvisioning.STANDARD), "storage.accounting_database: needs continuous provisioning, and node_provisioning is standard"),
    ("FMB-109", accounted(given=False), accounted(orchestrator=Orchestrator.PCS), "storage.accounting_database: is not read with orchestrator pcs"),
    ("FMB-110", database(), database(zones=["usw2-az1"]), "accounting_database: stands in usw2-az1, and Aurora asks for subnets of two zones"),
    ("FMB-110", database(min_capacity_acu="0.5"), database(min_capacity_acu="0.25"), "accounting_database.min_capacity_acu: 0.25 is not 0.5 to 256 in steps of 0.5"),
    ("FMB-110", database(max_capacity_acu="256"), database(max_capacity_acu="256.5"), "accounting_database.max_capacity_acu: 256.5 is not"),
    ("FMB-110", database(min_capacity_acu="4"), database(min_capacity_acu="4.5"), "accounting_database.max_capacity_acu: 4 is below min_capacity_acu, 4.5"),
    ("FMB-110", database(backup_retention_days="35"), database(backup_retention_days="36"), "accounting_database.backup_retention_days: 36 is not between 1 and 35"),
    ("FMB-110", database(), database(engine_version="8.0"), "accounting_database.engine_version: 8.0 is no version of Aurora MySQL"),
    ("FMB-111", database_in("a"), database_in("a", "b"), "accounting_database.availability_zone: is not given, and there are a, b: a zone that joins must not move the database"),
    ("FMB-111", database_in("a", "b", given="b"), database_in("a", "b", given="p"), "accounting_database.availability_zone: p is no zone of the network beside the primary one, p; take a or b"),
    ("HP-11", {"node_groups": [CONTROLLER, Group(), Group("login", NodeRole.LOGIN)]}, {"node_groups": [CONTROLLER, Group(), Group("login", NodeRole.LOGIN), Group("other", NodeRole.LOGIN)]}, "node_groups: 2 groups have role login (login, other): HyperPod takes one at most"),
    ("FMB-92", {"orchestrator": Orchestrator.PCS, "home_given": True}, {"orchestrator": Orchestrator.EKS, "home_given": True}, "leave it out"),
    ("NET-02", room([Group(count=14)], 0, 256, Orchestrator.EKS), room([Group(count=15)], 0, 256, Orchestrator.EKS), "node_groups: 255 addresses (gpu 255) do not fit the 251"),
    ("FMB-39", grafana(workspace="g-0123456789"), grafana(workspace="mine"), "grafana.workspace: mine is neither create nor none nor the id of a workspace"),
]  # fmt: skip


@pytest.mark.parametrize(("id", "right", "wrong", "text"), CASES)
def test_a_rule_tells_right_from_wrong(id: str, right: dict[str, Any], wrong: dict[str, Any], text: str) -> None:
    assert check([id], right) == []
    found = check([id], wrong)
    assert [finding.rule for finding in found] == [id] * len(found)
    assert any(text in str(finding) for finding in found), [str(finding) for finding in found]
    assert all(finding.hint for finding in found)


Cases = Sequence[tuple[str, dict[str, Any], dict[str, Any], str]]
CHOSEN = {id for id, _ in CHOICES.values()}
WANTED = sorted(
    entry.id
    for entry in entries().values()
    if entry.kind is Kind.RULE
    and entry.checked_as is None
    and entry.id not in PROJECT_RULES
    and (entry.id not in CHOSEN or entry.id in RULES)
)


def complete(id: str, rules: Mapping[str, Rule], cases: Cases) -> bool:
    """Whether a rule of the book has a function that is silent about some settings and speaks about others."""
    if id not in rules:
        return False
    found = rules[id]

    def speaks(values: dict[str, Any]) -> bool:
        return bool([*found.function(**{name: values[name] for name in found.parameters})])

    own = [(right, wrong) for case, right, wrong, _ in cases if case == id]
    return any(not speaks(right) for right, _ in own) and any(speaks(wrong) for _, wrong in own)


@pytest.mark.parametrize("id", WANTED)
def test_every_rule_has_a_function_and_cases_on_both_sides(id: str) -> None:
    def silent(**_: object) -> Iterator[Violation]:
        yield from ()

    def loud(**_: object) -> Iterator[Violation]:
        yield Violation("key", "always", "never")

    assert complete(id, RULES, CASES)
    # The check itself can fail: each way in which a rule is forgotten.
    assert not complete(id, {other: rule for other, rule in RULES.items() if other != id}, CASES)
    assert not complete(id, RULES, [case for case in CASES if case[0] != id])
    for function in (silent, loud):
        assert not complete(id, {**RULES, id: dataclasses.replace(RULES[id], function=function)}, CASES)


@pytest.mark.parametrize("kind", CHOICES)
def test_what_is_no_member_is_refused_under_its_rule(kind: type[StrEnum]) -> None:
    found = not_a_member(kind, "qqqq", "some.key")
    assert (found.rule, found.severity) == (CHOICES[kind][0], Severity.ERROR)
    assert "some.key: qqqq is not one of " in str(found)
    assert found.hint == CHOICES[kind][1]
    near = not_a_member(kind, next(iter(kind)) + "x", "k")
    assert near.hint.startswith("did you mean")


def test_nothing_is_registered_that_the_book_does_not_want() -> None:
    assert sorted(RULES) == WANTED
    assert {case[0] for case in CASES} == set(RULES)


def test_a_rule_id_is_registered_once() -> None:
    with pytest.raises(ValueError, match="NET-01 is registered twice"):
        rule("NET-01")(lambda: iter(()))


def test_a_rule_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*, cidr: str) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setitem(RULES, "FMB-17", dataclasses.replace(RULES["FMB-17"], function=broken))
    assert check(["FMB-17"], {"cidr": "x"}, path="network") == [
        Finding(
            "FMB-17",
            Severity.ERROR,
            "network",
            "the rule itself failed: RuntimeError: out of order",
            "report this as a bug of fmblocks",
        )
    ]


def test_a_rule_with_an_unknown_input_is_skipped() -> None:
    assert check(["FMB-17"], {"cidr": "token"}, unresolved=lambda value: value == "token") == []


def test_findings_name_file_line_and_place(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text("name: abc\nnetwork:\n  availability_zones: 1\n  cidr: 10.0.0.0/24\n")
    with pytest.raises(ValueError, match=r"p\.yaml:4: error \[NET-01\] network\.cidr: 10\.0\.0\.0/24 is too small"):
        Project.load(file)
