"""MOCHA: federated multi-task learning of linear models by distributed dual coordinate ascent."""

from typing import ClassVar, Literal, NamedTuple, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, PRNGKeyArray

from idiolect.algorithms.base import Algorithm, Cohort, Start, check
from idiolect.algorithms.parts.dual import LOSSES, Duals, Subproblem, matrix_of, params_of, require_linear
from idiolect.algorithms.parts.rows_used import RowsUsed, whole
from idiolect.client.client import Client
from idiolect.client.predictor import Models
from idiolect.core import tree
from idiolect.core.errors import require
from idiolect.core.linalg import eigh
from idiolect.core.tree import Params, Scalar

Relationship = Literal["fixed", "learned"]


class Relation(eqx.Module):
    """How the clients are related: Omega, Mbar, and sigma'."""

    omega: Float[Array, "clients clients"]
    mixing: Float[Array, "clients clients"]
    safety: Float[Array, ""]


class Tasks(eqx.Module):
    """The server's state.

    image: v_t of all clients, leaves (N, ...). params: w_t. conjugate: (N,) each client's sum of l*(-alpha).
    round: rounds done. primal, dual: P(W(alpha)) and -D(alpha) before the last round; primal only if all clients
    took part in it (`complete`), which are the only ones that know it.
    """

    image: Params
    params: Params
    relation: Relation
    conjugate: Float[Array, "clients"]
    round: Int[Array, ""]
    primal: Float[Array, ""]
    dual: Float[Array, ""]
    complete: Bool[Array, ""]


class Task(NamedTuple):
    """What client t receives: w_t, and q = sigma' Mbar_tt, the curvature of its subproblem."""

    params: Params
    curvature: Float[Array, ""]


class Own(NamedTuple):
    """A new client's private state: its dual variables alpha, and their image X alpha."""

    duals: Duals
    image: Params


class Change(NamedTuple):
    """What a client sends: X_t dalpha_t; its loss at the w_t received; its sum of l*(-alpha) afterwards."""

    image: Params
    loss: Float[Array, ""]
    conjugate: Float[Array, ""]


def mixed(mixing: Float[Array, "n n"], image: Params) -> Params:
    """w_t = sum_s Mbar_ts v_s."""
    return jax.tree.map(lambda v: jnp.tensordot(mixing.astype(v.dtype), v, axes=1), image)


class Mocha(Algorithm):
    """MOCHA: min_{W, Omega} sum_t sum_i l(w_t' x_ti, y_ti) + R(W, Omega), one column w_t of W for each client.

    R(W, Omega) = (lambda_1 / 2) tr(W Omega W') + (lambda_2 / 2) ||W||^2              (relationship = "fixed")
    R(W, Omega) = (lambda_1 / 2) tr(W Omega^-1 W') + (lambda_2 / 2) ||W||^2, tr Omega = 1          ("learned")

    fixed: Omega is (I - 11'/N)^2, so that the models are drawn to their mean, or the matrix `relation`. learned:
    Omega is the clients' covariance, its inverse in the fixed form's place, found in alternation with W.

    The dual, eq. (3): min_alpha D(alpha) = sum l*(-alpha_ti) + R*(V), v_t = X_t alpha_t, with Omega fixed
        R*(V) = tr(V Mbar V') / 2,  Mbar = (lambda_1 Omega + lambda_2 I)^-1,  w_t = sum_s Mbar_ts v_s.
    A round on client t: `passes` passes of coordinate ascent over its samples, in random order, on eq. (4),
        min_d  sum_i l*(-alpha_ti - d_i) + <w_t, X_t d> + (sigma' / 2) Mbar_tt ||X_t d||^2,
        sigma' = max_t sum_s |Mbar_ts| / Mbar_tt, with which all changes may be added (the paper's gamma = 1);
    alpha_t <- alpha_t + d stays on the client, X_t d is sent. The server: v_t <- v_t + X_t d, and W from V; if
    learned, every `omega_every` rounds Omega <- argmin_Omega R(W, Omega) = (W'W)^(1/2) over its trace, W from V.

    coupling: lambda_1. shrinkage: lambda_2. loss: "hinge", "logistic" or "squared". theta: theta_t^h, eq. (5); a
    client stops before the last pass when it is sure to have come this near to its optimum: 0 never, 1 at once.
    A client not sampled has theta = 1. capacity: rows of dual variables, the largest number of samples of
    a client; 0: as many as the largest client has. ridge: epsilon in Omega = (W'W + epsilon^2 I)^(1/2) / trace, which
    adds (lambda_1 / 2) epsilon^2 tr(Omega^-1) to R and keeps Omega invertible; it starts at I/N, its value for W = 0.

    The loss is summed over samples, as in the paper. Divided by n_t, client t's part is its mean loss with an L2
    weight of lambda_2 / n_t, where other methods have the model's l2 for every client; that l2 is not used here.

    Linear models only. C classes are C problems, one against the rest, with labels +-1 and one Omega; the largest
    output is the prediction. The bias is the weight of a constant feature and as such regularised. W starts at
    0, the image of alpha = 0, whatever the initial model.

    Diagnostics, of the state before the last round: the duality gap P(W(alpha)) + D(alpha) with Omega fixed; the
    primal objective P; the dual objective -D. The first two are known if all clients took part, else NaN.

    Model: `personal` is w_t.

    A new client, with "fixed" and the default Omega: among N + 1 clients the coupling is (lambda_1 / 2) sum_t
    ||w_t - mean||^2; with the N known w_t held, (lambda_1 / 2) (N / (N + 1)) ||w - wbar||^2 of it depends on w, where
    wbar is their mean. With c = lambda_1 N / (N + 1) it minimises
        sum_i l(w' x_i, y_i) + (c / 2) ||w - wbar||^2 + (lambda_2 / 2) ||w||^2
    by the same dual ascent: w = m + q X alpha, m = q c wbar, q = 1 / (c + lambda_2). A given or learned Omega says
    nothing of a client that is not in it, and new clients are refused.

    Source: Smith, Chiang, Sanjabi, Talwalkar, "Federated Multi-Task Learning", NeurIPS 2017, Algorithm 1. Omega:
    Zhang, Yeung, "A Convex Formulation for Learning Task Relationships in Multi-Task Learning", UAI 2010.
    """

    name: ClassVar[str] = "mocha"
    title: ClassVar[str] = "MOCHA"
    summary: ClassVar[str] = "multi-task learning: linear models, related by a matrix that can be learned"
    source: ClassVar[str] = "Smith et al., NeurIPS 2017, Algorithm 1"
    model_names: ClassVar[tuple[str, ...]] = ("personal",)

    coupling: Scalar = 1.0
    shrinkage: Scalar = 0.1
    theta: Scalar = 0.0
    ridge: Scalar = 0.01
    relation: ArrayLike | None = None
    loss: str = eqx.field(static=True, default="hinge")
    relationship: Relationship = eqx.field(static=True, default="fixed")
    passes: int = eqx.field(static=True, default=1)
    omega_every: int = eqx.field(static=True, default=10)
    capacity: int = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        """Raise `ConfigError` naming the hyper-parameter that is out of range."""
        check(self, relationship=get_args(Relationship), loss=tuple(LOSSES))
        learned = self.relationship == "learned"
        check(self, coupling="positive" if learned else "nonnegative", theta="share")
        check(self, shrinkage="nonnegative" if learned else "positive", ridge="positive")
        check(self, passes="count", omega_every="count", capacity="whole")

    def check_start(self, start: Start) -> None:
        """Refuse a model that is not linear, a loss or a capacity too small for the data, and what is no Omega."""
        require_linear(self.name, start)
        require(
            start.task == "classification" or self.loss == "squared",
            f"mocha: loss = {self.loss!r} is for classification; use loss = 'squared'",
        )
        require(
            self.capacity == 0 or self.capacity >= start.capacity,
            f"mocha: capacity = {self.capacity}, but a client has {start.capacity} training samples",
        )
        if self.relation is not None:
            self.check_relation(np.asarray(self.relation), start.clients)

    def check_relation(self, relation: np.ndarray, clients: int) -> None:
        """Raise `ConfigError` unless `relation` is a relation of so many clients."""
        fits = relation.shape == (clients, clients) and relation.dtype.kind in "iuf"
        require(
            fits and bool(np.isfinite(relation).all() and np.allclose(relation, relation.T)),
            f"mocha: relation must be a symmetric matrix of {clients} x {clients} numbers, one row for each client",
        )
        least, size = float(np.linalg.eigvalsh(relation)[0]), float(np.abs(relation).max())
        require(least >= -1e-6 * size, f"mocha: relation has the negative eigenvalue {least:.3g}")
        require(
            self.relationship == "fixed" or (least > 0 and abs(float(np.trace(relation)) - 1) < 1e-4),
            "mocha: relation starts relationship = 'learned' and must be invertible with trace 1",
        )

    def first_relation(self, clients: int) -> Float[Array, "clients clients"]:
        """Omega before the first round."""
        if self.relation is not None:
            return jnp.asarray(self.relation, jnp.result_type(float))
        if self.relationship == "learned":
            return jnp.eye(clients) / clients
        return jnp.eye(clients) - 1 / clients  # its own square

    def mixing(self, omega: Float[Array, "n n"]) -> Float[Array, "n n"]:
        """Mbar = (lambda_1 Omega + lambda_2 I)^-1, for "learned" with Omega^-1, which need not be formed."""
        values, vectors = eigh(omega)
        values = jnp.maximum(values, 0)
        if self.relationship == "learned":
            inverse = values / (self.coupling + self.shrinkage * values)
        else:
            inverse = 1 / (self.coupling * values + self.shrinkage)
        return (vectors * inverse) @ vectors.T

    def learned(self, params: Params) -> Float[Array, "n n"]:
        """argmin over Omega of R(W, Omega) with the ridge: (W'W + epsilon^2 I)^(1/2) over its trace."""
        rows = jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in jax.tree.leaves(params)], axis=1)
        values, vectors = eigh(rows @ rows.T)
        roots = jnp.sqrt(jnp.maximum(values, 0) + self.ridge**2)
        return (vectors * (roots / jnp.sum(roots))) @ vectors.T

    def related(self, omega: Float[Array, "n n"]) -> Relation:
        """Omega with the Mbar and sigma' that follow from it."""
        mixing = self.mixing(omega)
        return Relation(omega, mixing, jnp.max(jnp.sum(jnp.abs(mixing), axis=1) / jnp.diagonal(mixing)))

    def init(self, start: Start, key: PRNGKeyArray) -> Tasks:
        """alpha = 0, hence V = W = 0."""
        del key
        clients, zero = start.clients, jnp.zeros(())
        relation = self.related(self.first_relation(clients))
        image = jax.tree.map(lambda leaf: jnp.zeros((clients, *leaf.shape), leaf.dtype), start.params)
        return Tasks(image, image, relation, jnp.zeros(clients), jnp.asarray(0), zero, zero, jnp.asarray(False))

    def init_private(self, start: Start, key: PRNGKeyArray) -> Duals:
        """The client's dual variables: one for each sample and output, rows beyond its samples stay 0."""
        del key
        matrix = matrix_of(start.params)
        return jnp.zeros((self.capacity or start.capacity, matrix.shape[0]), matrix.dtype)

    def view(self, shared: Tasks, client_id: Int[Array, ""]) -> Task:
        """The client's own row: nobody else's model or dual image."""
        weight = shared.relation.mixing[client_id, client_id]
        return Task(tree.gather(shared.params, client_id), shared.relation.safety * weight)

    def local(self, view: Task, private: Duals, client: Client, key: PRNGKeyArray) -> tuple[Change, Duals]:
        """Message: X_t d, never d; private: alpha_t + d."""
        start = matrix_of(view.params)
        problem = Subproblem(client, start, view.curvature.astype(start.dtype), LOSSES[self.loss])
        before = problem.totals(private, jnp.zeros_like(start))
        duals, image = problem.solve(private, before, key, self.passes, self.theta)
        return Change(params_of(image, view.params), before.loss, problem.conjugate(duals)), duals

    def rows_used(self, rows: int) -> RowsUsed:
        """Count all rows: a message is a sum over them."""
        return whole(rows)

    def aggregate(self, shared: Tasks, cohort: Cohort, messages: Change) -> Tasks:
        """V and W move; every `omega_every` rounds Omega is the best for W."""
        rows = jnp.where(cohort.present, cohort.ids, cohort.population)  # padding goes nowhere
        image = jax.tree.map(lambda v, d: v.at[rows].add(d, mode="drop"), shared.image, messages.image)
        half = 0.5 * tree.dot(shared.params, shared.image)  # R(W) and R*(V) alike, as W is the image of V
        primal = jnp.sum(messages.loss) + half
        dual = -jnp.sum(shared.conjugate) - half
        conjugate = shared.conjugate.at[rows].set(messages.conjugate, mode="drop")
        complete = jnp.sum(cohort.present) == cohort.population
        relation, done = shared.relation, shared.round + 1
        if self.relationship == "learned":
            params = mixed(relation.mixing, image)
            relation = jax.lax.cond(
                done % self.omega_every == 0, lambda: self.related(self.learned(params)), lambda: relation
            )
        params = mixed(relation.mixing, image)
        primal, dual = (value.astype(shared.dual.dtype) for value in (jnp.where(complete, primal, 0), dual))
        return Tasks(image, params, relation, conjugate, done, primal, dual, complete)

    def diagnostics(self, shared: Tasks) -> dict[str, Float[Array, ""]]:
        """The duality gap, and the two objectives that it lies between."""
        primal = jnp.where(shared.complete, shared.primal, jnp.nan)
        return {"duality gap": primal - shared.dual, "primal objective": primal, "dual objective": shared.dual}

    def relations(self, shared: Tasks) -> Float[Array, "clients clients"] | None:
        """The clients' correlations by a learned Omega."""
        if self.relationship == "fixed":
            return None
        scale = jnp.sqrt(jnp.diagonal(shared.relation.omega))
        return shared.relation.omega / (scale[:, None] * scale)

    def models(self, view: Task, private: Duals, client: Client, key: PRNGKeyArray) -> Models:
        """personal: w_t."""
        return {"personal": view.params}

    def new_view(self, shared: Tasks) -> Task:
        """m and q: the model that a new client has with alpha = 0, and its curvature."""
        require(
            self.relationship == "fixed" and self.relation is None,
            "mocha: a learned or given relation has no row for new clients, only the default has",
        )
        clients = len(shared.conjugate)
        pull = self.coupling * clients / (clients + 1)
        curvature = jnp.asarray(1 / (pull + self.shrinkage), jnp.result_type(float))
        mean = jax.tree.map(lambda w: jnp.mean(w, axis=0), shared.params)
        return Task(jax.tree.map(lambda w: (curvature * pull * w).astype(w.dtype), mean), curvature)

    def new_private(self, view: Task, start: Start, key: PRNGKeyArray) -> Own:
        """alpha = 0."""
        matrix = matrix_of(start.params)
        zero = jax.tree.map(jnp.zeros_like, view.params)
        return Own(jnp.zeros((start.capacity, matrix.shape[0]), matrix.dtype), zero)

    def new_round(self, view: Task, private: Own, client: Client, key: PRNGKeyArray) -> Own:
        """`passes` passes of ascent at w = m + q X alpha."""
        own = Task(tree.add_scaled(view.params, view.curvature, private.image), view.curvature)
        change, duals = self.local(own, private.duals, client, key)
        return Own(duals, tree.add_scaled(private.image, 1.0, change.image))

    def new_models(self, view: Task, private: Own, client: Client, key: PRNGKeyArray) -> Models:
        """personal: m + q X alpha."""
        return {"personal": tree.add_scaled(view.params, view.curvature, private.image)}
