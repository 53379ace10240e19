"""AFL: agnostic federated learning, one model that is good for every mixture of the clients."""

from typing import ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree
from optax.projections import projection_simplex

from idiolect.algorithms.base import Cohort, Start, check
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.tree import Params, Scalar

Weights = Literal["unbiased", "normalised", "positional"]
Output = Literal["last", "average"]


class Agnostic(eqx.Module):
    """The server's state: the model, the mixture of the N clients, the mean of all models so far, and their number.

    average: None unless the method returns it. mixture: with weights = "positional" the first S entries hold the
    weights of a cohort's places after the first round.
    """

    params: Params
    mixture: Float[Array, "clients"]
    average: Params | None
    count: Int[Array, ""]


class Sent(NamedTuple):
    """What a client receives: the model to train, and, where it is the method's output, the mean of all models."""

    params: Params
    average: Params | None


class Report(NamedTuple):
    """A client's message: its trained model, and the loss of the model that it received."""

    params: Params
    loss: Float[Array, "*clients"]


def onto_simplex(point: Float[Array, "n"]) -> Float[Array, "n"]:
    """argmin ||p - point|| over p >= 0 with sum_i p_i = 1."""
    # Adding one number to all entries does not move the projection; with the largest at 0 no sum loses digits.
    return projection_simplex(point - jnp.max(point))


class AFL(Trainer):
    """AFL: min_w max_{lambda in simplex} sum_i lambda_i f_i(w), by stochastic gradients in both.

    A round, with S of N clients (Stochastic-AFL; each sum is unbiased under uniform client sampling):
        w      <- w + (N/S) sum_{i in S} lambda_i (w_i - w)
        lambda <- P(lambda + gamma_lambda (N/S) sum_{i in S} f_i(w) e_i)
    w_i is local SGD on f_i from w: with local_steps = 1 the first line is the paper's step
    w - gamma_w sum_i lambda_i grad f_i(w). f_i(w) is the loss of the w received, L2 included: on all training
    samples with batch_size = 0, else on the round's first mini-batch, that of the first gradient. P is the
    Euclidean projection onto the simplex {lambda >= 0, sum_i lambda_i = 1}. w is not constrained.

    rate: gamma_w. mixture_rate: gamma_lambda; 0 leaves lambda where it starts. mixture: lambda_0, an array (N,);
    None: 1/N each. epochs, batch_size, batches: see `Trainer`.
    weights: "unbiased" as above; "normalised" divides by the cohort's own sum of lambda_i instead of multiplying by
    N/S, which takes smaller steps and is biased. "positional" is what FedU's published code does: lambda has one
    entry per place in the cohort, not per client, starts at 1/S, and
        w <- sum_k lambda_k w_(k),  lambda <- P(lambda + gamma_lambda sum_k f_(k)(w) e_k)
    where (k) is the k-th client drawn. Every round draws other clients, so no client is favoured.
    output: "last" evaluates w; "average" the mean of w_1 .. w_t, which the paper's algorithm returns and its bound
    is about (clients then receive both).

    Model: `global` is w, or that mean.

    Source: Mohri, Sivek, Suresh, "Agnostic Federated Learning", ICML 2019, algorithm Stochastic-AFL with the
    PerDomain gradient.
    """

    name: ClassVar[str] = "afl"
    title: ClassVar[str] = "AFL"
    summary: ClassVar[str] = "one model that is good for every mixture of the clients"
    source: ClassVar[str] = "Mohri, Sivek, Suresh, ICML 2019, Stochastic-AFL"

    mixture_rate: Scalar = 0.01
    mixture: PyTree | None = None
    local_steps: int = eqx.field(static=True, default=1)
    weights: Weights = eqx.field(static=True, default="unbiased")
    output: Output = eqx.field(static=True, default="last")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, mixture_rate="nonnegative", weights=get_args(Weights), output=get_args(Output))
        if self.mixture is not None and not isinstance(self.mixture, Tracer):
            given = np.asarray(self.mixture)
            numbers = given.dtype.kind in "iuf" and given.ndim == 1
            require(
                numbers and bool((given >= 0).all()) and abs(float(given.sum()) - 1) < 1e-4,
                f"afl: mixture = {self.mixture!r} must be an array of weights, none negative, that sum to 1",
            )
            require(
                self.weights != "positional",
                'afl: mixture gives one weight per client, but weights = "positional" has one per place in a cohort',
            )

    def check_start(self, start: Start) -> None:
        """lambda_0 must have one weight for each client."""
        if self.mixture is not None:
            given, clients = len(self.mixture), start.clients
            require(given == clients, f"afl: mixture has {given} weights, but there are {clients} clients")

    def init(self, start: Start, key: PRNGKeyArray) -> Agnostic:
        """The initial model, lambda_0, and no models averaged yet."""
        del key
        real = jnp.result_type(float)
        mixture = jnp.full(start.clients, 1 / start.clients) if self.mixture is None else self.mixture
        average = start.params if self.output == "average" else None
        return Agnostic(start.params, jnp.asarray(mixture, real), average, jnp.zeros((), jnp.int32))

    def view(self, shared: Agnostic, client_id: Int[Array, ""]) -> Sent:
        """The model; never the mixture."""
        del client_id
        return Sent(shared.params, shared.average)

    def first_loss(self, w: Params, client: Client, key: PRNGKeyArray) -> Float[Array, ""]:
        """f_i(w) on the samples of the round's first gradient."""
        if self.batch_size == 0:
            return client.full_value_and_grad(w)[0]
        order = "epoch" if self.epochs else self.batches
        return client.loss(w, client.batch(key, 0, self.batch_size, order, self.local_steps))

    def local(self, view: Sent, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Report, PyTree]:
        """Message: w_i, and f_i(w) at the w received."""
        trained = self.train(view.params, client, key)
        return Report(trained, self.first_loss(view.params, client, key)), private

    def aggregate(self, shared: Agnostic, cohort: Cohort, messages: Report) -> Agnostic:
        """The lambda-weighted step of w, and projected ascent in lambda."""
        if self.weights == "positional":
            params, mixture = self.by_place(shared, cohort, messages)
        else:
            params, mixture = self.by_client(shared, cohort, messages)
        count = shared.count + 1
        share = 1 / count.astype(jnp.result_type(float))  # an integer would be divided in single precision
        average = None if shared.average is None else tree.lerp(shared.average, params, share)
        return Agnostic(params, mixture, average, count)

    def by_client(self, shared: Agnostic, cohort: Cohort, messages: Report) -> tuple[Params, Float[Array, "clients"]]:
        """(w, lambda) after a round, lambda one weight per client."""
        scale = cohort.population / cohort.expected
        weights = jnp.where(cohort.present, shared.mixture[cohort.ids], 0)
        total = jnp.sum(weights)
        mean = tree.weighted_mean(messages.params, weights)
        moved = tree.lerp(shared.params, mean, 1.0 if self.weights == "normalised" else scale * total)
        # A cohort whose clients all have weight 0 has no mean, and moves nothing.
        params = jax.tree.map(lambda new, old: jnp.where(total > 0, new, old), moved, shared.params)
        gain = jnp.where(cohort.present, messages.loss, 0).astype(shared.mixture.dtype)
        return params, onto_simplex(shared.mixture.at[cohort.ids].add(self.mixture_rate * scale * gain))

    def by_place(self, shared: Agnostic, cohort: Cohort, messages: Report) -> tuple[Params, Float[Array, "clients"]]:
        """(w, lambda) after a round, lambda one weight per place in the cohort."""
        places = len(cohort.ids)
        held = shared.mixture[:places]  # 1/N each at first: the mean and the projection see differences only
        weights = jnp.where(cohort.present, held, 0)
        params = tree.weighted_mean(messages.params, weights)
        params = jax.tree.map(lambda new, old: jnp.where(jnp.sum(weights) > 0, new, old), params, shared.params)
        gain = jnp.where(cohort.present, messages.loss, 0).astype(held.dtype)
        mixture = jnp.zeros_like(shared.mixture).at[:places].set(onto_simplex(held + self.mixture_rate * gain))
        return params, mixture

    def models(self, view: Sent, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """global: w, or the mean of all w."""
        return {"global": Shared(view.params if view.average is None else view.average)}
