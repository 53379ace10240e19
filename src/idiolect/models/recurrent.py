"""Recurrent layers over one sequence, (time, in) -> (time, width).

What the inputs add to every gate is one product for all times; only what the state adds is left to the loop.
"""

from math import sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from idiolect.core.errors import require


class _Gates(eqx.Module):
    """The weights of `count` gates. Drawn as PyTorch does: uniform in +-1/sqrt(width)."""

    of_input: Float[Array, "gates in"]
    of_state: Float[Array, "gates width"]
    input_bias: Float[Array, "gates"]
    state_bias: Float[Array, "gates"]

    def __init__(self, inputs: int, width: int, count: int, key: PRNGKeyArray) -> None:
        require(min(inputs, width) > 0, f"a recurrent layer's sizes must be positive, not {inputs} and {width}")
        shapes = ((count * width, inputs), (count * width, width), (count * width,), (count * width,))
        limit, keys = 1 / sqrt(width), jax.random.split(key, len(shapes))
        self.of_input, self.of_state, self.input_bias, self.state_bias = (
            jax.random.uniform(one, shape, jnp.float32, -limit, limit)
            for one, shape in zip(keys, shapes, strict=True)
        )

    @property
    def width(self) -> int:
        """Entries of the state."""
        return self.of_state.shape[1]

    def inputs(self, x: Float[Array, "time in"]) -> Float[Array, "time gates"]:
        """What the inputs add to the gates."""
        return x @ self.of_input.T + self.input_bias

    def state(self, h: Float[Array, "width"]) -> Float[Array, "gates"]:
        """What the state adds to the gates."""
        return self.of_state @ h + self.state_bias


class GRU(eqx.Module):
    """h_t = (1 - z) n + z h_{t-1}, r, z = sigmoid(W x_t + U h_{t-1}), n = tanh(W_n x_t + b + r (U_n h_{t-1} + c)).

    (time, in) -> (time, width), h_0 = 0. As PyTorch's, with its two biases. there: h_t = h_{t-1} where it is false.

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP 2014.
    """

    gates: _Gates

    def __init__(self, inputs: int, width: int, *, key: PRNGKeyArray) -> None:
        self.gates = _Gates(inputs, width, 3, key)

    def __call__(
        self, x: Float[Array, "time in"], there: Bool[Array, "time"] | None = None
    ) -> Float[Array, "time width"]:
        """The states at all times."""
        width = self.gates.width

        def step(h: Array, given: tuple[Array, Array | None]) -> tuple[Array, Array]:
            inputs, now = given
            own = self.gates.state(h)
            reset, update = jnp.split(jax.nn.sigmoid(inputs[: 2 * width] + own[: 2 * width]), 2)
            new = jnp.tanh(inputs[2 * width :] + reset * own[2 * width :])
            new = new + update * (h - new)
            h = new if now is None else jnp.where(now, new, h)
            return h, h

        inputs = self.gates.inputs(x)
        return jax.lax.scan(step, jnp.zeros(width, inputs.dtype), (inputs, there))[1]


class LSTM(eqx.Module):
    """c_t = f c_{t-1} + i g, h_t = o tanh(c_t); i, f, o = sigmoid and g = tanh of W x_t + U h_{t-1}.

    (time, in) -> (time, width), h_0 = c_0 = 0. As PyTorch's, with its two biases.

    Source: Hochreiter, Schmidhuber, "Long Short-Term Memory", Neural Computation 1997.
    """

    gates: _Gates

    def __init__(self, inputs: int, width: int, *, key: PRNGKeyArray) -> None:
        self.gates = _Gates(inputs, width, 4, key)

    def __call__(self, x: Float[Array, "time in"]) -> Float[Array, "time width"]:
        """The states h at all times."""

        def step(carry: tuple[Array, Array], given: Array) -> tuple[tuple[Array, Array], Array]:
            h, c = carry
            i, f, g, o = jnp.split(given + self.gates.state(h), 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        given = self.gates.inputs(x)
        zero = jnp.zeros(self.gates.width, given.dtype)
        return jax.lax.scan(step, (zero, zero), given)[1]
