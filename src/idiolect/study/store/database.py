"""The SQLite file of a folder of runs."""

import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError, reason_of
from idiolect.core.rights import create_file


class Database:
    """One SQLite file, open until `close`.

    After `close` each statement opens the file and closes it again, so that reading the results of a finished run
    leaves no file open. Raises `StoreError`, in one line, for errors of SQLite and of the file system.

    schema: the tables. create: make them; else the file must exist, and it is read-only if its folder is not
    writable. version: of the tables; a file of another version, or with other columns, is refused.
    """

    def __init__(self, file: Path, schema: str, version: int = 1, *, create: bool = True) -> None:
        self.file, self._version, self._create = file, version, create
        self._readonly = not create and not os.access(file.parent, os.W_OK)
        self._image: bytes | None = None
        self._open: sqlite3.Connection | None = None
        with self.guard():
            self._open = self._connected()
            try:
                if create and not self._open.execute("SELECT 1 FROM sqlite_master").fetchone():
                    self._open.executescript(f"BEGIN IMMEDIATE; {schema}; PRAGMA user_version = {version}; COMMIT;")
                self._check_columns(self._open, schema)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def to_memory(self) -> None:
        """Load the whole database into memory and close the file, which may then be deleted."""
        with self.guard(), self._connection() as db:
            copy = sqlite3.connect(":memory:")
            try:
                db.backup(copy)
                image = bytearray(copy.serialize())
            finally:
                copy.close()
        image[18:20] = b"\1\1"  # no write-ahead log, which memory does not have (sqlite.org/c3ref/deserialize.html)
        self.close()
        self._image = bytes(image)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run one statement and return all its rows."""
        with self.guard(), self._connection() as db:
            return db.execute(statement, values).fetchall()

    def fault(self) -> str:
        """What SQLite finds wrong with the file, in one line; empty for nothing."""
        (found,) = self.execute("PRAGMA quick_check(1)")[0]
        return "" if found == "ok" else " ".join(str(found).split())[:200]

    def compact(self) -> None:
        """Write the file and its log anew, so that nothing that was deleted is left in them."""
        with self.guard(), self._connection() as db:
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Commit the block's writes when it ends; roll all of them back if it raises."""
        with self.guard(), self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.rollback()
                raise
            db.execute("COMMIT")

    @contextmanager
    def guard(self) -> Generator[None]:
        """Turn errors of SQLite and of the file system into a `StoreError` of one line."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"cannot use {self.file}: {error}") from error
        except OSError as error:
            raise StoreError(f"cannot write to '{self.file.parent}': {reason_of(error)}") from error

    @contextmanager
    def reading(self) -> Generator[None]:
        """Turn the errors of a value that cannot be read into a `StoreError` of one line."""
        try:
            yield
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"{self.file} is damaged: {reason[:200]}; restore it, or use another folder") from error

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        if self._open is not None:
            yield self._open
            return
        db = self._connected()
        try:
            yield db
        finally:
            db.close()

    def _connected(self) -> sqlite3.Connection:
        if self._image is not None:
            db = sqlite3.connect(":memory:", isolation_level=None)
            db.deserialize(self._image)
            return db
        if self._readonly:  # results in a folder that this user cannot write to
            db = sqlite3.connect(f"{self.file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        else:
            if self._create:
                create_file(self.file, shared=True)  # its log of writes gets the same rights
            db = sqlite3.connect(self.file, timeout=60, isolation_level=None)
        try:
            self._check_version(db)
            if not self._readonly:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = FULL")
        except BaseException:
            db.close()
            raise
        return db

    def _check_version(self, db: sqlite3.Connection) -> None:
        """Raise `StoreError` for a file of another version or program, before anything is written to it."""
        if not db.execute("SELECT 1 FROM sqlite_master").fetchone() and self._create:
            return  # a new file
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != self._version:
            whose = f"of another version of idiolect ({version})" if version else "not of idiolect"
            raise StoreError(f"the runs in '{self.file.parent}' are {whose}; use another folder")

    def _check_columns(self, db: sqlite3.Connection, schema: str) -> None:
        """Raise `StoreError` if a table has other columns than this version's."""
        own = sqlite3.connect(":memory:")
        try:
            own.executescript(schema)
            for (table,) in own.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                expected, found = ([row[1] for row in d.execute(f"PRAGMA table_info({table})")] for d in (own, db))
                if differing := {*expected} ^ {*found}:
                    raise StoreError(
                        f"{self.file} is of another version of idiolect, or damaged: its table '{table}' differs in "
                        f"{', '.join(sorted(differing))}; use another folder"
                    )
        finally:
            own.close()
