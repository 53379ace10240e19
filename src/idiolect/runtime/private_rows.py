"""The clients' private states in a file: a round reads and writes only the cohort's rows.

Rows are appended to the file, also those that were written before; an index in memory has the place of each client's
last row, and initial states are computed on demand. So a new row costs as much as an old one, whatever the number of
clients. A checkpoint is appended, too, and everything before it is then on the disk: after a kill at any instant the
file holds the last checkpoint and the rows of the same round. When more than half of the file are rows that have been
written anew, it is written again without them.
"""

import math
import os
import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Int, PyTree, UInt8

from idiolect.core.errors import StoreError, os_errors_as
from idiolect.core.files import sync_folder
from idiolect.core.rights import create_file, make_folder

_MAGIC = b"IDIROWS1"
_HEAD = struct.Struct("<8sQ")  # of the file: what it is, bytes of a row
_RECORD = struct.Struct("<4sIQ")  # of a record: its kind, a check of what follows, clients or bytes
_ROWS, _DONE = b"rows", b"done"
_SLACK = 2**26  # bytes that a file may have in any case before it is written again
_AT_ONCE = 4096  # rows of a record of a file that is written again


class PrivateRows:
    """A table of private states, one row per client. fresh: client numbers (n,) -> initial states, leaves (n, ...).

    Raises `StoreError` if the file cannot be read or written, or holds rows of another size.
    """

    def __init__(self, path: Path, fresh: Callable[[Int[np.ndarray, "n"]], PyTree]) -> None:
        self.path, self._fresh = path, fresh
        row_shapes = jax.eval_shape(fresh, np.zeros(1, np.int32))
        self._leaves, self._structure = jax.tree.flatten(row_shapes)
        self._width = sum(leaf.dtype.itemsize * math.prod(leaf.shape[1:]) for leaf in self._leaves)
        with self._guard():
            make_folder(path.parent)
            create_file(path)
            self._file = os.open(path, os.O_RDWR)
            self._load()

    def _guard(self) -> AbstractContextManager[None]:
        return os_errors_as(f"cannot use {self.path} for the clients' private states")

    def read(self, clients: Int[np.ndarray, "n"]) -> PyTree:
        """The private states of some clients, leaves (n, ...)."""
        if not self._leaves:
            return self._from_bytes(np.zeros((len(clients), 0), np.uint8))
        self._check_width()
        places = self._places(clients)
        if (places >= 0).all():
            table = np.empty((len(places), self._width), np.uint8)
        else:
            table = self._to_bytes(self._fresh(np.asarray(clients, np.int32)))
        with self._guard():
            for row in np.flatnonzero(places >= 0).tolist():
                if os.preadv(self._file, [table[row].data], int(places[row])) != self._width:
                    raise OSError(f"it ends before a row of client {clients[row]}")
        return self._from_bytes(table)

    def write(self, clients: Int[np.ndarray, "n"], rows: PyTree) -> None:
        """Write the private states of some clients; durable after `commit`."""
        if not self._leaves:
            return
        self._check_width()
        numbers = np.ascontiguousarray(clients, np.int64)
        with self._guard():
            place = self._append_rows(numbers, self._to_bytes(rows))
        self._undo.append((numbers, self._places(numbers)))
        self._put(numbers, place)

    def commit(self, checkpoint: bytes) -> None:
        """Commit all writes since the last commit together with a checkpoint, atomically."""
        with self._guard():
            self._append_checkpoint(checkpoint)
            if self._end > 2 * int((self._index >= 0).sum()) * self._width + _SLACK:
                self._write_again()

    def restore(self) -> bytes | None:
        """Roll back to the last commit and return its checkpoint; None if there is none."""
        for numbers, places in reversed(self._undo):
            self._index[numbers] = places
        self._undo = []
        with self._guard():
            os.ftruncate(self._file, self._committed)
        self._end = self._committed
        return self._checkpoint

    def clear(self) -> None:
        """Delete and commit: all clients have their initial states again."""
        with self._guard():
            os.ftruncate(self._file, 0)
            self._load()

    def close(self) -> None:
        """Close the file; uncommitted writes are lost."""
        with suppress(OSError):
            os.close(self._file)

    # The file

    def _load(self) -> None:
        """Read the places of all committed rows; what follows the last commit does not count."""
        self._index, self._checkpoint = np.full(0, -1, np.int64), None
        self._undo: list[tuple[Int[np.ndarray, "n"], Int[np.ndarray, "n"]]] = []
        size, self._end, self._held = os.fstat(self._file).st_size, 0, self._width
        if size < _HEAD.size:  # new, or killed at its beginning
            self._append([_HEAD.pack(_MAGIC, self._width)])
            os.fsync(self._file)
        else:
            magic, self._held = _HEAD.unpack(os.pread(self._file, _HEAD.size, 0))
            if magic != _MAGIC:
                raise OSError("it is a file of another kind, or of an older version; delete it to start again")
        self._committed = place = _HEAD.size
        waiting = list[tuple[Int[np.ndarray, "n"], int]]()
        while place + _RECORD.size <= size:
            kind, check, count = _RECORD.unpack(os.pread(self._file, _RECORD.size, place))
            place += _RECORD.size
            length = count * (8 if kind == _ROWS else 1)
            content = os.pread(self._file, length, place) if place + length <= size else b""
            if kind not in (_ROWS, _DONE) or zlib.crc32(content) != check:
                break
            place += len(content)
            if kind == _ROWS:
                waiting.append((np.frombuffer(content, np.int64), place))
                place += count * self._held
            else:
                for numbers, first in waiting:
                    self._put(numbers, first)
                self._checkpoint, self._committed, waiting = content, place, []
        self._end = self._committed

    def _append_rows(self, numbers: Int[np.ndarray, "n"], table: UInt8[np.ndarray, "n width"]) -> int:
        """Append rows and return the place of the first."""
        ids = numbers.tobytes()
        self._append([_RECORD.pack(_ROWS, zlib.crc32(ids), len(numbers)), ids, table.tobytes()])
        return self._end - table.size

    def _append_checkpoint(self, checkpoint: bytes) -> None:
        os.fsync(self._file)  # no checkpoint is on the disk before its rows are
        self._append([_RECORD.pack(_DONE, zlib.crc32(checkpoint), len(checkpoint)), checkpoint])
        os.fsync(self._file)
        self._checkpoint, self._committed, self._undo = checkpoint, self._end, []

    def _append(self, parts: Sequence[bytes]) -> None:
        """Append bytes; of a write that fails nothing counts."""
        content, done = memoryview(b"".join(parts)), 0
        while done < len(content):
            done += os.pwrite(self._file, content[done:], self._end + done)
        self._end += done

    def _write_again(self) -> None:
        """Write a file with each client's last row, in the order of the file, and put it in the place of this one."""
        new = self.path.with_name(f"{self.path.name}.new")
        new.unlink(missing_ok=True)
        create_file(new)
        old, index, checkpoint = self._file, self._index, self._checkpoint
        assert checkpoint is not None
        clients = np.flatnonzero(index >= 0)
        clients = clients[np.argsort(index[clients])]
        self._file = os.open(new, os.O_RDWR)
        try:
            self._load()
            for first in range(0, len(clients), _AT_ONCE):
                part = clients[first : first + _AT_ONCE]
                rows = [np.frombuffer(os.pread(old, self._width, int(index[client])), np.uint8) for client in part]
                self._put(part, self._append_rows(part, np.stack(rows)))
            self._append_checkpoint(checkpoint)
            os.replace(new, self.path)
        except BaseException:
            os.close(self._file)
            new.unlink(missing_ok=True)
            self._file = old
            self._load()
            raise
        os.close(old)
        sync_folder(self.path.parent)  # or a loss of power could bring the old file back

    # The index

    def _places(self, clients: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """Where each client's row is, -1 for those without one."""
        numbers = np.asarray(clients, np.int64)
        inside = numbers < len(self._index)
        return np.where(inside, self._index[np.where(inside, numbers, 0)] if len(self._index) else -1, -1)

    def _put(self, numbers: Int[np.ndarray, "n"], first: int) -> None:
        """Rows of these clients are in the file, one after the other."""
        most = int(numbers.max(initial=-1)) + 1
        if most > len(self._index):
            grown = np.full(max(most, 2 * len(self._index)), -1, np.int64)
            grown[: len(self._index)] = self._index
            self._index = grown
        self._index[numbers] = first + self._held * np.arange(len(numbers))

    def _check_width(self) -> None:
        if self._held != self._width:
            raise StoreError(f"{self.path} holds private states of another model; delete it to start this run again")

    def _to_bytes(self, rows: PyTree) -> np.ndarray:
        pairs = zip(jax.tree.leaves(rows), self._leaves, strict=True)
        leaves = [np.ascontiguousarray(leaf, like.dtype) for leaf, like in pairs]
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
