"""What keeps a run in a store while it goes on."""

import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from idiolect.core.errors import StoreError
from idiolect.metrics.base import Metric
from idiolect.runtime.checkpoint import Checkpoint, load_checkpoint, plain, save_checkpoint, with_key
from idiolect.runtime.devices import agreed
from idiolect.runtime.plan import State
from idiolect.runtime.private_rows import PrivateRows
from idiolect.study.experiment import digest
from idiolect.study.recording import Evaluated, Recorder
from idiolect.study.schedule import Schedule
from idiolect.study.store import RunRow, Store

_CHECKPOINT_SECONDS = 5.0
_CHECKPOINT_SHARE = 20  # checkpoints take at most this part of the time


class StoreRecorder:
    """Keeps a run in a store: metrics in SQLite, then the checkpoint.

    metric: by which validation data choose a round, whose state is kept too; None where they do not.
    """

    def __init__(self, store: Store, run: RunRow, schedule: Schedule, metric: Metric | None = None) -> None:
        self.store, self.run, self.schedule, self.metric = store, run, schedule, metric
        self.path = store.checkpoint_path(run.id)
        self.hash = digest(run.config_hash, run.data_hash)
        self.best: dict[str, float] = {}
        self._next = 0.0

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """The checkpoint's state; evaluations beyond it are forgotten and will be made again."""
        found = load_checkpoint(self.path, like, self.hash)
        if found is not None and not self._recorded(int(found.state.round)):
            found = None  # the metrics were lost: what led to this state must be computed again
        self.store.rewind(self.run.id, int(found.state.round) if found is not None else -1)
        if found is None:
            if isinstance(like.private, PrivateRows):
                like.private.clear()
            return None
        if self.metric is not None:
            for model in self.store.models(self.run.id):
                for _, score, _ in self.store.curve(self.run.id, model, "validation", self.metric.name):
                    self._improves(model, score)
        return found.state, found.seconds, found.compile_seconds

    def _recorded(self, round: int) -> bool:
        """Whether the store has every evaluation up to `round`."""
        due = {earlier for earlier in range(round + 1) if self.schedule.is_due(earlier)}
        return due <= {*self.store.evaluated(self.run.id)}

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """Whether the store holds the evaluation of a round on these splits."""
        return {*splits} <= {*self.store.evaluated_splits(self.run.id, round)}

    def _improves(self, model: str, score: float) -> bool:
        if self.metric is None or (model in self.best and not self.metric.better(score, self.best[model])):
            return False
        self.best[model] = score
        return True

    def best_path(self, model: str) -> Path:
        """The checkpoint of the round that was best on validation data for one named model."""
        return self.path.with_name(f"{self.path.stem}.best-{model}.eqx")

    def chosen(self, model: str, last: State) -> State:
        """The state of the round that the cell's selection chooses for a named model."""
        if self.metric is None:
            return last
        found = load_checkpoint(self.best_path(model), last, self.hash)
        if found is None:
            raise StoreError(f"{self.best_path(model)} is missing; delete {self.path} to start this run again")
        return found.state

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """Metrics first, then the checkpoint: at the end, and else every few seconds."""
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
        """Between evaluations: a checkpoint every few seconds."""
        self._save(Checkpoint(state, seconds, compile_seconds))

    def _save(self, checkpoint: Checkpoint, now: bool = False) -> None:
        began = time.monotonic()
        if not now and began < self._next:
            return
        save_checkpoint(self.path, checkpoint, self.hash)
        ended = time.monotonic()
        self._next = ended + max(_CHECKPOINT_SECONDS, _CHECKPOINT_SHARE * (ended - began))


class Together:
    """A run of several processes: the leader's recorder keeps it, and all go on from what that gives back."""

    def __init__(self, own: Recorder | None) -> None:
        self.own = own

    def restore(self, like: State) -> tuple[State, float, float] | None:
        """The leader's state, in every process."""
        found = None if self.own is None else self.own.restore(like)
        if not agreed(np.asarray(found is not None)):
            return None
        state, *seconds = found or (like, 0.0, 0.0)
        spent, compiling = (float(s) for s in agreed(np.asarray(seconds)))
        return everywhere(state), spent, compiling

    def has(self, round: int, splits: Sequence[str]) -> bool:
        """What the leader's recorder holds."""
        return bool(agreed(np.asarray(self.own is not None and self.own.has(round, splits))))

    def keep(self, evaluated: Evaluated, last: bool) -> None:
        """The leader keeps it."""
        if self.own is not None:
            self.own.keep(evaluated, last)

    def pause(self, state: State, seconds: float, compile_seconds: float) -> None:
        """The leader keeps it."""
        if self.own is not None:
            self.own.pause(state, seconds, compile_seconds)


def everywhere(state: State) -> State:
    """The leader's state, in every process."""
    if jax.process_count() == 1:
        return state
    return with_key(agreed(jax.tree.map(np.asarray, plain(state))))
