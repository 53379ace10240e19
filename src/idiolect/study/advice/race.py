"""Run a contestant: all its settings on all divisions in one compiled program; choose on validation data only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PyTree

from idiolect.algorithms import registry
from idiolect.client.samples import Tiles
from idiolect.core import tree
from idiolect.metrics.registry import METRICS
from idiolect.models import LinearRegression, MultinomialLogistic
from idiolect.runtime.devices import Devices
from idiolect.runtime.members import Member, of_all_clients
from idiolect.runtime.predict import outputs_of
from idiolect.runtime.program import Program
from idiolect.runtime.simulate import Simulation
from idiolect.runtime.traffic import bytes_a_round
from idiolect.study.advice.contestants import L2, Contestant, Kind
from idiolect.study.advice.draws import Draws
from idiolect.study.run.rounds import FALL, looked_at
from idiolect.study.spec.assemble import Problem, problem_of

CHOSEN_BY: Mapping[str, str] = {"classification": "log-loss", "regression": "mse"}
"""The loss that chooses and decides. It is proper: accuracy says little where one label is rare."""


Held = TypeVar("Held", bound=PyTree)
"""States or models of runs."""

QUICK = 20_000
"""Training rows up to which compiling takes longer than running: such races are compiled quickly."""

PATIENCE = 2
"""Evaluations in which the mean validation loss does not fall by the share `FALL`, after which a method stops."""


@dataclass(frozen=True)
class Choice:
    """A contestant's frozen choice in each division.

    settings, rounds: what validation data chose. validation: its loss there, over all rows. sent: bytes (down, up) of
    a client's round. diverged: runs that diverged.
    """

    name: str
    title: str
    kind: Kind
    settings: tuple[Mapping[str, Any], ...]
    rounds: tuple[int, ...]
    validation: tuple[float, ...]
    sent: tuple[int, int]
    diverged: int

    @property
    def finite(self) -> bool:
        """Whether in every division a run did not diverge."""
        return bool(np.isfinite(self.validation).all())


@dataclass(frozen=True)
class Raced:
    """A contestant's choice, and the chosen models' outputs in each division.

    outputs: {"validation": (n, ...), "test": (n, ...)} of each division.
    """

    choice: Choice
    outputs: tuple[Mapping[str, Float[np.ndarray, "_ ..."]], ...]


@dataclass(frozen=True)
class Field:
    """What all contestants run on. problem: the model on the data of the first division."""

    draws: Draws
    problem: Problem

    @property
    def linear(self) -> bool:
        """Whether the model is one of the zoo's linear models."""
        return isinstance(self.problem.module, LinearRegression | MultinomialLogistic)


def field_of(draws: Draws, model: eqx.Module | Mapping[str, Any] | str | None) -> Field:
    """What the contestants run on. model: None stands for the linear model of the task, from zero.

    From zero, gradient descent never leaves the span of a client's rows, and stopped early it is much like ridge
    regression. So local training on few rows is a fair bar.
    """
    data = draws.first
    if isinstance(model, eqx.Module):
        return Field(draws, problem_of(data, model))
    linear = "linear" if data.task == "regression" else "mlr"
    spec: dict[str, Any] = (
        {"name": linear} if model is None else {"name": model} if isinstance(model, str) else {**model}
    )
    if spec["name"] in ("linear", "mlr"):
        spec.setdefault("init", "zeros")
    return Field(draws, problem_of(data, spec))


def race(field: Field, contestant: Contestant, check: Callable[[], None] = lambda: None) -> Raced:
    """Run every setting on every division; the evaluated round and the setting with the least validation loss stay.

    The rule is that of all contestants: training continues until validation loss no longer falls, as far as the
    evaluated rounds show, and after round `half` of the contestant only the better half of a division's settings
    continues (successive halving). Test rows are predicted once, by the frozen choice. check: called at each
    evaluation; what it raises ends the race.
    """
    draws, settings = field.draws, contestant.settings
    simulations = [_simulation(field, contestant, setting) for setting in settings]
    members = [_member(draws, simulation, draw) for draw in range(draws.count) for simulation in simulations]
    metric = METRICS[CHOSEN_BY[draws.first.task]]
    everyone = simulations * draws.count
    quick = draws.first.train.count <= QUICK
    program = Program(everyone, members, devices=Devices(rows=len(members)), metrics=(metric,), quick=quick)
    size, half, params = len(settings), -(-len(settings) // 2), field.problem.params
    capacity = program.capacity([0], contestant.rounds)
    # Half of the settings at a time, so that no other program is compiled for the half that stays.
    every = np.arange(len(members)).reshape(draws.count, size)
    going = np.split(every, range(half, size, half), axis=1)

    def begun(part: np.ndarray) -> tuple[list[int], PyTree]:
        states = program.start([everyone[i] for i in part.flat], [0] * part.size, [params] * part.size)
        return program.filled(part.ravel().tolist(), states, going[0].size)

    running = [begun(part) for part in going]
    kept: dict[int, PyTree[np.ndarray]] = {}
    best, chosen = np.full(draws.count, np.inf), np.zeros((draws.count, 2), int)
    flat, diverged = 0, set[int]()
    for round in looked_at(contestant.rounds):
        check()
        found: list[Float[np.ndarray, "draws _"]] = []
        made: list[tuple[list[int], PyTree]] = []
        for k, part in enumerate(going):
            rows, states = running[k]
            states = program.advance(rows, states, round, capacity)
            running[k] = rows, states
            scores, models = program.scores_and_models(rows, states, ("validation",), (contestant.model,))
            made.append((rows, models[contestant.model]))
            faults = np.asarray(states.fault)[: part.size, 2] != 0
            diverged |= {*part.ravel()[faults].tolist()}
            measured = np.asarray([one[0].pooled[metric.name] for one in scores[: part.size]])
            found.append(np.where(faults | ~np.isfinite(measured), np.inf, measured).reshape(part.shape))
        values, runs = np.concatenate(found, axis=1), np.concatenate(going, axis=1)
        places, least = values.argmin(axis=1), values.min(axis=1)
        # A division without a finite loss so far counts as one that does not fall.
        known = np.isfinite(best)
        falls = not known.any() or np.minimum(least, best)[known].sum() < best[known].sum() * (1 - FALL)
        flat = 0 if falls else flat + 1
        better = (least < best) | (not kept)
        setting = runs[np.arange(draws.count), places] % size
        chosen[better] = np.stack([setting, np.full_like(setting, round)], axis=1)[better]
        best[better] = least[better]
        kept |= {draw: _of_run(made, int(runs[draw, places[draw]])) for draw in np.flatnonzero(better).tolist()}
        if flat >= PATIENCE and round >= max(contestant.half, contestant.settling):
            break
        if round >= contestant.half and len(going) > 1 and round < contestant.rounds:
            order = np.sort(np.argsort(values, axis=1, kind="stable")[:, :half], axis=1)
            going = [np.take_along_axis(runs, order, axis=1)]
            rest = going[0].ravel().tolist()
            running = [program.filled(rest, _joined([_of_run(running, run) for run in rest]), len(rest))]
    choice = Choice(
        contestant.name,
        contestant.title,
        contestant.kind,
        tuple(settings[place] for place in chosen[:, 0].tolist()),
        tuple(chosen[:, 1].tolist()),
        tuple(best.tolist()),
        bytes_a_round(simulations[0]),
        len(diverged),
    )
    return Raced(choice, _outputs(field, _joined([kept[draw] for draw in range(draws.count)])))


def _of_run(parts: Sequence[tuple[list[int], Held]], run: int) -> Held:
    """What belongs to one run, on the host, leaves (1, ...). parts: runs, and what belongs to them."""
    return next(tree.gather_on_host(held, np.asarray([runs.index(run)])) for runs, held in parts if run in runs)


def _joined(parts: Sequence[Held]) -> Held:
    """States or models on the host, one after the other."""
    return jax.tree.map(lambda *leaves: (jnp if tree.is_key(leaves[0]) else np).concatenate(leaves), *parts)


def _simulation(field: Field, contestant: Contestant, setting: Mapping[str, Any]) -> Simulation:
    spec = {key: value for key, value in setting.items() if key != L2}
    algorithm = registry.build({"name": contestant.name, **spec})
    problem = replace(field.problem, l2=setting.get(L2, 0.0) or field.problem.l2)
    return problem.simulation(algorithm, devices=_one_device())


@cache
def _one_device() -> Devices:
    """The device of each run; the same object every time, since a plan with another is another program."""
    return Devices(jax.local_devices()[:1])


def _member(draws: Draws, simulation: Simulation, draw: int) -> Member:
    training, held = draws.arrays(draw, "train"), draws.arrays(draw, "validation")
    sizes = draws.first.validation.sizes
    tiles = Tiles.cut(draws.starts(draw, "validation"), sizes, min(simulation.tile, max(int(sizes.max()), 1)))
    return of_all_clients(simulation.plan, training, training, {"validation": (held, tiles)})


def _outputs(field: Field, models: PyTree[np.ndarray]) -> tuple[dict[str, Float[np.ndarray, "_ ..."]], ...]:
    """The outputs of models, leaves (draws, clients, ...), for the validation and test rows of each division."""
    objective, found = field.problem.objective, list[dict[str, Float[np.ndarray, "_ ..."]]]()
    for draw, data in enumerate(field.draws.data):
        mine = jax.tree.map(lambda leaf, draw=draw: leaf[draw], models)
        predicted = dict[str, Float[np.ndarray, "_ ..."]]()
        for part in ("validation", "test"):
            outputs, _ = outputs_of(objective, mine, field.draws.owners(part), data.stored(part).x)
            predicted[part] = np.asarray(outputs, np.float64)
        found.append(predicted)
    return tuple(found)
