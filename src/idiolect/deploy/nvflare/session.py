"""An administrator's session with the hub's engine; every error of the engine is one line."""

import contextlib
import hashlib
import io
import logging
import socket
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from idiolect.core.errors import ConfigError, StoreError
from idiolect.core.rights import restrict
from idiolect.deploy.nvflare.kits import Kit, certificate, check_installed, require_kind

SILENT = 30.0  # seconds without a heartbeat after which a site counts as gone; the engine waits for 600
_LOOK = 0.1  # seconds between two checks whether the hub listens

_OTHER_FORM = "the hub's engine answers in another form: nvflare 2.9 is needed there and here"

T = TypeVar("T")


class LostError(StoreError):
    """The hub does not answer, or has ended the session: open another one."""


@dataclass(frozen=True)
class Status:
    """What the hub says. sites: each registered one's registration, a new text whenever its process was started anew;
    running: ids of jobs; since: start of the hub's process, in s.
    """

    sites: Mapping[str, str]
    running: tuple[str, ...]
    since: float


class Session:
    """Commands to the hub. Raises `LostError` if it does not answer, `StoreError` for what it refuses."""

    def __init__(self, engine: Any, kit: Kit) -> None:
        self._engine, self._kit = engine, kit

    def status(self) -> Status:
        """The registered sites and the running jobs."""
        # What Session.get_system_info reads, but it leaves out the registrations.
        answer = self._do(lambda: self._engine._do_command("check_status server"))
        try:
            return read_status(answer)
        except (KeyError, IndexError, TypeError, ValueError):
            raise StoreError(_OTHER_FORM) from None

    def submit(self, job: Path, token: str) -> str:
        """Submit a job's folder; its id. The same token again is the same job, submitted once."""
        path = str(Path(job).absolute())  # the engine would look for a relative one in the administrator's kit
        try:
            return str(self._do(lambda: self._engine.submit_job(path, submit_token=token)))
        finally:
            restrict(Path(path))  # the engine has signed the files, with the rights that the umask gives

    def job_status(self, job: str) -> str:
        """As the engine's store has it: RUNNING, FINISHED:COMPLETED, ..."""
        return str(self._do(lambda: self._engine.get_job_meta(job))["status"])

    def job_sites(self, job: str) -> dict[str, str]:
        """What became of the job's start at each site and at the hub ("server"): OK, or why not."""
        lines = self._do(lambda: self._engine.get_job_meta(job)).get("job_deploy_detail") or []
        return {name.strip(): why.strip() for name, _, why in (line.partition(":") for line in lines)}

    def unfinished(self, prefix: str) -> tuple[str, ...]:
        """The ids of the jobs whose name begins so and that have not finished; some may wait for their turn."""
        jobs = self._do(lambda: self._engine.list_jobs(name_prefix=prefix))
        try:
            return tuple(str(job["job_id"]) for job in jobs if not str(job["status"]).startswith("FINISHED"))
        except (KeyError, TypeError):
            raise StoreError(_OTHER_FORM) from None

    def abort(self, job: str) -> None:
        """End a job; a job that does not run is no error."""
        with contextlib.suppress(_NotRunning):
            self._do(lambda: self._engine.abort_job(job))

    def disable(self, site: str) -> None:
        """Let the hub drop a site now, and refuse its registration from now on."""
        self._do(lambda: self._engine.disable_client(site))

    def log(self, job: str, lines: int = 20) -> str:
        """The last lines of a job's log at the hub."""
        answer = self._do(lambda: self._engine.get_job_logs(job, target="server", tail_lines=lines))
        return str((answer.get("logs") or {}).get("server", ""))

    def close(self) -> None:
        """End the session. One left open keeps this process alive for ever, once the hub is gone."""
        with contextlib.suppress(Exception):
            self._engine.close()

    def _do(self, call: Callable[[], T]) -> T:
        with _mapped(self._kit):
            return call()


def read_status(answer: Mapping[str, Any]) -> Status:
    """The status in the engine's answer. A site that has been silent for `SILENT` seconds is not registered."""
    meta, tables = answer["meta"], [part["rows"] for part in answer["data"] if part["type"] == "table"]
    now = datetime.fromisoformat(answer["time"]).timestamp()
    seen = {client["client_name"]: float(client["client_last_conn_time"]) for client in meta.get("clients") or []}
    # The hub's clock on both sides, but its text names no zone: zones differ by multiples of 900 s.
    here = {name for name, last in seen.items() if (now - last + 1) % 900 < SILENT}
    marks: dict[str, str] = {}
    for rows in tables:
        if rows and "TOKEN" in rows[0]:
            column = rows[0].index("TOKEN")
            marks |= {row[0]: hashlib.sha256(row[column].encode()).hexdigest()[:12] for row in rows[1:]}
    sites = {name: marks[name] for name in sorted(here & marks.keys())}
    return Status(sites, tuple(job["job_id"] for job in meta.get("jobs") or []), float(meta["server_start_time"]))


class _NotRunning(StoreError):
    pass


@contextmanager
def session(kit: Kit, timeout: float = 10.0) -> Generator[Session, None, None]:
    """A session with an administrator's kit, closed at the end of the block. Raises as `open_session`."""
    opened = open_session(kit, timeout)
    try:
        yield opened
    finally:
        opened.close()


def open_session(kit: Kit, timeout: float = 10.0) -> Session:
    """A session that the caller closes. Raises `LostError` if the hub cannot be reached within `timeout` seconds,
    `StoreError` if it refuses the certificate, `ConfigError` for another kit.
    """
    check_installed()
    require_kind(kit, "admin")
    certificate(kit)
    from nvflare.fuel.flare_api.flare_api import new_secure_session
    from nvflare.fuel.utils.config_service import ConfigService

    # Otherwise the engine searches for its settings in everything below the current folder, and takes what it finds.
    ConfigService.initialize({}, [str(kit.folder / "startup")])
    wait_for_port(kit.host, kit.port, timeout)
    with _mapped(kit), contextlib.redirect_stdout(io.StringIO()):  # the engine prints that it connects
        logging.getLogger("nvflare").setLevel(logging.CRITICAL)
        return Session(new_secure_session(kit.name, str(kit.folder), timeout=timeout), kit)


def wait_for_port(host: str, port: int, timeout: float) -> None:
    """Wait until a hub that is starting listens: the engine's own next try would come seconds later."""
    end = time.monotonic() + timeout
    while True:
        try:
            with socket.create_connection((host, port), timeout=max(end - time.monotonic(), _LOOK)):
                return
        except OSError as error:
            if time.monotonic() >= end:
                reason = error.strerror or type(error).__name__
                raise LostError(
                    f"the hub at {host}:{port} does not answer: is it running, and is the port open? ({reason})"
                ) from None
            time.sleep(_LOOK)


@contextmanager
def _mapped(kit: Kit) -> Generator[None, None, None]:
    """Turn the engine's exceptions into one-line errors."""
    from nvflare.fuel.flare_api import api_spec as api

    hub = f"the hub at {kit.host}:{kit.port}"
    try:
        yield
    except (api.NoConnection, api.SessionClosed, api.NoReply, ConnectionError, TimeoutError) as error:
        raise LostError(f"{hub} does not answer: is it running, and is the port open? ({_line(error)})") from None
    except api.AuthenticationError as error:
        raise StoreError(f"{hub} refused the certificate of {kit.name} ({_line(error)})") from None
    except api.AuthorizationError as error:
        raise StoreError(f"{hub} does not permit that to {kit.name} ({_line(error)})") from None
    except (api.InvalidJobDefinition, api.InvalidArgumentError) as error:
        raise ConfigError(f"{hub} takes no such job ({_line(error)})") from None
    except (api.JobNotRunning, api.JobNotDone, api.JobNotFound) as error:
        raise _NotRunning(f"{hub} has no such job now ({_line(error)})") from None
    except Exception as error:
        text = _line(error)
        if "is not running" in text:
            raise _NotRunning(f"{hub} has no such job now ({text})") from None
        if isinstance(error, (ConfigError, StoreError)):
            raise
        raise LostError(f"{hub} answered with an error of its engine ({text})") from None


def _line(error: BaseException) -> str:
    return ((str(error).strip().splitlines() or [""])[0] or type(error).__name__)[:200]
