"""PFLEGO: heads that stay on their clients, and a body that takes stochastic gradient steps."""

from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax
from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, check
from idiolect.algorithms.parts.averaging import Server
from idiolect.algorithms.parts.body_head import Parted, train_head
from idiolect.algorithms.parts.rows_used import RowsUsed, whole
from idiolect.algorithms.parts.solvers import MakeOptimizer, check_optimizer, optimizer
from idiolect.client.client import Client
from idiolect.client.predictor import Models
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar

HeadStep = Literal["algorithm", "eq5"]
BodyWeights = Literal["size", "cohort"]


class PFLEGO(Parted):
    """PFLEGO: min over the body theta and the heads W_1..W_I of sum_i alpha_i l_i(W_i, theta), alpha_i = n_i / n. (1)

    A round on client i (Algorithm 1), with exact gradients over all its samples:
        tau - 1 times: W_i <- W_i - beta grad_W l_i(W_i, theta), on features that are computed once
        g_i = grad_theta l_i(W_i, theta), and in the same pass
        W_i <- W_i - rho (I/r) grad_W l_i(W_i, theta)                                            (3)
    The server: theta <- theta - rho (I/r) sum_{i in S} alpha_i g_i                              (4)

    I: clients, r: expected number of clients per round. The body sees two forward passes and one backward pass
    per round, for any tau.

    head_rate: beta. rate: rho. local_steps: tau. server_optimizer: takes the body's step with base rate rho: "sgd"
    as in (4), "adam" in the paper's experiments. head, head_init: see `Parted`. cache: False computes the features
    anew for each head step, which changes nothing but the time.
    head_step: "algorithm" is (3), as in the algorithm box. "eq5" has alpha_i in front of the gradient, as in (5):
    only then is a round with tau = 1 the exact SGD step on (1) of Proposition 1; (3) steps 1/alpha_i times as far.

    The paper's published code (sotirisnik/PFLEGO, `b24b905`, main.py) differs: weighting="cohort" weighs g_i by
    n_i / sum_{j in S} n_j, and keeps I/r (lines 1450 to 1459); head_init="uniform" (line 846). Its networks start as
    the model setting init="stax".

    Models: `personal` is theta with the client's W_i as it was kept; W_i has last seen the body of the round in which
    the client took part. `adapted` is theta with W_i after another tau - 1 steps on theta, as its next round would
    begin. The published code tests the clients of a round right after their steps, which `adapted` is nearest to.

    Source: Nikoloutsopoulos, Koutsopoulos, Titsias, "Personalized Federated Learning with Exact Stochastic Gradient
    Descent", 2022, Algorithm 1, eqs. (1) to (6).
    """

    name: ClassVar[str] = "pflego"
    title: ClassVar[str] = "PFLEGO"
    summary: ClassVar[str] = "private heads on a shared body that takes exact stochastic gradient steps"
    source: ClassVar[str] = "Nikoloutsopoulos et al., 2022, Algorithm 1"

    model_names: ClassVar[tuple[str, ...]] = ("personal", "adapted")

    head_rate: Scalar = 0.03
    rate: Scalar = 0.003
    local_steps: int = eqx.field(static=True, default=50)
    server_optimizer: str | MakeOptimizer = eqx.field(static=True, default="sgd")
    head_step: HeadStep = eqx.field(static=True, default="algorithm")
    weighting: BodyWeights = eqx.field(static=True, default="size")
    cache: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, head_rate="positive", rate="positive", local_steps="count")
        check(self, head_step=get_args(HeadStep), weighting=get_args(BodyWeights))
        check_optimizer(self, "server_optimizer", self.rate)

    def init(self, start: Start, key: PRNGKeyArray) -> Server:
        """The body and a fresh server optimiser."""
        body = super().init(start, key)
        return Server(body, optimizer(self.server_optimizer, self.rate).init(body))

    def view(self, shared: Server, client_id: PyTree) -> Params:
        """Clients receive the body, not the server's optimiser."""
        return shared.params

    def local(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> tuple[Params, Params]:
        """Message: g_i; private: W_i."""
        head = self._caught_up(view, private, client, key)
        _, slope = client.full_value_and_grad(tree.merged(head, view))
        for_body, for_head = self.part(slope)
        step = self.rate * client.federation.clients / client.federation.cohort
        if self.head_step == "eq5":
            step = step * client.size / client.federation.samples
        return for_body, tree.add_scaled(head, -step, for_head)

    def rows_used(self, rows: int) -> RowsUsed:
        """Count all rows: g_i is an exact gradient."""
        return whole(rows)

    def aggregate(self, shared: Server, cohort: Cohort, messages: Params) -> Server:
        """One step of the server's optimiser against (I/r) sum_{i in S} alpha_i g_i."""
        sizes = cohort.weights("size")
        scale = cohort.population / cohort.expected
        if self.weighting == "size":
            scale = scale * sizes.sum() / cohort.total_size
        mean = tree.weighted_mean(messages, sizes)
        slope = jax.tree.map(lambda g: (scale * g).astype(g.dtype), mean)
        return shared.descend(optimizer(self.server_optimizer, self.rate), slope)

    def models(self, view: Params, private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """personal: the body with the head as it was kept; adapted: with the head caught up."""
        adapted = tree.merged(self._caught_up(view, private, client, key), view)
        return {**super().models(view, private, client, key), "adapted": adapted}

    def _caught_up(self, body: Params, head: Params, client: Client, key: PRNGKeyArray) -> Params:
        steps = self.local_steps - 1
        return train_head(client, body, head, key, rate=self.head_rate, steps=steps, batch_size=0, cache=self.cache)
