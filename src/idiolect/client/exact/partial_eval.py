"""Partial evaluation: separate a function of (head, body, x) into a stage without the head, and the rest.

The forward pass of any model is traced once. The equations that depend on the head must run again whenever the head
changes; the others, usually the whole body, run once. If the head is the whole model, the second stage is the whole
pass.
"""

from collections.abc import Callable, Sequence

import jax
from jaxtyping import Array, ArrayLike, PyTree

from idiolect.core.jaxpr import Step, Traced, evaluate, needed, numbers

# Operations that only move values are repeated in the second stage if storing their result would take more memory:
# the patches of a convolution hold each pixel many times.
MOVES = {"broadcast_in_dim", "concatenate", "pad", "reshape", "slice", "squeeze", "transpose"}


class Staged:
    """function(head, body, x) = finish(head, fixed(body), features(body, x)).

    fixed: the values read by the second stage that depend only on the body; features: those that also depend on x.
    Each function takes one sample and can be batched and differentiated. head, body, x: arrays or shapes, as
    `jax.make_jaxpr` takes them.
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
        """(the steps that compute none of these values, the steps that compute any)."""
        apart: tuple[list[Step], list[Step]] = ([], [])
        for step in self._traced.steps:
            apart[not values.isdisjoint(step.outputs)].append(step)
        return apart

    def _moved(self, frontier: set[int]) -> set[int]:
        """The values that are cheaper to recompute by `MOVES` from smaller ones than to store, with those between."""
        producers = {step.outputs[0]: step for step in self._traced.steps if step.primitive.name in MOVES}
        varies, avals = self._traced.varies, self._traced.avals
        moved = set[int]()
        for value in frontier & varies:
            between, sources = set[int](), {value}
            while inside := sources & producers.keys():
                between |= inside
                sources = sources - inside | set[int]().union(
                    *(numbers(producers[number].inputs) for number in inside)
                )
            if sum(avals[number].size for number in sources & varies) < avals[value].size:
                moved |= between
        return moved

    def fixed(self, body: PyTree) -> list[ArrayLike]:
        """The values that the second stage needs and that depend only on the body."""
        values = dict(zip(self._traced.rest, jax.tree.leaves(body), strict=True))
        return evaluate(self._for_fixed, values | self._traced.consts, self._fixed)

    def features(self, body: PyTree, x: PyTree) -> list[Array]:
        """The values that the second stage needs and that depend on the sample."""
        leaves = [*jax.tree.leaves(body), *jax.tree.leaves(x)]
        values = dict(zip([*self._traced.rest, *self._traced.x], leaves, strict=True))
        return evaluate(self._for_features, values | self._traced.consts, self._features)

    def finish(self, head: PyTree, fixed: Sequence[ArrayLike], features: Sequence[Array]) -> Array:
        """The function's value at one sample."""
        leaves = [*jax.tree.leaves(head), *fixed, *features]
        values = dict(zip([*self._traced.chosen, *self._fixed, *self._features], leaves, strict=True))
        (output,) = evaluate(self._late, values, self._traced.outputs)
        return output
