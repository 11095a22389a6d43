"""TrainingStack: the cluster, destroyed and rebuilt without touching data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from fmblocks.cluster.hyperpod_instance_group import SlurmInstanceGroup
from fmblocks.cluster.hyperpod_slurm_cluster import HyperPodSlurmCluster
from fmblocks.cluster.lifecycle_bundle import LifecycleBundle
from fmblocks.cluster.settings import NodeProvisioning, NodeRole, Orchestrator, Training
from fmblocks.compute.gpu_fleet import GpuFleet
from fmblocks.project import Project
from fmblocks.serving.settings import ServingCluster
from fmblocks.storage.open_zfs_file_system import IOpenZfsFileSystem, OpenZfsFileSystem
from fmblocks_stacks import hyperpod
from fmblocks_stacks.cluster_stack import ClusterStack
from fmblocks_stacks.contract import Publisher
from fmblocks_stacks.fleet import NodeFleet

if TYPE_CHECKING:
    from fmblocks.cluster.eks_cluster import EksCluster
    from fmblocks.cluster.hyperpod_eks_cluster import HyperPodEksCluster
    from fmblocks.storage.accounting_database import IAccountingDatabase


class TrainingStack(ClusterStack):
    """A cluster on a foundation's network and storage: HyperPod with Slurm, or fleets of EC2.

    Args:
        project: a project with ``training``.
        folder: what relative paths in the project start from.
        charts: what those of charts start from.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        training: Training,
        folder: Path,
        charts: Path,
        stack_name: str,
        env: cdk.Environment | None = None,
    ) -> None:
        super().__init__(scope, id, project=project, purpose="training cluster", stack_name=stack_name, env=env)
        self._budget()
        self._subnet, self._efa_group = self._primary_subnet(), self._fabric()
        if training.orchestrator is Orchestrator.EC2:
            names = {}
            metrics = self._metrics()
            for name, fleet in self._fleets(training):
                metrics.grant_remote_write(fleet)
                names[name] = fleet.auto_scaling_group_name
            cdk.CfnOutput(self, "Fleets", value=self.to_json_string(names), description="Auto Scaling groups, as JSON")
        elif training.orchestrator is Orchestrator.EKS:
            # Only here: half of what it imports is for Kubernetes alone.
            from fmblocks_stacks.kubernetes import KubernetesCluster

            plain = KubernetesCluster(
                self,
                "Kubernetes",
                project=project,
                settings=training,
                foundation=self._foundation,
                security_group=self._efa_group,
            )
            self._share(plain.cluster, None)
        elif training.orchestrator is Orchestrator.PCS:
            from fmblocks_stacks.pcs import PcsTraining

            made = PcsTraining(
                self,
                "Pcs",
                project=project,
                training=training,
                foundation=self._foundation,
                security_group=self._efa_group,
                subnet=self._subnet,
                file_system=self._file_system() if project.storage.lustre else None,
                home=self._home_directories(),
            )
            metrics = self._metrics()
            for nodes in made.groups.values():
                metrics.grant_remote_write(nodes)
        elif training.orchestrator is Orchestrator.HYPERPOD_EKS:
            from fmblocks_stacks.hyperpod_kubernetes import HyperPodKubernetesCluster

            both = HyperPodKubernetesCluster(
                self,
                "Kubernetes",
                project=project,
                settings=training,
                foundation=self._foundation,
                security_group=self._efa_group,
                charts=charts,
                bundle=self._bundle(training, folder),
            )
            self._share(both.cluster, both.hyperpod)
        else:
            made_cluster = self._hyperpod(training, self._bundle(training, folder))
            metrics = self._metrics()
            for role in made_cluster.roles:
                metrics.grant_remote_write(role)

        for output, name in (
            ("LustreFileSystemId", "file-system-id"),
            ("LustreDnsName", "dns-name"),
            ("LustreMountName", "mount-name"),
        ):
            if project.storage.lustre:
                cdk.CfnOutput(self, output, value=self._foundation.value(f"lustre/{name}"))
        if project.storage.home:
            cdk.CfnOutput(self, "HomeFileSystemId", value=self._foundation.value("home/file-system-id"))
        cdk.CfnOutput(self, "MetricsEndpoint", value=self._foundation.value("metrics/endpoint"))

    def _share(self, cluster: EksCluster, hyperpod: HyperPodEksCluster | None) -> None:
        """Say of the cluster what InferenceStack needs to put endpoints on it."""
        inference = self._project.inference
        if inference is None or inference.cluster is not ServingCluster.TRAINING:
            return
        publisher = Publisher(self, "Contract", foundation=self._project.name)
        told = {
            "cluster-name": (cluster.cluster_name, "EKS cluster of training"),
            "cluster-security-group-id": (cluster.cluster_security_group_id, "group of its control plane and nodes"),
        }
        if hyperpod is not None:
            provider, driver = cluster.oidc_provider, cluster.add_on_roles["aws-mountpoint-s3-csi-driver"]
            told |= {
                "hyperpod-cluster-arn": (hyperpod.cluster_arn, "HyperPod cluster of training"),
                "oidc-provider-arn": (provider.open_id_connect_provider_arn, "OpenID Connect provider of it"),
                "s3-driver-role-arn": (driver.role_arn, "role of the driver that mounts buckets"),
            }
        for name, (value, description) in told.items():
            publisher.publish(f"training/{name}", value, description)

    def _hyperpod(self, training: Training, bundle: LifecycleBundle | None) -> HyperPodSlurmCluster:
        lustre = self._project.storage.lustre
        zones = hyperpod.private_subnets(self, self._foundation, training.groups)
        cluster = HyperPodSlurmCluster(
            self,
            "Cluster",
            subnets=[self._subnet],
            security_groups=[self._efa_group],
            instance_groups=[
                SlurmInstanceGroup(**hyperpod.arguments(self, group, zones), role=group.role)
                for group in training.node_groups
            ],
            file_system=self._file_system() if lustre else None,
            mount_path=lustre.mount_path if lustre else "/fsx",
            home_file_system=self._home_directories(),
            home_mount_path=self._project.storage.home.mount_path if self._project.storage.home else "/home",
            lifecycle_bundle=bundle,
            node_recovery=training.node_recovery,
            node_provisioning=training.provisioning,
            volume_kms_key=self._key() if training.provisioning is NodeProvisioning.CONTINUOUS else None,
            accounting_database=self._accounting(),
        )
        hyperpod.watch(self, cluster, self._foundation, self._project.observability.alerts)
        hyperpod.let_in(self, cluster)
        return cluster

    def _fleets(self, training: Training) -> Iterator[tuple[str, GpuFleet]]:
        file_system = self._file_system() if self._project.storage.lustre else None
        home = self._home_directories()
        for group in sorted(training.node_groups, key=lambda group: group.name):
            node_fleet = NodeFleet(
                self,
                f"Group-{group.name}",
                project=self._project,
                group=group,
                foundation=self._foundation,
                subnet=self._subnet,
                security_group=self._efa_group,
                file_system=file_system,
                home=home,
            )
            yield group.name, node_fleet.fleet

    def _home_directories(self) -> IOpenZfsFileSystem | None:
        if self._project.storage.home is None:
            return None
        return OpenZfsFileSystem.from_open_zfs_file_system_attributes(
            self,
            "Home",
            file_system_id=self._foundation.value("home/file-system-id"),
            dns_name=self._foundation.value("home/dns-name"),
        )

    def _bundle(self, training: Training, folder: Path) -> LifecycleBundle | None:
        own = self._own_scripts(training, folder)
        # On Kubernetes teams are nothing of the nodes.
        people = self._project.access.users or self._project.teams
        if training.orchestrator is Orchestrator.HYPERPOD_SLURM and (own or people):
            return self._slurm_bundle(training, own)
        return self._plain_bundle(own)

    def _slurm_bundle(self, training: Training, own: tuple[Path, str] | None) -> LifecycleBundle:
        # Only here: what it is made of no other orchestrator needs.
        from fmblocks.cluster.slurm_lifecycle_bundle import SlurmLifecycleBundle, SlurmUser

        project, storage = self._project, self._project.storage
        return SlurmLifecycleBundle(
            self,
            "LifecycleScripts",
            bucket=self._lifecycle_bucket(),
            users=[
                SlurmUser(name=one.name, uid=one.uid, account=one.account)
                for one in project.access.users
                if one.uid is not None
            ],
            accounts={team.name: team.fair_share_weight for team in project.teams},
            lustre_mount_path=storage.lustre.mount_path if storage.lustre else None,
            open_directories=[
                "/scratch",
                *(link.path for link in storage.lustre.data_repository_associations if link.auto_export),
            ]
            if storage.lustre
            else (),
            home_mount_path=storage.home.mount_path if storage.home else None,
            types=[
                name for group in training.node_groups if group.role is NodeRole.COMPUTE for name in group.every_type
            ],
            path=own[0] if own else None,
            on_init_complete=own[1] if own else None,
        )

    def _accounting(self) -> IAccountingDatabase | None:
        if self._project.storage.accounting_database is None:
            return None
        from fmblocks.storage.accounting_database import AccountingDatabase

        return AccountingDatabase.from_accounting_database_attributes(
            self,
            "Accounting",
            endpoint=self._foundation.value("accounting/endpoint"),
            secret_arn=self._foundation.value("accounting/secret-arn"),
            kms_key=kms.Key.from_key_arn(self, "AccountingKey", self._foundation.value("key-arn")),
        )
