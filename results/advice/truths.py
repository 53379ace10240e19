"""Federations of linear clients whose truth is known."""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float

from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData

WIDTH, CLIENTS, ROWS = 5, 20, 80
NOISE = 1.5  # of a regression's labels, a deviation

Client = tuple[Float[np.ndarray, "n d"], np.ndarray]


class Draw:
    """Draws clients of one federation. task: decides what labels are."""

    def __init__(self, task: str, seed: list[int]) -> None:
        self.task, self.rng = task, np.random.default_rng(seed)

    def weights(self, length: float = 2.0) -> Float[np.ndarray, "d"]:
        """A direction of this length."""
        found = self.rng.normal(size=WIDTH)
        return length * found / np.linalg.norm(found)

    def client(
        self,
        rows: int,
        weights: Float[np.ndarray, "d"],
        intercept: float = 0.0,
        centre: Float[np.ndarray, "d"] | float = 0.0,
    ) -> Client:
        """x is normal around `centre`. z = weights . x + intercept; P(y = 1) = sigmoid(z), or y = z + noise."""
        x = self.rng.normal(size=(rows, WIDTH)) + centre
        z = x @ weights + intercept
        if self.task == "regression":
            return x.astype("f4"), (z + NOISE * self.rng.normal(size=rows)).astype("f4")
        return x.astype("f4"), (self.rng.random(rows) < 1 / (1 + np.exp(-z))).astype(int)

    def labels_first(self, rows: int, share: float, shift: Float[np.ndarray, "d"]) -> Client:
        """P(y = 1) = share, and x is normal around +-shift / 2 by the label."""
        y = (self.rng.random(rows) < share).astype(int)
        return (self.rng.normal(size=(rows, WIDTH)) + np.where(y[:, None] == 1, shift, -shift) / 2).astype("f4"), y


def alike(draw: Draw) -> list[Client]:
    """All clients have one relation."""
    w = draw.weights()
    return [draw.client(ROWS, w) for _ in range(CLIENTS)]


def worlds_apart(draw: Draw) -> list[Client]:
    """Every client has a strong relation of its own, and 240 rows."""
    return [draw.client(240, draw.weights(4.0)) for _ in range(CLIENTS)]


def two_groups(draw: Draw) -> list[Client]:
    """The relations of two groups of ten clients are opposite."""
    w = draw.weights()
    return [draw.client(ROWS, w if i % 2 else -w) for i in range(CLIENTS)]


def tiny_client(draw: Draw) -> list[Client]:
    """As alike, but one client has 12 rows."""
    w = draw.weights()
    return [draw.client(12 if i == 0 else ROWS, w) for i in range(CLIENTS)]


def label_shift(draw: Draw) -> list[Client]:
    """Only the share of the labels differs, from 10 to 90 %."""
    shift = draw.weights(1.5)
    return [draw.labels_first(ROWS, share, shift) for share in np.linspace(0.1, 0.9, CLIENTS)]


def covariate_shift(draw: Draw) -> list[Client]:
    """Only the centres of the features differ, with deviation 1 in each feature."""
    w = draw.weights()
    return [draw.client(ROWS, w, centre=draw.rng.normal(size=WIDTH)) for _ in range(CLIENTS)]


def shifted_intercepts(draw: Draw) -> list[Client]:
    """One relation, with intercepts of deviation 2."""
    w = draw.weights()
    return [draw.client(ROWS, w, intercept=2 * draw.rng.normal()) for _ in range(CLIENTS)]


def some_opposite(draw: Draw) -> list[Client]:
    """Fifteen clients share a relation, which is the opposite of that of the other five."""
    w = draw.weights()
    return [draw.client(ROWS, w if i < 15 else -w) for i in range(CLIENTS)]


def some_strangers(draw: Draw) -> list[Client]:
    """Sixteen clients of 40 rows share a relation; four of 240 rows have strong ones of their own."""
    w = draw.weights()
    return [draw.client(40, w) if i < 16 else draw.client(240, draw.weights(4.0)) for i in range(CLIENTS)]


TRUTHS: Mapping[Callable[[Draw], list[Client]], tuple[str, ...]] = {
    alike: ("shared", "personal"),
    worlds_apart: ("alone",),
    two_groups: ("personal",),
    tiny_client: ("shared", "personal"),
    label_shift: ("shared", "personal"),
    covariate_shift: ("shared", "personal"),
    shifted_intercepts: ("personal",),
    some_opposite: ("personal",),
    some_strangers: ("personal",),
}
"""Each truth and the verdicts that are right."""


def federation(truth: Callable[[Draw], list[Client]], number: int, task: str) -> FederatedData:
    """A draw of a truth. The clients' order is random, and the truth and the number decide everything."""
    draw = Draw(task, [number, *map(ord, truth.__name__)])
    clients = truth(draw)
    order = draw.rng.permutation(len(clients))
    return from_arrays({f"c{i:02}": clients[place] for i, place in enumerate(order)}, task=task)
