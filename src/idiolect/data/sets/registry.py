"""Data sets by name, for the command line and experiment files.

A function of this folder that `named` marks is a data set; nothing else lists it. It returns `FederatedData`. The
mark's `task` is the task of its labels if the arguments cannot change it.
"""

import json
from collections.abc import Callable, Mapping, MutableMapping
from inspect import getdoc
from typing import Any, cast

from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.plugins import Registry, named_functions, names_of
from idiolect.core.settings import settings_of, validated
from idiolect.data.divide.newcomers import hold_out
from idiolect.data.federated import FederatedData, TaskKind


def _provided(name: str, source: object) -> Callable[..., FederatedData]:
    """A data set from another package: a function that returns `FederatedData`."""
    del name
    if not callable(source):
        raise ConfigError("it is not a function that returns FederatedData")
    settings_of(source)  # raises for a function whose arguments Python cannot list
    return cast("Callable[..., FederatedData]", source)


def _own() -> dict[str, Callable[..., FederatedData]]:
    return {name: function for name, (function, _) in named_functions("idiolect.data.sets").items()}


OF_PATH = ("table", "encoded")
"""A user's own data, which a path names: a table's file, or a folder that `idiolect encode` wrote."""
SOURCES: MutableMapping[str, Callable[..., FederatedData]] = Registry("idiolect.data", _own, _provided)


def load(spec: Mapping[str, Any]) -> FederatedData:
    """Load a data set from its specification: {"name": "mnist", ...arguments of the function `mnist`}.

    Of every source some clients can be held out: held_out (a share of them, or names) and held_out_seed (by default
    split_seed), see `hold_out`; a split of the source's own by subjects keeps its own held_out.

    A specification holds plain values only, as they come from a file or the command line.

    Raises:
        ConfigError: On an unknown name or argument and on a value of the wrong type.
    """
    try:
        json.dumps(dict(spec))
    except TypeError as error:
        raise ConfigError(f"a data specification must hold plain values only: {error}") from error
    if "name" not in spec:
        raise ConfigError(f"a data specification needs a name: one of {', '.join(sorted(SOURCES))}")
    name = str(spec["name"])
    if name not in SOURCES:
        raise unknown("data set", name, SOURCES)
    function = SOURCES[name]
    arguments = {key: value for key, value in spec.items() if key != "name"}
    if name == "table" and "path" not in arguments:
        raise ConfigError("data set 'table' needs a path, the CSV, Parquet, JSON or Excel file")
    what = f"data set '{name}'"
    held_out: dict[str, Any] = {}
    if arguments.get("split") != "subjects":
        held_out = {key: arguments.pop(key) for key in ("held_out", "held_out_seed") if key in arguments}
    data = function(**validated(settings_of(function), arguments, what))
    if held_out.get("held_out") is None:
        require("held_out_seed" not in held_out, f"{what}: held_out_seed needs held_out, a share of the clients")
        return data
    seed = held_out.pop("held_out_seed", arguments.get("split_seed", 0))
    checked = validated(settings_of(hold_out, hidden=("data", "fitted")), {**held_out, "seed": seed}, what)
    return hold_out(data, **checked)


def task_of(name: str) -> TaskKind | None:
    """Return the task of a data set, if it is known before the data are read."""
    return names_of(SOURCES.get(name)).get(name, {}).get("task")


def describe_data() -> dict[str, str]:
    """Return each data set's name and one line about it."""
    return {name: (getdoc(source) or "").split("\n")[0] for name, source in sorted(SOURCES.items())}
