"""A client's trees from its own rows: as its whole model, or a few on top of shared trees where they help it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from idiolect.algorithms.parts.boosting import (
    Grown,
    Loss,
    Model,
    Rows,
    completed,
    of_trees,
    placed,
    sums_of,
    values_of,
)
from idiolect.algorithms.parts.trees import (
    Rules,
    Table,
    asked,
    best_split,
    grown,
    seedling,
    seedlings,
    words_for,
    words_in,
)
from idiolect.client.objective import Batch
from idiolect.core.tree import Scalar
from idiolect.data.schema.columns import Categories
from idiolect.models.forest import Forest, Splits

FOLDS = 4
"""Row j is held out in part j modulo so many."""


class Limits(NamedTuple):
    """Of private trees: how many, the most leaves of each, and the fewest rows of a client that may have them."""

    trees: int
    leaves: int
    rows: int


def grown_alone(
    bins: Array,
    sums: Float[Array, "scores n 3"],
    rules: Rules,
    leaves: int,
    missing: int,
    wanted: Bool[Array, ""],
    categories: Categories = (),
) -> Table:
    """One tree per score from the sums of these rows only, without divisions of clients; none if not `wanted`.

    bins: (features, n); missing: the bin of missing values. categories: see `best_split`.
    """

    def one_pass(table: Table) -> Table:
        at = jax.vmap(lambda one: asked(one, leaves))(table)
        found = of_trees(table, at, bins, sums, rules, missing)
        splits = jax.vmap(jax.vmap(lambda histogram: best_split(histogram, None, rules, categories)))(found)
        return jax.vmap(lambda one, at, splits: grown(one, at, splits, rules))(table, at, splits)

    begin = seedlings(len(sums), leaves, words_for(categories, missing))
    return jax.lax.while_loop(lambda table: wanted & ~jnp.all(table.done), one_pass, begin)


class _Growth(NamedTuple):
    """part: that is held out, `FOLDS` for none. gain: of each row that was held out. made: trees of this
    part. over: nothing is left to do.
    """

    part: Int[Array, ""]
    made: Int[Array, ""]
    scores: Float[Array, "n scores"]
    trees: Grown
    gain: Float[Array, "n"]
    over: Bool[Array, ""]


def private_trees(
    model: Model, rows: Rows, batch: Batch, loss: Loss, rules: Rules, rate: Scalar, limits: Limits, missing: int
) -> tuple[Grown, Int[Array, ""]]:
    """(the client's own trees on top of its scores, how many it keeps: all or 0).

    Each part of the rows is held out once, and trees are grown on the others. With g_j = loss before - loss after
    of row j when it is held out, the client keeps own trees if mean(g) > std(g) / sqrt(n). Those that it keeps are
    grown on all rows: of 100 rows a quarter is much. A client with too few rows grows none at all, and without a
    shared tree there is nothing to be on top of.

    Passes over the rows, each tree of 4 leaves taking three: 0 for too few rows, else 12 per tree, and 3 more if
    they are kept.
    """
    n = len(rows.scores)
    if n < limits.rows:  # no client has more: nothing to compile
        return _no_trees(model, limits), jnp.zeros((), jnp.int32)
    start = rows.scores + rows.intercept
    inside, part_of = batch.weight > 0, jnp.arange(n, dtype=jnp.int32) % FOLDS
    count = jnp.sum(inside)
    losses = lambda scores: jax.vmap(loss)(scores, batch.y)  # noqa: E731
    none = _no_trees(model, limits)

    def next_tree(s: _Growth) -> _Growth:
        held = inside & (part_of == s.part)
        sums = jnp.where((inside & ~held)[:, None], sums_of(loss, s.scores, batch), 0)
        table = grown_alone(rows.bins, sums, rules, limits.leaves, missing, jnp.asarray(True), model.categories)
        tree = completed(table, model.edges, rate)
        after = s.scores + values_of(tree, rows.bins, sums, rules, missing)[0]
        trees = jax.tree.map(lambda old, new: old.at[s.made].set(new.astype(old.dtype)), s.trees, tree)
        # A tree without a split changes no score, and all later trees would be like it.
        full = (s.made + 1 == limits.trees) | ~jnp.any(tree.node >= 0)
        gain = jnp.where(full & held, losses(start) - losses(after), s.gain)
        last = s.part == FOLDS
        over = full & (last | ((s.part == FOLDS - 1) & ~_gains(gain, inside)))
        renewed = full & ~last
        after, trees = jax.tree.map(lambda new, old: jnp.where(renewed, new, old), (start, none), (after, trees))
        return _Growth(s.part + full, jnp.where(full, 0, s.made + 1), after, trees, gain, over)

    too_few = (count < max(limits.rows, FOLDS)) | (model.done == 0)
    zero = jnp.zeros((), jnp.int32)
    begin = _Growth(zero, zero, start, none, jnp.zeros(n, start.dtype), too_few)
    end = jax.lax.while_loop(lambda s: ~s.over, next_tree, begin)
    return end.trees, jnp.where(end.part > FOLDS, limits.trees, 0)


def _no_trees(model: Model, limits: Limits) -> Grown:
    tree, scores = placed(seedling(limits.leaves, words_in(model.grown.members))), len(model.linear)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (limits.trees, scores, *leaf.shape)), tree)


def _gains(gain: Float[Array, "n"], inside: Bool[Array, "n"]) -> Bool[Array, ""]:
    """Whether the mean exceeds its standard error."""
    n = jnp.maximum(jnp.sum(inside), 2).astype(gain.dtype)
    mean = jnp.sum(jnp.where(inside, gain, 0)) / n
    squares = jnp.sum(jnp.where(inside, (gain - mean) ** 2, 0))
    return mean > jnp.sqrt(squares / (n - 1) / n)


def joined(forest: Forest, own: Grown, kept: Int[Array, ""]) -> Forest:
    """The forest with the first `kept` of the own trees behind its `done` trees; smaller trees are padded."""
    trees, scores, nodes = own.value.shape
    wide = max(nodes, forest.value.shape[2])

    def behind(shared: Array, mine: Array, width: int, fill: int) -> Array:
        def padded(a: Array, more: int) -> Array:
            room = ((0, more), (0, 0), (0, width - a.shape[2]), *[(0, 0)] * (a.ndim - 3))
            return jnp.pad(a, room, constant_values=jnp.asarray(fill, a.dtype))

        room, mine = padded(shared, trees), padded(mine, 0).astype(shared.dtype)
        return jnp.where(kept > 0, jax.lax.dynamic_update_slice_in_dim(room, mine, forest.done, 0), room)

    def both(shared: Array | None, mine: Array | None, fill: int) -> Array | None:
        return None if shared is None or mine is None else behind(shared, mine, narrow, fill)

    splits = Splits(own.node, own.feature, own.cut, own.missing, own.members)
    narrow, pairs = wide // 2, zip(forest.splits, splits, (-1, 0, 0, 0, 0), strict=True)
    return Forest(
        Splits._make(both(a, b, fill) for a, b, fill in pairs),
        behind(forest.value, own.value, wide, 0),
        behind(forest.sides, jnp.zeros((trees, scores, nodes // 2), bool), narrow, 0),
        forest.linear,
        forest.intercept,
        forest.done + kept,
        forest.categories,
        forest.outputs,
    )
