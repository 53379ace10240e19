"""FedProx: federated averaging whose clients are held near the model they received."""

from typing import ClassVar

from jaxtyping import PRNGKeyArray, PyTree

from idiolect.algorithms.base import check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class FedProx(Averaging, Trainer):
    """FedProx: w_{t+1} = sum_{i in S} p_i w_i, w_i ~ argmin_w h_i(w; w_t), where

        h_i(w; w_t) = f_i(w) + (mu/2) ||w - w_t||^2                                        (2)
    and w_i is found inexactly, by SGD on h_i from w_t.

    prox_weight: mu (the paper's range is 0.001 to 1); 0 is FedAvg. rate * prox_weight must stay below 2, or the
    steps diverge. rate, local_steps, epochs, batch_size, batches: the clients' SGD, see `Trainer`; the more steps,
    the smaller the inexactness gamma. weighting, server_optimizer, server_rate: see `Averaging`.

    Algorithm 2 draws clients with probability p_i and averages equally; here every client is drawn with the same
    probability and weighted by p_i, the scheme of the paper's experiments (section 5.1).

    Model: `global` is w.

    Source: Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, Algorithm 2.
    """

    name: ClassVar[str] = "fedprox"
    title: ClassVar[str] = "FedProx"
    summary: ClassVar[str] = "FedAvg with clients that stay near the model they received"
    source: ClassVar[str] = "Li et al., MLSys 2020, Algorithm 2"

    prox_weight: Scalar = 1.0

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, prox_weight="nonnegative")

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: w_i, the end of SGD on h_i."""

        def slope_of_h(slope: Params, w: Params, center: Params) -> Params:
            return tree.add_scaled(slope, self.prox_weight, tree.subtract(w, center))

        return self.train(view, client, key, adjust=slope_of_h, anchors=(view,)), private
