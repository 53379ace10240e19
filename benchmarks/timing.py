"""Random federations, and rounds timed in turn, so that a busy machine hurts all that are compared alike."""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np

from benchmarks.samples import samples as draw
from idiolect.algorithms.registry import build
from idiolect.client.objective import objective_of
from idiolect.core.memory import aligned_empty
from idiolect.core.random import model_key
from idiolect.data.federated import FederatedData, Split
from idiolect.models import build as build_model
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation


def federation(x: np.ndarray, y: np.ndarray, classes: int) -> FederatedData:
    """Samples (clients, samples, ...) and their labels as a federation that is tested on what it trains on."""
    clients, each = y.shape
    split = Split(
        x.reshape(clients * each, *x.shape[2:]), y.reshape(-1).astype(np.int32), np.arange(clients + 1) * each
    )
    nothing = Split(split.x[:0], split.y[:0], np.zeros(clients + 1, np.int64))
    names, labels = tuple(f"c{i}" for i in range(clients)), tuple(str(label) for label in range(classes))
    return FederatedData("random", split, nothing, split, names, "classification", labels)


def simulation(
    spec: dict[str, Any],
    model: str | dict[str, Any],
    shape: tuple[int, ...],
    *,
    classes: int,
    clients: int,
    samples: int,
    cohort: int,
    alike: bool = False,
) -> Simulation:
    """A method on random samples, equally many for each client; alike: see `samples`."""
    data = federation(*draw(clients, samples, shape, classes, alike=alike, empty=aligned_empty), classes)
    built = build_model(model, shape, data.num_outputs, data.task, model_key(0))
    params = eqx.filter(built, eqx.is_inexact_array)
    return Simulation(data, objective_of(built, data.task), params, build(spec), cohort=cohort)


def advance(sim: Simulation, state: State, rounds: int = 1) -> tuple[State, float]:
    """`rounds` more rounds, and the seconds of one."""
    began = time.perf_counter()
    state = sim.advance(state, rounds)
    jax.block_until_ready(state)
    return state, (time.perf_counter() - began) / rounds


def medians(
    sims: Sequence[Simulation],
    names: Sequence[str],
    repeats: int,
    report: Callable[[str], None],
    rounds: Sequence[int] | None = None,
) -> list[float]:
    """Median seconds of a round of each, timed in turn, compilation left out. rounds: of each in one call, 1."""
    states: list[State] = []
    for name, sim in zip(names, sims, strict=True):
        report(f"compiling {name}")
        states.append(advance(sim, sim.init(0))[0])
    seconds: list[list[float]] = [[] for _ in sims]
    for repeat in range(repeats):
        report(f"round {repeat + 1} of {repeats}")
        for i, sim in enumerate(sims):
            states[i], took = advance(sim, states[i], rounds[i] if rounds else 1)
            seconds[i].append(took)
    return [statistics.median(s) for s in seconds]
