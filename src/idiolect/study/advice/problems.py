"""Batches of penalised regression problems, and a damped Newton method in float64 that solves them.

One problem minimises, over weights w and intercepts b of each output,

    sum of losses over the rows + penalty / 2 |w|^2,

as scikit-learn does with `C = 1 / penalty` or `alpha = penalty`: the intercept has no penalty. The loss is half the
squared error, or the log-loss: of one logit with two classes, of a softmax with more.

With client dummies, each client k has its own penalised intercept u_k. The Hessian is then an arrow: u_k meets the
shared parameters and itself only. The step solves H_ww - sum_k H_wk H_kk^-1 H_kw (a Schur complement), which has the
size of the features, whatever the number of clients.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, softmax

ABSENT = -1e30
"""The logit of a class that the rows do not have."""
_LARGEST = 800  # shared parameters of a Newton system; beyond, L-BFGS
_PIECE = 2**17  # numbers of the rows that are multiplied at a time: 1 MB
_STEPS, _HALVINGS = 100, 40


def outputs_of(classes: int) -> int:
    """Logits of a row: 1 with two classes and for a regression (0 classes), else one per class."""
    return classes if classes > 2 else 1


@dataclass(frozen=True)
class Problems:
    """A batch of problems with padded rows; a vector of parameters holds (outputs, d + 1), then (clients, outputs).

    x: the last column is 1, for the intercept. weights: 0 for rows that do not count. sizes: rows of each client, for
    dummies, in a batch of one; else None.
    """

    x: Float[np.ndarray, "b n p"]
    y: Shaped[np.ndarray, "b n"]
    weights: Float[np.ndarray, "b n"]
    counts: Int[np.ndarray, "b classes"]
    sizes: Int[np.ndarray, "clients"] | None = None

    @property
    def classes(self) -> int:
        """Number of classes; 0 for a regression."""
        return self.counts.shape[1]

    @property
    def outputs(self) -> int:
        """Logits of a row, see `outputs_of`."""
        return outputs_of(self.classes)

    @property
    def shared(self) -> int:
        """Parameters that all rows share."""
        return self.outputs * self.x.shape[2]

    @property
    def absent(self) -> Bool[np.ndarray, "b outputs"]:
        """Classes of which a problem has no row; their logits are left out."""
        return self.counts == 0 if self.outputs > 1 else np.zeros((len(self.x), 1), bool)

    def start(self) -> Float[np.ndarray, "b m"]:
        """Zeros."""
        clients = 0 if self.sizes is None else len(self.sizes)
        return np.zeros((len(self.x), self.shared + clients * self.outputs))

    def take(self, chosen: Int[np.ndarray, "_"]) -> "Problems":
        """Some of the problems."""
        return replace(
            self, x=self.x[chosen], y=self.y[chosen], weights=self.weights[chosen], counts=self.counts[chosen]
        )

    def parts(self, theta: Float[np.ndarray, "b m"]) -> tuple[Float[np.ndarray, "b c p"], Float[np.ndarray, "b k c"]]:
        """Split parameters into shared weights with the intercept last, and the clients' own intercepts."""
        batch = len(theta)
        own = theta[:, self.shared :]
        return theta[:, : self.shared].reshape(batch, self.outputs, -1), own.reshape(batch, -1, self.outputs)

    def logits(self, theta: Float[np.ndarray, "b m"]) -> Float[np.ndarray, "b n c"]:
        """The logits, or predicted numbers, of all rows."""
        shared, own = self.parts(theta)
        logits = self.x @ shared.transpose(0, 2, 1)
        return logits if self.sizes is None else logits + np.repeat(own, self.sizes, axis=1)

    def value(
        self, logits: Float[np.ndarray, "b n c"], theta: Float[np.ndarray, "b m"], penalty: Float[np.ndarray, "b"]
    ) -> Float[np.ndarray, "b"]:
        """The sum of losses and penalties."""
        if not self.classes:
            losses = 0.5 * (self.y - logits[..., 0]) ** 2
        elif self.outputs == 1:
            losses = -log_expit(np.where(self.y > 0, logits[..., 0], -logits[..., 0]))
        else:
            every = log_softmax(np.where(self.absent[:, None], ABSENT, logits), axis=2)
            losses = -np.take_along_axis(every, self.y[..., None], axis=2)[..., 0]
        shared, own = self.parts(theta)
        squares = (shared[..., :-1] ** 2).sum(axis=(1, 2)) + (own**2).sum(axis=(1, 2))
        pinned = 0.5 * (shared[..., -1] * self._pinned(shared[..., -1])).sum(axis=1)
        return (self.weights * losses).sum(axis=1) + 0.5 * penalty * squares + pinned

    def gradient(
        self, slopes: Float[np.ndarray, "b n c"], theta: Float[np.ndarray, "b m"], penalty: Float[np.ndarray, "b"]
    ) -> Float[np.ndarray, "b m"]:
        """The gradient, from the derivative of each row's loss by its logits."""
        shared, own = self.parts(theta)
        of_shared = slopes.transpose(0, 2, 1) @ self.x
        of_shared[..., :-1] += penalty[:, None, None] * shared[..., :-1]
        of_shared[..., -1] += self._pinned(shared[..., -1])
        if self.sizes is None:
            return of_shared.reshape(len(theta), -1)
        of_own = self._by_client(slopes[0]) + penalty * own[0]
        return np.concatenate([of_shared.reshape(1, -1), of_own.reshape(1, -1)], axis=1)

    def slopes(
        self, logits: Float[np.ndarray, "b n c"]
    ) -> tuple[Float[np.ndarray, "b n c"], Float[np.ndarray, "b n c"]]:
        """The derivative of each row's weighted loss by its logits, and the probabilities of the outputs."""
        weights = self.weights[..., None]
        if not self.classes:
            return weights * (logits - self.y[..., None]), np.ones_like(logits)
        if self.outputs == 1:
            p = expit(logits)
            return weights * (p - self.y[..., None]), p
        p = softmax(np.where(self.absent[:, None], ABSENT, logits), axis=2)
        return weights * (p - (self.y[..., None] == np.arange(self.classes))), p

    def direction(
        self, p: Float[np.ndarray, "b n c"], gradient: Float[np.ndarray, "b m"], penalty: Float[np.ndarray, "b"]
    ) -> Float[np.ndarray, "b m"]:
        """The Newton direction -H^-1 g, with the dummies eliminated."""
        batch, _, width = self.x.shape
        outputs, ridge = self.outputs, penalty[:, None] * np.r_[np.ones(width - 1), 0.0]
        hessian = np.zeros((batch, outputs, width, outputs, width))
        clients = 0 if self.sizes is None else len(self.sizes)
        arrow, own = np.zeros((clients, outputs, outputs, width)), np.zeros((clients, outputs, outputs))
        diagonal = np.arange(width)
        for one in range(outputs):
            for other in range(one, outputs):
                curvature = self.weights * self._curvature(p, one, other)
                block = self._products(curvature, one == other)
                if one == other:
                    block[:, diagonal, diagonal] += ridge
                hessian[:, one, :, other] = hessian[:, other, :, one] = block
                if clients:
                    arrow[:, one, other] = arrow[:, other, one] = self._of_clients(curvature[0])
                    own[:, one, other] = own[:, other, one] = self._by_client(curvature[0][:, None])[:, 0]
        hessian[:, :, -1, :, -1] += self._pins() + 1e-9 * np.eye(outputs)
        size = outputs * width
        hessian = hessian.reshape(batch, size, size)
        if not clients:
            return -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        own += penalty[0] * np.eye(outputs)
        flat = arrow.reshape(clients, outputs, size)
        eliminated = np.linalg.solve(own, flat)
        g_shared, g_own = gradient[0, :size], gradient[0, size:].reshape(clients, outputs, 1)
        solved = np.linalg.solve(own, g_own)
        schur = hessian[0] - flat.reshape(-1, size).T @ eliminated.reshape(-1, size)
        step = -np.linalg.solve(schur, g_shared - flat.reshape(-1, size).T @ solved.reshape(-1))
        of_own = -solved[..., 0] - eliminated @ step
        return np.concatenate([step, of_own.reshape(-1)])[None]

    def _products(self, curvature: Float[np.ndarray, "b n"], positive: bool) -> Float[np.ndarray, "b p p"]:
        """x' diag(curvature) x, in pieces of rows that stay in the cache. positive: no curvature is negative.

        With its root on both sides BLAS computes half of the symmetric product. 130,000 rows of 91 numbers: a fifth
        of the time of one product with all weighted rows.
        """
        batch, rows, width = self.x.shape
        result = np.zeros((batch, width, width))
        factor = np.sqrt(np.maximum(curvature, 0)) if positive else curvature
        piece = max(1, _PIECE // (batch * width))
        for first in range(0, rows, piece):
            x = self.x[:, first : first + piece]
            weighted = factor[:, first : first + piece, None] * x
            result += (weighted if positive else x).transpose(0, 2, 1) @ weighted
        return result

    def _of_clients(self, curvature: Float[np.ndarray, "n"]) -> Float[np.ndarray, "k p"]:
        """The sums of curvature times row, of each client's rows."""
        assert self.sizes is not None
        ends = np.cumsum(self.sizes)
        pairs = zip((ends - self.sizes).tolist(), ends.tolist(), strict=True)
        return np.stack([curvature[first:end] @ self.x[0, first:end] for first, end in pairs])

    def _curvature(self, p: Float[np.ndarray, "b n c"], one: int, other: int) -> Float[np.ndarray, "b n"]:
        if not self.classes:
            return np.ones_like(p[..., 0])
        return p[..., one] * ((one == other) - p[..., other])

    def _by_client(self, rows: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "k m"]:
        """Sums over the rows of each client."""
        assert self.sizes is not None
        result = np.zeros((len(self.sizes), rows.shape[1]))
        held = self.sizes > 0  # `reduceat` takes no empty slices
        starts = (np.cumsum(self.sizes) - self.sizes)[held]
        result[held] = np.add.reduceat(rows, starts, axis=0)
        return result

    def _pins(self) -> Float[np.ndarray, "b c c"]:
        """What fixes the intercepts of a softmax: their sum over the present classes, and each absent one, are 0.

        Adding a number to all logits changes no probability. So a penalty on the sum changes none either.
        """
        if self.outputs == 1:
            return np.zeros((len(self.x), 1, 1))
        absent = self.absent.astype(np.float64)
        return (1 - absent[:, :, None]) * (1 - absent[:, None]) + absent[:, :, None] * np.eye(self.outputs)

    def _pinned(self, intercepts: Float[np.ndarray, "b c"]) -> Float[np.ndarray, "b c"]:
        return (self._pins() @ intercepts[..., None])[..., 0]


def newton(
    problems: Problems, theta: Float[np.ndarray, "b m"], penalty: Float[np.ndarray, "b"], tolerance: float
) -> Float[np.ndarray, "b m"]:
    """Minimise each problem from `theta` until a step gains less than `tolerance` per row, with halved steps."""
    if problems.shared > _LARGEST:
        return _limited(problems, theta, penalty, tolerance)
    theta, logits = theta.copy(), problems.logits(theta)
    value = problems.value(logits, theta, penalty)
    enough = tolerance * np.maximum(problems.weights.sum(axis=1), 1.0)
    active = np.arange(len(theta))  # of the problems passed in; `at` of those still solved
    result, at = theta.copy(), problems
    for _ in range(_STEPS):
        slopes, p = at.slopes(logits)
        gradient = at.gradient(slopes, theta, penalty)
        direction = at.direction(p, gradient, penalty)
        slope = (gradient * direction).sum(axis=1)
        along = at.logits(direction)
        step, reached = np.ones(len(theta)), np.zeros(len(theta), bool)
        for _ in range(_HALVINGS):
            trial = at.value(logits + step[:, None, None] * along, theta + step[:, None] * direction, penalty)
            reached = trial <= value + 1e-4 * step * slope + 1e-13 * np.abs(value)
            if reached.all():
                break
            step = np.where(reached, step, step / 2)
        step = np.where(reached, step, 0.0)
        theta += step[:, None] * direction
        logits += step[:, None, None] * along
        value = np.where(reached, trial, value)  # pyright: ignore[reportPossiblyUnboundVariable]
        result[active] = theta
        going = reached & (-slope / 2 > enough)
        if not at.classes or not going.any():
            break
        if 2 * going.sum() <= len(going):  # most are solved: continue with the others only
            kept = np.flatnonzero(going)
            at, active, enough = at.take(kept), active[kept], enough[kept]
            theta, logits, value, penalty = theta[kept], logits[kept], value[kept], penalty[kept]
    return result


def _limited(
    problems: Problems, theta: Float[np.ndarray, "b m"], penalty: Float[np.ndarray, "b"], tolerance: float
) -> Float[np.ndarray, "b m"]:
    """Minimise problems with many parameters by L-BFGS, one after the other."""
    result = theta.copy()
    for b in range(len(theta)):
        one, weak = problems.take(np.asarray([b])), penalty[b : b + 1]

        def objective(
            vector: Float[np.ndarray, "m"], one: Problems = one, weak: np.ndarray = weak
        ) -> tuple[float, np.ndarray]:
            logits = one.logits(vector[None])
            slopes, _ = one.slopes(logits)
            return float(one.value(logits, vector[None], weak)[0]), one.gradient(slopes, vector[None], weak)[0]

        options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-3 * tolerance, "gtol": tolerance}
        result[b] = minimize(objective, theta[b], jac=True, method="L-BFGS-B", options=options).x
    return result
