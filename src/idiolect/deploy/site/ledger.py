"""What a hub has used of the studies that a site has approved: rounds, evaluations, and what it said first.

The file outlives jobs, processes and approvals, so no restart and no new version of a study gives a hub more rounds.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from idiolect.core.errors import StoreError, reason_of
from idiolect.core.rights import create_file, make_folder

FILE = "used.sqlite"
WAIT = 30.0
"""Seconds to wait for another process of this site."""
_TABLES = """
CREATE TABLE IF NOT EXISTS asked
    (study TEXT, run TEXT, task TEXT, request TEXT, PRIMARY KEY (study, run, task, request));
CREATE TABLE IF NOT EXISTS pinned
    (study TEXT, run TEXT, field TEXT, value TEXT, PRIMARY KEY (study, run, field));
"""


class Ledger:
    """A file in the site's folder; several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def asked(self, study: str, run: str, task: str, request: str, most: int) -> bool:
        """Note a request, durably, and return whether it is within the limit: at most `most` that differ.

        One that was noted before counts only once. Raises `StoreError` if the file cannot be used.
        """
        key = study, run, task
        with self._open() as base:
            base.execute("INSERT OR IGNORE INTO asked VALUES (?, ?, ?, ?)", (*key, request))
            (count,) = base.execute(
                "SELECT count(*) FROM asked WHERE study = ? AND run = ? AND task = ?", key
            ).fetchone()
            if count > most:
                base.rollback()
            return count <= most

    def pin(self, study: str, run: str, field: str, value: str) -> str:
        """Keep the first value of a field, durably, and return the one that is kept. Raises `StoreError`."""
        with self._open() as base:
            base.execute("INSERT OR IGNORE INTO pinned VALUES (?, ?, ?, ?)", (study, run, field, value))
            return self._value(base, study, run, field) or value

    def pinned(self, study: str, run: str, field: str) -> str | None:
        """The value that is kept of a field; None if there is none. Raises `StoreError`."""
        if not self.path.exists():
            return None
        with self._open() as base:
            return self._value(base, study, run, field)

    def counts(self, study: str, task: str) -> dict[str, int]:
        """Run -> requests that differ. Raises `StoreError`."""
        if not self.path.exists():
            return {}
        with self._open() as base:
            rows = base.execute(
                "SELECT run, count(*) FROM asked WHERE study = ? AND task = ? GROUP BY run", (study, task)
            )
            return {str(run): int(count) for run, count in rows}

    def unpin(self, study: str) -> None:
        """Forget the values that are kept of a study; the counts stay. Raises `StoreError`."""
        if self.path.exists():
            with self._open() as base:
                base.execute("DELETE FROM pinned WHERE study = ?", (study,))

    @staticmethod
    def _value(base: sqlite3.Connection, study: str, run: str, field: str) -> str | None:
        found = base.execute(
            "SELECT value FROM pinned WHERE study = ? AND run = ? AND field = ?", (study, run, field)
        ).fetchone()
        return None if found is None else str(found[0])

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """One transaction."""
        try:
            make_folder(self.path.parent)
            create_file(self.path)
            with closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as base:
                base.executescript(_TABLES)
                base.execute("BEGIN IMMEDIATE")
                yield base
                if base.in_transaction:
                    base.commit()
        except sqlite3.Error as error:
            raise StoreError(
                f"cannot use {self.path} ({error}), so nothing is sent: restore it from a backup, or remove it: then "
                "the rounds so far no longer count"
            ) from None
        except OSError as error:
            raise StoreError(
                f"cannot use {self.path}, so nothing is sent ({reason_of(error)}): mend the disk or its rights"
            ) from None
