"""The private states of all clients in a file: a round reads and writes the cohort's, whatever the population.

A SQLite file holds one row for each client that was ever changed; what a client starts with is computed when it is
asked for. All that happens between two checkpoints is one transaction, and the checkpoint is part of it: after a kill
at any instant the file holds the last checkpoint with the rows of that very round.
"""

import math
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Int, PyTree

from idiolect.core.errors import StoreError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (client INTEGER PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS checkpoint (one INTEGER PRIMARY KEY CHECK (one = 1), content BLOB NOT NULL);
"""
_PAGE = 8192  # bytes: new rows of a few kilobytes take a third less time and a quarter less space than with 4096
_AT_ONCE = 500  # clients in one query: SQLite limits the parameters of a statement
_CACHE_KB = 65_536  # changed rows beyond this are spilled to the write-ahead log


class PrivateRows:
    """One row a client. fresh: client numbers (n,) -> what they start with, leaves (n, ...).

    Raises `StoreError` if the file cannot be read or written, or holds rows of another shape.
    """

    def __init__(self, path: Path, fresh: Callable[[Int[np.ndarray, "n"]], PyTree]) -> None:
        self.path, self._fresh = path, fresh
        one = jax.eval_shape(fresh, np.zeros(1, np.int32))
        self._leaves, self._structure = jax.tree.flatten(one)
        self._width = sum(leaf.dtype.itemsize * math.prod(leaf.shape[1:]) for leaf in self._leaves)
        with self._guard():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, isolation_level=None)
            self._file.execute(f"PRAGMA page_size = {_PAGE}")
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            self._file.executescript(_SCHEMA)
            self._file.execute("BEGIN")

    @contextmanager
    def _guard(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"cannot use {self.path} for the clients' private states: {error}") from error

    def read(self, clients: Int[np.ndarray, "n"]) -> PyTree:
        """The private states of some clients, leaves (n, ...)."""
        if not self._leaves:
            return self._from_bytes(np.zeros((len(clients), 0), np.uint8))
        found: dict[int, bytes] = {}
        wanted = [int(client) for client in clients]
        with self._guard():
            for first in range(0, len(wanted), _AT_ONCE):
                part = wanted[first : first + _AT_ONCE]
                query = f"SELECT client, value FROM rows WHERE client IN ({','.join('?' * len(part))})"
                found.update(self._file.execute(query, part))
        if any(len(value) != self._width for value in found.values()):
            raise StoreError(f"{self.path} holds private states of another model; delete it to start this run again")
        if found.keys() >= set(wanted):
            table = np.empty((len(wanted), self._width), np.uint8)
        else:
            table = self._to_bytes(self._fresh(np.asarray(clients, np.int32)))
        for row, client in enumerate(wanted):
            if client in found:
                table[row] = np.frombuffer(found[client], np.uint8)
        return self._from_bytes(table)

    def write(self, clients: Int[np.ndarray, "n"], rows: PyTree) -> None:
        """Keep the private states of some clients; they are there for good with the next `commit`."""
        if not self._leaves:
            return
        table = self._to_bytes(rows)
        values = [(int(client), row.tobytes()) for client, row in zip(clients, table, strict=True)]
        with self._guard():
            self._file.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", values)

    def commit(self, checkpoint: bytes) -> None:
        """Make all that was written since the last commit permanent, together with a checkpoint, or nothing of it."""
        with self._guard():
            self._file.execute("INSERT OR REPLACE INTO checkpoint VALUES (1, ?)", (checkpoint,))
            self._file.execute("COMMIT")
            self._file.execute("BEGIN")

    def restore(self) -> bytes | None:
        """Go back to the last commit, and return its checkpoint; None if there is none."""
        with self._guard():
            self._file.execute("ROLLBACK")
            self._file.execute("BEGIN")
            found = self._file.execute("SELECT content FROM checkpoint").fetchone()
        return found[0] if found else None

    def clear(self) -> None:
        """Forget everything: all clients are as they start."""
        with self._guard():
            for statement in ("DELETE FROM rows", "DELETE FROM checkpoint", "COMMIT", "BEGIN"):
                self._file.execute(statement)

    def close(self) -> None:
        """Let go of the file; what was not committed is lost."""
        with suppress(sqlite3.Error):
            self._file.close()

    def _to_bytes(self, rows: PyTree) -> np.ndarray:
        given = zip(jax.tree.leaves(rows), self._leaves, strict=True)
        leaves = [np.ascontiguousarray(leaf, like.dtype) for leaf, like in given]
        table = [leaf.reshape(len(leaf), -1).view(np.uint8) for leaf in leaves]
        return np.concatenate(table, axis=1)

    def _from_bytes(self, table: np.ndarray) -> PyTree:
        leaves: list[np.ndarray] = []
        begin = 0
        for leaf in self._leaves:
            end = begin + leaf.dtype.itemsize * math.prod(leaf.shape[1:])
            part = np.ascontiguousarray(table[:, begin:end]).view(leaf.dtype)
            leaves.append(part.reshape(len(table), *leaf.shape[1:]))
            begin = end
        return jax.tree.unflatten(self._structure, leaves)
