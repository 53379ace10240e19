"""The study: one file with all that a hub will ask of its sites, which a site's administrator approves by its hash.

A hub's administrator hands `study.json` to the sites. A site compares every call with it, see `site.approvals`. This
module imports no JAX, because the process that talks to the network reads studies.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from idiolect.core.errors import ConfigError, first_of, reason_of
from idiolect.core.files import json_of, write_text
from idiolect.deploy.messages import digest_of_values, text_of
from idiolect.deploy.terms import STUDY_ID, Terms

FILE = "study.json"
LARGEST = 20_000_000
"""Bytes of a study's file; a larger one is not read."""
ASKED = ("client", "label", "split", "categorical", "ignore", "keep", "task")
"""What a hub may ask of how the sites' tables are read; each site's own names of columns go first."""
SHOWN = 80
"""Characters of a value in a message."""


class Strict(BaseModel):
    """Values that nobody changes, and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Part(Strict):
    """A vector of a message: its name, the type of its numbers, and its shape; None until a schema is agreed on."""

    name: str
    type: str
    shape: tuple[int, ...] | None

    @property
    def bytes(self) -> int | None:
        """The bytes of its numbers; None if the shape is not known yet."""
        if self.shape is None:
            return None
        return int(np.dtype(self.type).itemsize * np.prod(self.shape, dtype=np.int64))


class Traffic(Strict):
    """What a site receives and sends in a round. to: who receives what it sends."""

    receives: tuple[Part, ...]
    sends: tuple[Part, ...]
    to: Literal["hub", "neighbours"] = "hub"


def bytes_of(parts: tuple[Part, ...]) -> int | None:
    """The bytes of these vectors; None if a shape is not known yet."""
    sizes = [part.bytes for part in parts]
    return None if None in sizes else sum(size for size in sizes if size is not None)


class PlannedRun(Strict):
    """One run, as `terms.Terms` says it, without the kind of the data.

    method, model: complete specifications. metric: task -> metrics, since the task may have to be agreed on.
    evaluations: planned in this run. neighbours: of a method without a server, site -> neighbour -> weight of the
    edge; None for a method that the hub aggregates.
    """

    run: str = Field(min_length=1)
    method: dict[str, Any]
    model: dict[str, Any]
    seed: int = Field(ge=0)
    rounds: int = Field(ge=1)
    cohort: float | None = Field(default=None, gt=0)
    sampling: Literal["fixed", "binomial"] = "fixed"
    metric: dict[str, str]
    splits: tuple[Literal["train", "validation", "test"], ...]
    evaluations: int = Field(ge=0)
    neighbours: dict[str, dict[str, float]] | None = None

    @property
    def group(self) -> str:
        """Cell and method: the key of its messages in `Study.travels`."""
        return group_of(self.run)

    def values(self, kind: Mapping[str, Any]) -> dict[str, Any]:
        """The terms' values, of data of this kind, without the study's id and digest."""
        chosen = {name: getattr(self, name) for name in Terms.model_fields if name in PlannedRun.model_fields}
        return {**chosen, "metric": self.metric.get(str(kind.get("task")), ""), "kind": dict(kind)}


def group_of(run: str) -> str:
    """Cell and method of a run's id, which ends with its seed."""
    return run.rpartition("/")[0]


class Study(Strict):
    """All that a hub will ask of its sites.

    id: drawn once, when the hub's folder is made. sites: in the order of their client numbers; left: those that have
    left for good; late: those that were added after the start. smallest_cohort: the fewest sites of a round. rounds,
    evaluations: the most of any run. starts: run -> how often it was started again, to forget a site. again: how
    often, in each run, a round or an evaluation may be asked again with other numbers than before. kind: what the
    data are, see `deploy.kind`; None if the sites agree on a schema, by `table`: how they read their tables. runs:
    all that may be trained; travels: cell and method -> its messages.
    """

    version: Literal[1] = 1
    id: str = Field(pattern=STUDY_ID)
    experiment: dict[str, Any]
    sites: tuple[str, ...] = Field(min_length=1)
    left: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    smallest_cohort: int = Field(ge=1)
    rounds: int = Field(ge=1)
    evaluations: int = Field(ge=0)
    starts: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict[str, int])
    again: int = Field(ge=0)
    kind: dict[str, Any] | None
    table: dict[str, Any]
    runs: tuple[PlannedRun, ...] = Field(min_length=1)
    travels: dict[str, Traffic]

    @model_validator(mode="after")
    def _check(self) -> "Study":
        """The summary at the top must be that of the runs: an administrator reads it, and a site obeys the runs."""
        for what, values in (("sites", self.sites), ("runs", tuple(run.run for run in self.runs))):
            twice = [value for value in values if values.count(value) > 1]
            if twice:
                raise ValueError(f"{what}: '{shown(twice[0])}' is named twice")
        for what, names in (("left", self.left), ("late", self.late)):
            strangers = [name for name in names if name not in self.sites]
            if strangers:
                raise ValueError(f"{what}: '{shown(strangers[0])}' is none of the study's sites")
        for what, planned in (("rounds", self.rounds), ("evaluations", self.evaluations)):
            most = max(getattr(run, what) for run in self.runs)
            if planned != most:
                raise ValueError(f"{what}: {planned}, but a run has {most}")
        for run in self.runs:
            if run.sampling == "fixed" and self.smallest_cohort > (run.cohort or len(self.sites)):
                raise ValueError(
                    f"smallest_cohort: {self.smallest_cohort}, but run '{shown(run.run)}' has a smaller one"
                )
            if run.group not in self.travels:
                raise ValueError(f"travels: the messages of '{shown(run.group)}' are missing")
            near = {name for site, weights in (run.neighbours or {}).items() for name in (site, *weights)}
            if strange := near - {*self.sites}:
                raise ValueError(f"run '{shown(run.run)}': '{shown(min(strange))}' is none of the study's sites")
        return self

    @property
    def present(self) -> tuple[str, ...]:
        """The sites that have not left."""
        return tuple(site for site in self.sites if site not in self.left)

    @cached_property
    def digest(self) -> str:
        """A sha256 of all of it: equal exactly when two studies are."""
        return digest_of_values(self.model_dump(mode="json"))

    def planned(self, run: str) -> PlannedRun | None:
        """The run with this id; None if the study has none."""
        return next((planned for planned in self.runs if planned.run == run), None)

    def terms(self, run: str, kind: Mapping[str, Any]) -> Terms:
        """A run's terms, for data of this kind. Raises `ConfigError` if the study has no such run."""
        planned = self.planned(run)
        if planned is None:
            raise ConfigError(f"study {self.id} has no run '{run}'")
        return Terms(**planned.values(kind), study=self.id, approved=self.digest)

    def save(self, path: Path) -> None:
        """Write the file. Raises `StoreError` if it cannot be written."""
        write_text(path, json.dumps(self.model_dump(mode="json"), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Study":
        """Read a file. Raises `ConfigError` in one line if it is missing, damaged, or of another version."""
        return cls.of_json(content_of(path), str(path))

    @classmethod
    def of_json(cls, content: bytes, where: str) -> "Study":
        """The study of a file's content. Raises `ConfigError` as `load` does."""
        try:
            values = json_of(content)
            if not isinstance(values, dict) or values.get("version", 1) == 1:
                return cls.model_validate(values)
            reason = f"it is of version {values['version']}, and this idiolect reads version 1"
        except ValidationError as error:
            reason = first_of(error)
        except ValueError as error:
            reason = f"it is not JSON ({error})"
        raise ConfigError(f"{where} is no study: {shown(reason, 200)}; ask the hub for it again")


def content_of(path: Path) -> bytes:
    """The bytes of a study's file. Raises `ConfigError` in one line if it is missing, unreadable, or too large."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise ConfigError(f"no such file: {path}; 'idiolect hub init' writes a study's file, {FILE}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {reason_of(error)}") from None
    if len(content) > LARGEST:
        raise ConfigError(f"{path} has more than {LARGEST:,} bytes: it is no study's file")
    return content


def new_id(name: str) -> str:
    """A new study's id: the experiment's name, as far as a folder can have it, and eight random hex digits."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:40] or "study"
    return f"{stem}-{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Difference:
    """A field whose values differ, with both values as short texts."""

    field: str
    approved: str
    asked: str

    def __str__(self) -> str:
        return f"{self.field}: approved {self.approved}, asked {self.asked}"


_ABSENT = object()


def differences(approved: Any, asked: Any, field: str = "") -> Iterator[Difference]:
    """Every place where two JSON values differ. True and 1, and 1 and 1.0, are different values."""
    if isinstance(approved, Mapping) and isinstance(asked, Mapping):
        for key in [*approved, *(key for key in asked if key not in approved)]:
            name = f"{field}.{shown(key)}" if field else shown(key)
            yield from differences(approved.get(key, _ABSENT), asked.get(key, _ABSENT), name)
    elif isinstance(approved, list | tuple) and isinstance(asked, list | tuple) and len(approved) == len(asked):
        for place, pair in enumerate(zip(approved, asked, strict=True)):
            yield from differences(*pair, f"{field}.{place}")
    elif approved is _ABSENT or asked is _ABSENT or text_of(approved) != text_of(asked):
        yield Difference(field, _value(approved), _value(asked))


def _value(value: Any) -> str:
    return "nothing" if value is _ABSENT else shown(json.dumps(value, ensure_ascii=False))


def shown(value: Any, most: int = SHOWN) -> str:
    """Another party's value as text for a terminal or a log: short, in one line, and without control characters."""
    text = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in str(value)[: most + 1])
    return text if len(text) <= most else f"{text[: most - 3]}..."
