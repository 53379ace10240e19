"""What an estimator does and keeps: training, models as plain arrays, and what clients need that come later."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree, Shaped
from sklearn.exceptions import ConvergenceWarning

from idiolect.algorithms.base import Algorithm
from idiolect.client.predictor import Shared
from idiolect.core.errors import ConfigError
from idiolect.data.divide.division import shuffled
from idiolect.data.federated import FederatedData, Split, TaskKind
from idiolect.metrics.registry import measured
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.newcomers import Newcomers, personalize
from idiolect.runtime.program import Program
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.run.automatic import open_settings
from idiolect.study.run.loop import fit
from idiolect.study.run.recording import Best, Schedule
from idiolect.study.run.rounds import FIXED
from idiolect.study.spec.assemble import Problem
from idiolect.study.spec.experiment import ROUNDS


@dataclass(frozen=True)
class Part:
    """Parameters of the run's module as a list: its structure can hold functions that cannot be pickled."""

    leaves: list[np.ndarray]


def kept(models: PyTree, params: PyTree) -> PyTree:
    """Models or a server's state as numpy arrays, with a `Part` wherever there are parameters of the run's module.

    params: such parameters. `filled` is the inverse.
    """
    form = jax.tree.structure(params)

    def is_part(node: Any) -> bool:
        return jax.tree.structure(node) == form

    def keep(node: Any) -> Any:
        return Part([np.array(leaf) for leaf in jax.tree.leaves(node)]) if is_part(node) else np.array(node)

    return jax.tree.map(keep, models, is_leaf=is_part)


def filled(models: PyTree, params: PyTree) -> PyTree:
    """The models that `kept` was given."""
    form = jax.tree.structure(params)
    return jax.tree.map(lambda a: jax.tree.unflatten(form, a.leaves) if isinstance(a, Part) else a, models)


def stacked(model: PyTree) -> PyTree:
    """One client's entry of every leaf for a model that all share, else the models as they are; without `Shared`."""
    if not isinstance(model, Shared):
        return model
    return jax.tree.map(lambda leaf: leaf[:1], model.model) if model.group is None else model.model


def divided_by(rows: Int[np.ndarray, "n"], clients: int, share: float, seed: int) -> list[tuple[Any, Any]]:
    """(training rows, validation rows) of each client; see `federation`."""
    order, sizes = np.argsort(rows, kind="stable"), np.bincount(rows, minlength=clients)
    groups = np.split(order, np.cumsum(sizes)[:-1])
    return [shuffled(group, i, seed, 0.0, share)[:2] for i, group in enumerate(groups)]


def federation(
    name: str,
    x: Shaped[np.ndarray, "n d"],
    y: Shaped[np.ndarray, "n"],
    rows: Int[np.ndarray, "n"],
    clients: tuple[str, ...],
    task: TaskKind,
    classes: int,
    share: float = 0.0,
    seed: int = 0,
) -> FederatedData:
    """Rows as a federation's data without test samples. rows: each row's client.

    share: of each client's rows that are held out for validation, rounded, drawn as `from_arrays` does with
    split_seed = seed. At least one row is left for training.
    """
    divided = divided_by(rows, len(clients), share, seed)

    def split(part: int) -> Split:
        chosen = [one[part] for one in divided]
        index = np.concatenate(chosen)
        return Split(x[index], y[index], np.append(0, np.cumsum([len(one) for one in chosen])))

    nothing = Split(x[:0], y[:0], np.zeros(len(clients) + 1, int))
    names = tuple(map(str, range(classes)))
    return FederatedData(name, split(0), split(1), nothing, clients, task, classes=names)


@dataclass(frozen=True, eq=False)
class Training:
    """A finished training. rounds: those of the state; settings: of the method, that follow from the data."""

    simulation: Simulation
    state: State
    rounds: int
    settings: Mapping[str, Any]


def train(
    problem: Problem,
    method: Algorithm,
    spec: Mapping[str, Any],
    *,
    rounds: int | str,
    rate: float | str,
    cohort: float | None,
    seed: int,
) -> Training:
    """Train a method as `idiolect.run` does; spec: its name and what it sets; rounds, rate: see there.

    With rounds = "auto" and no validation rows there are `FIXED` rounds, and a `ConvergenceWarning` says so.
    """
    settings = open_settings(spec, problem, rate)
    method = replace(method, **settings) if settings else method
    automatic = rounds == "auto" and problem.data.validation.count > 0
    if rounds == "auto" and not automatic:
        line = f"no client has rows enough to hold some out for validation: training ends after {FIXED} rounds"
        warnings.warn(f"{line}, settled or not; give rounds a number", ConvergenceWarning, stacklevel=4)
    most = (ROUNDS if automatic else FIXED) if isinstance(rounds, str) else rounds
    simulation = problem.simulation(method, cohort=cohort, rounds=most)
    if not automatic:
        return Training(simulation, simulation.advance(simulation.init(seed), most), most, settings)
    program = Program([simulation], metrics=measured(problem.data.task))
    schedule = Schedule(most, splits=("validation",), until_settled=True, settling=method.settling)
    memory = Best(model=method.model_names[0])
    state = fit(program, schedule, seed=seed, recorder=memory)
    if memory.state is None:
        return Training(simulation, state, int(state.round), settings)
    return Training(simulation, memory.state, memory.history[memory.best - 1].round, settings)


@dataclass(frozen=True, eq=False)
class Basis:
    """What a fitted estimator keeps for clients that come later: no rows.

    shared: the leaves of the server's state; why: why there are none. sizes: training rows of each client.
    """

    method: Algorithm
    shared: list[np.ndarray]
    why: str
    rounds: int
    cohort: float | None
    sizes: Int[np.ndarray, "clients"]

    @classmethod
    def of(cls, training: Training, cohort: float | None) -> "Basis":
        """The basis of a finished training."""
        simulation, shared, why = training.simulation, list[np.ndarray](), ""
        try:
            simulation.algorithm.new_view(training.state.shared)
            shared = [np.array(leaf) for leaf in jax.tree.leaves(training.state.shared)]
        except ConfigError as error:
            why = str(error)
        sizes = simulation.data.train.sizes
        return cls(simulation.algorithm, shared, why, training.rounds, cohort, sizes)

    def personalize(self, problem: Problem, data: FederatedData, seed: int, rounds: int | None) -> Newcomers:
        """Give the clients of `data` models; problem: as it was trained, with rows of zeros.

        Raises as `runtime.newcomers.personalize`.
        """
        if self.why:
            raise ConfigError(self.why)
        simulation = problem.simulation(self.method, cohort=self.cohort, rounds=self.rounds)
        key, done = jax.random.key(seed), jnp.asarray(self.rounds, jnp.int32)
        first, _ = jax.eval_shape(simulation.first, key, problem.params, jnp.arange(1))
        shared = jax.tree.unflatten(jax.tree.structure(first), [jnp.asarray(leaf) for leaf in self.shared])
        state = State(shared, None, done, key, jnp.zeros(3, jnp.int32))
        return personalize(simulation, state, data, rounds=rounds)

    def blank(self, name: str, clients: tuple[str, ...], width: int, task: TaskKind, classes: int) -> FederatedData:
        """Data of the shape of those trained on, all zeros, which take no memory."""
        count = int(self.sizes.sum())
        x = np.broadcast_to(np.zeros((), np.float32), (count, width))
        y = np.broadcast_to(np.zeros((), np.int32 if classes else np.float32), (count,))
        nothing = Split(x[:0], y[:0], np.zeros(len(clients) + 1, int))
        train = Split(x, y, np.append(0, np.cumsum(self.sizes)))
        return FederatedData(name, train, nothing, nothing, clients, task, classes=tuple(map(str, range(classes))))


def models_of(made: Training | Newcomers, names: list[str]) -> dict[str, PyTree]:
    """Named models of all clients, leaves (clients, ...), a model that all share as `Shared`."""
    evaluator = made.evaluator if isinstance(made, Newcomers) else Evaluator(made.simulation)
    return evaluator.client_models(made.state, names)
