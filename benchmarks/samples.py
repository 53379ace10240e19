"""Random samples and the file in which a run hands the same beginning to every system. NumPy alone."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np


def samples(
    clients: int,
    per_client: int,
    shape: tuple[int, ...],
    classes: int,
    *,
    alike: bool = False,
    empty: Callable[..., np.ndarray] = np.empty,
) -> tuple[np.ndarray, np.ndarray]:
    """Features in [0, 1], (clients, per_client, *shape) float32, and labels, int64.

    alike: a client's samples are one sample many times, so that the order in which a system draws them is nothing.
    empty: makes the memory that the features are drawn into.
    """
    rng = np.random.default_rng(0)
    x = empty((clients, per_client, *shape), np.float32)
    rng.random(out=x, dtype=np.float32)
    y = rng.integers(0, classes, (clients, per_client))
    if alike:
        x[:], y[:] = x[:, :1].copy(), y[:, :1].copy()
    return x, y


@dataclass(frozen=True)
class Given:
    """What all systems start from.

    weights: the initial model in PyTorch's layout, layer by layer, (outputs, inputs) then bias; one more leading axis
    where every client has its own. cohorts: (rounds, cohort). rows: (rounds, clients, steps, batch), each client's
    mini-batches, -1 for none; None: every system draws its own.
    """

    weights: list[np.ndarray]
    cohorts: np.ndarray
    rows: np.ndarray | None = None
    alike: bool = False

    def save(self, path: Path) -> None:
        """Write to a .npz file."""
        arrays = {f"w{i}": weight for i, weight in enumerate(self.weights)}
        if self.rows is not None:
            arrays["rows"] = self.rows
        np.savez(path, cohorts=self.cohorts, alike=np.array(self.alike), **arrays)

    @classmethod
    def load(cls, path: Path) -> "Given":
        """Read what `save` wrote."""
        with np.load(path) as file:
            count = sum(name.startswith("w") for name in file.files)
            rows = file["rows"] if "rows" in file.files else None
            return cls([file[f"w{i}"] for i in range(count)], file["cohorts"], rows, bool(file["alike"]))
