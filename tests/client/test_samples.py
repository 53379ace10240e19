"""Samples on the device, and samples that are made when they are used."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.client.samples import (
    CACHE,
    COPIED,
    TILE,
    capacities,
    equal_tiles,
    most_rows,
    roomy,
    tiles_of,
    to_device,
)
from idiolect.core.memory import aligned_empty
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.sets.synthetic import synthetic_population
from idiolect.models import build as build_model
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.federations import classification, flat, split_of


def stored(data: FederatedData) -> FederatedData:
    """The same federation with its samples written out, client by client."""

    def written(name: str) -> Split:
        return split_of([data.split(name).client(i) for i in range(data.num_clients)])

    return replace(data, train=written("train"), validation=written("validation"), test=written("test"))


@pytest.fixture(scope="module")
def made() -> FederatedData:
    return synthetic_population(clients=12, max_size=30, validation=0.2)


def simulation(data: FederatedData, name: str, **options: object) -> Simulation:
    model = build_model("mlr", data.feature_shape, data.num_outputs, data.task, jax.random.key(0))
    objective = objective_of(model, data.task)
    settings = {"name": name, "local_steps": 3, "batch_size": 4}
    return Simulation(data, objective, eqx.filter(model, eqx.is_inexact_array), build(settings), **options)


@pytest.mark.second
@pytest.mark.parametrize(
    ("name", "sampling", "cohort"),
    [
        ("ditto", "binomial", 4.5),
        ("scaffold", "binomial", 4.5),
        ("ditto", "fixed", 5),
        ("scaffold", "fixed", 5),
        ("fedper", "fixed", 5),
        ("fedper", "binomial", 4.5),
    ],
)
def test_made_samples_train_and_evaluate_as_stored_ones(made, tmp_path, name, sampling, cohort):
    lazy, whole = (simulation(d, name, cohort=cohort, sampling=sampling, rounds=4) for d in (made, stored(made)))
    rows = lazy.advance(lazy.init(3, rows=tmp_path / "rows"), 4)
    memory, expected = lazy.advance(lazy.init(3), 4), whole.advance(whole.init(3), 4)
    for a, b in zip(*(jax.tree.leaves((s.shared, s.private)) for s in (memory, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    reference = Evaluator(whole)(expected, splits=("train", "validation", "test"))
    for state in (memory, rows):
        for a, b in zip(Evaluator(lazy)(state, splits=("train", "validation", "test")), reference, strict=True):
            np.testing.assert_allclose(a.loss, b.loss, rtol=1e-4, atol=1e-5)
            np.testing.assert_array_equal(a.count, b.count)


def test_nothing_but_sizes_lies_on_the_device(made):
    held = sum(leaf.nbytes for leaf in jax.tree.leaves(to_device(made.train)) if hasattr(leaf, "nbytes"))
    assert held == 12 * 4 + 4 + 8  # sizes, their sum, a key


@pytest.mark.second
@pytest.mark.parametrize("private", ["memory", "file"])
def test_some_clients_are_evaluated_as_among_all(made, tmp_path, private):
    sim = simulation(made, "fedper", cohort=5, rounds=2)
    state = sim.advance(sim.init(0, rows=None if private == "memory" else tmp_path / "rows"), 2)
    some, every = Evaluator(sim, 5), Evaluator(sim)
    assert len(set(some.ids)) == 5
    for a, b in zip(some(state, splits=("train", "test")), every(state, splits=("train", "test")), strict=True):
        np.testing.assert_allclose(a.loss, b.loss[some.ids], rtol=1e-5)
        np.testing.assert_array_equal(a.count, b.count[some.ids])
    few, whole = (e.client_params(state, ["personal"]) for e in (some, every))
    for a, b in zip(jax.tree.leaves(few), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, np.asarray(b)[some.ids], rtol=1e-6)


class Wide(eqx.Module):
    """Makes a value of `width` floats of each sample, by weights that are larger still."""

    weight: jax.Array
    width: int = eqx.field(static=True)

    def __call__(self, x):
        wide = jnp.outer(self.weight[:, 0], jnp.tile(x, self.width // (x.size * len(self.weight))))
        return jnp.sin(wide).reshape(len(self.weight), -1).mean(axis=1)


def rows(model, shape):
    objective = objective_of(model, "classification")
    return most_rows(objective, eqx.filter(model, eqx.is_inexact_array), jax.ShapeDtypeStruct(shape, jnp.float32))


def test_a_tile_holds_what_the_cache_holds_of_the_widest_value():
    assert rows(Wide(jnp.ones((8, 2)), CACHE // 4 // 16), (16,)) == 16
    assert rows(Wide(jnp.ones((8, 2)), CACHE), (16,)) == 1


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        # The weights of a perceptron are no value of a sample; of a convolution 14 x 14 patches of 9 x 64 are, and
        # where tiles take their place, the first layer's outputs.
        ({"name": "mlp", "hidden": [4000]}, (3000,), TILE),
        ({"name": "omniglot-cnn", "convolution": "direct"}, (28, 28, 1), CACHE // (14 * 14 * 9 * 64 * 4)),
        ({"name": "omniglot-cnn"}, (28, 28, 1), CACHE // (28 * 28 * 64 * 4)),
    ],
)
def test_models_of_the_zoo(model, shape, expected):
    assert rows(build_model(model, shape, 5, "classification", jax.random.key(0)), shape) == expected


def test_accelerators_take_whole_tiles(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert rows(Wide(jnp.ones((8, 2)), CACHE), (16,)) == TILE


@pytest.mark.parametrize(("rows", "most", "tile"), [(0, 8, 1), (8, 8, 8), (9, 8, 5), (600, 256, 200)])
def test_tiles_are_as_few_as_fit_and_alike(rows, most, tile):
    assert equal_tiles(rows, most) == tile


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([600] * 5, (600,)),
        ([590, 600, 600], (600,)),  # too close for another program
        ([463, 547, 593, 659, 846], (552, 600, 664, 846)),
        ([1, 7, 40, 300], (8, 40, 300)),
        ([0, 0, 0, 5], (5,)),
    ],
)
def test_capacities_hold_a_quarter_a_half_three_quarters_and_all(sizes, expected):
    assert capacities(np.array(sizes), max(sizes)) == expected


def test_roomy_numbers_are_a_quarter_or_an_eighth_apart():
    assert [roomy(rows) for rows in (0, 1, 7, 8, 9, 11, 17, 100, 1025)] == [0, 1, 7, 8, 10, 12, 20, 112, 1280]
    assert [roomy(rows, 8) for rows in (0, 1, 15, 16, 17, 33, 100, 1025)] == [0, 1, 15, 16, 18, 36, 104, 1152]
    for parts in (4, 8):
        apart = [roomy(rows, parts) / rows - 1 for rows in range(1, 3000)]
        assert min(apart) == 0 < max(apart) < 1 / parts


def test_samples_that_are_copied_have_spare_rows_of_zeros_and_larger_ones_are_not_copied(monkeypatch):
    split = classification((5, 30, 17)).data.train
    copied = to_device(split)
    assert (len(copied.x), len(copied.y), int(copied.rows)) == (roomy(52), roomy(52), 52)
    np.testing.assert_array_equal(copied.x[:52], split.x)
    assert not np.any(copied.x[52:])
    assert not np.any(copied.y[52:])
    monkeypatch.setattr("idiolect.client.samples.COPIED", split.x.nbytes - 1)
    x = aligned_empty(split.x.shape, split.x.dtype)
    x[:] = split.x
    shared = to_device(replace(split, x=x))
    assert len(shared.x) == 52
    assert shared.x.unsafe_buffer_pointer() == x.ctypes.data


def test_tiles_are_roomy_but_within_the_rows_that_there_are():
    several, one = (classification(sizes).data.train for sizes in ((33, 5), (33,)))
    assert (tiles_of(several, TILE).rows, tiles_of(one, TILE).rows, tiles_of(several, 20).rows) == (36, 33, 20)
    made = synthetic_population(clients=12, max_size=60, validation=0.2).train
    largest = int(made.sizes.max())
    assert made.maker.capacity == largest < roomy(largest, 8)
    assert tiles_of(made, TILE).rows == largest


def test_spare_rows_change_no_bit(monkeypatch):
    """With a tile that ends at the last sample, and one that begins before it."""
    problem = classification((5, 230, 117, 61, 33))
    found = []
    for most in (COPIED, 0):
        monkeypatch.setattr("idiolect.client.samples.COPIED", most)
        data = replace(
            problem.data, **{name: replace(problem.data.stored(name)) for name in SPLITS}
        )  # not on a device
        simulation = Simulation(
            data, problem.objective, problem.params, FedAvg(rate=0.1, local_steps=3, batch_size=0)
        )
        assert (len(simulation.arrays.y) > 446) == (most > 0)
        state = simulation.advance(simulation.init(0), 2)
        (scores,) = Evaluator(simulation)(state, ("global",), ("train",))
        found.append((flat(state.shared.params).tobytes(), np.asarray(scores.loss).tobytes()))
    assert found[0] == found[1]


@pytest.mark.second
def test_training_and_scores_do_not_depend_on_the_tile(monkeypatch):
    problem = classification((5, 30, 17))
    found = []
    for cache in (CACHE, 1):
        monkeypatch.setattr("idiolect.client.samples.CACHE", cache)
        method = FedAvg(rate=0.1, local_steps=3, batch_size=0)
        simulation = Simulation(problem.data, problem.objective, problem.params, method)
        assert simulation.tile == (TILE if cache > 1 else 1)
        state = simulation.advance(simulation.init(0), 2)
        (scores,) = Evaluator(simulation)(state, ("global",), ("train",))
        found.append((flat(state.shared.params), scores.loss))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
