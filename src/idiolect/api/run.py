"""`run`: one method on one federation, everything in memory."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import equinox as eqx
import pandas as pd
from rich.console import Console
from rich.table import Table

from idiolect.api.arguments import (
    Method,
    ModelSpec,
    automatic,
    check_data,
    check_model_argument,
    method_of,
    seed_of,
    specification_of,
    splits_of,
    whole,
)
from idiolect.core.errors import ConfigError, require, unknown
from idiolect.core.losses import SampleLoss
from idiolect.core.settings import checked
from idiolect.data.federated import FederatedData
from idiolect.metrics.registry import measured, names_in
from idiolect.models.client_model import ClientModel
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.evaluate import ClientScores, Evaluator, client_model
from idiolect.runtime.program import Program
from idiolect.runtime.round import State
from idiolect.study.run.automatic import default_model, with_rates
from idiolect.study.run.loop import fit
from idiolect.study.run.personalized import Finished, Personalized
from idiolect.study.run.recording import Best, Evaluated, Memory, Schedule
from idiolect.study.spec.assemble import problem_of
from idiolect.study.spec.experiment import ROUNDS
from idiolect.study.store.summary import Summary, summarise

Model = TypeVar("Model", bound=eqx.Module)


class ClientModels(Mapping[Any, Model], Generic[Model]):
    """A mapping from each client's name to its model, which is built when it is asked for.

    Raises `ConfigError`, which is a `KeyError` here, for a client that there is none of.
    """

    def __init__(self, clients: Sequence[Any], build: Callable[[Any], Model]) -> None:
        self._clients, self._build = tuple(clients), build

    def __getitem__(self, client: Any) -> Model:
        if client not in self:
            raise UnknownClientError(
                f"unknown client {client!r}; there are {len(self)}, such as {self._clients[0]!r}"
            )
        return self._build(client)

    def __contains__(self, client: object) -> bool:
        return client in self._clients

    def __iter__(self) -> Iterator[Any]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)

    def __repr__(self) -> str:
        return f"<models of {len(self)} clients, each built when it is asked for>"


class UnknownClientError(ConfigError, KeyError):
    """A client's model was asked for that there is none of; a `KeyError` too, so that `get` has its default."""

    __str__ = Exception.__str__


@dataclass(frozen=True)
class Run:
    """A finished run in memory: its evaluations, and every client's models."""

    data: FederatedData
    model: eqx.Module
    history: list[Evaluated]
    state: State
    evaluator: Evaluator

    def scores(self, model: str, split: str = "test") -> ClientScores:
        """Every client's loss and metrics after the last round, for one named model on one split."""
        return self._find(model, split)

    def summary(self, model: str, split: str = "test", metric: str = "") -> Summary:
        """Summarise a metric of `scores` over clients; by default the first measured metric."""
        measured = {one.name: one for one in self.evaluator.metrics}
        if metric and metric not in measured:
            raise unknown("measured metric", metric, measured)
        return summarise(self.scores(model, split), measured[metric] if metric else self.evaluator.metrics[0])

    def _find(self, model: str, split: str) -> ClientScores:
        results = self.history[-1].results
        for scores, _ in results:
            if (scores.model, scores.split) == (model, split):
                return scores
        raise unknown("model/split", f"{model}/{split}", {f"{s.model}/{s.split}" for s, _ in results})

    def table(self, model: str, split: str = "test") -> pd.DataFrame:
        """`scores` with the clients' names: a row each, columns client, samples, loss, and every metric."""
        scores = self._find(model, split)
        names = [self.data.clients[index] for index in self.evaluator.ids]
        return pd.DataFrame({"client": names, "samples": scores.count, "loss": scores.loss, **scores.values})

    def models(self, model: str) -> ClientModels[ClientModel]:
        """Every client's model of this name: a mapping from client to `client_model`, each built when asked for."""
        offered = self.evaluator.simulation.offered
        if model not in offered:
            raise unknown("model", model, offered)
        return ClientModels(self.data.clients, lambda client: self.client_model(model, client))

    def client_model(self, model: str, client: str | int) -> ClientModel:
        """Build one client's model: it predicts raw rows, and can be called on one encoded sample.

        client: its name or number.
        """
        return client_model(self.evaluator, self.state, model, client)

    def personalize(self, data: FederatedData, rounds: int | None = None) -> Personalized:
        """Give clients that took no part in training their models, by the method's own rule; the run stays as it is.

        data: the new clients', encoded as the run's: same features, labels and classes; a client may have a single
        training sample, one class, and no test samples. rounds: of each new client by itself, if the method keeps a
        private state; by default as many as a known client has taken part in, in expectation.
        Raises as `runtime.newcomers.personalize`.
        """
        rounds = None if rounds is None else whole("rounds", rounds, least=1)
        simulation = self.evaluator.simulation
        states = dict.fromkeys(simulation.offered, self.state)
        return Finished(simulation, simulation.params, self.evaluator.metrics, states).personalize(data, rounds)

    def __repr__(self) -> str:
        """One line: method, data, rounds, and each named model's test score."""
        last, metric = self.history[-1], self.evaluator.metrics[0]
        found = [f"{s.model} {s.pooled[metric.name]:.4f}" for s, _ in last.results if s.split == "test"]
        shown = f", test {metric.column} {', '.join(found)}" if found else ""
        return f"<Run: {self.evaluator.simulation.algorithm.name} on {self.data.name}, {last.round} rounds{shown}>"

    def show(self) -> None:
        """Print every named model's summary on test data."""
        table = Table(title=f"{self.evaluator.simulation.algorithm.name} on {self.data.name}, test data, last round")
        shown = [(scores, s) for scores, s in self.history[-1].results if scores.split == "test"]
        metrics = [
            m for m in self.evaluator.metrics if not all(math.isnan(scores.pooled[m.name]) for scores, _ in shown)
        ]
        columns = {"client mean": "mean", "std": "std", "worst 10 %": "worst10", "loss": "loss"}
        table.add_column("model")
        for column in (*(metric.column for metric in metrics), *columns):
            table.add_column(column, justify="right")
        for scores, s in shown:
            numbers = (
                *(scores.pooled[metric.name] for metric in metrics),
                *(getattr(s, name) for name in columns.values()),
            )
            table.add_row(scores.model, *(f"{number:.4f}" for number in numbers))
        Console().print(table)


def run(
    data: FederatedData,
    model: ModelSpec | None = None,
    algorithm: Method = "fedavg-ft",
    *,
    rounds: int | Literal["auto"] | None = None,
    rate: float | Literal["auto", "method"] | None = None,
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
    metric: str = "",
    debug: bool = False,
) -> Run:
    """Run one method and keep everything in memory.

    Args:
        model: Any Equinox module that maps one sample to outputs, or a name or specification of the zoo. By default
            linear regression ("linear") or logistic regression ("mlr").
        algorithm: A method, `idiolect.PFedMe(rate=0.01)`, or as in `compare`: "pfedme", {"name": "pfedme", "rate":
            0.01}.
        rounds: "auto": until the validation loss stops falling, at most 200. The run then ends with the round in
            which the method's first named model has the least validation loss. "auto" is the default on a table or
            arrays with validation rows. Elsewhere, and with a file of private states, the default is 100.
        rate: Learning rates that the method leaves at their defaults: "auto" by the curvature of the training loss,
            a number, or the "method"'s own. The default is "auto" where rounds is, else "method".
        cohort: Clients per round, all by default.
        loss: Of one sample, (output, label) -> scalar; by default the specification's, else cross-entropy or half
            squared error.
        l2: Weight of the L2 term.
        block: See `Simulation`.
        debug: See `Simulation`.
        private: A file for the clients' private states, if they are too large for memory.
        eval_clients: Evaluate only this many clients, drawn once (`run.evaluator.ids`).
        metric: The metric of `show` and `summary`, accuracy or mse by default; further metrics, separated by commas,
            are only measured.

    Raises:
        ConfigError: For settings out of range.
        DivergedError: At the first NaN or infinity.
    """
    check_data(data)
    method, seed = method_of(algorithm), seed_of(seed)
    most, rule = automatic(data, 100 if rounds is None and private is not None else rounds, rate)
    eval_every = whole("eval_every", eval_every, least=1)
    cohort, l2 = checked(float | None, cohort, "cohort"), checked(float | None, l2, "l2")
    block, eval_clients = checked(int | None, block, "block"), checked(int | None, eval_clients, "eval_clients")
    splits = splits_of(splits)
    metrics = measured(data.task, names_in(metric))
    use_compilation_cache()
    model = default_model(data) if model is None else model
    check_model_argument(model)
    problem = problem_of(data, model, seed)
    problem = replace(problem, l2=problem.l2 if l2 is None else l2, loss=loss or problem.loss)
    method = with_rates(method, specification_of(algorithm), problem, rule)
    most, settled = (ROUNDS, True) if most == "auto" else (most, False)
    require(not settled or private is None, "rounds = 'auto' keeps private states in memory; give rounds a number")
    require(
        not settled or data.validation.count > 0,
        "rounds = 'auto' needs validation rows; give rounds a number, or divide the data with validation=0.15, say",
    )
    simulation = problem.simulation(method, cohort=cohort, sampling=sampling, rounds=most, block=block, debug=debug)
    program = Program([simulation], clients=eval_clients, metrics=metrics)
    splits = tuple(dict.fromkeys((*splits, "validation"))) if settled else splits
    nonempty = tuple(split for split in splits if data.split(split).count)
    schedule = Schedule(most, eval_every, splits=nonempty, until_settled=settled, settling=method.settling)
    file = None if private is None else Path(private)
    memory = Best(model=method.model_names[0]) if settled else Memory()
    state = fit(program, schedule, seed=seed, recorder=memory, file=file)
    if isinstance(memory, Best) and memory.state is not None:
        return Run(data, problem.module, memory.history[: memory.best], memory.state, program.evaluator)
    return Run(data, problem.module, memory.history, state, program.evaluator)
