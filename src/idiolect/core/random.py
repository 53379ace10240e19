"""Random streams derived from one seed by purpose, round and client, and permutations that store nothing.

A draw depends only on (seed, purpose, round, client): never on the order of clients, the block size, the
number of devices or the runtime. `permuted` gives any entry of a random permutation without storing the
permutation, so sampling a batch from 25,810 samples, or a cohort from a million clients, costs its own size.
"""

from collections.abc import Callable
from functools import wraps
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Int, PRNGKeyArray, UInt32

from idiolect.core.errors import require

Purpose = Literal["init", "private", "cohort", "local"]
_PURPOSES: dict[Purpose, int] = {"init": 1, "private": 2, "cohort": 3, "local": 4}
_SHUFFLE_ROUNDS = 24
MOST_SEED = 2**31 - 1
"""The largest seed: a compiled program takes it as a 32-bit integer."""


def _compiled(function: Callable[..., Array]) -> Callable[..., Array]:
    """Compile a function even where JIT is disabled for debugging: the generator is slow uncompiled."""
    compiled = jax.jit(function)

    @wraps(function)
    def call(*arguments: ArrayLike) -> Array:
        with jax.disable_jit(False):
            return compiled(*arguments)

    return call


def stream(seed: PRNGKeyArray, purpose: Purpose, round: ArrayLike = 0, client: ArrayLike = 0) -> PRNGKeyArray:
    """Return the key of one purpose, in one round, at one client."""
    return _stream(seed, _PURPOSES[purpose], round, client)


@_compiled
def _stream(seed: PRNGKeyArray, purpose: ArrayLike, round: ArrayLike, client: ArrayLike) -> PRNGKeyArray:
    key = jax.random.fold_in(seed, purpose)
    return jax.random.fold_in(jax.random.fold_in(key, round), client)


def check_seed(seed: int) -> None:
    """Raise `ConfigError` unless the seed is a whole number from 0 to `MOST_SEED`."""
    require(0 <= seed <= MOST_SEED, f"seed = {seed} must be a whole number from 0 to 2^31 - 1")


def model_key(seed: int) -> PRNGKeyArray:
    """The key of a run's initial model; the same for every method compared."""
    return jax.random.fold_in(jax.random.key(seed), 0x1D10)


def _mix(x: UInt32[Array, "*s"]) -> UInt32[Array, "*s"]:
    """Murmur3's 32-bit finaliser: every input bit changes every output bit with probability about 1/2."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


@_compiled
def permuted(key: PRNGKeyArray, position: Int[Array, "*s"], size: ArrayLike) -> Int[Array, "*s"]:
    """Return entry `position` of a random permutation of 0..size-1 named by `key`; nothing is stored.

    Swap-or-not shuffle: in each round x and its partner (k - x) mod size are swapped if a pseudo-random bit of the
    pair is 1. Each round is a bijection on 0..size-1; after r rounds the distribution of an entry, and of the
    difference of two entries, is within 2^-r of uniform. Positions at or beyond `size` return 0: the caller masks
    them. `size` (below 2^31) may differ between vmapped clients.

    Source: Hoang, Morris, Rogaway, "An Enciphering Scheme Based on a Card Shuffle", CRYPTO 2012.
    """
    size = jnp.asarray(size).astype(jnp.uint32)
    domain = jnp.maximum(size, 1)
    pivot_seed, bit_seed = jax.random.bits(key, (2,), jnp.uint32)
    counter = jnp.arange(_SHUFFLE_ROUNDS, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9)
    pivots, masks = _mix(pivot_seed + counter) % domain, _mix(bit_seed + counter)
    valid = position.astype(jnp.uint32) < size
    value = jnp.where(valid, position.astype(jnp.uint32), 0)

    def swap_or_not(value: Array, round: tuple[Array, Array]) -> tuple[Array, None]:
        pivot, mask = round
        partner = jnp.where(value <= pivot, pivot - value, pivot - value + domain)
        swap = _mix(jnp.maximum(value, partner) ^ mask) >> 31
        return jnp.where(swap == 1, partner, value), None

    value, _ = jax.lax.scan(swap_or_not, value, (pivots, masks), unroll=4)
    return jnp.where(valid, value, 0).astype(position.dtype)
