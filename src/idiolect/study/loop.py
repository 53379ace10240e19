"""Runs: rounds, evaluations between them, and recorders that may keep them.

Members of one program run together; a single run is a program with one member. There is one order for all: an
evaluation is recorded first, then the state from which a killed run goes on.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Int, PyTree

from idiolect.core.errors import DivergedError
from idiolect.runtime.batched import Program
from idiolect.runtime.devices import agreed
from idiolect.runtime.evaluate import ClientScores
from idiolect.runtime.plan import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.recording import Evaluated, Progress, Recorder
from idiolect.study.schedule import Schedule
from idiolect.study.summary import summarise

_CALL_SECONDS = 0.5  # rounds are run in calls of about this length, so that progress moves


@dataclass(frozen=True, eq=False)
class Run:
    """One run in a program. row: which of the program's members it is."""

    simulation: Simulation
    seed: int
    params: PyTree
    recorder: Recorder
    row: int = 0


class _Loop:
    """Runs at work. A place is where a run's state stands; a run that fills several has its first one."""

    def __init__(self, program: Program, runs: Sequence[Run], schedule: Schedule, capacity: int | None) -> None:
        self.program, self.runs, self.schedule = program, runs, schedule
        self.rows = [run.row for run in runs]
        seeds = [run.seed for run in runs]
        self.capacity = program.capacity(seeds, schedule.rounds) if capacity is None else capacity
        self.places = [place for place, run in enumerate(runs) if runs.index(run) == place]
        self.failed: dict[int, DivergedError] = {}
        self.seconds, self.compile_seconds = dict.fromkeys(self.places, 0.0), dict.fromkeys(self.places, 0.0)
        self.scores: dict[str, float] = {}

    @property
    def working(self) -> list[int]:
        """The places of the runs that have not failed."""
        return [place for place in self.places if place not in self.failed]

    def begin(self, file: Path | None) -> State:
        """Every run's state: restored, or before its first round."""
        runs, program = self.runs, self.program
        simulations, seeds = [run.simulation for run in runs], [run.seed for run in runs]
        states = program.start(simulations, seeds, [run.params for run in runs], file)
        each = {runs[place]: program.one(states, place) for place in self.places}
        kept = {place: runs[place].recorder.restore(each[runs[place]]) for place in self.places}
        for place, restored in kept.items():
            if restored is not None:
                each[runs[place]], self.seconds[place], self.compile_seconds[place] = restored
        if any(restored is not None for restored in kept.values()):
            states = program.joined([each[run] for run in runs])
            states = program.like.devices.place(states) if program.alone else states
        return states

    def compile(self, states: State) -> State:
        """The same states, after the program that trains was compiled."""
        began = time.perf_counter()
        states = self.program.advance(self.rows, states, 0, self.capacity)  # runs nothing
        jax.block_until_ready(states.shared)
        share = (time.perf_counter() - began) / len(self.places)
        self.compile_seconds = {place: seconds + share for place, seconds in self.compile_seconds.items()}
        return states

    def advance(self, states: State, end: int) -> tuple[State, float]:
        """All runs in round `end`, but for those that fail; and the seconds that it took."""
        before, began = self.program.rounds(states), time.perf_counter()
        states = self.program.advance(self.rows, states, end, self.capacity)
        jax.block_until_ready(states.shared)
        rounds, took = self.program.rounds(states), time.perf_counter() - began
        faults = np.asarray(states.fault).reshape(-1, 3)  # a member's whole state is gathered where there is one
        for place in self.working:
            if rounds[place] > before[place]:
                self.seconds[place] += took / len(self.places)
            if faults[place, 2] == 0:
                continue
            try:
                self.runs[place].simulation.raise_fault(self.program.one(states, place))
            except DivergedError as error:
                self.failed[place] = error
        return states, took

    def evaluate(self, states: State, round: int) -> None:
        """Score the runs that stand in this round, and have them recorded where that has not been done."""
        schedule, program, rounds = self.schedule, self.program, self.program.rounds(states)
        places = [place for place in self.working if rounds[place] == round]
        places = [place for place in places if not self.runs[place].recorder.has(round, schedule.splits)]
        if not places:
            return
        names = schedule.models or program.like.offered
        scores = program.scores(self.rows, states, schedule.splits, names)
        for place in places:
            simulation, state = self.runs[place].simulation, program.one(states, place)
            results = [(s, summarise(s, program.metrics[0])) for s in scores[place]]
            infinite = next((s for s, summary in results if not math.isfinite(summary.loss)), None)
            if infinite is not None:
                self.failed[place] = diverged(simulation, infinite, round, program.evaluator.ids)
                continue
            self.scores.update({s.model: summary.pooled for s, summary in results if s.split == "test"})
            diagnostics = simulation.algorithm.diagnostics(state.shared)
            times = self.seconds[place], self.compile_seconds[place]
            told = {name: float(value) for name, value in diagnostics.items()}
            self.runs[place].recorder.keep(Evaluated(round, results, state, *times, told), round >= schedule.rounds)

    def pause(self, states: State, round: int) -> None:
        """A moment at which the states of the runs in this round may be kept."""
        rounds = self.program.rounds(states)
        for place in self.working:
            if rounds[place] == round:
                state = self.program.one(states, place)
                self.runs[place].recorder.pause(state, self.seconds[place], self.compile_seconds[place])


def run_together(
    program: Program,
    runs: Sequence[Run],
    schedule: Schedule,
    *,
    capacity: int | None = None,
    file: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[State, dict[Run, DivergedError]]:
    """Bring runs of one program to the schedule's last round; the states, and the errors of runs that diverged.

    A run may stand several times in `runs`, to fill the program's places. Runs may go on from different rounds.
    capacity: rows that hold any cohort; found if not given. file: where a single run's private states lie, see
    `Simulation.init`.
    """
    loop = _Loop(program, runs, schedule, capacity)
    states = loop.begin(file)
    done = int(min(program.rounds(states)))
    on_progress(Progress(done, schedule.rounds, 0.0, {}))
    states = loop.compile(states)
    if schedule.is_due(done):
        loop.evaluate(states, done)
    # A single run begins with one round, so that progress moves early; the runs of a sweep are seen together.
    rounds_a_call, first = (1 if program.alone else schedule.rounds), (done, time.perf_counter())
    while done < schedule.rounds and loop.working:
        due = schedule.next_due(done)
        rounds = int(agreed(np.asarray(min(rounds_a_call, due - done))))  # processes differ in speed, not in rounds
        states, took = loop.advance(states, done + rounds)
        done += rounds
        if took < _CALL_SECONDS / 2:
            rounds_a_call *= 2
        elif took > 2 * _CALL_SECONDS:
            rounds_a_call = max(1, rounds_a_call // 2)
        if done == due:
            loop.evaluate(states, done)
        else:
            loop.pause(states, done)
        rate = (done - first[0]) / max(time.perf_counter() - first[1], 1e-9)
        on_progress(Progress(done, schedule.rounds, rate, dict(loop.scores)))
    return states, {runs[place]: error for place, error in loop.failed.items()}


def fit(
    program: Program,
    schedule: Schedule,
    *,
    seed: int,
    recorder: Recorder,
    params: PyTree | None = None,
    file: Path | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> State:
    """The state after a single run; see `run_together`. params: the simulation's own by default.

    Raises `DivergedError` at the first NaN or infinity, in training or in an evaluation.
    """
    run = Run(program.like, seed, program.like.params if params is None else params, recorder)
    state, failed = run_together(program, [run], schedule, file=file, on_progress=on_progress)
    if run in failed:
        raise failed[run]
    return state


def diverged(
    simulation: Simulation, scores: ClientScores, round: int, ids: Int[np.ndarray, "clients"]
) -> DivergedError:
    """The error for an evaluation that is not finite, with the first client at which it is not.

    ids: the numbers of the clients that were evaluated.
    """
    bad = np.flatnonzero((scores.count > 0) & ~np.isfinite(scores.loss))
    client = simulation.data.clients[ids[bad[0]]] if len(bad) else None
    stage = f"evaluation of model '{scores.model}' on the {scores.split} split"
    return DivergedError(
        f"{simulation.algorithm.name} diverged (NaN or infinity) in round {round}, "
        f"client '{client}', stage: {stage}; lower the learning rates",
        round=round,
        client=client,
        stage=stage,
    )
