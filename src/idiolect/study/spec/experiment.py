"""Experiments: what to run, with which settings and metrics, and the published values to compare with."""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import equinox as eqx
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from idiolect.algorithms import registry as methods
from idiolect.core.errors import ConfigError, in_words, shortened, unknown
from idiolect.core.files import toml_of
from idiolect.core.random import MOST_SEED
from idiolect.core.settings import MOST, Number, Whole
from idiolect.data.federated import FederatedData, TaskKind
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import measured, metric_of, names_in
from idiolect.models.registry import complete_spec
from idiolect.study.spec.published import LOSS, Gap, Published, Strict

ROUNDS = 200
"""Rounds of every method at most where rounds = "auto"."""
_ROUNDS_IN_FILES = WithJsonSchema(
    {"anyOf": [{"type": "integer", "minimum": 1}, {"enum": ["auto"], "type": "string"}]}
)
"""A cell holds a number, but a file may also have the word."""
OWN_MODEL = "own"
"""Stands in a cell for a module of the user's, which is no specification."""
Protocol = Literal["as-written", "as-published"]
Selection = Literal["last", "last-10", "best-validation", "best-test"]


class Method(BaseModel):
    """One method in a cell: its name, a label for tables, its hyper-parameters, its published values.

    name: see `idiolect list methods`; every other key is a setting of the method. label: its name in tables, which a
    method that a cell has twice needs. published: values to compare with, one table each. published_seconds:
    seconds per round on the paper's machine; only the ratios between methods are comparable.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    label: str = ""
    published: tuple[Published, ...] = ()
    published_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> "Method":
        algorithm = methods.build(self.spec)
        for value in self.published:
            if value.model not in algorithm.model_names and not methods.offers_more(type(algorithm)):
                raise unknown(f"model of {self.name}", value.model, algorithm.model_names)
        return self

    @property
    def spec(self) -> dict[str, Any]:
        """The specification that `algorithms.registry.build` takes."""
        return {"name": self.name, **(self.model_extra or {})}

    @property
    def title(self) -> str:
        """The label, or the name."""
        return self.label or self.name


class Cell(Strict):
    """One federation on which methods are compared: data, model, rounds, cohort, evaluation.

    id: its name in folders and for --only. title: above its table. note: what a reader of its numbers should know
    beforehand; it stands above the table. data: a name of `idiolect list data`, or a table with the name and its
    settings. model: a name of `idiolect list models`, or a table likewise. methods: a table each. rounds: of
    communication. stop: after the "last" round, or before it where the validation loss has "settled"; then rounds 1,
    2, 3, 4, 6, 9, ... are evaluated. With rounds = "auto" it is "settled", after at most 200 rounds, and select is
    "best-validation". rate: of every method that sets none: its own default ("method"), a number, or by the curvature
    measured on training rows ("auto"). cohort: clients per round (null: all). sampling: cohorts of a "fixed" size, or
    each client by a coin of its own ("binomial"). eval_every: rounds between evaluations. select: the round whose
    models the table shows; "last-10" is the mean over the last ten rounds, which are all evaluated; "best-test"
    exists only in the protocol as-published. splits: evaluated splits. shared_init: all seeds start from one initial
    model. tune: methods of the same name are settings of it, and validation data choose among them. eval_clients:
    evaluate only this many clients, drawn once, the same for all methods and seeds (null: all). new_splits: each seed
    also draws its own training and test samples (it is added to data.split_seed). private: hold the clients' private
    states in memory or, for very many clients, in a file. gaps: published differences to compare with, one table
    each. draw: named models in figures (all if empty). metric: used by selection, figures and `hurt`, by default
    accuracy or mse; further metrics, separated by commas, are only measured.
    """

    PRESENTATION: ClassVar[frozenset[str]] = frozenset({"id", "title", "note", "gaps", "tune", "draw", "private"})
    """Fields that never change the numbers, only how they are shown or held."""

    id: str
    title: str = ""
    note: str = ""
    data: dict[str, Any]
    model: dict[str, Any]
    rounds: Annotated[Whole, _ROUNDS_IN_FILES] = Field(default=100, ge=1, le=MOST)
    stop: Literal["last", "settled"] = "last"
    rate: Number | Literal["auto", "method"] = "method"
    cohort: Number | None = Field(default=None, gt=0)
    sampling: Literal["fixed", "binomial"] = "fixed"
    eval_every: Whole = Field(default=10, ge=1, le=MOST)
    splits: tuple[Literal["train", "validation", "test"], ...] = ("train", "test")
    select: Selection = "last"
    shared_init: bool = False
    new_splits: bool = False
    eval_clients: Whole | None = Field(default=None, ge=1)
    private: Literal["memory", "file"] = "memory"
    methods: tuple[Method, ...] = Field(min_length=1)
    gaps: tuple[Gap, ...] = ()
    tune: bool = False
    draw: tuple[str, ...] = ()
    metric: str = ""

    @property
    def automatic(self) -> bool:
        """Whether rounds or rates follow from the data, in a simulation only."""
        return self.stop != "last" or self.rate != "method"

    def recorded(self) -> dict[str, Any]:
        """The settings as a folder holds them; `stop` and `rate` only where they are not as before they existed."""
        values = self.model_dump(mode="json")
        return {
            key: value for key, value in values.items() if (key, value) not in (("stop", "last"), ("rate", "method"))
        }

    def method(self, title: str) -> Method:
        """The method with this title."""
        return next(method for method in self.methods if method.title == title)

    def value(self, setting: str) -> float:
        """Look up a number by its dotted name (`rounds`, `data.missing`). Raises `ConfigError` if it is no number."""
        nested = {f"{part}.{key}": v for part in ("data", "model") for key, v in getattr(self, part).items()}
        number = {"rounds": self.rounds, "cohort": self.cohort, **nested}.get(setting)
        if not isinstance(number, int | float) or isinstance(number, bool):
            message = f"across = '{setting}' must name a number that the cell sets, such as data.missing"
            raise ConfigError(f"cell '{self.id}': {message}")
        return float(number)

    @property
    def tail(self) -> int:
        """The number of last rounds that are all evaluated, whatever `eval_every` is."""
        return min(10, self.rounds) if self.select == "last-10" else 0

    @model_validator(mode="before")
    @classmethod
    def _named_model(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        if values.get("rounds") == "auto":
            values = {**values, "rounds": ROUNDS, "stop": "settled"}
            values.setdefault("select", "best-validation")
            values.setdefault("splits", ("train", "validation", "test"))
        named = {key: {"name": values[key]} for key in ("data", "model") if isinstance(values.get(key), str)}
        return {**values, **named}

    @model_validator(mode="after")
    def _check(self) -> "Cell":
        names_in(self.metric)
        if self.model.get("name") != OWN_MODEL:
            try:
                complete_spec(self.model)
            except ConfigError as error:
                raise ConfigError(f"cell '{self.id}': {error}") from None
        titles = [m.title for m in self.methods]
        for title in titles:
            if titles.count(title) > 1:
                raise ConfigError(f"cell '{self.id}': two methods are labelled '{title}'; give each its own label")
        if self.select == "best-validation" and "validation" not in self.splits:
            raise ConfigError(f"cell '{self.id}': select = 'best-validation' needs 'validation' among its splits")
        if self.select == "best-validation" and self.private == "file":
            raise ConfigError(f"cell '{self.id}': select = 'best-validation' keeps private states in memory only")
        if self.stop == "settled" and "validation" not in self.splits:
            raise ConfigError(f"cell '{self.id}': stop = 'settled' needs 'validation' among its splits")
        if self.stop == "settled" and self.private == "file":
            raise ConfigError(f"cell '{self.id}': stop = 'settled' keeps private states in memory only")
        if self.tune and "validation" not in self.splits:
            raise ConfigError(f"cell '{self.id}': tune = true chooses on validation data; add it to splits")
        if "test" not in self.splits:
            raise ConfigError(f"cell '{self.id}': splits must contain 'test'")
        return self


class Experiment(Strict):
    """A set of cells, run with the same seeds.

    name: of its folder; by default the file's. title: above the report. source: what is reproduced. protocol:
    "as-written" is the paper's text, "as-published" what its published code does. description: shown in the report.
    seeds: how many. first_seed: the others follow it. cells: a table each; the table `defaults` fills in what they
    leave out. across: a setting that differs between the cells, such as `data.missing`; the report plots the scores
    against it. after_test: the settings that were chosen after test results had been seen, if any.
    """

    name: str
    title: str = ""
    source: str = ""
    protocol: Protocol = "as-written"
    description: str = ""
    after_test: str = ""
    seeds: Whole = Field(default=1, ge=1, le=10_000)
    first_seed: Whole = Field(default=0, ge=0, le=MOST_SEED - 10_000)
    across: str = ""
    cells: tuple[Cell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> "Experiment":
        ids = [cell.id for cell in self.cells]
        for cell in self.cells:
            if ids.count(cell.id) > 1:
                raise ConfigError(f"two cells are called '{cell.id}'")
            if cell.select == "best-test" and self.protocol != "as-published":
                raise ConfigError(
                    f"cell '{cell.id}': select = 'best-test' chooses a round by test data; it exists only in the "
                    "protocol 'as-published'. Use 'last' or 'best-validation'"
                )
            if self.across:
                cell.value(self.across)
        return self

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds, consecutive from first_seed."""
        return tuple(range(self.first_seed, self.first_seed + self.seeds))

    def cell(self, cell_id: str) -> Cell:
        """The cell called `cell_id`."""
        for cell in self.cells:
            if cell.id == cell_id:
                return cell
        raise unknown("cell", cell_id, [c.id for c in self.cells])

    def only(self, patterns: tuple[str, ...]) -> "Experiment":
        """Keep the cells and methods that match any pattern; all if there is none.

        A pattern is a cell's id or a prefix of it, a method's label or name, or 'cell/label'. Raises `ConfigError` if
        a pattern matches nothing.
        """
        if not patterns:
            return self
        options = [c.id for c in self.cells] + [m.title for c in self.cells for m in c.methods]
        for p in patterns:
            titles = {name for c in self.cells for m in c.methods for name in (f"{c.id}/{m.title}", m.title, m.name)}
            if not p or (p not in titles and not any(c.id.startswith(p) for c in self.cells)):
                raise unknown("cell or method", p, {*options, *(t for t in titles if "/" in p)})
        cells: list[Cell] = []
        for cell in self.cells:
            whole_cell = any(cell.id.startswith(p) for p in patterns)
            selected = tuple(
                m for m in cell.methods if whole_cell or {f"{cell.id}/{m.title}", m.title, m.name} & {*patterns}
            )
            if selected:
                cells.append(cell.model_copy(update={"methods": selected}))
        return self.model_copy(update={"cells": tuple(cells)})


def experiment_of(values: Mapping[str, Any], origin: str) -> Experiment:
    """Build an experiment from a plain mapping. Raises `ConfigError` for anything invalid.

    origin: the file or command, named in errors. A table `defaults` fills in what the cells leave out.
    """
    given = dict(values)
    _finite(given, (), origin, given)
    defaults = given.pop("defaults", {})
    if not isinstance(defaults, dict):
        raise ConfigError(f"{origin}: defaults = {defaults!r} must be a table")
    if isinstance(given.get("cells"), list):
        given["cells"] = [{**defaults, **cell} if isinstance(cell, dict) else cell for cell in given["cells"]]
    try:
        return Experiment.model_validate(given)
    except ConfigError as error:
        raise ConfigError(f"{origin}: {error}") from None
    except ValidationError as error:
        raise ConfigError(f"{origin}: {_first(error, given)}") from None


def _finite(value: Any, path: tuple[int | str, ...], origin: str, given: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for a setting that is NaN or infinite."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in items:
        _finite(part, (*path, key), origin, given)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{origin}: {_place(path, given)} = {value} must be a finite number")


_ENTRIES = {"cells": "cell", "methods": "method", "published": "published value", "gaps": "gap"}
"""What an entry of a list is called."""


def _place(path: Sequence[int | str], given: Mapping[str, Any]) -> str:
    """Where a value is, in words: "cell 'a', method 'ditto': rate". The only cell of an experiment is left out."""
    entries: list[str] = []
    keys: list[str] = []
    here: Any = given
    for at, part in enumerate(path):
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            here = None
        before = path[at - 1] if at else ""
        if isinstance(part, int) and before in _ENTRIES:
            names = [here.get(key) for key in ("label", "id", "name")] if isinstance(here, dict) else []
            name = next((f"'{name}'" for name in names if isinstance(name, str) and name), str(part + 1))
            if before != "cells" or len(given["cells"]) > 1:
                entries.append(f"{_ENTRIES[str(before)]} {name}")
            keys.clear()
        else:
            keys.append(str(part))
    return ": ".join(text for text in (", ".join(entries), ".".join(keys)) if text)


def _first(error: ValidationError, given: Mapping[str, Any]) -> str:
    """Describe the first error in one line: where, what, and the nearest known key."""
    detail = error.errors(include_url=False)[0]
    path = detail["loc"]
    where = _place(path, given)
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, Exception):
        return f"{where}: {cause}" if where and not str(cause).startswith(where) else str(cause)
    if detail["type"] == "extra_forbidden":
        key, place = str(path[-1]), _place(path[:-1], given)
        owner = Cell if "cells" in path else Experiment
        owner = Published if "published" in path else Gap if "gaps" in path else owner
        found = str(unknown("key", key, owner.model_fields))
        return f"{place}: {found}" if place else found
    if detail["type"] == "missing":
        return f"{where} is missing"
    return f"{where or 'cell 1'} = {shortened(detail['input'])} {in_words(detail['msg'])}"


def load_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a TOML file. Raises `ConfigError` if it is missing or invalid."""
    file = Path(path)
    try:
        values = toml_of(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"no such experiment file: {file}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}") from None
    return experiment_of({"name": file.stem, **values}, str(file))


def digest(*parts: object) -> str:
    """Hash JSON values into 16 hex digits; equal values give equal digests."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def own_or_named(model: eqx.Module | Mapping[str, Any] | str) -> tuple[eqx.Module | None, Mapping[str, Any]]:
    """Split a model argument into (the user's own module or None, the specification for the experiment)."""
    if isinstance(model, eqx.Module):
        return model, {"name": OWN_MODEL}
    return None, {"name": model} if isinstance(model, str) else model


def comparison_of(
    data_name: str,
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    methods: Sequence[str | Mapping[str, Any]],
    *,
    select: str = "",
    seeds: int = 1,
    first_seed: int = 0,
    title: str = "",
    **settings: Any,
) -> Experiment:
    """Build an experiment of one cell, named after its data. settings: more of the cell (rounds, cohort, ...)."""
    automatic = settings.get("rounds") == "auto"
    select = select or ("best-validation" if automatic else "last")
    validated = automatic or select == "best-validation"
    cell = {
        "id": data_name,
        "data": dict(data),
        "model": dict(model),
        "select": select,
        "splits": ["train", "validation", "test"] if validated else ["train", "test"],
        "methods": [{"name": m} if isinstance(m, str) else dict(m) for m in methods],
        **settings,
    }
    header = {"name": f"compare-{data_name}", "title": title, "seeds": seeds, "first_seed": first_seed}
    return experiment_of({**header, "cells": [cell]}, "compare")


def metrics_of(cell: Cell, task: TaskKind) -> tuple[Metric, ...]:
    """List the metrics to measure: the cell's, the task's standard ones, those of published values.

    Selection, figures and `hurt` use the first one. Raises `ConfigError` for a metric that is unknown or of the other
    task.
    """
    values = [value for method in cell.methods for value in method.published]
    published = [value.metric for value in values if value.metric not in ("", LOSS.name)]
    return measured(task, names_in(cell.metric), published)


def check_metrics(cell: Cell, data: FederatedData) -> None:
    """Raise `ConfigError` for a metric of the other task, or one that needs classes the clients do not share."""
    first = metrics_of(cell, data.task)[0]
    if first.by_class and data.own_labels:
        raise ConfigError(f"metric '{first.name}' compares classes that all clients share, but each client numbers "
                          "its own; put another one before it")  # fmt: skip
    for method in cell.methods:
        for value in method.published:
            named = value.metric not in ("", LOSS.name)
            if named and metric_of(value.metric, data.task).by_class and data.own_labels:
                raise ConfigError(f"{method.title}: a published {value.metric} is compared on classes that all "
                                  "clients share; these data have none, so leave metric out")  # fmt: skip


def run_id(cell: str, title: str, seed: int) -> str:
    """The id of one run inside its folder."""
    return f"{cell}/{title}/seed{seed}"
