"""FedRep: each client fits its head to the shared representation, then helps to improve that."""

from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray

from idiolect.algorithms.base import check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.body_head import Parted, train_head
from idiolect.algorithms.parts.rows_used import RowsUsed, of_batches
from idiolect.algorithms.parts.solvers import sgd
from idiolect.client.client import BATCH_ORDERS, BatchOrder, Client
from idiolect.core.tree import Params, Scalar


class FedRep(Parted, Averaging):
    """FedRep: min over a representation phi of (1/n) sum_i min over h_i of f_i(h_i, phi).

    A round on client i (Algorithm 1):
        tau times: h_i <- h_i - alpha grad_h f_i(h_i, phi)
        phi_i <- phi - alpha grad_phi f_i(h_i, phi), body_steps times
    The server: phi <- sum_{i in S} p_i phi_i

    rate: alpha of the body; head_rate: of the head (None: the same). head_steps: tau; body_steps: 1 in the paper's
    algorithm. head_epochs, body_epochs: passes over the data instead, where > 0 (the paper's experiments make 10 and
    1 to 5). momentum: of the body's steps, head_momentum: of the head's (None: the same), see `sgd`; the algorithm
    has none. batch_size, batches: see `Trainer`. head, head_init: see `Parted`. weighting, server_optimizer,
    server_rate: see `Averaging`; the paper averages equally ("uniform").

    PFLEGO's published code (sotirisnik/PFLEGO, `b24b905`, main.py, lines 846, 1206 and 1327) has head_init="uniform".
    It divides a round's 50 steps on all samples (batch_size=0) into head_steps=45 and body_steps=5, with one momentum
    for both, which starts anew each round. That momentum comes from the command line.

    Model: `personal` is phi with the client's h_i.

    Source: Collins et al., "Exploiting Shared Representations for Personalized Federated Learning", ICML 2021,
    Algorithm 1.
    """

    name: ClassVar[str] = "fedrep"
    title: ClassVar[str] = "FedRep"
    summary: ClassVar[str] = "head steps, then body steps with the updated head; the body is averaged"
    source: ClassVar[str] = "Collins et al., ICML 2021, Algorithm 1"

    rate: Scalar = 0.02
    head_rate: Scalar | None = None
    head_steps: int = eqx.field(static=True, default=10)
    body_steps: int = eqx.field(static=True, default=1)
    head_epochs: int = eqx.field(static=True, default=0)
    body_epochs: int = eqx.field(static=True, default=0)
    batch_size: int = eqx.field(static=True, default=20)
    batches: BatchOrder = eqx.field(static=True, default="fresh")
    momentum: Scalar = 0.0
    head_momentum: Scalar | None = None

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive", momentum="decay", batch_size="whole", batches=BATCH_ORDERS)
        check(self, head_steps="whole", body_steps="whole", head_epochs="whole", body_epochs="whole")
        if self.head_rate is not None:
            check(self, head_rate="positive")
        if self.head_momentum is not None:
            check(self, head_momentum="decay")

    def rows_used(self, rows: int) -> RowsUsed:
        """Count the rows of the steps on the body, which is sent."""
        steps, epochs = self.body_steps, self.body_epochs
        return of_batches(rows, batch_size=self.batch_size, steps=steps, epochs=epochs, order=self.batches)

    def local(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> tuple[Params, Params]:
        """Message: phi_i; private: h_i."""
        for_head, for_body = jax.random.split(key)
        head = train_head(
            client,
            view,
            private,
            for_head,
            rate=self.rate if self.head_rate is None else self.head_rate,
            steps=self.head_steps,
            epochs=self.head_epochs,
            batch_size=self.batch_size,
            order=self.batches,
            momentum=self.momentum if self.head_momentum is None else self.head_momentum,
        )
        body = sgd(
            client,
            view,
            for_body,
            rate=self.rate,
            steps=self.body_steps,
            epochs=self.body_epochs,
            batch_size=self.batch_size,
            order=self.batches,
            momentum=self.momentum,
            fixed=head,
        )
        return body, head
