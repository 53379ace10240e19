"""L2GD: loopless local gradient descent on a mixture of global and local models."""

from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Bool, Int, PRNGKeyArray, UInt32

from idiolect.algorithms.base import Algorithm, Cohort, Start, check
from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class Centre(eqx.Module):
    """The server's state: the mean of the clients' models, and the bits from which every round's coin derives."""

    params: Params
    coins: UInt32[Array, "words"]


class L2GD(Algorithm):
    """L2GD: min (1/n) sum_i f_i(x_i) + lambda / (2 n) sum_i ||x_i - xbar||^2, xbar = (1/n) sum_i x_i.

    A round is one iteration (Algorithm 1), the same coin for all clients:
        with probability p:  x_i <- (1 - alpha lambda / (n p)) x_i + alpha lambda / (n p) xbar
        otherwise:           x_i <- x_i - alpha / (n (1 - p)) grad f_i(x_i)
    a stochastic gradient step of size alpha, in expectation the exact one. The message is x_i: here the personal
    models themselves are sent, the server needs them for xbar. Only a round of the first kind that follows one of
    the second needs the network, p (1 - p) of all rounds in expectation; between two aggregations xbar does not move.

    All clients take part in every round: xbar is the mean of all of them. The coin is a function of the run's seed
    and the round.

    rate: alpha; the paper wants alpha lambda / (n p) <= 1/2. coupling: lambda. probability: p, 0 < p < 1.
    batch_size: 0 takes exact gradients, as published; otherwise one mini-batch, as in the paper's local SGD variant.

    Models: `personal` is x_i; `global` is xbar.

    Source: Hanzely, Richtárik, "Federated Learning of a Mixture of Global and Local Models", 2020, Algorithm 1.
    """

    name: ClassVar[str] = "l2gd"
    title: ClassVar[str] = "L2GD"
    summary: ClassVar[str] = "own models drawn to their mean at random times"
    source: ClassVar[str] = "Hanzely, Richtárik, 2020, arXiv:2002.05516, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("personal", "global")
    everyone: ClassVar[bool] = True

    rate: Scalar = 0.1
    coupling: Scalar = 1.0
    probability: Scalar = 0.2
    batch_size: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive", coupling="nonnegative", probability="decay", batch_size="whole")
        check(self, probability="positive")

    def init(self, start: Start, key: PRNGKeyArray) -> Centre:
        """The initial model, at which all clients are, and the source of the coins."""
        return Centre(start.params, jax.random.key_data(key))

    def init_private(self, start: Start, key: PRNGKeyArray) -> Params:
        """x_i starts at the initial model."""
        del key
        return start.params

    def coin(self, view: Centre, round: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether this round is an aggregation."""
        key = jax.random.fold_in(jax.random.wrap_key_data(view.coins), round)
        return jax.random.bernoulli(key, self.probability)

    def local(self, view: Centre, private: Params, client: Client, key: PRNGKeyArray) -> tuple[Params, Params]:
        """Message and private state: x_i after one iteration."""
        clients = client.federation.clients

        def aggregation() -> Params:
            return tree.lerp(private, view.params, self.rate * self.coupling / (clients * self.probability))

        def descent() -> Params:
            rate = self.rate / (clients * (1 - self.probability))
            return sgd(client, private, key, rate=rate, steps=1, batch_size=self.batch_size)

        moved = jax.lax.cond(self.coin(view, client.round), aggregation, descent)
        return moved, moved

    def aggregate(self, shared: Centre, cohort: Cohort, messages: Params) -> Centre:
        """xbar, the mean of all clients' models."""
        return Centre(tree.weighted_mean(messages, cohort.weights("uniform")), shared.coins)

    def models(self, view: Centre, private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """personal: x_i; global: xbar."""
        return {"personal": private, "global": Shared(view.params)}
