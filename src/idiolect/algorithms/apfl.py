"""APFL: each client mixes a model of its own with the global one, and can learn how much of each."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from idiolect.algorithms.base import Start, Weighting, check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.objective import Batch
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar


class Own(NamedTuple):
    """A client's private state: its own model v_i, and its share alpha_i in the mixture."""

    model: Params
    share: Float[Array, ""]


class APFL(Averaging, Trainer):
    """APFL: the model of a client is the mixture vbar_i = alpha_i v_i + (1 - alpha_i) w_i.

    A round on a client of the cohort, from w_i = w_t, the model received, and its private v_i and alpha_i. A local
    step draws one mini-batch and moves all from where they are, not one after the other (Algorithm 1):
        w_i <- w_i - eta grad f_i(w_i)
        v_i <- v_i - eta alpha_i grad f_i(vbar_i)         (the gradient of f_i(vbar_i) with respect to v_i)
    and, with adaptive=True, in the first step of the round only, within [0, 1],
        alpha_i <- alpha_i - eta <v_i - w_i, grad f_i(vbar_i)>                                                (10)
    The message is w_i; (v_i, alpha_i) never leaves the client. The server averages.

    rate: eta. mixture: alpha_i, at first or always. adaptive: whether alpha_i is learned.
    weighting: equal ("uniform", as published) or by training samples ("size"). The rest: see `Trainer` and
    `Averaging`.

    Models: `personal` is alpha_i v_i + (1 - alpha_i) w, with the w that the server sent last; `global` is w.

    Source: Deng, Kamani, Mahdavi, "Adaptive Personalized Federated Learning", 2020, Algorithm 1, eq. (10).
    """

    name: ClassVar[str] = "apfl"
    title: ClassVar[str] = "APFL"
    summary: ClassVar[str] = "a mixture of an own and the global model, in learned shares"
    source: ClassVar[str] = "Deng et al., 2020, arXiv:2003.13461, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("personal", "global")

    mixture: Scalar = 0.5
    adaptive: bool = eqx.field(static=True, default=False)
    weighting: Weighting = eqx.field(static=True, default="uniform")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, mixture="share")

    def init_private(self, start: Start, key: PRNGKeyArray) -> Own:
        """v_i starts at the initial model, alpha_i at `mixture`."""
        del key
        return Own(start.params, jnp.asarray(self.mixture, jnp.result_type(float)))

    def local(self, view: Params, private: Own, client: Client, key: PRNGKeyArray) -> tuple[Params, Own]:
        """Message: w_i. Private: v_i and alpha_i."""

        def step(carry: tuple[Params, Own], batch: Batch | None, number: ArrayLike) -> tuple[Params, Own]:
            w, (v, share) = carry
            slope = client.grad(tree.lerp(w, v, share), batch)
            new_w = tree.add_scaled(w, -self.rate, client.grad(w, batch))
            new_v = tree.add_scaled(v, -self.rate * share, slope)
            if not self.adaptive:
                return new_w, Own(new_v, share)
            moved = jnp.clip(share - self.rate * tree.dot(tree.subtract(v, w), slope), 0, 1)
            return new_w, Own(new_v, jnp.where(jnp.asarray(number) == 0, moved, share).astype(share.dtype))

        return self.over_round(client, key, step, (view, private))

    def models(self, view: Params, private: Own, client: Client, key: PRNGKeyArray) -> Models:
        """personal: the mixture with the global model; global: w."""
        return {"personal": tree.lerp(view, private.model, private.share), "global": Shared(view)}
