"""A launch template for a managed node group of EKS."""

from __future__ import annotations

from collections.abc import Sequence

import yaml
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks._edge import fault, typed
from fmblocks.capacity.bought import ICapacity
from fmblocks.cluster.settings import Orchestrator
from fmblocks.compute.node_launch_template import NodeLaunchTemplate
from fmblocks.compute.settings import EfaMode, InterfaceType, NetworkInterface, Profile
from fmblocks.findings import FindingsError


class EksLaunchTemplate(NodeLaunchTemplate):
    """How a node of EKS is launched: interfaces, capacity, root volume, and what nodeadm does with the instance store.

    It holds what EKS takes from a template and nothing that it refuses: no subnet, no instance profile, no groups
    beside the interfaces (EKS User Guide, *Customize managed nodes with launch templates*). EKS does not add the
    cluster's own group where interfaces name theirs, so it stands on every one here. The instance type is in the
    template and nowhere else: a change of it makes a new version, where a change in the node group would replace it.

    Args:
        cluster: whose nodes these are.
        security_groups: carried by every interface beside the cluster's; one is open to itself where nodes have EFA.
        instance_type: EC2 name.
        capacity: where the instances come from. Default: on demand.
        placement_group: where they stand. Default: that of the capacity, else none.
        efa_mode: none leaves EFA out. Default: auto, all that the type has.
        efa_interface_count: fewer EFA interfaces. Default: all of AWS's layout.
        efa_interface_type: efa-only takes no address of the subnet. Default: efa-only.
        efa_profile: max-ip-bandwidth adds ENA interfaces. Default: save-ip-addresses.
        secondary_device_index: device of EFA interfaces above card 0. Default: 0.
        network_interfaces: instead of those of the catalogue.
        image_id: an image of your own that nodeadm runs on; with ``service_cidr``. Default: EKS's image for the type.
        service_cidr: the cluster's IPv4 range of services, which an own image has to be told.
        root_volume_gib: gp3, encrypted. Default: 500.
        root_volume_kms_key: its policy must let Auto Scaling use it. Default: the account's ``aws/ebs`` key.
        root_device_name: that of the image. Default: /dev/xvda, Amazon Linux's.

    Raises:
        FindingsError: rules CB-02, CB-21, EFA-01 to 08, 18, 25 and 27, FMB-09, FMB-25, FMB-30, FMB-40, PG-07, PG-13,
            X-01, X-03, X-08.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_type: str,
        capacity: ICapacity | None = None,
        placement_group: ec2.IPlacementGroup | None = None,
        efa_mode: EfaMode = EfaMode.AUTO,
        efa_interface_count: int | None = None,
        efa_interface_type: InterfaceType | None = None,
        efa_profile: Profile | None = None,
        secondary_device_index: int | None = None,
        network_interfaces: Sequence[NetworkInterface] = (),
        image_id: str | None = None,
        service_cidr: str | None = None,
        root_volume_gib: int = 500,
        root_volume_kms_key: kms.IKey | None = None,
        root_device_name: str = "/dev/xvda",
    ) -> None:
        super().__init__(
            scope,
            id,
            orchestrator=Orchestrator.EKS,
            instance_type=instance_type,
            security_groups=security_groups,
            cluster_group=cluster.cluster_security_group,
            capacity=capacity,
            placement_group=placement_group,
            efa_mode=efa_mode,
            efa_interface_count=efa_interface_count,
            efa_interface_type=efa_interface_type,
            efa_profile=efa_profile,
            secondary_device_index=secondary_device_index,
            network_interfaces=network_interfaces,
        )
        if image_id is not None and service_cidr is None:
            text = f"is required with an image of your own, {image_id}: EKS tells it nothing"
            raise FindingsError([fault("service_cidr", text, "pass that of the cluster")])
        self.image_id = image_id
        self._make(
            root_volume_gib=root_volume_gib,
            root_volume_kms_key=root_volume_kms_key,
            root_device_name=root_device_name,
            user_data=self._node_config(cluster, service_cidr),
            image_id=image_id,
        )

    def _node_config(self, cluster: eks.ICluster | eks.Cluster, service_cidr: str | None) -> ec2.UserData | None:
        """What nodeadm reads (awslabs/amazon-eks-ami, *nodeadm API*); EKS adds the cluster's part to its own images."""
        spec: dict[str, object] = {}
        if self.image_id is not None:
            spec["cluster"] = {
                "name": cluster.cluster_name,
                "apiServerEndpoint": cluster.cluster_endpoint,
                "certificateAuthority": cluster.cluster_certificate_authority_data,
                "cidr": service_cidr,
            }
        if self.kind.local_nvme_count:
            # Images and scratch of pods on one volume of the instance store: tens of GB would fill the root volume.
            spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
        if not spec:
            return None
        config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}
        data = ec2.MultipartUserData()
        body = yaml.safe_dump(config, sort_keys=False, width=10_000)  # a token that is wrapped is no token any more
        data.add_part(ec2.MultipartBody.from_raw_body(content_type="application/node.eks.aws", body=body))
        return data
