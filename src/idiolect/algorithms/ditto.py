"""Ditto: each client's own model, held near a global model that does not know of it."""

from typing import ClassVar, Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from idiolect.algorithms.base import Start, check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.tree import Params, Scalar

PersonalStart = Literal["initial", "received"]


class Personal(eqx.Module):
    """v_i, which starts at the first model that its client receives. begun: whether the client has received one."""

    model: Params
    begun: Bool[Array, ""]

    def at(self, view: Params) -> Params:
        """The private model; before its client's first round, the model that was received."""
        return jax.tree.map(lambda own, received: jnp.where(self.begun, own, received), self.model, view)


class Ditto(Averaging, Trainer):
    """Ditto: min_{v_i} f_i(v_i) + (lambda/2) ||v_i - w*||^2, w* the solution of FedAvg.

    A round on a client of the cohort, which has received w_t (Algorithm 1):
        message: w_i, FedAvg's local SGD from w_t
        v_i <- v_i - eta (grad f_i(v_i) + lambda (v_i - w_t)), `personal_steps` times
    w_t stays fixed meanwhile; v_i is private, and starts in the next round where it ended in this one. The server
    does what FedAvg's does, so that the global model is that of FedAvg to the last bit.

    With equal numbers of steps both trainings of a round draw the same mini-batches, as in the authors' code. With
    lambda = 0 and the same rate, v_i is exactly the model of `Local` with `personal_steps` steps.

    prox_weight: lambda. personal_rate: eta of v_i (None: `rate`). personal_steps: s (0: as many as w_i takes).
    personal_start: where v_i starts: at the "initial" model, or at the model that the client has "received" in its
    first round, as in PFLEGO's published code (sotirisnik/PFLEGO, `b24b905`, main.py, lines 1167 and 1168).
    The rest: see `Trainer` and `Averaging`.

    Models: `personal` is v_i; `global` is w.

    Source: Li, Hu, Beirami, Smith, "Ditto: Fair and Robust Federated Learning Through Personalization", ICML 2021,
    Algorithm 1.
    """

    name: ClassVar[str] = "ditto"
    title: ClassVar[str] = "Ditto"
    summary: ClassVar[str] = "own models held near FedAvg's"
    source: ClassVar[str] = "Li et al., ICML 2021, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("personal", "global")

    prox_weight: Scalar = 1.0
    personal_rate: Scalar | None = None
    personal_steps: int = eqx.field(static=True, default=0)
    personal_start: PersonalStart = eqx.field(static=True, default="initial")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, prox_weight="nonnegative", personal_steps="whole", personal_start=get_args(PersonalStart))
        if self.personal_rate is not None:
            check(self, personal_rate="positive")

    def init_private(self, start: Start, key: PRNGKeyArray) -> Params | Personal:
        """v_i starts at the initial model, or waits for the first one that the client receives."""
        del key
        return start.params if self.personal_start == "initial" else Personal(start.params, jnp.asarray(False))

    def local(
        self, view: Params, private: Params | Personal, client: Client, key: PRNGKeyArray
    ) -> tuple[Params, Params | Personal]:
        """Message: w_i. Private: v_i."""

        def held(slope: Params, v: Params, w: Params) -> Params:
            return tree.add_scaled(slope, self.prox_weight, tree.subtract(v, w))

        steps = self.personal_steps or None
        rate = self.personal_rate
        begin = private.at(view) if isinstance(private, Personal) else private
        personal = self.train(begin, client, key, rate=rate, steps=steps, adjust=held, anchors=(view,))
        if isinstance(private, Personal):
            personal = Personal(personal, jnp.ones_like(private.begun))
        return self.train(view, client, key), personal

    def models(self, view: Params, private: Params | Personal, client: Client, key: PRNGKeyArray) -> Models:
        """personal: v_i; global: w."""
        personal = private.at(view) if isinstance(private, Personal) else private
        return {"personal": personal, "global": Shared(view)}
