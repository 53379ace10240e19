"""FedAdagrad, FedAdam and FedYogi: federated averaging with an adaptive server."""

from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, Weighting, check
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class Moments(eqx.Module):
    """The server's state: the global model x, and the running moments m and v of the clients' mean change."""

    params: Params
    first: Params
    second: Params


class Adaptive(Trainer):
    """What FedAdagrad, FedAdam and FedYogi share: x <- x + eta m / (sqrt(v) + tau), entry by entry.

    From x_t each client of the cohort runs SGD to x_i; then the server does, with m_{-1} = 0 and v_{-1} = tau^2,
        Delta_t = mean_{i in S} (x_i - x_t)
        m_t = beta_1 m_{t-1} + (1 - beta_1) Delta_t
        v_t: each method's own rule
        x_{t+1} = x_t + eta m_t / (sqrt(v_t) + tau)
    There is no correction of the bias, as in the paper; optax's optimisers (`server_optimizer` of FedAvg) correct it.

    rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`; rate is eta_l.
    server_rate: eta. momentum: beta_1. adaptivity: tau.
    weighting: equal ("uniform", Algorithm 2) or by training samples ("size", Algorithm 5).

    Model: `global` is x.

    Source: Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2. It asks for v_{-1} >= tau^2.
    """

    server_rate: Scalar = 0.01
    momentum: Scalar = 0.9
    adaptivity: Scalar = 1e-3
    weighting: Weighting = eqx.field(static=True, default="uniform")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, server_rate="positive", momentum="decay", adaptivity="positive", weighting=("uniform", "size"))

    @abstractmethod
    def second_moment(self, v: Float[Array, "..."], square: Float[Array, "..."]) -> Float[Array, "..."]:
        """v_t from v_{t-1} and Delta_t^2."""

    def init(self, start: Start, key: PRNGKeyArray) -> Moments:
        """x_0, m_{-1} = 0, v_{-1} = tau^2."""
        del key
        tau = jax.tree.map(lambda x: jnp.full_like(x, jnp.asarray(self.adaptivity, x.dtype) ** 2), start.params)
        return Moments(start.params, jax.tree.map(jnp.zeros_like, start.params), tau)

    def view(self, shared: Moments, client_id: Int[Array, ""]) -> Params:
        """Clients receive only the model."""
        del client_id
        return shared.params

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: the locally trained model x_i."""
        return self.train(view, client, key), private

    def aggregate(self, shared: Moments, cohort: Cohort, messages: Params) -> Moments:
        """One adaptive step along the mean change of the cohort."""
        mean = tree.weighted_mean(messages, cohort.weights(self.weighting))
        change = tree.subtract(mean, shared.params)
        first = tree.lerp(change, shared.first, self.momentum)
        second = jax.tree.map(lambda v, d: self.second_moment(v, d**2), shared.second, change)

        def scaled(m: Array, v: Array) -> Array:
            return m / (jnp.sqrt(v) + jnp.asarray(self.adaptivity, v.dtype))

        return Moments(
            tree.add_scaled(shared.params, self.server_rate, jax.tree.map(scaled, first, second)), first, second
        )


class FedAdagrad(Adaptive):
    """FedAdagrad: v_t = v_{t-1} + Delta_t^2; the rest, and the hyper-parameters, are those of `Adaptive`.

    momentum is 0 by default, as in the paper's experiments.
    """

    name: ClassVar[str] = "fedadagrad"
    title: ClassVar[str] = "FedAdagrad"
    summary: ClassVar[str] = "FedAvg with Adagrad on the server"
    source: ClassVar[str] = "Reddi et al., ICLR 2021, Algorithm 2"

    momentum: Scalar = 0.0

    def second_moment(self, v: Float[Array, "..."], square: Float[Array, "..."]) -> Float[Array, "..."]:
        """v + Delta^2."""
        return v + square


class FedAdam(Adaptive):
    """FedAdam: v_t = beta_2 v_{t-1} + (1 - beta_2) Delta_t^2; the rest is that of `Adaptive`.

    second_momentum: beta_2.
    """

    name: ClassVar[str] = "fedadam"
    title: ClassVar[str] = "FedAdam"
    summary: ClassVar[str] = "FedAvg with Adam on the server"
    source: ClassVar[str] = "Reddi et al., ICLR 2021, Algorithm 2"

    second_momentum: Scalar = 0.99

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, second_momentum="decay")

    def second_moment(self, v: Float[Array, "..."], square: Float[Array, "..."]) -> Float[Array, "..."]:
        """beta_2 v + (1 - beta_2) Delta^2."""
        return tree.lerp(square, v, self.second_momentum)


class FedYogi(Adaptive):
    """FedYogi: v_t = v_{t-1} - (1 - beta_2) Delta_t^2 sign(v_{t-1} - Delta_t^2); the rest is that of `Adaptive`.

    second_momentum: beta_2.
    """

    name: ClassVar[str] = "fedyogi"
    title: ClassVar[str] = "FedYogi"
    summary: ClassVar[str] = "FedAvg with Yogi on the server"
    source: ClassVar[str] = "Reddi et al., ICLR 2021, Algorithm 2"

    second_momentum: Scalar = 0.99

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, second_momentum="decay")

    def second_moment(self, v: Float[Array, "..."], square: Float[Array, "..."]) -> Float[Array, "..."]:
        """v - (1 - beta_2) Delta^2 sign(v - Delta^2)."""
        return v - (1 - jnp.asarray(self.second_momentum, v.dtype)) * square * jnp.sign(v - square)
