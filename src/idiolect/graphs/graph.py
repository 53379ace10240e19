"""A weighted, undirected graph of the clients: who learns with whom, and how strongly."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from jaxtyping import Float, Int

from idiolect.core.errors import ConfigError, require

NAMED = 5  # clients named in a message; the others are counted


class GraphWarning(UserWarning):
    """Warns of a graph that is valid but probably unintended, such as a disconnected one."""


class MixingLimit(NamedTuple):
    """The stability limit of the mixing step.

    value: mu R eta rho, which must be below 2; coupling: the eta at which it is 2.
    """

    value: float
    coupling: float


def _array(values: Any, name: str, kinds: str) -> np.ndarray:
    """The values as a list of numbers of these kinds; raises `ConfigError` naming what they are for."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):  # lists of several lengths
        array = np.array(None)
    fits = array.ndim == 1 and (array.dtype.kind in kinds or array.size == 0)
    require(fits, f"graph: {name} must be a list of {'whole numbers' if kinds == 'iu' else 'numbers'}")
    return array if array.size else array.astype(np.int64 if kinds == "iu" else np.float64)


@dataclass(frozen=True, eq=False)  # compared and hashed by identity: its arrays are large
class Graph:
    """An undirected graph of N clients with weights a_kl = a_lk > 0, a_kk = 0, stored sparse (CSR).

    Client k's neighbours are `neighbours[offsets[k]:offsets[k + 1]]` in ascending order, `weights` their a_kl; each
    edge is stored at both its ends. hub: a_k0 of an extra vertex without data, which takes part in every round (the
    server of a star); None: no such vertex.

    Raises `ConfigError` naming the pair of clients where this does not hold.
    """

    offsets: Int[np.ndarray, "clients_plus_1"]
    neighbours: Int[np.ndarray, "entries"]
    weights: Float[np.ndarray, "_"]
    hub: Float[np.ndarray, "clients"] | None = None

    def __post_init__(self) -> None:
        for name, kinds in (("offsets", "iu"), ("neighbours", "iu"), ("weights", "iuf"), ("hub", "iuf")):
            if getattr(self, name) is not None or name != "hub":
                object.__setattr__(self, name, _array(getattr(self, name), name, kinds))
        require(len(self.offsets) > 0, "graph: it has no clients")
        count, entries = self.num_clients, len(self.neighbours)
        require(count >= 1, "graph: it has no clients")
        rising = self.offsets[0] == 0 and self.offsets[-1] == entries and (np.diff(self.offsets) >= 0).all()
        require(bool(rising), f"graph: offsets must rise from 0 to the number of entries ({entries})")
        inside = entries == 0 or (self.neighbours.min() >= 0 and self.neighbours.max() < count)
        require(bool(inside), f"graph: neighbours must be client numbers 0..{count - 1}")
        require(len(self.weights) == entries, f"graph: {entries} neighbours but {len(self.weights)} weights")
        self._refuse(~np.isfinite(self.weights), "must be a finite number")
        self._refuse(self.weights < 0, "must not be negative")
        self._refuse(self.weights == 0, "stands for no relation; leave the pair out")
        self._refuse(self.neighbours == self._owners, "relates a client to itself; set the diagonal to 0")
        repeated = (np.diff(self.neighbours) <= 0) & (np.diff(self._owners) == 0)
        self._refuse(np.append(False, repeated)[:entries], "is given twice or out of order")
        matrix = self._clients()
        if (difference := matrix - matrix.T).nnz:
            k, m = (int(index[0]) for index in difference.nonzero())
            raise ConfigError(
                f"graph: a[{k}, {m}] = {matrix[k, m]:g} but a[{m}, {k}] = {matrix[m, k]:g}; weights must be "
                "symmetric: use (A + A.T) / 2"
            )
        if self.hub is not None:
            require(len(self.hub) == count, f"graph: {count} clients but {len(self.hub)} weights to the hub")
            valid = bool(np.isfinite(self.hub).all() and (self.hub >= 0).all())
            require(valid, "graph: weights to the hub must be finite and not negative")
        for name in ("offsets", "neighbours", "weights", "hub"):
            if getattr(self, name) is not None:
                array = np.array(getattr(self, name))  # a copy, so that the caller may change its own array
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def _refuse(self, bad: np.ndarray, reason: str) -> None:
        if bad.any():
            entry = int(np.argmax(bad))
            pair = f"a[{self._owners[entry]}, {self.neighbours[entry]}] = {self.weights[entry]:g}"
            raise ConfigError(f"graph: {pair} {reason}")

    def __repr__(self) -> str:
        hub = "" if self.hub is None else ", a hub"
        return f"Graph(clients={self.num_clients}, edges={self.num_edges}{hub})"

    @property
    def num_clients(self) -> int:
        """Number of clients N, without the hub."""
        return len(self.offsets) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges between clients."""
        return len(self.neighbours) // 2

    @cached_property
    def _owners(self) -> Int[np.ndarray, "entries"]:
        return np.repeat(np.arange(self.num_clients), np.diff(self.offsets))

    def _clients(self) -> sp.csr_array:
        shape = (self.num_clients, self.num_clients)
        return sp.csr_array((self.weights, self.neighbours, self.offsets), shape=shape)

    def adjacency(self) -> sp.csr_array:
        """The matrix A of weights, (N, N); with a hub (N + 1, N + 1), the hub last."""
        if self.hub is None:
            return self._clients()
        edge = sp.csr_array(self.hub[None])
        return sp.csr_array(sp.block_array([[self._clients(), edge.T], [edge, None]], format="csr"))

    @cached_property
    def degrees(self) -> Float[np.ndarray, "vertices"]:
        """Each vertex's sum of weights, d_k = sum_l a_kl; the hub last."""
        return np.asarray(self.adjacency().sum(axis=1), np.float64)

    def laplacian(self) -> sp.csr_array:
        """L = D - A, in which w'Lw is the sum over edges of a_kl (w_k - w_l)^2; the hub last."""
        return sp.csr_array(sp.diags_array(self.degrees) - self.adjacency())

    def eigenvalues(self) -> Float[np.ndarray, "vertices"]:
        """All eigenvalues of L in ascending order. For small graphs: O(N^3)."""
        from idiolect.graphs import spectrum  # here: it loads slowly, and most runs have no graph

        return spectrum.eigenvalues(self.laplacian())

    @cached_property
    def lambda_2(self) -> float:
        """The algebraic connectivity: the second-smallest eigenvalue of L, 0 if the graph is disconnected."""
        from idiolect.graphs import spectrum  # as above

        return spectrum.second(self.laplacian()) if len(self.components) == 1 else 0.0

    @cached_property
    def largest(self) -> float:
        """rho = ||L||, the largest eigenvalue of L."""
        from idiolect.graphs import spectrum  # as above

        return spectrum.largest(self.laplacian())

    def mixing_limit(self, rate: float, steps: int, coupling: float) -> MixingLimit:
        """The stability limit of the mixing step W - mu R eta L W with rate mu, `steps` R and coupling eta.

        It multiplies W's component along an eigenvector of L by 1 - mu R eta lambda: repeated, it converges to
        consensus if mu R eta rho < 2, and diverges beyond that.
        """
        scale = rate * steps * self.largest
        return MixingLimit(scale * coupling, 2 / scale if scale > 0 else np.inf)

    @cached_property
    def components(self) -> tuple[Int[np.ndarray, "_"], ...]:
        """The connected components as arrays of client numbers, the largest first; a hub connects its clients."""
        from scipy.sparse.csgraph import connected_components  # here: it loads slowly, and most runs have no graph

        label = connected_components(self.adjacency(), directed=False)[1][: self.num_clients]
        order = np.argsort(label, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(label))[:-1])
        return tuple(sorted(parts, key=lambda part: (-len(part), part[0])))

    def disconnected(self, names: Sequence[str] | None = None) -> str:
        """A message if the graph is disconnected, naming isolated clients; '' if it is connected."""
        parts = len(self.components)
        if parts == 1:
            return ""
        isolated = [int(part[0]) for part in self.components if len(part) == 1]
        names_shown = ", ".join(str(k) if names is None else f"'{names[k]}'" for k in isolated[:NAMED])
        more = f" and {len(isolated) - NAMED} more" if len(isolated) > NAMED else ""
        isolated_text = f"; without any neighbour: {names_shown}{more}" if isolated else ""
        return f"the graph has {parts} components, which learn nothing from each other{isolated_text}"
