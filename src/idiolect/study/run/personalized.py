"""New clients of a finished run: their models and scores, and scores against the number of own samples."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import PyTree

from idiolect.core.errors import require, unknown
from idiolect.data.divide.division import stream
from idiolect.data.federated import FederatedData, Split
from idiolect.metrics.base import Metric
from idiolect.models.client_model import ClientModel
from idiolect.runtime.evaluate import ClientScores, client_model
from idiolect.runtime.newcomers import Newcomers, personalize
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.run.loop import diverged
from idiolect.study.store.summary import summarise

COUNTS = (1, 2, 5, 10, 20, 50)
"""Numbers of own samples at which new clients are scored, in addition to all that they have."""


@dataclass(frozen=True, eq=False)
class Finished:
    """A finished run, as new clients need it.

    params: its initial parameters; states: named model -> the state of the round that counts for it.
    """

    simulation: Simulation
    params: PyTree
    metrics: tuple[Metric, ...]
    states: Mapping[str, State]

    def personalize(self, data: FederatedData, rounds: int | None = None, most: int | None = None) -> "Personalized":
        """Give new clients their models; see `runtime.newcomers.personalize`."""
        made: dict[int, Newcomers] = {}
        for state in self.states.values():
            if id(state) not in made:
                made[id(state)] = personalize(
                    self.simulation,
                    state,
                    data,
                    params=self.params,
                    rounds=rounds,
                    most=most,
                    metrics=self.metrics,
                )
        return Personalized(data, self, {name: made[id(state)] for name, state in self.states.items()}, rounds)


@dataclass(frozen=True, eq=False)
class Personalized:
    """New clients with their models. made: named model -> the clients that have it; asked: rounds asked for."""

    data: FederatedData
    finished: Finished
    made: Mapping[str, Newcomers]
    asked: int | None = None

    def __repr__(self) -> str:
        models = ", ".join(self.made)
        return f"Personalized({self.data.num_clients} new clients, {self.rounds} rounds each, models: {models})"

    @property
    def rounds(self) -> int:
        """The rounds that each new client made."""
        return max(newcomers.rounds for newcomers in self.made.values())

    def scores(self, model: str, split: str = "test") -> ClientScores:
        """Every new client's loss and metrics for one named model; NaN for a client without samples in the split.

        Raises `DataError` if no client has any, `DivergedError` if a loss is not finite.
        """
        (scores,) = self._of(model).scores([model], [split])
        if not np.isfinite(scores.loss[scores.count > 0]).all():
            newcomers = self.made[model]
            simulation = newcomers.evaluator.simulation
            raise diverged(simulation, scores, int(newcomers.state.round), newcomers.evaluator.ids)
        return scores

    def client_model(self, model: str, client: str | int) -> ClientModel:
        """Build one new client's model, to be called on one sample. client: its name or number."""
        newcomers = self._of(model)
        return client_model(newcomers.evaluator, newcomers.state, model, client)

    def _of(self, model: str) -> Newcomers:
        if model not in self.made:
            raise unknown("model", model, self.made)
        return self.made[model]

    def table(self) -> pd.DataFrame:
        """One row for each named model and new client: its samples, and its test scores, NaN without test samples."""
        return pd.DataFrame(self._rows(self.data.train.sizes, None))

    def curve(self, counts: Sequence[int] = COUNTS, seed: int = 0) -> pd.DataFrame:
        """Test scores against the number of own samples: `table` with a column `samples`, for each number and model.

        counts: numbers of training samples, in addition to all. Each client's samples get an order drawn from the
        seed and its name. It uses the first ones, so a larger number adds to a smaller one. A client with fewer
        uses all it has (column `used`). Raises `DataError` if no client has test samples.
        """
        require(all(count >= 1 for count in counts), f"counts = {tuple(counts)} must be numbers of at least 1 sample")
        data, sizes = shuffled(self.data, seed), self.data.train.sizes
        rows: list[dict[str, Any]] = []
        for count in [*sorted({count for count in counts if count < sizes.max()}), int(sizes.max())]:
            made = self.finished.personalize(data, self.asked, count)
            rows += made._rows(np.minimum(sizes, count), count)
        return pd.DataFrame(rows)

    def _rows(self, used: np.ndarray, samples: int | None) -> Iterable[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        untested = not self.data.test.count
        metrics = [metric.key for metric in self.finished.metrics]
        for model in self.made:
            scores = None if untested and samples is None else self.scores(model)
            for i, client in enumerate(self.data.clients):
                row: dict[str, Any] = {} if samples is None else {"samples": samples}
                row |= {"model": model, "client": client, "used": int(used[i])}
                if scores is None:
                    row |= {"n": 0, **dict.fromkeys(metrics, np.nan), "loss": np.nan}
                else:
                    values = {m.key: float(scores.values[m.name][i]) for m in self.finished.metrics}
                    row |= {"n": int(scores.count[i]), **values, "loss": float(scores.loss[i])}
                rows.append(row)
        return rows

    def mean(self, model: str, metric: Metric) -> float:
        """The mean of a metric over the new clients that have a value; NaN if none has."""
        return summarise(self.scores(model), metric).mean


def shuffled(data: FederatedData, seed: int) -> FederatedData:
    """The same data, each client's training samples in an order of (seed, its name), whoever else is there."""
    train = data.stored("train")
    orders = [
        first + stream(seed, 7, zlib.crc32(name.encode())).permutation(size)
        for name, first, size in zip(data.clients, train.starts, train.sizes, strict=True)
    ]
    order = np.concatenate(orders)
    return replace(data, train=Split(train.x[order], train.y[order], train.offsets, train.outputs))
