"""What the functions of `idiolect` are given, checked: each mistake is one line that says what to write."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias, cast

import equinox as eqx

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.registry import build as build_method
from idiolect.algorithms.registry import register, specification
from idiolect.core.errors import ConfigError, DataError, kind_of, unknown
from idiolect.core.random import MOST_SEED
from idiolect.core.settings import checked, whole
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.data.sets.registry import SOURCES
from idiolect.models.adapt import refuse_model
from idiolect.study.run.automatic import is_own

ModelSpec: TypeAlias = eqx.Module | Mapping[str, Any] | str
Method: TypeAlias = Algorithm | type[Algorithm] | Mapping[str, Any] | str


def check_data(data: Any) -> None:
    """Raise `DataError` unless this is a federation's data; it says how to make them of what was given."""
    if isinstance(data, FederatedData):
        return
    made = "idiolect.data.from_table, from_arrays or load"
    if isinstance(data, str | PathLike):
        text = str(data)
        named = text in SOURCES
        made = (
            f"idiolect.data.load({text!r})" if named else f"idiolect.data.from_table({text!r}, client=..., label=...)"
        )
        if not named and not Path(text).suffix:
            made += f", or one of the data sets {', '.join(SOURCES)} with idiolect.data.load(NAME)"
    elif hasattr(data, "columns") and hasattr(data, "iloc"):
        made = "idiolect.data.from_table(frame, client=..., label=...)"
    elif isinstance(data, Mapping):
        made = "idiolect.data.from_arrays({client: (features, labels), ...})"
    raise DataError(f"data must be FederatedData, not {kind_of(data)}; make them by {made}")


def method_of(method: Method | Any) -> Algorithm:
    """A method, given as such, as its class, or as for `compare`: by name, or as {"name": "pfedme", "rate": 0.01}.

    Raises `ConfigError` if it is none of these, or its settings are wrong.
    """
    if isinstance(method, Algorithm):
        return method
    if isinstance(method, type) and issubclass(method, Algorithm):
        return method()
    if isinstance(method, str | Mapping):
        return build_method(method)
    raise _not_a_method(method)


def methods_named(methods: Any) -> list[str | Mapping[str, Any]]:
    """The methods of a comparison, each a name or a specification, also where it was given as a class or a method.

    Methods of one class get labels that say their settings. Raises `ConfigError` for anything else.
    """
    if isinstance(methods, str | Mapping | Algorithm | type) or not isinstance(methods, Iterable):
        raise ConfigError(f"methods must be a list, such as ['fedavg', 'local'], not {kind_of(methods)}")
    given = list(methods)
    named = [_named(method) for method in given]
    names = [method if isinstance(method, str) else method.get("name") for method in named]
    return [
        {**spec, "label": _label(spec)} if isinstance(method, Algorithm) and names.count(method.name) > 1 else spec
        for method, spec in zip(given, named, strict=True)
    ]


def specification_of(method: Any) -> Mapping[str, Any]:
    """The specification of one method with the settings that it sets: all that are written, or not the default."""
    spec = _named(method)
    return {"name": spec} if isinstance(spec, str) else spec


def names_of(methods: Any) -> list[str]:
    """The names of methods of which settings are tried anyway. Raises `ConfigError` for one that sets something."""
    named = methods_named(methods)
    for spec in named:
        if not isinstance(spec, str) and spec.keys() - {"name", "label"}:
            setting = next(key for key in spec if key not in ("name", "label"))
            raise ConfigError(f"advise tries settings of {spec['name']} itself; leave {setting} out, or use compare")
    return [spec if isinstance(spec, str) else str(spec.get("name")) for spec in named]


def _named(method: Any) -> Any:
    if isinstance(method, str | Mapping):
        return cast("str | Mapping[str, Any]", method)
    if isinstance(method, type) and issubclass(method, Algorithm):
        return register(method)
    if isinstance(method, Algorithm):
        return specification(method)
    raise _not_a_method(method)


def _label(spec: Mapping[str, Any]) -> str:
    """A method's name with its settings: "fedavg rate=0.1"."""
    return " ".join([spec["name"], *(f"{key}={value}" for key, value in spec.items() if key != "name")])


def _not_a_method(method: Any) -> ConfigError:
    return ConfigError(
        "a method is a name (pfedme, perfedavg, fedavg, ...), a specification such as "
        f"{{'name': 'pfedme', 'rate': 0.01}}, or idiolect.PFedMe(rate=0.01), not {kind_of(method)}"
    )


def check_model_argument(model: Any) -> None:
    """Raise `ConfigError` unless this is an Equinox module, a name or a specification; it says what to do."""
    if not isinstance(model, eqx.Module | Mapping | str) or isinstance(model, Algorithm):
        refuse_model(model)


def automatic(data: FederatedData, rounds: Any, rate: Any) -> tuple[Any, Any]:
    """(rounds, rate) with their defaults in place of None.

    On a table or arrays with validation rows, rounds are "auto". Elsewhere they are 100. The rate is "auto" where
    rounds are, else "method". Raises `ConfigError` for another word.
    """
    if rounds is None:
        rounds = "auto" if is_own(data) and data.validation.count else 100
    if rate is None:
        rate = "auto" if isinstance(rounds, str) and rounds == "auto" else "method"
    return rounds_of(rounds), rate_of(rate)


def rounds_of(value: Any) -> Any:
    """A number of rounds, or "auto"; raises `ConfigError` for anything else."""
    if isinstance(value, str) and value == "auto":
        return value
    try:
        return whole("rounds", value, least=1)
    except ConfigError as error:
        raise ConfigError(f"{error}, or 'auto'") from None


def rate_of(value: Any) -> Any:
    """A learning rate, or "auto" or "method"; raises `ConfigError` for anything else."""
    return value if isinstance(value, str) and value in ("auto", "method") else checked(float, value, "rate")


def seed_of(value: Any) -> int:
    """A seed; raises `ConfigError` unless it is a whole number from 0 to `MOST_SEED`."""
    return whole("seed", value, least=0, most=MOST_SEED)


def splits_of(splits: Any) -> tuple[str, ...]:
    """The names of splits; a lone name stands for a list of one. Raises `ConfigError` for another name."""
    names = (splits,) if isinstance(splits, str) else tuple(splits)
    for name in names:
        if name not in SPLITS:
            raise unknown("split", str(name), SPLITS)
    return names
