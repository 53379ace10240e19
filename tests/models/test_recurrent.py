"""GRU and LSTM against their equations, step by step in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.models.recurrent import GRU, LSTM

TIME, INPUTS, WIDTH = 6, 3, 4
X = np.random.default_rng(0).normal(size=(TIME, INPUTS)).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def parts(layer, h, x, gates):
    """What inputs and state add to each gate."""
    g = layer.gates
    given, own = g.of_input @ x + g.input_bias, g.of_state @ h + g.state_bias
    return np.split(np.asarray(given), gates), np.split(np.asarray(own), gates)


def test_the_gru_follows_its_equations():
    layer, h, states = GRU(INPUTS, WIDTH, key=jax.random.key(0)), np.zeros(WIDTH), []
    for x in X:
        (a_r, a_z, a_n), (b_r, b_z, b_n) = parts(layer, h, x, 3)
        reset, update = sigmoid(a_r + b_r), sigmoid(a_z + b_z)
        h = (1 - update) * np.tanh(a_n + reset * b_n) + update * h
        states.append(h)
    np.testing.assert_allclose(layer(jnp.asarray(X)), states, atol=1e-6)


def test_the_lstm_follows_its_equations():
    layer, h, c, states = LSTM(INPUTS, WIDTH, key=jax.random.key(0)), np.zeros(WIDTH), np.zeros(WIDTH), []
    for x in X:
        i, f, g, o = (a + b for a, b in zip(*parts(layer, h, x, 4), strict=True))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    np.testing.assert_allclose(layer(jnp.asarray(X)), states, atol=1e-6)


def test_a_size_that_is_not_positive_is_refused():
    for kind in (GRU, LSTM):
        with pytest.raises(ConfigError, match="must be positive"):
            kind(0, WIDTH, key=jax.random.key(0))
