"""Client sampling: each round's cohort is drawn from the seed only, so it is the same for every method."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Int, PRNGKeyArray

from idiolect.core.errors import require
from idiolect.core.random import permuted, stream


class Sampling(eqx.Module):
    """Uniform client sampling of each round's cohort S_t from N clients.

    kind "fixed": exactly `size` clients, without replacement (pFedMe, Algorithm 1, line 9).
    kind "binomial": each client independently with probability size / N (PFLEGO, section 3.2.1 (a)); size may
        then be fractional, and a cohort may be empty: such a round changes no state.
    """

    size: float = eqx.field(static=True)
    population: int = eqx.field(static=True)
    kind: Literal["fixed", "binomial"] = eqx.field(static=True, default="fixed")

    def __check_init__(self) -> None:
        """Raise `ConfigError` if the cohort's size or kind is invalid."""
        require(self.kind in ("fixed", "binomial"), f"sampling '{self.kind}' is not one of 'fixed', 'binomial'")
        require(self.size > 0, f"cohort = {self.size} must be greater than 0")
        require(
            self.size <= self.population,
            f"cohort = {self.size} is larger than the {self.population} clients; use at most {self.population}",
        )
        if self.kind == "fixed":
            require(self.size == int(self.size), f"cohort = {self.size} must be a whole number of clients")

    def capacity(self, seed: PRNGKeyArray, rounds: int) -> int:
        """The size of the largest cohort of all rounds, computed from the seed."""
        if self.kind == "fixed":
            return int(self.size)
        counts = jax.vmap(lambda t: self._count(stream(seed, "cohort", t)))(jnp.arange(max(rounds, 1)))
        return max(int(np.max(np.asarray(counts))), 1)

    def _count(self, key: PRNGKeyArray) -> Int[Array, ""]:
        share = self.size / self.population
        return jax.random.binomial(jax.random.fold_in(key, 1), self.population, share).astype(jnp.int32)

    def draw(
        self, seed: PRNGKeyArray, round: ArrayLike, capacity: int
    ) -> tuple[Int[Array, "capacity"], Bool[Array, "capacity"]]:
        """The cohort of one round: (client numbers, False for padding rows)."""
        key = stream(seed, "cohort", round)
        rows = jnp.arange(capacity)
        ids = permuted(key, rows, self.population)
        count = int(self.size) if self.kind == "fixed" else self._count(key)
        return ids, rows < count
