"""Write a method of your own: what one client does, and what the server does with the messages.

Run: python examples/own_method.py [ROUNDS]
"""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp

import idiolect


class FedMedian(idiolect.Algorithm):
    """Clients take SGD steps; the server takes the median of each parameter (Yin et al., ICML 2018)."""

    name, title, summary = "fedmedian", "FedMedian", "the median of the clients' models"
    rate: float = 0.05
    local_steps: int = eqx.field(static=True, default=20)
    batch_size: int = eqx.field(static=True, default=20)

    def local(self, view, private, client, key):  # one client, one round
        def step(w, batch):
            return jax.tree.map(lambda p, g: p - self.rate * g, w, client.grad(w, batch)), None

        return jax.lax.scan(step, view, client.batches(key, self.local_steps, self.batch_size, "fresh"))[0], private

    def aggregate(self, shared, cohort, messages):  # messages have a leading axis: the cohort
        def median(leaf):
            present = cohort.present.reshape((-1,) + (1,) * (leaf.ndim - 1))
            return jnp.nanmedian(jnp.where(present, leaf, jnp.nan), axis=0)

        return jax.tree.map(median, messages)


rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
data = idiolect.data.synthetic(0.5, 0.5, clients=8, max_size=200)
idiolect.compare(data, "mlr", [FedMedian(rate=0.1), "fedavg"], rounds=rounds, eval_every=rounds).show()
