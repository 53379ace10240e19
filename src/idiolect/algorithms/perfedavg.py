"""Per-FedAvg: a shared model from which one gradient step personalizes."""

from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, Cohort, Weighting, check
from idiolect.client.client import BATCH_ORDERS, BatchOrder, Client
from idiolect.client.objective import Batch
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar

Variant = Literal["exact", "first-order", "hessian-free", "sequential"]


class PerFedAvg(Algorithm):
    """Per-FedAvg: min_w (1/N) sum_i f_i(w - alpha grad f_i(w)), by local SGD on each term.

    A local step draws three mini-batches D, D', D'' and does, with v = grad f_i(w - alpha grad f_i(w; D); D'),
        w <- w - beta (v - alpha H v),  H = Hessian of f_i(w; D'')
    variant: "exact" computes H v by a Hessian-vector product; "first-order" drops it (Per-FedAvg (FO));
    "hessian-free" takes (grad f_i(w + delta v; D'') - grad f_i(w - delta v; D'')) / (2 delta) (Per-FedAvg (HF));
    "sequential" is no meta-learning at all: two SGD steps with rates alpha and beta, as pFedMe's published code
    had at the time of its paper.
    rate: beta. adapt_rate: alpha. local_steps: local iterations a round. difference: delta. batch_size: samples of a
    mini-batch; batches: see `Client.batch`. weighting: the server's mean, "uniform" or by training samples ("size").
    epochs: if > 0, epochs * max(1, floor(n_i / batch_size)) local iterations instead, on reshuffled passes over the
    samples; each still draws two or three mini-batches. FedU's published code has epochs = 5 and "sequential".

    Models: `adapted` is w after adapt_steps SGD steps of rate alpha on mini-batches of the client's TRAINING data;
    `global` is w.

    Source: Fallah, Mokhtari, Ozdaglar, "Personalized Federated Learning: A Meta-Learning Approach", NeurIPS 2020,
    Algorithm 1; pFedMe, eq. (4).
    """

    name: ClassVar[str] = "perfedavg"
    title: ClassVar[str] = "Per-FedAvg"
    summary: ClassVar[str] = "meta-learning: a model that one gradient step personalizes"
    source: ClassVar[str] = "Fallah et al., NeurIPS 2020, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("adapted", "global")

    rate: Scalar = 0.003
    adapt_rate: Scalar = 0.03
    difference: Scalar = 1e-3
    local_steps: int = eqx.field(static=True, default=20)
    epochs: int = eqx.field(static=True, default=0)
    adapt_steps: int = eqx.field(static=True, default=1)
    batch_size: int = eqx.field(static=True, default=20)
    variant: Variant = eqx.field(static=True, default="exact")
    batches: BatchOrder = eqx.field(static=True, default="fresh")
    weighting: Weighting = eqx.field(static=True, default="uniform")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive", adapt_rate="positive", difference="positive")
        check(self, local_steps="count", adapt_steps="count", batch_size="count", epochs="whole")
        check(self, variant=get_args(Variant), batches=BATCH_ORDERS, weighting=("uniform", "size"))

    def meta_gradient(self, client: Client, w: Params, first: Batch, second: Batch, third: Batch) -> Params:
        """(I - alpha H(w; third)) grad f_i(w - alpha grad f_i(w; first); second), or the variant's estimate."""
        adapted = tree.add_scaled(w, -self.adapt_rate, client.grad(w, first))
        slope = client.grad(adapted, second)
        if self.variant == "first-order":
            return slope
        if self.variant == "hessian-free":
            ahead = client.grad(tree.add_scaled(w, self.difference, slope), third)
            behind = client.grad(tree.add_scaled(w, -self.difference, slope), third)
            return tree.add_scaled(slope, -self.adapt_rate / (2 * self.difference), tree.subtract(ahead, behind))
        _, curved = jax.jvp(lambda p: client.grad(p, third), (w,), (slope,))
        return tree.add_scaled(slope, -self.adapt_rate, curved)

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: the client's w after its local iterations."""
        needed = 2 if self.variant in ("first-order", "sequential") else 3

        def step(w: Params, group: Batch) -> Params:
            first, second, third = (jax.tree.map(lambda a, i=i: a[i], group) for i in (0, 1, needed - 1))
            if self.variant == "sequential":
                w = tree.add_scaled(w, -self.adapt_rate, client.grad(w, first))
                return tree.add_scaled(w, -self.rate, client.grad(w, second))
            return tree.add_scaled(w, -self.rate, self.meta_gradient(client, w, first, second, third))

        if self.epochs:

            def iteration(index: ArrayLike, w: Params) -> Params:
                number = needed * index + jnp.arange(needed)
                return step(w, jax.vmap(lambda k: client.batch(key, k, self.batch_size, "epoch"))(number))

            total = self.epochs * jnp.maximum(client.size // self.batch_size, 1)
            return jax.lax.fori_loop(0, total, iteration, view), private
        draws = client.batches(key, needed * self.local_steps, self.batch_size, self.batches)
        grouped = jax.tree.map(lambda a: a.reshape(self.local_steps, needed, *a.shape[1:]), draws)
        return jax.lax.scan(lambda w, group: (step(w, group), None), view, grouped)[0], private

    def aggregate(self, shared: Params, cohort: Cohort, messages: Params) -> Params:
        """The mean of the cohort's models."""
        return tree.weighted_mean(messages, cohort.weights(self.weighting))

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """adapted: w after adapt_steps SGD steps on training data; global: w."""

        def step(w: Params, batch: Batch) -> tuple[Params, Array | None]:
            return tree.add_scaled(w, -self.adapt_rate, client.grad(w, batch)), None

        draws = client.batches(key, self.adapt_steps, self.batch_size, self.batches)
        return {"adapted": jax.lax.scan(step, view, draws)[0], "global": Shared(view)}
