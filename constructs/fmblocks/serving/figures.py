"""What fits into the accelerators of a replica.

Formulas with their sources: docs/plan.md. A figure that needs what nobody wrote, or a fact without a source, is None.
"""

from __future__ import annotations

from dataclasses import dataclass

from fmblocks.catalog import InstanceType
from fmblocks.serving.settings import Endpoint, KvCache, Model, Role

_BITS_PER_BYTE = 8
_BYTES_PER_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one replica of an endpoint, or of one half of it. None is unknown.

    Attributes:
        weights_gib: of the model.
        hbm_gib: of all accelerators of the replica.
        kv_bytes_per_token: of one token, over all layers.
        kv_gib: what is left for the KV cache.
        tokens: that fit into it at once.
        requests: of the longest kind that fit at once.
    """

    weights_gib: float | None
    hbm_gib: float | None
    kv_bytes_per_token: float | None
    kv_gib: float | None
    tokens: int | None
    requests: float | None


def weights_gib(model: Model) -> float | None:
    """The weights as they lie in memory."""
    if model.parameters_billion is None:
        return None
    return model.parameters_billion * 1e9 * model.precision.bits / _BITS_PER_BYTE / _BYTES_PER_GIB


def kv_bytes_per_token(shape: KvCache | None) -> float | None:
    """Keys and values of one token: of every head, or one latent vector where attention is latent."""
    if shape is None:
        return None
    each = shape.precision.bits / _BITS_PER_BYTE
    if shape.latent_dim is not None:
        return shape.layers * shape.latent_dim * each
    if shape.kv_heads is None or shape.head_dim is None:
        return None
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * each


def hbm_gib(kind: InstanceType, accelerators: int) -> float | None:
    """The memory of some accelerators of a type."""
    if not kind.hbm_gib_total or not kind.accelerator_count:
        return None
    return kind.hbm_gib_total / kind.accelerator_count * accelerators


def figures(endpoint: Endpoint, kind: InstanceType, accelerators: int) -> Figures:
    """Of a replica of ``endpoint`` with so many accelerators of a type."""
    weights, memory = weights_gib(endpoint.model), hbm_gib(kind, accelerators)
    share, each = endpoint.memory_share, kv_bytes_per_token(endpoint.model.kv_cache)
    left = None
    if weights is not None and memory is not None and share is not None:
        left = max(memory * share - weights, 0.0)
    tokens = None
    if left is not None and each is not None:
        tokens = int(left * _BYTES_PER_GIB // (each * _copies(endpoint, accelerators)))
    longest = endpoint.context_tokens
    return Figures(
        weights_gib=weights,
        hbm_gib=memory,
        kv_bytes_per_token=each,
        kv_gib=left,
        tokens=tokens,
        requests=tokens / longest if tokens is not None and longest else None,
    )


def _copies(endpoint: Endpoint, accelerators: int) -> float:
    """How often a token is kept: tensor parallelism wider than the KV heads copies them, and every latent vector."""
    shape = endpoint.model.kv_cache
    width, _ = endpoint.parallel(Role(accelerators_per_replica=accelerators))
    if shape is None:
        return 1
    return width if shape.latent_dim is not None else max(width / (shape.kv_heads or width), 1)
