"""FedSGD: the clients send gradients, the server takes the step."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Start, Weighting, check
from idiolect.algorithms.parts.averaging import Server
from idiolect.algorithms.parts.solvers import MakeOptimizer, check_optimizer, optimizer
from idiolect.client.client import Client
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class FedSGD(Algorithm):
    """FedSGD: w_{t+1} = w_t - eta sum_{i in S} p_i g_i, g_i = grad f_i(w_t).

    batch_size: 0 takes all the client's samples, so that a round with all clients is one step of gradient descent
    on sum_i p_i f_i; otherwise g_i is the gradient on one mini-batch, without replacement: distributed mini-batch
    SGD, whose step is that of gradient descent in expectation.
    weighting: p_i = n_i / sum_{j in S} n_j ("size", as published: of all samples alike) or 1 / |S| ("uniform": of
    all clients alike). In a cohort smaller than N, the mean is unbiased with "uniform" weights only.
    rate: eta. server_optimizer: a name or `rate -> optax transformation`; "sgd" is the step above.

    Model: `global` is w.

    Source: McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
    AISTATS 2017, section 2: FedAvg with one local step on all samples.
    """

    name: ClassVar[str] = "fedsgd"
    title: ClassVar[str] = "FedSGD"
    summary: ClassVar[str] = "gradients instead of models: distributed gradient descent"
    source: ClassVar[str] = "McMahan et al., AISTATS 2017, section 2"

    rate: Scalar = 0.02
    batch_size: int = eqx.field(static=True, default=0)
    weighting: Weighting = eqx.field(static=True, default="size")
    server_optimizer: str | MakeOptimizer = eqx.field(static=True, default="sgd")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive", batch_size="whole", weighting=("uniform", "size"))
        check_optimizer(self, "server_optimizer", self.rate)

    def init(self, start: Start, key: PRNGKeyArray) -> Server:
        """The global model and a fresh server optimiser."""
        del key
        return Server(start.params, optimizer(self.server_optimizer, self.rate).init(start.params))

    def view(self, shared: Server, client_id: Int[Array, ""]) -> Params:
        """Clients receive the model, not the server's optimiser."""
        del client_id
        return shared.params

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: the gradient g_i; a mini-batch is the one with which FedAvg's first local step is made."""
        batch = client.batch(key, 0, self.batch_size, "fresh") if self.batch_size else None
        return client.grad(view, batch), private

    def aggregate(self, shared: Server, cohort: Cohort, messages: Params) -> Server:
        """One step of the server's optimiser along the weighted mean of the cohort's gradients."""
        mean = tree.weighted_mean(messages, cohort.weights(self.weighting))
        return shared.descend(optimizer(self.server_optimizer, self.rate), mean)
