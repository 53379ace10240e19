"""What a tracker gets of a folder of runs: settings, tags, every measured number, and files."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from idiolect.study.spec.experiment import digest
from idiolect.study.store.store import MOVED, RunRow, Store

_MEASURED = (
    "SELECT round, model, split, metric, pooled, mean, worst10, loss FROM metrics "
    "JOIN evaluations USING (run, round, model, split) WHERE run = ? AND round >= ? ORDER BY round"
)
_REPORTED = "SELECT round, name, value FROM diagnostics WHERE run = ? AND round >= ? ORDER BY round"
SWEEP = "sweep.png"
REPORT = (
    *("report.md", "report.json", "table.csv", "clients.csv", "diagnostics.csv", "participation.jsonl"),
    *("sweep.csv", SWEEP, "chosen.toml"),
)
FIGURES = "figures"


@dataclass(frozen=True)
class Sent:
    """How far a tracker has a run. round: the last one; kinds: what it has of it, the first words of names.

    A sweep scores a run on test data later than on validation data, in the same round.
    """

    round: int = -1
    kinds: frozenset[str] = frozenset()

    def after(self, round: int, values: Iterable[str]) -> "Sent":
        """How far when these values, by name, have been taken."""
        kinds = frozenset(map(_kind, values))
        return Sent(round, self.kinds | kinds if round == self.round else kinds)

    def to_text(self) -> str:
        """As one line: "20 test,validation"."""
        return f"{self.round} {','.join(sorted(self.kinds))}"

    @classmethod
    def of_text(cls, line: str) -> "Sent":
        """What `to_text` made a line of. Raises `ValueError` for anything else."""
        round, _, kinds = line.partition(" ")
        return cls(int(round), frozenset(kinds.split(",")) - {""})


@dataclass(frozen=True)
class Record:
    """One run for a tracker. key: the same in every export of this run, and of no other one.

    params: settings by dotted name, as text; tags: what it is a run of, and with what software.
    """

    key: str
    row: RunRow
    experiment: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    models: Path


class Tracker(Protocol):
    """Takes records, again and again while the runs are at work; what it has already is not taken twice."""

    where: str
    """Where its user finds them, in one line."""

    def take(self, record: Record, measured: "Measured", final: bool) -> None:
        """Take what is new of a run. final: nothing more will come, so files are taken too."""
        ...

    def finish(self, folder: Path, experiment: str) -> None:
        """Take the report and its figures."""
        ...

    def close(self) -> None:
        """Write out what waits to be written."""
        ...


class Measured(Protocol):
    """Reads a run's numbers: (round, name -> value) of every evaluated round, ascending."""

    def __call__(self, after: Sent) -> Iterator[tuple[int, dict[str, float]]]:
        """What is not sent yet."""
        ...


def records(store: Store) -> list[Record]:
    """Every run of a store."""
    values = store.fact("experiment")
    name = str(values["name"]) if isinstance(values, dict) and "name" in values else store.folder.name
    return [record_of(store, row, name) for row in store.runs()]


def record_of(store: Store, row: RunRow, experiment: str) -> Record:
    """One run of a store."""
    known = row.provenance
    git = known.get("git") or {}
    tags = {
        "idiolect.experiment": experiment,
        "idiolect.cell": row.cell,
        "idiolect.method": row.label,
        "idiolect.seed": str(row.seed),
        "idiolect.data": row.data_hash,
        "idiolect.commit": str(git.get("commit", "")),
        "idiolect.version": str((known.get("packages") or {}).get("idiolect") or version("idiolect")),
        "idiolect.device": str(known.get("device", "")),
    }
    key = digest(row.id, row.config_hash, row.data_hash, str(known.get("time")), experiment)
    params = {name: text for name, text in flat(row.config).items() if name != MOVED}
    if MOVED in flat(row.config):  # a path of this machine is nobody else's business
        params[MOVED] = Path(flat(row.config)[MOVED]).name
    return Record(key, row, experiment, {**params, "seed": str(row.seed)}, tags, store.models_folder(row))


def measured_of(store: Store, run_id: str, after: Sent) -> Iterator[tuple[int, dict[str, float]]]:
    """(round, name -> value) of what is not sent yet; a value that is none is left out.

    Names: test/personal/accuracy over all samples, .../accuracy-mean and -worst10 over clients, .../loss, and
    method/NAME for what a method reports about itself.
    """
    found: dict[int, dict[str, float]] = {}
    for round, model, split, metric, pooled, mean, worst10, loss in store.select(_MEASURED, (run_id, after.round)):
        of = found.setdefault(int(round), {})
        values = {metric: pooled, f"{metric}-mean": mean, f"{metric}-worst10": worst10, "loss": loss}
        of.update({f"{split}/{model}/{name}": value for name, value in values.items() if _is_number(value)})
    for round, name, value in store.select(_REPORTED, (run_id, after.round)):
        if _is_number(value):
            found.setdefault(int(round), {})[f"method/{name}"] = value
    for round, values in sorted(found.items()):
        known = after.kinds if round == after.round else ()
        if new := {name: value for name, value in values.items() if _kind(name) not in known}:
            yield round, new


def pictures(folder: Path) -> list[Path]:
    """The figures of a folder's report."""
    return sorted((folder / FIGURES).glob("*.png")) + [path for path in (folder / SWEEP,) if path.is_file()]


def _kind(name: str) -> str:
    return name.partition("/")[0]


def _is_number(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings by dotted name, as text; what is not set is left out."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = str(value)
    return found
