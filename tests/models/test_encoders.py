"""The encoders: sizes, and a signal through lax's own convolution and pooling."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.models.encoders import Dense, Signal, Text

KEY = jax.random.key(0)


@eqx.filter_jit
def outputs(encoder, x):
    return encoder(x)


@eqx.filter_jit
def states(encoder, h):
    return encoder.recurrent(h).mean(axis=0)


def test_the_published_sizes_have_the_published_number_of_parameters():
    encoder = eqx.filter_eval_shape(Signal, (128, 3), 128, channels=(32, 64, 128), key=KEY)
    assert sum(leaf.size for leaf in jax.tree.leaves(encoder)) == 150_976


@pytest.mark.parametrize("pool", [1, 2, 3])
def test_a_signal_is_convolved_pooled_and_averaged_over_the_states(pool):
    encoder = Signal((11, 2), 4, channels=(3, 5), kernel=4, pool=pool, key=KEY)
    x = jax.random.normal(jax.random.key(1), (11, 2))

    @jax.jit
    def features(h):
        for layer in encoder.convolutions:
            layout = ("NHC", "HIO", "NHC")
            h = jax.lax.conv_general_dilated(h[None], layer.weight[:, 0], (1,), "SAME", dimension_numbers=layout)[0]
            h = jax.nn.relu(h + layer.bias)
            h = jnp.stack([h[i : i + pool].max(axis=0) for i in range(0, len(h) - pool + 1, pool)])
        return h

    np.testing.assert_allclose(outputs(encoder, x), states(encoder, features(x)), atol=1e-6)


def test_without_convolutions_it_is_the_gru_alone():
    encoder, x = Signal((5, 3), 4, channels=(), key=KEY), jax.random.normal(KEY, (5, 3))
    np.testing.assert_allclose(outputs(encoder, x), states(encoder, x), atol=1e-6)


def test_a_feature_vector_goes_through_a_perceptron_with_relu():
    encoder, x = Dense((5,), 4, hidden=(6,), key=KEY), jax.random.normal(KEY, (5,))
    first, second = encoder.layers.layers
    expected = np.maximum(second(jax.nn.relu(first(x))), 0)
    np.testing.assert_allclose(outputs(encoder, x), expected, atol=1e-6)
    assert (expected == 0).any()


def test_a_text_is_the_mean_of_the_states_over_its_words_wherever_padding_stands():
    encoder, words = Text((9, 3), 4, key=KEY), np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    expected = encoder.recurrent(jnp.asarray(words)).mean(axis=0)
    for places in ([0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [0, 2, 3, 5, 8]):
        x = np.zeros((9, 3), np.float32)
        x[places] = words
        np.testing.assert_allclose(outputs(encoder, jnp.asarray(x)), expected, atol=1e-6)
    np.testing.assert_array_equal(outputs(encoder, jnp.zeros((9, 3))), 0)
    slope = jax.grad(lambda e: e(jnp.zeros((9, 3))).sum())(encoder)
    assert all(not leaf.any() for leaf in jax.tree.leaves(slope))


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="a signal of 7 times is too short for 3 poolings of 2"):
        Signal((7, 3), 4, channels=(2, 2, 2), key=KEY)
    with pytest.raises(ConfigError, match=r"a signal must be \(time, channels\), not \(7,\)"):
        Signal((7,), 4, key=KEY)
    with pytest.raises(ConfigError, match=r"a text must be \(words, numbers\), not \(7,\)"):
        Text((7,), 4, key=KEY)
