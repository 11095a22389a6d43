"""The command lines of servers and routers, from what an endpoint says.

Sources: vLLM 0.33.0 (``vllm/engine/arg_utils.py``, *Parallelism and Scaling*, *NixlConnector usage*), SGLang 0.5.23
(``sglang/srt/arg_groups``), vllm-router 0.1.17 and sglang-router 0.3.2 (their command lines), LeaderWorkerSet
(``LWS_LEADER_ADDRESS``, ``LWS_WORKER_INDEX``). Flags of the user come last: the last one counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fmblocks.serving.settings import Endpoint, KvCacheTier, Role, Routing, Server

# Where each pod of a group finds the first one; what a container's own environment does not have stays as it is.
_LEADER, _RANK = "$(LWS_LEADER_ADDRESS)", "$(LWS_WORKER_INDEX)"
_SGLANG_RENDEZVOUS = 20000
BOOTSTRAP_PORT = 8998
ROUTER_PORT = 8080
_POLICIES = {Routing.PREFIX_AWARE: "cache_aware", Routing.ROUND_ROBIN: "round_robin"}


@dataclass(frozen=True, slots=True)
class Command:
    """What containers are started with.

    Attributes:
        command: instead of the image's entry point; empty: the image's own.
        args: of the pod that answers.
        worker_args: of the other pods of a replica over several nodes.
        environment: that the flags rely on.
    """

    command: tuple[str, ...]
    args: tuple[str, ...]
    worker_args: tuple[str, ...]
    environment: Mapping[str, str]


def command(endpoint: Endpoint, name: str, role: Role, *, model_path: str) -> Command:
    """How a pod on Kubernetes starts the server.

    Args:
        endpoint: what is served.
        name: ``prefill``, ``decode``, or empty.
        role: with its accelerators and nodes.
        model_path: where the weights lie in the container.
    """
    extra = (*endpoint.args, *role.args)
    if endpoint.server is Server.OWN:
        return Command((), extra, extra, {})
    if endpoint.server is Server.SGLANG:
        return _sglang(endpoint, name, role, model_path, extra)
    width, stages = endpoint.parallel(role)
    args = [*_vllm(endpoint, width, stages)]
    if KvCacheTier.CPU in endpoint.kv_cache_tiers:
        # Of all ranks together.
        args += ["--kv-offloading-size", str((endpoint.kv_cache_cpu_gib or 0) * (role.nodes_per_replica or 1))]
    environment: dict[str, str] = {}
    if name:
        carries = {
            "kv_connector": "NixlConnector",
            "kv_role": "kv_both",  # the router decides
            # Else UCX, which does not know EFA, is taken in silence.
            "kv_connector_extra_config": {"backends": ["LIBFABRIC"]},
        }
        args += ["--kv-transfer-config", json.dumps(carries)]
        environment = {"FI_PROVIDER": "efa", "VLLM_KV_CACHE_LAYOUT": "HND"}
    workers: tuple[str, ...] = ()
    if (nodes := role.nodes_per_replica or 1) > 1:
        spread = ["--nnodes", str(nodes), "--master-addr", _LEADER, "--node-rank"]
        workers = (model_path, *args, *spread, _RANK, "--headless", *extra)
        args += [*spread, "0"]
    return Command(("vllm", "serve"), (model_path, *args, *extra), workers, environment)


def hyperpod_command(endpoint: Endpoint, *, model_path: str) -> Command:
    """How HyperPod's operator starts the server: vLLM by the entry point of its image."""
    if endpoint.server is Server.OWN:
        return Command((), endpoint.args, (), {})
    role = Role(accelerators_per_replica=endpoint.accelerators_per_replica, nodes_per_replica=1)
    if endpoint.server is Server.SGLANG:
        return _sglang(endpoint, "", role, model_path, endpoint.args)
    width, stages = endpoint.parallel(role)
    args = ("--model", model_path, *_vllm(endpoint, width, stages), *endpoint.args)
    # Prefixes have the same key in every process that shares a cache.
    return Command((), args, (), {"PYTHONHASHSEED": "0"} if _shares(endpoint) else {})


def width_of(endpoint: Endpoint, role: Role) -> tuple[str, ...]:
    """The flags in which one half differs from the other."""
    width, stages = endpoint.parallel(role)
    # Both, since those of the endpoint stay where a half says nothing.
    return ("--tensor-parallel-size", str(width), "--pipeline-parallel-size", str(stages))


def _shares(endpoint: Endpoint) -> bool:
    return bool(endpoint.kv_cache_tiers or endpoint.prefill_decode or endpoint.routing)


def _vllm(endpoint: Endpoint, width: int, stages: int) -> Sequence[str]:
    args = ["--served-model-name", endpoint.name, "--host", "0.0.0.0", "--port", str(endpoint.listens_on)]
    args += ["--tensor-parallel-size", str(width)]
    if stages > 1:
        args += ["--pipeline-parallel-size", str(stages)]
    # The default changed between versions, and the plan's figures count on it.
    args += ["--gpu-memory-utilization", f"{endpoint.memory_share:g}"]
    if endpoint.context_tokens is not None:
        args += ["--max-model-len", str(endpoint.context_tokens)]
    return args


def _sglang(endpoint: Endpoint, name: str, role: Role, model_path: str, extra: tuple[str, ...]) -> Command:
    width, stages = endpoint.parallel(role)
    nodes = role.nodes_per_replica or 1
    args = ["--model-path", model_path, "--served-model-name", endpoint.name]
    # It listens on 127.0.0.1 and exports nothing by default.
    args += ["--host", "0.0.0.0", "--port", str(endpoint.listens_on), "--enable-metrics", "--tp-size", str(width)]
    if stages > 1:
        args += ["--pp-size", str(stages)]
    if endpoint.memory_share is not None:
        args += ["--mem-fraction-static", f"{endpoint.memory_share:g}"]
    if endpoint.context_tokens is not None:
        args += ["--context-length", str(endpoint.context_tokens)]
    if KvCacheTier.CPU in endpoint.kv_cache_tiers:
        ranks = max((role.accelerators_per_replica or 1) // nodes, 1)
        each = max((endpoint.kv_cache_cpu_gib or 0) // ranks, 1)
        args += ["--enable-hierarchical-cache", "--hicache-size", str(each)]
    environment: dict[str, str] = {}
    if name:
        args += ["--disaggregation-mode", name, "--disaggregation-transfer-backend", "nixl"]
        if name == "prefill":
            args += ["--disaggregation-bootstrap-port", str(BOOTSTRAP_PORT)]
        environment = {"FI_PROVIDER": "efa", "SGLANG_DISAGGREGATION_NIXL_BACKEND": "LIBFABRIC"}
    if nodes > 1:
        args += ["--nnodes", str(nodes), "--node-rank", _RANK, "--dist-init-addr", f"{_LEADER}:{_SGLANG_RENDEZVOUS}"]
    whole = (*args, *extra)
    return Command(("python3", "-m", "sglang.launch_server"), whole, whole, environment)


def router_command(endpoint: Endpoint, *, namespace: str, selectors: Mapping[str, Sequence[str]]) -> Command:
    """How the router of an endpoint finds the pods that answer.

    Args:
        endpoint: what is served.
        namespace: of the pods.
        selectors: labels by half; by the empty name where nothing is split.
    """
    policy = _POLICIES[endpoint.routing or Routing.PREFIX_AWARE]
    args = ["--host", "0.0.0.0", "--port", str(ROUTER_PORT), "--policy", policy]
    args += ["--service-discovery", "--service-discovery-port", str(endpoint.listens_on)]
    args += ["--service-discovery-namespace", namespace]
    if "" in selectors:
        args += ["--selector", *selectors[""]]
    else:
        split = "--pd-disaggregation" if endpoint.server is Server.SGLANG else "--vllm-pd-disaggregation"
        args += [split, "--prefill-selector", *selectors["prefill"], "--decode-selector", *selectors["decode"]]
    if endpoint.server is Server.SGLANG:
        return Command(("python3", "-m", "sglang_router.launch_router"), tuple(args), (), {})
    return Command(("vllm-router",), tuple(args), (), {})
