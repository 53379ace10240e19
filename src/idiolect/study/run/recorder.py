"""Recorders that write a run to a store while it runs."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from idiolect.core.errors import StoreError
from idiolect.metrics.base import Metric
from idiolect.runtime.checkpoint import Checkpoint, load_checkpoint, plain, save_checkpoint, with_key
from idiolect.runtime.devices import agreed, agreed_text
from idiolect.runtime.private_rows import PrivateRows
from idiolect.runtime.round import State
from idiolect.study.run.recording import Evaluated, Recorder, Schedule
from idiolect.study.spec.experiment import digest
from idiolect.study.store.store import RunRow, Store

_CHECKPOINT_SECONDS = 5.0  # between two checkpoints, at least
_CHECKPOINT_SHARE = 20  # checkpoints take at most 1/20 of the time


class StoreRecorder:
    """Writes a run to a store: the metrics to SQLite, then the checkpoint.

    metric: chooses the best round on validation data, whose state is saved too; None: no round is chosen so.
    """

    def __init__(self, store: Store, run: RunRow, schedule: Schedule, metric: Metric | None = None) -> None:
        self.store, self.run, self.schedule, self.metric = store, run, schedule, metric
        self.path = store.checkpoint_path(run.id)
        self.hash = digest(run.config_hash, run.data_hash)
        self.best: dict[str, float] = {}
        self._next = 0.0

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """Load the checkpoint: (state, training seconds, compile seconds), or None to start anew.

        Evaluations after the checkpoint are deleted; they will be computed again.
        """
        checkpoint = load_checkpoint(self.path, like, self.hash)
        if checkpoint is not None and not self._recorded(int(checkpoint.state.round)):
            checkpoint = None  # evaluations before it were lost: compute them again
        self.store.rewind(self.run.id, int(checkpoint.state.round) if checkpoint is not None else -1)
        if checkpoint is None:
            if isinstance(like.private, PrivateRows):
                like.private.clear()
            return None
        if self.metric is not None:
            for model in self.store.models(self.run.id):
                for _, score, _ in self.store.curve(self.run.id, model, "validation", self.metric.name):
                    self._improves(model, score)
        return checkpoint.state, checkpoint.seconds, checkpoint.compile_seconds

    def _recorded(self, round: int) -> bool:
        """Whether the store has every evaluation up to `round`."""
        due = {earlier for earlier in range(round + 1) if self.schedule.is_due(earlier)}
        return due <= {*self.store.evaluated(self.run.id)}

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Whether the store holds the evaluation of this round on these splits."""
        return {*splits} <= {*self.store.evaluated_splits(self.run.id, round)}

    def _improves(self, model: str, score: float) -> bool:
        """Note a validation score; returns whether it is the best so far."""
        if self.metric is None or (model in self.best and not self.metric.better(score, self.best[model])):
            return False
        self.best[model] = score
        return True

    def best_path(self, model: str) -> Path:
        """The checkpoint file of a named model's best round on validation data."""
        return self.path.with_name(f"{self.path.stem}.best-{model}.eqx")

    def chosen(self, model: str, last: State) -> State:
        """Load the state of a named model's selected round. Raises `StoreError` if its checkpoint is missing."""
        if self.metric is None:
            return last
        checkpoint = load_checkpoint(self.best_path(model), last, self.hash)
        if checkpoint is None:
            raise StoreError(f"{self.best_path(model)} is missing; delete {self.path} to start this run again")
        return checkpoint.state

    def losses(self) -> dict[str, list[float]]:
        """Every named model's pooled validation loss at all recorded evaluations, in order."""
        return self.store.losses(self.run.id, "validation")

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Record the metrics, then save a checkpoint: at the end, else every few seconds."""
        checkpoint = Checkpoint(evaluated.state, evaluated.seconds, evaluated.compile_seconds)
        if self.metric is not None:
            for scores, summary in evaluated.results:
                if scores.split == "validation" and self._improves(scores.model, summary.pooled):
                    save_checkpoint(self.best_path(scores.model), checkpoint, self.hash)
        self.store.record(
            self.run.id,
            evaluated.round,
            [scores for scores, _ in evaluated.results],
            seconds=evaluated.seconds,
            compile_seconds=evaluated.compile_seconds,
            diagnostics=evaluated.diagnostics,
        )
        self._save(checkpoint, now=last)

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """Save a checkpoint every few seconds, between evaluations."""
        self._save(Checkpoint(state, seconds, compile_seconds))

    def _save(self, checkpoint: Checkpoint, now: bool = False) -> None:
        began = time.monotonic()
        if not now and began < self._next:
            return
        save_checkpoint(self.path, checkpoint, self.hash)
        ended = time.monotonic()
        self._next = ended + max(_CHECKPOINT_SECONDS, _CHECKPOINT_SHARE * (ended - began))


class Together:
    """The recorder of a distributed run: the leader's own recorder writes, and all processes restore its state."""

    def __init__(self, own: Recorder | None) -> None:
        self.own = own

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """Restore the leader's state in every process."""
        restored = None if self.own is None else self.own.restore(like)
        if not agreed(np.asarray(restored is not None)):
            return None
        state, *seconds = restored or (like, 0.0, 0.0)
        spent, compiling = (float(s) for s in agreed(np.asarray(seconds)))
        return everywhere(state), spent, compiling

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Whether the leader's recorder holds this evaluation."""
        return bool(agreed(np.asarray(self.own is not None and self.own.has(round, splits))))

    def losses(self) -> dict[str, list[float]]:
        """The leader's validation losses."""
        own = {} if self.own is None else {name: list(course) for name, course in self.own.losses().items()}
        return own if jax.process_count() == 1 else json.loads(agreed_text(json.dumps(own)))

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Record an evaluated round, in the leader."""
        if self.own is not None:
            self.own.keep(evaluated, last)

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """Let the leader save a checkpoint."""
        if self.own is not None:
            self.own.pause(state, seconds, compile_seconds)


def everywhere(state: State) -> State:
    """Broadcast the leader's state to every process."""
    if jax.process_count() == 1:
        return state
    return with_key(agreed(jax.tree.map(np.asarray, plain(state))))
