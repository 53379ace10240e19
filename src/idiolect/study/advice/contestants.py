"""The methods that the advice compares: each with a grid of the same number of settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from idiolect.algorithms import registry
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.data.federated import TaskKind

Kind = Literal["alone", "shared", "personal"]
L2 = "model.l2"
BUDGET = 6
"""Settings of every method. A round is chosen, too, among the same ones for all."""

STEPS = 10  # of a round
WHOLE = 512  # the most training rows of a client for which a step sees all of them
BATCH = 64  # rows of a step otherwise

_OF_ONE_MODEL: Mapping[str, Sequence[Any]] = {"rate": (0.1, 0.5), L2: (0.0, 0.03, 0.2)}
_GRIDS: dict[str, Mapping[str, Sequence[Any]]] = {
    "local": _OF_ONE_MODEL,
    "fedavg": _OF_ONE_MODEL,
    "fedavg-ft": {"rate": (0.1, 0.5), "finetune_rate": (0.003, 0.03, 0.3)},
    "ditto": {"rate": (0.1, 0.5), "prox_weight": (0.03, 0.2, 1.0)},
    "apfl": {"rate": (0.1, 0.5), "mixture": (0.25, 0.5, 0.75)},
    "pfedme": {"rate": (0.1, 0.5), "prox_weight": (0.3, 1.0, 5.0)},
    "mocha": {"coupling": (0.3, 3.0, 30.0), "shrinkage": (0.01, 0.3)},
    "fedu": {"rate": (0.1, 0.5), "coupling": (0.001, 0.01, 0.03)},
}
_FIXED: dict[str, Mapping[str, Any]] = {
    "fedavg-ft": {"finetune_steps": 20},
    "mocha": {"relationship": "learned", "passes": 2, "omega_every": 2},
}
DEFAULT: Mapping[str, Sequence[str]] = {
    "classification": ("local", "fedavg", "fedavg-ft", "ditto", "apfl"),
    "regression": ("local", "fedavg", "fedavg-ft", "ditto", "mocha"),
}
"""Training alone, the shared model, the shared model fine-tuned, own models near it, and a mixture of both or, for
regressions, models that a learned matrix relates. MOCHA's one-against-rest outputs are no probabilities."""


@dataclass(frozen=True)
class Contestant:
    """A method in the advice. kind: what it gives a client: its own model alone, the shared one, one of both.

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


def contestant(name: str, most_rows: int, task: TaskKind) -> Contestant:
    """The contestant of a method. most_rows: training rows of the largest client.

    A method without a grid of its own here tries `BUDGET` learning rates. Raises `ConfigError` for an unknown method,
    and for one without a learning rate.
    """
    if name not in registry.ALGORITHMS:
        raise unknown("method", name, registry.ALGORITHMS)
    cls = registry.ALGORITHMS[name]
    known = registry.hyperparameters(cls)
    model = cls.model_names[0]
    require(name != "global", "global pools all data; the pooled baseline stands in the advice in any case")
    if name not in _GRIDS and "rate" not in known:
        raise ConfigError(
            f"advice has no grid for {name}, which has no learning rate; choose among {', '.join(_GRIDS)}"
        )
    grid = _GRIDS.get(name, {"rate": (0.01, 0.03, 0.1, 0.2, 0.5, 1.0)})
    fixed: dict[str, Any] = dict(_FIXED.get(name, {}))
    if name == "mocha":
        fixed["loss"] = "squared" if task == "regression" else "logistic"
    if "batch_size" in known:
        fixed["batch_size"] = 0 if most_rows <= WHOLE else BATCH
    if "local_steps" in known:
        fixed["local_steps"] = STEPS
    settings = tuple({**fixed, **dict(zip(grid, values, strict=True))} for values in product(*grid.values()))
    assert len(settings) == BUDGET
    kind: Kind = "alone" if name == "local" else "shared" if model == "global" else "personal"
    return Contestant(name, kind, model, settings)


def contestants(names: Sequence[str], most_rows: int, task: TaskKind) -> list[Contestant]:
    """The contestants by name; `local` and `fedavg` are always among them, and first.

    Raises `ConfigError` for a name that is unknown or given twice.
    """
    require(len({*names}) == len(names), f"methods = {', '.join(names)}: one is named twice")
    ordered = dict.fromkeys(["local", "fedavg", *names])
    return [contestant(name, most_rows, task) for name in ordered]


def looked_at(rounds: int) -> list[int]:
    """The rounds after which validation data are looked at: 1, 2, 3, 5, 8, 12, ..., each half as many again."""
    require(isinstance(rounds, int) and rounds >= 1, f"rounds = {rounds!r} must be a whole number of at least 1")
    found = [1]
    while found[-1] < rounds:
        found.append(min(max(found[-1] + 1, round(found[-1] * 1.5)), rounds))
    return found
