"""IFCA: clients choose the group whose model fits their own samples best; each group is averaged."""

from typing import ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, Weighting, check
from idiolect.algorithms.parts.clustering import directions, divide
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.tree import Params, Scalar
from idiolect.models.init import initialise

FirstModels = Literal["warm", "random"]


class Groups(eqx.Module):
    """The server's state: the groups' models, leaves (K, ...), and whether the groups have models of their own."""

    params: Params
    started: Bool[Array, ""]


class Vote(NamedTuple):
    """A client's message: its trained model, and its group as a one-hot row of K entries."""

    model: Params
    group: Float[Array, "*clients most_groups"]


class IFCA(Trainer):
    """IFCA: min over theta_1, ..., theta_K of sum_i p_i min_k f_i(theta_k).

    A round on a client of the cohort, which receives all K models:
        k_i = argmin_k f_i(theta_k), on all its training samples
        w_i = local SGD on f_i from theta_{k_i}
    The message is w_i and the one-hot k_i. The server, for each group k:
        theta_k <- sum_{i: k_i = k} p_i w_i / sum_{i: k_i = k} p_i
    A group that nobody chose keeps its model.

    start "warm": all groups start at the initial model, and the server divides the first cohort: by k-means on
    the directions of the clients' models, centred, see `parts.clustering`. It makes theta_k of these groups, and from
    then on clients choose. Random starts often end with all clients in one group.
    start "random": as published. theta_1 is the initial model, and the others are drawn anew by PyTorch's
    initialisation.

    groups: K, a whole number. It is an array of the compiled program, so that several values run as one batch.
    most_groups: the number of models that are held and sent; those beyond `groups` are never chosen. Set it to
    `groups` where data sent matter.
    start: how the groups' models start. weighting: p_i by training samples ("size") or equal ("uniform").
    rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`.

    Model: `personal` is theta_{k_i}, the same for all clients of a group. A new client chooses by its own training
    samples.

    Raises `ConfigError` for start "random" with a model that has no Linear or convolution layer.

    Source: Ghosh, Chung, Yin, Ramchandran, "An Efficient Framework for Clustered Federated Learning", NeurIPS 2020,
    Algorithm 1 (model averaging).
    """

    name: ClassVar[str] = "ifca"
    title: ClassVar[str] = "IFCA"
    summary: ClassVar[str] = "groups of clients are found, each with a model of its own"
    source: ClassVar[str] = "Ghosh et al., NeurIPS 2020, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("personal",)

    groups: Scalar = 2.0
    most_groups: int = eqx.field(static=True, default=4)
    start: FirstModels = eqx.field(static=True, default="warm")
    weighting: Weighting = eqx.field(static=True, default="size")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, most_groups="count", start=get_args(FirstModels), weighting=get_args(Weighting))
        if not isinstance(self.groups, Tracer):
            check(self, groups="positive")
            given = np.asarray(self.groups)
            require(bool((given == np.rint(given)).all()), f"{self.name}: groups = {given} must be a whole number")
            require(
                bool((given <= self.most_groups).all()),
                f"{self.name}: groups = {given} must not be greater than most_groups = {self.most_groups}; "
                "raise most_groups",
            )

    def init(self, start: Start, key: PRNGKeyArray) -> Groups:
        """K copies of the initial model; with random starts all but the first are drawn anew."""
        first = start.params
        if self.start == "warm" or self.most_groups == 1:
            stack = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.most_groups, *leaf.shape)), first)
            return Groups(stack, jnp.asarray(self.start == "random"))
        keys = (jax.random.fold_in(key, group) for group in range(1, self.most_groups))
        others = [initialise(first, "pytorch", one) for one in keys]
        return Groups(jax.tree.map(lambda *leaves: jnp.stack(leaves), first, *others), jnp.asarray(True))

    def view(self, shared: Groups, client_id: Int[Array, ""]) -> Params:
        """All K models."""
        del client_id
        return shared.params

    def choice(self, view: Params, client: Client) -> Int[Array, ""]:
        """k_i = argmin_k f_i(theta_k) on all training samples; the lowest k of equal ones."""
        losses = jax.vmap(client.full_loss)(view)
        return jnp.argmin(jnp.where(jnp.arange(self.most_groups) < self.groups, losses, jnp.inf)).astype(jnp.int32)

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Vote, PyTree]:
        """Message: the model trained from the chosen one, and the choice."""
        group = self.choice(view, client)
        trained = self.train(tree.gather(view, group), client, key)
        return Vote(trained, jax.nn.one_hot(group, self.most_groups)), private

    def aggregate(self, shared: Groups, cohort: Cohort, messages: Vote) -> Groups:
        """The mean of each group's models; in a warm start's first round the server makes the groups."""
        slots = jnp.where(cohort.present[:, None], messages.group, 0)
        if self.start == "warm":
            slots = self._first_groups(shared, cohort, messages, slots)
        weights = cohort.weights(self.weighting)[:, None] * slots
        total = jnp.sum(weights, axis=0)
        shares = (weights / jnp.where(total > 0, total, 1)).T

        def mean(sent: Array, old: Array) -> Array:
            # One product for all groups; `tree.weighted_mean` of each would copy the messages K times.
            kept = jnp.where(cohort.present.reshape(-1, *(1,) * (sent.ndim - 1)), sent, 0)
            new = jnp.tensordot(shares.astype(sent.dtype), kept, axes=1, precision="highest")
            return jnp.where((total > 0).reshape(-1, *(1,) * (new.ndim - 1)), new, old)

        return Groups(jax.tree.map(mean, messages.model, shared.params), jnp.asarray(True))

    def _first_groups(
        self, shared: Groups, cohort: Cohort, messages: Vote, slots: Float[Array, "clients most_groups"]
    ) -> Float[Array, "clients most_groups"]:
        """The groups that the server makes before there are any; later those that the clients chose."""

        def made(_: tuple[Array, Array]) -> tuple[Array, Array]:
            points = directions(messages.model, cohort.present)
            found = divide(points, cohort.present, cohort.ids, self.groups, self.most_groups)
            return found.astype(slots.dtype), jnp.asarray(True)

        # A loop of at most one turn: in a batch of runs, `cond` would divide the clients in every round.
        return jax.lax.while_loop(lambda carry: ~carry[1], made, (slots, shared.started))[0]

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """personal: theta_{k_i}."""
        del private, key
        group = self.choice(view, client)
        return {"personal": Shared(tree.gather(view, group), group)}
