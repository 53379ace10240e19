"""Boosted trees for all clients, grown from summed histograms on the residual of own intercepts."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, aggregated, check
from idiolect.algorithms.parts.bins import ROUNDS, Cells, counts_of, edges_of, no_cells, refined, width_of
from idiolect.algorithms.parts.boosting import (
    Boosting,
    Loss,
    Model,
    Personal,
    Rows,
    features_of,
    own_intercept,
    rows_of,
    solved,
    width_of_message,
)
from idiolect.algorithms.parts.private_trees import Limits, joined, private_trees
from idiolect.algorithms.parts.rows_used import RowsUsed
from idiolect.algorithms.parts.trees import Rules, Split, Table, asked, best_split, grown
from idiolect.client.client import Client
from idiolect.client.objective import Batch
from idiolect.client.predictor import Models
from idiolect.core.errors import require
from idiolect.core.linalg import solve
from idiolect.core.tree import Scalar
from idiolect.models.forest import linear_scores

_WIDEST = 256  # coefficients of the linear part, whose square is sent
_DAMPING = 1e-3  # of the linear part's Newton steps, relative to each coefficient's curvature


class Booster(eqx.Module):
    """The server's state: rounds done, the cells of the bins, the growing trees, and the model so far."""

    round: Int[Array, ""]
    cells: Cells
    table: Table
    model: Model


class BoostedIntercept(Boosting):
    """One booster for all clients on top of own intercepts, and trees that may divide the clients by their own sums.

        min over w, b_1, ..., b_N, trees f of
            sum_i [sum_j loss(w z_ij + f_i(x_ij) + b_i, y_ij) + (mu / 2) |b_i|^2] + (nu / 2) |w|^2

    z = [1, x], and the constant in w has no penalty. b_i is private and never sent. f_i differs between clients only
    where a tree divides the clients. No row leaves a client: a message is a vector of sums over the client's rows.

    Rounds 1 to 7, setup. Bins: the clients count their rows in cells of the number line, which the server refines
    to the quantiles j / bins. A feature with at most `bins` values has a bin for each. Linear part: each client
    solves for its b_i and sends gradient and curvature of its profile; the server takes a damped Newton step.
    All other rounds grow trees. A round is one pass over the rows: a client sends, per node that the server asks
    for, per feature and bin, the sums of gradient G, curvature H and 1. The server chooses the split with the
    largest gain
        G_L^2 / (H_L + lambda) + G_R^2 / (H_R + lambda) - G^2 / (H + lambda)
    and splits the leaf with the largest gain next, exactly as best-first growth does. It asks for the children of
    all leaves that the known gains lead to, so that a tree of 15 leaves takes about 6 rounds. A leaf has the value
    -rate G / (H + lambda). After every `renew` trees each client solves for its b_i anew, by itself.

    Divisions of clients (`client_splits`): the client is one more feature, a category. In a node, clients with at
    least `client_smoothing` rows there are ordered by G_i / (H_i + client_smoothing), and the first or the last of
    them go left: at most half of them and at most `client_most`, with `client_l2` added to lambda, at least
    `client_rows` rows on the right and between two divisions that are tried. With at most 4 clients, one is taken
    from the rest. The server sends the limits of the order, and a client finds its side by its own sums. So does a
    new client. A client without rows in the node goes right. Without divisions only the sum of all messages
    counts, and the method fits sums that hide each client.

    A missing value (NaN) goes to the side with the larger gain, or to the side with more rows if the node had none
    missing. A table's column with more than four categories, and at most `bins`, is divided as clients are, by the
    same settings; the server chooses the set of categories that go left, and rows of others go right. Columns with
    fewer or more categories are features 0 and 1. Early stopping: choose the rounds on validation rows; every round's
    model is that of the finished trees. In a cohort smaller than N a pass has the sums of its cohort only. The run's
    module is not used.

    Private trees (`own_trees` > 0) lie on top of the shared ones, with the rules of `local-trees` and `rate`. A
    client with at least `own_rows` rows decides by itself: a quarter of its rows at a time is held out, and own trees
    of at most `own_leaves` leaves are grown on the others. It keeps own trees if the loss of rows that were held out
    falls by more than a standard error, mean(g) > std(g) / sqrt(n), and then grows them on all rows. They are grown
    when a model is asked for, never in a round, and nothing more is sent. The shared trees have seen the rows that
    are held out, so that a client is slow to keep own trees.

    linear: fit the linear part; if it has more than 256 coefficients, only the constant is fitted. linear_l2: nu, in
    rows; far above the number of rows it leaves no linear part, so that one program serves for both. renew: 0 keeps
    the b_i of the setup. histograms: most nodes, per score, that the server asks for in a round. The others: see
    `Boosting`.

    Model: `personal` is the linear part, all trees and b_i. A new client solves for its b_i, finds its sides and
    decides on own trees.

    Source: Friedman, "Greedy Function Approximation", Annals of Statistics 2001 (boosting); Chen, Guestrin,
    "XGBoost", KDD 2016, eq. 6-7 (gain and leaves); Ke et al., "LightGBM", NeurIPS 2017 (histograms, best-first
    growth, categories); Laird, Ware, Biometrics 1982 (own intercepts).
    """

    name: ClassVar[str] = "boosted-intercept"
    title: ClassVar[str] = "Boosted trees + own intercept"
    summary: ClassVar[str] = "boosted trees for all from summed histograms, on top of private intercepts"
    source: ClassVar[str] = "Friedman 2001; Chen, Guestrin, KDD 2016; Ke et al., NeurIPS 2017"
    model_names: ClassVar[tuple[str, ...]] = ("personal",)
    settling: ClassVar[int] = 60  # about six trees after the bins

    client_smoothing: Scalar = 10.0
    client_l2: Scalar = 10.0
    linear_l2: Scalar = 0.0
    client_splits: bool = eqx.field(static=True, default=True)
    linear: bool = eqx.field(static=True, default=True)
    renew: int = eqx.field(static=True, default=1)
    histograms: int = eqx.field(static=True, default=4)
    client_rows: int = eqx.field(static=True, default=100)
    client_most: int = eqx.field(static=True, default=32)
    own_trees: int = eqx.field(static=True, default=0)
    own_leaves: int = eqx.field(static=True, default=4)
    own_rows: int = eqx.field(static=True, default=100)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, client_smoothing="nonnegative", client_l2="nonnegative", linear_l2="nonnegative")
        check(self, renew="whole", histograms="count")
        check(self, client_rows="whole", client_most="count", own_trees="whole", own_rows="whole")
        require(2 <= self.own_leaves <= 255, f"{self.name}: own_leaves = {self.own_leaves} must be from 2 to 255")

    @property
    def renewal(self) -> int:
        """Boosting steps between two renewals of the own intercept."""
        return self.renew

    @property
    def rules(self) -> Rules:
        """When a node may be split, and how clients are divided."""
        return Rules(
            self.leaf_l2,
            self.min_curvature,
            self.min_gain,
            self.client_smoothing,
            self.client_l2,
            self.min_rows,
            self.client_rows,
            self.client_most,
        )

    def init(self, start: Start, key: PRNGKeyArray) -> Booster:
        """No bins, no trees, a linear part of zeros."""
        del key
        features, scores = features_of(start), self.kinds(start)[0]
        wide = self.linear and scores * (1 + features) <= _WIDEST
        model = self.first_model(start, 1 + features if wide else 1)
        cells = no_cells(features, self.bins)
        return Booster(jnp.zeros((), jnp.int32), cells, self.seedlings(model), model)

    def init_private(self, start: Start, key: PRNGKeyArray) -> Rows:
        """The intercept 0; the bins are made after the setup."""
        del key
        return self.first_rows(start)

    def size_of(self, model: Model) -> int:
        """Numbers of a message."""
        scores, inputs = model.linear.shape
        return width_of_message(len(model.edges), self.bins, scores, self.histograms, inputs)

    def asked(self, table: Table) -> Int[Array, "scores asked"]:
        """The nodes, per score, whose histograms this round brings."""
        return jax.vmap(lambda one: asked(one, self.histograms))(table)

    def local(self, view: Booster, private: Rows, client: Client, key: PRNGKeyArray) -> tuple[Array, Rows]:
        """Message: sums over the client's rows; private: the intercept, and the rows' scores and bins."""
        del key
        size = self.size_of(view.model)
        fill = lambda sums: jnp.pad(sums.reshape(-1), (0, size - sums.size))  # noqa: E731

        def setup(private: Rows) -> tuple[Array, Rows]:
            sums, b = self.profile(view, private, client)
            return fill(sums), eqx.tree_at(lambda rows: rows.intercept, private, b)

        def grow(private: Rows) -> tuple[Array, Rows]:
            rows = self.advanced(view.model, private, client)
            return fill(self.summed(view.table, self.asked(view.table), rows, client)), rows

        return jax.lax.cond(view.round < ROUNDS, setup, grow, private)

    def profile(
        self, view: Booster, private: Rows, client: Client
    ) -> tuple[Float[Array, "sums"], Float[Array, "scores"]]:
        """The counts per cell, then gradient and curvature in w of min over b_i, one after the other; and b_i."""
        batch, loss, w = self.batch_of(private, client), self.loss_of(client), view.model.linear
        x = rows_of(batch)
        counts = counts_of(view.cells, view.round, x, batch.weight)
        mu, no = self.intercept_penalty, jnp.zeros_like(private.intercept)
        b = own_intercept(loss, linear_scores(w, x), batch, mu, private.intercept, jnp.asarray(True))
        gradient, curvature = joint_derivatives(loss, linear_scores(w, x) + b, x, w.shape[1], batch)
        first = jnp.arange(w.size) % w.shape[1] == 0  # the constants' entries: the derivatives in b are theirs
        (place,) = jnp.nonzero(first, size=len(no))
        inner = curvature[place][:, place] + (mu + 1e-6) * jnp.eye(len(no), dtype=w.dtype)
        cross = curvature[:, place]
        curvature = curvature - cross @ solved(inner, cross.T)
        return jnp.concatenate([counts.reshape(-1), gradient, curvature.reshape(-1)]), b

    def rows_used(self, rows: int) -> RowsUsed:
        """Count one row per number: a cell of the number line, and a bin of a node, may hold a single row."""
        return RowsUsed(rows, rows, cell=1)

    def rank(self, start: Start, message: PyTree) -> int:
        """The coefficients of the linear part, whose curvature is sent."""
        del message
        return 1 + features_of(start) if self.linear else 1

    def aggregate(self, shared: Booster, cohort: Cohort, messages: Float[Array, "clients size"]) -> Booster:
        """Setup: finer cells and a Newton step. Else: the splits of the nodes that were asked for."""
        return aggregated(self, shared, cohort, messages)

    def histograms_in(
        self, model: Model, message: Float[Array, "size"]
    ) -> Float[Array, "scores asked features width 3"]:
        """The histograms that a growing round's message, or a sum of such messages, begins with."""
        shape = (len(model.linear), self.histograms, len(model.edges), self.bins + 1, 3)
        return message[: math.prod(shape)].reshape(shape)

    def of_each(self, shared: Booster, message: Float[Array, "size"]) -> Float[Array, "scores asked 3"]:
        """The client's sums in each node that was asked for; each feature's bins have all of its rows."""
        return jnp.sum(self.histograms_in(shared.model, message)[:, :, 0], axis=2)

    def of_sum(
        self,
        shared: Booster,
        cohort: Cohort,
        total: Float[Array, "size"],
        each: Float[Array, "clients scores asked 3"],
    ) -> Booster:
        """The server's state after a round, of the summed messages."""

        def setup(shared: Booster) -> Booster:
            features, w = len(shared.model.edges), shared.model.linear
            cells = features * width_of(self.bins)
            counts, gradient, curvature = jnp.split(total[: cells + w.size + w.size**2], [cells, cells + w.size])
            cells = refined(shared.cells, shared.round, counts.reshape(features, -1))
            share = jnp.sum(jnp.where(cohort.present, cohort.sizes, 0)) / cohort.total_size
            penalty = share * self.linear_l2 * jnp.ones_like(w).at[:, 0].set(0).reshape(-1)
            gradient = gradient + penalty * w.reshape(-1)
            step = share * newton_step(gradient, curvature.reshape(w.size, w.size) + jnp.diag(penalty))
            news = edges_of(cells, shared.round), w - step.reshape(w.shape)
            model = eqx.tree_at(lambda m: (m.edges, m.linear), shared.model, news)
            return Booster(shared.round + 1, cells, shared.table, model)

        def grow(shared: Booster) -> Booster:
            table, rules = shared.table, self.rules
            histogram = self.histograms_in(shared.model, total)
            own = jnp.where(cohort.present[:, None, None, None], each, 0)

            def of_node(histogram: Array, own: Array) -> Split:
                return best_split(histogram, own if self.client_splits else None, rules, shared.model.categories)

            splits = jax.vmap(jax.vmap(of_node))(histogram, jnp.moveaxis(own, 0, 2))
            table = jax.vmap(lambda t, at, s: grown(t, at, s, rules))(table, self.asked(table), splits)
            model = shared.model
            return jax.lax.cond(
                jnp.all(table.done) & (model.done < self.trees),
                lambda: Booster(shared.round + 1, shared.cells, self.seedlings(model), self.finished(model, table)),
                lambda: Booster(shared.round + 1, shared.cells, table, model),
            )

        return jax.lax.cond(shared.round < ROUNDS, setup, grow, shared)

    def models(self, view: Booster, private: Rows, client: Client, key: PRNGKeyArray) -> Models:
        """personal: the finished trees with the client's own intercept and sides."""
        del key
        rows = self.advanced(view.model, private, client)
        personal = self.forest(view.model, rows, client)
        if self.own_trees == 0:
            return {"personal": personal}
        limits = Limits(self.own_trees, self.own_leaves, self.own_rows)
        batch, loss = self.batch_of(rows, client), self.loss_of(client)
        own = private_trees(view.model, rows, batch, loss, super().rules, self.rate, limits, self.bins)
        return {"personal": Personal(joined(personal.forest, *own))}


def joint_derivatives(
    loss: Loss, scores: Float[Array, "n scores"], x: Float[Array, "n d"], inputs: int, batch: Batch
) -> tuple[Float[Array, "m"], Float[Array, "m m"]]:
    """Gradient and curvature of the summed loss in w, as a vector of (scores, inputs) entries; z = [1, x]."""
    z = jnp.concatenate([jnp.ones((len(x), 1), x.dtype), jnp.where(jnp.isnan(x), 0, x)], axis=1)[:, :inputs]
    g = jax.vmap(jax.grad(loss))(scores, batch.y)
    h = jax.vmap(jax.hessian(loss))(scores, batch.y)
    inside = batch.weight > 0
    g, h, z = (
        jnp.where(inside[:, None], g, 0),
        jnp.where(inside[:, None, None], h, 0),
        jnp.where(inside[:, None], z, 0),
    )
    m = scores.shape[1] * inputs
    gradient = jnp.einsum("nk,np->kp", g, z, precision="highest").reshape(m)
    count = scores.shape[1]
    weighted = h.reshape(len(z), count * count, 1) * z[:, None, :]  # (n, K^2, p)
    curvature = jnp.einsum("nap,nq->apq", weighted, z, precision="highest")
    curvature = curvature.reshape(count, count, inputs, inputs).transpose(0, 2, 1, 3).reshape(m, m)
    return gradient, curvature


def newton_step(gradient: Float[Array, "m"], curvature: Float[Array, "m m"]) -> Float[Array, "m"]:
    """(H + damping)^-1 g, after scaling to a unit diagonal; coefficients without curvature stay."""
    diagonal = jnp.diagonal(curvature)
    scale = jnp.where(diagonal > 1e-6 * jnp.max(diagonal), 1 / jnp.sqrt(jnp.maximum(diagonal, 1e-30)), 0)
    scaled = curvature * scale[:, None] * scale + _DAMPING * jnp.eye(len(scale), dtype=curvature.dtype)
    return scale * solve(scaled, scale * gradient)
