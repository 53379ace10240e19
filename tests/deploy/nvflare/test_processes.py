import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

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


def test_stop_ends_what_was_started_and_what_that_has_started(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "command", lambda kit: [sys.executable, "-c", PARENT])
    pid = processes.start(kit)
    end = time.monotonic() + 10
    # It says that it has started after it has begun its own process.
    while (len(processes.workers(kit)) < 1 or not processes.last_words(kit)) and time.monotonic() < end:
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
    assert processes.last_words(kit) == "started"


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
