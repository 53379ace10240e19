"""One-shot averaging: local training, and one average of all models at the end."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from idiolect.algorithms.base import Cohort, Start, Weighting, check
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params


class Average(eqx.Module):
    """The server's state: the mean of the latest models of the clients that have reported, and their weight."""

    params: Params
    weight: Float[Array, ""]


class Own(NamedTuple):
    """A client's own model, and whether the server has had one from it."""

    model: Params
    reported: Bool[Array, ""]


class Report(NamedTuple):
    """The client's model less the one it reported before, if any; and 1 if this is its first report, else 0."""

    change: Params
    first: Float[Array, "*clients"]


class OneShot(Trainer):
    """One-shot averaging: w = sum_i p_i w_i, where w_i is what client i reaches by local training on f_i.

    A client trains as under `Local`, with `local_steps` or `epochs` per round, and continues from its own model.
    Nothing that the server computes enters the training: sending the models once, after the last round, gives the
    same average. They are reported in every round only so that the average can be evaluated at any time. What is
    averaged are the latest models of ALL clients that have reported so far, not only of the last cohort. A client
    reports the change of its model, so that the server keeps one mean and one number, no row for a client.

    rate, local_steps, epochs, batch_size, batches: see `Trainer`.
    weighting: p_i equal ("uniform", as published) or by training samples ("size").

    Models: `global` is the average w, the initial model before any client has reported; `local` is w_i.

    Source: Zhang, Duchi, Wainwright, "Communication-Efficient Algorithms for Statistical Optimization", JMLR 2013
    (AVGM).
    """

    name: ClassVar[str] = "one-shot"
    title: ClassVar[str] = "One-shot averaging"
    summary: ClassVar[str] = "local training, then one average of all models"
    source: ClassVar[str] = "Zhang, Duchi, Wainwright, JMLR 2013, AVGM"
    model_names: ClassVar[tuple[str, ...]] = ("global", "local")

    weighting: Weighting = eqx.field(static=True, default="uniform")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, weighting=("uniform", "size"))

    def init(self, start: Start, key: PRNGKeyArray) -> Average:
        """The initial model, with no weight."""
        del key
        return Average(start.params, jnp.zeros(()))

    def init_private(self, start: Start, key: PRNGKeyArray) -> Own:
        """All clients start from the same initial model."""
        del key
        return Own(start.params, jnp.asarray(False))

    def local(self, view: Average, private: Own, client: Client, key: PRNGKeyArray) -> tuple[Report, Own]:
        """Message: the change of the client's model, the whole of it the first time."""
        model = self.train(private.model, client, key)
        change = jax.tree.map(lambda new, old: new - jnp.where(private.reported, old, 0), model, private.model)
        return Report(change, jnp.where(private.reported, 0.0, 1.0)), Own(model, jnp.asarray(True))

    def aggregate(self, shared: Average, cohort: Cohort, messages: Report) -> Average:
        """W' = W + sum_{first} p_i; w' = (W w + sum_i p_i change_i) / W'."""
        weights = cohort.weights(self.weighting)
        weight = shared.weight + jnp.sum(jnp.where(cohort.present, weights * messages.first, 0))
        mean = tree.weighted_mean(messages.change, weights)
        kept = jax.tree.map(lambda w: w * (shared.weight / weight).astype(w.dtype), shared.params)
        return Average(tree.add_scaled(kept, jnp.sum(weights) / weight, mean), weight)

    def models(self, view: Average, private: Own, client: Client, key: PRNGKeyArray) -> Models:
        """global: the average; local: the client's own model."""
        return {"global": Shared(view.params), "local": private.model}
