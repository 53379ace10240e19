from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.client.client import BATCH_ORDERS
from tests.federations import classification, flat
from tests.tiers import second

KEY = jax.random.key(5)
SIZES = (9, 1, 30, 4, 300)


@pytest.fixture(scope="module")
def problem():
    """Clients whose feature 0 is the row's own number, to read off which samples a batch holds."""
    problem = classification(SIZES)
    problem.data.train.x[:, 0] = np.arange(sum(SIZES))
    return problem


def rows(batch):
    """The row numbers of the batch's real samples, in order."""
    return [int(v) for v in np.asarray(batch.x)[:, 0][np.asarray(batch.weight) > 0]]


def each(batches):
    """The row numbers of every step of a round."""
    x, weight = np.asarray(batches.x), np.asarray(batches.weight)
    return [[int(v) for v in x[i, weight[i] > 0, 0]] for i in range(len(x))]


def own(problem, index):
    first = int(problem.data.train.offsets[index])
    return list(range(first, first + SIZES[index]))


@pytest.mark.parametrize("index", [0, 1, 3])
def test_draw_is_without_replacement_and_masked_beyond_the_size(problem, index):
    client = problem.client(index)
    batch = client.draw(KEY, 8)
    drawn = rows(batch)
    assert len(drawn) == len(set(drawn)) == min(8, SIZES[index])
    assert set(drawn) <= set(own(problem, index))
    np.testing.assert_array_equal(batch.weight, np.arange(8) < SIZES[index])
    np.testing.assert_array_equal(np.asarray(batch.y)[: len(drawn)], problem.data.train.y[np.asarray(drawn, int)])


def test_fresh_draws_are_uniform_and_differ_by_step(problem):
    client = problem.client(0)
    drawn = np.asarray(jax.jit(lambda: client.batches(KEY, 4000, 3, "fresh").x)())[..., 0]
    counts = np.bincount(drawn.astype(int).ravel(), minlength=9)
    expected = 4000 * 3 / 9
    assert np.sum((counts - expected) ** 2 / expected) < 30  # chi-square, 8 degrees of freedom: p < 2e-4
    steps = np.sort(drawn, axis=1)
    assert all(len(set(step)) == 3 for step in steps)
    assert np.mean(np.all(steps[1:] == steps[:-1], axis=1)) < 0.05  # chance: 1 / 84


def test_take_gives_weight_0_outside_the_client(problem):
    batch = problem.client(3).take(jnp.array([-1, 0, 3, 4, 100]))
    np.testing.assert_array_equal(batch.weight, [0, 1, 1, 0, 0])
    assert rows(batch) == [own(problem, 3)[0], own(problem, 3)[3]]


@pytest.mark.parametrize("index", [0, 1, 2])
def test_an_epoch_visits_every_sample_once_then_reshuffles(problem, index):
    client, size = problem.client(index), SIZES[index]
    per_pass = -(-size // 4)
    assert int(client.passes(4)) == per_pass
    batches = jax.jit(lambda: client.batches(KEY, 2 * per_pass, 4, "epoch"))()
    steps = each(batches)
    assert [len(s) for s in steps] == 2 * ([4] * (size // 4) + [size % 4] * (size % 4 > 0))
    first, second = ([r for step in half for r in step] for half in (steps[:per_pass], steps[per_pass:]))
    assert sorted(first) == sorted(second) == own(problem, index)
    if size > 4:
        assert first != second
        assert first != sorted(first)


def test_cyclic_is_one_iterator_kept_across_rounds(problem):
    """The published code's loader: fixed order, last batch short, restarted when it ends, never at a round's end."""
    for index in (0, 1, 3):
        mine = own(problem, index)
        loader = [mine[i : i + 4] for i in range(0, len(mine), 4)]
        expected = [loader[i % len(loader)] for i in range(3 * 5)]
        got = []
        for round in range(3):
            got += each(problem.client(index, round).batches(KEY, 5, 4, "cyclic"))
        assert got == expected


@pytest.mark.parametrize("order", BATCH_ORDERS)
def test_batches_are_the_batch_of_each_step(problem, order):
    client = problem.client(2, round=1)
    together = jax.jit(lambda: client.batches(KEY, 9, 4, order))()
    alone = jax.jit(lambda step: client.batch(KEY, step, 4, order, 9))
    for step in range(9):
        apart = alone(step)
        np.testing.assert_array_equal(together.x[step], apart.x)
        np.testing.assert_array_equal(together.weight[step], apart.weight)


@pytest.mark.parametrize(("index", "tile", "l2"), [(1, 256, 0.0), second(0, 4, 0.2), (4, 256, 0.2)])
def test_the_full_gradient_is_that_of_the_mean_loss(index, tile, l2):
    problem = classification(SIZES, l2=l2)
    x, y = (jnp.asarray(a) for a in problem.data.train.client(index))

    def mean_loss(params):
        losses = jax.vmap(lambda a, b: -jax.nn.log_softmax(params(a))[b])(x, y)
        return losses.mean() + 0.5 * l2 * sum(jnp.sum(p**2) for p in jax.tree.leaves(params))

    client, size = problem.client(index), SIZES[index]
    value, gradient = jax.jit(lambda p: client.full_value_and_grad(p, tile=tile))(problem.params)
    whole = jax.jit(lambda p: client.grad(p, client.take(jnp.arange(size))))(problem.params)
    expected, slope = jax.jit(jax.value_and_grad(mean_loss))(problem.params)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda p: client.full_loss(p))(problem.params), expected, rtol=1e-5)
    np.testing.assert_allclose(flat(gradient), flat(slope), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(flat(whole), flat(slope), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("outputs", [None, 2])
def test_a_mini_batch_of_more_rows_than_a_tile_has_the_same_gradient(outputs):
    problem = classification(SIZES, l2=0.1)
    client = problem.client(2)
    batch = client.take(jnp.array([3, 0, 5, 999, 1, 2, 4, 7]))._replace(outputs=outputs)  # of seven, and padding
    few = replace(client, federation=replace(client.federation, tile=3))
    head, body = eqx.partition(problem.params, lambda leaf: leaf.ndim == 2)
    for params, fixed in ((problem.params, None), (head, body)):
        whole, tiled = (jax.jit(lambda p, c=c, f=fixed: c.grad(p, batch, f))(params) for c in (client, few))
        np.testing.assert_allclose(flat(tiled), flat(whole), rtol=1e-5, atol=1e-7)
        assert "scan" in str(jax.make_jaxpr(lambda p, f=fixed: few.grad(p, batch, f))(params))


def test_the_tiles_of_a_batch_are_its_samples_in_order_and_copies_without_weight(problem):
    batch = problem.client(2).take(jnp.arange(5))
    tiles = batch.tiles(2)
    np.testing.assert_array_equal(tiles.weight, [[1, 1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(tiles.x.reshape(6, -1), batch.x[jnp.array([0, 1, 2, 3, 4, 4])].reshape(6, -1))


@pytest.mark.parametrize(("capacity", "tile"), [(1, 1), (30, 30), (256, 256), (257, 129), (600, 200), (0, 1)])
def test_tiles_are_as_few_as_fit_and_equal(capacity, tile):
    client = classification((3,)).client(0)
    assert replace(client, federation=replace(client.federation, capacity=capacity)).tile == tile


def test_a_window_holds_nothing_but_its_samples(problem):
    window = problem.client(2).window(3, 5)
    mine = own(problem, 2)[3:8]
    assert rows(window.take(jnp.arange(-2, 9))) == mine
    assert sorted(rows(window.draw(KEY, 8))) == mine
    assert [r for step in each(window.batches(KEY, 2, 4, "cyclic")) for r in step] == mine


@pytest.mark.parametrize("index", [1, 2, 4])
def test_shuffled_samples_are_the_clients_own_in_the_order_of_the_key(problem, index):
    """Client 4 has 300 samples: two tiles."""
    client, size = problem.client(index), SIZES[index]
    shuffled = jax.jit(lambda key: client.shuffled(key).take(jnp.arange(size)))
    first, again, other = (shuffled(key) for key in (KEY, KEY, jax.random.key(6)))
    assert sorted(rows(first)) == own(problem, index)
    assert rows(first) == rows(again)
    assert (rows(first) == rows(other)) == (size == 1)
    np.testing.assert_array_equal(np.asarray(first.y), problem.data.train.y[np.asarray(rows(first))])


def test_collect_computes_the_clients_own_tiles_and_no_more(problem):
    done = []

    def rows_of(position):
        jax.debug.callback(lambda first: done.append(int(first)), position[0])
        return position + 1, 2.0 * position[:, None]

    for index, tiles in ((1, [0]), (2, [0]), (4, [0, 150])):
        whole, column = jax.jit(lambda index=index: problem.client(index).collect(rows_of))()
        jax.effects_barrier()
        assert sorted(done) == tiles
        done.clear()
        filled = 150 * len(tiles)
        np.testing.assert_array_equal(whole, np.where(np.arange(300) < filled, np.arange(300) + 1, 0))
        np.testing.assert_array_equal(column[:filled, 0], 2.0 * np.arange(filled))
