"""Runs in MLflow: an experiment, in it a run with the report, and below that one for each method, cell and seed."""

import logging
import os
import shutil
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from idiolect.core.errors import ConfigError, StoreError, os_errors_as, reason_of
from idiolect.core.rights import make_folder
from idiolect.report.trackers.records import FIGURES, REPORT, Measured, Record, Sent
from idiolect.study.run.engine import FINISHED

INSTALL = "--mlflow needs the package 'mlflow'; install it: pip install 'idiolect[mlflow]'"
KEY, ROUND = "idiolect.key", "idiolect.round"
_BATCH = 900
"""Numbers in one message; servers take 1,000."""
_PATIENCE = 5.0
"""Seconds to wait for a server's connection."""
_LONGEST = 500
"""Characters of a setting; older servers take no more."""
_STATUS = {"done": "FINISHED", "diverged": "FAILED"}


class MLflow:
    """Writes runs where an MLflow server or its viewer reads them.

    where: a folder, which gets a database and the files; or an address as MLflow has it (http://..., sqlite:///...).
    Raises `ConfigError` if MLflow is not installed, `StoreError` if it cannot write there.
    """

    def __init__(self, where: str) -> None:
        # What a library sends its makers about its users is not for this one to start.
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        # MLflow's own are 7 retries of 120 seconds each: minutes for a server that is not there.
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
        try:
            from mlflow.exceptions import MlflowException
            from mlflow.tracking import MlflowClient
        except ImportError as error:
            raise ConfigError(INSTALL) from error
        logging.getLogger("mlflow").setLevel(logging.ERROR)
        logging.getLogger("alembic").setLevel(logging.ERROR)
        _reach(where)
        made = [] if "://" in where else [Path(where), *Path(where).parents]
        self._new = [folder for folder in made if not os.path.exists(folder)]
        address, self._files = _address(where)
        self.where = f"mlflow ui --backend-store-uri {address}" if address.startswith("sqlite:") else where
        self._errors: tuple[type[Exception], ...] = (MlflowException, OSError)
        self._experiments: dict[str, str] = {}
        self._runs: dict[str, tuple[str, Sent]] = {}
        self._parents: dict[str, str] = {}
        self._sent: set[str] = set()
        try:
            self._client: Any = MlflowClient(tracking_uri=address)
        except self._errors as error:
            raise _failed(where, error) from error

    def take(self, record: Record, measured: Measured, final: bool) -> None:
        """Send what is new of a run."""
        try:
            self._take(record, measured, final)
        except self._errors as error:
            raise _failed(self.where, error) from error

    def _take(self, record: Record, measured: Measured, final: bool) -> None:
        run, done = self._run(record)
        for round, values in measured(done):
            self._log(run, _metrics(values, round))
            done = done.after(round, values)
            self._client.set_tag(run, ROUND, done.to_text())
            self._runs[record.key] = run, done
        if not final or record.key in self._sent:
            return
        if record.models.is_dir() and not self._client.list_artifacts(run, "models"):
            self._client.log_artifacts(run, str(record.models), "models")
        if record.row.status in FINISHED:
            self._client.set_terminated(run, _STATUS[record.row.status])
            self._sent.add(record.key)

    def finish(self, folder: Path, experiment: str) -> None:
        """Send the report, its tables and figures, to the run above all others."""
        try:
            parent = self._parent(experiment)
            for name in REPORT:
                if (folder / name).is_file():
                    self._client.log_artifact(parent, str(folder / name))
            if (folder / FIGURES).is_dir():
                self._client.log_artifacts(parent, str(folder / FIGURES), FIGURES)
            self._client.set_terminated(parent, "FINISHED")
        except self._errors as error:
            raise _failed(self.where, error) from error

    def close(self) -> None:
        """Remove a folder that was made for nothing: what was asked for has been refused."""
        if self._new and not self._experiments:
            shutil.rmtree(self._new[0], ignore_errors=True)
            for folder in self._new[1:]:
                with suppress(OSError):
                    folder.rmdir()

    def _log(self, run: str, metrics: list[Any]) -> None:
        for first in range(0, len(metrics), _BATCH):
            self._client.log_batch(run, metrics=metrics[first : first + _BATCH])

    def _run(self, record: Record) -> tuple[str, Sent]:
        """(id of a record's run, how far it has it); made when there is none."""
        if record.key not in self._runs:
            found = self._search(record.experiment, record.key)
            if found is None:
                tags = {KEY: record.key, "mlflow.runName": record.row.id, **record.tags}
                tags["mlflow.parentRunId"] = self._parent(record.experiment)
                found = self._client.create_run(self._experiment(record.experiment), tags=tags)
                from mlflow.entities import Param

                params = [Param(name, text[:_LONGEST]) for name, text in record.params.items()]
                for first in range(0, len(params), 100):
                    self._client.log_batch(found.info.run_id, params=params[first : first + 100])
            self._runs[record.key] = found.info.run_id, Sent.of_text(found.data.tags.get(ROUND, "-1"))
        return self._runs[record.key]

    def _parent(self, experiment: str) -> str:
        if experiment not in self._parents:
            key = f"all of {experiment}"
            found = self._search(experiment, key)
            if found is None:
                tags = {KEY: key, "mlflow.runName": experiment, "idiolect.experiment": experiment}
                found = self._client.create_run(self._experiment(experiment), tags=tags)
            self._parents[experiment] = found.info.run_id
        return self._parents[experiment]

    def _search(self, experiment: str, key: str) -> Any:
        quoted = key.replace("'", "")
        query = f"tags.`{KEY}` = '{quoted}'"
        return next(iter(self._client.search_runs([self._experiment(experiment)], query, max_results=1)), None)

    def _experiment(self, name: str) -> str:
        if name not in self._experiments:
            found = self._client.get_experiment_by_name(name)
            if found is None:
                self._experiments[name] = self._client.create_experiment(name, artifact_location=self._files)
            else:
                self._experiments[name] = found.experiment_id
        return self._experiments[name]


def _metrics(values: dict[str, float], round: int) -> list[Any]:
    from mlflow.entities import Metric

    now = int(time.time() * 1000)
    return [Metric(_name(name), value, now, round) for name, value in values.items()]


def _name(name: str) -> str:
    """A name with the characters that MLflow allows."""
    return "".join(c if c.isalnum() or c in "_-./ " else "_" for c in name)


def _address(where: str) -> tuple[str, str | None]:
    """(tracking address, where files go; None: the server says) of a folder or an address."""
    if "://" not in where:
        folder = Path(where).absolute()
        with os_errors_as(f"--mlflow {where}"):
            make_folder(folder)
        return f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()
    if where.startswith("sqlite:///"):
        return where, (Path(where.removeprefix("sqlite:///")).absolute().parent / "artifacts").as_uri()
    return where, None


def _reach(where: str) -> None:
    """Raise `StoreError` if no server accepts a connection at an address http://... within `_PATIENCE` seconds."""
    parts = urlsplit(where)
    if parts.scheme not in ("http", "https") or not parts.hostname or getproxies():  # a proxy may reach it for us
        return
    try:
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
        socket.create_connection((parts.hostname, port), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        reason = reason_of(error)
        raise StoreError(f"MLflow at {where}: no server answers ({reason}); start it, or name another one") from error


def _failed(where: str, error: Exception) -> StoreError:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return StoreError(f"MLflow at {where}: {reason[:300]}")
