"""The Kubernetes objects of an endpoint: pods, services, what scales them.

Sources: Kubernetes 1.35, LeaderWorkerSet v1, KEDA's *ScaledObject specification* and *Prometheus scaler*, EKS User
Guide, *Run machine learning training on Amazon EKS with Elastic Fabric Adapter*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fmblocks.catalog import InstanceType
from fmblocks.cluster.add_ons import GROUP_LABEL, ROLE_LABEL, TAINTS
from fmblocks.cluster.settings import NodeRole
from fmblocks.compute.launch_profile import launch_profile
from fmblocks.observability.settings import METRICS_LABEL, METRICS_PORT
from fmblocks.serving.commands import BOOTSTRAP_PORT, ROUTER_PORT, Command
from fmblocks.serving.settings import Autoscaling, Endpoint, Role, ScalingMetric, Server

# Pods that answer requests carry both; those of a half its name, too.
ENDPOINT_LABEL = "fmblocks/endpoint"
HALF_LABEL = "fmblocks/endpoint-role"
# Of a replica over several nodes only the first pod answers.
ANSWERS_LABEL = "fmblocks/answers"
# What every EFA node sets aside is 5128 pages of 2 MiB (rule EFA-22): two pods find theirs.
_HUGE_PAGES = "5120Mi"
_LEAST_SHM_GIB, _MOST_SHM_GIB = 1, 64
_PERIOD = 10
# Requests that are under way when a pod goes.
_GRACE_SECONDS, _DRAIN_SECONDS = 300, 20
_LWS = "leaderworkerset.x-k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Weights:
    """How a container gets at the weights.

    Attributes:
        path: where they lie in the container.
        mount: the server's volume mount.
        volume: its volume.
        objects: what the volume needs, the claim among them.
        checked: whether a manifest lies beside them.
    """

    path: str
    mount: Mapping[str, Any]
    volume: Mapping[str, Any]
    objects: Sequence[Mapping[str, Any]]
    checked: bool


@dataclass(frozen=True, slots=True)
class Placed:
    """Replicas of an endpoint, or of one half of it, on the nodes of a group.

    Attributes:
        name: of the Kubernetes objects.
        half: ``prefill``, ``decode``, or empty.
        role: with its accelerators and nodes.
        kind: the type of the nodes.
        group_name: their label.
        efa_interfaces: of each node.
        surge: whether there is room for a new replica beside the most that may run.
        fits: whether there is room for the most that may run.
    """

    name: str
    half: str
    role: Role
    kind: InstanceType
    group_name: str
    efa_interfaces: int
    surge: bool
    fits: bool

    @property
    def nodes(self) -> int:
        """Over which a replica is spread."""
        return self.role.nodes_per_replica or 1

    @property
    def accelerators_per_pod(self) -> int:
        """On each of them."""
        return (self.role.accelerators_per_replica or 1) // self.nodes


def labels(endpoint: Endpoint, placed: Placed, *, answers: bool = True) -> dict[str, str]:
    """What pods carry."""
    found = {ENDPOINT_LABEL: endpoint.name}
    if placed.half:
        found[HALF_LABEL] = placed.half
    return {**found, ANSWERS_LABEL: "true", METRICS_LABEL: "true"} if answers else found


def selector(endpoint: Endpoint, half: str) -> dict[str, str]:
    """The pods that answer."""
    found = {ENDPOINT_LABEL: endpoint.name, ANSWERS_LABEL: "true"}
    return {**found, HALF_LABEL: half} if half else found


def workload(
    endpoint: Endpoint, placed: Placed, started: Command, weights: Weights, *, namespace: str, script: str | None
) -> dict[str, Any]:
    """The replicas: a Deployment, or a LeaderWorkerSet where each is spread over nodes.

    The number of replicas stands in it only where nothing scales them: a value here would be written over the
    scaler's at every deployment.
    """

    def pod(*, answers: bool) -> dict[str, Any]:
        return _pod(endpoint, placed, started, weights, answers=answers, script=script)

    metadata = {"name": placed.name, "namespace": namespace, "labels": labels(endpoint, placed, answers=False)}
    count: dict[str, Any] = {} if placed.role.autoscaling is not None else {"replicas": placed.role.replicas.min}
    turn = _turn(placed)
    if placed.nodes > 1:
        return {
            "apiVersion": _LWS,
            "kind": "LeaderWorkerSet",
            "metadata": metadata,
            "spec": {
                **count,
                # Workers are made with the leader: it gets ready with them only.
                "startupPolicy": "LeaderCreated",
                "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": turn},
                "leaderWorkerTemplate": {
                    "size": placed.nodes,
                    # Half a replica holds accelerators and answers nothing.
                    "restartPolicy": "RecreateGroupOnPodRestart",
                    "leaderTemplate": pod(answers=True),
                    "workerTemplate": pod(answers=False),
                },
            },
        }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            **count,
            # Loading weights takes longer than the ten minutes after which Kubernetes calls a rollout stuck.
            "progressDeadlineSeconds": endpoint.start_seconds + 600,
            "selector": {"matchLabels": labels(endpoint, placed, answers=False)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": turn},
            "template": pod(answers=True),
        },
    }


def _turn(placed: Placed) -> dict[str, int | str]:
    """How an update goes: the new replica first where it finds room, else an old one goes before it.

    Where replicas come and go, room is there until the most of them run. A share of theirs is rounded down, so that
    this one is nothing before and one replica then.
    """
    if placed.surge:
        return {"maxSurge": 1, "maxUnavailable": 0}
    if placed.fits and placed.role.autoscaling is not None:
        return {"maxSurge": 1, "maxUnavailable": f"{-(-100 // placed.role.replicas.max)}%"}
    return {"maxSurge": 0, "maxUnavailable": 1}


def resources(endpoint: Endpoint, kind: InstanceType, accelerators: int, efa: int) -> dict[str, dict[str, str]]:
    """What a pod asks for: accelerators, half of their share of the node's memory and CPUs, and EFA where it is used.

    Half: what else runs on the node, and what the page cache holds of the weights, has room in the other one.
    """
    whole: dict[str, str] = {_resource(kind): str(accelerators)}
    if endpoint.over_the_fabric and efa:
        whole |= {"vpc.amazonaws.com/efa": str(efa), "hugepages-2Mi": _HUGE_PAGES}
    asked = dict(whole)
    if kind.vcpus is not None:
        asked["cpu"] = str(max(kind.vcpus * accelerators // kind.accelerator_count // 2, 1))
    if kind.memory_gib is not None:
        asked["memory"] = f"{share_gib(kind, accelerators) + (endpoint.kv_cache_cpu_gib or 0)}Gi"
    return {"requests": asked, "limits": whole}


def share_gib(kind: InstanceType, accelerators: int) -> int:
    """Half of the memory of a node that goes with some of its accelerators."""
    return max((kind.memory_gib or 2) * accelerators // max(kind.accelerator_count, 1) // 2, 1)


def efa_of(placed: Placed) -> int:
    """EFA devices of a pod: those that go with its accelerators."""
    return max(placed.efa_interfaces * placed.accelerators_per_pod // placed.kind.accelerator_count, 1)


def _pod(
    endpoint: Endpoint, placed: Placed, started: Command, weights: Weights, *, answers: bool, script: str | None
) -> dict[str, Any]:
    shared = min(max(share_gib(placed.kind, placed.accelerators_per_pod) // 2, _LEAST_SHM_GIB), _MOST_SHM_GIB)
    volumes: list[dict[str, Any]] = [
        # NCCL and the workers of a server talk through it; a container's own is 64 MiB.
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{shared}Gi"}},
        dict(weights.volume),
    ]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}, dict(weights.mount)]
    devices: dict[str, Any] = {}
    if endpoint.over_the_fabric:
        devices = {"capabilities": {"add": ["IPC_LOCK"]}}
    if endpoint.gdrcopy:
        volumes.append({"name": "gdrdrv", "hostPath": {"path": "/dev/gdrdrv", "type": "CharDevice"}})
        mounts.append({"name": "gdrdrv", "mountPath": "/dev/gdrdrv"})
    if endpoint.privileged or endpoint.gdrcopy:
        devices = {"privileged": True}
    container: dict[str, Any] = {
        "name": "server",
        "image": endpoint.image,
        "args": list(started.args if answers else started.worker_args),
        "env": _environment(endpoint, placed, started),
        "resources": resources(endpoint, placed.kind, placed.accelerators_per_pod, efa_of(placed)),
        "volumeMounts": mounts,
    }
    if started.command:
        container["command"] = list(started.command)
    if devices:
        container["securityContext"] = devices
    if answers:
        container |= _answering(endpoint)
    spec: dict[str, Any] = {
        "serviceAccountName": endpoint.name,
        "automountServiceAccountToken": False,
        # A service of that name would say VLLM_PORT=tcp://…, with which vLLM does not start.
        "enableServiceLinks": False,
        "nodeSelector": {GROUP_LABEL: placed.group_name},
        "tolerations": [{"key": _resource(placed.kind), "operator": "Exists", "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "containers": [container],
        "volumes": volumes,
    }
    annotations: dict[str, str] = {}
    if placed.half == "prefill" and endpoint.server is Server.SGLANG:
        annotations["sglang.ai/bootstrap-port"] = str(BOOTSTRAP_PORT)  # the router asks for it
    if weights.checked and script is not None:
        spec["initContainers"] = [check_container(endpoint, weights.path, [dict(weights.mount)])]
        volumes.append(script_volume(endpoint))
        annotations["fmblocks/check"] = script
    metadata: dict[str, Any] = {"labels": labels(endpoint, placed, answers=answers)}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": spec}


def check_container(endpoint: Endpoint, path: str, mounts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compares the weights with their manifest before the server loads them."""
    return {
        "name": "check-model",
        "image": endpoint.image,
        "command": ["python3", "/fmblocks/verify_model.py", path],
        "volumeMounts": [*mounts, {"name": "check", "mountPath": "/fmblocks", "readOnly": True}],
    }


def script_volume(endpoint: Endpoint) -> dict[str, Any]:
    """The check, where its container finds it."""
    return {"name": "check", "configMap": {"name": script_name(endpoint)}}


def script_name(endpoint: Endpoint) -> str:
    """Of the ConfigMap with the check."""
    return f"{endpoint.name}-check"


def _resource(kind: InstanceType) -> str:
    return TAINTS[kind.accelerator_vendor or "nvidia"]


def _environment(endpoint: Endpoint, placed: Placed, started: Command) -> list[dict[str, Any]]:
    told: dict[str, str] = dict(started.environment)
    if endpoint.over_the_fabric or placed.accelerators_per_pod > 1:
        told = {**launch_profile(placed.kind), **told}
    found: list[dict[str, Any]] = []
    if endpoint.server is Server.VLLM:
        # Else servers tell each other localhost.
        own = {"fieldRef": {"fieldPath": "status.podIP"}}
        names = ["VLLM_HOST_IP", *(["VLLM_NIXL_SIDE_CHANNEL_HOST"] if placed.half else [])]
        found += [{"name": name, "valueFrom": own} for name in names if name not in endpoint.environment]
    told |= endpoint.environment
    return [*found, *({"name": name, "value": value} for name, value in sorted(told.items()))]


def _answering(endpoint: Endpoint) -> dict[str, Any]:
    asked = {"httpGet": {"path": endpoint.health_path, "port": endpoint.listens_on}}
    return {
        "ports": [{"name": METRICS_PORT, "containerPort": endpoint.listens_on}],
        # The port opens once the weights are loaded; a pod that is asked for its life before would be killed for ever.
        "startupProbe": {
            **asked,
            "periodSeconds": _PERIOD,
            "timeoutSeconds": 5,
            "failureThreshold": -(-endpoint.start_seconds // _PERIOD),
        },
        "readinessProbe": {**asked, "periodSeconds": _PERIOD, "timeoutSeconds": 5, "failureThreshold": 3},
        # A full queue answers late.
        "livenessProbe": {**asked, "periodSeconds": 30, "timeoutSeconds": 30, "failureThreshold": 6},
        # Load balancers hear that it goes before it does.
        "lifecycle": {"preStop": {"sleep": {"seconds": _DRAIN_SECONDS}}},
    }


def disruption_budget(endpoint: Endpoint, placed: Placed, *, namespace: str) -> dict[str, Any]:
    """Nodes are drained one replica at a time."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": placed.name, "namespace": namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels(endpoint, placed, answers=False)}},
    }


def service(
    endpoint: Endpoint, *, namespace: str, routed: bool, source_ranges: Sequence[str], certificate: str | None
) -> dict[str, Any]:
    """Where clients call: port 80, and 443 with a certificate.

    Args:
        endpoint: what is served.
        namespace: of the service.
        routed: whether a router stands before the replicas.
        source_ranges: who may call a load balancer; empty for no load balancer.
        certificate: the ARN of its certificate.
    """
    port = ROUTER_PORT if routed else endpoint.listens_on
    spec: dict[str, Any] = {
        "selector": {ROUTER_LABEL: endpoint.name} if routed else selector(endpoint, ""),
        "ports": [{"name": "http", "port": 443 if certificate else 80, "targetPort": port, "protocol": "TCP"}],
        "type": "ClusterIP",
    }
    metadata: dict[str, Any] = {"name": endpoint.name, "namespace": namespace}
    if source_ranges:
        # By the controller that is part of EKS: cloud-provider-aws, service_controller.md.
        prefix = "service.beta.kubernetes.io/aws-load-balancer"
        told = {f"{prefix}-type": "nlb", f"{prefix}-internal": "true"}
        if certificate is not None:
            told |= {f"{prefix}-ssl-cert": certificate, f"{prefix}-ssl-ports": "443"}
            told[f"{prefix}-backend-protocol"] = "tcp"
        metadata["annotations"] = told
        spec |= {"type": "LoadBalancer", "loadBalancerSourceRanges": list(source_ranges)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


ROUTER_LABEL = "fmblocks/router-of"


def router(endpoint: Endpoint, started: Command, *, image: str, namespace: str) -> list[dict[str, Any]]:
    """The router of an endpoint, which finds pods by their labels."""
    name = f"{endpoint.name}-router"
    here = {"name": name, "namespace": namespace}
    told = {ROUTER_LABEL: endpoint.name}
    rbac = "rbac.authorization.k8s.io"
    container = {
        "name": "router",
        "image": image,
        "command": list(started.command),
        "args": list(started.args),
        "ports": [{"name": "http", "containerPort": ROUTER_PORT}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": ROUTER_PORT}, "periodSeconds": _PERIOD},
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "4Gi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "Role",
            "metadata": here,
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": here,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", **here}],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**here, "labels": told},
            "spec": {
                # What it knows of the replicas' caches it knows alone.
                "replicas": 1,
                "selector": {"matchLabels": told},
                "template": {
                    "metadata": {"labels": told},
                    "spec": {
                        "serviceAccountName": name,
                        "enableServiceLinks": False,
                        "nodeSelector": {ROLE_LABEL: NodeRole.SYSTEM.value},
                        "containers": [container],
                    },
                },
            },
        },
    ]


_METRICS = {
    Server.VLLM: {
        ScalingMetric.WAITING_REQUESTS: "vllm:num_requests_waiting",
        ScalingMetric.RUNNING_REQUESTS: "vllm:num_requests_running",
        ScalingMetric.KV_CACHE_USAGE: "vllm:kv_cache_usage_perc",
    },
    Server.SGLANG: {
        ScalingMetric.WAITING_REQUESTS: "sglang:num_queue_reqs",
        ScalingMetric.RUNNING_REQUESTS: "sglang:num_running_reqs",
        ScalingMetric.KV_CACHE_USAGE: "sglang:token_usage",
    },
}


def scaling_query(server: Server, scaling: Autoscaling, matchers: Mapping[str, str]) -> str:
    """PromQL with one number as its answer, and none while nobody exports the metric."""
    if scaling.query is not None:
        return scaling.query
    name = _METRICS[server][scaling.metric]
    among = ",".join(f'{label}="{value}"' for label, value in matchers.items())
    return f"{'avg' if scaling.metric.ratio else 'sum'}({name}{{{among}}})"


def scaled_object(
    endpoint: Endpoint,
    placed: Placed,
    *,
    namespace: str,
    cluster: str,
    server_address: str,
    region: str,
    authentication: str,
) -> dict[str, Any]:
    """What changes the number of replicas.

    Args:
        endpoint: what is served.
        placed: the replicas.
        namespace: of the objects.
        cluster: the value of the label that the collector writes.
        server_address: of the metrics workspace, without a slash at its end.
        region: of the workspace.
        authentication: the name of the ClusterTriggerAuthentication.
    """
    scaling = placed.role.autoscaling
    assert scaling is not None
    matchers = {"cluster": cluster, "endpoint": endpoint.name}
    if placed.half:
        matchers["endpoint_role"] = placed.half
    version, kind = (_LWS, "LeaderWorkerSet") if placed.nodes > 1 else ("apps/v1", "Deployment")
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": placed.name, "namespace": namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": placed.name},
            "minReplicaCount": placed.role.replicas.min,
            "maxReplicaCount": placed.role.replicas.max,
            "cooldownPeriod": scaling.scale_down_seconds,  # of the last replica
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "behavior": {"scaleDown": {"stabilizationWindowSeconds": scaling.scale_down_seconds}}
                }
            },
            "triggers": [
                {
                    "type": "prometheus",
                    # A sum is shared among the replicas; a share of a cache is not.
                    "metricType": "Value" if scaling.metric.ratio else "AverageValue",
                    "authenticationRef": {"name": authentication, "kind": "ClusterTriggerAuthentication"},
                    "metadata": {
                        "serverAddress": server_address,
                        "awsRegion": region,
                        "query": scaling_query(endpoint.server, scaling, matchers),
                        "threshold": f"{scaling.target:g}",
                        # A collector that is down would look like nothing to do, and busy replicas would go.
                        "ignoreNullValues": "false",
                    },
                }
            ],
        },
    }
