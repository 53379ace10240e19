"""FedBABU: only the body is trained together; the head rests until a client fine-tunes."""

from functools import partial
from typing import ClassVar, Literal, get_args

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import Start, check
from idiolect.algorithms.parts.body_head import Announced, OneStart, train_head
from idiolect.algorithms.parts.solvers import Trainer, sgd
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar

FineTuned = Literal["all", "head", "body"]


class FedBABU(OneStart, Trainer):
    """FedBABU: federated averaging of the body theta under a head that is never trained, then fine-tuning.

    A round on client i: theta_i <- local SGD on f_i(theta, W_0) from theta, W_0 fixed and the same for everyone.
    The server: theta <- sum_{i in S} p_i theta_i.

    head_init: how the server draws W_0 ("orthogonal"; "model": as the initial model has it); head: see `Parted`.
    rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`. weighting, server_optimizer,
    server_rate: see `Averaging`. finetune: what is fine-tuned, "all", "head" or "body", by finetune_steps mini-batch
    steps or, where > 0, finetune_epochs passes of rate finetune_rate (None: `rate`). momentum: of training and of
    fine-tuning, see `sgd`; the algorithm has none.

    PFLEGO's published code (sotirisnik/PFLEGO, `b24b905`, main.py, lines 1121 and 1214) has
    head_init="uniform_orthogonal" and momentum=0.9, and does not fine-tune.

    Models: `adapted` is (theta, W_0) fine-tuned on the client's training data; `global` is (theta, W_0).

    Source: Oh, Kim, Yun, "FedBABU: Toward Enhanced Representation for Federated Image Classification", ICLR 2022,
    Algorithm 1.
    """

    name: ClassVar[str] = "fedbabu"
    title: ClassVar[str] = "FedBABU"
    summary: ClassVar[str] = "the body is averaged under a fixed head, then clients fine-tune"
    source: ClassVar[str] = "Oh et al., ICLR 2022, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("adapted", "global")

    head_init: str = eqx.field(static=True, default="orthogonal")
    finetune_rate: Scalar | None = None
    finetune_steps: int = eqx.field(static=True, default=100)
    finetune_epochs: int = eqx.field(static=True, default=0)
    finetune: FineTuned = eqx.field(static=True, default="all")
    momentum: Scalar = 0.0

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, finetune_steps="count", finetune_epochs="whole", finetune=get_args(FineTuned), momentum="decay")
        if self.finetune_rate is not None:
            check(self, finetune_rate="positive")

    def init(self, start: Start, key: PRNGKeyArray) -> Announced:
        """The body, and the head that the server draws for everyone."""
        announced = super().init(start, key)
        return Announced(announced.server, self.fresh(announced.head, key))

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: theta_i."""
        body, head = self.part(view)
        return self.train(body, client, key, momentum=self.momentum, fixed=head), private

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """adapted: fine-tuned on training data; global: as it came."""
        body, head = self.part(view)
        if self.finetune == "head":
            fixed, train = body, partial(train_head, client, body, head)
        else:
            part, fixed = (body, head) if self.finetune == "body" else (view, None)
            train = partial(sgd, client, part, fixed=fixed)
        tuned = train(
            key=key,
            rate=self.rate if self.finetune_rate is None else self.finetune_rate,
            steps=self.finetune_steps,
            epochs=self.finetune_epochs,
            batch_size=self.batch_size,
            order=self.batches,
            momentum=self.momentum,
        )
        return {"adapted": tree.merged(tuned, fixed), "global": Shared(view)}
