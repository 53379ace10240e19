"""The methods that the advice compares: each with a grid of the same number of settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from idiolect.algorithms import registry
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.data.federated import FederatedData
from idiolect.study.run.rates import whole_or_batch

Kind = Literal["alone", "shared", "personal"]
L2 = "model.l2"
BUDGET = 6
"""Settings of every method. A round is chosen, too, among the same ones for all."""

STEPS = 10  # of a round

_RATES = ("rate", "finetune_rate")
"""Settings that are given in multiples of a safe rate, see `safe_rate`."""
_OF_ONE_MODEL: Mapping[str, Sequence[Any]] = {"rate": (0.25, 1.0), L2: (0.0, 0.03, 0.2)}
_GRIDS: dict[str, Mapping[str, Sequence[Any]]] = {
    "local": _OF_ONE_MODEL,
    "fedavg": _OF_ONE_MODEL,
    "fedavg-ft": {"rate": (0.25, 1.0), "finetune_rate": (0.01, 0.1, 1.0)},
    "ditto": {"rate": (0.25, 1.0), "prox_weight": (0.03, 0.2, 1.0)},
    "apfl": {"rate": (0.25, 1.0), "mixture": (0.25, 0.5, 0.75)},
    "mocha": {"coupling": (0.3, 3.0, 30.0), "shrinkage": (0.01, 0.3)},
    "fedu": {"rate": (0.25, 1.0), "coupling": (0.001, 0.01, 0.03)},
}
_OTHER: Mapping[str, Sequence[Any]] = {"rate": (0.03, 0.06, 0.125, 0.25, 0.5, 1.0)}
_FIXED: dict[str, Mapping[str, Any]] = {
    "fedavg-ft": {"finetune_steps": 20},
    "mocha": {"relationship": "learned", "passes": 2, "omega_every": 2},
}
DEFAULT: Mapping[str, Sequence[str]] = {
    "classification": ("local", "fedavg", "fedavg-ft", "ditto", "apfl"),
    "regression": ("local", "fedavg", "fedavg-ft", "ditto", "mocha"),
}
"""Local training, the shared model, the shared model fine-tuned, own models near it, and a mixture of both or, for
regressions, models that a learned matrix relates. MOCHA's one-against-rest outputs are no probabilities."""


@dataclass(frozen=True)
class Contestant:
    """A method in the advice. kind: what a client gets: a model of its own rows only, the shared one, one of both.

    model: the named model that is scored. settings: `BUDGET` settings, hyper-parameters and `model.l2`.
    """

    name: str
    kind: Kind
    model: str
    settings: tuple[Mapping[str, Any], ...]

    @property
    def title(self) -> str:
        """The name as the paper writes it."""
        return registry.ALGORITHMS[self.name].title


def contestant(name: str, data: FederatedData, rate: float) -> Contestant:
    """The contestant of a method. rate: a safe learning rate, of which the grid's are multiples.

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
        key: [rate * value if key in _RATES else value for value in values]
        for key, values in _GRIDS.get(name, _OTHER).items()
    }
    fixed: dict[str, Any] = dict(_FIXED.get(name, {}))
    if name == "mocha":
        fixed["loss"] = "squared" if data.task == "regression" else "logistic"
    if "batch_size" in known:
        fixed["batch_size"] = whole_or_batch(int(data.train.sizes.max()))
    if "local_steps" in known:
        fixed["local_steps"] = STEPS
    settings = tuple({**fixed, **dict(zip(grid, values, strict=True))} for values in product(*grid.values()))
    assert len(settings) == BUDGET
    kind: Kind = "alone" if name == "local" else "shared" if model == "global" else "personal"
    return Contestant(name, kind, model, settings)


def contestants(names: Sequence[str], data: FederatedData, rate: float) -> list[Contestant]:
    """The contestants by name; `local` and `fedavg` are always among them, and first.

    Raises `ConfigError` for a name that is unknown or given twice.
    """
    require(len({*names}) == len(names), f"methods = {', '.join(names)}: one is named twice")
    ordered = dict.fromkeys(["local", "fedavg", *names])
    return [contestant(name, data, rate) for name in ordered]
