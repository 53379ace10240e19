"""Many gradient steps on the same samples, in the coordinates of the span of those samples.

A first layer W v, W: (h, d), sees the samples only through v_1 .. v_n, the rows of V. The gradient of any loss of its
outputs is G V with G: (h, n), so gradient descent from W_0, with or without momentum, an L2 term, or linear terms in
other points such as a proximal one, never leaves

    W = sum_m a_m B_m + C V,        B_m: the start and those points.

In the coordinates (a, C) the outputs are sum_m a_m (B_m v_i) + C (V v_i): a step costs 2 n^2 h operations instead of
4 n d h, once B_m V' and V V' are computed. Exact; faster if n is well below d or there are many steps."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from idiolect.client.client import Client
from idiolect.client.objective import Batch, Objective
from idiolect.core import tree
from idiolect.core.jaxpr import Step, Traced, evaluate, needed
from idiolect.core.tree import Params

SMALLEST = 4096  # the fewest weights of a layer for which it pays: steps of smaller ones are all overhead
ROWS = 1024  # rows of a tile of the Gram matrix: one product of 600 rows takes 12 % less time than three of 200


class InSpan(eqx.Module):
    """The first layer's weights in the coordinates of the span. along: a; rows: C."""

    along: Float[Array, "points"]
    rows: Float[Array, "outputs n"]


class Problem(NamedTuple):
    """An objective on given samples, in coordinates chosen for speed.

    points: the start and the other points that the steps involve, in these coordinates; gradient: of f_i at a point;
    restore: converts a point to parameters.
    """

    points: tuple[Params, ...]
    gradient: Callable[[Params], Params]
    restore: Callable[[Params], Params]


class FirstLayer:
    """A model's first product W v: model(x) = after(others, x, W inputs(x)).

    place: the index of W among the parameters' leaves; others: the other leaves in order. rowwise: W is
    (outputs, inputs), not (inputs, outputs).
    """

    def __init__(self, place: int, traced: Traced, product: Step) -> None:
        self.place, self.rowwise = place, product.params["dimension_numbers"][0][_side(traced, product)] == (1,)
        self._traced, self._product = traced, product
        self._v = product.inputs[1 - _side(traced, product)]
        self._before = needed(traced.steps, [self._v])[0]
        self._after = needed([step for step in traced.steps if step is not product], traced.outputs)[0]

    def inputs(self, x: PyTree[Array]) -> Float[Array, "inputs"]:
        """v for one sample."""
        values = dict(zip(self._traced.x, jax.tree.leaves(x), strict=True))
        return evaluate(self._before, values | self._traced.consts, [self._v])[0]

    def after(self, others: Sequence[Array], x: PyTree[Array], outputs: Float[Array, "outputs"]) -> Array:
        """The model's output for one sample, from the layer's outputs."""
        values = dict(zip([*self._traced.rest, *self._traced.x], [*others, *jax.tree.leaves(x)], strict=True))
        values[self._product.outputs[0]] = outputs
        return evaluate(self._after, values | self._traced.consts, self._traced.outputs)[0]


def _side(traced: Traced, product: Step) -> int:
    return product.inputs.index(traced.chosen[0])


def first_layer(objective: Objective, params: Params, fixed: Params | None, x: PyTree) -> FirstLayer | None:
    """The largest weight matrix that is only used in one product W v, with v computed only from the sample, or None.

    x: one sample, or its shapes.
    """
    leaves, structure = jax.tree.flatten(params)
    for place in sorted(range(len(leaves)), key=lambda index: -leaves[index].size):
        if not is_large(leaves[place]):
            continue
        others = [leaf for index, leaf in enumerate(leaves) if index != place]

        def function(weight: Array, others: list[Array], x: PyTree, place: int = place) -> Array:
            whole = structure.unflatten([*others[:place], weight, *others[place:]])
            return eqx.combine(tree.merged(whole, fixed), objective.static)(x)

        traced = Traced(function, leaves[place], others, x)
        readers = [step for step in traced.steps if traced.chosen[0] in step.inputs]
        if len(readers) == 1 and _is_entrance(traced, readers[0]):
            return FirstLayer(place, traced, readers[0])
    return None


def is_large(leaf: Array) -> bool:
    """Whether steps of a weight matrix may be taken in the span of the samples, if its layer is the first one."""
    return leaf.ndim == 2 and leaf.size >= SMALLEST


def _is_entrance(traced: Traced, step: Step) -> bool:
    """Whether a step is W v, with a vector v that depends only on the sample."""
    if step.primitive.name != "dot_general" or traced.chosen[0] in traced.outputs:
        return False
    side = _side(traced, step)
    v, (contracted, batched) = step.inputs[1 - side], step.params["dimension_numbers"]
    if not isinstance(v, int) or v not in traced.varies or v in traced.touched or traced.avals[v].ndim != 1:
        return False
    alone = needed(traced.steps, [v])[1].isdisjoint(traced.rest)
    output = traced.avals[step.outputs[0]]
    return alone and len(contracted[side]) == 1 and not batched[side] and output.dtype == traced.avals[v].dtype


def problem(
    client: Client, points: Sequence[Params], batch: Batch | None, *, steps: int, fixed: Params | None = None
) -> Problem:
    """f_i on a mini-batch, or on all samples if it is None, for `steps` linear steps from points[0].

    In the coordinates of the samples' span if that takes fewer operations and the model allows it; else in the
    parameters themselves. points: parameters; fixed: the model's other, fixed parameters, if any.
    """
    points = tuple(points)
    rows = client.federation.capacity if batch is None else batch.weight.shape[0]
    layer = worthwhile(client, points, rows, steps=steps, fixed=fixed)
    if layer is None:
        return Problem(points, lambda params: client.grad(params, batch, fixed), lambda params: params)
    return _in_span(client, points, batch, layer)


def worthwhile(
    client: Client, points: Sequence[Params], rows: int, *, steps: int, fixed: Params | None = None
) -> FirstLayer | None:
    """The first layer if `steps` steps on `rows` samples are faster in the samples' span, else None."""
    # Not for objectives on features, nor for selective models, which divide by the number of answered samples.
    if type(client.objective) is not Objective or client.objective.selective or steps < 2:
        return None
    sample = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), client.x)
    layer = first_layer(client.objective, points[0], fixed, sample)
    if layer is None:
        return None
    shape = jax.tree.leaves(points[0])[layer.place].shape
    outputs, inputs = shape if layer.rowwise else shape[::-1]
    distinct = len({id(point) for point in points})
    setup_cost = 2 * rows * rows * inputs + 2 * rows * inputs * outputs * (distinct + 1)
    span_cost = setup_cost + steps * 2 * rows * rows * outputs
    return layer if span_cost <= 0.7 * steps * 4 * rows * inputs * outputs else None


def by_size(
    client: Client,
    points: Sequence[Params],
    solve: Callable[[Client], Params],
    *,
    steps: int,
    fixed: Params | None = None,
) -> Params:
    """solve(client), compiled for several client sizes if its steps on all samples are taken in their span.

    With a single size every client would pay for the largest client's Gram matrix; see `Federation.sizes`.
    """
    sizes = client.federation.sizes
    if len(sizes) < 2 or worthwhile(client, points, sizes[0], steps=steps, fixed=fixed) is None:
        return solve(client)

    def of(size: int) -> Callable[[], Params]:
        return lambda: solve(replace(client, federation=replace(client.federation, capacity=size, sizes=())))

    which = jnp.searchsorted(jnp.asarray(sizes), client.size)
    return jax.lax.switch(which, [of(size) for size in sizes])


def _in_span(client: Client, points: tuple[Params, ...], batch: Batch | None, layer: FirstLayer) -> Problem:
    client = replace(client, federation=replace(client.federation, tile=ROWS, together=None))
    objective, place = client.objective, layer.place
    structure = jax.tree.structure(points[0])
    tile = client.tile if batch is None else batch.weight.shape[0]
    count = client.size if batch is None else jnp.sum(batch.weight)

    def parts(params: Params) -> tuple[list[Array], Array]:
        """(the other leaves, W as (outputs, inputs))."""
        leaves = jax.tree.leaves(params)
        weight = leaves.pop(place)
        return leaves, weight if layer.rowwise else weight.T

    def whole(others: Sequence[Array], weight: Array | InSpan) -> Params:
        return structure.unflatten([*others[:place], weight, *others[place:]])

    def rows(function: Callable[[Array], Array], of: Array) -> Array:
        """function(rows of an array) for all samples, tile by tile."""
        return client.collect(lambda position: function(of[position])) if batch is None else function(of)

    def samples(index: Array | int) -> Batch:
        return client.take(index * tile + jnp.arange(tile)) if batch is None else batch

    distinct = {id(point): parts(point)[1] for point in points}  # one point given twice is one direction
    basis, order = list(distinct.values()), list(distinct)
    first = jax.vmap(layer.inputs)
    v = client.collect(lambda position: first(client.take(position).x)) if batch is None else first(batch.x)
    gram = rows(lambda block: block @ v.T, v)
    heights = [rows(lambda block, b=b: block @ b.T, v) for b in basis]

    def coordinates(point: Params) -> Params:
        along = jnp.zeros(len(basis), v.dtype).at[order.index(id(point))].set(1)
        return whole(parts(point)[0], InSpan(along, jnp.zeros((len(basis[0]), len(v)), v.dtype)))

    def loss(others: list[Array], outputs: Array, batch: Batch) -> Float[Array, ""]:
        after = jax.vmap(layer.after, in_axes=(None, 0, 0))(others, batch.x, outputs)
        return objective.output_loss(after, batch)

    def at_tile(index: Array | int, others: list[Array], weight: InSpan) -> tuple[list[Array], Array]:
        """(the tile's part of the other leaves' gradients, its samples' rows of G')."""

        def of_tile(a: Array) -> Array:
            return a if len(a) == tile else jax.lax.dynamic_slice_in_dim(a, index * tile, tile)

        outputs = of_tile(gram) @ weight.rows.T
        for a, height in zip(weight.along, heights, strict=True):
            outputs = outputs + a * of_tile(height)
        return jax.grad(loss, argnums=(0, 1))(others, outputs, samples(index))

    def gradient(params: Params) -> Params:
        others = structure.flatten_up_to(params)
        weight: InSpan = others.pop(place)
        if len(v) == tile:
            slopes, g = at_tile(0, others, weight)
        else:

            def add(index: Array, total: tuple[list[Array], Array]) -> tuple[list[Array], Array]:
                slopes, g = at_tile(index, others, weight)
                return tree.add_scaled(total[0], 1.0, slopes), jax.lax.dynamic_update_slice_in_dim(
                    total[1], g, index * tile, 0
                )

            nothing = (jax.tree.map(jnp.zeros_like, others), jnp.zeros((len(v), len(basis[0])), v.dtype))
            slopes, g = jax.lax.fori_loop(0, (client.size + tile - 1) // tile, add, nothing)
        slope = whole(slopes, InSpan(jnp.zeros_like(weight.along), g.T))
        slope = jax.tree.map(lambda leaf: leaf / jnp.maximum(count, 1).astype(leaf.dtype), slope)
        return slope if tree.is_off(objective.l2) else tree.add_scaled(slope, objective.l2, params)

    def restore(params: Params) -> Params:
        others = structure.flatten_up_to(params)
        inner: InSpan = others.pop(place)
        weight = inner.rows @ v
        for a, b in zip(inner.along, basis, strict=True):
            weight = weight + a * b
        return whole(others, weight if layer.rowwise else weight.T)

    return Problem(tuple(coordinates(point) for point in points), gradient, restore)
