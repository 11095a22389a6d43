"""Nodes of one type that Karpenter starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import check_arguments, fault, instance_types, member, typed, unresolved
from fmblocks.capacity.bought import ICapacity, OnDemandCapacity
from fmblocks.capacity.settings import Capacity, CapacityMode, Tenancy
from fmblocks.catalog import InstanceType, normalise
from fmblocks.cluster.add_ons import TAINTS
from fmblocks.cluster.eks_gpu_node_group import check_group_name, node_labels
from fmblocks.cluster.images import NODE_IMAGE
from fmblocks.cluster.karpenter import Karpenter
from fmblocks.cluster.settings import NodeRole
from fmblocks.compute.efa_placement_group import placement_of
from fmblocks.compute.interfaces import layout
from fmblocks.compute.settings import Efa, EfaMode, Profile
from fmblocks.findings import FindingsError
from fmblocks.network.self_rules import SelfRulesValidation

# Karpenter calls what was reserved so, Capacity Blocks too (karpenter.sh, *Utilizing ODCRs*).
_CAPACITY_TYPES = {CapacityMode.ON_DEMAND: "on-demand", CapacityMode.SPOT: "spot"}
_RULES = ("EFA-02", "EFA-25", "PG-07", "X-01", "X-03", "CB-02")


class KarpenterNodePool(Construct):
    """Nodes of one type that Karpenter starts when pods ask for them, and stops when none does.

    Interfaces, labels and taint are those of :class:`EksGpuNodeGroup`: EFA from the catalogue, as efa-only. Reserved
    capacity is named by its id, and nothing else is used then: no node on demand by surprise. Only empty nodes go: one
    that a job runs on is neither moved to save money nor replaced for its age or an outdated image.

    Args:
        karpenter: that starts the nodes.
        group_name: the value of the label fmblocks/node-group, by which jobs ask for these nodes.
        instance_type: EC2 name.
        max_count: nodes at most.
        vpc_subnet: the one private subnet.
        security_groups: carried beside the cluster's; one is open to itself where nodes have EFA.
        capacity: where the instances come from. Default: on demand.
        placement_group: where they stand; by its name. Default: that of the capacity, else none.
        efa_mode: none leaves EFA out. Default: auto, all that the type has.
        efa_interface_count: fewer EFA interfaces. Default: all of AWS's layout.
        efa_profile: max-ip-bandwidth adds ENA interfaces. Default: save-ip-addresses.
        root_volume_gib: gp3, encrypted. Default: 500.
        tags: of instances, volumes and interfaces; those of the stack do not reach what Karpenter makes. Default: none.

    Raises:
        FindingsError: rules CB-02, EFA-02, EFA-25, FMB-09, FMB-25, PG-07, X-01, X-03; group_name is no name of
            Kubernetes.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        karpenter: Karpenter,
        group_name: str,
        instance_type: str,
        max_count: int,
        vpc_subnet: ec2.ISubnet,
        security_groups: Sequence[ec2.ISecurityGroup],
        capacity: ICapacity | None = None,
        placement_group: ec2.IPlacementGroup | None = None,
        efa_mode: EfaMode = EfaMode.AUTO,
        efa_interface_count: int | None = None,
        efa_profile: Profile | None = None,
        root_volume_gib: int = 500,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, id)
        check_group_name(group_name)
        bought: ICapacity = capacity or OnDemandCapacity()
        place = placement_group or bought.placement_group
        efa = Efa(
            mode=member(EfaMode, efa_mode, "efa_mode"),
            count=efa_interface_count,
            profile=member(Profile, efa_profile, "efa_profile") if efa_profile else None,
        )
        name, known = normalise(instance_type), instance_types(self)
        settings = Capacity.model_construct(
            mode=bought.capacity_mode,
            capacity_reservation_id=bought.capacity_reservation_id,
            training_plan_arn=bought.training_plan_arn,
        )
        values = {
            "instance_type": name,
            "types": known,
            "efa": efa,
            "capacity": settings,
            "placement": placement_of(place),
        }
        check_arguments(self, ("FMB-09",), values)
        names = {"capacity.mode": "capacity", "placement.mode": "placement_group", "efa.count": "efa_interface_count"}
        check_arguments(self, _RULES, values, names={**names, "placement.group_name": "placement_group"})
        if bought.capacity_reservation_id is not None and not unresolved(bought.capacity_reservation_id):
            check_arguments(self, ("FMB-25",), values, names={"capacity.capacity_reservation_id": "capacity"})
        kind = known[name]
        if not kind.accelerator_count and kind.vcpus is None:
            text = f"of {name} the catalogue knows no vcpus, by which the pool is limited"
            raise FindingsError([fault("instance_type", text, "add them under fmblocks:catalog")])
        if bought.tenancy is Tenancy.DEDICATED:
            raise FindingsError(
                [fault("capacity", "is dedicated, and Karpenter starts no such instances", "use default")]
            )
        interfaces = layout(kind, efa)
        self.group_name, self.instance_type, self.count = group_name, name, max_count
        self.efa_interfaces = sum(one.interface_type.has_efa for one in interfaces)
        with_efa = any(one.interface_type.has_efa for one in interfaces)
        if with_efa:
            if not security_groups:
                raise FindingsError([fault("security_groups", "is empty", "pass an EfaSecurityGroup")])
            self.node.add_validation(SelfRulesValidation(self, security_groups, one_is_enough=True))
        groups = [*security_groups, karpenter.cluster.cluster_security_group]
        spec: dict[str, Any] = {
            "amiSelectorTerms": [{"alias": NODE_IMAGE}],
            "role": karpenter.node_role.role_name,
            "subnetSelectorTerms": [{"id": vpc_subnet.subnet_id}],
            "securityGroupSelectorTerms": [{"id": group.security_group_id} for group in groups],
            "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 2},
            "blockDeviceMappings": [
                {
                    "deviceName": "/dev/xvda",
                    "ebs": {
                        "volumeSize": f"{root_volume_gib}Gi",
                        "volumeType": "gp3",
                        "encrypted": True,
                        "deleteOnTermination": True,
                    },
                }
            ],
        }
        if tags:
            spec["tags"] = dict(tags)
        if kind.local_nvme_count:
            spec["instanceStorePolicy"] = "RAID0"
        if with_efa:
            spec["networkInterfaces"] = [
                {
                    "networkCardIndex": one.network_card_index,
                    "deviceIndex": one.device_index,
                    "interfaceType": one.interface_type.value,
                }
                for one in interfaces
            ]
        if place is not None:
            spec["placementGroupSelector"] = {"name": place.placement_group_name}
        if bought.capacity_reservation_id is not None:
            spec["capacityReservationSelectorTerms"] = [{"id": bought.capacity_reservation_id}]
        self.manifest = eks.KubernetesManifest(
            self,
            "Manifest",
            cluster=karpenter.cluster,
            manifest=[
                {
                    "apiVersion": "karpenter.k8s.aws/v1",
                    "kind": "EC2NodeClass",
                    "metadata": {"name": group_name},
                    "spec": spec,
                },
                _pool(
                    group_name,
                    kind,
                    max_count,
                    bought.capacity_mode,
                    node_labels(kind, group=group_name, role=NodeRole.COMPUTE, efa=with_efa),
                ),
            ],
        )
        self.manifest.node.add_dependency(karpenter)


# When Karpenter ends nodes: without the first budget a new image would end a job of a month; empty nodes get it all the
# same.
DISRUPTION: Mapping[str, Any] = {
    "consolidationPolicy": "WhenEmpty",
    "consolidateAfter": "10m",
    "budgets": [{"nodes": "0", "reasons": ["Drifted"]}, {"nodes": "100%", "reasons": ["Empty"]}],
}


def _pool(name: str, kind: InstanceType, max_count: int, mode: CapacityMode, labels: dict[str, str]) -> dict[str, Any]:
    # Whole nodes, in what every pod of the group asks for.
    taint = TAINTS.get(kind.accelerator_vendor or "")
    limits = {taint: str(max_count * kind.accelerator_count)} if taint else {"cpu": str(max_count * (kind.vcpus or 0))}

    def one_of(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "operator": "In", "values": [value]}

    template: dict[str, Any] = {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
        "requirements": [
            one_of("node.kubernetes.io/instance-type", kind.name),
            one_of("karpenter.sh/capacity-type", _CAPACITY_TYPES.get(mode, "reserved")),
        ],
        # A node that runs a job for a month must not be replaced for its age.
        "expireAfter": "Never",
    }
    if taint is not None:
        template["taints"] = [{"key": taint, "value": "present", "effect": "NoSchedule"}]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {"metadata": {"labels": labels}, "spec": template},
            "disruption": DISRUPTION,
            "limits": limits,
        },
    }
