"""A model served on Kubernetes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct, IDependable

from fmblocks._edge import check_arguments, fault, instance_types, typed
from fmblocks.catalog import Types
from fmblocks.cluster.eks_cluster import pod_role
from fmblocks.cluster.node_group import INodeGroup
from fmblocks.cluster.prepared import wait_until_ready
from fmblocks.cluster.settings import Orchestrator
from fmblocks.findings import FindingsError
from fmblocks.observability.metrics_workspace import IMetricsWorkspace, workspace_address
from fmblocks.serving import pods, rules
from fmblocks.serving.commands import command, router_command
from fmblocks.serving.keda import Keda
from fmblocks.serving.settings import Endpoint, Model
from fmblocks.storage.model_store import IModelStore, grant_read_folder, model_prefix

VERIFY = Path(__file__).with_name("jobs") / "verify_model.py"
_MOUNT = "/models"


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A folder of a bucket, or of the file system behind a claim."""

    folder: str
    bucket: s3.IBucket | None = None
    claim: str | None = None


class ModelEndpoint(Construct):
    """Replicas of a model on nodes with accelerators, and the service that clients call.

    Each replica is a pod, or a LeaderWorkerSet's group of pods where it is spread over nodes; prefill and decode are
    two such sets behind a router. The number of replicas stands in the manifest only where nothing scales them: a
    value there would be written over the scaler's at every deployment.

    Weights are mounted read-only at ``/models``, from Lustre or by the Mountpoint driver; from S3 with the role of this
    endpoint, which reads that folder alone. Of a model of the store every file is compared with the manifest before
    the server starts.

    Args:
        cluster: with a kubectl provider, the CSI drivers and the agent for pod identities, as an :class:`EksCluster`
            has; nodes are found by the label ``fmblocks/node-group``.
        endpoint: what is served: the settings of a project file.
        nodes: the node groups of the cluster.
        model_store: of ``model.store``.
        model_bucket: of ``model.bucket``, to grant from; default: by its name.
        lustre_claim: the claim of a Lustre file system in the namespace, of ``model.path``.
        lustre_path: where that file system shows the model store. Default: endpoints read the store from S3.
        keda: required with autoscaling.
        workspace: that holds the metrics; required with autoscaling.
        surge: whether the nodes have room for a new replica beside the most that may run. Default: no: one goes first.
        fits: whether they have room for the most that may run, which decides where replicas come and go. Default: no.
        source_range: the IPv4 range of the VPC, which a load balancer lets in; required with ``load_balancer``.
        namespace: default.
        after: what has to be there before: charts, an access entry. Default: nothing.

    Attributes:
        role: of the pods.
        replicas: by half; by the empty name where nothing is split.

    Raises:
        FindingsError: rules FMB-120 to FMB-126, FMB-132, FMB-135, FMB-136, FMB-140, FMB-141, FMB-145; what an endpoint
            needs is not passed. FMB-127, FMB-131, FMB-138, FMB-139 and FMB-142 warn.
    """

    @typed
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: eks.ICluster | eks.Cluster,
        endpoint: Endpoint,
        nodes: Sequence[INodeGroup],
        model_store: IModelStore | None = None,
        model_bucket: s3.IBucket | None = None,
        lustre_claim: str | None = None,
        lustre_path: str | None = None,
        keda: Keda | None = None,
        workspace: IMetricsWorkspace | None = None,
        surge: bool = False,
        fits: bool = False,
        source_range: str | None = None,
        namespace: str = "default",
        after: Sequence[IDependable] = (),
    ) -> None:
        super().__init__(scope, id)
        known = instance_types(self)
        scaled = keda is not None and workspace is not None
        check_endpoint(
            self,
            endpoint,
            nodes,
            known,
            orchestrator=Orchestrator.EKS,
            stored=model_store is not None or lustre_path is not None,
            lustre=lustre_claim is not None,
            scaled=scaled,
        )
        if endpoint.load_balancer and source_range is None:
            raise FindingsError([fault("source_range", "is required with load_balancer", "pass the range of the VPC")])
        self._endpoint, self._namespace, self._cluster = endpoint, namespace, cluster
        self.role = pod_role(self, "Role")
        source = self._source(model_store, model_bucket, lustre_claim, lustre_path)
        association = eks.CfnPodIdentityAssociation(
            self,
            "Association",
            cluster_name=cluster.cluster_name,
            namespace=namespace,
            service_account=endpoint.name,
            role_arn=self.role.role_arn,
        )
        script = VERIFY.read_text(encoding="utf-8") if endpoint.model.store is not None else None
        digest = hashlib.sha256(script.encode()).hexdigest()[:16] if script is not None else None
        base = self._apply("Base", self._base(script, source_range or ""))
        # Pods that start without their role go on without it.
        base.node.add_dependency(association, self.role, *after)
        # Kinds that are no part of Kubernetes stay behind where a manifest loses them (kubectl prunes its own only), so
        # that each has a resource of its own.
        self.replicas: dict[str, eks.KubernetesManifest] = {}
        for half in endpoint.roles():
            one = self._placed(half, nodes, known, surge=surge, fits=fits)
            weights = self._weights(one.name, source)
            started = command(endpoint, half, one.role, model_path=weights.path)
            # Another shape is another kind: with another name both are there for a moment, the new one first.
            id = "-".join(filter(None, ("Replicas", half, "over-nodes" if one.nodes > 1 else "")))
            # The volume in the same manifest: what kubectl prunes it does not wait for, and old pods hold it for long.
            replicas = self._apply(
                id,
                [
                    *weights.objects,
                    pods.workload(endpoint, one, started, weights, namespace=namespace, script=digest),
                    pods.disruption_budget(endpoint, one, namespace=namespace),
                ],
            )
            replicas.node.add_dependency(base)
            self.replicas[half] = replicas
            if one.role.autoscaling is not None and keda is not None and workspace is not None:
                scaling = self._apply(id.replace("Replicas", "Scaling"), [self._scaled(one, keda, workspace)])
                scaling.node.add_dependency(replicas, keda.authentication)
        if endpoint.router_image is not None:
            self._apply("Router", self._router(endpoint.router_image)).node.add_dependency(base)

    def _apply(self, id: str, objects: Sequence[Mapping[str, Any]]) -> eks.KubernetesManifest:
        made = eks.KubernetesManifest(
            self, id, cluster=cast(eks.ICluster, self._cluster), manifest=[dict(one) for one in objects]
        )
        wait_until_ready(made, self._cluster)
        return made

    def _base(self, script: str | None, vpc_range: str) -> list[Mapping[str, Any]]:
        """The account of the pods, the check of weights, and where clients call."""
        endpoint = self._endpoint
        found: list[Mapping[str, Any]] = [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._here(endpoint.name)},
            pods.service(
                endpoint,
                namespace=self._namespace,
                routed=endpoint.router_image is not None,
                source_ranges=(vpc_range, *endpoint.source_ranges) if endpoint.load_balancer else (),
                certificate=endpoint.tls.certificate_arn if endpoint.tls else None,
            ),
        ]
        if script is not None:
            told = {"metadata": self._here(pods.script_name(endpoint)), "data": {VERIFY.name: script}}
            found.append({"apiVersion": "v1", "kind": "ConfigMap", **told})
        return found

    def _router(self, image: str) -> list[dict[str, Any]]:
        endpoint, namespace = self._endpoint, self._namespace
        selectors = {
            half: [f"{key}={value}" for key, value in pods.selector(endpoint, half).items()]
            for half in endpoint.roles()
        }
        started = router_command(endpoint, namespace=namespace, selectors=selectors)
        return pods.router(endpoint, started, image=image, namespace=namespace)

    def _here(self, name: str) -> dict[str, str]:
        return {"name": name, "namespace": self._namespace}

    def _placed(self, half: str, nodes: Sequence[INodeGroup], known: Types, *, surge: bool, fits: bool) -> pods.Placed:
        role = self._endpoint.roles()[half]
        group = rules.group_of(role, nodes, known)
        assert group is not None  # FMB-120
        return pods.Placed(
            # Not that of the service: LeaderWorkerSet makes a headless one of its own name, by which pods are found.
            name="-".join(
                (self._endpoint.name, half or "server", *(["group"] if (role.nodes_per_replica or 1) > 1 else []))
            ),
            half=half,
            role=role,
            kind=known[group.instance_type],
            group_name=group.group_name,
            efa_interfaces=group.efa_interfaces,
            surge=surge,
            fits=fits,
        )

    def _scaled(self, placed: pods.Placed, keda: Keda, workspace: IMetricsWorkspace) -> Mapping[str, Any]:
        return pods.scaled_object(
            self._endpoint,
            placed,
            namespace=self._namespace,
            cluster=self._cluster.cluster_name,
            server_address=workspace_address(self, workspace),
            region=cdk.Stack.of(self).region,
            authentication=keda.authentication_name,
        )

    def _source(
        self,
        model_store: IModelStore | None,
        model_bucket: s3.IBucket | None,
        lustre_claim: str | None,
        lustre_path: str | None,
    ) -> _Source:
        """Where the weights are, with reading granted."""
        model = self._endpoint.model
        folder = folder_on_lustre(model, lustre_path)
        if folder is not None:
            if lustre_claim is None:
                raise FindingsError([fault("lustre_claim", "is required with lustre_path", "name the claim")])
            return _Source(claim=lustre_claim, folder=folder.strip("/"))
        if model.store is not None and model_store is not None:
            model_store.grant_read_model(self.role, model.store)
            return _Source(bucket=model_store.bucket, folder=model_prefix(model.store))
        bucket = model_bucket or bucket_of(self, model)
        grant_read_folder(bucket, self.role, model.prefix)
        return _Source(bucket=bucket, folder=model.prefix)

    def _weights(self, replicas: str, source: _Source) -> pods.Weights:
        checked = self._endpoint.model.store is not None
        if source.bucket is not None:
            return self._from_s3(replicas, source.bucket, source.folder, checked=checked)
        return pods.Weights(
            path=_MOUNT,
            mount={"name": "weights", "mountPath": _MOUNT, "subPath": source.folder, "readOnly": True},
            volume={"name": "weights", "persistentVolumeClaim": {"claimName": source.claim}},
            objects=(),
            checked=checked,
        )

    def _from_s3(self, replicas: str, bucket: s3.IBucket, prefix: str, *, checked: bool) -> pods.Weights:
        region = cdk.Stack.of(self).region
        # Kubernetes changes the source of no volume: another folder is another one.
        known = "" if cdk.Token.is_unresolved(bucket.bucket_name) else bucket.bucket_name
        name = f"{replicas}-{hashlib.sha256(f'{known}/{prefix}'.encode()).hexdigest()[:8]}"
        options = [f"region {region}", "read-only", *([f"prefix {prefix}"] if prefix else [])]
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},  # asked for, and of no meaning
                "accessModes": ["ReadOnlyMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "claimRef": self._here(name),
                "mountOptions": options,
                "csi": {
                    "driver": "s3.csi.aws.com",
                    "volumeHandle": name,
                    "volumeAttributes": {"bucketName": bucket.bucket_name, "authenticationSource": "pod"},
                },
            },
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": self._here(name),
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        return pods.Weights(
            path=_MOUNT,
            mount={"name": "weights", "mountPath": _MOUNT, "readOnly": True},
            volume={"name": "weights", "persistentVolumeClaim": {"claimName": name, "readOnly": True}},
            objects=(volume, claim),
            checked=checked,
        )


def bucket_of(scope: Construct, model: Model) -> s3.IBucket:
    """The bucket that a model names, with the key that it is encrypted with."""
    key = kms.Key.from_key_arn(scope, "BucketKey", model.kms_key_arn) if model.kms_key_arn else None
    return s3.Bucket.from_bucket_attributes(scope, "Bucket", bucket_name=model.bucket or "", encryption_key=key)


def folder_on_lustre(model: Model, lustre_path: str | None) -> str | None:
    """Where Lustre shows the weights of a model; None where they are read from S3."""
    if model.path is not None:
        return model.path
    return f"{lustre_path.rstrip('/')}/{model.store}" if model.store is not None and lustre_path is not None else None


def check_endpoint(
    scope: Construct,
    endpoint: Endpoint,
    nodes: Sequence[INodeGroup],
    known: Types,
    *,
    orchestrator: Orchestrator,
    stored: bool,
    lustre: bool,
    scaled: bool,
    tiered: bool = False,
) -> None:
    """The rules of an endpoint, at a construct."""
    values = {
        **{name: getattr(endpoint, name) for name in type(endpoint).model_fields},
        "endpoint": endpoint,
        "nodes": nodes,
        # Zones are the project's: a construct is not told which subnet a group stands in.
        "zones": {},
        "types": known,
        "orchestrator": orchestrator,
        "tiered_storage_on": tiered,
        "metrics_collected": scaled,
        "model_store_given": stored,
        "lustre_given": lustre,
        "region": _known(cdk.Stack.of(scope).region),
        "account": _known(cdk.Stack.of(scope).account),
    }
    check_arguments(scope, rules.ENDPOINT, values, path="endpoint")


def _known(value: str) -> str | None:
    return None if cdk.Token.is_unresolved(value) else value
