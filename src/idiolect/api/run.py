"""`run`: one method on one federation, everything in memory."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import numpy as np
from rich.console import Console
from rich.table import Table

from idiolect.algorithms.base import Algorithm
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.core.errors import ConfigError, unknown
from idiolect.core.losses import SampleLoss
from idiolect.core.random import model_key
from idiolect.data.federated import FederatedData
from idiolect.models import build, check_model, l2_of, loss_of
from idiolect.runtime.batched import Program
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.evaluate import ClientScores, Evaluator
from idiolect.runtime.plan import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.loop import Evaluated, Memory, Schedule, fit
from idiolect.study.summary import Summary, metric_name

ModelSpec = eqx.Module | Mapping[str, Any] | str


@dataclass(frozen=True)
class Run:
    """A finished run in memory: its evaluations, and every client's models."""

    data: FederatedData
    model: eqx.Module
    history: list[Evaluated]
    state: State
    evaluator: Evaluator

    def scores(self, model: str, split: str = "test") -> ClientScores:
        """Every client's loss and score after the last round, for one named model on one split."""
        return self._find(model, split)[0]

    def summary(self, model: str, split: str = "test") -> Summary:
        """The summary over clients of `scores`."""
        return self._find(model, split)[1]

    def _find(self, model: str, split: str) -> tuple[ClientScores, Summary]:
        results = self.history[-1].results
        for scores, summary in results:
            if (scores.model, scores.split) == (model, split):
                return scores, summary
        raise unknown("model/split", f"{model}/{split}", {f"{s.model}/{s.split}" for s, _ in results})

    def client_model(self, model: str, client: str | int) -> eqx.Module:
        """One client's model, ready to call on one sample. client: its name or number."""
        names = self.evaluator.simulation.offered
        if model not in names:
            raise unknown("model", model, names)
        if isinstance(client, str):
            if client not in self.data.clients:
                raise unknown("client", client, self.data.clients)
            client = self.data.clients.index(client)
        elif not 0 <= client < self.data.num_clients:
            raise ConfigError(f"client {client} is not one of 0..{self.data.num_clients - 1}")
        own = tree.gather(self.evaluator.client_params(self.state, [model], np.array([client]))[model], 0)
        return self.evaluator.simulation.objective.model(own)

    def show(self) -> None:
        """Print every named model's summary on test data."""
        table = Table(title=f"{self.evaluator.simulation.algorithm.name} on {self.data.name}, test data, last round")
        shown = [(scores.model, s) for scores, s in self.history[-1].results if scores.split == "test"]
        columns = {metric_name(self.data.task): "weighted", "macro-F1": "macro_f1", "client mean": "mean"}
        columns |= {"std": "std", "worst 10 %": "worst10", "loss": "loss"}
        if all(math.isnan(s.macro_f1) for _, s in shown):
            del columns["macro-F1"]
        table.add_column("model")
        for column in columns:
            table.add_column(column, justify="right")
        for model, s in shown:
            table.add_row(model, *(f"{getattr(s, name):.4f}" for name in columns.values()))
        Console().print(table)


def _model_of(model: ModelSpec, data: FederatedData, seed: int) -> tuple[eqx.Module, float, SampleLoss | None]:
    if isinstance(model, eqx.Module):
        check_model(model, data.feature_shape, data.num_outputs)
        return model, 0.0, None
    spec = model if isinstance(model, str) else dict(model)
    shape = (data.feature_shape, data.num_outputs, data.task, model_key(seed), data.modalities)
    return build(spec, *shape), l2_of(spec), loss_of(spec)


def run(
    data: FederatedData,
    model: ModelSpec,
    algorithm: Algorithm,
    *,
    rounds: int = 100,
    cohort: float | None = None,
    sampling: Literal["fixed", "binomial"] = "fixed",
    seed: int = 0,
    eval_every: int = 10,
    splits: Sequence[str] = ("train", "test"),
    l2: float | None = None,
    loss: SampleLoss | None = None,
    block: int | None = None,
    private: str | Path | None = None,
    eval_clients: int | None = None,
    debug: bool = False,
) -> Run:
    """Run one method and keep everything in memory.

    model: any Equinox module that maps one sample to outputs, or a name or specification of the zoo ("mlr").
    cohort: clients a round, all by default. loss: of one sample, (output, label) -> scalar; the specification's, or
    cross-entropy or half squared error by default. l2: weight of the L2 term. block, debug: see `Simulation`.
    private: a file for the clients' private states, where there are too many for memory. eval_clients: evaluate so
    many clients only, drawn once (`run.evaluator.ids`).
    Raises `ConfigError` for settings out of range, `DivergedError` at the first NaN or infinity.
    """
    if rounds < 1 or eval_every < 1:
        raise ConfigError(f"rounds = {rounds} and eval_every = {eval_every} must be at least 1")
    use_compilation_cache()
    module, spec_l2, spec_loss = _model_of(model, data, seed)
    params = eqx.filter(module, eqx.is_inexact_array)
    objective = objective_of(module, data.task, spec_l2 if l2 is None else l2, loss or spec_loss)
    simulation = Simulation(
        data, objective, params, algorithm, cohort=cohort, sampling=sampling, rounds=rounds, block=block, debug=debug
    )
    program, memory = Program([simulation], clients=eval_clients), Memory()
    used = tuple(split for split in splits if data.split(split).count)
    schedule = Schedule(rounds, eval_every, splits=used)
    file = None if private is None else Path(private)
    state = fit(program, schedule, seed=seed, recorder=memory, file=file)
    return Run(data, module, memory.history, state, program.evaluator)
