import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import jaxtyped

from idiolect.core.errors import ConfigError
from idiolect.models.mlp import ACTIVATIONS, MLP

KEY = jax.random.key(0)


@pytest.mark.parametrize(("hidden", "activation"), [((), "relu"), ((5, 7), "tanh"), ((5, 7), "relu")])
def test_it_is_the_numpy_network(hidden, activation):
    model = MLP(6, hidden, 3, ACTIVATIONS[activation], key=KEY)
    x = jax.random.normal(jax.random.key(1), (2, 3))
    h = np.asarray(x, np.float64).ravel()
    apply = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh}[activation]
    for layer in model.layers[:-1]:
        h = apply(np.asarray(layer.weight, np.float64) @ h + np.asarray(layer.bias, np.float64))
    expected = model.layers[-1].weight @ h + model.layers[-1].bias
    got = jaxtyped(typechecker=beartype)(MLP.__call__)(model, x)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert [layer.weight.shape[0] for layer in model.layers] == [*hidden, 3]


def test_only_arrays_are_leaves_so_it_vmaps_over_clients():
    models = [MLP(4, (5,), 2, key=key) for key in jax.random.split(KEY, 2)]
    parts = [eqx.partition(model, eqx.is_inexact_array) for model in models]
    assert all(jax.tree.leaves(static) == [] for _, static in parts)
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[params for params, _ in parts])
    x = jax.random.normal(KEY, (2, 4))
    got = jax.vmap(lambda params, x: eqx.combine(params, parts[0][1])(x))(stacked, x)
    np.testing.assert_allclose(got, [m(row) for m, row in zip(models, x, strict=True)], atol=1e-6)


@pytest.mark.parametrize("widths", [(0, (5,), 2), (4, (5, 0), 2), (4, (-5,), 2), (4, (5,), 0)])
def test_widths_must_be_positive(widths):
    with pytest.raises(ConfigError, match="must be positive"):
        MLP(*widths, key=KEY)
