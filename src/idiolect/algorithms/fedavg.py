"""FedAvg: federated averaging, with an optional server optimiser."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.local_sgd import Trainer
from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.client import Client
from idiolect.core.tree import Params, Scalar


class FedAvg(Averaging, Trainer):
    """FedAvg: w_{t+1} = sum_{i in S} p_i w_i, w_i = local SGD on f_i from w_t.

    rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`.
    weighting: p_i by training samples ("size", as published) or equal ("uniform"). server_optimizer, server_rate:
    see `Averaging`.

    Model: `global` is w.

    Source: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, Algorithm 1.
    """

    name: ClassVar[str] = "fedavg"
    summary: ClassVar[str] = "federated averaging: one model for everyone"
    source: ClassVar[str] = "McMahan et al., AISTATS 2017, Algorithm 1"

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: the locally trained model w_i."""
        return self.train(view, client, key), private


class FedAvgFineTuned(FedAvg):
    """FedAvg, then each client fine-tunes the global model on its own training data before it is evaluated.

    finetune_steps: mini-batch SGD steps from w; finetune_rate: their learning rate (None: `rate`). Training is
    exactly FedAvg's; only the model `adapted` is new.

    Source: the baseline of Wang et al., "Federated Evaluation of On-device Personalization", 2019.
    """

    name: ClassVar[str] = "fedavg-ft"
    summary: ClassVar[str] = "FedAvg, then fine-tuning on each client's training data"
    source: ClassVar[str] = "Wang et al., 2019, arXiv:1910.10252"
    model_names: ClassVar[tuple[str, ...]] = ("adapted", "global")

    finetune_rate: Scalar | None = None
    finetune_steps: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, finetune_steps="count")
        if self.finetune_rate is not None:
            check(self, finetune_rate="positive")

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> dict[str, Params]:
        """adapted: w after finetune_steps local steps; global: w."""
        del private
        rate = self.rate if self.finetune_rate is None else self.finetune_rate
        adapted = sgd(client, view, key, rate=rate, steps=self.finetune_steps, batch_size=self.batch_size)
        return {"adapted": adapted, "global": view}
