"""Grow trees from summed histograms: the best split of a node, and best-first growth in few passes over the rows.

A histogram has per feature and bin the sums of gradient, curvature and 1 over rows; the last bin is that of missing
values. A table holds a growing tree in the order in which best-first growth splits its nodes: split k makes the nodes
2k + 1 and 2k + 2. Which node is split next depends on the gains of all leaves, so a leaf whose histogram is unknown
may change the order. A pass asks for the histograms of all leaves that the known gains lead to. With the answers the
order is replayed. A node that is not among the first splits under some known gains is not among them under more: its
rank only falls. So what the replay drops is never needed again, and the table needs no more nodes than the tree has.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from idiolect.core import tree
from idiolect.core.tree import Scalar
from idiolect.data.schema.columns import Categories
from idiolect.models.forest import packed

SINGLE = 4
"""With at most so many clients, a division of clients takes one from the rest."""
_TIE = 1e-6  # relative: clients whose ratios differ by less are not divided


class Rules(eqx.Module):
    """When a node may be split, and what its leaves say; see `boosted-intercept` for the meaning of each."""

    l2: Scalar
    min_curvature: Scalar
    min_gain: Scalar
    client_smoothing: Scalar
    client_l2: Scalar
    min_rows: int = eqx.field(static=True)
    client_rows: int = eqx.field(static=True)
    client_most: int = eqx.field(static=True)


class Split(NamedTuple):
    """The best split of a node; leading axes as those of the nodes.

    gain: 0 or less if there is none. feature: its number, or the number of features for a division of clients.
    bin: rows up to this bin go left; missing: whether missing values do. low, high: clients with at least `least`
    rows and a ratio G / (H + smoothing) in (low, high] go left. left, right: (..., 3), the children's sums.
    values: (..., 2), the children's -G / (H + l2). members: of a division of categories those that go left, one bit
    for each bin; else 0. None where no column is divided so.
    """

    gain: Float[Array, "*nodes"]
    feature: Int[Array, "*nodes"]
    bin: Int[Array, "*nodes"]
    missing: Bool[Array, "*nodes"]
    low: Float[Array, "*nodes"]
    high: Float[Array, "*nodes"]
    least: Float[Array, "*nodes"]
    left: Float[Array, "*nodes 3"]
    right: Float[Array, "*nodes 3"]
    values: Float[Array, "*nodes 2"]
    members: UInt32[Array, "*nodes words"] | None


class Table(NamedTuple):
    """A growing tree with L leaves, L - 1 splits and 2 L - 1 nodes.

    order: (L - 1,) the node of each split, -1 where there is none. split: each node's best. known: whether it is
    known. exists: whether there is such a node. value: each node's value as a leaf. done: the tree is complete.
    """

    order: Int[Array, "*scores splits"]
    split: Split
    known: Bool[Array, "*scores nodes"]
    exists: Bool[Array, "*scores nodes"]
    value: Float[Array, "*scores nodes"]
    done: Bool[Array, "*scores"]


def no_split(nodes: tuple[int, ...] = (), words: int = 0) -> Split:
    """Of nodes that cannot be split. words: of the bits of a set of categories."""
    dtype = jnp.result_type(float)
    zero, whole, no = jnp.zeros(nodes, dtype), jnp.zeros(nodes, jnp.int32), jnp.zeros(nodes, bool)
    sums = jnp.zeros((*nodes, 3), dtype)
    values = jnp.zeros((*nodes, 2), dtype)
    return Split(zero - 1, whole, whole, no, zero, zero, zero, sums, sums, values, no_members(nodes, words))


def no_members(nodes: tuple[int, ...], words: int) -> UInt32[Array, "*nodes words"] | None:
    """Of splits that divide no categories."""
    return jnp.zeros((*nodes, words), jnp.uint32) if words else None


def seedling(leaves: int, words: int = 0) -> Table:
    """A tree of one node, of which nothing is known."""
    nodes = 2 * leaves - 1
    none = jnp.zeros(nodes, bool)
    order = jnp.full(leaves - 1, -1, jnp.int32)
    value = jnp.zeros(nodes, jnp.result_type(float))
    return Table(order, no_split((nodes,), words), none, none.at[0].set(True), value, jnp.asarray(False))


def seedlings(scores: int, leaves: int, words: int = 0) -> Table:
    """One tree without splits per score."""
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (scores, *leaf.shape)), seedling(leaves, words))


def asked(table: Table, most: int) -> Int[Array, "asked"]:
    """The nodes whose histograms the next pass brings, the earliest first; padded by the number of nodes."""
    nodes = len(table.known)
    wanted = table.exists & ~table.known & ~table.done
    return jnp.nonzero(wanted, size=most, fill_value=nodes)[0].astype(jnp.int32)


def grown(table: Table, at: Int[Array, "asked"], splits: Split, rules: Rules) -> Table:
    """The table with the best splits of the nodes `at`, and the order that follows."""
    put = lambda old, new: old.at[at].set(new.astype(old.dtype), mode="drop")  # noqa: E731
    known = table.known.at[at].set(True, mode="drop")
    split = jax.tree.map(put, table.split, splits)
    return _replayed(table._replace(known=known, split=split), rules)


def _replayed(table: Table, rules: Rules) -> Table:
    """Best-first growth by the known gains."""
    nodes, count = len(table.known), len(table.order)
    number = jnp.arange(count, dtype=jnp.int32)
    split_of = jnp.full(nodes, -1, jnp.int32).at[table.order].set(number, mode="drop", wrap_negative_indices=False)
    gain = jnp.where(table.known, table.split.gain, -1)

    class Step(NamedTuple):
        order: Array
        origin: Array  # of each new node its number in the old table, -1 if it is new
        parent: Array  # of each new node the number of its parent in the old table
        leaf: Array  # the new nodes that are leaves
        certain: Array  # no leaf was unknown when one was chosen

    def step(k: Array, s: Step) -> Step:
        old = jnp.maximum(s.origin, 0)
        # A child that the old table does not have is unknown, unless it is too small to be split.
        fresh = s.origin < 0
        side = jnp.where(jnp.arange(nodes) % 2 == 1, 0, 1)
        sums = jnp.where(side[:, None] == 0, table.split.left[s.parent], table.split.right[s.parent])
        small = fresh & (jnp.arange(nodes) > 0) & ~_divisible(sums, rules)
        known = jnp.where(fresh, small, table.known[old])
        gains = jnp.where(s.leaf & ~fresh & known, gain[old], -1)
        best = jnp.argmax(gains).astype(jnp.int32)
        found, open_ = gains[best] > 0, jnp.any(s.leaf & ~known)
        here = old[best]
        before = split_of[here]
        children = jnp.where(before >= 0, 2 * before + jnp.asarray([1, 2]), -1).astype(jnp.int32)
        new = 2 * k + jnp.asarray([1, 2], jnp.int32)
        place = jnp.where(found, new, nodes)
        return Step(
            s.order.at[k].set(jnp.where(found, best, -1)),
            s.origin.at[place].set(children, mode="drop"),
            s.parent.at[place].set(here, mode="drop"),
            s.leaf.at[jnp.where(found, best, nodes)].set(False, mode="drop").at[place].set(True, mode="drop"),
            s.certain & ~open_,
        )

    start = Step(
        jnp.full(count, -1, jnp.int32),
        jnp.full(nodes, -1, jnp.int32).at[0].set(0),
        jnp.zeros(nodes, jnp.int32),
        jnp.zeros(nodes, bool).at[0].set(True),
        jnp.asarray(True),
    )
    s = jax.lax.fori_loop(0, count, step, start)
    fresh, old = s.origin < 0, jnp.maximum(s.origin, 0)
    exists = s.leaf.at[s.order].set(True, mode="drop", wrap_negative_indices=False)
    split = jax.tree.map(
        lambda kept, none: jnp.where(fresh.reshape(-1, *(1,) * (kept.ndim - 1)), none, kept[old]),
        table.split,
        no_split((nodes,), words_in(table.split.members)),
    )
    right = jnp.arange(nodes) % 2 == 0
    sums = jnp.where(right[:, None], table.split.right[s.parent], table.split.left[s.parent])
    values = jnp.where(right, table.split.values[s.parent, 1], table.split.values[s.parent, 0])
    known = jnp.where(fresh, ~_divisible(sums, rules), table.known[old]) & exists
    value = jnp.where(jnp.arange(nodes) == 0, table.value, values)
    return Table(s.order, split, known, exists, jnp.where(exists, value, 0), s.certain)


def _divisible(sums: Float[Array, "*nodes 3"], rules: Rules) -> Bool[Array, "*nodes"]:
    """Whether two children can have enough rows and enough curvature."""
    return (sums[..., 2] >= 2 * max(rules.min_rows, 1)) & (sums[..., 1] >= 2 * rules.min_curvature)


def _gain(sums: Float[Array, "*any 3"], l2: Scalar) -> Float[Array, "*any"]:
    """G^2 / (H + l2)."""
    return sums[..., 0] ** 2 / jnp.maximum(sums[..., 1] + l2, 1e-15)


def _enough(sums: Float[Array, "*any 3"], rules: Rules) -> Bool[Array, "*any"]:
    return (sums[..., 2] >= max(rules.min_rows, 1)) & (sums[..., 1] >= rules.min_curvature)


def _values(left: Array, right: Array, l2: Scalar) -> Float[Array, "2"]:
    return jnp.stack([-side[0] / jnp.maximum(side[1] + l2, 1e-15) for side in (left, right)])


def best_split(
    histogram: Float[Array, "features bins 3"],
    clients: Float[Array, "clients 3"] | None,
    rules: Rules,
    categories: Categories = (),
) -> Split:
    """The split of a node with the largest gain, of all features, bins and sides for missing values, and of clients.

    gain = G_L^2 / (H_L + l2) + G_R^2 / (H_R + l2) - G^2 / (H + l2), Chen & Guestrin 2016, eq. 7, without the 1/2.
    clients: each client's own sums in the node, None for no divisions of clients. categories: the native ones, whose
    bins are divided as clients are; see `with_categories`. Both sides have at least `min_rows` rows and a curvature
    of `min_curvature`. Equal gains: the first feature, the first bin.
    """
    features, bins = histogram.shape[0], histogram.shape[1] - 1
    words = words_for(categories, bins)
    total = jnp.sum(histogram[0], axis=0)
    running = jnp.cumsum(histogram[:, :bins], axis=1)
    missing = histogram[:, bins]
    left = jnp.stack([running, running + missing[:, None]], axis=2)  # missing values right, left
    right = total - left
    gains = _gain(left, rules.l2) + _gain(right, rules.l2) - _gain(total, rules.l2) - rules.min_gain
    gains = jnp.where(_enough(left, rules) & _enough(right, rules), gains, -1)
    first = jnp.asarray([first for first, _ in categories], jnp.int32)
    gains = gains.at[first].set(-1).reshape(-1)
    best = jnp.argmax(gains)
    feature, bin, to_left = best // (2 * bins), best // 2 % bins, best % 2 == 1
    sums = left.reshape(-1, 3)[best], right.reshape(-1, 3)[best]
    # Where no row of the node has the feature missing, such rows will go to the larger side.
    to_left = jnp.where(missing[feature, 2] > 0, to_left, sums[0][2] >= sums[1][2])
    zero = jnp.zeros((), histogram.dtype)
    split = Split(
        jnp.where(gains[best] > 0, gains[best], -1),
        feature.astype(jnp.int32),
        bin.astype(jnp.int32),
        to_left,
        zero,
        zero,
        zero,
        *sums,
        _values(*sums, rules.l2),
        no_members((), words),
    )
    if categories:
        of_category = jax.vmap(lambda sums, place: category_split(sums, total, place, rules))
        splits = of_category(histogram[first, :bins], first)
        split = _better(tree.gather(splits, jnp.argmax(splits.gain)), split)
    if clients is None or len(clients) < 2:
        return split
    other = client_split(clients, total, features, rules)
    return _better(other._replace(members=no_members((), words)), split)


def _better(one: Split, other: Split) -> Split:
    """The split with the larger gain; of equal ones the second."""
    return jax.tree.map(lambda a, b: jnp.where(one.gain > other.gain, a, b), one, other)


def words_for(categories: Categories, bins: int) -> int:
    """Words that hold a bit for each bin and one for missing values, which is never set."""
    return bins // 32 + 1 if categories else 0


def words_in(members: UInt32[Array, "*any words"] | None) -> int:
    """Words of each set of categories; 0 if there are none."""
    return 0 if members is None else members.shape[-1]


def category_split(
    sums: Float[Array, "bins 3"], total: Float[Array, "3"], feature: Int[Array, ""], rules: Rules
) -> Split:
    """The best division of a feature whose bins are categories, as `client_split` divides clients.

    Rows without a category, which are in no bin, go right.
    """
    split = client_split(sums, total, 0, rules)
    zero, left = jnp.zeros_like(split.low), goes_left(sums, split.low, split.high, split.least, rules)
    members = packed(jnp.append(left, False))
    return split._replace(feature=feature, low=zero, high=zero, least=zero, members=members)


def ratio_of(sums: Float[Array, "*clients 3"], rules: Rules) -> Float[Array, "*clients"]:
    """G / (H + smoothing), by which clients are ordered; 0 for a client without rows."""
    below = sums[..., 1] + rules.client_smoothing
    return jnp.where(below > 0, sums[..., 0] / jnp.where(below > 0, below, 1), 0)


def goes_left(
    sums: Float[Array, "*clients 3"],
    low: Float[Array, ""],
    high: Float[Array, ""],
    least: Float[Array, ""],
    rules: Rules,
) -> Bool[Array, "*clients"]:
    """Whether a client, or a category, with these sums in a node is on the left of a division; see `Split`."""
    ratio, rows = ratio_of(sums, rules), sums[..., 2]
    return (ratio > low) & (ratio <= high) & (rows >= least) & (rows > 0)


def client_split(clients: Float[Array, "clients 3"], total: Float[Array, "3"], features: int, rules: Rules) -> Split:
    """The best division of the clients, as LightGBM divides a category.

    At most four clients: one of them against the rest, with l2. More: those with at least `client_smoothing` rows in
    the node, in the order of G / (H + client_smoothing); the first i or the last i go left, i at most `client_most`
    and half of them, with l2 + client_l2; the right has at least `client_rows` rows, and between two divisions that
    are tried there are `client_rows` rows. The others go right.
    """
    single = len(clients) <= SINGLE
    l2 = rules.l2 if single else rules.l2 + rules.client_l2
    least = jnp.asarray(0.0 if single else rules.client_smoothing, clients.dtype)
    usable = (clients[:, 2] >= least) & (clients[:, 2] > 0)
    most = jnp.finfo(clients.dtype).max
    ratio = jnp.where(usable, ratio_of(clients, rules), most)
    order = jnp.argsort(ratio, stable=True)
    sums, sorted_, count = clients[order], ratio[order], jnp.sum(usable)
    sums = jnp.where(jnp.arange(len(sums))[:, None] < count, sums, 0)
    before = jnp.concatenate([jnp.full(1, -most, ratio.dtype), sorted_[:-1]])
    after = jnp.concatenate([sorted_[1:], jnp.full(1, most, ratio.dtype)])
    middle = lambda a, b: jnp.where((a <= -most) | (b >= most), jnp.where(b >= most, most, -most), 0.5 * (a + b))  # noqa: E731
    apart = lambda a, b: b - a > _TIE * (jnp.abs(a) + jnp.abs(b))  # noqa: E731
    index = jnp.arange(len(sums))
    if single:
        left, low, high = sums, middle(before, sorted_), middle(sorted_, after)
        tried = (
            usable[order] & ((before <= -most) | apart(before, sorted_)) & ((after >= most) | apart(sorted_, after))
        )
    else:
        few = jnp.minimum(rules.client_most, (count + 1) // 2)
        forward = _prefixes(sums, index < jnp.minimum(few, count), total, rules)
        turned = jnp.roll(sums[::-1], count - len(sums), axis=0)  # the usable clients from the last to the first
        backward = _prefixes(turned, index < jnp.minimum(few, count), total, rules)
        last = jnp.clip(count - 1 - index, 0, len(sums) - 1)
        left = jnp.concatenate([forward[0], backward[0]])
        low = jnp.concatenate([jnp.full(len(sums), -most, ratio.dtype), middle(before, sorted_)[last]])
        high = jnp.concatenate([middle(sorted_, after), jnp.full(len(sums), most, ratio.dtype)])
        cut = (after >= most) | apart(sorted_, after), ((before <= -most) | apart(before, sorted_))[last]
        tried = jnp.concatenate([forward[1] & cut[0], backward[1] & cut[1]])
    right = total - left
    gains = _gain(left, l2) + _gain(right, l2) - _gain(total, rules.l2) - rules.min_gain
    gains = jnp.where(tried & _enough(left, rules) & _enough(right, rules), gains, -1)
    best = jnp.argmax(gains)
    return Split(
        jnp.where(gains[best] > 0, gains[best], -1),
        jnp.asarray(features, jnp.int32),
        jnp.asarray(0, jnp.int32),
        jnp.asarray(False),
        low[best],
        high[best],
        least,
        left[best],
        right[best],
        _values(left[best], right[best], l2),
        None,
    )


def _prefixes(
    sums: Float[Array, "clients 3"], among: Bool[Array, "clients"], total: Float[Array, "3"], rules: Rules
) -> tuple[Float[Array, "clients 3"], Bool[Array, "clients"]]:
    """(the sums of the first i clients, whether to try this division)."""
    left = jnp.cumsum(sums, axis=0)
    right = total - left
    enough = _enough(left, rules) & (right[:, 2] >= rules.client_rows)

    def count(group: Array, one: tuple[Array, Array]) -> tuple[Array, Array]:
        group = group + one[0]
        full = one[1] & (group >= rules.client_rows)
        return jnp.where(full, 0, group), full

    _, full = jax.lax.scan(count, jnp.zeros((), sums.dtype), (sums[:, 2], enough))
    return left, full & among
