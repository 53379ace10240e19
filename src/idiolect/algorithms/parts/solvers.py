"""Local solvers: the first-order steps that methods take on one client; most methods share local SGD."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, ArrayLike, Int, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Algorithm, check
from idiolect.client.client import BATCH_ORDERS, BatchOrder, Client
from idiolect.client.objective import Batch
from idiolect.client.span import by_size, problem
from idiolect.core import tree
from idiolect.core.errors import ConfigError, kind_of, unknown
from idiolect.core.tree import Params, Scalar

MakeOptimizer = Callable[[Any], optax.GradientTransformation]  # rate -> optimiser
Adjust = Callable[..., Params]  # (gradient, params, *anchors) -> the gradient to descend
OptState = PyTree  # optax's own name for it does not resolve outside optax in its older versions
Carry = TypeVar("Carry")

OPTIMIZERS: dict[str, MakeOptimizer] = {
    "sgd": optax.sgd,
    "momentum": partial(optax.sgd, momentum=0.9),
    "nesterov": partial(optax.sgd, momentum=0.9, nesterov=True),
    "adam": optax.adam,
    "adagrad": optax.adagrad,
    "yogi": optax.yogi,
}
LINEAR = ("sgd", "momentum", "nesterov")  # each step is a sum of multiples of the gradients so far


def is_linear(which: str | MakeOptimizer) -> bool:
    """Whether the optimiser's steps surely commute with a linear change of coordinates."""
    return isinstance(which, str) and which in LINEAR


def check_optimizer(owner: Any, field: str, rate: ArrayLike) -> None:
    """Raise `ConfigError` naming the setting, unless it is an optimiser's name or makes one from a rate.

    owner: the method; field: its setting; rate: of the optimiser.
    """
    which, label = getattr(owner, field), f"{owner.name}: {field}"
    if isinstance(which, str):
        if which not in OPTIMIZERS:
            raise ConfigError(f"{label}: {unknown('optimiser', which, OPTIMIZERS)}")
        return
    wanted = f"{label} must be a name ({', '.join(OPTIMIZERS)}) or a function of the rate, such as optax.adam"
    if not callable(which):
        raise ConfigError(f"{wanted}, not {kind_of(which)}")
    try:
        made = which(rate)
    except Exception as error:  # whatever a user's own function meets
        raise ConfigError(f"{wanted}; it fails for rate {rate}: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(made, optax.GradientTransformation):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"{wanted}; it returns {kind_of(made)}")


def optimizer(which: str | MakeOptimizer, rate: ArrayLike) -> optax.GradientTransformation:
    """An optax optimiser by name, or from the user's own `rate -> GradientTransformation`."""
    if not isinstance(which, str):
        return which(rate)
    if which not in OPTIMIZERS:
        raise unknown("optimiser", which, OPTIMIZERS)
    return OPTIMIZERS[which](rate)


def step_count(client: Client, *, steps: int, batch_size: int, epochs: int = 0) -> Int[Array, ""] | int:
    """Steps of a round: `steps`; with epochs > 0, one for each mini-batch of that many passes."""
    if not epochs:
        return steps
    return epochs if batch_size == 0 else epochs * client.passes(batch_size)


def over_batches(
    client: Client,
    key: PRNGKeyArray,
    step: Callable[[Carry, Batch | None, ArrayLike], Carry],
    start: Carry,
    *,
    steps: int,
    batch_size: int,
    order: BatchOrder = "fresh",
    epochs: int = 0,
) -> Carry:
    """carry <- step(carry, mini-batch, number of the step) over the mini-batches of a round, `steps` of them.

    With epochs > 0: epochs * ceil(n_i / batch_size) steps instead, each epoch one reshuffled pass. With
    batch_size = 0 the mini-batch is None, which stands for all the client's samples, and an epoch is one step.
    """
    total = step_count(client, steps=steps, batch_size=batch_size, epochs=epochs)
    if batch_size == 0:
        return jax.lax.fori_loop(0, total, lambda i, carry: step(carry, None, i), start)
    if epochs:
        return jax.lax.fori_loop(
            0, total, lambda i, carry: step(carry, client.batch(key, i, batch_size, "epoch"), i), start
        )
    draws = (client.batches(key, steps, batch_size, order), jnp.arange(steps))
    return jax.lax.scan(lambda carry, draw: (step(carry, *draw), None), start, draws)[0]


def sgd(
    client: Client,
    params: Params,
    key: PRNGKeyArray,
    *,
    rate: ArrayLike,
    steps: int,
    batch_size: int,
    order: BatchOrder = "fresh",
    epochs: int = 0,
    which: str | MakeOptimizer = "sgd",
    momentum: Scalar = 0.0,
    adjust: Adjust | None = None,
    anchors: Sequence[Params] = (),
    fixed: Params | None = None,
) -> Params:
    """Mini-batch SGD on f_i: params <- params - rate * grad f_i(params; batch), `steps` times.

    batch_size, epochs, order: see `over_batches`. The optimiser's state starts anew: nothing but the parameters
    outlives a round.
    momentum: m of heavy-ball steps, v <- m v + grad, params <- params - rate v, in the place of `which`.
    adjust: (gradient, params, *anchors) -> the gradient to descend (FedProx's and SCAFFOLD's terms). With anchors it
    must be a sum of multiples of its arguments and see no other point: steps on all the samples may be taken in
    other coordinates, see `idiolect.client.span`.
    fixed: the rest of the model where `params` is a part of it (a head, a body); it is not trained.
    """
    heavy = not tree.is_off(momentum)
    solver = optax.sgd(rate, momentum) if heavy else optimizer(which, rate)  # pyright: ignore[reportArgumentType]
    given, budget = (params, *anchors), epochs or steps
    linear = batch_size == 0 and (heavy or is_linear(which)) and (adjust is None or len(anchors) > 0)

    def solve(client: Client) -> Params:
        points, whole = given, None
        if linear:
            whole = problem(client, points, None, steps=budget, fixed=fixed)
            points = whole.points

        def step(carry: tuple[Params, OptState], batch: Batch | None, _: ArrayLike) -> tuple[Params, OptState]:
            params, state = carry
            slope = client.grad(params, batch, fixed) if whole is None else whole.gradient(params)
            slope = slope if adjust is None else adjust(slope, params, *points[1:])
            updates, state = solver.update(slope, state, params)
            return tree.add_scaled(params, 1.0, updates), state

        start = (points[0], solver.init(points[0]))
        end, _ = over_batches(
            client, key, step, start, steps=steps, batch_size=batch_size, order=order, epochs=epochs
        )
        return end if whole is None else whole.restore(end)

    return by_size(client, given, solve, steps=budget, fixed=fixed) if linear else solve(client)


def minimise(
    gradient: Callable[[Params], Params],
    start: Params,
    *,
    rate: ArrayLike,
    steps: int,
    which: str | MakeOptimizer = "sgd",
    tolerance: ArrayLike | None = None,
) -> Params:
    """Minimise a function of which only the gradient is known.

    `steps` steps; or, with a tolerance nu, until ||gradient|| <= nu, at most `steps` steps.
    """
    solver = optimizer(which, rate)

    def update(params: Params, state: OptState, slope: Params) -> tuple[Params, OptState]:
        updates, state = solver.update(slope, state, params)
        return tree.add_scaled(params, 1.0, updates), state

    if tolerance is None:
        return jax.lax.fori_loop(
            0,
            steps,
            lambda _, carry: update(carry[0], carry[1], gradient(carry[0])),
            (start, solver.init(start)),
            unroll=steps <= 16,  # a handful of steps: unrolled, XLA fuses across them
        )[0]

    def unfinished(carry: tuple[Params, OptState, Params, jax.Array]) -> jax.Array:
        _, _, slope, step = carry
        return (step < steps) & (tree.squared_norm(slope) > jnp.asarray(tolerance) ** 2)

    def body(
        carry: tuple[Params, OptState, Params, jax.Array],
    ) -> tuple[Params, OptState, Params, jax.Array]:
        params, state, slope, step = carry
        params, state = update(params, state, slope)
        return params, state, gradient(params), step + 1

    return jax.lax.while_loop(unfinished, body, (start, solver.init(start), gradient(start), jnp.asarray(0)))[0]


class LocalSteps(Algorithm):
    """A method in which clients make `local_steps` steps per round, or, if epochs > 0, that many passes.

    local_steps: mini-batch steps of a client in a round. epochs: passes over its samples instead, if > 0.
    batch_size: samples of a mini-batch; 0: all the client's samples, exact gradient descent (an epoch is then one
    step). batches: "fresh" draws, passes by "epoch", or "cyclic" order, see `Client.batch`.
    """

    local_steps: int = eqx.field(static=True, default=20)
    epochs: int = eqx.field(static=True, default=0)
    batch_size: int = eqx.field(static=True, default=20)
    batches: BatchOrder = eqx.field(static=True, default="fresh")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, local_steps="count", epochs="whole", batch_size="whole", batches=BATCH_ORDERS)

    def step_count(self, client: Client) -> Int[Array, ""] | int:
        """K_i, the number of a round's steps on a client."""
        return step_count(client, steps=self.local_steps, batch_size=self.batch_size, epochs=self.epochs)

    def over_round(
        self, client: Client, key: PRNGKeyArray, step: Callable[[Carry, Batch | None, ArrayLike], Carry], start: Carry
    ) -> Carry:
        """Take a round's steps from `start`, see `over_batches`."""
        return over_batches(
            client,
            key,
            step,
            start,
            steps=self.local_steps,
            batch_size=self.batch_size,
            order=self.batches,
            epochs=self.epochs,
        )


class Rated(Algorithm):
    """A method with one learning rate: its first setting, wherever settings are listed.

    rate: of the clients' steps.
    """

    rate: Scalar = 0.02

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, rate="positive")


class Trainer(LocalSteps, Rated):
    """A method in which clients run SGD with the learning rate `rate`, see `LocalSteps`."""

    def train(
        self,
        params: Params,
        client: Client,
        key: PRNGKeyArray,
        *,
        rate: Scalar | None = None,
        steps: int | None = None,
        momentum: Scalar = 0.0,
        adjust: Adjust | None = None,
        anchors: Sequence[Params] = (),
        fixed: Params | None = None,
    ) -> Params:
        """SGD from `params`, see `sgd`. rate: instead of `rate`; steps: instead of local_steps or epochs."""
        return sgd(
            client,
            params,
            key,
            rate=self.rate if rate is None else rate,
            steps=self.local_steps if steps is None else steps,
            batch_size=self.batch_size,
            order=self.batches,
            epochs=self.epochs if steps is None else 0,
            momentum=momentum,
            adjust=adjust,
            anchors=anchors,
            fixed=fixed,
        )
