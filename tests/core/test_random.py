import math
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect.core.random import model_key, permuted, stream

KEY = jax.random.key(3)
LARGE = 100_000


def chi_square(counts, expected):
    """Standardised chi-square: about N(0, 1) if the counts are multinomial with these expectations."""
    counts = np.asarray(counts, float)
    degrees = counts.size - 1
    return (np.sum((counts - expected) ** 2 / expected) - degrees) / math.sqrt(2 * degrees)


def test_it_is_a_bijection_for_every_size_up_to_200():
    sizes = jnp.arange(1, 201)
    table = np.asarray(jax.jit(jax.vmap(lambda n: permuted(KEY, jnp.arange(200), n)))(sizes))
    for size, row in zip(range(1, 201), table, strict=True):
        assert sorted(row[:size]) == list(range(size))
        assert not row[size:].any()  # positions beyond the size
    whole = np.asarray(permuted(KEY, jnp.arange(LARGE), LARGE))
    np.testing.assert_array_equal(np.sort(whole), np.arange(LARGE))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(size=st.integers(1, 2**31 - 1), seed=st.integers(0, 2**31 - 1))
def test_any_size_gives_distinct_entries_in_range(size, seed):
    row = np.asarray(permuted(jax.random.key(seed), jnp.arange(64), size)).astype(np.int64)
    count = min(size, 64)
    assert row.min() >= 0
    assert row.max() < size
    assert len(set(row[:count])) == count


def mixed(x):
    """Murmur3's finaliser, as published, on whole numbers."""
    x = (x ^ x >> 16) * 0x85EBCA6B % 2**32
    x = (x ^ x >> 13) * 0xC2B2AE35 % 2**32
    return x ^ x >> 16


@pytest.mark.parametrize("size", [1, 2, 23, 4096])
def test_the_draws_are_those_of_all_results_that_were_ever_kept(size):
    """The whole permutation, from its definition with whole numbers; another constant would be another result."""
    pivot_seed, bit_seed = (int(seed) for seed in jax.random.bits(KEY, (2,), jnp.uint32))
    expected = []
    for x in range(min(size, 40)):
        for count in range(24):
            step = count * 0x9E3779B9
            partner = (mixed((pivot_seed + step) % 2**32) % size - x) % size
            if mixed(max(x, partner) ^ mixed((bit_seed + step) % 2**32)) >> 31:
                x = partner
        expected.append(x)
    assert permuted(KEY, jnp.arange(len(expected)), size).tolist() == expected


def test_a_stream_folds_in_purpose_round_and_client():
    for number, purpose in enumerate(("init", "private", "cohort", "local"), start=1):
        for place in ((), (5,), (5, 3)):
            key = KEY
            for fold in (number, *place, *(0,) * (2 - len(place))):
                key = jax.random.fold_in(key, fold)
            assert stream(KEY, purpose, *place) == key
    assert model_key(9) == jax.random.fold_in(jax.random.key(9), 0x1D10)


def test_an_empty_domain_gives_zeros():
    np.testing.assert_array_equal(permuted(KEY, jnp.arange(4), 0), 0)


@pytest.mark.parametrize("size", [3, 4, 5])
def test_every_permutation_of_a_small_set_is_equally_likely(size):
    keys = jax.random.split(jax.random.key(11), 30_000)
    rows = np.asarray(jax.jit(jax.vmap(lambda k: permuted(k, jnp.arange(size), size)))(keys))
    seen = Counter(map(tuple, rows))
    assert len(seen) == math.factorial(size)
    assert abs(chi_square(list(seen.values()), len(keys) / math.factorial(size))) < 4


@pytest.mark.parametrize("size", [7, 20, 37])
def test_entries_and_pairs_of_entries_are_uniform(size):
    keys = jax.random.split(jax.random.key(12), 30_000)
    rows = np.asarray(jax.jit(jax.vmap(lambda k: permuted(k, jnp.arange(5), size)))(keys))
    for position in range(5):
        counts = np.bincount(rows[:, position], minlength=size)
        assert abs(chi_square(counts, len(keys) / size)) < 4.5
    for a, b in [(0, 1), (1, 2), (0, 4), (2, 4)]:
        pairs = np.bincount(rows[:, a] * size + rows[:, b], minlength=size * size).reshape(size, size)
        assert abs(chi_square(pairs[~np.eye(size, dtype=bool)], len(keys) / (size * (size - 1)))) < 4.5


def test_a_large_permutation_looks_random():
    row = np.asarray(permuted(KEY, jnp.arange(LARGE), LARGE))
    assert abs(np.corrcoef(row, np.arange(LARGE))[0, 1]) < 4 / math.sqrt(LARGE)
    assert abs(np.corrcoef(row[1:], row[:-1])[0, 1]) < 4 / math.sqrt(LARGE)
    assert np.sum(row == np.arange(LARGE)) < 8  # about Poisson(1) fixed points


def test_an_entry_depends_on_its_position_alone():
    whole = np.asarray(permuted(KEY, jnp.arange(50), 50))
    some = jnp.array([[49, 7], [0, 49]])
    np.testing.assert_array_equal(permuted(KEY, some, 50), whole[np.asarray(some)])
    keys, sizes = jax.random.split(KEY, 3), jnp.array([50, 2, 1000])
    batched = jax.jit(jax.vmap(lambda k, n: permuted(k, jnp.arange(50), n)))(keys, sizes)
    for row, key, size in zip(batched, keys, sizes, strict=True):
        np.testing.assert_array_equal(row, permuted(key, jnp.arange(50), size))


def test_streams_differ_by_seed_purpose_round_and_client():
    names = [
        (seed, purpose, round, client)
        for seed in (0, 1)
        for purpose in ("init", "private", "cohort", "local")
        for round in (0, 1, 2)
        for client in (0, 1, 2)
    ]
    draws = {
        jax.random.key_data(stream(jax.random.key(seed), purpose, round, client)).tobytes()
        for seed, purpose, round, client in names
    }
    assert len(draws) == len(names)
    same = stream(jax.random.key(1), "local", jnp.asarray(2, jnp.int32), jnp.asarray(1, jnp.int32))
    np.testing.assert_array_equal(
        jax.random.key_data(same), jax.random.key_data(stream(jax.random.key(1), "local", 2, 1))
    )
