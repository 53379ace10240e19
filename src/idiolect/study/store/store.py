"""The run store: a folder with a SQLite file and a checkpoint for each run.

A run's evaluation is committed to SQLite first, and its checkpoint is replaced after that. On resume, evaluations
after the checkpoint are deleted and computed again, to identical numbers. So `kill -9` is safe at any instant.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.core.errors import StoreError, os_errors_as
from idiolect.core.files import file_name
from idiolect.core.rights import make_folder
from idiolect.metrics.registry import METRICS
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.store.database import Database
from idiolect.study.store.summary import summarise

DATABASE = "idiolect.sqlite"
VERSION = 2  # of the tables
MOVED = "data.path"
"""The setting that may change: it says where a table is, not which. The hash of the data decides that."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, cell TEXT NOT NULL, label TEXT NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL,
    config TEXT NOT NULL, config_hash TEXT NOT NULL, data_hash TEXT NOT NULL, provenance TEXT NOT NULL,
    status TEXT NOT NULL, round INTEGER NOT NULL, seconds REAL NOT NULL, compile_seconds REAL NOT NULL,
    message TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS evaluations (
    run TEXT NOT NULL REFERENCES runs (id), round INTEGER NOT NULL, model TEXT NOT NULL, split TEXT NOT NULL,
    clients INTEGER NOT NULL, samples INTEGER NOT NULL, loss REAL,
    count_by_client BLOB NOT NULL, loss_by_client BLOB NOT NULL,
    PRIMARY KEY (run, round, model, split)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metrics (
    run TEXT NOT NULL REFERENCES runs (id), round INTEGER NOT NULL, model TEXT NOT NULL, split TEXT NOT NULL,
    place INTEGER NOT NULL, metric TEXT NOT NULL, pooled REAL, mean REAL, worst10 REAL, by_client BLOB NOT NULL,
    PRIMARY KEY (run, round, model, split, metric)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS diagnostics (
    run TEXT NOT NULL REFERENCES runs (id), round INTEGER NOT NULL, name TEXT NOT NULL, value REAL,
    PRIMARY KEY (run, round, name)
) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class RunRow:
    """The store's row of one run. status: running, done or diverged. seconds: training, without compilation."""

    id: str
    cell: str
    label: str
    method: str
    seed: int
    config: dict[str, Any]
    config_hash: str
    data_hash: str
    provenance: dict[str, Any]
    status: str
    round: int
    seconds: float
    compile_seconds: float
    message: str


class Store:
    """A folder of runs. Several processes may write to it at once."""

    def __init__(self, folder: str | Path, *, create: bool = True) -> None:
        self.folder = Path(folder)
        file = self.folder / DATABASE
        if not create and not file.is_file():
            raise StoreError(f"no runs in '{self.folder}': it has no {DATABASE}")
        if create:
            self._make(self.folder, shared=True)
        self._db = Database(file, _SCHEMA, VERSION, create=create)
        self.fault = self._db.fault
        if create:
            self._make(self.folder / "checkpoints")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _make(self, folder: Path, shared: bool = False) -> None:
        with os_errors_as(f"cannot write to '{self.folder}'"):
            make_folder(folder, shared=shared)

    def close(self) -> None:
        """Close the database; a later read opens it only for that statement."""
        self._db.close()

    def to_memory(self) -> None:
        """Load the database into memory and close it; the folder may then be deleted."""
        self._db.to_memory()

    def fact(self, key: str) -> Any:
        """Look up a JSON value of the folder; None if there is none."""
        rows = self._db.execute("SELECT value FROM facts WHERE key = ?", (key,))
        with self._db.reading():
            return json.loads(rows[0][0]) if rows else None

    def set_fact(self, key: str, value: Any) -> None:
        """Store a JSON value of the folder."""
        with self._db.transaction() as db:
            db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, json.dumps(value)))

    def checkpoint_path(self, run_id: str) -> Path:
        """The path of a run's checkpoint."""
        name = run_id if "__" in run_id else run_id.replace("/", "__")
        return self.folder / "checkpoints" / f"{file_name(name)}.eqx"

    def models_folder(self, run: RunRow) -> Path:
        """The folder of a run's client models."""
        return self.folder / "models" / file_name(run.cell) / file_name(run.label) / f"seed{run.seed}"

    def runs(self) -> list[RunRow]:
        """All runs, in the order in which they were started."""
        rows = self._db.execute("SELECT * FROM runs ORDER BY rowid")
        with self._db.reading():
            return [_run_row(row) for row in rows]

    def run(self, run_id: str) -> RunRow | None:
        """Look up one run; None if there is none."""
        rows = self._db.execute("SELECT * FROM runs WHERE id = ?", (run_id,))
        with self._db.reading():
            return _run_row(rows[0]) if rows else None

    def check(self, run: RunRow) -> RunRow | None:
        """Look up the stored run with this run's id; None if there is none.

        Raises `StoreError` if it has another configuration or other data.
        """
        old = self.run(run.id)
        if old is None:
            return None
        changed = changes(old.config, run.config)
        if old.config_hash != run.config_hash and changed != [MOVED]:
            changed = ", ".join(changed) or "a default"
            raise StoreError(
                f"'{self.folder}' holds run {run.id} with another configuration (changed: {changed}); "
                "use another --out, or set it back"
            )
        if old.data_hash != run.data_hash:
            raise StoreError(
                f"the data of run {run.id} in '{self.folder}' have changed since it was started "
                f"(sha256 {old.data_hash[:12]}.. then, {run.data_hash[:12]}.. now); restore them or use another --out"
            )
        return old

    def start(self, run: RunRow) -> RunRow:
        """Register a new run, or return the stored one; raises as `check` does."""
        old = self.check(run)
        if old is not None:
            return old
        values = (
            *(run.id, run.cell, run.label, run.method, run.seed, json.dumps(run.config), run.config_hash),
            *(run.data_hash, json.dumps(run.provenance), run.status, 0, 0.0, 0.0, ""),
        )
        with self._db.transaction() as db:
            db.execute(f"INSERT INTO runs VALUES ({','.join('?' * len(values))})", values)
        return run

    def rewind(self, run_id: str, round: int) -> None:
        """Delete the evaluations after `round`, the checkpoint's (-1: no checkpoint), and mark the run as running."""
        with self._db.transaction() as db:
            for table in ("evaluations", "metrics", "diagnostics"):
                db.execute(f"DELETE FROM {table} WHERE run = ? AND round > ?", (run_id, round))
            db.execute(
                "UPDATE runs SET status = 'running', round = ?, message = '' WHERE id = ?", (max(round, 0), run_id)
            )

    def erase(self, run_id: str, round: int, facts: Sequence[str] = ()) -> None:
        """As `rewind`, and delete the names of the run's clients and these facts.

        What is deleted cannot be read in the files any more, either.
        """
        self.rewind(run_id, round)
        self.name_clients(run_id, ())
        with self._db.transaction() as db:
            for key in facts:
                db.execute("DELETE FROM facts WHERE key = ?", (key,))
        self._db.compact()

    def name_clients(self, run_id: str, clients: Sequence[str]) -> None:
        """Note the names of a run's clients, in the order of its scores: of real sites they are known only later."""
        query = "UPDATE runs SET provenance = json_set(provenance, '$.clients', json(?)) WHERE id = ?"
        with self._db.transaction() as db:
            db.execute(query, (json.dumps([*clients]), run_id))

    def evaluated(self, run_id: str) -> list[int]:
        """The evaluated rounds, ascending."""
        query = "SELECT DISTINCT round FROM evaluations WHERE run = ? ORDER BY round"
        return [round for (round,) in self._db.execute(query, (run_id,))]

    def evaluated_splits(self, run_id: str, round: int) -> list[str]:
        """The splits that were evaluated in a round."""
        query = "SELECT DISTINCT split FROM evaluations WHERE run = ? AND round = ?"
        return [split for (split,) in self._db.execute(query, (run_id, round))]

    def record(
        self,
        run_id: str,
        round: int,
        results: Sequence[ClientScores],
        *,
        seconds: float,
        compile_seconds: float,
        diagnostics: Mapping[str, float] | None = None,
    ) -> None:
        """Commit one evaluated round: each metric's value of every client and its summary, and the diagnostics."""
        rows: list[tuple[Any, ...]] = []
        values: list[tuple[Any, ...]] = []
        for s in results:
            key, nonempty = (run_id, round, s.model, s.split), s.count > 0
            loss = float(np.average(s.loss[nonempty], weights=s.count[nonempty])) if nonempty.any() else math.nan
            blobs = (s.count.astype("<i8").tobytes(), s.loss.astype("<f8").tobytes())
            rows.append((*key, int(nonempty.sum()), int(s.count.sum()), loss, *blobs))
            for place, name in enumerate(s.values):
                summary, by_client = summarise(s, METRICS[name]), s.values[name].astype("<f8").tobytes()
                values.append((*key, place, name, summary.pooled, summary.mean, summary.worst10, by_client))
        with self._db.transaction() as db:
            db.executemany(f"INSERT OR REPLACE INTO evaluations VALUES ({','.join('?' * 9)})", rows)
            db.executemany(f"INSERT OR REPLACE INTO metrics VALUES ({','.join('?' * 10)})", values)
            reported = [(run_id, round, name, value) for name, value in (diagnostics or {}).items()]
            db.executemany("INSERT OR REPLACE INTO diagnostics VALUES (?, ?, ?, ?)", reported)  # NaN becomes NULL
            db.execute(
                "UPDATE runs SET round = ?, seconds = ?, compile_seconds = ? WHERE id = ?",
                (round, seconds, compile_seconds, run_id),
            )

    def finish(self, run_id: str, status: str, message: str = "") -> None:
        """Mark a run done or diverged."""
        with self._db.transaction() as db:
            db.execute("UPDATE runs SET status = ?, message = ? WHERE id = ?", (status, message, run_id))

    def select(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a statement that only reads."""
        return self._db.execute(statement, values)

    def curve(self, run_id: str, model: str, split: str, metric: str) -> list[tuple[int, float, float]]:
        """(round, value over all samples, loss) of every evaluated round; NaN for a missing value."""
        rows = self._db.execute(
            "SELECT round, pooled, loss FROM metrics JOIN evaluations USING (run, round, model, split) "
            "WHERE run = ? AND model = ? AND split = ? AND metric = ? ORDER BY round",
            (run_id, model, split, metric),
        )
        with self._db.reading():
            return [(int(round), _number(pooled), _number(loss)) for round, pooled, loss in rows]

    def losses(self, run_id: str, split: str) -> dict[str, list[float]]:
        """Each named model's loss over all samples of a split, at every evaluated round, in order."""
        rows = self._db.execute(
            "SELECT model, loss FROM evaluations WHERE run = ? AND split = ? ORDER BY model, round", (run_id, split)
        )
        courses: dict[str, list[float]] = {}
        with self._db.reading():
            for model, loss in rows:
                courses.setdefault(str(model), []).append(_number(loss))
        return courses

    def diagnostics(self, run_id: str) -> dict[str, list[tuple[int, float]]]:
        """The method's diagnostics: name -> (round, value) of every evaluated round; NaN for a missing value."""
        by_name: dict[str, list[tuple[int, float]]] = {}
        query = "SELECT name, round, value FROM diagnostics WHERE run = ? ORDER BY name, round"
        with self._db.reading():
            for name, round, value in self._db.execute(query, (run_id,)):
                by_name.setdefault(name, []).append((int(round), _number(value)))
        return by_name

    def models(self, run_id: str) -> list[str]:
        """The named models that were evaluated in a run."""
        return [
            name for (name,) in self._db.execute("SELECT DISTINCT model FROM evaluations WHERE run = ?", (run_id,))
        ]

    def scores(self, run_id: str, round: int, model: str, split: str) -> ClientScores | None:
        """Every client's scores in one evaluated round, or None."""
        where, key = "WHERE run = ? AND round = ? AND model = ? AND split = ?", (run_id, round, model, split)
        rows = self._db.execute(f"SELECT count_by_client, loss_by_client FROM evaluations {where}", key)
        if not rows:
            return None
        measured = self._db.execute(f"SELECT metric, pooled, by_client FROM metrics {where} ORDER BY place", key)
        with self._db.reading():
            count, loss = (np.frombuffer(blob, kind) for blob, kind in zip(rows[0], ("<i8", "<f8"), strict=True))
            values = {name: np.frombuffer(blob, "<f8") for name, _, blob in measured}
            if {len(column) for column in (loss, *values.values())} != {len(count)}:
                raise ValueError(f"{run_id}, round {round}: not a score for every client")
            pooled = {name: _number(value) for name, value, _ in measured}
            return ClientScores(model, split, count, loss, values, pooled)


def _number(value: float | None) -> float:
    """Read a number from SQLite, which stores NaN as NULL."""
    return math.nan if value is None else float(value)


def _run_row(row: Sequence[Any]) -> RunRow:
    values = list(row)
    values[5], values[8] = json.loads(values[5]), json.loads(values[8])
    for field, value in zip(fields(RunRow), values, strict=True):
        kind = {"str": str, "int": int, "float": (int, float)}.get(str(getattr(field.type, "__name__", "")), dict)
        if not isinstance(value, kind):
            raise ValueError(f"{field.name} of a run is {value!r}"[:100])
    return RunRow(*values)


def changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """List the dotted keys whose values differ."""
    keys: list[str] = []
    for key in sorted({*old, *new}):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            keys += changes(a, b, f"{prefix}{key}.")
        elif a != b:
            keys.append(f"{prefix}{key}")
    return keys
