"""Methods that train one shared model, which each client fine-tunes before it is evaluated."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.local_sgd import Trainer
from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core.tree import Params, Scalar


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
