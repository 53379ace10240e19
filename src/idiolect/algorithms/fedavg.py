"""FedAvg: federated averaging, with an optional server optimiser."""

from typing import ClassVar

from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.parts.averaging import Averaging, FineTuned
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.core.tree import Params


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
    title: ClassVar[str] = "FedAvg"
    summary: ClassVar[str] = "federated averaging: one model for everyone"
    source: ClassVar[str] = "McMahan et al., AISTATS 2017, Algorithm 1"

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: the locally trained model w_i."""
        return self.train(view, client, key), private


class FedAvgFineTuned(FineTuned):
    """FedAvg, then each client fine-tunes the global model on its own training data before it is evaluated.

    Training is exactly FedAvg's; only the model `adapted` is new. finetune_steps, finetune_rate: see `FineTuned`. The
    rest: as `FedAvg`.

    Models: `adapted` is w after the fine-tuning; `global` is w.

    Source: the baseline of Wang et al., "Federated Evaluation of On-device Personalization", 2019.
    """

    name: ClassVar[str] = "fedavg-ft"
    title: ClassVar[str] = "FedAvg + fine-tuning"
    summary: ClassVar[str] = "FedAvg, then fine-tuning on each client's training data"
    source: ClassVar[str] = "Wang et al., 2019, arXiv:1910.10252"
