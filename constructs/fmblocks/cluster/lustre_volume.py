"""A Lustre file system as a Kubernetes volume."""

from __future__ import annotations

from typing import cast

from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from fmblocks._edge import typed
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.storage.lustre_file_system import ILustreFileSystem

# The claim that pods of this project name.
LUSTRE_CLAIM = "fsx"


class LustreVolume(Construct):
    """A persistent volume of a Lustre file system, and the claim that pods name.

    The volume is static: the driver makes and deletes no file system, and what is in it outlives the claim. Where the
    file system's group is a :class:`LustreSecurityGroup`, the cluster's group is let in, which every node carries: the
    driver mounts on the nodes. A file system that is replaced needs the claim deleted by hand: Kubernetes changes the
    source of no volume. It mounts over TCP: AWS describes EFA for Ubuntu nodes only (EKS User Guide, *Optimize
    Amazon FSx for Lustre performance on nodes (EFA)*).

    Args:
        cluster: with the add-on aws-fsx-csi-driver, as an :class:`EksCluster` has it.
        file_system: in the VPC of the cluster.
        capacity_gib: what Kubernetes shows as its size. Default: 1200, the least there is.
        claim_name: default fsx.
        namespace: of the claim. Default: default.

    Attributes:
        claim_name: for ``persistentVolumeClaim: {claimName: …}``.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        file_system: ILustreFileSystem,
        capacity_gib: int = 1200,
        claim_name: str = LUSTRE_CLAIM,
        namespace: str = "default",
    ) -> None:
        super().__init__(scope, id)
        self.claim_name = claim_name
        file_system.add_client("Cluster", cluster.cluster_security_group, scope=self)
        # Kubernetes refuses a claim that grows, and the file system may grow any day.
        asked = {"storage": "1Gi"}
        name = f"{namespace}-{claim_name}"
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": f"{capacity_gib}Gi"},
                "volumeMode": "Filesystem",
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "mountOptions": ["noatime", "flock", "lazystatfs"],
                "claimRef": {"name": claim_name, "namespace": namespace},
                "csi": {
                    "driver": "fsx.csi.aws.com",
                    "volumeHandle": file_system.file_system_id,
                    "volumeAttributes": {"dnsname": file_system.dns_name, "mountname": file_system.mount_name},
                },
            },
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim_name, "namespace": namespace},
            "spec": {
                "accessModes": ["ReadWriteMany"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": asked},
            },
        }
        self.manifest = eks.KubernetesManifest(
            self, "Manifest", cluster=cast(eks.ICluster, cluster), manifest=[volume, claim]
        )
        wait_until_ready(self.manifest, cluster)  # the driver among its add-ons
