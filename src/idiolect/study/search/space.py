"""Search spaces of hyper-parameters: values of a grid, or intervals for random draws."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from idiolect.algorithms import registry as methods
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.files import json_of
from idiolect.core.settings import LARGEST

L2 = "model.l2"
MOST = 10_000
"""Values of one hyper-parameter: a sweep of more would not end."""
_FORMS = {"log": 3, "linear": 3, "integer": 2, "uniform": 2, "loguniform": 2}


@dataclass(frozen=True)
class Axis:
    """The values to try for one hyper-parameter, or an interval to draw from (log-uniformly if `log`)."""

    values: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw one value."""
        if self.values:
            return self.values[int(rng.integers(len(self.values)))]
        low, high = (np.log(self.low), np.log(self.high)) if self.log else (self.low, self.high)
        value = rng.uniform(low, high)
        return self.rounded(np.exp(value) if self.log else value)

    def rounded(self, value: float) -> float:
        """Round to six digits, within the interval: tables show six digits, and so the exact value."""
        return min(max(float(f"{value:.6g}"), self.low), self.high)

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values, or the ends of the interval."""
        return self.values or (self.low, self.high)


def axis(key: str, given: Any) -> Axis:
    """Parse the values to try for one hyper-parameter.

    A list, or a text: "1,5,15": these values; "log(a,b,n)", "linear(a,b,n)": n values from a to b; "integer(a,b)":
    every whole number from a to b; "uniform(a,b)", "loguniform(a,b)": an interval, for a random search or Optuna.
    Raises `ConfigError` naming the key.
    """
    if isinstance(given, Axis):
        return given
    if isinstance(given, list | tuple | np.ndarray):
        values = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
        require(len(values) > 0, f"{key}: no value to try")
        require(len({*map(repr, values)}) == len(values), f"{key}: a value is given twice")
        return Axis(values)
    if not isinstance(given, str):
        return Axis((given,))
    match = re.fullmatch(r"\s*([a-z]+)\((.*)\)\s*", given)
    if match is None:
        return axis(key, [_value(part) for part in given.split(",")])
    form, inside = match[1], [_value(part) for part in match[2].split(",")]
    if form not in _FORMS:
        raise unknown(f"form of values for {key}", form, _FORMS)
    numbers = all(isinstance(v, int | float) and abs(v) <= LARGEST for v in inside)
    arguments = "a,b,n" if _FORMS[form] == 3 else "a,b"
    require(numbers and len(inside) == _FORMS[form], f"{key} = {given}: write {form}({arguments}) with numbers")
    low, high = float(inside[0]), float(inside[1])
    require(low < high, f"{key} = {given}: the first number must be below the second")
    require(not form.startswith("log") or low > 0, f"{key} = {given}: a logarithmic scale starts above 0")
    if form == "integer":
        require(low.is_integer() and high.is_integer(), f"{key} = {given}: both ends must be whole numbers")
        require(high - low < MOST, f"{key} = {given}: these are more than {MOST:,} values; name some of them")
        return Axis(tuple(range(int(low), int(high) + 1)))
    if len(inside) == 2:
        return Axis(low=low, high=high, log=form == "loguniform")
    count = inside[2]
    fits = isinstance(count, int) and 2 <= count <= MOST
    require(fits, f"{key} = {given}: n must be a whole number from 2 to {MOST:,}")
    values = np.geomspace(low, high, count) if form == "log" else np.linspace(low, high, count)
    return Axis(tuple(float(f"{v:.6g}") for v in values))


def _value(text: str) -> Any:
    try:
        return json_of(text)
    except ValueError:
        return text.strip()


def space_of(method: str, given: Mapping[str, Any]) -> dict[str, Axis]:
    """Parse the search space of one method: an axis for each key (a hyper-parameter or `model.l2`) in `given`.

    Raises `ConfigError` on an unknown method or key and on bad values.
    """
    if method not in methods.ALGORITHMS:
        raise unknown("method", method, methods.ALGORITHMS)
    defaults = methods.hyperparameters(methods.ALGORITHMS[method])
    for key in given:
        if key not in defaults and key != L2:
            raise unknown(f"key of method {method}", key, [*defaults, L2])
    space = {key: axis(f"{method}.{key}" if key != L2 else key, value) for key, value in given.items()}
    for key, key_axis in space.items():
        integer = isinstance(defaults.get(key), int) and not isinstance(defaults.get(key), bool)
        require(
            bool(key_axis.values) or not integer, f"{method}.{key} is a whole number; give 5,10,20 or integer(5,20)"
        )
        if integer:
            space[key] = Axis(
                tuple(int(v) if isinstance(v, float) and v.is_integer() else v for v in key_axis.values)
            )
    return space


def grid(space: Mapping[str, Axis]) -> list[dict[str, Any]]:
    """List all combinations, the last key changing fastest. Raises `ConfigError` if an axis is an interval."""
    for key, key_axis in space.items():
        require(bool(key_axis.values), f"{key} is an interval, which only a random search or Optuna can draw from")
    return [
        dict(zip(space, values, strict=True)) for values in product(*(key_axis.values for key_axis in space.values()))
    ]


def drawn(space: Mapping[str, Axis], count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Draw `count` distinct random combinations. Raises `ConfigError` if there are fewer."""
    check_budget(space, count)
    rng = np.random.default_rng(seed)
    if all(key_axis.values for key_axis in space.values()):
        combinations = grid(space)
        return [combinations[i] for i in sorted(int(i) for i in rng.choice(len(combinations), count, replace=False))]
    return [{key: key_axis.draw(rng) for key, key_axis in space.items()} for _ in range(count)]


def check_budget(space: Mapping[str, Axis], count: int) -> None:
    """Raise `ConfigError` unless the space has `count` distinct settings."""
    require(count >= 1, f"budget = {count} must be at least 1 setting")
    if all(key_axis.values for key_axis in space.values()):
        total = math.prod(len(key_axis.values) for key_axis in space.values())
        require(count <= total, f"a budget of {count} settings, but there are only {total}; give more values")


def shown(values: Mapping[str, Any]) -> str:
    """Format a setting: "key=value, ..."."""
    return ", ".join(f"{k}={f'{v:.6g}' if isinstance(v, float) else v}" for k, v in values.items()) or "defaults"


def check_l2(value: Any) -> None:
    """Raise `ConfigError` unless l2 is a finite number >= 0."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    if not good:
        raise ConfigError(f"{L2} = {value!r} must be a number that is not negative")
