"""The process of a hub or a site, started from its kit and stopped with everything it has started."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from idiolect.core.errors import StoreError
from idiolect.core.rights import PRIVATE_UMASK, make_folder, private
from idiolect.deploy.nvflare.kits import Kit, certificate, check_installed, read_json, require_kind, write_json

_PID = "process.json"


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
        try:
            make_folder(kit.folder / name)
        except OSError as error:
            raise StoreError(f"cannot make {kit.folder / name}: {error.strerror or error}") from error
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
    try:
        with open(kit.folder / "console.txt", "wb", opener=private) as console:
            process = _begin(kit, more, console)
    except OSError as error:
        raise StoreError(f"cannot start {kit.name} in {kit.folder}: {error.strerror or error}") from error
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


def run(kit: Kit, more: Mapping[str, str] | None = None) -> int:
    """Run the kit's process until it ends or this one is stopped (SIGTERM, Ctrl-C); its exit status."""
    check_start(kit)
    process = _begin(kit, more)
    _remember(kit, process.pid)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return process.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)
        stop(kit)
        process.wait()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def running(kit: Kit) -> int | None:
    """The id of the kit's process, if `start` or `run` has started it and it lives."""
    check_installed()
    import psutil

    path = kit.folder / _PID
    if not path.is_file():
        return None
    record = read_json(path)
    try:
        process = psutil.Process(int(record["pid"]))
        same = abs(process.create_time() - float(record["created"])) < 1 and process.status() != psutil.STATUS_ZOMBIE
        return process.pid if same else None
    except (psutil.Error, KeyError, TypeError, ValueError):
        return None


def workers(kit: Kit) -> list[int]:
    """The ids of all processes that the kit's process has started, and theirs: workers of jobs and their trainers."""
    import psutil

    pid = running(kit)
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)] if pid else []
    except psutil.Error:
        return []


def stop(kit: Kit, limit: float = 10.0) -> bool:
    """Stop the kit's process and everything it has started; False if it did not run. What is left after `limit`
    seconds is killed.
    """
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
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=limit)
    (kit.folder / _PID).unlink(missing_ok=True)
    return True


def _remember(kit: Kit, pid: int) -> None:
    import psutil

    try:
        created = psutil.Process(pid).create_time()
    except psutil.Error:  # it has ended already; whoever waits for it learns so
        created = time.time()
    write_json(kit.folder / _PID, {"pid": pid, "created": created})


def last_words(kit: Kit, lines: int = 1) -> str:
    """The last lines that the kit's process has printed; "" if none."""
    path: Path = kit.folder / "console.txt"
    try:
        return "\n".join(path.read_text(errors="replace").strip().splitlines()[-lines:])
    except OSError:
        return ""
