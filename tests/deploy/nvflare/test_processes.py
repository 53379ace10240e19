import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

pytest.importorskip("nvflare")

import idiolect.deploy.nvflare.processes as processes
from idiolect.core.errors import StoreError
from idiolect.deploy.nvflare.kits import Kit, read_kit
from tests.deploy.nvflare.made import site_kit

PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("started", flush=True)
time.sleep(60)
"""


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return read_kit(site_kit(tmp_path / "k", start=datetime.now(UTC)))


def printed(kit: Kit) -> str:
    """What the kit's process has printed; "" before it has."""
    console = kit.folder / "console.txt"
    return console.read_text().strip() if console.exists() else ""


def test_stop_ends_what_was_started_and_what_that_has_started(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "command", lambda kit: [sys.executable, "-c", PARENT])
    pid = processes.start(kit)
    end = time.monotonic() + 10
    # It says that it has started after it has begun its own process.
    while (len(processes.workers(kit)) < 1 or not printed(kit)) and time.monotonic() < end:
        time.sleep(0.02)
    (child,) = processes.workers(kit)
    assert processes.running(kit) == pid
    with pytest.raises(StoreError, match=f"site-1 is running already \\(process {pid}\\)"):
        processes.start(kit)
    assert processes.stop(kit)
    assert processes.running(kit) is None
    assert subprocess.run(["ps", "-p", str(child), "-o", "stat="], capture_output=True, text=True).stdout[:1] in (
        "",
        "Z",
    )
    assert not processes.stop(kit)
    assert printed(kit) == "started"


FAILS = "import os, sys, time; open(sys.argv[1], 'a').write('x'); time.sleep(.05); sys.exit(int(sys.argv[2]))"


def watching(kit: Kit, more: str = "") -> "subprocess.Popen[str]":
    """`idiolect site run` in a process of its own, with an engine of a few lines."""
    code = (
        "import sys; from pathlib import Path\n"
        "import idiolect.deploy.nvflare.processes as processes\n"
        "from idiolect.deploy.nvflare.kits import read_kit\n"
        "kit = read_kit(Path(sys.argv[1]))\n"
        "code = 'import time; time.sleep(60)'\n"
        "engine = [sys.executable, '-c', code, str(kit.folder), 'nvflare.private.stand_in']\n"
        "processes.command = lambda kit: engine\n"
        f"{more}\n"
        "with processes.watched(kit):\n"
        "    print('watches', flush=True)\n"
        "    sys.exit(processes.run(kit, report=lambda line: print(line, flush=True)))"
    )
    command = [sys.executable, "-c", code, str(kit.folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def started(kit: Kit, old: int | None = None) -> int:
    """The engine's process, when there is a new one."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        pid = processes.running(kit)
        if pid is not None and pid != old:
            return pid
        time.sleep(0.02)
    raise AssertionError("it was not started")


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_a_killed_run_starts_again_without_a_step_by_hand_and_ends_what_it_left(kit: Kit) -> None:
    first = watching(kit)
    engine = started(kit)
    assert processes.is_watched(kit)
    second = watching(kit)
    assert second.wait(20) == 1  # refused, and nothing was ended
    assert processes.running(kit) == engine
    first.kill()
    first.wait()
    assert processes.running(kit) == engine  # the engine lives on without who watches it
    assert not processes.is_watched(kit)
    third = watching(kit)
    again = started(kit, engine)
    assert gone(engine)
    assert processes.stop(kit)
    assert third.wait(20) == 0
    assert gone(again)
    assert not processes.is_watched(kit)
    assert not processes.stop(kit)


def test_an_engine_that_is_killed_is_started_again(kit: Kit) -> None:
    watcher = watching(kit, "processes._PAUSES = (0.01,) * 5")
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == "watches\n"
    engine = started(kit)
    os.kill(engine, signal.SIGKILL)
    again = started(kit, engine)
    assert watcher.stdout.readline() == "the process of site-1 has ended with status -9; it is started again\n"
    watcher.terminate()
    assert watcher.wait(20) == 0
    assert gone(again)


def test_an_engine_that_ends_again_and_again_is_given_up(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    count = kit.folder / "count"
    monkeypatch.setattr(processes, "_PAUSES", (0.0,) * 5)
    monkeypatch.setattr(processes, "command", lambda kit: [sys.executable, "-c", FAILS, str(count), "3"])
    with processes.watched(kit):
        assert processes.run(kit, report=told.append) == 3
    assert (count.read_text(), len(told)) == ("xxxxx", 4)
    monkeypatch.setattr(processes, "command", lambda kit: [sys.executable, "-c", FAILS, str(count), "0"])
    assert processes.run(kit) == 0
    assert len(count.read_text()) == 6


def test_workers_of_an_engine_that_was_killed_are_found_and_those_of_other_kits_are_left(
    kit: Kit, tmp_path: Path
) -> None:
    other = read_kit(site_kit(tmp_path / "k2", start=datetime.now(UTC)))
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    names = [(str(kit.folder), "nvflare.private.worker"), (str(other.folder), "nvflare.private.worker")]
    names += [(str(kit.folder), "an-editor"), (f"{kit.folder}/more", "nvflare.private.worker")]
    started = [subprocess.Popen([*sleep, *name]) for name in names]
    try:
        assert processes.end_leftovers(kit) == 1
        assert [process.poll() is None for process in started] == [False, True, True, True]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_home_and_temporary_folder_lie_inside_the_kit(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = processes.environment(kit, {"A": "b"})
    assert environment["A"] == "b"
    assert environment["MALLOC_ARENA_MAX"] == "2"
    monkeypatch.setenv("MALLOC_ARENA_MAX", "3")
    assert processes.environment(kit)["MALLOC_ARENA_MAX"] == "3"
    for name in ("HOME", "TMPDIR"):
        assert Path(environment[name]).is_relative_to(kit.folder)
        assert Path(environment[name]).is_dir()


def test_a_name_that_does_not_resolve_is_one_line(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise socket.gaierror("no such name")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(StoreError, match="the hub's name 'localhost' does not resolve"):
        processes.check_start(kit)


def test_a_taken_port_is_seen() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert not processes.port_free(taken.getsockname()[1])
    assert processes.port_free(processes.free_port())


def test_a_pid_of_another_process_is_not_ours(kit: Kit) -> None:
    (kit.folder / "process.json").write_text('{"pid": 1, "created": 5.0}')
    assert processes.running(kit) is None
    assert not processes.stop(kit)
