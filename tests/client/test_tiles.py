import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect import FedAvg
from idiolect.client.objective import objective_of
from idiolect.client.tiles import CACHE, TILE, capacities, equal_tiles, most_rows
from idiolect.models import build
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests.federations import classification, flat


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
        # The weights of a perceptron are no value of a sample; of a convolution 14 x 14 patches of 9 x 64 are.
        ({"name": "mlp", "hidden": [4000]}, (3000,), TILE),
        ({"name": "omniglot-cnn"}, (28, 28, 1), CACHE // (14 * 14 * 9 * 64 * 4)),
    ],
)
def test_models_of_the_zoo(model, shape, expected):
    assert rows(build(model, shape, 5, "classification", jax.random.key(0)), shape) == expected


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
    assert capacities(np.array(sizes)) == expected


def test_training_and_scores_do_not_depend_on_the_tile(monkeypatch):
    problem = classification((5, 30, 17))
    found = []
    for cache in (CACHE, 1):
        monkeypatch.setattr("idiolect.client.tiles.CACHE", cache)
        method = FedAvg(rate=0.1, local_steps=3, batch_size=0)
        simulation = Simulation(problem.data, problem.objective, problem.params, method)
        assert simulation.tile == (TILE if cache > 1 else 1)
        state = simulation.advance(simulation.init(0), 2)
        (scores,) = Evaluator(simulation)(state, ("global",), ("train",))
        found.append((flat(state.shared.params), scores.loss))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
