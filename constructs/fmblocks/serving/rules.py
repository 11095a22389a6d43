"""What is refused about serving."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from fmblocks.catalog import InstanceType, Types
from fmblocks.cluster.node_group import INodeGroup
from fmblocks.cluster.settings import HyperPodAddOn, Kubernetes, Orchestrator
from fmblocks.findings import Violation, rule
from fmblocks.serving.figures import figures, hbm_gib, weights_gib
from fmblocks.serving.settings import (
    Autoscaling,
    Endpoint,
    KvCacheTier,
    Model,
    Replicas,
    Role,
    Routing,
    ScalingMetric,
    Server,
    ServingCluster,
    Tls,
)
from fmblocks.storage.rules import bucket_name_fault


@rule("FMB-117")
def inference_cluster(
    *, cluster: ServingCluster, orchestrator: Orchestrator, given: Collection[str], training: Orchestrator | None
) -> Iterator[Violation]:
    """Endpoints run on Kubernetes: on a cluster of their own, or on that of training, which is described there."""
    if cluster is ServingCluster.OWN:
        if not orchestrator.kubernetes:
            text = f"{orchestrator} runs no endpoints"
            yield Violation("orchestrator", text, "use eks or hyperpod-eks")
        return
    if training is None or not training.kubernetes:
        text = f"training, but training.orchestrator is {training}" if training else "training, which is not given"
        yield Violation("cluster", text, "write cluster: own, or train on eks or hyperpod-eks")
    for key in sorted(set(given) - {"cluster", "endpoints"}):
        text = "is not read with cluster: training"
        yield Violation(key, text, f"leave it out: write training: {{{key}: …}}")


@rule("FMB-144")
def something_is_served(*, endpoints: Sequence[Endpoint]) -> Iterator[Violation]:
    """A cluster for endpoints has some."""
    if not endpoints:
        yield Violation(
            "endpoints", "is empty: what is made serves nothing, and bills", "add one, or leave inference out"
        )


@rule("FMB-118")
def group_names(*, training_groups: Collection[str], inference_groups: Sequence[str]) -> Iterator[Violation]:
    """Groups of a project have names of their own: capacity and launch profiles go by them."""
    for index, name in enumerate(inference_groups):
        if name in training_groups:
            text = f"{name} is a group of training too"
            yield Violation(f"inference.node_groups[{index}].name", text, "give each a name of its own")


# Objects that every namespace, or every cluster, has.
_TAKEN = frozenset({"default", "kubernetes"})
# What an endpoint's objects are called after its name.
_PARTS = r"router|check|(server|prefill|decode)(-group)?"


@rule("FMB-119")
def endpoint_names(*, endpoints: Sequence[Endpoint]) -> Iterator[Violation]:
    """Endpoints have names of their own."""
    names = [one.name for one in endpoints]
    for index, name in enumerate(names):
        if names.index(name) != index:
            yield Violation(f"endpoints[{index}].name", f"{name} is named twice", "give each a name of its own")
        if name in _TAKEN:
            yield Violation(f"endpoints[{index}].name", f"{name} is a name of Kubernetes' own", "give it another one")
        for other in names:
            if name.startswith(f"{other}-") and re.fullmatch(_PARTS, name.removeprefix(f"{other}-")):
                text = f"{name} is also what a part of {other} is called"
                yield Violation(f"endpoints[{index}].name", text, "give it another one")


def group_of(role: Role, nodes: Sequence[INodeGroup], types: Types) -> INodeGroup | None:
    """The nodes of a role: those it names, or the only ones with accelerators. None where that is no single group."""
    if role.node_group is not None:
        return next((one for one in nodes if one.group_name == role.node_group), None)
    found = [one for one in nodes if (kind := types.get(one.instance_type)) and kind.accelerator_count]
    return found[0] if len(found) == 1 else None


def _where(name: str, key: str, endpoint: Endpoint) -> str:
    """A key of a half, or the endpoint's where the half leaves it to that."""
    half = getattr(endpoint.prefill_decode, name) if name else None
    return f"prefill_decode.{name}.{key}" if half is not None and key in half.model_fields_set else key


def _roles(
    endpoint: Endpoint, nodes: Sequence[INodeGroup], types: Types
) -> Iterator[tuple[str, Role, INodeGroup, InstanceType]]:
    """The halves whose nodes are known, each with its type."""
    for name, role in endpoint.roles().items():
        if (group := group_of(role, nodes, types)) is not None and group.instance_type in types:
            yield name, role, group, types[group.instance_type]


@rule("FMB-120")
def accelerators_of_a_replica(*, endpoint: Endpoint, nodes: Sequence[INodeGroup], types: Types) -> Iterator[Violation]:
    """A replica takes accelerators that its nodes have, as many on each node, in whole pipeline stages."""
    for name, role in endpoint.roles().items():
        group = group_of(role, nodes, types)
        if group is None:
            known = ", ".join(sorted({one.group_name for one in nodes})) or "none"
            key = _where(name, "node_group", endpoint)
            if role.node_group is not None:
                text = f"{role.node_group} is no group that endpoints run on"
                yield Violation(key, text, f"known here: {known}")
            elif all(one.instance_type in types for one in nodes):  # else FMB-09 says what is wrong
                several = any(types[one.instance_type].accelerator_count for one in nodes)
                text = "is required: several groups have accelerators" if several else "no group has accelerators"
                yield Violation(key, text, f"known here: {known}" if several else "add one that has some")
            continue
        kind = types.get(group.instance_type)
        if kind is None:
            continue  # FMB-09
        key, number = _where(name, "accelerators_per_replica", endpoint), role.accelerators_per_replica or 0
        if not kind.accelerator_count:
            text = f"{group.group_name} is of {kind.name}, which has no accelerators"
            yield Violation(_where(name, "node_group", endpoint), text, "name a group that has some")
            continue
        spread = role.nodes_per_replica or 1
        if number % spread:
            text = f"{number} cannot be shared among {spread} nodes"
            yield Violation(key, text, f"write {spread} times those of a node")
        elif (each := number // spread) > kind.accelerator_count:
            text = f"{number} on {spread} node{'s' if spread > 1 else ''}, and {kind.name} has {kind.accelerator_count}"
            yield Violation(key, text, "write fewer, or more nodes_per_replica")
        elif spread > 1 and each != kind.accelerator_count:
            text = f"{number} on {spread} nodes leaves accelerators of {kind.name} over"
            yield Violation(key, text, f"write {spread * kind.accelerator_count}")
        if kind.accelerator_vendor != "nvidia" and endpoint.server is not Server.OWN:
            text = f"{endpoint.server}, whose command line is written for NVIDIA's, and {kind.name} has others"
            yield Violation("server", text, "write server: own, and args")
    width = endpoint.tensor_parallel_size
    for whole in sorted({role.accelerators_per_replica or 0 for role in endpoint.roles().values()}):
        if width is not None and whole % width:
            text = f"{width} does not divide the {whole} accelerators of a replica"
            yield Violation("tensor_parallel_size", text, "write one that does, or leave it out")


# An alias is none: policies name keys.
_KEY = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+"


@rule("FMB-121")
def model_source(*, model: Model, model_store_given: bool, lustre_given: bool) -> Iterator[Violation]:
    """Weights come from one place, which is there."""
    given = [name for name in ("store", "path", "bucket") if getattr(model, name) is not None]
    if len(given) != 1:
        text = f"takes one of store, path and bucket, not {' and '.join(given) or 'none'}"
        yield Violation("model", text, "say where the weights are")
    if model.store is not None and not model_store_given:
        text = f"{model.store}, and the project has no model store"
        yield Violation("model.store", text, "write storage: {model_store: {}}")
    if model.path is not None and not lustre_given:
        text = f"{model.path}, and the project has no Lustre file system"
        yield Violation("model.path", text, "write storage: {lustre: …}, or use store or bucket")
    if model.path is not None and (not model.path.startswith("/") or ".." in model.path.split("/")):
        text = f"{model.path} is no folder of the file system: Kubernetes mounts no path with .. in it"
        yield Violation("model.path", text, "write it from the root on, like /checkpoints/run-7/export")
    for key in ("prefix", "kms_key_arn"):
        if getattr(model, key) and model.bucket is None:
            yield Violation(f"model.{key}", "is not read without bucket", "leave it out")
    if model.bucket is not None and (wrong := bucket_name_fault(model.bucket)):
        yield Violation("model.bucket", f"{model.bucket} {wrong}", "it looks like my-models")
    if model.kms_key_arn is not None and model.bucket is not None and not re.fullmatch(_KEY, model.kms_key_arn):
        hint = "it looks like arn:aws:kms:<region>:<account>:key/<id>"
        yield Violation("model.kms_key_arn", f"{model.kms_key_arn} is not the ARN of a key", hint)
    if (shape := model.kv_cache) is not None:
        heads = [name for name in ("kv_heads", "head_dim") if getattr(shape, name) is not None]
        if (shape.latent_dim is None) == (not heads) or len(heads) == 1:
            text = "takes kv_heads and head_dim, or latent_dim"
            yield Violation("model.kv_cache", text, "take them from the model's config.json")


@rule("FMB-122")
def fabric(
    *, endpoint: Endpoint, nodes: Sequence[INodeGroup], zones: Mapping[str, str], types: Types
) -> Iterator[Violation]:
    """Nodes that work on one request talk over EFA, which stays in a zone."""
    if not endpoint.over_the_fabric:
        return
    key = "prefill_decode" if endpoint.prefill_decode is not None else "nodes_per_replica"
    found = {name: group for name, _, group, _ in _roles(endpoint, nodes, types)}
    for group in {group.group_name: group for group in found.values()}.values():
        if not group.efa_interfaces:
            text = f"the nodes of {group.group_name}, {group.instance_type}, have no EFA: they would talk over TCP"
            yield Violation(key, text, "use a type with EFA, without efa: none")
    where = sorted({zones[group.group_name] for group in found.values() if group.group_name in zones})
    if len(where) > 1:
        text = f"the halves stand in {' and '.join(where)}, and EFA traffic does not leave its zone"
        yield Violation(key, text, "name groups of one availability_zone")


@rule("FMB-123")
def kv_cache_tiers(
    *,
    endpoint: Endpoint,
    orchestrator: Orchestrator,
    tiered_storage_on: bool,
    nodes: Sequence[INodeGroup],
    types: Types,
) -> Iterator[Violation]:
    """A tier below the accelerators is there, and the server knows it."""
    tiers = endpoint.kv_cache_tiers
    if len(set(tiers)) != len(tiers):
        yield Violation("kv_cache_tiers", f"{', '.join(tiers)} names a tier twice", "name each once")
    if {KvCacheTier.TIERED_STORAGE, KvCacheTier.REDIS} <= set(tiers):
        yield Violation("kv_cache_tiers", "tiered_storage and redis are both the second tier", "take one")
    if KvCacheTier.TIERED_STORAGE in tiers and not tiered_storage_on:
        if orchestrator.hyperpod:
            text = "tiered_storage, which the cluster has not switched on"
            yield Violation("kv_cache_tiers", text, "write tiered_storage: {} for the cluster")
        else:
            text = f"tiered_storage is HyperPod's, and the orchestrator is {orchestrator}"
            yield Violation("kv_cache_tiers", text, "use hyperpod-eks, or leave it out")
    if (KvCacheTier.REDIS in tiers) != (endpoint.kv_cache_redis_url is not None):
        text = "is required with tier redis" if KvCacheTier.REDIS in tiers else "is not read without tier redis"
        yield Violation(
            "kv_cache_redis_url", text, "write redis://host:port" if KvCacheTier.REDIS in tiers else "leave it out"
        )
    if tiers and endpoint.server is not Server.VLLM and (orchestrator.hyperpod or endpoint.server is Server.OWN):
        text = f"{', '.join(tiers)}, which is for containers of vLLM here, and the server is {endpoint.server}"
        yield Violation("kv_cache_tiers", text, "leave it out, or write server: vllm")
    if not orchestrator.hyperpod and KvCacheTier.REDIS in tiers:
        text = "redis is set up by HyperPod's operator only"
        yield Violation("kv_cache_tiers", text, "use hyperpod-eks, or tier cpu")
    wants = KvCacheTier.CPU in tiers and not orchestrator.hyperpod
    if wants and endpoint.kv_cache_cpu_gib is None:
        yield Violation("kv_cache_cpu_gib", "is required with tier cpu on eks", "write GiB of each node's memory")
    asked = endpoint.kv_cache_cpu_gib or 0
    for _, role, _, kind in _roles(endpoint, nodes, types) if wants else ():
        accelerators = (role.accelerators_per_replica or 0) // (role.nodes_per_replica or 1)
        whole = (kind.memory_gib or 0) * accelerators // max(kind.accelerator_count, 1)
        # The server itself asks for half; the kubelet, the kernel and huge pages have the rest.
        if whole and asked > (most := whole * 3 // 8):
            text = f"{asked} of the {whole:,} GiB that go with {accelerators} accelerators of {kind.name}"
            yield Violation("kv_cache_cpu_gib", f"{text}; {most} is the most", "write less")
    if wants and endpoint.prefill_decode is not None and endpoint.server is Server.VLLM:
        text = "cpu, which takes the place of what carries keys and values from prefill to decode in vLLM"
        yield Violation("kv_cache_tiers", text, "use sglang, or leave one of the two out")
    if not wants and endpoint.kv_cache_cpu_gib is not None:
        yield Violation("kv_cache_cpu_gib", "is read with tier cpu on eks only", "leave it out")


@rule("FMB-124")
def weights_fit(*, endpoint: Endpoint, nodes: Sequence[INodeGroup], types: Types) -> Iterator[Violation]:
    """The accelerators of a replica hold the weights, and have room for a KV cache."""
    weights = weights_gib(endpoint.model)
    for name, role, _, kind in _roles(endpoint, nodes, types):
        number = role.accelerators_per_replica or 0
        memory, share = hbm_gib(kind, number), endpoint.memory_share or 1.0
        if weights is None or memory is None or weights < memory * share:
            continue
        key = _where(name, "accelerators_per_replica", endpoint)
        told = f"{share:.0%} of {memory:,.0f} GiB" if share < 1 else f"{memory:,.0f} GiB"
        text = (
            f"{number} × {kind.accelerator_model or kind.name} hold {told}, and the weights are {weights:,.0f} GiB"
            f" at {endpoint.model.precision}"
        )
        hint = "take more accelerators, or a smaller precision"
        if weights < memory:
            hint = "raise accelerator_memory_share, or take more accelerators"
        elif weights > memory * _FAR_TOO_MUCH:
            key, hint = "model.parameters_billion", "write billions: 70.6 for a model of 70.6 billion"
        yield Violation(key, text, hint)


# No model is larger than its accelerators by this; a number of parameters that is not in billions is.
_FAR_TOO_MUCH = 1000


@rule("FMB-138")
def weights_are_known_to_fit(*, endpoint: Endpoint, nodes: Sequence[INodeGroup], types: Types) -> Iterator[Violation]:
    """Whether weights fit is said of types whose memory is known."""
    if endpoint.model.parameters_billion is None:
        return
    for name in sorted({kind.name for _, _, _, kind in _roles(endpoint, nodes, types) if hbm_gib(kind, 1) is None}):
        if not types[name].accelerator_count:
            continue  # FMB-120
        text = f"the memory of {name}'s accelerators is not known here: nobody checks that the weights fit"
        hint = f"write catalog: [{{name: {name}, hbm_gib_total: …}}], the GiB of all of them"
        yield Violation("model.parameters_billion", text, hint)


@rule("FMB-139")
def longest_request_fits(*, endpoint: Endpoint, nodes: Sequence[INodeGroup], types: Types) -> Iterator[Violation]:
    """The longest request finds room in the KV cache of a replica."""
    for name, role, _, kind in _roles(endpoint, nodes, types):
        found = figures(endpoint, kind, role.accelerators_per_replica or 0)
        if found.requests is None or found.tokens is None or not found.kv_gib or found.requests >= 1:
            continue
        text = f"{endpoint.context_tokens:,} tokens, and the KV cache{f' of {name}' if name else ''} has room for"
        hint = "write fewer, or take more accelerators; with sliding windows a model needs less than its shape says"
        yield Violation("context_tokens", f"{text} {found.tokens:,}", hint)


@rule("FMB-142")
def heads_are_shared(*, endpoint: Endpoint) -> Iterator[Violation]:
    """Tensor parallelism shares the heads of keys and values evenly, or copies them evenly."""
    shape = endpoint.model.kv_cache
    if shape is None or shape.kv_heads is None or endpoint.server is Server.OWN:
        return
    for width in sorted({endpoint.parallel(role)[0] for role in endpoint.roles().values()}):
        if width % shape.kv_heads and shape.kv_heads % width:
            key = "tensor_parallel_size" if endpoint.tensor_parallel_size else "accelerators_per_replica"
            text = f"{width} ranks cannot share the {shape.kv_heads} KV heads of the model evenly"
            yield Violation(key, text, "take a number that divides them, or write tensor_parallel_size")


@rule("FMB-125")
def autoscaling(*, endpoint: Endpoint, orchestrator: Orchestrator) -> Iterator[Violation]:
    """Replicas that come and go follow a metric that is there when none runs."""
    if endpoint.prefill_decode is not None:
        for key in ("replicas", "autoscaling"):
            if key in endpoint.model_fields_set:
                text = "is not read beside prefill_decode"
                yield Violation(key, text, f"write it below prefill_decode: {{prefill: {{{key}: …}}, decode: …}}")
    for name, role in endpoint.roles().items():
        where, scaling = f"prefill_decode.{name}." if name else "", role.autoscaling
        yield from _scaled(where, role.replicas, scaling, endpoint.server)
        if name and scaling is not None and scaling.metric is not ScalingMetric.QUERY and orchestrator.hyperpod:
            text = f"{scaling.metric} does not say of which half it is on HyperPod"
            yield Violation(f"{where}autoscaling.metric", text, "write metric: query, and query")


@rule("FMB-135")
def metrics_are_written(
    *, endpoint: Endpoint, orchestrator: Orchestrator, metrics_collected: bool
) -> Iterator[Violation]:
    """What replicas are scaled by somebody writes into the metrics workspace."""
    for name, role in endpoint.roles().items():
        if role.autoscaling is not None and not metrics_collected:
            hint = "write observability: {collector: agents}"
            if orchestrator.hyperpod:
                hint = "add observability to the cluster's kubernetes.hyperpod_add_ons"
            text = f"{role.autoscaling.metric} is read from the metrics workspace, and nobody writes it there"
            yield Violation(f"{f'prefill_decode.{name}.' if name else ''}autoscaling", text, hint)


def _scaled(where: str, replicas: Replicas, scaling: Autoscaling | None, server: Server) -> Iterator[Violation]:
    if replicas.min > replicas.max:
        yield Violation(f"{where}replicas", f"min {replicas.min} is more than max {replicas.max}", "swap them")
    if scaling is None:
        if replicas.min < replicas.max:
            text = f"{replicas.min} to {replicas.max}, and nothing says when"
            yield Violation(f"{where}replicas", text, "write autoscaling: {metric, target}, or one number")
        elif not replicas.min:
            yield Violation(f"{where}replicas", "0 would never answer", "write 1 or more, or leave the endpoint out")
        return
    if replicas.min >= replicas.max:
        text = f"from {replicas.min} to {replicas.max} there is nothing to scale"
        yield Violation(f"{where}replicas", text, "write min below max, or leave autoscaling out")
    if (scaling.metric is ScalingMetric.QUERY) != (scaling.query is not None):
        text = "is required with metric query" if scaling.query is None else "is read with metric query only"
        yield Violation(f"{where}autoscaling.query", text, "write PromQL" if scaling.query is None else "leave it out")
    if scaling.metric is not ScalingMetric.QUERY and server is Server.OWN:
        text = f"{scaling.metric} is a metric of vLLM and SGLang"
        yield Violation(f"{where}autoscaling.metric", text, "write metric: query, and query")
    if scaling.metric.ratio and not scaling.target <= 1:
        text = f"{scaling.target:g} is more than 1, which is a full cache"
        yield Violation(f"{where}autoscaling.target", text, "write a share like 0.8")
    if not replicas.min and scaling.metric is not ScalingMetric.QUERY:
        text = f"0, and without a replica there is no {scaling.metric}: the first would never start"
        yield Violation(
            f"{where}replicas.min", text, "write 1, or metric: query with one that is there without replicas"
        )


# API: InferenceEndpointConfig, metrics.modelMetrics.port.
_LEAST_PORT = 1024
# Clients of the router that looks into the cache of each replica. Source: rule FMB-126.
_KV_AWARE_PATH = r"/?(v1/)?completions"


@rule("FMB-126")
def built_by_the_orchestrator(*, endpoint: Endpoint, orchestrator: Orchestrator) -> Iterator[Violation]:
    """What HyperPod's operator does plain Kubernetes does not here, and the other way about."""
    given = endpoint.model_fields_set
    routed = endpoint.routing is not None or endpoint.prefill_decode is not None
    if not orchestrator.hyperpod:
        yield from _routed_on_eks(endpoint, routed=routed)
        if "invocation_path" in given:
            yield Violation("invocation_path", "is read on hyperpod-eks only", "leave it out")
        if endpoint.tls is not None and not endpoint.load_balancer:
            yield Violation("tls", "is not read without load_balancer", "write load_balancer: true")
        return
    for name, role in endpoint.roles().items():
        if (role.nodes_per_replica or 1) > 1:
            text = f"{role.nodes_per_replica}, and a replica of HyperPod's operator stays on one node"
            yield Violation(_where(name, "nodes_per_replica", endpoint), text, "use orchestrator eks")
    for key in ("router_image", "gdrcopy", "privileged"):
        if key in given:
            yield Violation(key, "is read on eks only: HyperPod's operator sets its pods up itself", "leave it out")
    if "load_balancer" in given:
        yield Violation("load_balancer", "HyperPod's operator makes one for each endpoint", "leave it out")
    if endpoint.listens_on < _LEAST_PORT:
        text = f"{endpoint.listens_on} is below {_LEAST_PORT}, from which on the operator reads metrics"
        yield Violation("port", text, "let the server listen higher")
    if routed and endpoint.server is not Server.VLLM:
        key = "routing" if endpoint.routing is not None else "prefill_decode"
        text = f"is for containers of vLLM, and the server is {endpoint.server}"
        yield Violation(key, text, "leave it out, or write server: vllm")
    if endpoint.routing is Routing.KV_AWARE and not re.fullmatch(_KV_AWARE_PATH, endpoint.invocation_path):
        text = f"{endpoint.invocation_path} cannot be routed by kv_aware, which knows completions only"
        yield Violation("invocation_path", text, "write completions, or routing: prefix_aware")


_ROUTED_ON_EKS = (Routing.PREFIX_AWARE, Routing.ROUND_ROBIN)


def _routed_on_eks(endpoint: Endpoint, *, routed: bool) -> Iterator[Violation]:
    if routed and endpoint.server is Server.OWN:
        key = "routing" if endpoint.routing is not None else "prefill_decode"
        yield Violation(key, "is for vLLM and SGLang, and the server is own", "leave it out")
    if endpoint.routing is not None and endpoint.routing not in _ROUTED_ON_EKS:
        text = f"{endpoint.routing} is HyperPod's"
        yield Violation("routing", text, f"use {' or '.join(_ROUTED_ON_EKS)}, or hyperpod-eks")
    if routed != (endpoint.router_image is not None):
        text = "is required with routing and prefill_decode" if routed else "is not read without them"
        hint = f"name an image with {'sglang_router' if endpoint.server is Server.SGLANG else 'vllm-router'} in it"
        yield Violation("router_image", text, hint if routed else "leave it out, or write routing or prefill_decode")


# Source: the rule. The list moves, so this is a warning.
_SPLIT = frozenset({"p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge"})


@rule("FMB-127")
def split_types(
    *, endpoint: Endpoint, orchestrator: Orchestrator, nodes: Sequence[INodeGroup], types: Types
) -> Iterator[Violation]:
    """HyperPod splits prefill and decode on some types; EFA of p4d carries no keys and values."""
    if endpoint.prefill_decode is None:
        return
    if not orchestrator.hyperpod:
        for name in sorted({kind.name for _, _, _, kind in _roles(endpoint, nodes, types)}):
            if name.startswith(("p4d.", "p4de.")):
                text = f"the EFA of {name} has no remote writes, without which NIXL moved nothing for others"
                yield Violation("prefill_decode", text, "take p5 or later unless you have seen it work")
        return
    for name in sorted({kind.name for _, _, _, kind in _roles(endpoint, nodes, types)} - _SPLIT):
        text = f"{name} is not listed for prefill and decode: {', '.join(sorted(_SPLIT))}"
        yield Violation("prefill_decode", text, "take one of these unless you have seen it work")


def _nodes_taken(demands: Sequence[tuple[int, int, int]], each: int) -> int:
    """How many nodes of ``each`` accelerators replicas take, as (replicas, accelerators on a node, nodes)."""
    whole = sum(replicas * nodes for replicas, _, nodes in demands if nodes > 1)
    # Nodes by the accelerators that they have left.
    left: Counter[int] = Counter()
    # The largest first, on the fullest node that has room; a pod stands on one node.
    for size, count in sorted(((size, count) for count, size, nodes in demands if nodes == 1), reverse=True):
        waiting = count
        for free in (*sorted(free for free in left if free >= size), each):
            here = free // size
            if free == each:
                left[free] = -(-waiting // here)  # nodes that nobody is on
            full = min(left[free], waiting // here)
            rest = waiting - full * here if left[free] > full else 0
            left[free - here * size] += full
            left[free - rest * size] += bool(rest)
            left[free] -= full + bool(rest)
            waiting -= full * here + rest
    return whole + left.total()


def _demands(
    endpoints: Sequence[Endpoint], nodes: Sequence[INodeGroup], types: Types, *, most: bool
) -> Iterator[tuple[INodeGroup, int, list[tuple[int, int, int]], list[str]]]:
    """By group the accelerators of a node, what endpoints ask for at least or at most, and which endpoints."""
    for group in nodes:
        kind = types.get(group.instance_type)
        if kind is None or not kind.accelerator_count:
            continue
        found, names = [], set()
        for endpoint in endpoints:
            for _, role, of_role, _ in _roles(endpoint, nodes, types):
                spread = role.nodes_per_replica or 1
                size = (role.accelerators_per_replica or 0) // spread
                if of_role is group and 0 < size <= kind.accelerator_count:
                    found.append((role.replicas.max if most else role.replicas.min, size, spread))
                    names.add(endpoint.name)
        yield group, kind.accelerator_count, found, sorted(names)


def has_room(
    among: Sequence[Endpoint], nodes: Sequence[INodeGroup], types: Types, *, one_more: Endpoint | None = None
) -> bool:
    """Whether all that may run fits, and beside it one more replica of an endpoint, or of each of its halves."""
    for group, each, demands, _ in _demands(among, nodes, types, most=True):
        more = [
            (1, (role.accelerators_per_replica or 0) // (role.nodes_per_replica or 1), role.nodes_per_replica or 1)
            for _, role, of_role, _ in (_roles(one_more, nodes, types) if one_more is not None else ())
            if of_role is group
        ]
        if (more or one_more is None) and _nodes_taken([*demands, *more], each) > group.count:
            return False
    return True


def _too_many(
    endpoints: Sequence[Endpoint], names: Sequence[str], taken: int, group: INodeGroup, hint: str, *, most: bool
) -> Violation:
    key = "endpoints"
    if len(names) == 1:
        at = next(at for at, one in enumerate(endpoints) if one.name == names[0])
        key += f"[{at}].{'prefill_decode' if endpoints[at].prefill_decode else 'replicas'}"
    takes = "takes" if len(names) == 1 else "take"
    text = f"{', '.join(names)} {takes} {taken:,} node{'s' if taken > 1 else ''} of {group.group_name}"
    return Violation(key, f"{text} at {'most' if most else 'least'}, which has {group.count}", hint)


@rule("FMB-128")
def replicas_fit(*, endpoints: Sequence[Endpoint], nodes: Sequence[INodeGroup], types: Types) -> Iterator[Violation]:
    """The nodes have accelerators for the replicas that always run."""
    for group, each, demands, names in _demands(endpoints, nodes, types, most=False):
        # Fewer nodes than none are refused elsewhere.
        if 0 <= group.count < (taken := _nodes_taken(demands, each)):
            yield _too_many(endpoints, names, taken, group, "write fewer replicas, or more nodes", most=False)


@rule("FMB-129")
def most_replicas_fit(
    *, endpoints: Sequence[Endpoint], nodes: Sequence[INodeGroup], types: Types
) -> Iterator[Violation]:
    """Replicas that scaling adds find nodes, too."""
    least = {group.group_name: demands for group, _, demands, _ in _demands(endpoints, nodes, types, most=False)}
    for group, each, demands, names in _demands(endpoints, nodes, types, most=True):
        taken = _nodes_taken(demands, each)
        if _nodes_taken(least[group.group_name], each) <= group.count < taken:
            yield _too_many(endpoints, names, taken, group, "lower replicas.max, or raise the count", most=True)


@rule("FMB-130")
def no_governance(*, cluster: ServingCluster, kubernetes: Kubernetes | None) -> Iterator[Violation]:
    """Teams share the training cluster; on one of endpoints nobody asks for quotas."""
    wanted = kubernetes.hyperpod_add_ons if kubernetes is not None else ()
    if cluster is ServingCluster.OWN and HyperPodAddOn.TASK_GOVERNANCE in wanted:
        text = "task_governance is for teams, which share the cluster of training"
        yield Violation("kubernetes.hyperpod_add_ons", text, "leave it out, or write cluster: training")


@rule("FMB-131")
def image_stays(*, image: str) -> Iterator[Violation]:
    """An image that changes under its name changes what runs with the next pod."""
    name = image.rsplit("/", 1)[-1]
    if "@sha256:" not in image and (":" not in name or name.endswith(":latest")):
        yield Violation("image", f"{image} changes under its name", "name a digest, or a tag that stays")


_CERTIFICATE = r"arn:aws[a-z-]*:acm:(?P<region>[a-z0-9-]+):(?P<account>[0-9]{12}):certificate/[a-fA-F0-9-]+"
_DOMAIN = r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+"


@rule("FMB-132")
def certificate(
    *, tls: Tls | None, orchestrator: Orchestrator, region: str | None, account: str | None
) -> Iterator[Violation]:
    """A certificate is one of ACM, of the Region; HyperPod wants to know for which name."""
    if tls is None:
        return
    found = re.fullmatch(_CERTIFICATE, tls.certificate_arn)
    if found is None:
        hint = "it looks like arn:aws:acm:<region>:<account>:certificate/<id>"
        yield Violation("tls.certificate_arn", f"{tls.certificate_arn} is not the ARN of a certificate", hint)
    elif orchestrator.hyperpod and not tls.certificate_arn.startswith("arn:aws:"):
        text = f"{tls.certificate_arn} is of a partition that HyperPod's operator does not take"
        yield Violation("tls.certificate_arn", text, "leave tls out: the operator makes a certificate")
    elif region is not None and found["region"] != region:
        text = f"the certificate is of {found['region']}, the load balancer of {region}"
        yield Violation("tls.certificate_arn", text, "use one of the same Region")
    elif account is not None and found["account"] != account:
        text = f"the certificate is of account {found['account']}, the load balancer of {account}"
        yield Violation("tls.certificate_arn", text, "use one of the same account")
    if orchestrator.hyperpod and tls.domain_name is None:
        yield Violation("tls.domain_name", "is required by HyperPod", "write the name that the certificate is for")
    if tls.domain_name is not None and not orchestrator.hyperpod:
        text = "is read by HyperPod only"
        yield Violation("tls.domain_name", text, "leave it out, and point the name at the load balancer yourself")
    elif tls.domain_name is not None and not re.fullmatch(_DOMAIN, tls.domain_name):
        text = f"{tls.domain_name} is no name of a host"
        yield Violation("tls.domain_name", text, "write one like models.example.com, without *")
    if tls.hosted_zone_id is not None:
        if not re.fullmatch(r"Z[A-Z0-9]+", tls.hosted_zone_id):
            text = f"{tls.hosted_zone_id} is not the id of a hosted zone"
            yield Violation("tls.hosted_zone_id", text, "it looks like Z0123456789ABCDEF")
        if not orchestrator.hyperpod:
            text = "is read by HyperPod only"
            yield Violation(
                "tls.hosted_zone_id", text, "leave it out, and point the name at the load balancer yourself"
            )


@rule("FMB-145")
def callers(*, source_ranges: Sequence[str], load_balancer: bool, orchestrator: Orchestrator) -> Iterator[Violation]:
    """Who may call a load balancer of ours is said in ranges of IPv4 addresses."""
    if source_ranges and (orchestrator.hyperpod or not load_balancer):
        text = "is read on eks, with load_balancer: true"
        yield Violation("source_ranges", text, "leave it out")
    for index, value in enumerate(source_ranges):
        try:
            ipaddress.IPv4Network(value)
        except ValueError:
            yield Violation(f"source_ranges[{index}]", f"{value} is no range", "it looks like 10.0.0.0/8")


_VARIABLE = r"[-._a-zA-Z][-._a-zA-Z0-9]*"


@rule("FMB-136")
def variables(*, environment: Mapping[str, str]) -> Iterator[Violation]:
    """Variables have names that Kubernetes takes."""
    for name in environment:
        if not re.fullmatch(_VARIABLE, name):
            yield Violation(f"environment.{name}", f"{name} is no name of a variable", "letters, digits and _")


# What distribution/reference takes: a registry, a path of small letters, a tag, a digest.
_IMAGE = (
    r"([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
    r"(:\w[\w.-]{0,127})?(@[A-Za-z0-9]+:[0-9a-fA-F]{32,})?"
)


@rule("FMB-141")
def image_is_one(*, image: str, router_image: str | None) -> Iterator[Violation]:
    """Images have names that a node can pull."""
    for key, value in (("image", image), ("router_image", router_image)):
        if value is not None and not re.fullmatch(_IMAGE, value):
            yield Violation(key, f"{value} is no name of an image", "it looks like registry/path/name:tag")


_PARALLEL = "accelerators_per_replica, nodes_per_replica and tensor_parallel_size"
# By the setting that says the same, with which services, probes, labels and figures go.
_FLAGS = {
    "port": ("port",),
    "name": ("served-model-name",),
    "model": ("model", "model-path"),
    "context_tokens": ("max-model-len", "context-length"),
    "accelerator_memory_share": ("gpu-memory-utilization", "mem-fraction-static"),
    _PARALLEL: ("tensor-parallel-size", "tp", "tp-size", "pipeline-parallel-size", "pp", "pp-size", "nnodes"),
}
_SETTING_OF = {flag: key for key, flags in _FLAGS.items() for flag in flags}


@rule("FMB-140")
def flags_of_ours(*, endpoint: Endpoint) -> Iterator[Violation]:
    """What a setting says no flag says otherwise: services, probes and figures go by the setting."""
    if endpoint.server is Server.OWN:
        return
    halves = endpoint.prefill_decode
    given = {"args": endpoint.args}
    if halves is not None:
        given |= {f"prefill_decode.{name}.args": getattr(halves, name).args for name in ("prefill", "decode")}
    for where, args in given.items():
        for index, word in enumerate(args):
            found = re.fullmatch(r"--?([a-z][a-z_-]*)(=.*)?", word)
            if found and (key := _SETTING_OF.get(found[1].replace("_", "-"))):
                yield Violation(f"{where}[{index}]", f"{word} is written by fmblocks", f"leave it out, and write {key}")


# Over all endpoints of a cluster.
ENDPOINTS = ("FMB-119", "FMB-128", "FMB-129")
# Of one.
ENDPOINT = (
    "FMB-120",
    "FMB-121",
    "FMB-122",
    "FMB-123",
    "FMB-124",
    "FMB-125",
    "FMB-126",
    "FMB-127",
    "FMB-131",
    "FMB-132",
    "FMB-135",
    "FMB-136",
    "FMB-138",
    "FMB-139",
    "FMB-140",
    "FMB-141",
    "FMB-142",
    "FMB-145",
)
INFERENCE = ("FMB-117", "FMB-130", "FMB-144")
