"""A SageMaker HyperPod cluster with Slurm."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from fmblocks._edge import check_arguments, member, typed
from fmblocks.cluster.hyperpod_cluster import (
    HyperPodCluster,
    IHyperPodCluster,
    ImportedHyperPodCluster,
    Storage,
)
from fmblocks.cluster.hyperpod_instance_group import SlurmInstanceGroup, plain
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.settings import NodeProvisioning, NodeRecovery, Orchestrator
from fmblocks.storage.accounting_database import AccountingDatabase, IAccountingDatabase
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem


class HyperPodSlurmCluster(HyperPodCluster):
    """A HyperPod cluster that HyperPod sets Slurm up on, in one static, reviewable resource.

    Counts, groups and scripts change in place; name and VPC configuration replace the cluster. HyperPod runs new
    scripts on new nodes only.

    Args:
        vpc: its private subnets are used when ``subnets`` is not given; the cluster waits for its routes.
        subnets: private subnets; types with EFA take exactly one.
        security_groups: one to five, each open to itself in both directions (see :class:`EfaSecurityGroup`): HyperPod's
            EFA health check fails on any that is not.
        instance_groups: exactly one controller of one node, at least one compute group.
        file_system: a Lustre file system that every node mounts, in the zone of the nodes; where its group is a
            :class:`LustreSecurityGroup`, the nodes' groups are let in. Default: none.
        mount_path: where. Default: /fsx.
        home_file_system: an OpenZFS file system with home directories, which every node mounts; where its group is an
            :class:`OpenZfsSecurityGroup`, the nodes' groups are let in. Default: each node has its own.
        home_mount_path: where. Default: /home.
        lifecycle_bundle: scripts that run on a node once HyperPod has set it up. Default: none.
        node_recovery: whether HyperPod replaces faulty nodes. Default: automatic.
        node_provisioning: default standard; AWS's texts disagree whether Slurm takes continuous.
        volume_kms_key: encrypts the second volumes; HyperPod takes one with continuous provisioning only (SageMaker AI
            Developer Guide, *Customer managed AWS KMS key encryption for HyperPod*). Default: a key that AWS owns.
        execution_role: assumed by the nodes; the managed policy of HyperPod nodes and the permissions they need are
            added; one that is imported as immutable must have them already. Default: a new role.
        accounting_database: what Slurm's accounting is kept in, with continuous provisioning (rule FMB-109) and an
            image of 2026-09 or later. The controller alone may read its secret, with a role of its own. Default: a
            database on the controller, which goes with it.
        controller_role: assumed by the controller, with a database; it gets what the nodes' role gets, and the secret.
            Default: a new role.
        cluster_name: a name blocks replacement. Default: chosen by CloudFormation.

    Attributes:
        controller_role: assumed by the controller; that of the nodes without a database.

    Raises:
        FindingsError: rules FMB-09, FMB-12, FMB-19, FMB-96, FMB-109, FSX-15, FSX-26, HP-01 to 05, 09, 11, 13, 14, 16
            and 18, NET-05, TP-01, X-02, X-04, X-05.

    At synth EFA-12 refuses a group of this app that is not open to itself.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        security_groups: Sequence[ec2.ISecurityGroup],
        instance_groups: Sequence[SlurmInstanceGroup],
        vpc: ec2.IVpc | None = None,
        subnets: Sequence[ec2.ISubnet] = (),
        file_system: ILustreFileSystem | None = None,
        mount_path: str = "/fsx",
        home_file_system: IOpenZfsFileSystem | None = None,
        home_mount_path: str = "/home",
        lifecycle_bundle: LifecycleBundle | None = None,
        node_recovery: NodeRecovery = NodeRecovery.AUTOMATIC,
        node_provisioning: NodeProvisioning = NodeProvisioning.STANDARD,
        volume_kms_key: kms.IKey | None = None,
        execution_role: iam.IRole | None = None,
        accounting_database: IAccountingDatabase | None = None,
        controller_role: iam.IRole | None = None,
        cluster_name: str | None = None,
    ) -> None:
        node_recovery = member(NodeRecovery, node_recovery, "node_recovery")
        node_provisioning = member(NodeProvisioning, node_provisioning, "node_provisioning")
        super().__init__(
            scope,
            id,
            orchestrator=Orchestrator.HYPERPOD_SLURM,
            groups=[plain(group) for group in instance_groups],
            vpc=vpc,
            subnets=subnets,
            security_groups=security_groups,
            node_provisioning=node_provisioning,
            lifecycle_bundle=lifecycle_bundle,
            volume_kms_key=volume_kms_key,
            execution_role=execution_role,
            checked={
                "mount_path": mount_path,
                "efa_enabled": bool(file_system and file_system.efa_enabled),
                "lustre_zone": file_system.availability_zone if file_system else None,
            },
            # The secret is the scheduler's: what runs on the other nodes is people's code.
            own_controller_role=accounting_database is not None,
            controller_role=controller_role,
        )
        given = {"node_provisioning": node_provisioning, "accounting_database_given": accounting_database is not None}
        check_arguments(
            self,
            ("FMB-109",),
            {**given, "orchestrator": Orchestrator.HYPERPOD_SLURM},
            names={"storage.accounting_database": "accounting_database"},
        )
        for mounted, below in ((file_system, None), (home_file_system, "Home")):
            if mounted is None:
                continue
            doors = Construct(self, below) if below else self
            for group in security_groups:
                mounted.add_client(f"Nodes{group.node.addr[-8:]}", group, scope=doors)
        mounts = []
        if file_system is not None:
            # Without it the EFA check of the mount falls back to TCP in silence (rule HP-15). It takes no resource.
            self._allow(["fsx:DescribeFileSystems"], ["*"])
            lustre = sagemaker.CfnCluster.ClusterFsxLustreConfigProperty(
                dns_name=file_system.dns_name, mount_name=file_system.mount_name, mount_path=mount_path
            )
            mounts.append(Storage(fsx_lustre_config=lustre))
        if home_file_system is not None:
            home = sagemaker.CfnCluster.ClusterFsxOpenZfsConfigProperty(
                dns_name=home_file_system.dns_name, mount_path=home_mount_path
            )
            mounts.append(Storage(fsx_open_zfs_config=home))
        # With continuous provisioning there is no strategy, and an empty block is left out.
        slurm = None
        if node_provisioning is NodeProvisioning.STANDARD:
            slurm = sagemaker.CfnCluster.ClusterOrchestratorSlurmConfigProperty(slurm_config_strategy="Managed")
        elif accounting_database is not None:
            accounting_database.grant_read_secret(self.controller_role)
            if isinstance(accounting_database, AccountingDatabase):
                for group in security_groups:
                    accounting_database.add_client(f"Nodes{group.node.addr[-8:]}", group, scope=self)
            slurm = sagemaker.CfnCluster.ClusterOrchestratorSlurmConfigProperty(
                # Without a name: HyperPod names the schema after the cluster. Slurm refuses one that was another's.
                accounting_database=sagemaker.CfnCluster.ClusterAccountingDatabaseProperty(
                    endpoint=accounting_database.endpoint,
                    port=accounting_database.port,
                    secret_arn=accounting_database.secret_arn,
                )
            )
        self.resource = self._make(
            cluster_name=cluster_name,
            orchestrator=sagemaker.CfnCluster.OrchestratorProperty(slurm=slurm) if slurm else None,
            node_recovery=node_recovery,
            node_provisioning=node_provisioning,
            mounts=mounts,
            needed=[vpc],
        )

    @staticmethod
    def from_cluster_arn(scope: Construct, id: str, cluster_arn: str) -> IHyperPodCluster:
        """A cluster that was made elsewhere. Nothing is created, nothing is checked."""
        return ImportedHyperPodCluster(scope, id, cluster_arn)
