"""A client's side of boosted trees: its rows in bins, their scores, its own intercept, and the sums over its rows."""

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, UInt32

from idiolect.algorithms.base import Algorithm, Start, check
from idiolect.algorithms.parts.bins import TILE, binned, edges_of, no_cells, width_of, with_categories
from idiolect.algorithms.parts.trees import SINGLE, Rules, Split, Table, goes_left, no_members, seedlings, words_for
from idiolect.client.client import Client
from idiolect.client.objective import Batch, own_outputs
from idiolect.client.predictor import Module, Predictor
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.linalg import solve
from idiolect.core.tree import Scalar
from idiolect.data.schema.columns import Categories
from idiolect.models.forest import Forest, Splits, is_member, linear_scores, outputs_of, scores_of

Result = TypeVar("Result", bound=PyTree)
Loss = Callable[[Array, Array], Float[Array, ""]]
LARGER = 4
"""See `by_size`."""
_SMOOTHING, _SET_L2, _MOST = 10.0, 10.0, 32  # of divisions of categories, as in LightGBM
_NEWTON = 20  # most steps of an intercept's solver; it needs two to five
_SHARES = (1.0, 0.5, 0.25, 0.0625)  # of a Newton step, the best is taken


class Grown(NamedTuple):
    """Finished trees, leaves (trees, scores, ...): their splits by bins and by cuts, and values; see `Split`."""

    node: Int[Array, "*trees splits"]
    feature: Int[Array, "*trees splits"]
    bin: Int[Array, "*trees splits"]
    missing: Bool[Array, "*trees splits"]
    low: Float[Array, "*trees splits"]
    high: Float[Array, "*trees splits"]
    least: Float[Array, "*trees splits"]
    members: UInt32[Array, "*trees splits words"] | None
    cut: Float[Array, "*trees splits"]
    value: Float[Array, "*trees nodes"]


class Rows(eqx.Module):
    """A client's private state: its rows in bins, their scores, its intercept, and its sides of divisions of clients.

    done: trees that the scores have. ready: whether the bins are made.
    """

    bins: Array
    scores: Float[Array, "rows scores"]
    intercept: Float[Array, "scores"]
    sides: Bool[Array, "trees scores splits"]
    done: Int[Array, ""]
    ready: Bool[Array, ""]


class Model(eqx.Module):
    """What a client needs to score rows: edges of the bins, the linear part, and `done` trees of `grown`.

    categories: the columns that trees divide by sets.
    """

    edges: Float[Array, "features edges"]
    linear: Float[Array, "scores inputs"]
    grown: Grown
    done: Int[Array, ""]
    categories: Categories = eqx.field(static=True, default=())


class Personal(Predictor):
    """A client's trees, intercept and sides. They need nothing of the run's module."""

    forest: Forest

    def bound(self, module: Callable[[PyTree], Module]) -> Module:
        """The forest itself."""
        del module
        return self.forest


def rows_of(batch: Batch) -> Float[Array, "n features"]:
    """The features as a table, infinite ones as the largest number."""
    x = jax.tree.leaves(batch.x)[0]
    most = jnp.finfo(jnp.result_type(float)).max
    return jnp.clip(x.reshape(len(x), -1).astype(jnp.result_type(float)), -most, most)


def histograms(
    bins: Array, place: Int[Array, "n"], sums: Float[Array, "n 3"], at: Int[Array, "asked"], width: int, nodes: int
) -> Float[Array, "asked features width 3"]:
    """The sums of rows per node in `at`, feature and bin; bins: (features, n); place: each row's node.

    Only rows of these nodes are added, `TILE` at a time: one scatter into the result's own layout, each of whose
    updates is a row's three sums. A small client's time is that of passes over the result, which is larger than its
    rows. A fourth column, to fill a vector register, is 2 % faster where clients have thousands of rows, and 1.6
    times slower where they have 13. Loops over features outside the one over tiles, and a scatter of all rows per
    feature, are slower.
    """
    features, count, n = len(bins), len(at), len(place)
    slot = jnp.full(nodes + 1, count, jnp.int32).at[at].set(jnp.arange(count, dtype=jnp.int32))
    slot = slot.at[nodes].set(count)[place]
    wanted = (slot < count) & jnp.any(sums != 0, axis=1)
    tile_rows = min(TILE, n)  # a small client has no more
    (rows,) = jnp.nonzero(wanted, size=-(-n // tile_rows) * tile_rows, fill_value=n)
    first, size = jnp.arange(features, dtype=jnp.int32) * width, features * width

    def add(tile: Array, total: Array) -> Array:
        here = jax.lax.dynamic_slice_in_dim(rows, tile * tile_rows, tile_rows)
        inside, here = here < n, jnp.minimum(here, n - 1)
        within = jnp.where(inside, slot[here] * size, count * size)  # the end: dropped
        index = first[:, None] + within + bins[:, here].astype(jnp.int32)
        return total.at[index].add(jnp.broadcast_to(sums[here], (features, tile_rows, 3)), mode="drop")

    tiles = (jnp.sum(wanted) + tile_rows - 1) // tile_rows
    found = jax.lax.fori_loop(0, tiles, add, jnp.zeros((count * size, 3), sums.dtype))
    return found.reshape(count, features, width, 3)


def routed(
    splits: Grown, bins: Array, sums: Float[Array, "n 3"], rules: Rules, missing: int
) -> tuple[Int[Array, "n"], Bool[Array, "splits"]]:
    """(each row's node, the side of the client at each division of clients) of one tree.

    missing: the bin of missing values. The tree's `cut` is not used.
    """
    features = len(bins)

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        place, sides = state
        here = place == splits.node[k]
        column = bins[jnp.minimum(splits.feature[k], features - 1)]
        left = jnp.where(column == missing, splits.missing[k], column.astype(jnp.int32) <= splits.bin[k])
        if splits.members is not None:
            members = splits.members[k]
            left = jnp.where(jnp.any(members != 0), is_member(members, column.astype(jnp.int32)), left)
        division = splits.feature[k] == features
        own = jax.lax.cond(
            division,
            lambda: jnp.sum(jnp.where(here[:, None], sums, 0), axis=0),
            lambda: jnp.zeros(3, sums.dtype),
        )
        side = division & goes_left(own, splits.low[k], splits.high[k], splits.least[k], rules)
        left = jnp.where(division, side, left)
        child = jnp.where(left, 2 * k + 1, 2 * k + 2).astype(place.dtype)
        return jnp.where(here, child, place), sides.at[k].set(side)

    count = splits.node.shape[0]
    start = jnp.zeros(bins.shape[1], jnp.int32), jnp.zeros(count, bool)
    return jax.lax.fori_loop(0, count, step, start)


def of_trees(
    table: Table,
    at: Int[Array, "scores asked"],
    bins: Array,
    sums: Float[Array, "scores n 3"],
    rules: Rules,
    missing: int,
) -> Float[Array, "scores asked features width 3"]:
    """The histograms of rows in the nodes `at` of growing trees, one tree per score."""

    def of_score(table: Table, at: Array, sums: Array) -> Array:
        place, _ = routed(placed(table), bins, sums, rules, missing)
        return histograms(bins, place, sums, at, missing + 1, len(table.known))

    # One after the other: where scores are batched, a loop over a score's rows copies its sums in each step.
    return jax.lax.map(lambda one: of_score(*one), (table, at, sums))


def values_of(
    trees: Grown, bins: Array, sums: Float[Array, "scores n 3"], rules: Rules, missing: int
) -> tuple[Float[Array, "n scores"], Bool[Array, "scores splits"]]:
    """(what one tree per score gives each row, the sides of the client)."""
    place, sides = jax.vmap(lambda one, sums: routed(one, bins, sums, rules, missing))(trees, sums)
    return jax.vmap(lambda value, at: value[at])(trees.value, place).T, sides


def sums_of(loss: Loss, scores: Float[Array, "n scores"], batch: Batch) -> Float[Array, "scores n 3"]:
    """Each row's gradient, curvature and 1, per score; zero for padding. The curvature is at least 0."""

    def of_row(s: Array, y: Array) -> tuple[Array, Array]:
        slope = jax.grad(loss)
        along = lambda e: jnp.vdot(jax.jvp(lambda p: slope(p, y), (s,), (e,))[1], e)  # noqa: E731
        return slope(s, y), jax.vmap(along)(jnp.eye(len(s), dtype=s.dtype))

    first, second = jax.vmap(of_row)(scores, batch.y)
    stacked = jnp.stack([first, jnp.maximum(second, 0), jnp.ones_like(first)], axis=-1)
    kept = jnp.where(batch.weight[:, None, None] > 0, stacked, 0)
    return jnp.moveaxis(kept, 1, 0)


def own_intercept(
    loss: Loss,
    scores: Float[Array, "n scores"],
    batch: Batch,
    penalty: Scalar,
    start: Float[Array, "scores"],
    wanted: Array,
) -> Float[Array, "scores"]:
    """argmin over b of sum_j loss(scores_j + b) + (penalty / 2) |b|^2 by Newton steps from `start`.

    wanted: whether to solve at all. Each step takes the best of a few lengths, so that the sum never rises.
    """

    def value(b: Array) -> Array:
        losses = jax.vmap(loss)(scores + b, batch.y)
        return jnp.sum(jnp.where(batch.weight > 0, losses, 0)) + 0.5 * penalty * jnp.vdot(b, b)

    tolerance = float(jnp.finfo(scores.dtype).eps) ** 0.75

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        b, _, done = state
        slope, curvature = jax.grad(value)(b), jax.hessian(value)(b)
        ridge = 1e-6 * (jnp.trace(curvature) + 1) * jnp.eye(len(b), dtype=b.dtype)
        move = solved(curvature + jnp.where(penalty > 0, 0, ridge), slope)
        steps = jnp.asarray([*_SHARES, 0.0], b.dtype)[:, None] * move
        # Where the loss is nearly linear a Newton step is far too long: two units are a step in log-odds.
        tries = b - jnp.concatenate([steps, jnp.clip(move, -2, 2)[None]])
        best = jnp.argmin(jax.vmap(value)(tries))
        # Close to the optimum rounding hides the decrease: a short whole step is taken as it is.
        short = jnp.max(jnp.abs(move)) < 1e-2 * (1 + jnp.max(jnp.abs(b)))
        new = jnp.where(short, tries[0], tries[best])
        return new, jnp.max(jnp.abs(new - b)) / (1 + jnp.max(jnp.abs(b))), done + 1

    begin = start, jnp.where(wanted, 1.0, 0.0).astype(scores.dtype), jnp.zeros((), jnp.int32)
    return jax.lax.while_loop(lambda s: (s[1] > tolerance) & (s[2] < _NEWTON), step, begin)[0]


def solved(matrix: Float[Array, "k k"], right: Float[Array, "k ..."]) -> Float[Array, "k ..."]:
    """The solution of a linear system; one equation needs no solver, whose program takes long to compile."""
    return right / matrix[0, 0] if len(matrix) == 1 else solve(matrix, right)


class Boosting(Algorithm):
    """Boosted trees on bins; what the method with shared trees and the one with each client's own have in common.

    One boosting step adds a tree per score. A regression has one score. Two classes have one score s with the
    outputs (0, s). More classes have one score per class, and a step grows one tree for each.

    rate: the shrinkage that multiplies the values of leaves. leaves: most leaves of a tree. trees: most boosting
    steps; rounds after the last one change nothing. min_rows, min_curvature: rows and sum of curvatures that each
    side of a split needs. min_gain: the gain that a split must exceed. leaf_l2: lambda, which is added to the sum of
    curvatures. bins: most bins of a feature, up to 255; a missing value has a bin of its own.
    intercept_penalty: mu, the penalty of an own intercept, in rows.

    A table's column with more than four categories, and at most `bins`, is divided by sets: categories with at least
    10 rows in the node are ordered by G / (H + 10), and the first or the last of them go left, at most half of them
    and at most 32, with 10 added to lambda and at least `min_rows` rows on the right and between two divisions that
    are tried. Rows of other categories go right. Other columns of categories are features 0 and 1.
    """

    by_curvature: ClassVar[bool] = False
    batched: ClassVar[bool] = False

    rate: Scalar = 0.1
    leaf_l2: Scalar = 0.0
    min_curvature: Scalar = 1e-3
    min_gain: Scalar = 0.0
    intercept_penalty: Scalar = 3.0
    leaves: int = eqx.field(static=True, default=15)
    trees: int = eqx.field(static=True, default=300)
    bins: int = eqx.field(static=True, default=64)
    min_rows: int = eqx.field(static=True, default=20)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive", leaf_l2="nonnegative", min_curvature="nonnegative", min_gain="nonnegative")
        check(self, intercept_penalty="nonnegative", leaves="count", trees="count", bins="count", min_rows="whole")
        require(self.leaves <= 255, f"{self.name}: leaves = {self.leaves} must not be greater than 255")
        require(self.leaves >= 2, f"{self.name}: leaves = {self.leaves} must be at least 2")
        require(2 <= self.bins <= 255, f"{self.name}: bins = {self.bins} must be from 2 to 255")

    @property
    def renewal(self) -> int:
        """Boosting steps between two renewals of the own intercept; 0: it is never renewed."""
        return 0

    @property
    def rules(self) -> Rules:
        """When a node may be split, and how categories are divided in a client's own trees."""
        limits = self.leaf_l2, self.min_curvature, self.min_gain
        return Rules(*limits, _SMOOTHING, _SET_L2, self.min_rows, self.min_rows, _MOST)

    def kinds(self, start: Start) -> tuple[int, int]:
        """(number of scores, the outputs of a `Forest`)."""
        return scores_of(start.task, start.num_outputs)

    def categories_of(self, start: Start) -> Categories:
        """The columns of categories that trees divide by sets: more than four categories, and a bin for each.

        With up to four a split takes one from the rest, as a split by the feature of that category does.
        """
        return tuple((first, count) for first, count in start.categories if SINGLE < count <= self.bins)

    def first_model(self, start: Start, inputs: int) -> Model:
        """No trees, and a linear part of zeros."""
        dtype, features, count = jnp.result_type(float), features_of(start), self.leaves - 1
        scores, _ = self.kinds(start)
        shape = (self.trees, scores)
        whole = jnp.zeros((*shape, count), jnp.int32)
        real, no = jnp.zeros((*shape, count), dtype), jnp.zeros((*shape, count), bool)
        value = jnp.zeros((*shape, 2 * self.leaves - 1), dtype)
        categories = self.categories_of(start)
        members = no_members((*shape, count), words_for(categories, self.bins))
        grown = Grown(whole - 1, whole, whole, no, real, real, real, members, real, value)
        edges = edges_of(no_cells(features, self.bins))
        return Model(edges, jnp.zeros((scores, inputs), dtype), grown, jnp.zeros((), jnp.int32), categories)

    def first_rows(self, start: Start) -> Rows:
        """The private state before anything is known of the bins."""
        scores, dtype = self.kinds(start)[0], jnp.result_type(float)
        return Rows(
            jnp.zeros((features_of(start), start.capacity), jnp.uint8),
            jnp.zeros((start.capacity, scores), dtype),
            jnp.zeros(scores, dtype),
            jnp.zeros((self.trees, scores, self.leaves - 1), bool),
            jnp.zeros((), jnp.int32),
            jnp.asarray(False),
        )

    def seedlings(self, model: Model) -> Table:
        """One tree without splits per score."""
        return seedlings(len(model.linear), self.leaves, words_for(model.categories, self.bins))

    def batch_of(self, rows: Rows, client: Client) -> Batch:
        """All rows of the client, padded to those of its private state."""
        return client.take(jnp.arange(rows.scores.shape[0]))

    def loss_of(self, client: Client) -> Loss:
        """The client's loss of the scores of one row."""

        def loss(scores: Array, y: Array) -> Array:
            outputs = outputs_of(scores, self.outputs_for(client, len(scores)))
            if client.outputs is not None:
                blank = jnp.zeros(1, scores.dtype)
                outputs = own_outputs(outputs[None], Batch(blank, blank, blank, client.outputs))[0]
            return client.objective.sample_loss(outputs, y)

        return loss

    def advanced(self, model: Model, rows: Rows, client: Client) -> Rows:
        """The private state with the bins and with all finished trees; nothing is done twice.

        Loops in the place of conditions: where clients are batched, a condition computes both of its branches.
        """
        batch, loss = self.batch_of(rows, client), self.loss_of(client)
        missing, mu = self.bins, self.intercept_penalty

        def prepared(rows: Rows) -> Rows:
            x = rows_of(self.batch_of(rows, client))  # inside the loop: gathered once, not in every round
            scores = linear_scores(model.linear, x)
            b = own_intercept(loss, scores, batch, mu, rows.intercept, jnp.asarray(True))
            bins = with_categories(binned(model.edges, x), x, model.categories, missing)
            return Rows(bins, scores, b, rows.sides, rows.done, jnp.asarray(True))

        def next_tree(rows: Rows) -> Rows:
            grown, done = tree.gather(model.grown, rows.done), rows.done + 1
            due = jnp.asarray(self.renewal > 0) & (done % max(self.renewal, 1) == 0)

            def of(part: Rows) -> tuple[Array, Array, Array]:
                batch = self.batch_of(part, client)
                sums = sums_of(loss, part.scores + rows.intercept, batch)
                more, sides = values_of(grown, part.bins, sums, self.rules, missing)
                scores = part.scores + more
                b = own_intercept(loss, scores, batch, mu, rows.intercept, due)
                return rows.scores.at[: len(scores)].set(scores), b, sides

            scores, b, sides = by_size(of, rows, client)
            return Rows(rows.bins, scores, b, rows.sides.at[rows.done].set(sides), done, rows.ready)

        rows = jax.lax.while_loop(lambda r: ~r.ready, prepared, rows)
        return jax.lax.while_loop(lambda r: r.done < model.done, next_tree, rows)

    def summed(
        self, table: Table, at: Int[Array, "scores asked"], rows: Rows, client: Client
    ) -> Float[Array, "scores asked features width 3"]:
        """The histograms of the client's rows in the nodes `at` of the growing trees."""

        def of(part: Rows) -> Float[Array, "scores asked features width 3"]:
            sums = sums_of(self.loss_of(client), part.scores + part.intercept, self.batch_of(part, client))
            return of_trees(table, at, part.bins, sums, self.rules, self.bins)

        return by_size(of, rows, client)

    def finished(self, model: Model, table: Table) -> Model:
        """The model with the complete trees of a table."""
        grown = completed(table, model.edges, self.rate)
        put = lambda old, new: old.at[model.done].set(new.astype(old.dtype), mode="drop")  # noqa: E731
        done = jnp.minimum(model.done + 1, self.trees)
        return eqx.tree_at(lambda m: (m.grown, m.done), model, (jax.tree.map(put, model.grown, grown), done))

    def outputs_for(self, client: Client, scores: int) -> int:
        """The `outputs` of a `Forest` with so many scores."""
        return 0 if client.objective.task == "regression" else max(scores, 2)

    def forest(self, model: Model, rows: Rows, client: Client) -> Personal:
        """The client's model: the finished trees with its own intercept and sides."""
        grown, outputs = model.grown, self.outputs_for(client, len(model.linear))
        splits = Splits(grown.node, grown.feature, grown.cut, grown.missing, grown.members)
        categories = jnp.asarray(model.categories, jnp.int32) if model.categories else None
        parts = splits, grown.value, rows.sides, model.linear, rows.intercept, model.done, categories
        return Personal(Forest(*parts, outputs))


def by_size(function: Callable[[Rows], Result], rows: Rows, client: Client) -> Result:
    """function(rows), or of fewer rows where these hold all of the client's.

    Rows are padded to those of the largest client. Where it has `LARGER` times as many as three quarters of the
    clients, a second program for these is worth its compilation.
    """
    most = rows.scores.shape[0]
    few = max((size for size in client.federation.sizes if LARGER * size <= most), default=0)
    if few == 0:
        return function(rows)
    part = eqx.tree_at(lambda r: (r.bins, r.scores), rows, (rows.bins[:, :few], rows.scores[:few]))
    return jax.lax.cond(client.size <= few, lambda: function(part), lambda: function(rows))


def placed(table: Table) -> Grown:
    """The splits of one growing tree in their order; a cut is not known yet."""
    at = jnp.maximum(table.order, 0)
    split: Split = tree.gather(table.split, at)
    parts = (split.feature, split.bin, split.missing, split.low, split.high, split.least, split.members)
    return Grown(table.order, *parts, jnp.zeros_like(split.low), table.value)


def completed(table: Table, edges: Float[Array, "features edges"], rate: Scalar) -> Grown:
    """The trees of a table, one per score, with their cuts, and values times the rate."""
    grown = jax.vmap(placed)(table)
    last = edges.shape[1]
    feature = jnp.minimum(grown.feature, len(edges) - 1)
    most = jnp.finfo(jnp.float32).max
    cut = jnp.where(grown.bin < last, edges[feature, jnp.minimum(grown.bin, last - 1)], most)
    return grown._replace(cut=cut, value=rate * table.value)


def features_of(start: Start) -> int:
    """Numbers of one sample."""
    return math.prod(start.feature_shape)


def width_of_message(features: int, bins: int, scores: int, asked: int, inputs: int) -> int:
    """Numbers of a message: the larger of a setup round's and a growing round's."""
    count = scores * inputs
    return max(features * width_of(bins) + count + count * count, scores * asked * features * (bins + 1) * 3)
