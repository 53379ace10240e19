"""SCAFFOLD: control variates correct the drift of clients that take several steps."""

from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from idiolect.algorithms.base import Cohort, Start, Weighting, check
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.tree import Params, Scalar

Option = Literal["I", "II"]
Steps = Literal["paper", "published"]


class Controlled(eqx.Module):
    """A model and a control variate: (x, c) on the server, (y_i - x, c_i+ - c_i) in a message."""

    params: Params
    control: Params


def _corrected(slope: Params, y: Params, correction: Params) -> Params:
    del y
    return tree.add_scaled(slope, 1.0, correction)


def _first(slope: Params, y: Params, correction: Params) -> Params:
    leaves, structure = jax.tree.flatten(_corrected(slope, y, correction))
    return jax.tree.unflatten(structure, [leaf if i == 0 else jnp.zeros_like(leaf) for i, leaf in enumerate(leaves)])


class Scaffold(Trainer):
    """SCAFFOLD: min_x (1/N) sum_i f_i(x), by local SGD on gradients corrected by control variates.

    A round on client i, from y = x, K times (line 10):
        y <- y - eta_l (grad f_i(y) - c_i + c)
    then (line 12)
        I:  c_i+ = grad f_i(x), over all the client's training samples
        II: c_i+ = c_i - c + (x - y) / (K eta_l)
    The server (lines 16, 17):
        x <- x + (eta_g / |S|) sum_{i in S} (y_i - x),  c <- c + (1/N) sum_{i in S} (c_i+ - c_i)
    All control variates start at 0, so c = mean_i c_i after every round.

    rate: eta_l. server_rate: eta_g. local_steps: K, or `epochs` passes, see `Trainer`; then K differs between
    clients. option: "I" or "II" of line 12; II, which costs no gradient, is what the paper's experiments use.
    steps: "paper" as above; "published" as FedU's published code: the steps move only the model's first array (the
    first layer's weight), every other one stays as it started, and with epochs > 0 the K of line 12 is the number of
    mini-batches of one pass, so that c_i+ is too large by the factor `epochs`.
    weighting: "uniform" as in the paper; "size" minimises sum_i (n_i / n) f_i, in both lines of the server.

    c_i is private: only the two differences are sent. Model: `global` is x.

    Source: Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning", ICML 2020,
    Algorithm 1.
    """

    name: ClassVar[str] = "scaffold"
    title: ClassVar[str] = "SCAFFOLD"
    summary: ClassVar[str] = "control variates undo the drift of local steps"
    source: ClassVar[str] = "Karimireddy et al., ICML 2020, Algorithm 1"

    server_rate: Scalar = 1.0
    option: Option = eqx.field(static=True, default="II")
    steps: Steps = eqx.field(static=True, default="paper")
    weighting: Weighting = eqx.field(static=True, default="uniform")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, server_rate="positive", option=get_args(Option), weighting=("uniform", "size"))
        check(self, steps=get_args(Steps))
        require(
            self.steps == "paper" or self.batch_size > 0,
            'scaffold: steps = "published" takes mini-batches: give a batch_size greater than 0',
        )

    def init(self, start: Start, key: PRNGKeyArray) -> Controlled:
        """The global model x, and c = 0."""
        del key
        return Controlled(start.params, jax.tree.map(jnp.zeros_like, start.params))

    def init_private(self, start: Start, key: PRNGKeyArray) -> Params:
        """The client's control variate c_i = 0."""
        del key
        return jax.tree.map(jnp.zeros_like, start.params)

    def local(
        self, view: Controlled, private: Params, client: Client, key: PRNGKeyArray
    ) -> tuple[Controlled, Params]:
        """Message: (y_i - x, c_i+ - c_i); private: c_i+."""
        x, correction = view.params, tree.subtract(view.control, private)
        published = self.steps == "published"
        y = self.train(x, client, key, adjust=_first if published else _corrected, anchors=(correction,))
        change = tree.subtract(y, x)
        if self.option == "I":
            control = client.full_value_and_grad(x)[1]
        else:
            per_pass = published and self.epochs > 0
            count = client.passes(self.batch_size) if per_pass else self.step_count(client)
            scale = -1 / (count * self.rate)
            control = tree.add_scaled(tree.subtract(private, view.control), scale, change)
        return Controlled(change, tree.subtract(control, private)), control

    def aggregate(self, shared: Controlled, cohort: Cohort, messages: Controlled) -> Controlled:
        """x + eta_g mean (y_i - x); c + (|S| / N) mean (c_i+ - c_i)."""
        weights = cohort.weights(self.weighting)
        mean = tree.weighted_mean(messages, weights)
        share = jnp.sum(weights) / (cohort.population if self.weighting == "uniform" else cohort.total_size)
        return Controlled(
            tree.add_scaled(shared.params, self.server_rate, mean.params),
            tree.add_scaled(shared.control, share, mean.control),
        )

    def new_round(self, view: Controlled, private: Params, client: Client, key: PRNGKeyArray) -> Params:
        """Nothing: a control variate serves only training, and the model is the server's."""
        del view, client, key
        return private

    def models(self, view: Controlled, private: Params, client: Client, key: PRNGKeyArray) -> Models:
        """global: x."""
        return {"global": Shared(view.params)}
