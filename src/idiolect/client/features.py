"""Train a head with a fixed body: the client's samples are replaced by the body's features, computed once.

Partial evaluation separates a function of (head, body, x) into a stage without the head, and the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PyTree

from idiolect.client.client import Client
from idiolect.client.objective import Objective
from idiolect.client.samples import TILE
from idiolect.core import tree
from idiolect.core.jaxpr import Step, Traced, evaluate, needed, numbers
from idiolect.core.tree import Params

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


class HeadObjective(Objective):
    """f_i as a function of the head on features; the body's part of the L2 term is included as a constant.

    A sample is (features, whether the whole model can answer it).
    """

    body: Params
    fixed: list[ArrayLike]
    staged: Staged = eqx.field(static=True)

    def outputs(self, params: Params, x: PyTree[Array]) -> Float[Array, "b ..."]:
        """The model's outputs on a batch of features. params: the head."""
        return jax.vmap(lambda features: self.staged.finish(params, self.fixed, features))(x[0])

    def usable(self, params: Params, x: PyTree[Array]) -> Float[Array, "b"]:
        """As computed with the whole model."""
        return x[1]

    def penalty(self, params: Params) -> Float[Array, ""]:
        """(l2 / 2) ||(body, head)||^2."""
        return super().penalty(tree.merged(params, self.body))


def on_features(client: Client, body: Params, head: Params) -> Client:
    """The client on the features of a fixed body: one forward pass of the body over its samples, tile by tile.

    head: the leaves that will vary; only their shapes are used.
    """
    objective_of_samples = client.objective
    sample = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), client.x)
    staged = Staged(lambda head, body, x: eqx.combine(head, body, objective_of_samples.static)(x), head, body, sample)

    def rows(position: Int[Array, "b"]) -> tuple[PyTree[Array], Array]:
        batch = client.take(position)
        features = jax.vmap(staged.features, in_axes=(None, 0))(body, batch.x)
        usable = (
            objective_of_samples.usable(tree.merged(head, body), batch.x) if objective_of_samples.selective else None
        )
        return (features, usable), batch.y

    x, y = client.collect(rows)
    objective = HeadObjective(
        l2=objective_of_samples.l2,
        static=objective_of_samples.static,
        sample_loss=objective_of_samples.sample_loss,
        task=objective_of_samples.task,
        body=body,
        fixed=staged.fixed(body),
        staged=staged,
    )
    # The body's large intermediate values no longer matter, and steps on the head are too short to be divided.
    federation = replace(client.federation, tile=TILE, together=None)
    return replace(client, x=x, y=y, start=jnp.zeros_like(client.start), objective=objective, federation=federation)
