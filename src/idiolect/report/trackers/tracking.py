"""Sends a folder's runs to trackers: once, or every few seconds while they are at work."""

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from idiolect.core.errors import IdiolectError, StoreError
from idiolect.core.repeating import repeating
from idiolect.deploy.hub.config import FILE as HUB
from idiolect.deploy.site.config import FILE as SITE
from idiolect.report.trackers.records import Tracker, measured_of, records
from idiolect.report.view.from_csv import CLIENTS, OWN_SAMPLES, TABLE
from idiolect.study.run.engine import FINISHED
from idiolect.study.store.store import DATABASE, Store

_NEWCOMERS = "holds models of new clients, who have no rounds of their own; name the run's folder that they came from"
_BY_FILE = {
    "advice.md": "holds an advice, which keeps no runs; run what it recommends with idiolect compare, and track that",
    SITE: "is a site's folder; its scores are recorded at the hub; name the hub's folder",
    HUB: "is a hub's folder, and no round was run yet; start it with idiolect hub run, or federate",
    TABLE: "has only CSV files, without rounds; name the folder of the runs that they were made of",
    OWN_SAMPLES: _NEWCOMERS,
    CLIENTS: _NEWCOMERS,
}
"""What the first of these files that is there says of a folder."""


def why_not(folder: Path) -> str:
    """Why a folder has nothing to send, in one line."""
    found = (why for file, why in _BY_FILE.items() if (folder / file).is_file())
    return next((f"'{folder}' {why}" for why in found), f"no runs in '{folder}': it has no {DATABASE}")


EVERY = 10.0
"""Seconds between two exports of runs at work."""


def trackers_of(mlflow: str | None, tensorboard: str | None) -> list[Tracker]:
    """The trackers that options name; raises as they do."""
    found: list[Tracker] = []
    if tensorboard:
        from idiolect.report.trackers.tensorboard import TensorBoard

        found.append(TensorBoard(tensorboard))
    if mlflow:
        from idiolect.report.trackers.mlflow import MLflow  # imported only when asked for: it loads for seconds

        found.insert(0, MLflow(mlflow))  # made last: it makes a folder, the other one may be refused
    return found


def export(folder: Path, trackers: Sequence[Tracker], *, final: bool) -> int:
    """Send what is new of a folder's runs; returns how many runs it has. final: with files, of runs that have ended.

    Raises `StoreError` if the folder holds no runs, or a tracker cannot take them.
    """
    if not (folder / DATABASE).is_file():
        from idiolect.report.trackers.tracking import why_not  # here: it loads slowly, and no run needs it

        raise StoreError(why_not(folder))
    with Store(folder, create=False) as store:
        found = records(store)
        for tracker in trackers:
            for record in found:
                ended = record.row.status in FINISHED
                tracker.take(record, partial(measured_of, store, record.row.id), final and ended)
            if final and found:
                tracker.finish(folder, found[0].experiment)
    return len(found)


@contextmanager
def tracked(folder: Path, trackers: Sequence[Tracker]) -> Generator[None]:
    """Export the folder's runs while the block works on them, and all of them when it ends.

    A tracker that fails meanwhile stops no run: the failure is reported once, and it is tried again. Raises
    `StoreError` if the last export fails; the folder has everything.
    """
    if not trackers:
        yield
        return
    told = set[str]()

    def send() -> None:
        try:
            if (folder / DATABASE).is_file():
                export(folder, trackers, final=False)
        except IdiolectError as error:
            if str(error) not in told:
                told.add(str(error))
                print(f"note: {error}; it is tried again", file=sys.stderr, flush=True)

    try:
        with repeating(send, EVERY):
            yield
    finally:
        try:
            if (folder / DATABASE).is_file():
                export(folder, trackers, final=True)
        except StoreError as error:
            raise StoreError(f"{error}; the runs are in '{folder}': 'idiolect track' sends them later") from error
        finally:
            for tracker in trackers:
                tracker.close()
