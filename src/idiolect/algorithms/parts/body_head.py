"""Methods that part the model in two: a body that is shared, and a head that stays on its client."""

from dataclasses import replace
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Start, check
from idiolect.algorithms.parts.averaging import Averaging, Server
from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.client import BatchOrder, Client
from idiolect.client.features import on_features
from idiolect.client.predictor import Models
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar
from idiolect.models.init import INITIALISATIONS, initialise
from idiolect.models.parts import Head, separate


class Parted(Algorithm):
    """A method in which shared state and messages hold the body, and each client's private state its own head.

    head: which part that is, see `models.parts.separate`. head_init: how a client's head starts: "model",
    as the initial model has it, equal on all clients; or by a named initialisation ("uniform", "zeros", "pytorch",
    "orthogonal", ...), each client its own draw.

    Model: `personal` is the body with the client's own head.
    """

    model_names: ClassVar[tuple[str, ...]] = ("personal",)

    head: Head = eqx.field(static=True, default="last")
    head_init: str = eqx.field(static=True, default="model")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, head_init=("model", *INITIALISATIONS))

    def part(self, params: Params) -> tuple[Params, Params]:
        """(body, head): what is shared, and what is not."""
        return separate(params, self.head, setting=f"{self.name}: head")

    def remarks(self, params: PyTree) -> tuple[str, ...]:
        """Say that one of the two parts is empty, so that the method is another one."""
        shared, private = (len(jax.tree.leaves(part)) for part in jax.eval_shape(self.part, params))
        if not shared:
            return (f"{self.name}: the model has no body, it is all head; nothing is shared, this is local training",)
        if not private:
            return (f"{self.name}: the model is all shared; no client has a part of its own, as under fedavg",)
        return ()

    def fresh(self, head: Params, key: PRNGKeyArray) -> Params:
        """A head before its first step, from the initial model's."""
        return head if self.head_init == "model" else initialise(head, self.head_init, key)

    def init(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """The server keeps the body."""
        return super().init(replace(start, params=self.part(start.params)[0]), key)

    def init_private(self, start: Start, key: PRNGKeyArray) -> Params:
        """The client keeps its head."""
        return self.fresh(self.part(start.params)[1], key)

    def models(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """personal: the body with the client's own head."""
        return {"personal": tree.merged(private, view)}

    def whole(self, sent: Params, kept: Params, view: Params) -> Params:
        """The model of which a client sends the body and keeps the head."""
        del view
        return tree.merged(kept, sent)


class Announced(eqx.Module):
    """The shared state of a method that announces a head to start from. server: the body's."""

    server: Server
    head: Params


class OneStart(Parted, Averaging):
    """A method in which the server averages the body and sends all clients the same head; nothing is private."""

    def init(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """The body, and the initial model's head."""
        return Announced(super().init(start, key), self.part(start.params)[1])

    def init_private(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """Clients keep nothing."""
        del start, key

    def view(self, shared: PyTree, client_id: PyTree) -> Params:
        """The body with the announced head."""
        return tree.merged(shared.head, super().view(shared.server, client_id))

    def whole(self, sent: Params, kept: PyTree, view: Params) -> Params:
        """The body that a client sends, with the announced head."""
        del kept
        return tree.merged(sent, view)

    def aggregate(self, shared: PyTree, cohort: Cohort, messages: Params) -> PyTree:
        """The mean of the cohort's bodies; the head stays."""
        return Announced(super().aggregate(shared.server, cohort, messages), shared.head)


def train_head(
    client: Client,
    body: Params,
    head: Params,
    key: PRNGKeyArray,
    *,
    rate: Scalar,
    steps: int,
    batch_size: int,
    order: BatchOrder = "fresh",
    epochs: int = 0,
    momentum: Scalar = 0.0,
    cache: bool = True,
) -> Params:
    """SGD on the head, see `sgd`, with the body held.

    Where samples are surely seen more than once, their features are computed once and kept (with `cache`); else each
    mini-batch goes through the body.
    """
    visits = epochs or (steps if batch_size == 0 else 1)
    kept = cache and visits > 1
    return sgd(
        on_features(client, body, head) if kept else client,
        head,
        key,
        rate=rate,
        steps=steps,
        batch_size=batch_size,
        order=order,
        epochs=epochs,
        momentum=momentum,
        fixed=None if kept else body,
    )
