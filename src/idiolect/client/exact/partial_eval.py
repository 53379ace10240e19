"""A function of (head, body, x) in two stages: what the head does not touch, and the rest.

The forward pass of any model is traced once and its equations are sorted: those that depend on the head must run
again whenever the head changes, the others, usually the whole body, run once. If the head is everything, the second
stage is the whole pass, and still right.
"""

from collections.abc import Callable, Sequence

import jax
from jaxtyping import Array, ArrayLike, PyTree

from idiolect.core.jaxpr import Step, Traced, evaluate, needed, numbers

# What merely moves numbers is done again in the second stage where keeping its result would take more memory: the
# patches of a convolution hold each pixel many times.
MOVES = {"broadcast_in_dim", "concatenate", "pad", "reshape", "slice", "squeeze", "transpose"}


class Staged:
    """function(head, body, x) = finish(head, fixed(body), features(body, x)).

    fixed: the values that the second stage reads and that depend on the body alone. features: those that depend on
    x too. Each takes one sample and can be batched, differentiated and looped over like any other function.
    head, body, x: arrays or shapes, as `jax.make_jaxpr` takes them.
    """

    def __init__(self, function: Callable[..., Array], head: PyTree, body: PyTree, x: PyTree) -> None:
        traced = self._traced = Traced(function, head, body, x)
        early, late = self._steps_apart(traced.touched)
        again = traced.touched | self._moved(needed(late, traced.outputs)[1] - traced.touched)
        self._late, wanted = needed(self._steps_apart(again)[1], traced.outputs)
        frontier = sorted(wanted - again)
        self._fixed = [value for value in frontier if value not in traced.varies]
        self._features = [value for value in frontier if value in traced.varies]
        self._for_fixed, self._for_features = needed(early, self._fixed)[0], needed(early, self._features)[0]

    def _steps_apart(self, values: set[int]) -> tuple[list[Step], list[Step]]:
        """The steps that make none of these values, and those that do."""
        apart: tuple[list[Step], list[Step]] = ([], [])
        for step in self._traced.steps:
            apart[not values.isdisjoint(step.outputs)].append(step)
        return apart

    def _moved(self, frontier: set[int]) -> set[int]:
        """What is cheaper to make again from fewer numbers than to keep, with all that lies on the way."""
        made = {step.outputs[0]: step for step in self._traced.steps if step.primitive.name in MOVES}
        varies, avals = self._traced.varies, self._traced.avals
        moved = set[int]()
        for value in frontier & varies:
            way, sources = set[int](), {value}
            while inner := sources & made.keys():
                way |= inner
                sources = sources - inner | set[int]().union(*(numbers(made[number].inputs) for number in inner))
            if sum(avals[number].size for number in sources & varies) < avals[value].size:
                moved |= way
        return moved

    def fixed(self, body: PyTree) -> list[ArrayLike]:
        """What the second stage needs of the body alone."""
        values = dict(zip(self._traced.rest, jax.tree.leaves(body), strict=True))
        return evaluate(self._for_fixed, values | self._traced.consts, self._fixed)

    def features(self, body: PyTree, x: PyTree) -> list[Array]:
        """What the second stage needs of one sample."""
        leaves = [*jax.tree.leaves(body), *jax.tree.leaves(x)]
        values = dict(zip([*self._traced.rest, *self._traced.x], leaves, strict=True))
        return evaluate(self._for_features, values | self._traced.consts, self._features)

    def finish(self, head: PyTree, fixed: Sequence[ArrayLike], features: Sequence[Array]) -> Array:
        """The function's value at one sample."""
        leaves = [*jax.tree.leaves(head), *fixed, *features]
        values = dict(zip([*self._traced.chosen, *self._fixed, *self._features], leaves, strict=True))
        (output,) = evaluate(self._late, values, self._traced.outputs)
        return output
