"""FedAvg with an own intercept per client: a random intercept, the one private number that most federations need."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray, PyTree

from idiolect.algorithms.base import Cohort, Start, check
from idiolect.algorithms.parts.averaging import Averaging, Server
from idiolect.algorithms.parts.newton import MOST, RISE, Newton, Sums, inverse, of_layer
from idiolect.algorithms.parts.rows_used import RowsUsed, whole
from idiolect.algorithms.parts.solvers import Trainer
from idiolect.client.client import Client
from idiolect.client.objective import Batch
from idiolect.client.predictor import Models, Shared
from idiolect.core import tree
from idiolect.core.errors import ConfigError, require
from idiolect.core.tree import Params, Scalar
from idiolect.models import LinearRegression, MultinomialLogistic
from idiolect.models.parts import separate

Solver = Literal["auto", "newton", "sgd"]
Intercept = Float[Array, "outputs"]
_STEPS = 25  # of the intercept's own solver, which needs about five
_CLOSE = 1e-4  # a Newton step this short ends it: the error left is about its square


class Points(NamedTuple):
    """What a client receives under Newton. trial: the point to evaluate; best: the one to predict with."""

    trial: Params
    best: Params


class FedAvgIntercept(Averaging, Trainer):
    """One shared model w with an own intercept b_i per client, added to the outputs of its last layer.

        min over w, b_1, ..., b_N of sum_i [ n_i f_i(w, b_i) + (mu / 2) ||b_i||^2 ]

    f_i(w, b_i): the mean loss of the outputs model_w(x) + b_i, plus the L2 term of w. b_i is private and never sent.
    It is a regression with client dummies whose penalty is mu, or a random intercept of variance sigma^2 / mu.

    solver "sgd": FedAvg on w; each local step also moves b_i <- b_i - eta (grad_b f_i + (mu / n_i) b_i). With
    local_steps = 1, batch_size = 0 and all clients in every round this is gradient descent on the sum above.
    solver "newton": a client first solves for its b_i, then sends the sums of loss, gradient and curvature of its
    profile, min over b_i. The server takes a damped Newton step: the optimum of a convex model in a few rounds.
    solver "auto": Newton for a model of one layer (mlr, linear) of at most 2,000 parameters, else SGD. With a cohort
    of S of N clients a Newton step is shortened to S / N of its length.

    intercept_penalty: mu, in samples. rate, local_steps, epochs, batch_size, batches, server_optimizer, server_rate:
    as `FedAvg`, of solver "sgd". weighting: p_i, by training samples ("size") or equal.

    Models: `personal` is w with b_i; `global` is w.

    Raises `ConfigError` for a model without a bias in its last layer, and for Newton on more than 2,000 parameters.

    Source: Laird & Ware, "Random-Effects Models for Longitudinal Data", Biometrics 38, 1982 (the model); McMahan et
    al., AISTATS 2017, Algorithm 1 (SGD); Wolfson et al., "DataSHIELD", Int. J. Epidemiology 39, 2010 (sums).
    """

    name: ClassVar[str] = "fedavg-intercept"
    title: ClassVar[str] = "FedAvg + own intercept"
    summary: ClassVar[str] = "one shared model, with a private intercept per client (a random intercept)"
    source: ClassVar[str] = "Laird & Ware, 1982; McMahan et al., AISTATS 2017; Wolfson et al., 2010"
    model_names: ClassVar[tuple[str, ...]] = ("personal", "global")

    intercept_penalty: Scalar = 3.0
    solver: Solver = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, intercept_penalty="nonnegative", solver=("auto", "newton", "sgd"))

    def check_start(self, start: Start) -> None:
        """Raise `ConfigError` for a model without an intercept, or with too many parameters for Newton."""
        _intercept(start.params)
        count = sum(leaf.size for leaf in jax.tree.leaves(start.params))
        require(
            self.solver != "newton" or count <= MOST,
            f"{self.name}: solver = 'newton' is for at most {MOST:,} parameters, the model has {count:,}; "
            "take solver = 'sgd'",
        )

    def carried(self, start: Start) -> int:
        """The model; for Newton its curvature matrix."""
        size = super().carried(start)
        return size**2 if self._newton(start.params) else size

    def init(self, start: Start, key: PRNGKeyArray) -> PyTree:
        """The shared model, with the state of its solver."""
        if self._newton(start.params):
            return Newton.start(start.params)
        return super().init(start, key)

    def init_private(self, start: Start, key: PRNGKeyArray) -> Intercept:
        """b_i = 0."""
        del key
        return jnp.zeros_like(_intercept(start.params))

    def view(self, shared: Server | Newton, client_id: Any) -> Params | Points:
        """Clients receive the model; under Newton the point to evaluate, and the best so far."""
        return Points(shared.trial, shared.best) if isinstance(shared, Newton) else super().view(shared, client_id)

    def local(
        self, view: Params | Points, private: Intercept, client: Client, key: PRNGKeyArray
    ) -> tuple[Params | Sums, Intercept]:
        """Message: w_i, or the sums of the client's profile; private: b_i."""
        if isinstance(view, Points):
            return self._profile(view.trial, client, private)
        penalty = self.intercept_penalty / jnp.maximum(client.size, 1)

        def step(carry: tuple[Params, Intercept], batch: Batch | None, _: ArrayLike) -> tuple[Params, Intercept]:
            w, b = carry
            slope = client.grad(_with(w, b), batch)  # its L2 term is that of w + b; what b adds is taken off
            of_b, excess = _intercept(slope), client.objective.l2 * b
            w = tree.add_scaled(w, -self.rate, _with(slope, -excess))
            l2_of_w = client.objective.l2 * _intercept(carry[0])
            return w, b - self.rate * (of_b - excess - l2_of_w + penalty * b)

        return self.over_round(client, key, step, (view, private))

    def aggregate(self, shared: PyTree, cohort: Cohort, messages: PyTree) -> PyTree:
        """FedAvg's mean; or a Newton step on the cohort's sums."""
        if not isinstance(shared, Newton):
            return super().aggregate(shared, cohort, messages)
        # The sums already count samples; "uniform" gives every client the same weight.
        weights = cohort.weights(self.weighting) / jnp.maximum(cohort.sizes, 1)
        clients = jnp.sum(weights) / jnp.sum(cohort.weights(self.weighting))
        mean = jax.tree.map(lambda leaf: leaf * clients, tree.weighted_mean(messages, weights))
        share = cohort.expected / cohort.population
        if share >= 1:
            return shared.advance(mean)
        state = shared.advance(mean, rise=0.5)  # another cohort has another loss
        return eqx.tree_at(lambda one: one.direction, state, state.direction * share)

    def models(self, view: Params | Points, private: Intercept, client: Client, key: PRNGKeyArray) -> Models:
        """personal: w with b_i, which Newton solves for at this w; global: w."""
        del key
        if isinstance(view, Points):
            return {
                "personal": _with(view.best, self._solved(view.best, client, private)),
                "global": Shared(view.best),
            }
        return {"personal": _with(view, private), "global": Shared(view)}

    def whole(self, sent: Params | Sums, kept: Intercept, view: Params | Points) -> Params:
        """The model of which a client sends w and keeps b_i."""
        return _with(view.trial if isinstance(view, Points) else sent, kept)

    def rows_used(self, rows: int) -> RowsUsed | None:
        """Count all rows under Newton, else those of the steps; "auto" may be either, so it counts as steps."""
        return whole(rows) if self.solver == "newton" else super().rows_used(rows)

    def rank(self, start: Start, message: PyTree) -> int:
        """The inputs of the last layer and its constant under Newton: a row adds a matrix of rank 1 per output."""
        if not isinstance(message, Sums):
            return super().rank(start, message)
        return message.gradient.size // start.num_outputs

    def _newton(self, params: PyTree) -> bool:
        """Whether the solver is Newton's. params: the model, or its shapes, which a site asks for first."""
        if self.solver != "auto":
            return self.solver == "newton"
        leaves = jax.tree.leaves(params)
        one_layer = not jax.tree.leaves(separate(params, "last")[0])
        return one_layer and sum(leaf.size for leaf in leaves) <= MOST

    def _solved(self, params: Params, client: Client, start: Intercept) -> Intercept:
        """b_i = argmin of sum_j loss(model(x_j) + b, y_j) + (mu / 2) ||b||^2, by damped Newton steps
        from `start`."""
        like = _intercept(params)

        def rows(position: Array) -> tuple[Array, Array, Array]:
            batch = client.take(position)
            return client.objective.outputs(params, batch.x).reshape(len(position), -1), batch.y, batch.weight

        outputs, y, weight = client.collect(rows)
        batch = Batch(None, y, weight, client.outputs)

        def loss(b: Intercept) -> Float[Array, ""]:
            held = jnp.where(weight[:, None] > 0, outputs, 0) + b
            return client.objective.output_loss(held, batch) + 0.5 * self.intercept_penalty * jnp.sum(b**2)

        def unfinished(carry: tuple[Intercept, Array, Array, Array]) -> Array:
            _, _, length, number = carry
            return (length > _CLOSE) & (number < _STEPS)

        def step(carry: tuple[Intercept, Array, Array, Array]) -> tuple[Intercept, Array, Array, Array]:
            b, scale, _, number = carry
            return *_damped(loss, b, scale), number + 1

        one = jnp.ones((), like.dtype)
        return jax.lax.while_loop(unfinished, step, (start, one, one, jnp.asarray(0)))[0]

    def _profile(self, params: Params, client: Client, start: Intercept) -> tuple[Sums, Intercept]:
        """Sums of min over b of the client's loss, at `params`: its slope is that at b_i, its curvature the Schur
        complement H_ww - H_wb (H_bb + mu I)^+ H_bw."""
        b = self._solved(params, client, start)
        vector, restore = ravel_pytree(params)
        count = vector.size

        def total(both: Array, batch: Batch) -> Float[Array, ""]:
            return client.objective.data_loss(_with(restore(both[:count]), both[count:].reshape(b.shape)), batch)

        def curved(both: Array, batch: Batch) -> Float[Array, "q q"]:
            if not isinstance(client.objective.static, LinearRegression | MultinomialLogistic):
                return jax.hessian(total)(both, batch)
            outputs = client.objective.outputs(restore(both[:count]), batch.x).reshape(len(batch.y), -1)
            return of_layer(client.objective, outputs + both[count:], batch)

        def add(index: Array, sums: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            part = client.take(index * client.tile + jnp.arange(client.tile))
            value, slope = jax.value_and_grad(total)(both, part)
            parts = (value, slope, curved(both, part))
            return tuple((a + b).astype(a.dtype) for a, b in zip(sums, parts, strict=True))  # pyright: ignore[reportReturnType]

        both = jnp.concatenate([vector, b.reshape(-1)])
        zero = jnp.zeros((), both.dtype)
        nothing = (zero, jnp.zeros_like(both), jnp.zeros((both.size, both.size), both.dtype))
        tiles = (client.size + client.tile - 1) // client.tile
        loss, slope, curvature = jax.lax.fori_loop(0, tiles, add, nothing)
        l2, mu = client.size * client.objective.l2, self.intercept_penalty
        loss = loss + 0.5 * l2 * jnp.sum(vector**2) + 0.5 * mu * jnp.sum(b**2)
        slope = slope + jnp.concatenate([l2 * vector, mu * b.reshape(-1)])
        diagonal = jnp.concatenate([jnp.full(count, l2, both.dtype), jnp.full(b.size, mu, both.dtype)])
        curvature = curvature + jnp.diag(diagonal)
        cross, own = curvature[:count, count:], curvature[count:, count:]
        weight = inverse(own)
        profile = curvature[:count, :count] - cross @ weight @ cross.T
        return Sums(loss, slope[:count] - cross @ weight @ slope[count:], profile), b


def _damped(
    loss: Callable[[Intercept], Float[Array, ""]], b: Intercept, scale: Float[Array, ""]
) -> tuple[Intercept, Float[Array, ""], Float[Array, ""]]:
    """One Newton step of length `scale`, taken if the loss does not rise; the next step's length; and how far a full
    step goes, in its largest entry."""
    flat = b.reshape(-1)
    value, slope = jax.value_and_grad(lambda v: loss(v.reshape(b.shape)))(flat)
    curvature = jax.hessian(lambda v: loss(v.reshape(b.shape)))(flat)
    direction = -inverse(curvature) @ slope
    moved = (flat + scale * direction).reshape(b.shape)
    better = loss(moved) <= value + RISE * jnp.abs(value)  # else rounding would end it at sqrt(epsilon)
    next_scale = jnp.where(better, jnp.minimum(2 * scale, 1), scale / 4).astype(scale.dtype)
    return jnp.where(better, moved, b), next_scale, jnp.max(jnp.abs(direction)).astype(scale.dtype)


def _place(params: PyTree) -> Callable[[PyTree], Any]:
    """The place of the last layer's bias in a parameter tree."""
    head = separate(params, "last")[1]
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(head)]
    biases = [path for path in paths if jax.tree_util.keystr(path).endswith(("bias", "bias']", "'b']"))]
    if len(biases) != 1:
        raise ConfigError(
            f"{FedAvgIntercept.name}: the model's last layer has no bias, to which a client's intercept is added; "
            "give the layer one (its leaf is named 'bias')"
        )
    position = [path for path, _ in jax.tree_util.tree_leaves_with_path(params)].index(biases[0])
    return lambda found: jax.tree.leaves(found)[position]


def _intercept(params: PyTree) -> Any:
    """The last layer's bias."""
    return _place(params)(params)


def _with(params: Params, b: Intercept) -> Params:
    """The model with b added to its last layer's bias."""
    return eqx.tree_at(_place(params), params, _intercept(params) + b)
