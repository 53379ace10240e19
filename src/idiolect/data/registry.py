"""Data sets by name: what the command line and experiment files may ask for."""

import json
from collections.abc import Callable, Mapping
from inspect import getdoc
from typing import Any

from pydantic import ValidationError, validate_call

from idiolect.data.federated import FederatedData
from idiolect.data.keywords import check_keywords, keywords
from idiolect.data.mnist import mnist
from idiolect.data.partitioners import PARTITIONERS
from idiolect.data.synthetic import synthetic
from idiolect.data.table import from_table
from idiolect.errors import ConfigError, unknown

SOURCES: dict[str, Callable[..., FederatedData]] = {
    "synthetic": synthetic,
    "mnist": mnist,
    "table": from_table,
}


def load(spec: Mapping[str, Any]) -> FederatedData:
    """The data set that a specification asks for: {"name": "mnist", ...arguments of the function `mnist`}.

    A specification holds plain values only, as they come from a file or the command line.
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
    # MNIST passes what it does not know to the partitioner; a partitioner that does not want it says so.
    extra = [key for partitioner in PARTITIONERS.values() for key in keywords(partitioner)]
    also = [key for key in extra if key not in ("labels", "rng")] if name == "mnist" else []
    check_keywords(function, arguments, f"data set '{name}'", also=also)
    if name == "table" and "path" not in arguments:
        raise ConfigError("data set 'table' needs a path, the CSV or Parquet file")
    try:
        return validate_call(config={"arbitrary_types_allowed": True})(function)(**arguments)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][:1])
        raise ConfigError(f"data set '{name}': {key}={first['input']!r}: {first['msg']}") from error


def describe() -> dict[str, str]:
    """Each data set's name and one line about it."""
    return {name: (getdoc(source) or "").split("\n")[0] for name, source in sorted(SOURCES.items())}
