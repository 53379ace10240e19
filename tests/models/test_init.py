import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from jax.example_libraries import stax

from idiolect.core.errors import ConfigError
from idiolect.models.cnn import CNN
from idiolect.models.conv import Conv2d
from idiolect.models.dense import MLP, MultinomialLogistic
from idiolect.models.init import INITIALISATIONS, initialise
from tests.tiers import second

KEY = jax.random.key(3)


class TwoLayers(eqx.Module):
    first: eqx.Module
    second: eqx.nn.Linear


def linear(key=KEY):
    return eqx.nn.Linear(200, 300, key=key)


def uniform_in(values, limit):
    """All within +-limit, reaching near it, with the moments of the uniform law."""
    values = np.asarray(values, np.float64).ravel()
    assert np.abs(values).max() <= limit * (1 + 1e-6)
    assert np.abs(values).max() > 0.97 * limit
    assert abs(values.mean()) < 5 * limit / np.sqrt(3 * values.size)
    if values.size > 1000:
        np.testing.assert_allclose(values.std(), limit / np.sqrt(3), rtol=0.02)


@pytest.mark.parametrize(
    ("layer", "fan_in", "fan_out"),
    [
        (linear(), 200, 300),
        (Conv2d(8, 100, (3, 5), key=KEY), 15 * 8, 15 * 100),
        second(eqx.nn.Conv2d(8, 100, (3, 5), key=KEY), 15 * 8, 15 * 100),
        second(eqx.nn.Conv1d(8, 100, 7, groups=2, key=KEY), 7 * 4, 7 * 100),
    ],
)
def test_bounds_and_moments_of_each_law(layer, fan_in, fan_out):
    torch = initialise(layer, "pytorch", KEY)
    uniform_in(torch.weight, 1 / np.sqrt(fan_in))
    uniform_in(torch.bias, 1 / np.sqrt(fan_in))
    glorot = initialise(layer, "glorot_uniform", KEY)
    uniform_in(glorot.weight, np.sqrt(6 / (fan_in + fan_out)))
    he = initialise(layer, "he_normal", KEY)
    np.testing.assert_allclose(he.weight.std(), np.sqrt(2 / fan_in), rtol=0.05)
    assert jnp.abs(he.weight).max() > 3 * np.sqrt(2 / fan_in)  # not truncated
    unit = initialise(layer, "uniform", KEY)
    uniform_in(2 * unit.weight - 1, 1)
    uniform_in(2 * unit.bias - 1, 1)
    orthogonal = initialise(layer, "orthogonal", KEY)
    for zero_bias in (glorot, he, orthogonal, initialise(layer, "zeros", KEY)):
        assert not zero_bias.bias.any()
    assert not initialise(layer, "zeros", KEY).weight.any()
    for drawn in (torch, glorot, he, unit, orthogonal):
        assert jax.tree.structure(drawn) == jax.tree.structure(layer)
        assert drawn.weight.shape == layer.weight.shape
        assert drawn.bias.shape == layer.bias.shape


@pytest.mark.parametrize(
    ("layer", "fan_in", "fan_out", "bias"),
    [
        (linear(), 200, 300, 1e-2),
        (Conv2d(8, 100, (3, 5), key=KEY), 15 * 8, 15 * 100, 1e-6),
        (eqx.nn.Conv2d(8, 100, (3, 5), key=KEY), 15 * 8, 15 * 100, 1e-6),
    ],
)
def test_stax_draws_from_the_laws_of_jaxs_stax(layer, fan_in, fan_out, bias):
    """The weight: a normal law cut at two deviations, with variance 2 / (fan_in + fan_out) after the cut."""
    drawn = initialise(layer, "stax", KEY)
    weight = np.asarray(drawn.weight, np.float64).ravel()
    deviation = np.sqrt(2 / (fan_in + fan_out))
    np.testing.assert_allclose(weight.std(), deviation, rtol=0.02)
    before = deviation / scipy.stats.truncnorm(-2, 2).std()
    assert 1.97 * before < np.abs(weight).max() <= 2 * before * (1 + 1e-6)
    assert scipy.stats.kstest(weight / before, scipy.stats.truncnorm(-2, 2).cdf).pvalue > 0.01
    assert scipy.stats.kstest(np.asarray(drawn.bias).ravel() / bias, scipy.stats.norm.cdf).pvalue > 0.01


def test_stax_has_the_moments_of_the_library_itself():
    keys = jax.random.split(KEY, 40)
    theirs, their_bias = jax.vmap(lambda key: stax.Dense(60)[0](key, (-1, 50))[1])(keys)
    ours = jax.vmap(lambda key: initialise(eqx.nn.Linear(50, 60, key=KEY), "stax", key))(keys)
    assert scipy.stats.ks_2samp(np.ravel(theirs), np.ravel(ours.weight)).pvalue > 0.01
    assert scipy.stats.ks_2samp(np.ravel(their_bias), np.ravel(ours.bias)).pvalue > 0.01


@pytest.mark.parametrize(
    ("layer", "outputs"),
    [
        (eqx.nn.Linear(20, 5, key=KEY), 0),
        (eqx.nn.Linear(20, 5, use_bias=False, key=KEY), 0),
        (eqx.nn.Linear(5, 20, key=KEY), 0),
        (eqx.nn.Conv2d(4, 6, (2, 3), key=KEY), 0),
        (Conv2d(4, 6, (2, 3), key=KEY), -1),
    ],
)
def test_uniform_orthogonal_is_the_polar_factor_of_the_uniform_draw(layer, outputs):
    """The bias is the last column of the matrix, as in PFLEGO's published code; the factor is computed by scipy."""

    def matrix(drawn):
        weight = np.moveaxis(np.asarray(drawn.weight, np.float64), outputs, 0).reshape(
            drawn.weight.shape[outputs], -1
        )
        return weight if drawn.bias is None else np.column_stack([weight, np.ravel(drawn.bias)])

    found, uniform = (matrix(initialise(layer, name, KEY)) for name in ("uniform_orthogonal", "uniform"))
    np.testing.assert_allclose(found, scipy.linalg.polar(uniform)[0], atol=1e-5)
    gram = found @ found.T if len(found) <= found.shape[1] else found.T @ found
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)
    assert found.mean() > 0.01  # not uniform among orthonormal matrices: what was positive stays so on average


@pytest.mark.parametrize(
    ("layer", "outputs"),
    [
        (eqx.nn.Linear(20, 5, key=KEY), 0),
        (eqx.nn.Linear(5, 20, key=KEY), 0),
        (eqx.nn.Conv2d(4, 6, (2, 3), key=KEY), 0),
        (Conv2d(4, 6, (2, 3), key=KEY), -1),
        (Conv2d(3, 3, 3, key=KEY), -1),
    ],
)
def test_orthogonal_weights_are_orthonormal(layer, outputs):
    """As many outputs as there is room for; all outputs have the same length if they are fewer than the inputs."""
    drawn = initialise(layer, "orthogonal", KEY).weight
    matrix = np.moveaxis(np.asarray(drawn), outputs, 0).reshape(drawn.shape[outputs], -1)
    gram = matrix @ matrix.T if len(matrix) <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)


def test_a_layer_whose_weight_is_elsewhere_keeps_its_bias():
    body, head = eqx.partition(TwoLayers(linear(), linear()), lambda leaf: leaf.ndim == 2)
    drawn = initialise(body, "uniform", KEY)
    assert drawn.first.bias is None
    assert drawn.second.weight.min() >= 0
    with pytest.raises(ConfigError, match="has no Linear"):
        initialise(head, "uniform", KEY)


@pytest.mark.parametrize("name", sorted(INITIALISATIONS))
def test_only_the_name_and_key_matter(name):
    a, b = MultinomialLogistic(5, 3, key=KEY), MultinomialLogistic(5, 3, key=jax.random.key(99))
    a, b = initialise(a, name, KEY), initialise(b, name, KEY)
    np.testing.assert_array_equal(a.linear.weight, b.linear.weight)
    other = initialise(a, name, jax.random.key(4))
    assert (name == "zeros") == bool((a.linear.weight == other.linear.weight).all())


def test_layers_differ_and_depend_on_their_path_alone():
    model = initialise(TwoLayers(linear(), linear()), "pytorch", KEY)
    assert not (model.first.weight == model.second.weight).any()
    assert not (model.first.bias[:200] == model.first.weight[0]).any()
    deeper = initialise(TwoLayers(MLP(4, (3,), 2, key=KEY), linear()), "pytorch", KEY)
    np.testing.assert_array_equal(deeper.second.weight, model.second.weight)


def test_it_works_under_jit_and_leaves_other_arrays_alone():
    model = TwoLayers(eqx.nn.LayerNorm(4), eqx.nn.Linear(4, 2, use_bias=False, key=KEY))
    model = eqx.tree_at(lambda m: m.first.weight, model, jnp.full(4, 7.0))
    drawn = initialise(model, "he_normal", KEY)
    compiled = eqx.filter_jit(initialise)(model, "he_normal", KEY)
    np.testing.assert_array_equal(drawn.first.weight, jnp.full(4, 7.0))
    assert drawn.second.bias is None
    assert not (drawn.second.weight == model.second.weight).any()
    np.testing.assert_allclose(drawn.second.weight, compiled.second.weight, rtol=1e-6)


@pytest.mark.parametrize("seed", [0, 2**31, 2**32 - 1])
def test_any_seed_and_old_style_keys_do(seed):
    assert jnp.isfinite(initialise(linear(), "pytorch", jax.random.PRNGKey(seed)).weight).all()


def test_every_layer_of_the_cnn_is_redrawn():
    model = CNN((10, 10), 2, channels=(2, 3), kernel=3, dense=(4,), key=KEY)
    drawn = initialise(model, "glorot_uniform", KEY)
    for before, after in zip(jax.tree.leaves(model), jax.tree.leaves(drawn), strict=True):
        assert not (before == after).any()


def test_errors_say_why():
    with pytest.raises(ConfigError, match="did you mean 'pytorch'"):
        initialise(linear(), "pytorh", KEY)
    with pytest.raises(ConfigError, match="'zeros' cannot train MLP: of its 2 layers"):
        initialise(MLP(4, (3,), 2, key=KEY), "zeros", KEY)
    with pytest.raises(ConfigError, match="LayerNorm has no Linear"):
        initialise(eqx.nn.LayerNorm(4), "pytorch", KEY)
