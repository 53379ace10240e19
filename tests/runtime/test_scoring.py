"""Scoring in tiles: sums that keep their digits, clients that keep apart, and parts that are pooled."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client.objective import objective_of
from idiolect.client.samples import tiles_of, to_device
from idiolect.metrics.registry import METRICS, measured
from idiolect.runtime.scoring import Each, Pool, Sums, Values, divided, finished, over_all
from tests.federations import split_of
from tests.metrics.scored import SIZES, Given, classes, score_tiles, scored
from tests.tiers import second

ALL = tuple(metric for metric in METRICS.values() if metric.task == "classification")


def test_sums_keep_what_rounding_loses():
    """A million times 0.1 in float32: plainly it would be 100,958."""
    small = jnp.float32(0.1)
    one = Sums.like((small, jnp.int32(0)))
    total = jax.jit(lambda: jax.lax.fori_loop(0, 10**6, lambda _, sums: sums.add((small, jnp.int32(3))), one))().total
    assert float(total[0]) == pytest.approx(1e6 * float(small), rel=1e-7)
    assert (int(total[1]), total[1].dtype) == (3 * 10**6, jnp.int32)


@pytest.mark.parametrize("name", ["accuracy", second("macro-f1"), second("ece"), "auroc"])
@pytest.mark.parametrize("rows", [1, second(7), 64])
def test_tiles_of_any_size_give_the_same(name, rows):
    """Down to one row a tile, and with tiles larger than any client."""
    parts = classes(3)
    values, pooled = scored(METRICS[name], parts, rows=rows)
    expected, whole = scored(METRICS[name], parts, rows=5)
    np.testing.assert_allclose(values, expected, rtol=2e-6)
    assert pooled == pytest.approx(whole, rel=2e-6)


def measure(parts, tiles, ids, objective, samples):
    params = Given(jnp.zeros(len(ids)))
    return jax.jit(lambda: score_tiles(objective, ALL, params, samples, jnp.asarray(ids), tiles))()


@pytest.mark.second
def test_devices_parts_of_the_clients_are_pooled():
    """Clients 0, 1 on one device and 2 to 5 on another, each filled up with empty tiles: as all on one."""
    parts = classes(4)
    split = split_of(parts)
    objective, samples = objective_of(Given(jnp.zeros(())), "classification"), to_device(split)
    tiles, edges = tiles_of(split, 5), [0, 2, 6]
    whole, pool = measure(parts, tiles, range(6), objective, samples)
    length = tiles.most(edges) + 3
    found = [measure(parts, tiles.of(a, b, length), range(a, b), objective, samples) for a, b in ((0, 2), (2, 6))]
    each = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(one for one, _ in found))
    for value, expected in zip(jax.tree.leaves(each), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    np.testing.assert_array_equal(each.count, SIZES)
    together = over_all(ALL, jax.tree.map(lambda *leaves: jnp.stack(leaves), *(part for _, part in found)))
    _, alone = finished(ALL, whole, jax.tree.map(lambda leaf: leaf[None], pool))
    assert sorted(together) == sorted(metric.name for metric in ALL)
    for value, expected in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_clients_without_any_tile_have_nothing():
    split = split_of(classes(3))
    objective, samples = objective_of(Given(jnp.zeros(())), "classification"), to_device(split)
    each, pool = measure(None, tiles_of(split, 5).of(3, 4, 0), [3], objective, samples)
    own, values = finished(ALL, each, jax.tree.map(lambda leaf: leaf[None], pool))
    assert own.count.tolist() == [0]
    assert all(int(denominator[0]) == 0 for _, denominator in own.values.values())
    assert all(int(denominator) == 0 for _, denominator in values.values())


def test_what_is_only_asked_of_some_metrics_is_not_kept():
    split = split_of(classes(3))
    objective, samples = objective_of(Given(jnp.zeros(())), "classification"), to_device(split)
    tiles, always = tiles_of(split, 5), measured("classification")
    params = Given(jnp.zeros(6))
    _, pool = score_tiles(objective, always, params, samples, jnp.arange(6), tiles)
    assert pool.samples == pool.apart == {}
    assert pool.keep is pool.owner is None
    assert isinstance(pool, Pool)


def test_each_is_flattened_and_values_are_cut():
    each = Each(jnp.ones((2, 3)), jnp.ones((2, 3), jnp.int32), {"a": jnp.arange(12).reshape(2, 3, 2)})
    assert each.flat().sums["a"].tolist() == np.arange(12).reshape(6, 2).tolist()
    values = Values(np.ones(6), np.ones(6, int), {"a": (np.arange(6), np.arange(6))})
    assert values.first(5).values["a"][0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.second
def test_clients_of_two_devices_have_their_own_values():
    """Of metrics of sums and of samples, also where the devices number their clients from 0 each."""
    parts = [*classes(3), *classes(3, seed=1)[:2]]
    split = split_of(parts)
    objective, samples = objective_of(Given(jnp.zeros(())), "classification"), to_device(split)
    tiles, length = tiles_of(split, 5), tiles_of(split, 5).most([0, 4, 8])
    found = [measure(parts, tiles.of(a, b, length), range(a, b), objective, samples) for a, b in ((0, 4), (4, 8))]
    each = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(one for one, _ in found))
    own, _ = finished(ALL, each, jax.tree.map(lambda *leaves: np.stack(leaves), *(part for _, part in found)))
    for metric in ALL:
        np.testing.assert_allclose(divided(own.values[metric.name]), scored(metric, parts)[0], rtol=1e-6)
