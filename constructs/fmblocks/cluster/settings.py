"""What a project file says about its training cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

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


# What this version has stacks for; the rest is checked, and refused at synth (FMB-23).
BUILT = frozenset({Orchestrator.EC2, Orchestrator.HYPERPOD_SLURM})


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


class ControllerSize(StrEnum):
    """How large a PCS cluster can grow (API CreateCluster of PCS, size)."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


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
_ONE_ZONE = "nodes stand in network.primary_availability_zone, all of them: leave the key out"


class NodeGroup(Settings):
    """Nodes of one type, bought one way."""

    FOREIGN: ClassVar = {
        "subnet": "nodes always stand in private subnets: leave the key out",
        "associate_public_ip": "instances with several network interfaces get no public address: leave the key out",
        "az": _ONE_ZONE,
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
        "availability_zone": _ONE_ZONE,
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

    extra_security_group_ids: Annotated[
        tuple[Text, ...], Field(description="on EC2: groups that every interface carries beside that of the fabric")
    ] = ()
    instance_refresh: Annotated[
        bool, Field(description="on EC2: replace running nodes when their launch template changes")
    ] = False

    @property
    def every_type(self) -> tuple[str, ...]:
        """The types that its nodes can have."""
        return (self.instance_type, *self.alternative_instance_types)


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


class Kubernetes(Settings):
    """The EKS control plane."""

    version: Annotated[KubernetesVersion | None, Field(description="for example 1.34")] = None
    service_cidr: Annotated[Text | None, Field(description="IPv4 CIDR of services; default: chosen by EKS")] = None


class Slurm(Settings):
    """The Slurm controller of PCS."""

    version: Annotated[SlurmVersion | None, Field(description="for example 25.05")] = None
    size: Annotated[
        ControllerSize | None, AnyCase, Field(description="default: the smallest that the node groups fit")
    ] = None
    rest_api: Annotated[bool, Field(description="serve Slurm's REST API")] = False


class TieredStorage(Settings):
    """Checkpoints in the memory of the nodes (API CreateCluster, TieredStorageConfig)."""

    instance_memory_allocation_percentage: Annotated[
        WholeNumber | None, Field(description="per cent of a node's memory; default: chosen by HyperPod")
    ] = None


class Training(Settings):
    """The training cluster."""

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
    slurm: Annotated[Slurm | None, Field(description="with pcs")] = None
    tiered_storage: Annotated[TieredStorage | None, Field(description="with hyperpod-eks")] = None

    @property
    def provisioning(self) -> NodeProvisioning:
        """How nodes are brought up."""
        if self.node_provisioning is not None:
            return self.node_provisioning
        return NodeProvisioning.CONTINUOUS if self.orchestrator.kubernetes else NodeProvisioning.STANDARD
