"""k-fold cross-validation on each client's training samples; test data are not touched.

Each client's samples are stored in the order fold 1 .. fold k, fold 1 .. fold k-1. Then a fold is a range of
consecutive rows, and so are the client's samples without it. Folds differ in two integers a client (first row, number
of rows), so one program runs them all.
"""

from dataclasses import replace
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from idiolect.client.samples import Arrays, Samples, Tiles, total_of
from idiolect.core.errors import require
from idiolect.data.federated import FederatedData, Split
from idiolect.runtime.members import Member, of_all_clients
from idiolect.runtime.program import member_of, plan_of_member
from idiolect.runtime.simulate import Simulation

MOST = 100  # every setting and seed runs once for each fold


class Folds:
    """`count` folds of each client's training samples, drawn from `seed`; their sizes differ by at most one sample.

    A client with fewer samples than folds has empty folds. Raises `ConfigError` if `count` is out of range or some
    client has only one training sample.
    """

    def __init__(self, data: FederatedData, count: int = 5, seed: int = 0) -> None:
        require(2 <= count <= MOST, f"folds = {count} must lie between 2 and {MOST}")
        largest = int(data.train.sizes.max())
        message = f"folds = {count} is more than any client has training samples, at most {largest}"
        require(count <= largest, message)
        smallest = int(np.argmin(data.train.sizes))
        require(
            int(data.train.sizes[smallest]) >= 2,
            f"client '{data.clients[smallest]}' has a single training sample, which cannot be divided into folds",
        )
        self.base, self.count = data, count
        sizes = data.train.sizes
        self.sizes = sizes[:, None] // count + (np.arange(count) < sizes[:, None] % count)  # (clients, folds)
        rng = np.random.default_rng(seed)
        shuffled = [rng.permutation(size) + first for size, first in zip(sizes, data.train.offsets, strict=False)]
        repeated = sizes - self.sizes[:, -1]
        self.rows = np.concatenate([part for s, a in zip(shuffled, repeated, strict=True) for part in (s, s[:a])])
        self.first = np.cumsum(sizes + repeated) - (sizes + repeated)
        self.begin = np.cumsum(self.sizes, axis=1) - self.sizes  # a fold's first row among its client's samples

    def left(self, fold: int) -> tuple[Int[np.ndarray, "clients"], Int[np.ndarray, "clients"]]:
        """(first row, number of rows) of each client's training samples outside a fold."""
        first = self.first + self.begin[:, fold] + self.sizes[:, fold]
        return first, self.base.train.sizes - self.sizes[:, fold]

    def held(self, fold: int) -> tuple[Int[np.ndarray, "clients"], Int[np.ndarray, "clients"]]:
        """(first row, number of rows) of each client's training samples in a fold."""
        return self.first + self.begin[:, fold], self.sizes[:, fold]

    def data(self, fold: int) -> FederatedData:
        """Build the federation whose validation split is a fold and whose training split is the rest."""
        return replace(
            self.base,
            name=f"{self.base.name}, fold {fold + 1} of {self.count}",
            train=self._split(*self.left(fold)),
            validation=self._split(*self.held(fold)),
        )

    def _split(self, starts: Int[np.ndarray, "clients"], sizes: Int[np.ndarray, "clients"]) -> Split:
        train = self.base.train
        index = self.rows[np.concatenate([np.arange(a, a + n) for a, n in zip(starts, sizes, strict=True)])]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Split(train.x[index], train.y[index], offsets, train.outputs)

    @cached_property
    def _samples(self) -> Arrays:
        train = self.base.train
        outputs = None if train.outputs is None else jnp.asarray(train.outputs.astype(np.int32))
        x, y = jnp.asarray(train.x[self.rows]), jnp.asarray(train.y[self.rows])
        none = jnp.zeros(0, jnp.int32)
        return Arrays(x, y, none, none, jnp.zeros(()), jnp.asarray(len(y), jnp.int32), outputs)

    def _arrays(self, starts: Int[np.ndarray, "clients"], sizes: Int[np.ndarray, "clients"]) -> Arrays:
        starts_, sizes_ = jnp.asarray(starts, jnp.int32), jnp.asarray(sizes, jnp.int32)
        return self._samples._replace(starts=starts_, sizes=sizes_, total=total_of(sizes))

    def member(self, simulation: Simulation, fold: int) -> Member:
        """Build the program's member for a simulation of `data(fold)`.

        A method that trains on pooled data gets its own arrays for each fold.
        """
        if simulation.training is not simulation.data:
            return member_of(simulation, ("validation",))
        training = self._arrays(*self.left(fold))
        rows = min(simulation.tile, int(self.sizes.max()))
        tiles = Tiles.cut(*self.held(fold), rows, self.sizes.max(axis=1))
        scored: dict[str, tuple[Samples, Tiles]] = {"validation": (self._arrays(*self.held(fold)), tiles)}
        return of_all_clients(plan_of_member(simulation), training, training, scored)
