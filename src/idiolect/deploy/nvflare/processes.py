"""The process of a hub or a site, started from its kit, watched, and stopped with everything it has started.

A file with a process's number can be older than the process: it counts only with the same time of start. Whether a
command watches a kit is a lock of the system, which ends with that command, however it ends.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from idiolect.core.errors import StoreError, os_errors_as
from idiolect.core.files import alone, json_of
from idiolect.core.rights import PRIVATE_UMASK, make_folder, private
from idiolect.deploy.nvflare.kits import Kit, certificate, check_installed, require_kind, write_json

_PID = "process.json"
_WATCHED, _STARTING = "run.lock", "start.lock"
_SOON, _OFTEN = 60.0, 5
"""A process that ends `_OFTEN` times in a row, each time within `_SOON` seconds, is not started again."""
_PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Seconds before it is started again, by how often it has ended so."""


def command(kit: Kit) -> list[str]:
    """The command line of the kit's process, what its startup/start.sh runs without the loop around it."""
    organization = certificate(kit).organization or "none"
    if kit.kind == "server":
        module, name, own = "server.server_train", "fed_server.json", []
    else:
        module, name, own = "client.client_train", "fed_client.json", [f"uid={kit.name}"]
    program = [sys.executable, "-m", f"nvflare.private.fed.app.{module}", "-m", str(kit.folder), "-s", name]
    return [*program, "--set", "secure_train=true", *own, f"org={organization}", "config_folder=config"]


def environment(kit: Kit, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of the kit's process: HOME and the temporary folder lie inside the kit."""
    for name in ("home", "tmp"):
        with os_errors_as(f"cannot make {kit.folder / name}"):
            make_folder(kit.folder / name)
    own = {"HOME": str(kit.folder / "home"), "TMPDIR": str(kit.folder / "tmp"), "PYTHONUNBUFFERED": "1"}
    # The engine answers in ever new threads: with an arena each, glibc would give little memory back.
    own["TZ"] = "UTC"  # the times in the engine's own logs
    own["MALLOC_ARENA_MAX"] = os.environ.get("MALLOC_ARENA_MAX", "2")
    return {**os.environ, **own, **(more or {})}


def check_start(kit: Kit) -> None:
    """Raise `StoreError` in one line if the process could not run: already running, certificate, name, port."""
    check_installed()
    require_kind(kit, "server", "client")
    certificate(kit)
    if (pid := running(kit)) is not None:
        raise StoreError(f"{kit.name} is running already (process {pid}); stop it first")
    try:
        socket.getaddrinfo(kit.host, kit.port, type=socket.SOCK_STREAM)
    except OSError:
        raise StoreError(
            f"the hub's name '{kit.host}' does not resolve on this machine: add it to the DNS or to /etc/hosts"
        ) from None
    if kit.kind == "server" and not port_free(kit.port):
        raise StoreError(
            f"port {kit.port} is taken on this machine: stop what listens there, or provision another port"
        )


def port_free(port: int) -> bool:
    """Whether nothing listens on a port of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port on which nothing listens now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(kit: Kit, more: Mapping[str, str] | None = None) -> int:
    """Start the kit's process in the background; its id. Its output goes to console.txt in the kit, anew each time.

    It is in a session of its own, so the end of the terminal does not end it. Raises `StoreError`: see `check_start`.
    """
    check_start(kit)
    with (
        os_errors_as(f"cannot start {kit.name} in {kit.folder}"),
        open(kit.folder / "console.txt", "wb", opener=private) as console,
    ):
        process = _begin(kit, more, console)
    _remember(kit, process.pid)
    return process.pid


def _begin(kit: Kit, more: Mapping[str, str] | None, console: BinaryIO | None = None) -> "subprocess.Popen[bytes]":
    """Begin the kit's process. Its logs, jobs and stores are for the user who runs it.

    console: where its output goes; by default to this process's own.
    """
    return subprocess.Popen(
        command(kit),
        env=environment(kit, more),
        cwd=kit.folder,
        stdin=subprocess.DEVNULL,
        stdout=console,
        stderr=console,
        start_new_session=True,
        umask=PRIVATE_UMASK,
    )


@contextmanager
def watched(kit: Kit) -> Generator[None]:
    """Be the only command that watches this kit; what a killed one has left running is ended first.

    Raises `StoreError` if another command watches it.
    """
    name = "site" if kit.kind == "client" else "hub"
    message = f"{name} '{kit.name}' is running already in {kit.folder}; end it with: idiolect {name} stop"
    with alone(kit.folder / _WATCHED, message):
        end_leftovers(kit)
        yield


def is_watched(kit: Kit) -> bool:
    """Whether a command watches this kit now."""
    lock = FileLock(kit.folder / _WATCHED, timeout=0, mode=0o600)
    try:
        lock.acquire()
    except (Timeout, OSError):
        return (kit.folder / _WATCHED).is_file()
    lock.release()
    return False


@contextmanager
def starting(kit: Kit, seconds: float = 60.0) -> Generator[None]:
    """Let only one command at a time look whether the kit's process runs, and start it.

    Raises `StoreError` if another one does so for more than `seconds`.
    """
    try:
        with FileLock(kit.folder / _STARTING, timeout=seconds, mode=0o600):
            yield
    except Timeout:
        raise StoreError(f"another command starts {kit.name} and has not ended within {seconds:g} s") from None


def run(kit: Kit, more: Mapping[str, str] | None = None, report: Callable[[str], None] = lambda _: None) -> int:
    """Run the kit's process until it ends or this one is stopped (SIGTERM, Ctrl-C); its exit status.

    One that fails or is killed is started again, with a line for `report`; its status is returned only if that
    happens again and again. To be used inside `watched`.
    """
    failed = 0
    with terminable():
        try:
            while True:
                check_start(kit)
                process, begun = _begin(kit, more), time.monotonic()
                _remember(kit, process.pid, os.getpid())
                code = process.wait()
                failed = failed + 1 if time.monotonic() - begun < _SOON else 1
                if code == 0 or failed >= _OFTEN:
                    return code
                report(f"the process of {kit.name} has ended with status {code}; it is started again")
                end_leftovers(kit)
                time.sleep(_PAUSES[failed - 1])
        except KeyboardInterrupt:
            return 0
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not break off what ends the workers
            end_leftovers(kit)


@contextmanager
def terminable() -> Generator[None]:
    """Take SIGTERM, by which services are stopped, for a Ctrl-C inside the block."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def running(kit: Kit) -> int | None:
    """The id of the kit's process, if `start` or `run` has started it and it lives."""
    check_installed()
    return _recorded(kit, "pid")


def _recorded(kit: Kit, name: str) -> int | None:
    """The id of a recorded process, if it lives and is no later one with the same number."""
    import psutil

    try:
        record = json_of((kit.folder / _PID).read_bytes())
        process = psutil.Process(int(record[name]))
        created = float(record["created" if name == "pid" else f"{name}_created"])
        same = abs(process.create_time() - created) < 1 and process.status() != psutil.STATUS_ZOMBIE
        return process.pid if same else None
    except (OSError, psutil.Error, KeyError, TypeError, ValueError):
        return None


def has_died(kit: Kit) -> bool:
    """Whether the kit's process was started and has ended, but nobody has stopped it."""
    return (kit.folder / _PID).is_file() and running(kit) is None


def end_leftovers(kit: Kit, limit: float = 10.0) -> int:
    """End all that runs of the engine for this kit, whoever started it; the number of processes.

    The workers of a process that was killed live on for seconds, next to those of the process that follows.
    """
    stop_process(kit, limit)
    import psutil

    left = list[psutil.Process]()
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if str(kit.folder) in line and any(word.startswith("nvflare.private") for word in line):
            left += [process, *_children(process)]
    _kill(left, limit)
    return len(left)


def _children(process: Any) -> list[Any]:
    import psutil

    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _kill(processes: Sequence[Any], limit: float) -> None:
    import psutil

    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=limit)


def workers(kit: Kit) -> list[int]:
    """The ids of all processes that the kit's process has started, and theirs: workers of jobs and their trainers."""
    import psutil

    pid = running(kit)
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)] if pid else []
    except psutil.Error:
        return []


def stop(kit: Kit, limit: float = 10.0) -> bool:
    """Stop the kit's process, all that it has started, and the command that watches it; False if none ran.

    What is left after `limit` seconds is killed.
    """
    check_installed()
    import psutil

    watcher = _recorded(kit, "by")
    if watcher is not None and watcher != os.getpid():
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(watcher)
            process.terminate()  # it ends the others itself
            psutil.wait_procs([process], timeout=limit)
    return stop_process(kit, limit) or watcher is not None


def stop_process(kit: Kit, limit: float = 10.0) -> bool:
    """Stop the kit's process and all that it has started; False if it did not run. limit: see `stop`."""
    check_installed()
    import psutil

    pid = running(kit)
    if pid is None:
        (kit.folder / _PID).unlink(missing_ok=True)
        return False
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        children = parent.children(recursive=True)
        parent.terminate()
        for child in children:  # a worker would continue for 15 s
            with contextlib.suppress(psutil.Error):
                child.kill()
        _, left = psutil.wait_procs([parent, *children], timeout=limit)
        _kill(left, limit)
    (kit.folder / _PID).unlink(missing_ok=True)
    return True


def _remember(kit: Kit, pid: int, by: int | None = None) -> None:
    """Note the process, and the command that watches it if there is one."""
    record = {"pid": pid, "created": _created(pid)}
    write_json(kit.folder / _PID, record if by is None else {**record, "by": by, "by_created": _created(by)})


def _created(pid: int) -> float:
    import psutil

    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:  # it has ended already; whoever waits for it learns so
        return time.time()
