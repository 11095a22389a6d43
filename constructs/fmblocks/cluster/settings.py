"""What a project file says about its training cluster."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.capacity.settings import Capacity
from fmblocks.catalog import normalise
from fmblocks.compute.settings import Efa, Image, NetworkInterface, Placement
from fmblocks.settings import AnyCase, Name, Settings, Text, WholeNumber, spelled


class Orchestrator(StrEnum):
    """Who places jobs on nodes."""

    HYPERPOD_SLURM = "hyperpod-slurm"
    HYPERPOD_EKS = "hyperpod-eks"
    EKS = "eks"
    EC2 = "ec2"
    PCS = "pcs"

    @property
    def hyperpod(self) -> bool:
        """Whether the nodes run in an account of the service."""
        return self in (Orchestrator.HYPERPOD_SLURM, Orchestrator.HYPERPOD_EKS)

    @property
    def kubernetes(self) -> bool:
        """Whether an EKS control plane is needed."""
        return self in (Orchestrator.HYPERPOD_EKS, Orchestrator.EKS)


class NodeProvisioning(StrEnum):
    """How HyperPod brings nodes up (API CreateCluster, NodeProvisioningMode)."""

    STANDARD = "standard"
    CONTINUOUS = "continuous"


class NodeRecovery(StrEnum):
    """What HyperPod does with a faulty node (API CreateCluster, NodeRecovery)."""

    AUTOMATIC = "automatic"
    NONE = "none"


class DeepHealthCheck(StrEnum):
    """What HyperPod tries on a node before work is placed there (CloudFormation, OnStartDeepHealthChecks).

    The API has MultiNodeTrainingValidation too, which CloudFormation does not take.
    """

    INSTANCE_STRESS = "instance_stress"
    INSTANCE_CONNECTIVITY = "instance_connectivity"


class PatchingStrategy(StrEnum):
    """When HyperPod patches running nodes (CloudFormation, AutoPatchConfig).

    The API has DrainFirst too, which CloudFormation does not take.
    """

    WHEN_IDLE = "when_idle"
    WHEN_ALL_IDLE = "when_all_idle"


class HyperPodAddOn(StrEnum):
    """An add-on of EKS that HyperPod brings (SageMaker AI Developer Guide, *Orchestrating with EKS*)."""

    TRAINING_OPERATOR = "training_operator"
    TASK_GOVERNANCE = "task_governance"
    OBSERVABILITY = "observability"


class ControllerSize(StrEnum):
    """How large a PCS cluster can grow (API CreateCluster of PCS, size)."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class Provisioner(StrEnum):
    """Who starts the nodes of a group on EKS."""

    NODE_GROUP = "node_group"
    KARPENTER = "karpenter"


class NodeRole(StrEnum):
    """What the nodes of a group do."""

    CONTROLLER = "controller"
    LOGIN = "login"
    COMPUTE = "compute"
    SYSTEM = "system"


def _mode(value: object) -> object:
    """``capacity: spot`` is short for ``capacity: {mode: spot}``; the same for placement."""
    return {"mode": value} if isinstance(value, str) else value


def _efa(value: object) -> object:
    """``efa: true`` is what other tools have for: this node must have EFA."""
    return {"mode": "required" if value else "none"} if isinstance(value, bool) else _mode(value)


def _image(value: object) -> object:
    if not isinstance(value, str):
        return value
    return {"ssm_parameter": value} if value.startswith("/") else {"id": value}


Release = Annotated[Text, AfterValidator(spelled(r"[0-9]+\.[0-9]+\.[0-9]+", "a version like 1.2.3"))]
KubernetesVersion = Annotated[Text, AfterValidator(spelled(r"1\.[0-9]{2}", "a version like 1.34"))]
SlurmVersion = Annotated[Text, AfterValidator(spelled(r"[0-9]{2}\.[0-9]{2}", "a version like 25.05"))]
# Where `fmblocks chart pull` puts HyperPod's chart, beside the project file.
DEPENDENCY_CHART_FOLDER = "charts/hyperpod"
# Both are the newest that AWS supports and that add-ons (add_ons.json) and kubectl are pinned for, less one.
DEFAULT_KUBERNETES = "1.35"
DEFAULT_SLURM = "25.11"
# Addresses that the VPC CNI keeps for pods on a node: enough for what runs on each and a job of one pod an accelerator.
POD_ADDRESSES = 16
_ONE_ZONE = "nodes stand in network.primary_availability_zone, all of them: leave the key out"


def _patching(value: object) -> object:
    """``patching: when_idle`` is short for ``patching: {strategy: when_idle}``."""
    return {"strategy": value} if isinstance(value, str) else value


class Patching(Settings):
    """When running nodes get a newer image (API CreateCluster, AutoPatchConfig and ScheduledUpdateConfig)."""

    FOREIGN: ClassVar = {
        "patching_strategy": "the key is strategy",
        "schedule_expression": "the key is schedule",
        "maximum_batch_size": "write batch_count or batch_percentage",
        "wait_interval_in_seconds": "the key is wait_seconds",
        "auto_rollback_configuration": "the key is rollback_alarms",
    }

    strategy: Annotated[
        PatchingStrategy | None, AnyCase, Field(description="patch releases, node by node or all, once idle")
    ] = None
    schedule: Annotated[
        Text | None, Field(description="any release, by the clock: cron(minute hour day month weekday year), UTC")
    ] = None
    batch_count: Annotated[WholeNumber | None, Field(description="nodes at a time")] = None
    batch_percentage: Annotated[WholeNumber | None, Field(description="nodes at a time, in per cent")] = None
    wait_seconds: Annotated[WholeNumber | None, Field(description="seconds between batches, up to 3600")] = None
    rollback_alarms: Annotated[
        tuple[Text, ...], Field(description="names of CloudWatch alarms that take the nodes back, up to 10")
    ] = ()


class NodeGroup(Settings):
    """Nodes of one type, bought one way."""

    FOREIGN: ClassVar = {
        "subnet": "nodes always stand in private subnets: leave the key out",
        "associate_public_ip": "instances with several network interfaces get no public address: leave the key out",
        "az": "the key is availability_zone",
        "instance_count": "the key is count",
        "min_instance_count": "the key is min_count",
        "max_count": "a group has a fixed count: write count",
        "desired_capacity": "the key is count",
        "desired_size": "the key is count",
        "node_count": "the key is count",
        "max_size": "a group has a fixed count: write count",
        "min_size": "the key is min_count",
        "user_data": "nodes boot with a script of ours: EfaLaunchTemplate, the construct, takes another",
        "spot_price": "write capacity: spot; the price is EC2's",
        "reservation_id": "write capacity: {mode: odcr, capacity_reservation_id: cr-…}",
        "capacity_reservation_id": "write capacity: {mode: odcr, capacity_reservation_id: cr-…}",
        "capacity_reservation_target": "write capacity: {mode: odcr, capacity_reservation_id: cr-…}",
        "capacity_reservation_specification": "write capacity: {mode: odcr, capacity_reservation_id: cr-…}",
        "placement_group": "write placement: {group_name: …}",
        "root_volume_size": "the key is ebs_volume_gib",
        "volume_size": "the key is ebs_volume_gib",
        "azs": _ONE_ZONE,
        "availability_zones": _ONE_ZONE,
        "instance_types": "write instance_type, and the others under alternative_instance_types",
        "instance_requirements": "write instance_type, and the others under alternative_instance_types",
        "on_start_deep_health_checks": "the key is deep_health_checks",
        "disk_size": "the key is ebs_volume_gib",
        "ami_type": "it follows from instance_type: leave the key out",
        "capacity_type": "the key is capacity",
        "mixed_instances_policy": "a group has one type: leave the key out",
        "warm_pool": "bought capacity does not wait in a pool: leave the key out",
        "subnet_id": _ONE_ZONE,
        "key_name": "nodes are reached through SSM: leave the key out",
        "use_spot": "write capacity: spot",
        "spot": "write capacity: spot",
        "enable_efa": "write efa: auto or efa: none",
        "efa_enabled": "write efa: auto or efa: none",
        "ami": "the key is image",
        "ami_id": "write image: {id: …}",
        "image_id": "write image: {id: …}",
        "extra_security_groups": "the key is extra_security_group_ids",
        "security_group_ids": "the key is extra_security_group_ids",
        "security_group_id": "this version creates the groups; the constructs take existing ones",
        "kind": "the key is training.orchestrator",
    }
    FOREIGN_RULES: ClassVar = {
        "subnet": "NET-05",
        "associate_public_ip": "EFA-08",
        "azs": "X-04",
        "availability_zones": "X-04",
        "disk_size": "EKS-04",
        "ami_type": "EKS-04",
        "mixed_instances_policy": "CB-09",
        "warm_pool": "CB-09",
    }

    name: Name
    role: Annotated[NodeRole, AnyCase] = NodeRole.COMPUTE
    instance_type: Annotated[Text, AfterValidator(normalise), Field(description="EC2 or ml. name")]
    alternative_instance_types: Annotated[
        tuple[Annotated[Text, AfterValidator(normalise)], ...],
        Field(description="other types that HyperPod may take, with continuous provisioning"),
    ] = ()
    count: Annotated[WholeNumber, Field(description="nodes")]
    min_count: Annotated[WholeNumber | None, Field(description="nodes with which the group is in service")] = None
    ebs_volume_gib: Annotated[
        WholeNumber, Field(description="second volume in GiB, at /opt/sagemaker: the root volume fills with containers")
    ] = 500
    efa: Annotated[Efa, BeforeValidator(_efa)] = Efa()
    placement: Annotated[Placement, BeforeValidator(_mode)] = Placement()
    capacity: Annotated[Capacity, BeforeValidator(_mode)] = Capacity()
    image: Annotated[Image | None, BeforeValidator(_image), Field(description="default: that of the orchestrator")] = (
        None
    )
    image_release_version: Annotated[Release | None, Field(description="of HyperPod's image on EKS")] = None
    threads_per_core: Annotated[WholeNumber | None, Field(description="1 or 2, on HyperPod")] = None
    deep_health_checks: Annotated[
        tuple[Annotated[DeepHealthCheck, AnyCase], ...], Field(description="tried on new nodes of HyperPod with EKS")
    ] = ()
    network_interfaces: Annotated[
        tuple[NetworkInterface, ...], Field(description="instead of those of the catalogue; not on HyperPod")
    ] = ()
    availability_zone: Annotated[
        Text | None, Field(description="one of network.availability_zones, on HyperPod; default: the primary one")
    ] = None
    patching: Annotated[
        Patching | None,
        BeforeValidator(_patching),
        Field(description="when running nodes of HyperPod get a newer image; default: by hand"),
    ] = None
    extra_security_group_ids: Annotated[
        tuple[Text, ...],
        Field(description="groups that every interface carries too; not on HyperPod"),
    ] = ()
    provisioned_by: Annotated[
        Provisioner, AnyCase, Field(description="on EKS: a managed node group, or Karpenter when pods ask for nodes")
    ] = Provisioner.NODE_GROUP
    instance_refresh: Annotated[
        bool, Field(description="on EC2: replace running nodes when their launch template changes")
    ] = False

    @property
    def every_type(self) -> tuple[str, ...]:
        """The types that its nodes can have."""
        return (self.instance_type, *self.alternative_instance_types)


# Where DNS, webhooks and controllers run: they must not wait for accelerators, nor take them.
SYSTEM = NodeGroup(name="system", role=NodeRole.SYSTEM, instance_type="m7i.xlarge", count=2, ebs_volume_gib=100)


class LifecycleScripts(Settings):
    """Scripts that run on a node once HyperPod has set it up."""

    FOREIGN: ClassVar = {
        "dir": "the key is path",
        "bucket": "scripts are copied into the foundation's own lifecycle bucket: leave the key out",
        "entry": "the key is on_init_complete",
        "on_create": "on_create replaces HyperPod's own Slurm set-up; write on_init_complete",
    }

    path: Annotated[Text, Field(description="folder, relative to the project file")]
    on_init_complete: Annotated[Text, Field(description="the script of that folder that is started")]


class EndpointAccess(StrEnum):
    """From where the Kubernetes API is reached (API CreateCluster of EKS, VpcConfigRequest)."""

    PRIVATE = "private"
    PUBLIC_AND_PRIVATE = "public_and_private"


def _json_object(value: object) -> object:
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PydanticCustomError("json_object", """takes a JSON object as text, like '{"replicaCount": 2}'""")
    return value


ADD_ON_VERSION = r"v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+"


class AddOn(Settings):
    """An add-on that EKS installs, beside the ones that are always there, or one of those in another version."""

    FOREIGN: ClassVar = {
        "addon_name": "the key is name",
        "addon_version": "the key is version",
        "resolve_conflicts": "what the add-on says wins: leave the key out",
        "service_account_role_arn": "roles are bound by pod identity: write role_arn and service_account",
        "pod_identity_associations": "write role_arn and service_account",
    }

    name: Annotated[Text, Field(description="as EKS calls it, for example aws-ebs-csi-driver")]
    version: Annotated[
        Text,
        AfterValidator(spelled(ADD_ON_VERSION, "a version like v1.2.3-eksbuild.1")),
        Field(description="as EKS lists it: aws eks describe-addon-versions"),
    ]
    configuration_values: Annotated[
        Annotated[str, BeforeValidator(_json_object)] | None,
        Field(description="JSON, as the add-on's schema has it; laid over ours"),
    ] = None
    role_arn: Annotated[Text | None, Field(description="of a role that its service account gets")] = None
    service_account: Annotated[Text | None, Field(description="with role_arn")] = None
    namespace: Annotated[Text, Field(description="of the service account")] = "kube-system"


class DependencyChart(Settings):
    """HyperPod's own chart: health agents and what restarts jobs. It lives in a git repository of AWS only."""

    path: Annotated[Text, Field(description="folder, relative to the project file")] = DEPENDENCY_CHART_FOLDER
    values: Annotated[
        Annotated[str, BeforeValidator(_json_object)] | None,
        Field(description="JSON, laid over ours; keys that the chart does not have are refused"),
    ] = None


class Kubernetes(Settings):
    """The EKS control plane, and what runs on every cluster."""

    FOREIGN: ClassVar = {
        "addons": "the key is add_ons",
        "kuberay": "the key is kube_ray",
        "endpoint_access": "the key is endpoint",
        "endpoint_private_access": "the key is endpoint",
        "endpoint_public_access": "write endpoint: public_and_private",
        "cluster_endpoint_public_access": "write endpoint: public_and_private",
        "cidr": "the key is service_cidr",
    }

    version: Annotated[KubernetesVersion | None, Field(description=f"default: {DEFAULT_KUBERNETES}")] = None
    service_cidr: Annotated[Text | None, Field(description="IPv4 CIDR of services; default: chosen by EKS")] = None
    endpoint: Annotated[
        EndpointAccess, AnyCase, Field(description="private: the API is reached from inside the VPC only")
    ] = EndpointAccess.PRIVATE
    public_access_cidrs: Annotated[
        tuple[Text, ...], Field(description="who reaches a public endpoint; required with it")
    ] = ()
    add_ons: Annotated[tuple[AddOn, ...], Field(description="further EKS add-ons, or other versions")] = ()
    hyperpod_add_ons: Annotated[
        tuple[Annotated[HyperPodAddOn, AnyCase], ...], Field(description="with hyperpod-eks: those to install")
    ] = ()
    dependency_chart: Annotated[
        DependencyChart, Field(description="with hyperpod-eks: the chart that `fmblocks chart pull` fetches")
    ] = DependencyChart()
    kueue: Annotated[bool, Field(description="gang scheduling and queues: installs Kueue")] = False
    kube_ray: Annotated[bool, Field(description="Ray clusters: installs the KubeRay operator")] = False
    chart_registry: Annotated[
        Annotated[Text, AfterValidator(spelled(r"oci://[^\s/]+(/\S+)?", "a registry like oci://host/path"))] | None,
        Field(description="oci://… that holds the charts; default: where their projects publish them"),
    ] = None
    image_registry: Annotated[
        Annotated[
            Text, AfterValidator(spelled(r"[^\s/:]+(:[0-9]+)?(/\S+)?", "a registry like host/path, without https"))
        ]
        | None,
        Field(description="registry that mirrors images of public ones; default: none"),
    ] = None


class Slurm(Settings):
    """The Slurm controller of PCS."""

    FOREIGN: ClassVar = {
        "slurm_rest": "the key is rest_api",
        "scale_down_idle_time_in_seconds": "the key is scale_down_idle_seconds",
        "slurm_custom_settings": "the key is custom_settings",
    }

    version: Annotated[SlurmVersion | None, Field(description=f"default: {DEFAULT_SLURM}")] = None
    size: Annotated[
        ControllerSize | None, AnyCase, Field(description="default: the smallest that the node groups fit")
    ] = None
    rest_api: Annotated[bool, Field(description="serve Slurm's REST API")] = False
    accounting: Annotated[bool, Field(description="keep a database of jobs and accounts in the service")] = True
    accounting_purge_days: Annotated[WholeNumber | None, Field(description="days; default: kept for ever")] = None
    open_metrics: Annotated[
        bool | None, Field(description="serve /metrics on port 6817; default: where the version can")
    ] = None
    scale_down_idle_seconds: Annotated[
        WholeNumber | None, Field(description="how long a node without work stays; default: PCS's, 600")
    ] = None
    custom_settings: Annotated[
        dict[str, Text], Field(description="parameters of slurm.conf, of those that PCS takes")
    ] = {}


class TieredStorage(Settings):
    """Checkpoints in the memory of the nodes (API CreateCluster, TieredStorageConfig)."""

    instance_memory_allocation_percentage: Annotated[
        WholeNumber | None, Field(description="per cent of a node's memory; default: chosen by HyperPod")
    ] = None


class Cluster(Settings):
    """A cluster: who places work on its nodes, and the nodes."""

    FOREIGN: ClassVar = {
        "fleets": "the key is node_groups",
        "groups": "the key is node_groups",
        "instance_groups": "the key is node_groups",
        "lifecycle": "the key is lifecycle_scripts",
        "eks": "the key is kubernetes",
        "kubernetes_version": "write kubernetes: {version: …}",
        "tiered_storage_config": "the key is tiered_storage",
    }

    orchestrator: Annotated[Orchestrator, AnyCase] = Orchestrator.HYPERPOD_SLURM
    node_provisioning: Annotated[
        NodeProvisioning | None, AnyCase, Field(description="default: standard with Slurm, continuous with EKS")
    ] = None
    node_recovery: Annotated[NodeRecovery, AnyCase] = NodeRecovery.AUTOMATIC
    node_groups: tuple[NodeGroup, ...]
    lifecycle_scripts: LifecycleScripts | None = None
    kubernetes: Annotated[Kubernetes | None, Field(description="with hyperpod-eks and eks")] = None
    tiered_storage: Annotated[TieredStorage | None, Field(description="with hyperpod-eks")] = None

    @property
    def provisioning(self) -> NodeProvisioning:
        """How nodes are brought up."""
        if self.node_provisioning is not None:
            return self.node_provisioning
        return NodeProvisioning.CONTINUOUS if self.orchestrator.kubernetes else NodeProvisioning.STANDARD

    @property
    def groups(self) -> tuple[NodeGroup, ...]:
        """The node groups, with the system group that an EKS cluster always has."""
        if not self.orchestrator.kubernetes or any(one.role is NodeRole.SYSTEM for one in self.node_groups):
            return self.node_groups
        return (SYSTEM, *self.node_groups)

    @property
    def kubernetes_version(self) -> str:
        """The Kubernetes version of an EKS cluster."""
        return (self.kubernetes and self.kubernetes.version) or DEFAULT_KUBERNETES

    @property
    def karpenter(self) -> bool:
        """Whether Karpenter starts nodes."""
        return any(group.provisioned_by is Provisioner.KARPENTER for group in self.node_groups)


class Training(Cluster):
    """The training cluster."""

    slurm: Annotated[Slurm | None, Field(description="with pcs")] = None

    @property
    def slurm_version(self) -> str:
        """The Slurm version of a PCS cluster."""
        return (self.slurm and self.slurm.version) or DEFAULT_SLURM
