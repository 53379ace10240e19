"""Search with Optuna: it proposes settings in batches, whose runs share compiled programs, and receives their scores.

There is no database of trials. Optuna's proposals follow from the seed and the scores that it received. So a resumed
sweep asks for the same trials again, finds their runs in its folder, and gives Optuna their scores.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from idiolect.core.errors import require
from idiolect.metrics.base import Metric
from idiolect.study.search.choose import Tried, check_swept, setting_of
from idiolect.study.search.engine import Setting
from idiolect.study.search.space import Axis, check_budget, grid, space_of
from idiolect.study.spec.experiment import Cell, Method

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

BATCH = 8
_PATIENCE = 20  # repeated proposals in a row, after which an untried setting is drawn at random


def check_installed() -> None:
    """Raise `ConfigError` if Optuna is not installed."""
    require(find_spec("optuna") is not None, "search = 'optuna' needs Optuna: pip install 'idiolect[optuna]'")


class Study:
    """Optuna's study of one method: multivariate TPE over its search space, without repeating a setting."""

    def __init__(self, space: Mapping[str, Axis], seed: int, higher: bool) -> None:
        import optuna

        if optuna.logging.get_verbosity() == optuna.logging.INFO:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna 4 warns that these two options are experimental
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        self._study = optuna.create_study(sampler=sampler, direction="maximize" if higher else "minimize")
        self._rng, self._space = np.random.default_rng(seed), space
        self._axes = {key: _distribution(axis) for key, axis in space.items()}
        self._trials: dict[str, list[Trial]] = {}
        self._scores: dict[str, float | None] = {}

    def ask(self, count: int) -> list[dict[str, Any]]:
        """Propose `count` new settings; the search space must have as many left."""
        return [self._new() for _ in range(count)]

    def _new(self) -> dict[str, Any]:
        trial = self._study.ask(self._axes)
        for _ in range(_PATIENCE):
            if self._key(trial) not in self._trials:
                break
            self._repeated(trial)
            trial = self._study.ask(self._axes)
        while self._key(trial) in self._trials:
            self._repeated(trial)
            self._study.enqueue_trial(self._unseen())
            trial = self._study.ask(self._axes)
        self._trials[self._key(trial)] = [trial]
        return self._values(trial.params)

    def _values(self, params: Mapping[str, Any]) -> dict[str, Any]:
        axes = self._space.items()
        return {k: a.values[params[k]] if a.values else a.rounded(params[k]) for k, a in axes}

    def _key(self, trial: "Trial") -> str:
        return repr(self._values(trial.params))

    def _repeated(self, trial: "Trial") -> None:
        """Note a trial that repeats a setting, and give Optuna its score as soon as it is known."""
        key = self._key(trial)
        self._trials[key].append(trial)
        if key in self._scores:
            self._tell(trial, self._scores[key])

    def _unseen(self) -> dict[str, Any]:
        """Draw a setting at random that was not proposed yet; returns Optuna's parameters of it."""
        if all(axis.values for axis in self._space.values()):
            untried = [values for values in grid(self._space) if repr(values) not in self._trials]
            values = untried[int(self._rng.integers(len(untried)))]
        else:
            values = {key: axis.draw(self._rng) for key, axis in self._space.items()}
        return {k: a.values.index(values[k]) if a.values else values[k] for k, a in self._space.items()}

    def tell(self, values: Mapping[str, Any], score: float | None) -> None:
        """Tell Optuna the validation score of a setting; None if it diverged."""
        key = repr(dict(values))
        self._scores[key] = score
        for trial in self._trials[key]:
            self._tell(trial, score)

    def _tell(self, trial: "Trial", score: float | None) -> None:
        from optuna.trial import TrialState

        if score is None:  # TPE takes a pruned trial as worse than any score, and ignores a failed one
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, score)


def _distribution(axis: Axis) -> "BaseDistribution":
    """The distribution of an axis: over its interval, or over the indices of its values."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not axis.values:
        return FloatDistribution(axis.low, axis.high, log=axis.log)
    indices = range(len(axis.values))
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in axis.values)
    if numbers and list(axis.values) == sorted(axis.values):
        return IntDistribution(0, len(indices) - 1)  # ordered, so that near values have near indices
    return CategoricalDistribution([*indices])


@dataclass
class Trials:
    """Proposes `budget` different settings of each method, `batch` at a time; see `choose.tune`.

    Raises `ConfigError` for an unknown key, a budget that is too large, or if Optuna is not installed.
    """

    cell: Cell
    spaces: Mapping[str, Mapping[str, Any]]
    metric: Metric
    budget: int
    batch: int = BATCH
    seed: int = 0
    _studies: list[tuple[Method, Study]] = field(default_factory=list[tuple[Method, Study]])
    _asked: list[tuple[Method, Study, dict[str, Any]]] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        check_installed()
        require(self.batch >= 1, f"batch = {self.batch} must be at least 1 setting")
        check_swept(self.cell, self.spaces)
        for method in self.cell.methods:
            space = self._space(method)
            check_budget(space, self.budget)
            self._studies.append((method, Study(space, self.seed, self.metric.higher)))

    def _space(self, method: Method) -> dict[str, Axis]:
        return space_of(method.name, self.spaces.get(method.name, {}))

    def ends(self) -> list[Setting]:
        """List the settings at the ends of each axis: if they are in range, all are. Raises `ConfigError` if not."""
        settings: list[Setting] = []
        for method, _ in self._studies:
            space = self._space(method)
            first = {key: axis.ends[0] for key, axis in space.items()}
            others = [{**first, key: end} for key, axis in space.items() for end in axis.ends[1:]]
            settings += [setting_of(self.cell, method.spec, values) for values in (first, *others)]
        return settings

    def __call__(self, tried: Sequence[Tried]) -> list[Setting]:
        """Tell Optuna the scores of the settings proposed last, and propose the next ones of every method."""
        for (_, study, values), one in zip(self._asked, tried[len(tried) - len(self._asked) :], strict=True):
            study.tell(values, one.validation.mean if one.validation.seeds else None)
        count = min(self.batch, self.budget - len(tried) // len(self._studies))
        self._asked = [(method, study, v) for method, study in self._studies for v in study.ask(count)]
        return [setting_of(self.cell, method.spec, values) for method, _, values in self._asked]
