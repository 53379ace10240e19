"""Models on flattened features: logistic regression, linear regression, and the multilayer perceptron."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from idiolect.core.errors import require
from idiolect.core.plugins import named
from idiolect.core.settings import Setting
from idiolect.models.spec import ACTIVATIONS, ActivationName, Spec, Widths


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


Activation = Callable[[Array], Array]


class MLP(eqx.Module):
    """Fully connected layers, h_0 = x, h_{l+1} = activation(W_l h_l + b_l), outputs W_L h_L + b_L.

    x: features of one sample, any shape with `in_features` entries; outputs: (num_outputs,).
    layers: the hidden ones in order, then the output layer. Raises `ConfigError` on a width that is not
    positive.
    """

    layers: tuple[eqx.nn.Linear, ...]
    activation: Activation = eqx.field(static=True)

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        num_outputs: int,
        activation: Activation = jax.nn.relu,
        *,
        key: PRNGKeyArray,
    ) -> None:
        widths = (in_features, *hidden, num_outputs)
        require(all(w > 0 for w in widths), f"every width of an MLP must be positive, not {widths}")
        keys = jax.random.split(key, len(widths) - 1)
        self.layers = tuple(
            eqx.nn.Linear(before, after, dtype=jnp.float32, key=layer_key)
            for before, after, layer_key in zip(widths[:-1], widths[1:], keys, strict=True)
        )
        self.activation = activation

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "outputs"]:
        """Outputs for one sample."""
        h = jnp.ravel(x)
        for layer in self.layers[:-1]:
            h = self.activation(layer(h))
        return self.layers[-1](h)


@named("mlr", description="multinomial logistic regression", tasks=("classification",), instead="linear, mlp or cnn")
def mlr(spec: Spec, feature_shape: tuple[int, ...], num_outputs: int, key: PRNGKeyArray) -> eqx.Module:  # noqa: ARG001
    """Build a `MultinomialLogistic`."""
    return MultinomialLogistic(prod(feature_shape), num_outputs, key=key)


@named("linear", description="linear regression", tasks=("regression",), instead="mlr, mlp or cnn")
def linear(spec: Spec, feature_shape: tuple[int, ...], num_outputs: int, key: PRNGKeyArray) -> eqx.Module:  # noqa: ARG001
    """Build a `LinearRegression`."""
    return LinearRegression(prod(feature_shape), key=key)


_FACTS: dict[str, Any] = {
    "keys": {"hidden": Setting(Widths, [100]), "activation": Setting(ActivationName, "relu")},
    "words": f"hidden: widths of the hidden layers. activation: {', '.join(ACTIVATIONS)}.",
}


@named("mlp", description="multilayer perceptron; hidden = widths, one layer of 100 by default", **_FACTS)
@named("dnn", description="the same as mlp, by the name that papers give it", **_FACTS)
def mlp(spec: Spec, feature_shape: tuple[int, ...], num_outputs: int, key: PRNGKeyArray) -> eqx.Module:
    """Build an `MLP`."""
    return MLP(prod(feature_shape), spec["hidden"], num_outputs, ACTIVATIONS[spec["activation"]], key=key)
