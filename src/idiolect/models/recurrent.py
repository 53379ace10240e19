"""Recurrent layers over one sequence, (time, in) -> (time, width).

The inputs' part of the gates is one matrix product for all times; only the state's part is computed in the loop.
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
            jax.random.uniform(layer_key, shape, jnp.float32, -limit, limit)
            for layer_key, shape in zip(keys, shapes, strict=True)
        )

    @property
    def width(self) -> int:
        """Entries of the state."""
        return self.of_state.shape[1]

    def inputs(self, x: Float[Array, "time in"]) -> Float[Array, "time gates"]:
        """The inputs' part of the gates: W x_t + bias."""
        return x @ self.of_input.T + self.input_bias

    def state(self, h: Float[Array, "width"]) -> Float[Array, "gates"]:
        """The state's part of the gates: U h + bias."""
        return self.of_state @ h + self.state_bias


class GRU(eqx.Module):
    """h_t = (1 - z) n + z h_{t-1}, r, z = sigmoid(W x_t + U h_{t-1}), n = tanh(W_n x_t + b + r (U_n h_{t-1} + c)).

    (time, in) -> (time, width), h_0 = 0. Two biases as in PyTorch. valid: where False, the state is kept,
    h_t = h_{t-1}.

    Source: Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", EMNLP 2014.
    """

    gates: _Gates

    def __init__(self, inputs: int, width: int, *, key: PRNGKeyArray) -> None:
        self.gates = _Gates(inputs, width, 3, key)

    def __call__(
        self, x: Float[Array, "time in"], valid: Bool[Array, "time"] | None = None
    ) -> Float[Array, "time width"]:
        """The states at all times."""
        width = self.gates.width

        def step(h: Array, inputs_and_valid: tuple[Array, Array | None]) -> tuple[Array, Array]:
            inputs, is_valid = inputs_and_valid
            state_part = self.gates.state(h)
            reset, update = jnp.split(jax.nn.sigmoid(inputs[: 2 * width] + state_part[: 2 * width]), 2)
            new = jnp.tanh(inputs[2 * width :] + reset * state_part[2 * width :])
            new = new + update * (h - new)
            h = new if is_valid is None else jnp.where(is_valid, new, h)
            return h, h

        inputs = self.gates.inputs(x)
        return jax.lax.scan(step, jnp.zeros(width, inputs.dtype), (inputs, valid))[1]


class LSTM(eqx.Module):
    """c_t = f c_{t-1} + i g, h_t = o tanh(c_t); i, f, o = sigmoid and g = tanh of W x_t + U h_{t-1}.

    (time, in) -> (time, width), h_0 = c_0 = 0. Two biases as in PyTorch.

    Source: Hochreiter, Schmidhuber, "Long Short-Term Memory", Neural Computation 1997.
    """

    gates: _Gates

    def __init__(self, inputs: int, width: int, *, key: PRNGKeyArray) -> None:
        self.gates = _Gates(inputs, width, 4, key)

    def __call__(self, x: Float[Array, "time in"]) -> Float[Array, "time width"]:
        """The states h at all times."""

        def step(carry: tuple[Array, Array], input_parts: Array) -> tuple[tuple[Array, Array], Array]:
            h, c = carry
            i, f, g, o = jnp.split(input_parts + self.gates.state(h), 4)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        input_parts = self.gates.inputs(x)
        zero = jnp.zeros(self.gates.width, input_parts.dtype)
        return jax.lax.scan(step, (zero, zero), input_parts)[1]
