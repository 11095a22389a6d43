"""The custom resource of HyperPod's inference operator.

Source of its fields: aws/sagemaker-hyperpod-cli, the custom resource definition of InferenceEndpointConfig at commit
0986f2c (operator v3.3), which the local AWS and the tests check names and enums against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fmblocks.catalog import InstanceType
from fmblocks.cluster.add_ons import GROUP_LABEL
from fmblocks.compute.launch_profile import launch_profile
from fmblocks.serving.commands import hyperpod_command, width_of
from fmblocks.serving.pods import resources, scaling_query
from fmblocks.serving.settings import Endpoint, KvCacheTier, Replicas, Role, Routing, Server, Tls

MOUNT, VOLUME = "/opt/ml/model", "model-weights"
_ROUTING = {
    Routing.PREFIX_AWARE: "prefixaware",
    Routing.KV_AWARE: "kvaware",
    Routing.SESSION: "session",
    Routing.ROUND_ROBIN: "roundrobin",
}


@dataclass(frozen=True, slots=True)
class Half:
    """Replicas on the nodes of a group."""

    role: Role
    kind: InstanceType
    group_name: str
    efa_interfaces: int


def endpoint_config(
    endpoint: Endpoint,
    halves: Mapping[str, Half],
    *,
    source: Mapping[str, Any],
    namespace: str,
    certificates: str,
    server_address: str | None,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """The custom resource.

    Args:
        endpoint: what is served.
        halves: ``prefill`` and ``decode``, or one under the empty name.
        source: ``modelSourceConfig``.
        namespace: of the endpoint.
        certificates: S3 URI below which the operator puts the certificate.
        server_address: of the metrics workspace, without a slash at its end.
        extra: ``kubernetes``: init containers and volumes.
    """
    started = hyperpod_command(endpoint, model_path=MOUNT)
    first = next(iter(halves.values()))
    environment: dict[str, str] = dict(started.environment)
    if endpoint.over_the_fabric or (first.role.accelerators_per_replica or 1) > 1:
        environment = {**launch_profile(first.kind), **environment}
    environment |= endpoint.environment
    worker: dict[str, Any] = {
        "image": endpoint.image,
        "modelInvocationPort": {"containerPort": endpoint.listens_on, "name": "http"},
        "modelVolumeMount": {"name": VOLUME, "mountPath": MOUNT},
        "resources": _resources(endpoint, first),
    }
    if started.command:
        worker["command"] = list(started.command)
    if started.args:
        worker["args"] = list(started.args)
    if environment:
        worker["environmentVariables"] = [{"name": name, "value": environment[name]} for name in sorted(environment)]
    spec: dict[str, Any] = {
        "modelName": endpoint.name,
        "invocationEndpoint": endpoint.invocation_path,
        "maxDeployTimeInSeconds": endpoint.start_seconds,
        "modelSourceConfig": dict(source),
        "worker": worker,
        # The default is a cache on the CPU, also for servers that know none.
        "kvCacheSpec": _cache(endpoint),
        "loadBalancer": {"healthCheckPath": _rooted(endpoint.health_path)},
        "metrics": {"enabled": True, "modelMetrics": {"path": "/metrics", "port": endpoint.listens_on}},
        "tlsConfig": _tls(endpoint.tls, certificates),
    }
    if extra:
        spec["kubernetes"] = dict(extra)
    if endpoint.tls is not None and endpoint.tls.hosted_zone_id is not None:
        spec["dnsConfig"] = {"hostedZoneId": endpoint.tls.hosted_zone_id}
    if endpoint.routing is not None:
        spec["intelligentRoutingSpec"] = {"enabled": True, "routingStrategy": _ROUTING[endpoint.routing]}
    if "" in halves:
        spec |= _whole(endpoint, halves[""], server_address)
    else:
        # Its halves name their nodes themselves.
        spec["instanceTypes"] = sorted({f"ml.{half.kind.name}" for half in halves.values()})
        spec["pdSpec"] = _split(endpoint, halves, server_address)
    return {
        "apiVersion": "inference.sagemaker.aws.amazon.com/v1",
        "kind": "InferenceEndpointConfig",
        "metadata": {"name": endpoint.name, "namespace": namespace},
        "spec": spec,
    }


def _whole(endpoint: Endpoint, half: Half, server_address: str | None) -> dict[str, Any]:
    # Types would find the nodes of training, too.
    term = {"matchExpressions": [{"key": GROUP_LABEL, "operator": "In", "values": [half.group_name]}]}
    found: dict[str, Any] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    if half.role.autoscaling is None:
        found["replicas"] = half.role.replicas.min
    else:
        found["autoScalingSpec"] = _scaling(endpoint, half.role, server_address)
    return found


def _split(endpoint: Endpoint, halves: Mapping[str, Half], server_address: str | None) -> dict[str, Any]:
    split = endpoint.prefill_decode
    assert split is not None
    found: dict[str, Any] = {
        "prefillSpec": _half(endpoint, halves["prefill"]),
        "decodingSpec": _half(endpoint, halves["decode"]),
        "topologySpec": {"sameAZ": True},
    }
    if split.routing_threshold_tokens is not None:
        found["routingThreshold"] = split.routing_threshold_tokens
    scaled = {
        key: _scaling(endpoint, halves[name].role, server_address)
        for name, key in (("prefill", "prefillAutoScaling"), ("decode", "decodingAutoScaling"))
        if halves[name].role.autoscaling is not None
    }
    if scaled:
        found["autoScalingSpec"] = scaled
    return found


def _half(endpoint: Endpoint, half: Half) -> dict[str, Any]:
    args = [*(width_of(endpoint, half.role) if endpoint.server is Server.VLLM else ()), *half.role.args]
    found: dict[str, Any] = {
        "nodeSelector": {GROUP_LABEL: half.group_name},
        "resources": _resources(endpoint, half),
        **({"args": args} if args else {}),
    }
    if half.role.autoscaling is None:
        found["replicas"] = half.role.replicas.min
    return found


def _resources(endpoint: Endpoint, half: Half) -> dict[str, Any]:
    accelerators = half.role.accelerators_per_replica or 1
    efa = max(half.efa_interfaces * accelerators // half.kind.accelerator_count, 1) if half.efa_interfaces else 0
    return resources(endpoint, half.kind, accelerators, efa)


def _cache(endpoint: Endpoint) -> dict[str, Any]:
    tiers = endpoint.kv_cache_tiers
    found: dict[str, Any] = {"enableL1Cache": KvCacheTier.CPU in tiers}
    second = [tier for tier in tiers if tier is not KvCacheTier.CPU]
    found["enableL2Cache"] = bool(second)
    if KvCacheTier.TIERED_STORAGE in second:
        found["l2CacheSpec"] = {"l2CacheBackend": "tieredstorage"}
    elif KvCacheTier.REDIS in second:
        found["l2CacheSpec"] = {"l2CacheBackend": "redis", "l2CacheLocalUrl": endpoint.kv_cache_redis_url}
    return found


def _tls(tls: Tls | None, certificates: str) -> dict[str, Any]:
    found: dict[str, Any] = {"tlsCertificateOutputS3Uri": certificates}
    if tls is not None:
        found["customCertificateConfig"] = {"acmArn": tls.certificate_arn, "domainName": tls.domain_name}
    return found


def _scaling(endpoint: Endpoint, role: Role, server_address: str | None) -> dict[str, Any]:
    scaling, replicas = role.autoscaling, role.replicas
    assert scaling is not None
    return {
        **_between(replicas),
        "cooldownPeriod": scaling.scale_down_seconds,
        "scaleDownStabilizationTime": scaling.scale_down_seconds,
        "prometheusTrigger": {
            "name": f"{endpoint.name}-{scaling.metric}".replace("_", "-"),
            "serverAddress": server_address,
            "query": scaling_query(endpoint.server, scaling, {"model_name": endpoint.name}),
            "metricType": "Value" if scaling.metric.ratio else "Average",
            "targetValue": scaling.target,
        },
    }


def _between(replicas: Replicas) -> dict[str, int]:
    return {"minReplicaCount": replicas.min, "maxReplicaCount": replicas.max}


def _rooted(path: str) -> str:
    return f"/{path.lstrip('/')}"
