"""FedDANE: a federated Newton-type method; clients solve problems corrected by an estimate of the full gradient."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, Weighting, check
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class Dane(eqx.Module):
    """The server's state: w_{t-1}, g_t, and which phase the next round is (0: gradients, 1: solutions)."""

    params: Params
    gradient: Params
    phase: Int[Array, ""]


class FedDANE(Trainer):
    """FedDANE: w_t = mean of the solutions of corrected local problems. ONE UPDATE OF w COSTS TWO ROUNDS.

    The paper communicates twice in each iteration t, with two cohorts drawn apart; each is a round here:
        1st, 3rd, .. round: g_t = mean_{i in S} grad f_i(w_{t-1}), over all training samples; w stays
        2nd, 4th, .. round: w_t = mean_{i in S'} w_i, where w_i solves inexactly, by SGD from w_{t-1},
            min_w f_i(w) + <g_t - grad f_i(w_{t-1}), w - w_{t-1}> + (mu/2) ||w - w_{t-1}||^2
    So R rounds are floor(R / 2) updates: give it an even number, and twice as many as the methods it is compared
    with, or say that you did not. (The authors' published code takes the same cohort twice.)

    prox_weight: mu; rate * prox_weight must stay below 2, or the steps diverge. rate, local_steps, epochs,
    batch_size, batches: the clients' SGD, see `Trainer`. weighting: both means by training samples ("size") or
    equal ("uniform"). The paper draws clients with probability n_i / n and averages equally; here every client is
    drawn with the same probability and "size" restores the objective sum_i (n_i / n) f_i.

    Model: `global` is w.

    Source: Li, Sahu, Zaheer, Sanjabi, Talwalkar, Smith, "FedDANE: A Federated Newton-Type Method", Asilomar
    Conference 2019, arXiv:2001.01920, the algorithm FedDANE.
    """

    name: ClassVar[str] = "feddane"
    title: ClassVar[str] = "FedDANE"
    summary: ClassVar[str] = (
        "Newton-type: local problems corrected by the federation's gradient; two rounds per update"
    )
    source: ClassVar[str] = "Li et al., Asilomar 2019, arXiv:2001.01920"

    prox_weight: Scalar = 1.0
    weighting: Weighting = eqx.field(static=True, default="size")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, prox_weight="nonnegative", weighting=("uniform", "size"))

    def init(self, start: Start, key: PRNGKeyArray) -> Dane:
        """The initial model; the first round asks for gradients."""
        del key
        return Dane(start.params, jax.tree.map(jnp.zeros_like, start.params), jnp.zeros((), jnp.int32))

    def solve(self, view: Dane, slope: Params, client: Client, key: PRNGKeyArray) -> Params:
        """SGD on the corrected problem; slope: grad f_i(w_{t-1})."""
        correction = tree.subtract(view.gradient, slope)

        def corrected(slope: Params, w: Params, center: Params, correction: Params) -> Params:
            pull = tree.subtract(w, center)
            return tree.add_scaled(tree.add_scaled(slope, 1.0, correction), self.prox_weight, pull)

        return self.train(view.params, client, key, adjust=corrected, anchors=(view.params, correction))

    def local(self, view: Dane, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: grad f_i(w_{t-1}) in the first phase, w_i in the second."""
        _, slope = client.full_value_and_grad(view.params)
        # The phase is the same for all clients, so that even under vmap only the phase's work is done.
        message = jax.lax.cond(view.phase == 0, lambda: slope, lambda: self.solve(view, slope, client, key))
        return message, private

    def aggregate(self, shared: Dane, cohort: Cohort, messages: Params) -> Dane:
        """The mean becomes g_t in the first phase, w_t in the second."""
        mean = tree.weighted_mean(messages, cohort.weights(self.weighting))
        first = shared.phase == 0

        def by_phase(yes: Params, no: Params) -> Params:
            return jax.tree.map(lambda a, b: jnp.where(first, a, b), yes, no)

        return Dane(by_phase(shared.params, mean), by_phase(mean, shared.gradient), 1 - shared.phase)

    def models(self, view: Dane, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """global: w."""
        return {"global": Shared(view.params)}
