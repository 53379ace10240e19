"""The methods that the advice compares: each with a grid of the same number of settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from idiolect.algorithms import registry
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.data.federated import FederatedData
from idiolect.study.run.rates import whole_or_batch

Kind = Literal["alone", "shared", "personal"]
L2 = "model.l2"
BUDGET = 4
"""Settings of every method. A round is chosen, too, among the same ones for all."""

STEPS = 10  # of a round

_RATES = ("rate", "finetune_rate")
"""Settings that are given in multiples of a safe rate, see `safe_rate`."""
_OF_ONE_MODEL: Mapping[str, Sequence[Any]] = {"rate": (1.0,), L2: (0.0, 0.01, 0.05, 0.2)}
_GRIDS: dict[str, Mapping[str, Sequence[Any]]] = {
    "local": _OF_ONE_MODEL,
    "fedavg": _OF_ONE_MODEL,
    "fedavg-ft": {"rate": (1.0,), "finetune_rate": (0.01, 0.1, 0.3, 1.0)},
    "fedavg-intercept": {"intercept_penalty": (2.0, 10.0), L2: (1.0, 30.0)},
    "ditto": {"rate": (1.0,), "prox_weight": (0.03, 0.1, 0.3, 1.0)},
    "boosted-intercept": {"rate": (0.2,), "linear_l2": (0.0, 100.0)},
    "ifca": {"rate": (1.0,), "groups": (1.0, 2.0, 3.0, 4.0)},
    "apfl": {"rate": (1.0,), "mixture": (0.2, 0.4, 0.6, 0.8)},
    "mocha": {"coupling": (0.3, 3.0), "shrinkage": (0.1, 1.0)},
    "fedu": {"rate": (1.0,), "coupling": (0.001, 0.003, 0.01, 0.03)},
}
"""The round is chosen, too: a smaller learning rate would only take more of them."""
_OTHER: Mapping[str, Sequence[Any]] = {"rate": (0.1, 0.3, 1.0, 3.0)}
_FIXED: dict[str, Mapping[str, Any]] = {
    "fedavg-ft": {"finetune_steps": 20},
    "mocha": {"relationship": "learned", "passes": 2, "omega_every": 1},
    "ifca": {"most_groups": 4},
    "boosted-intercept": {"trees": 120},
}
_ROUNDS: Mapping[str, int] = {"fedavg-intercept": 14, "boosted-intercept": 400, "local-trees": 100}
"""The most rounds of methods with another kind of round: a Newton step, a pass over the rows, a tree."""
_DEEPER = 700
"""The most passes where a tree has `MORE_LEAVES`: about 120 trees, each of which takes six passes."""
_HALF: Mapping[str, int] = {"fedavg-intercept": 4, "boosted-intercept": 108}
"""The round after which only the better half of a method's settings continues, where it is another than `HALF`."""
HALF = 9
_PASSES = ("boosted-intercept",)
"""Methods whose round is a pass over all rows: on large tables they have fewer of them, see `passes`."""
_IN_ROWS = ("linear_l2",)
"""Settings that are given in multiples of all clients' training rows."""
_BY_ROWS = ("fedavg-intercept",)
"""Methods with an exact solver: their L2 weights are in rows, divided by the training rows of all clients."""
DEFAULT = ("local", "fedavg", "fedavg-ft", "fedavg-intercept", "ditto", "ifca", "mocha", "boosted-intercept")
"""Local training, the shared model, the shared model fine-tuned, with own intercepts, own models near it, a model per
group of clients, models with learned relations, and trees on own intercepts."""
_OF_LINEAR = ("fedavg-intercept", "mocha", "boosted-intercept")
_OF_SMALL: Mapping[str, tuple[int, int]] = {"mocha": (40, 300)}
"""The most clients, and the most training rows of a client, up to which a method is a default. MOCHA's server
decomposes a matrix of clients by clients, and its clients take one row after another."""


def defaults(data: FederatedData, linear: bool) -> list[str]:
    """The methods of an advice unless the user names some. linear: whether the model is one of the zoo's linear ones.

    For other models, methods that replace or extend a linear model are left out, and for many or large clients those
    whose time grows too fast.
    """
    found = [name for name in DEFAULT if linear or name not in _OF_LINEAR]
    size = data.num_clients, int(data.train.sizes.max())
    return [name for name in found if name not in _OF_SMALL or (np.asarray(size) <= _OF_SMALL[name]).all()]


_CELLS, _LEAST = 8e8, 120
"""Cells that a method's passes read in all, and passes that it has however large the table is."""
MORE_LEAVES = 15


def bins_of(rows: int) -> int:
    """Bins of a feature for trees on so many rows: 64, and 32 where 64 would have fewer than a hundred rows each."""
    return 32 if rows < 6_400 else 64


def leaves_of(rows: int) -> int:
    """Leaves of a tree on so many rows: 8, and 15 where a tree of 15 leaves more than a thousand rows to each."""
    return 8 if rows < 20_000 else MORE_LEAVES


def passes(most: int, cells: int) -> int:
    """The most passes over a table of so many cells, rows times features: `most`, and on large tables fewer."""
    return int(np.clip(_CELLS / max(cells, 1), _LEAST, most))


@dataclass(frozen=True)
class Contestant:
    """A method in the advice. kind: what a client gets: a model of its own rows only, the shared one, one of both.

    model: the named model that is scored. settings: `BUDGET` settings, hyper-parameters and `model.l2`. rounds: the
    most that it runs; half: after which the worse half of the settings stops; settling: before which it runs on.
    """

    name: str
    kind: Kind
    model: str
    settings: tuple[Mapping[str, Any], ...]
    rounds: int
    half: int = HALF
    settling: int = 0

    @property
    def title(self) -> str:
        """The name as the paper writes it."""
        return registry.ALGORITHMS[self.name].title


def contestant(name: str, data: FederatedData, rate: float, rounds: int) -> Contestant:
    """The contestant of a method. rate: a safe learning rate, of which the grid's are multiples. rounds: at most.

    A method without a grid of its own here tries `BUDGET` learning rates. Raises `ConfigError` for an unknown method,
    and for one without a learning rate.
    """
    if name not in registry.ALGORITHMS:
        raise unknown("method", name, registry.ALGORITHMS)
    cls = registry.ALGORITHMS[name]
    known = registry.hyperparameters(cls)
    model = cls.model_names[0]
    require(name != "global", "global pools all data; every advice has the pooled baseline")
    if name not in _GRIDS and "rate" not in known:
        raise ConfigError(
            f"advice has no grid for {name}, which has no learning rate; choose among {', '.join(_GRIDS)}"
        )
    grid = {
        key: [rate * value if key in _RATES and cls.by_curvature else value for value in values]
        for key, values in _GRIDS.get(name, _OTHER).items()
    }
    grid |= {key: [data.train.count * value for value in grid[key]] for key in _IN_ROWS if key in grid}
    if name in _BY_ROWS:
        grid[L2] = [value / data.train.count for value in grid[L2]]
    fixed: dict[str, Any] = dict(_FIXED.get(name, {}))
    if name == "mocha":
        fixed["loss"] = "squared" if data.task == "regression" else "logistic"
    if "bins" in known:
        fixed |= {"bins": bins_of(data.train.count), "leaves": leaves_of(data.train.count)}
    if "batch_size" in known:
        fixed["batch_size"] = whole_or_batch(int(data.train.sizes.max()))
    if "local_steps" in known:
        fixed["local_steps"] = STEPS
    settings = tuple({**fixed, **dict(zip(grid, values, strict=True))} for values in product(*grid.values()))
    assert len(settings) <= BUDGET
    kind: Kind = "alone" if name == "local" else "shared" if model == "global" else "personal"
    most = _ROUNDS.get(name, rounds)
    if name in _PASSES:
        most = _DEEPER if fixed["leaves"] == MORE_LEAVES else most
        most = passes(most, data.train.count * int(np.prod(data.feature_shape)))
    half = _HALF.get(name, HALF)
    if name in _PASSES:
        half += half // 2 if fixed["leaves"] == MORE_LEAVES else 0  # a tree takes more passes
        half = min(half, 2 * most // 5)  # where a large table has few passes
    return Contestant(name, kind, model, settings, most, half, cls.settling)


def contestants(names: Sequence[str], data: FederatedData, rate: float, rounds: int) -> list[Contestant]:
    """The contestants by name; `local` and `fedavg` are always among them, and first. rounds: at most.

    Raises `ConfigError` for a name that is unknown or given twice.
    """
    require(len({*names}) == len(names), f"methods = {', '.join(names)}: one is named twice")
    ordered = dict.fromkeys(["local", "fedavg", *names])
    return [contestant(name, data, rate, rounds) for name in ordered]
