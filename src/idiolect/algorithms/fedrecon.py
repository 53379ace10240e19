"""FedRecon: private parts that are not kept but rebuilt, from data, whenever they are needed."""

from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, check
from idiolect.algorithms.parts.body_head import OneStart, Parted, train_head
from idiolect.algorithms.parts.rows_used import RowsUsed
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.tree import Params, Scalar

Split = Literal["random", "none"]
Rebuilt = Literal["all", "support"]


class FedRecon(OneStart, Trainer):
    """FedRecon: clients rebuild their private part l_i on support data, then improve the global part g on query data.

    A round on client i (Algorithm 1), with its samples divided into D_s and D_q, the same in every round:
        l_i <- k_r SGD steps on f(.; g, D_s) from the private part's initialisation
        g_i <- k_u SGD steps on f(.; l_i, D_q) from g, l_i held
    The server: g <- g + eta_s sum_{i in S} (n_i / n) (g_i - g), n_i = |D_q|

    recon_steps: k_r; recon_rate: their learning rate. rate, local_steps (k_u), epochs, batch_size, batches: the
    steps on g, see `Trainer`; batch_size and batches also hold for the reconstruction. weighting: by |D_q| ("size")
    or equal ("uniform"). server_optimizer, server_rate (eta_s): see `Averaging`. head: the private part; head_init:
    its initialisation, "model" as the initial model has it, else drawn anew by each client in each round.
    support: share of D_s, one sample at least in each of D_s and D_q where a client has two. split_seed: names the
    permutations that divide the clients' samples. rebuild_on: data for the model `personal`, "all" training samples
    or "support". keep: True keeps l_i from round to round and starts from it, which the paper does not.

    PFLEGO's published code (sotirisnik/PFLEGO, `b24b905`, main.py) has split="none": D_s and D_q are both all the
    samples. It keeps heads from round to round (keep=True; line 1203), which each client draws uniform in [0, 1)
    (head_init="uniform"). Its server takes Adam's step along the mean gradient of one body step (rate=1,
    local_steps=1, server_optimizer="adam").

    Model: `personal` is g with a private part rebuilt for it.

    Source: Singhal et al., "Federated Reconstruction: Partially Local Federated Learning", NeurIPS 2021, Algorithm 1.
    """

    name: ClassVar[str] = "fedrecon"
    title: ClassVar[str] = "FedRecon"
    summary: ClassVar[str] = "private parts rebuilt on support data, the shared part trained on query data"
    source: ClassVar[str] = "Singhal et al., NeurIPS 2021, Algorithm 1"

    recon_rate: Scalar = 0.02
    support: Scalar = 0.5
    recon_steps: int = eqx.field(static=True, default=20)
    split: Split = eqx.field(static=True, default="random")
    split_seed: int = eqx.field(static=True, default=0)
    rebuild_on: Rebuilt = eqx.field(static=True, default="all")
    keep: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, recon_rate="positive", support="share", recon_steps="whole", split_seed="whole")
        check(self, split=get_args(Split), rebuild_on=get_args(Rebuilt))
        require(
            not self.trained, f"{self.name}: it has no setting trained: its private part is rebuilt for every test"
        )

    def init_private(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """Nothing, unless private parts are kept."""
        return Parted.init_private(self, start, key) if self.keep else None

    def support_size(self, size: Array) -> Array:
        """|D_s| of a client with `size` samples."""
        return jnp.minimum(jnp.maximum(jnp.round(self.support * size), 1), size - 1).astype(size.dtype)

    def divided(self, client: Client) -> tuple[Client, Client]:
        """The client with its support samples, and with its query samples."""
        if self.split == "none":
            return client, client
        shuffled = client.shuffled(jax.random.fold_in(jax.random.key(self.split_seed), client.id))
        first = self.support_size(client.size)
        return shuffled.window(0, first), shuffled.window(first, client.size - first)

    def rebuilt(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Params:
        """l_i, from the samples of `client`."""
        body, announced = self.part(view)
        for_start, for_steps = jax.random.split(key)
        return train_head(
            client,
            body,
            private if self.keep else self.fresh(announced, for_start),
            for_steps,
            rate=self.recon_rate,
            steps=self.recon_steps,
            batch_size=self.batch_size,
            order=self.batches,
        )

    def rows_used(self, rows: int) -> RowsUsed | None:
        """Count the query rows: only they enter the steps on the part that is sent."""
        support = 0 if self.split == "none" else min(max(round(float(self.support) * rows), 1), rows - 1)
        return super().rows_used(rows - support)

    def local(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> tuple[Params, PyTree]:
        """Message: g_i."""
        support, query = self.divided(client)
        for_head, for_body = jax.random.split(key)
        head = self.rebuilt(view, private, support, for_head)
        return self.train(self.part(view)[0], query, for_body, fixed=head), head if self.keep else private

    def aggregate(self, shared: PyTree, cohort: Cohort, messages: Params) -> PyTree:
        """The mean of the cohort's g_i by query samples, or one step of the server's optimiser towards it."""
        if self.split == "random":
            cohort = cohort._replace(sizes=cohort.sizes - self.support_size(cohort.sizes))
        return super().aggregate(shared, cohort, messages)

    def models(self, view: Params, private: PyTree, client: Client, key: PRNGKeyArray) -> Models:
        """personal: g with a private part rebuilt on training data."""
        data = self.divided(client)[0] if self.rebuild_on == "support" else client
        return {"personal": tree.merged(self.rebuilt(view, private, data, key), self.part(view)[0])}
