"""Data sets by name, for the command line and experiment files."""

import json
from collections.abc import Callable, Mapping, MutableMapping
from inspect import getdoc
from typing import Any, cast

from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.plugins import Registry
from idiolect.core.settings import settings_of, validated
from idiolect.data.divide.newcomers import hold_out
from idiolect.data.federated import FederatedData
from idiolect.data.sets.cifar10 import cifar10
from idiolect.data.sets.har.fedmultimodal import har_fedmultimodal
from idiolect.data.sets.har.har import har, har_modalities
from idiolect.data.sets.mixed_effects import mixed_effects
from idiolect.data.sets.mnist import emnist, fashion_mnist, mnist
from idiolect.data.sets.mosei.mosei import mosei, mosi
from idiolect.data.sets.omniglot import omniglot
from idiolect.data.sets.synthetic import synthetic, synthetic_population
from idiolect.data.sets.table import from_table
from idiolect.data.sets.tasks import landmine, school, vehicle


def _provided(name: str, source: object) -> Callable[..., FederatedData]:
    """A data set from another package: a function that returns `FederatedData`."""
    del name
    if not callable(source):
        raise ConfigError("it is not a function that returns FederatedData")
    settings_of(source)  # raises for a function whose arguments Python cannot list
    return cast("Callable[..., FederatedData]", source)


_OWN: dict[str, Callable[..., FederatedData]] = {
    "synthetic": synthetic,
    "synthetic-population": synthetic_population,
    "mixed-effects": mixed_effects,
    "mnist": mnist,
    "fashion-mnist": fashion_mnist,
    "emnist": emnist,
    "cifar10": cifar10,
    "omniglot": omniglot,
    "har": har,
    "har-fedmultimodal": har_fedmultimodal,
    "har-modalities": har_modalities,
    "mosei": mosei,
    "mosi": mosi,
    "vehicle": vehicle,
    "school": school,
    "landmine": landmine,
    "table": from_table,
}
SOURCES: MutableMapping[str, Callable[..., FederatedData]] = Registry("idiolect.data", _OWN, _provided)


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


def describe_data() -> dict[str, str]:
    """Return each data set's name and one line about it."""
    return {name: (getdoc(source) or "").split("\n")[0] for name, source in sorted(SOURCES.items())}
