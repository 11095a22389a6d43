"""A model served on HyperPod by its inference operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from fmblocks._edge import fault, instance_types, typed
from fmblocks.cluster.node_group import INodeGroup
from fmblocks.cluster.settings import Orchestrator
from fmblocks.findings import FindingsError
from fmblocks.observability.metrics_workspace import IMetricsWorkspace, workspace_address
from fmblocks.serving import pods, rules
from fmblocks.serving.hyperpod_inference_operator import HyperPodInferenceOperator
from fmblocks.serving.inference_endpoint_config import MOUNT, VOLUME, Half, endpoint_config
from fmblocks.serving.model_endpoint import VERIFY, bucket_of, check_endpoint, folder_on_lustre
from fmblocks.serving.settings import Endpoint
from fmblocks.storage.lustre_file_system import ILustreFileSystem
from fmblocks.storage.model_store import IModelStore, grant_read_folder, model_prefix


class HyperPodModelEndpoint(Construct):
    """An ``InferenceEndpointConfig``: replicas, load balancer, certificate, caches and routing of a model.

    The operator mounts weights with the role of a driver, which every endpoint of the cluster shares: it is granted
    the folder of each. Of a model of the store every file is compared with the manifest before the server starts.

    The number of replicas stands in the manifest only where nothing scales them. Routing cannot be added to an
    endpoint that runs without: give it another name.

    Args:
        eks_cluster: with a kubectl provider.
        operator: of the cluster.
        endpoint: what is served: the settings of a project file.
        nodes: the instance groups of the cluster.
        s3_driver_role: of the add-on aws-mountpoint-s3-csi-driver, which gets reading of weights; required for S3.
        model_store: of ``model.store``.
        model_bucket: of ``model.bucket``, to grant from; default: by its name.
        file_system: of ``model.path``.
        lustre_path: where that file system shows the model store. Default: endpoints read the store from S3.
        workspace: that holds the metrics; required with autoscaling.
        tiered_storage: whether the cluster has it. Default: False.
        namespace: default.
        after: what has to be there before. Default: the operator.

    Attributes:
        manifest: every object.

    Raises:
        FindingsError: rules FMB-120 to FMB-126, FMB-132, FMB-135, FMB-136, FMB-140, FMB-141, FMB-145. FMB-127, FMB-131,
            FMB-138, FMB-139 and FMB-142 warn.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        eks_cluster: eks.ICluster | eks.Cluster,
        operator: HyperPodInferenceOperator,
        endpoint: Endpoint,
        nodes: Sequence[INodeGroup],
        s3_driver_role: iam.IRole | None = None,
        model_store: IModelStore | None = None,
        model_bucket: s3.IBucket | None = None,
        file_system: ILustreFileSystem | None = None,
        lustre_path: str | None = None,
        workspace: IMetricsWorkspace | None = None,
        tiered_storage: bool = False,
        namespace: str = "default",
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, id)
        known = instance_types(self)
        check_endpoint(
            self,
            endpoint,
            nodes,
            known,
            orchestrator=Orchestrator.HYPERPOD_EKS,
            stored=model_store is not None or lustre_path is not None,
            lustre=file_system is not None,
            scaled=workspace is not None,
            tiered=tiered_storage,
        )
        halves = {}
        for name, role in endpoint.roles().items():
            group = rules.group_of(role, nodes, known)
            assert group is not None  # FMB-120
            halves[name] = Half(role, known[group.instance_type], group.group_name, group.efa_interfaces)
        source, granted = self._source(endpoint, model_store, model_bucket, file_system, lustre_path, s3_driver_role)
        checked = endpoint.model.store is not None
        script = VERIFY.read_text(encoding="utf-8") if checked else None
        if endpoint.tls is not None:
            operator.use_certificate(endpoint.tls.certificate_arn, endpoint.tls.hosted_zone_id)
        config = endpoint_config(
            endpoint,
            halves,
            source=source,
            namespace=namespace,
            certificates=f"s3://{operator.certificates_bucket.bucket_name}/{endpoint.name}",
            server_address=workspace_address(self, workspace) if workspace is not None else None,
            extra=self._check(endpoint) if checked else {},
        )
        objects: list[Mapping[str, Any]] = [config]
        if script is not None:
            here = {"name": pods.script_name(endpoint), "namespace": namespace}
            objects.insert(
                0, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": here, "data": {VERIFY.name: script}}
            )
        self.manifest = eks.KubernetesManifest(
            self, "Manifest", cluster=cast(eks.ICluster, eks_cluster), manifest=[dict(one) for one in objects]
        )
        # The other way about, the operator would be gone when its finalizers are waited for.
        self.manifest.node.add_dependency(operator, *granted, *after)

    def _source(
        self,
        endpoint: Endpoint,
        model_store: IModelStore | None,
        model_bucket: s3.IBucket | None,
        file_system: ILustreFileSystem | None,
        lustre_path: str | None,
        driver: iam.IRole | None,
    ) -> tuple[Mapping[str, Any], list[IDependable]]:
        model = endpoint.model
        folder = folder_on_lustre(model, lustre_path)
        if folder is not None:
            if file_system is None:
                raise FindingsError([fault("file_system", "is required with lustre_path", "pass the file system")])
            storage = {
                "fileSystemId": file_system.file_system_id,
                "dnsName": file_system.dns_name,
                "mountName": file_system.mount_name,
            }
            return {"modelSourceType": "fsx", "fsxStorage": storage, "modelLocation": folder.strip("/")}, []
        if model.store is not None and model_store is not None:
            bucket, prefix = model_store.bucket, model_prefix(model.store)
        else:
            bucket = model_bucket or bucket_of(self, model)
            prefix = model.prefix
        if driver is None:
            raise FindingsError([fault("s3_driver_role", "is required for weights in S3", "pass the driver's role")])
        # A policy of its own: the role is another construct's, of another stack even.
        policy = iam.Policy(self, "Weights", roles=[driver])
        grant_read_folder(bucket, policy, prefix)
        storage = {"bucketName": bucket.bucket_name, "region": cdk.Stack.of(self).region}
        found: dict[str, Any] = {"modelSourceType": "s3", "s3Storage": storage}
        if prefix:
            found["modelLocation"] = prefix.rstrip("/")
        return found, [policy]

    def _check(self, endpoint: Endpoint) -> Mapping[str, Any]:
        mounts = [{"name": VOLUME, "mountPath": MOUNT, "readOnly": True}]
        return {
            "initContainers": [pods.check_container(endpoint, MOUNT, mounts)],
            "volumes": [pods.script_volume(endpoint)],
        }
