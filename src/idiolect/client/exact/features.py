"""A client whose body is held: its samples become the body's features, its objective a function of the head alone.

To everything that works with a client it is a client like any other, so each solver trains a head on features
without knowing it, with the same draws, and the body's forward pass is made once however many steps follow.
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
    """f_i as a function of the head, over features; the body's share of the L2 term is in it, as a constant.

    A sample is (features, whether the whole model can answer it).
    """

    body: Params
    fixed: list[ArrayLike]
    staged: Staged = eqx.field(static=True)

    def outputs(self, params: Params, x: PyTree[Array]) -> Float[Array, "b ..."]:
        """The model's outputs on a batch of features. params: the head."""
        return jax.vmap(lambda features: self.staged.finish(params, self.fixed, features))(x[0])

    def usable(self, params: Params, x: PyTree[Array]) -> Float[Array, "b"]:
        """As it was found with the whole model."""
        return x[1]

    def penalty(self, params: Params) -> Float[Array, ""]:
        """(l2 / 2) ||(body, head)||^2."""
        return super().penalty(tree.merged(params, self.body))


def on_features(client: Client, body: Params, head: Params) -> Client:
    """The client with `body` held at its value: one forward pass of the body over all its samples, tile by tile.

    head: the leaves that will vary; only their shapes matter.
    """
    whole = client.objective
    sample = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), client.x)
    staged = Staged(lambda head, body, x: eqx.combine(head, body, whole.static)(x), head, body, sample)

    def rows(position: Int[Array, "b"]) -> tuple[PyTree[Array], Array]:
        batch = client.take(position)
        features = jax.vmap(staged.features, in_axes=(None, 0))(body, batch.x)
        usable = whole.usable(tree.merged(head, body), batch.x) if whole.selective else None
        return (features, usable), batch.y

    x, y = client.collect(rows)
    objective = HeadObjective(
        l2=whole.l2,
        static=whole.static,
        sample_loss=whole.sample_loss,
        task=whole.task,
        body=body,
        fixed=staged.fixed(body),
        staged=staged,
    )
    federation = replace(client.federation, tile=TILE)  # the body's wide values are behind it
    return replace(client, x=x, y=y, start=jnp.zeros_like(client.start), objective=objective, federation=federation)
