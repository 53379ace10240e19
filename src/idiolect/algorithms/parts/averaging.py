"""The server of methods that average: the model, and an optional optimiser that treats the average as a gradient.

`FineTuned` methods train one shared model, which each client fine-tunes before it is evaluated.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import optax
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Start, Weighting, check
from idiolect.algorithms.parts.solvers import MakeOptimizer, Trainer, check_optimizer, optimizer, sgd
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar

TRAINED = "trained"


class Server(eqx.Module):
    """The server's state: the shared model, and its optimiser's state (None without one)."""

    params: Params
    optimizer: Any

    def descend(self, solver: optax.GradientTransformation, slope: Params) -> "Server":
        """One step of the optimiser against `slope`."""
        updates, state = solver.update(slope, self.optimizer, self.params)
        return Server(tree.add_scaled(self.params, jnp.asarray(1.0), updates), state)


class Averaging(Algorithm):
    """A method in which clients send what they trained, and the server averages it.

    weighting: by training samples ("size") or equal ("uniform"). server_optimizer: None averages; a name or
    `rate -> optax transformation` treats w_t - mean as a gradient and steps with server_rate ("sgd" with rate 1
    is averaging). server_rate: of that optimiser; without one it says nothing.
    trained: also evaluate `trained`, every client's model right after its local steps and before any averaging: what
    much published code tests, though nobody keeps it. An evaluation then costs a round of all clients.
    """

    server_rate: Scalar = 1.0
    weighting: Weighting = eqx.field(static=True, default="size")
    server_optimizer: str | MakeOptimizer | None = eqx.field(static=True, default=None)
    trained: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, server_rate="positive", weighting=("uniform", "size"))
        if self.server_optimizer is not None:
            check_optimizer(self, "server_optimizer", self.server_rate)

    def offered(self, start: Start) -> tuple[str, ...]:
        """`model_names`, and `trained` if that is asked for."""
        del start
        return (*self.model_names, TRAINED) if self.trained else self.model_names

    def evaluated(self, view: PyTree, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """`models`; trained: what a round leaves on the client."""
        models = self.models(view, private, client, key)
        if self.trained:
            models |= {TRAINED: self.whole(*self.local(view, private, client, key), view)}
        return models

    def whole(self, sent: Params, kept: PyTree, view: Params) -> Params:
        """The model of which a client sends all or a part."""
        del kept
        return tree.merged(sent, view)

    def init(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """The shared model and a fresh server optimiser."""
        del key
        if self.server_optimizer is None:
            return Server(start.params, None)
        return Server(start.params, optimizer(self.server_optimizer, self.server_rate).init(start.params))

    def view(self, shared: Server, client_id: Any) -> Params:
        """Clients receive the model, not the server's optimiser."""
        del client_id
        return shared.params

    def aggregate(self, shared: PyTree, cohort: Cohort, messages: PyTree) -> PyTree:
        """The weighted mean of the cohort's models, or one step of the server's optimiser towards it."""
        mean = tree.weighted_mean(messages, cohort.weights(self.weighting))
        if self.server_optimizer is None:
            return Server(mean, None)
        solver = optimizer(self.server_optimizer, self.server_rate)
        return shared.descend(solver, tree.subtract(shared.params, mean))


class FineTuned(Averaging, Trainer):
    """A method that trains as FedAvg does, and whose clients fine-tune the shared model on their own training data.

    finetune_steps: mini-batch SGD steps from w, with the batch_size and the batches of training; finetune_rate: their
    learning rate (None: `rate`).

    Models: `adapted` is w after these steps; `global` is w.
    """

    model_names: ClassVar[tuple[str, ...]] = ("adapted", "global")

    finetune_rate: Scalar | None = None
    finetune_steps: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, finetune_steps="count")
        if self.finetune_rate is not None:
            check(self, finetune_rate="positive")

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: the locally trained model w_i."""
        return self.train(view, client, key), private

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """adapted: w after finetune_steps local steps; global: w."""
        del private
        adapted = sgd(
            client,
            view,
            key,
            rate=self.rate if self.finetune_rate is None else self.finetune_rate,
            steps=self.finetune_steps,
            batch_size=self.batch_size,
            order=self.batches,
        )
        return {"adapted": adapted, "global": Shared(view)}
