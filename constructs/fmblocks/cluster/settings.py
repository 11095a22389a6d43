"""What a project file says about its training cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from fmblocks.capacity.settings import Capacity
from fmblocks.catalog import normalise
from fmblocks.compute.settings import Efa, Placement
from fmblocks.settings import AnyCase, Name, Settings, Text, WholeNumber


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
BUILT = frozenset({Orchestrator.HYPERPOD_SLURM})


class NodeProvisioning(StrEnum):
    """How HyperPod brings nodes up (API CreateCluster, NodeProvisioningMode)."""

    STANDARD = "standard"
    CONTINUOUS = "continuous"


class NodeRecovery(StrEnum):
    """What HyperPod does with a faulty node (API CreateCluster, NodeRecovery)."""

    AUTOMATIC = "automatic"
    NONE = "none"


class NodeRole(StrEnum):
    """What the nodes of a group do."""

    CONTROLLER = "controller"
    LOGIN = "login"
    COMPUTE = "compute"
    SYSTEM = "system"


def _mode(value: object) -> object:
    """``capacity: spot`` is short for ``capacity: {mode: spot}``; the same for placement."""
    return {"mode": value} if isinstance(value, str) else value


class NodeGroup(Settings):
    """Nodes of one type, bought one way."""

    FOREIGN: ClassVar = {
        "subnet": "nodes always stand in private subnets: leave the key out",
        "associate_public_ip": "instances with several network interfaces get no public address: leave the key out",
        "az": "nodes stand in network.primary_availability_zone: leave the key out",
        "instance_count": "the key is count",
        "min_count": "this version does not read it yet: leave the key out",
        "max_count": "a group has a fixed count: write count",
        "subnet_id": "nodes stand in network.primary_availability_zone: leave the key out",
        "key_name": "nodes are reached through SSM: leave the key out",
        "use_spot": "write capacity: spot",
        "spot": "write capacity: spot",
        "enable_efa": "write efa: auto or efa: none",
        "efa_enabled": "write efa: auto or efa: none",
        "ami_id": "HyperPod brings its own image: leave the key out",
        "image_id": "HyperPod brings its own image: leave the key out",
        "extra_security_groups": "this version gives nodes the EFA and the Lustre group: leave the key out",
        "security_group_id": "this version creates the groups; the constructs take existing ones",
        "kind": "the key is training.orchestrator",
    }

    name: Name
    role: Annotated[NodeRole, AnyCase] = NodeRole.COMPUTE
    instance_type: Annotated[Text, AfterValidator(normalise), Field(description="EC2 or ml. name")]
    count: Annotated[WholeNumber, Field(description="nodes")]
    ebs_volume_gib: Annotated[
        WholeNumber, Field(description="second volume in GiB, at /opt/sagemaker: the root volume fills with containers")
    ] = 500
    efa: Annotated[Efa, BeforeValidator(_mode)] = Efa()
    placement: Annotated[Placement, BeforeValidator(_mode)] = Placement()
    capacity: Annotated[Capacity, BeforeValidator(_mode)] = Capacity()


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


class Training(Settings):
    """The training cluster."""

    FOREIGN: ClassVar = {
        "fleets": "the key is node_groups",
        "groups": "the key is node_groups",
        "instance_groups": "the key is node_groups",
        "lifecycle": "the key is lifecycle_scripts",
    }

    orchestrator: Annotated[Orchestrator, AnyCase] = Orchestrator.HYPERPOD_SLURM
    node_provisioning: Annotated[NodeProvisioning, AnyCase] = NodeProvisioning.STANDARD
    node_recovery: Annotated[NodeRecovery, AnyCase] = NodeRecovery.AUTOMATIC
    node_groups: tuple[NodeGroup, ...]
    lifecycle_scripts: LifecycleScripts | None = None
