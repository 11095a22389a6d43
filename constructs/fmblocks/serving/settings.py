"""What a project file says about serving models."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fmblocks.cluster.settings import Cluster, NodeGroup, Orchestrator
from fmblocks.settings import AnyCase, Name, Number, Settings, Text, WholeNumber, spelled
from fmblocks.storage.settings import canonical_path, canonical_prefix


class ServingCluster(StrEnum):
    """On which cluster endpoints run."""

    OWN = "own"
    TRAINING = "training"


class Server(StrEnum):
    """What answers requests."""

    VLLM = "vllm"
    SGLANG = "sglang"
    OWN = "own"

    @property
    def port(self) -> int:
        """The port that it listens on. Source: vLLM and SGLang, their command lines' defaults."""
        return 30000 if self is Server.SGLANG else 8000


class Precision(StrEnum):
    """How a number of a model, or of its KV cache, is stored."""

    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"

    @property
    def bits(self) -> int:
        """Of one number; scales beside it are not counted."""
        return int("".join(filter(str.isdigit, self.value)))


class KvCacheTier(StrEnum):
    """Where keys and values go that the accelerators have no room for (InferenceEndpointConfig, kvCacheSpec)."""

    CPU = "cpu"
    TIERED_STORAGE = "tiered_storage"
    REDIS = "redis"


class Routing(StrEnum):
    """Which replica gets a request (InferenceEndpointConfig, intelligentRoutingSpec)."""

    # What is alike goes where it is cached already.
    PREFIX_AWARE = "prefix_aware"
    KV_AWARE = "kv_aware"
    SESSION = "session"
    ROUND_ROBIN = "round_robin"


class ScalingMetric(StrEnum):
    """What decides how many replicas run."""

    WAITING_REQUESTS = "waiting_requests"
    RUNNING_REQUESTS = "running_requests"
    KV_CACHE_USAGE = "kv_cache_usage"
    QUERY = "query"

    @property
    def ratio(self) -> bool:
        """Whether replicas share an average, not a sum."""
        return self is ScalingMetric.KV_CACHE_USAGE


# A name and a version, both fit for a folder.
STORED_MODEL = r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?/[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
STORED_MODEL_FORM = (
    "a name and a version like llama-70b/v1: up to 63 characters each, small letters, digits, . and - in the name, "
    "in the version capitals and _ too"
)


class KvCache(Settings):
    """What decides how large a token is in the KV cache, as the model's own configuration has it."""

    FOREIGN: ClassVar = {
        "num_hidden_layers": "the key is layers",
        "num_key_value_heads": "the key is kv_heads",
        "num_attention_heads": "the key is kv_heads, of num_key_value_heads",
        "kv_lora_rank": "write latent_dim: kv_lora_rank + qk_rope_head_dim",
    }

    layers: Annotated[WholeNumber, Field(ge=1, description="num_hidden_layers")]
    kv_heads: Annotated[WholeNumber | None, Field(ge=1, description="num_key_value_heads")] = None
    head_dim: Annotated[WholeNumber | None, Field(ge=1, description="head_dim, or hidden_size / heads")] = None
    latent_dim: Annotated[
        WholeNumber | None, Field(ge=1, description="with latent attention: kv_lora_rank + qk_rope_head_dim")
    ] = None
    precision: Annotated[Precision, AnyCase, Field(description="of keys and values")] = Precision.BF16


class Model(Settings):
    """Which weights an endpoint serves, and what is known about them."""

    FOREIGN: ClassVar = {
        "s3_uri": "write bucket and prefix",
        "uri": "write bucket and prefix",
        "storage_uri": "write bucket and prefix",
        "lustre_path": "the key is path",
        "parameters": "the key is parameters_billion",
        "size": "the key is parameters_billion",
        "dtype": "the key is precision",
        "quantization": "the key is precision; what the server has to know goes under args",
        "huggingface": "endpoints start from a place of yours: `fmblocks model push` brings weights into the store",
        "hf": "endpoints start from a place of yours: `fmblocks model push` brings weights into the store",
        "model_id": "endpoints start from a place of yours: `fmblocks model push` brings weights into the store",
    }

    store: Annotated[
        Annotated[Text, AfterValidator(spelled(STORED_MODEL, STORED_MODEL_FORM))] | None,
        Field(description="name/version in storage.model_store"),
    ] = None
    path: Annotated[
        Annotated[Text, AfterValidator(canonical_path)] | None, Field(description="folder of the Lustre file system")
    ] = None
    bucket: Annotated[Text | None, Field(description="a bucket of yours, in the project's Region")] = None
    prefix: Annotated[Text, AfterValidator(canonical_prefix), Field(description="in bucket")] = ""
    kms_key_arn: Annotated[Text | None, Field(description="that bucket is encrypted with; default: S3's own")] = None
    parameters_billion: Annotated[Number | None, Field(gt=0, description="of the whole model; default: unknown")] = None
    precision: Annotated[Precision, AnyCase, Field(description="of the weights")] = Precision.BF16
    kv_cache: Annotated[KvCache | None, Field(description="for the size of a token; default: unknown")] = None


def _replicas(value: object) -> object:
    """``replicas: 2`` is short for ``replicas: {min: 2, max: 2}``."""
    if isinstance(value, dict | Replicas):
        return value
    if isinstance(value, bool) or not re.fullmatch(r"0*[1-9][0-9]*", str(value)):
        raise PydanticCustomError("replicas", "is not a number of 1 or more, nor {{min, max}}")
    return {"min": value, "max": value}


class Replicas(Settings):
    """How many copies of a model answer."""

    min: Annotated[WholeNumber, Field(ge=0)]
    max: Annotated[WholeNumber, Field(ge=1)]


ONE = Replicas(min=1, max=1)


class Autoscaling(Settings):
    """What decides how many replicas run, between ``replicas.min`` and ``replicas.max``."""

    FOREIGN: ClassVar = {
        "target_value": "the key is target",
        "min_replicas": "write replicas: {min, max}",
        "max_replicas": "write replicas: {min, max}",
        "cooldown": "the key is scale_down_seconds",
    }

    metric: Annotated[ScalingMetric, AnyCase] = ScalingMetric.WAITING_REQUESTS
    target: Annotated[Number, Field(gt=0, description="of the metric, per replica; kv_cache_usage: 0 to 1")]
    query: Annotated[Text | None, Field(description="PromQL with one number as its answer, with metric query")] = None
    scale_down_seconds: Annotated[
        WholeNumber, Field(ge=0, le=3600, description="how long less has to be enough before replicas go")
    ] = 300


class Role(Settings):
    """Replicas that do one half of the work."""

    replicas: Annotated[Replicas, BeforeValidator(_replicas), Field(description="a number, or min and max")] = ONE
    autoscaling: Annotated[Autoscaling | None, Field(description="with replicas.min below max, which needs it")] = None
    accelerators_per_replica: Annotated[WholeNumber | None, Field(ge=1, description="default: the endpoint's")] = None
    nodes_per_replica: Annotated[WholeNumber | None, Field(ge=1, description="default: the endpoint's")] = None
    node_group: Annotated[Text | None, Field(description="default: the endpoint's")] = None
    args: Annotated[tuple[Text, ...], Field(description="of the server, after the endpoint's")] = ()


class PrefillDecode(Settings):
    """Prompts and tokens on accelerators of their own (InferenceEndpointConfig, pdSpec)."""

    prefill: Role = Role()
    decode: Role = Role()
    routing_threshold_tokens: Annotated[
        WholeNumber | None, Field(ge=0, description="shorter prompts are not split; default: 4096, chosen by HyperPod")
    ] = None


class Tls(Settings):
    """The certificate that clients see."""

    FOREIGN: ClassVar = {"acm_arn": "the key is certificate_arn", "domain": "the key is domain_name"}

    certificate_arn: Annotated[Text, Field(description="of ACM, in the project's Region")]
    domain_name: Annotated[Text | None, Field(description="that the certificate is for; HyperPod requires it")] = None
    hosted_zone_id: Annotated[
        Text | None, Field(description="of Route 53, in which HyperPod writes domain_name; default: nobody writes it")
    ] = None


class Endpoint(Settings):
    """A model that answers requests."""

    FOREIGN: ClassVar = {
        "gpus_per_replica": "the key is accelerators_per_replica",
        "gpus": "the key is accelerators_per_replica",
        "count": "the key is replicas",
        "min_replicas": "write replicas: {min, max}",
        "max_replicas": "write replicas: {min, max}",
        "instance_type": "it follows from node_group",
        "env": "the key is environment",
        "engine": "the key is server",
        "framework": "the key is server",
        "pd": "the key is prefill_decode",
        "disaggregation": "the key is prefill_decode",
        "kv_cache": "the tiers are kv_cache_tiers; the shape of the model is model.kv_cache",
        "max_model_len": "the key is context_tokens",
        "gpu_memory_utilization": "the key is accelerator_memory_share",
        "mem_fraction_static": "the key is accelerator_memory_share",
        "initial_instance_count": "the key is replicas",
        "load_balancer_source_ranges": "the key is source_ranges",
        "resources": "write accelerators_per_replica; memory and CPUs follow from the type",
        "command": "write server: own, and args",
    }

    name: Annotated[Name, Field(description="of the endpoint, and of the model for clients")]
    server: Annotated[Server, AnyCase, Field(description="whose command line is written; own: args are all there is")]
    image: Annotated[Text, Field(description="of the server; name a digest, or a tag that stays")]
    model: Model
    node_group: Annotated[Text | None, Field(description="default: the only one with accelerators")] = None
    accelerators_per_replica: Annotated[WholeNumber, Field(ge=1, description="over all nodes of the replica")]
    nodes_per_replica: Annotated[WholeNumber, Field(ge=1)] = 1
    tensor_parallel_size: Annotated[
        WholeNumber | None,
        Field(ge=1, description="default: every accelerator of a replica; less is filled up with pipeline stages"),
    ] = None
    replicas: Annotated[Replicas, BeforeValidator(_replicas), Field(description="a number, or min and max")] = ONE
    autoscaling: Annotated[Autoscaling | None, Field(description="with replicas.min below max, which needs it")] = None
    context_tokens: Annotated[
        WholeNumber | None, Field(ge=1, description="longest request; default: the model's own")
    ] = None
    accelerator_memory_share: Annotated[
        Number | None,
        Field(gt=0, le=1, description="for weights and KV cache; default: 0.9 with vllm, with sglang its own choice"),
    ] = None
    kv_cache_tiers: Annotated[
        tuple[Annotated[KvCacheTier, AnyCase], ...], Field(description="below the accelerators; default: none")
    ] = ()
    kv_cache_cpu_gib: Annotated[
        WholeNumber | None, Field(ge=1, description="of each node of a replica on eks, with tier cpu, which needs it")
    ] = None
    kv_cache_redis_url: Annotated[Text | None, Field(description="with tier redis, which needs it")] = None
    routing: Annotated[
        Routing | None, AnyCase, Field(description="default: whichever replica; with prefill_decode prefix_aware")
    ] = None
    router_image: Annotated[
        Text | None, Field(description="on eks, of vllm-router or sglang_router, with routing and prefill_decode")
    ] = None
    prefill_decode: Annotated[PrefillDecode | None, Field(description="default: replicas do both")] = None
    tls: Annotated[Tls | None, Field(description="default: on eks none, on HyperPod a certificate of its own")] = None
    load_balancer: Annotated[
        bool, Field(description="on eks: an internal load balancer; without it only pods reach the endpoint")
    ] = False
    source_ranges: Annotated[
        tuple[Text, ...], Field(description="IPv4 ranges that load_balancer lets in beside the VPC's: peers, VPN")
    ] = ()
    invocation_path: Annotated[Text, Field(description="that clients of HyperPod call")] = "v1/chat/completions"
    health_path: Annotated[Text, Field(description="that answers 200 once the model is loaded")] = "/health"
    port: Annotated[WholeNumber | None, Field(ge=1, le=65535, description="default: the server's")] = None
    gdrcopy: Annotated[
        bool, Field(description="on eks, give /dev/gdrdrv to the server; nodes without the driver start no pod then")
    ] = False
    privileged: Annotated[
        bool, Field(description="on eks; where NIXL cannot register the memory of GPUs otherwise")
    ] = False
    start_seconds: Annotated[
        WholeNumber, Field(ge=60, le=86400, description="in which a replica has to be ready, a day at most")
    ] = 3600
    args: Annotated[tuple[Text, ...], Field(description="of the server, after ours")] = ()
    environment: Annotated[dict[str, Text], Field(description="of the server, over the launch profile")] = {}

    @property
    def listens_on(self) -> int:
        """The port of the server."""
        return self.port or self.server.port

    def parallel(self, role: Role) -> tuple[int, int]:
        """The tensor and the pipeline parallel size of a replica."""
        whole = role.accelerators_per_replica or self.accelerators_per_replica
        width = min(self.tensor_parallel_size or whole, whole)
        return width, whole // width

    @property
    def memory_share(self) -> float | None:
        """What of the accelerators' memory is for weights and KV cache; None where the server chooses."""
        if self.accelerator_memory_share is not None:
            return self.accelerator_memory_share
        return 0.9 if self.server is Server.VLLM else None

    @property
    def over_the_fabric(self) -> bool:
        """Whether its nodes talk with each other."""
        return self.prefill_decode is not None or self.nodes_per_replica > 1

    def roles(self) -> dict[str, Role]:
        """The halves of the work, each with its group and accelerators; one without a name where nothing is split."""
        if self.prefill_decode is None:
            whole = Role().model_copy(update={"replicas": self.replicas, "autoscaling": self.autoscaling})
            return {"": self._filled(whole)}
        return {
            "prefill": self._filled(self.prefill_decode.prefill),
            "decode": self._filled(self.prefill_decode.decode),
        }

    def _filled(self, role: Role) -> Role:
        told = {
            "accelerators_per_replica": role.accelerators_per_replica or self.accelerators_per_replica,
            "node_group": role.node_group or self.node_group,
            "nodes_per_replica": role.nodes_per_replica or self.nodes_per_replica,
        }
        return role.model_copy(update=told)


class Inference(Cluster):
    """Endpoints, and the cluster they run on."""

    FOREIGN: ClassVar = {
        **Cluster.FOREIGN,
        "services": "the key is endpoints",
        "models": "the key is endpoints",
        "slurm": "endpoints run on Kubernetes: use orchestrator eks or hyperpod-eks",
    }

    cluster: Annotated[ServingCluster, AnyCase, Field(description="own, or that of training")] = ServingCluster.OWN
    orchestrator: Annotated[Orchestrator, AnyCase, Field(description="hyperpod-eks or eks")] = Orchestrator.EKS
    node_groups: tuple[NodeGroup, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
