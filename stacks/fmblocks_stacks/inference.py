"""InferenceStack: endpoints, and the cluster they run on where that is not the one of training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from fmblocks.cluster.add_ons import INFERENCE_OPERATOR
from fmblocks.cluster.eks_cluster import EksAddOn, EksCluster
from fmblocks.cluster.eks_cluster_access import EksClusterAccess
from fmblocks.cluster.hyperpod_cluster import IHyperPodCluster
from fmblocks.cluster.hyperpod_eks_cluster import HyperPodEksCluster
from fmblocks.cluster.lustre_volume import LUSTRE_CLAIM
from fmblocks.cluster.rules import control_plane_zones_among
from fmblocks.cluster.settings import Cluster, Kubernetes, Orchestrator, TieredStorage
from fmblocks.observability.metrics_workspace import IMetricsWorkspace, MetricsWorkspace
from fmblocks.project import Project
from fmblocks.serving.certificates_bucket import CertificatesBucket
from fmblocks.serving.hyperpod_inference_operator import HyperPodInferenceOperator
from fmblocks.serving.hyperpod_model_endpoint import HyperPodModelEndpoint
from fmblocks.serving.keda import Keda
from fmblocks.serving.leader_worker_sets import LeaderWorkerSets
from fmblocks.serving.model_endpoint import ModelEndpoint, folder_on_lustre
from fmblocks.serving.nodes import served_nodes
from fmblocks.serving.rules import has_room
from fmblocks.serving.settings import Endpoint, Inference, KvCacheTier, ServingCluster
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.model_store import IModelStore, ModelStore
from fmblocks_stacks.cluster_stack import ClusterStack

_S3_DRIVER = "aws-mountpoint-s3-csi-driver"


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The cluster that endpoints stand on.

    Attributes:
        cluster: with a kubectl provider.
        s3_driver_role: of the driver that mounts buckets.
        hyperpod: of HyperPod's nodes.
        oidc_provider_arn: of its OpenID Connect provider, which HyperPod's operator needs.
        ready: what has to be there before anything is applied.
        own: whether nothing else runs on it.
    """

    cluster: eks.ICluster | eks.Cluster
    s3_driver_role: iam.IRole | None
    hyperpod: IHyperPodCluster | None
    oidc_provider_arn: str
    ready: IDependable
    own: bool


class InferenceStack(ClusterStack):
    """Endpoints on Kubernetes, on a cluster of their own or on that of training.

    Args:
        project: a project with ``inference``.
        folder: what relative paths in the project start from.
        charts: what those of charts start from.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        inference: Inference,
        folder: Path,
        charts: Path,
        stack_name: str,
        env: cdk.Environment | None = None,
    ) -> None:
        super().__init__(scope, id, project=project, purpose="endpoints of models", stack_name=stack_name, env=env)
        if project.training is None:
            self._budget()
        wanted = project.serving_cluster
        assert wanted is not None  # FMB-117
        self._inference, self._wanted = inference, wanted
        if inference.cluster is ServingCluster.TRAINING:
            ground = self._of_training()
        elif inference.orchestrator is Orchestrator.EKS:
            ground = self._eks()
        else:
            ground = self._hyperpod(folder, charts)
        if inference.endpoints:
            serving = self._serving(ground)
            serving.node.add_dependency(ground.ready)

    def _eks(self) -> Ground:
        from fmblocks_stacks.kubernetes import KubernetesCluster

        made = KubernetesCluster(
            self,
            "Kubernetes",
            project=self._project,
            settings=self._inference,
            foundation=self._foundation,
            security_group=self._fabric(),
        )
        return _on(made.cluster, None, made.cluster.ready)

    def _hyperpod(self, folder: Path, charts: Path) -> Ground:
        from fmblocks_stacks.hyperpod_kubernetes import HyperPodKubernetesCluster

        settings = self._inference
        if _tiered(settings.endpoints) and settings.tiered_storage is None:
            settings = settings.model_copy(update={"tiered_storage": TieredStorage()})
        made = HyperPodKubernetesCluster(
            self,
            "Kubernetes",
            project=self._project,
            settings=settings,
            foundation=self._foundation,
            security_group=self._fabric(),
            charts=charts,
            bundle=self._plain_bundle(self._own_scripts(settings, folder)),
        )
        return _on(made.cluster, made.hyperpod, made.cluster.ready)

    def _of_training(self) -> Ground:
        """What TrainingStack says of its cluster: no part of it is made or changed here."""
        zones = control_plane_zones_among(self._project.network.zones)
        vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Vpc",
            vpc_id=self._foundation.value("vpc-id"),
            availability_zones=zones,
            private_subnet_ids=[self._foundation.value(f"subnet/{zone}") for zone in zones],
        )
        for subnet in vpc.private_subnets:
            cdk.Annotations.of(subnet).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId", "nothing here looks at the route table"
            )
        cdk.CfnOutput(self, "VpcId", value=vpc.vpc_id)
        name = self._foundation.value("training/cluster-name")
        cdk.CfnOutput(self, "ClusterName", value=name)
        reached = EksClusterAccess(
            self,
            "Access",
            cluster_name=name,
            cluster_security_group_id=self._foundation.value("training/cluster-security-group-id"),
            vpc=vpc,
            subnets=vpc.private_subnets,
            kubernetes_version=self._wanted.kubernetes_version,
        )
        hyperpod, driver, provider = None, None, ""
        if self._wanted.orchestrator.hyperpod:
            told = self._foundation.value
            arn = told("training/hyperpod-cluster-arn")
            hyperpod = HyperPodEksCluster.from_cluster_arn(self, "HyperPod", arn)
            driver = iam.Role.from_role_arn(self, "S3Driver", told("training/s3-driver-role-arn"))
            provider = told("training/oidc-provider-arn")
        return Ground(
            cluster=reached.cluster,
            s3_driver_role=driver,
            hyperpod=hyperpod,
            oidc_provider_arn=provider,
            ready=reached.ready,
            own=False,
        )

    def _serving(self, ground: Ground) -> Construct:
        endpoints = sorted(self._inference.endpoints, key=lambda one: one.name)
        if ground.hyperpod is None:
            return KubernetesEndpoints(
                self,
                "Serving",
                endpoints=endpoints,
                project=self._project,
                wanted=self._wanted,
                ground=ground,
                workspace=self._workspace() if _scaled(endpoints) else None,
                store=self._store(),
                source_range=self._project.network.ipv4_range,
            )
        bucket = CertificatesBucket(
            self,
            "Certificates",
            project=self._project.name,
            encryption_key=kms.Key.from_key_arn(self, "CertificatesKey", self._foundation.value("key-arn")),
        )
        return HyperPodEndpoints(
            self,
            "Serving",
            endpoints=endpoints,
            certificates=bucket,
            file_system=self._file_system() if _on_lustre(self._project, endpoints) else None,
            hyperpod=ground.hyperpod,
            tiered_storage=self._inference.cluster is ServingCluster.OWN or self._wanted.tiered_storage is not None,
            project=self._project,
            wanted=self._wanted,
            ground=ground,
            workspace=self._workspace(),
            store=self._store(),
        )

    def _workspace(self) -> IMetricsWorkspace:
        arn = self._foundation.value("metrics/workspace-arn")
        return MetricsWorkspace.from_workspace_attributes(self, "Metrics", workspace_arn=arn)

    def _store(self) -> IModelStore | None:
        """The model store, where endpoints read it from S3."""
        stored = any(one.model.store is not None for one in self._inference.endpoints)
        if not stored or _store_path(self._project) is not None:
            return None
        return ModelStore.from_bucket(
            s3.Bucket.from_bucket_attributes(
                self,
                "Models",
                bucket_name=self._foundation.value("bucket/models/name"),
                encryption_key=kms.Key.from_key_arn(self, "ModelsKey", self._foundation.value("bucket/models/key-arn")),
            )
        )


def _on(cluster: EksCluster, hyperpod: IHyperPodCluster | None, ready: IDependable) -> Ground:
    return Ground(
        cluster=cluster,
        s3_driver_role=cluster.add_on_roles[_S3_DRIVER],
        oidc_provider_arn=cluster.oidc_provider.open_id_connect_provider_arn,
        hyperpod=hyperpod,
        ready=ready,
        own=True,
    )


def _tiered(endpoints: Sequence[Endpoint]) -> bool:
    return any(KvCacheTier.TIERED_STORAGE in one.kv_cache_tiers for one in endpoints)


def _on_lustre(project: Project, endpoints: Sequence[Endpoint]) -> bool:
    return any(folder_on_lustre(one.model, _store_path(project)) is not None for one in endpoints)


def _scaled(endpoints: Sequence[Endpoint]) -> bool:
    return any(role.autoscaling is not None for one in endpoints for role in one.roles().values())


def _store_path(project: Project) -> str | None:
    """Where Lustre shows the model store."""
    return project.storage.model_store.lustre_path if project.storage.model_store else None


class KubernetesEndpoints(Construct):
    """Endpoints as plain Kubernetes objects, and the controllers that these need."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        endpoints: Sequence[Endpoint],
        wanted: Cluster,
        ground: Ground,
        workspace: IMetricsWorkspace | None,
        store: IModelStore | None,
        source_range: str,
    ) -> None:
        super().__init__(scope, id)
        kubernetes = wanted.kubernetes or Kubernetes()
        roles = [role for one in endpoints for role in one.roles().values()]
        after: list[IDependable] = []
        if any((role.nodes_per_replica or 1) > 1 for role in roles):
            after.append(
                LeaderWorkerSets(
                    self,
                    "LeaderWorkerSets",
                    cluster=ground.cluster,
                    chart_registry=kubernetes.chart_registry,
                    image_registry=kubernetes.image_registry,
                ).chart
            )
        keda = None
        if workspace is not None:
            keda = Keda(
                self,
                "Keda",
                cluster=ground.cluster,
                workspace=workspace,
                chart_registry=kubernetes.chart_registry,
                image_registry=kubernetes.image_registry,
            )
        types, nodes = project.instance_types, served_nodes(wanted, project.instance_types)
        # On the cluster of training jobs may have the room.
        fits = ground.own and has_room(endpoints, nodes, types)
        for one in endpoints:
            made = ModelEndpoint(
                self,
                f"Endpoint-{one.name}",
                cluster=ground.cluster,
                endpoint=one,
                nodes=nodes,
                model_store=store,
                lustre_claim=LUSTRE_CLAIM if project.storage.lustre else None,
                lustre_path=_store_path(project),
                keda=keda,
                workspace=workspace,
                surge=ground.own and has_room(endpoints, nodes, types, one_more=one),
                fits=fits,
                source_range=source_range,
                after=after,
            )
            if one.load_balancer:
                told = f"kubectl get service {one.name} -o jsonpath='{{.status.loadBalancer.ingress[0].hostname}}'"
                cdk.CfnOutput(made, "LoadBalancer", value=told, description="prints its address")
            else:
                url = f"http://{one.name}.default.svc.cluster.local"
                cdk.CfnOutput(made, "Url", value=url, description="from pods")


class HyperPodEndpoints(Construct):
    """Endpoints of HyperPod, and the operator that they need."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        project: Project,
        endpoints: Sequence[Endpoint],
        wanted: Cluster,
        ground: Ground,
        workspace: IMetricsWorkspace,
        store: IModelStore | None,
        certificates: s3.IBucket,
        file_system: ILustreFileSystem | None,
        hyperpod: IHyperPodCluster,
        tiered_storage: bool,
    ) -> None:
        super().__init__(scope, id)
        kubernetes = wanted.kubernetes or Kubernetes()
        told = next((one for one in kubernetes.add_ons if one.name == INFERENCE_OPERATOR), None)
        override = None
        if told is not None:
            values = json.loads(told.configuration_values) if told.configuration_values else None
            override = EksAddOn(name=told.name, version=told.version, configuration_values=values)
        operator = HyperPodInferenceOperator(
            self,
            "Operator",
            eks_cluster=ground.cluster,
            oidc_provider_arn=ground.oidc_provider_arn,
            hyperpod_cluster=hyperpod,
            certificates_bucket=certificates,
            workspace=workspace,
            override=override,
        )
        nodes = served_nodes(wanted, project.instance_types)
        for one in endpoints:
            HyperPodModelEndpoint(
                self,
                f"Endpoint-{one.name}",
                eks_cluster=ground.cluster,
                operator=operator,
                endpoint=one,
                nodes=nodes,
                s3_driver_role=ground.s3_driver_role,
                model_store=store,
                file_system=file_system,
                lustre_path=_store_path(project),
                workspace=workspace,
                tiered_storage=tiered_storage,
            )
