"""What a project file says about its training cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field

from fmblocks.catalog import normalise
from fmblocks.settings import AnyCase, Name, Settings, Text, WholeNumber, later


class Orchestrator(StrEnum):
    """Who places jobs on nodes."""

    HYPERPOD_SLURM = "hyperpod-slurm"


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


class CapacityMode(StrEnum):
    """How the instances of a group are bought."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    TRAINING_PLAN = "training_plan"
    ODCR = "odcr"
    CAPACITY_BLOCK = "capacity_block"


class PlacementMode(StrEnum):
    """Which placement group the nodes of a group stand in."""

    AUTO = "auto"
    NONE = "none"
    CLUSTER = "cluster"
    PARTITION = "partition"
    SPREAD = "spread"


def _mode(value: object) -> object:
    """``capacity: spot`` is short for ``capacity: {mode: spot}``; the same for placement."""
    return {"mode": value} if isinstance(value, str) else value


class Capacity(Settings):
    """Where the instances of a group come from."""

    FOREIGN: ClassVar = {
        "reservation_id": "the key is capacity_reservation_id",
        "arn": "the key is training_plan_arn",
        "create": "this version creates no reservations: HyperPod takes on_demand, spot or training_plan",
        "availability_zone": "the node group stands in network.primary_availability_zone: leave the key out",
        "start": "only Capacity Blocks have a start, and HyperPod takes none",
        "end": "only Capacity Blocks have an end, and HyperPod takes none",
        "launch": "only Capacity Blocks have it, and HyperPod takes none",
        "resource_group_arn": "HyperPod takes no EC2 reservation: on_demand, spot or training_plan",
    }

    mode: Annotated[CapacityMode, AnyCase] = CapacityMode.ON_DEMAND
    training_plan_arn: Annotated[Text | None, Field(description="with mode training_plan")] = None
    capacity_reservation_id: Annotated[Text | None, Field(description="with modes odcr and capacity_block")] = None


class Placement(Settings):
    """The placement group of a node group."""

    mode: Annotated[PlacementMode, AnyCase] = PlacementMode.AUTO
    group_name: Text | None = None


class EfaMode(StrEnum):
    """Whether nodes get their EFA interfaces."""

    AUTO = "auto"
    NONE = "none"


class Efa(Settings):
    """Elastic Fabric Adapter of a node group."""

    FOREIGN: ClassVar = {
        "count": "HyperPod attaches every EFA interface of the instance type itself: leave the key out",
        "profile": "HyperPod lays the interfaces out itself: leave the key out",
        "interface_type": "this version leaves HyperPod's own choice: leave the key out",
    }

    mode: Annotated[EfaMode, AnyCase] = EfaMode.AUTO


class NodeGroup(Settings):
    """Nodes of one type, bought one way."""

    FOREIGN: ClassVar = {
        "subnet": "nodes always stand in private subnets: leave the key out",
        "associate_public_ip": "instances with several network interfaces get no public address: leave the key out",
        "az": "nodes stand in network.primary_availability_zone: leave the key out",
        "instance_count": "the key is count",
        "min_count": "this orchestrator has no minimum here: leave the key out",
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

    orchestrator: Annotated[Orchestrator, AnyCase, later("hyperpod-eks", "eks", "ec2", "pcs", now="hyperpod-slurm")] = (
        Orchestrator.HYPERPOD_SLURM
    )
    node_provisioning: Annotated[NodeProvisioning, AnyCase] = NodeProvisioning.STANDARD
    node_recovery: Annotated[NodeRecovery, AnyCase] = NodeRecovery.AUTOMATIC
    node_groups: tuple[NodeGroup, ...]
    lifecycle_scripts: LifecycleScripts | None = None
