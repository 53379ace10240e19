"""Reptile: FedAvg with a server that goes a part of the way, and a model that is made to be fine-tuned."""

from typing import ClassVar

import equinox as eqx

from idiolect.algorithms.base import Weighting
from idiolect.algorithms.parts.averaging import FineTuned
from idiolect.algorithms.parts.solvers import MakeOptimizer
from idiolect.core.errors import require
from idiolect.core.tree import Scalar


class Reptile(FineTuned):
    """Reptile: w_{t+1} = w_t + epsilon mean_{i in S} (w_i - w_t), w_i = local SGD on f_i from w_t.

    With epsilon = 1 this is FedAvg. The difference w_t - w_i is a meta-gradient: followed, it leads to a model from
    which a few steps on a client's own data go far. The papers let epsilon fall to 0 over training or leave the step
    to Adam; here it is constant, and server_optimizer="adam" takes it for Adam's rate.

    server_rate: epsilon. rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`.
    finetune_steps, finetune_rate: the steps to `adapted`, see `FineTuned`.
    weighting: equal ("uniform", as published) or by training samples ("size").

    Models: `adapted` is w after finetune_steps steps of SGD on the client's training data; `global` is w.

    Source: Nichol, Achiam, Schulman, "On First-Order Meta-Learning Algorithms", 2018, Algorithm 2; Jiang, Konečný,
    Rush, Kannan, "Improving Federated Learning Personalization via Model Agnostic Meta Learning", 2019.
    """

    name: ClassVar[str] = "reptile"
    title: ClassVar[str] = "Reptile"
    summary: ClassVar[str] = "meta-learning: FedAvg with a partial server step, then fine-tuning"
    source: ClassVar[str] = "Nichol et al., 2018, arXiv:1803.02999, Algorithm 2; Jiang et al., 2019, arXiv:1909.12488"

    server_rate: Scalar = 0.5
    weighting: Weighting = eqx.field(static=True, default="uniform")
    server_optimizer: str | MakeOptimizer | None = eqx.field(static=True, default="sgd")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        require(
            self.server_optimizer is not None,
            "reptile: server_optimizer = None would ignore server_rate; take 'sgd', with server_rate 1 for averaging",
        )
