"""The training loop: rounds, evaluations between them, and recorders that store both.

The members of one program run together; a single run is a program with one member. The order is always the same: an
evaluation is recorded first, then the state from which a killed run resumes.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Int, PyTree

from idiolect.algorithms.base import diagnostics_of
from idiolect.core.errors import DivergedError
from idiolect.runtime.devices import agreed
from idiolect.runtime.evaluate import ClientScores
from idiolect.runtime.program import Program
from idiolect.runtime.round import State
from idiolect.runtime.simulate import Simulation
from idiolect.study.run.recording import Evaluated, Progress, Recorder, Schedule
from idiolect.study.store.summary import summarise

_CALL_SECONDS = 0.5  # length of one compiled call, about: progress is shown after each


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a program. row: its index among the program's members."""

    simulation: Simulation
    seed: int
    params: PyTree
    recorder: Recorder
    row: int = 0


class _Loop:
    """The runs in progress.

    A place is an index into `runs` and into the stacked states. A run that occurs several times, to fill the program,
    is tracked at its first place.
    """

    def __init__(self, program: Program, runs: Sequence[Run], schedule: Schedule, capacity: int | None) -> None:
        self.program, self.runs, self.schedule = program, runs, schedule
        self.rows = [run.row for run in runs]
        seeds = [run.seed for run in runs]
        self.capacity = program.capacity(seeds, schedule.rounds) if capacity is None else capacity
        self.places = [place for place, run in enumerate(runs) if runs.index(run) == place]
        self.failed: dict[int, DivergedError] = {}
        self.seconds, self.compile_seconds = dict.fromkeys(self.places, 0.0), dict.fromkeys(self.places, 0.0)
        self.scores: dict[str, float] = {}
        self.stopped: set[int] = set()

    @property
    def working(self) -> list[int]:
        """The places of the runs that have neither diverged nor stopped early."""
        return [place for place in self.places if place not in self.failed and place not in self.stopped]

    def begin(self, file: Path | None) -> State:
        """Restore every run's state, or make its initial state."""
        runs, program = self.runs, self.program
        simulations, seeds = [run.simulation for run in runs], [run.seed for run in runs]
        states = program.start(simulations, seeds, [run.params for run in runs], file)
        state_of = {runs[place]: program.one(states, place) for place in self.places}
        checkpoints = {place: runs[place].recorder.restore(state_of[runs[place]]) for place in self.places}
        for place, restored in checkpoints.items():
            if restored is not None:
                state_of[runs[place]], self.seconds[place], self.compile_seconds[place] = restored
        if any(restored is not None for restored in checkpoints.values()):
            states = program.joined([state_of[run] for run in runs])
        return states

    def compile(self, states: State) -> State:
        """Compile the training program; returns the states unchanged."""
        began = time.perf_counter()
        states = self.program.advance(self.rows, states, 0, self.capacity)  # runs no round
        jax.block_until_ready(states.shared)
        share = (time.perf_counter() - began) / len(self.places)
        self.compile_seconds = {place: seconds + share for place, seconds in self.compile_seconds.items()}
        return states

    def advance(self, states: State, end: int) -> tuple[State, float]:
        """Run all runs to round `end`; returns (states, seconds taken). Runs that diverge are noted in `failed`."""
        before, began = self.program.rounds(states), time.perf_counter()
        states = self.program.advance(self.rows, states, end, self.capacity)
        jax.block_until_ready(states.shared)
        rounds, took = self.program.rounds(states), time.perf_counter() - began
        faults = np.asarray(states.fault).reshape(-1, 3)  # read at once: only a member with a fault is gathered
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
        """Evaluate and record the runs that are in this round, unless it is recorded already."""
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
            not_finite = next((s for s, summary in results if not math.isfinite(summary.loss)), None)
            if not_finite is not None:
                self.failed[place] = diverged(simulation, not_finite, round, program.evaluator.ids)
                continue
            self.scores.update({s.model: summary.pooled for s, summary in results if s.split == "test"})
            times = self.seconds[place], self.compile_seconds[place]
            values = diagnostics_of(simulation.algorithm, state.shared)
            recorder = self.runs[place].recorder
            before = recorder.losses() if schedule.until_settled else {}
            losses = {name: list(course) for name, course in before.items()}
            for scores_of, summary in results:
                if scores_of.split == "validation":
                    losses.setdefault(scores_of.model, []).append(summary.loss)
            recorder.keep(Evaluated(round, results, state, *times, values), schedule.is_over(round, losses))

    def stop(self, states: State, round: int) -> None:
        """Note the runs that end with this evaluated round, by what is recorded only: a resumed run does the same."""
        rounds = self.program.rounds(states)
        self.stopped |= {
            place
            for place in self.working
            if rounds[place] == round and self.schedule.is_over(round, self.runs[place].recorder.losses())
        }

    def pause(self, states: State, round: int) -> None:
        """Let the recorders of the runs in this round save a checkpoint."""
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
    """Run the members of one program to the schedule's last round; returns (states, errors of diverged runs).

    A run may occur several times in `runs`, to fill the program's places. Runs may resume from different rounds.
    capacity: rows that hold the largest cohort; computed if not given. file: holds a single run's private states, see
    `Simulation.init`.
    """
    loop = _Loop(program, runs, schedule, capacity)
    states = loop.begin(file)
    done = int(min(program.rounds(states)))
    on_progress(Progress(done, schedule.rounds, 0.0, {}))
    states = loop.compile(states)
    if schedule.is_due(done):
        loop.evaluate(states, done)
        if schedule.until_settled:
            loop.stop(states, done)
    # A single run begins with one round, to show progress early; a sweep shows the progress of all its runs together.
    rounds_a_call, begun = (1 if len(runs) == 1 else schedule.rounds), (done, time.perf_counter())
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
            if schedule.until_settled:
                loop.stop(states, done)
        else:
            loop.pause(states, done)
        rate = (done - begun[0]) / max(time.perf_counter() - begun[1], 1e-9)
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
    """Run a single run to its end and return the last state; see `run_together`.

    params: initial parameters, by default the simulation's. Raises `DivergedError` at the first NaN or infinity, in
    training or in an evaluation.
    """
    run = Run(program.like, seed, program.like.params if params is None else params, recorder)
    state, failed = run_together(program, [run], schedule, file=file, on_progress=on_progress)
    if run in failed:
        raise failed[run]
    return state


def diverged(
    simulation: Simulation, scores: ClientScores, round: int, ids: Int[np.ndarray, "clients"]
) -> DivergedError:
    """Build the error for an evaluation with NaN or infinity; it names the first such client.

    ids: the numbers of the evaluated clients.
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
