"""Randomness: one integer seed, streams named by purpose, round and client, and stateless permutations.

A draw depends on (seed, purpose, round, client) alone: never on the order of clients, the block size, the
number of devices or the runtime. `permuted` gives any entry of a random permutation without storing the
permutation, so sampling a batch from 25,810 samples, or a cohort from a million clients, costs its own size.
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Int, PRNGKeyArray, UInt32

Purpose = Literal["init", "private", "cohort", "local"]
_PURPOSES: dict[Purpose, int] = {"init": 1, "private": 2, "cohort": 3, "local": 4}
_FEISTEL_ROUNDS = 6


def stream(seed: PRNGKeyArray, purpose: Purpose, round: ArrayLike = 0, client: ArrayLike = 0) -> PRNGKeyArray:
    """Return the key of one purpose, in one round, at one client."""
    key = jax.random.fold_in(seed, _PURPOSES[purpose])
    return jax.random.fold_in(jax.random.fold_in(key, round), client)


def _mix(x: UInt32[Array, "*s"]) -> UInt32[Array, "*s"]:
    """Murmur3's 32-bit finaliser: every input bit changes every output bit with probability about 1/2."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def permuted(key: PRNGKeyArray, position: Int[Array, "*s"], size: ArrayLike) -> Int[Array, "*s"]:
    """Return entry `position` of a random permutation of 0..size-1 named by `key`; nothing is stored.

    A keyed Feistel network is a bijection on 2^b >= size numbers; walking its cycles until the value is below
    `size` makes it a bijection on 0..size-1 (Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
    Positions at or beyond `size` return 0: the caller masks them. `size` may differ between vmapped clients.
    """
    size = jnp.asarray(size, jnp.uint32)
    round_keys = jax.random.bits(key, (_FEISTEL_ROUNDS,), jnp.uint32)
    # 2^bits is the smallest power of two that is at least size, with one bit at least for each half.
    bits = jnp.maximum(jnp.uint32(32) - jax.lax.clz(jnp.maximum(size, 1) - jnp.uint32(1)), jnp.uint32(2))
    low = bits // 2
    high = bits - low
    low_mask = (jnp.uint32(1) << low) - 1
    high_mask = (jnp.uint32(1) << high) - 1

    def encrypt(value: UInt32[Array, "*s"]) -> UInt32[Array, "*s"]:
        left, right = value >> low, value & low_mask
        for k in range(_FEISTEL_ROUNDS):  # unbalanced: the halves keep their own widths
            if k % 2 == 0:
                left = left ^ (_mix(right + round_keys[k]) & high_mask)
            else:
                right = right ^ (_mix(left + round_keys[k]) & low_mask)
        return (left << low) | right

    valid = position.astype(jnp.uint32) < size
    start = jnp.where(valid, position.astype(jnp.uint32), 0)
    value = jax.lax.while_loop(
        lambda v: jnp.any(v >= size),
        lambda v: jnp.where(v >= size, encrypt(v), v),
        encrypt(start),
    )
    return jnp.where(valid, value, 0).astype(position.dtype)
