"""Train a head with a fixed body: the client's samples are replaced by the body's features, computed once.

The result is a `Client` whose objective is a function of the head only, so that every solver can train on it, with
the same draws as on the samples.
"""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int, PyTree

from idiolect.client.client import Client
from idiolect.client.exact.partial_eval import Staged
from idiolect.client.objective import Objective
from idiolect.client.tiles import TILE
from idiolect.core import tree
from idiolect.core.tree import Params


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
    federation = replace(client.federation, tile=TILE)  # the body's large intermediate values no longer matter
    return replace(client, x=x, y=y, start=jnp.zeros_like(client.start), objective=objective, federation=federation)
