"""pFedMe: personalized federated learning with Moreau envelopes."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import ArrayLike, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Weighting, check
from idiolect.algorithms.parts.solvers import MakeOptimizer, check_optimizer, is_linear, minimise, over_batches
from idiolect.client.client import BATCH_ORDERS, BatchOrder, Client
from idiolect.client.objective import Batch
from idiolect.client.predictor import Models, Shared
from idiolect.client.span import problem
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class PFedMe(Algorithm):
    """pFedMe: min_w (1/N) sum_i F_i(w), F_i(w) = min_theta f_i(theta) + (lambda/2) ||theta - w||^2.

    A round on client i, from w_{i,0} = w_t, for r = 0..R-1 (Algorithm 1):
        draw a mini-batch D and find theta with ||grad h(theta)|| <= nu,                   (8)
            h = f_i(.; D) + (lambda/2) ||. - w_{i,r}||^2                                   (7)
        w_{i,r+1} = w_{i,r} - eta lambda (w_{i,r} - theta)                                 (line 8)
    The server: w_{t+1} = (1 - beta) w_t + beta mean_{i in S} w_{i,R}                      (line 10)

    rate: eta. prox_weight: lambda. server_step: beta. local_steps: R. inner_steps: K, the most gradient steps on
    h. tolerance: nu of eq. (8); None takes K steps. inner_rate, inner_optimizer: the solver of h, which the paper
    leaves open ("gradient descent", "Nesterov's accelerated gradient descent"). batch_size: |D|.
    warm_start: start the inner solver at the last theta of this round (else at w_{i,r}). epochs: if > 0, R differs
    between clients: it is the number of mini-batches in that many reshuffled passes over a client's samples.

    The paper's published code differs; each deviation has a name and is off by default:
    hidden_l2 (0.001 theta added to the inner gradient), batches="cyclic", weighting="size". The code that FedU's
    authors published for pFedMe takes epochs = 5 instead of R steps.

    Models: `personal` is theta_i: the last inner solution of a round that starts at the present w, made for the
    evaluation. It is not the theta of the last round in which the client took part, which started at an older w and
    which nobody keeps. `global` is w. `local` is w_{i,R} of that same round; the published code evaluates it under
    the name of the personalized model.

    Only sampled clients train: each starts again from w_t, so what the others would do changes nothing.

    Source: T. Dinh, Tran, Nguyen, "Personalized Federated Learning with Moreau Envelopes", NeurIPS 2020.
    """

    name: ClassVar[str] = "pfedme"
    title: ClassVar[str] = "pFedMe"
    summary: ClassVar[str] = "Moreau envelopes: each client's model stays near a shared one"
    source: ClassVar[str] = "T. Dinh et al., NeurIPS 2020, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("personal", "global", "local")

    rate: Scalar = 0.01
    inner_rate: Scalar = 0.02
    prox_weight: Scalar = 15.0
    server_step: Scalar = 1.0
    tolerance: Scalar | None = None
    hidden_l2: Scalar = 0.0
    local_steps: int = eqx.field(static=True, default=20)
    epochs: int = eqx.field(static=True, default=0)
    inner_steps: int = eqx.field(static=True, default=5)
    batch_size: int = eqx.field(static=True, default=20)
    inner_optimizer: str | MakeOptimizer = eqx.field(static=True, default="sgd")
    warm_start: bool = eqx.field(static=True, default=True)
    batches: BatchOrder = eqx.field(static=True, default="fresh")
    weighting: Weighting = eqx.field(static=True, default="uniform")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        rates, counts = ("rate", "inner_rate", "prox_weight", "server_step"), ("local_steps", "inner_steps")
        check(self, **dict.fromkeys(rates, "positive"), hidden_l2="nonnegative")
        check(self, **dict.fromkeys(counts, "count"), batch_size="count", epochs="whole")
        check_optimizer(self, "inner_optimizer", self.inner_rate)
        check(self, batches=BATCH_ORDERS, weighting=("uniform", "size"))
        if self.tolerance is not None:
            check(self, tolerance="positive")

    def prox(self, client: Client, w: Params, start: Params, batch: Batch) -> Params:
        """Approximate prox_{f_i / lambda}(w) on a mini-batch, eqs. (3), (7), (8), from `start`."""
        linear = is_linear(self.inner_optimizer) and self.tolerance is None
        f = problem(client, (start, w), batch, steps=self.inner_steps if linear else 0)
        start, w = f.points

        def gradient(theta: Params) -> Params:
            slope = tree.add_scaled(f.gradient(theta), self.prox_weight, tree.subtract(theta, w))
            return slope if tree.is_off(self.hidden_l2) else tree.add_scaled(slope, self.hidden_l2, theta)

        theta = minimise(
            gradient,
            start,
            rate=self.inner_rate,
            steps=self.inner_steps,
            which=self.inner_optimizer,
            tolerance=self.tolerance,
        )
        return f.restore(theta)

    def train(self, w: Params, client: Client, key: PRNGKeyArray) -> tuple[Params, Params]:
        """The R local rounds from w: (w_{i,R}, theta_i)."""

        def step(carry: tuple[Params, Params], batch: Batch | None, _: ArrayLike) -> tuple[Params, Params]:
            w, theta = carry
            assert batch is not None  # batch_size is at least 1
            theta = self.prox(client, w, theta if self.warm_start else w, batch)
            return tree.add_scaled(w, -self.rate * self.prox_weight, tree.subtract(w, theta)), theta

        return over_batches(
            client,
            key,
            step,
            (w, w),
            steps=self.local_steps,
            batch_size=self.batch_size,
            order=self.batches,
            epochs=self.epochs,
        )

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: w_{i,R}."""
        return self.train(view, client, key)[0], private

    def aggregate(self, shared: Params, cohort: Cohort, messages: Params) -> Params:
        """(1 - beta) w + beta * mean of the cohort's w_{i,R}."""
        mean = tree.weighted_mean(messages, cohort.weights(self.weighting))
        return tree.lerp(shared, mean, self.server_step)

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """personal: theta_i; global: w; local: w_{i,R}."""
        local, personal = self.train(view, client, key)
        return {"personal": personal, "global": Shared(view), "local": local}
