"""Forked workers: they find their modules loaded, have the command's environment, and end with it."""

import os
import subprocess
import sys
import time

import pytest

from idiolect.core import forking
from idiolect.core.forking import worker_context

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
PROGRAM = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from idiolect.core.forking import serve_forks, worker_context

def found():
    import signal
    return "wave" in sys.modules, os.getppid(), signal.getsignal(signal.SIGINT) == signal.SIG_IGN, os.getpid()

if __name__ == "__main__":
    serve_forks("wave")  # a module of the standard library that nothing else loads
    if "changed" in sys.argv:
        os.environ["HOME"] = os.environ["HOME"] + "2"
    os.environ["ADDED"] = "1"
    context = worker_context()
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        loaded, parent, ignores, own = pool.submit(found).result()
        print(context.get_start_method(), loaded, parent == os.getpid(), ignores, own, parent, flush=True)
        if "waits" in sys.argv:
            time.sleep(60)
"""


def start(tmp_path, *arguments):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return subprocess.Popen([sys.executable, str(file), *arguments], stdout=subprocess.PIPE, text=True)


@FORKS
def test_a_worker_finds_the_module_loaded_and_ignores_ctrl_c(tmp_path):
    out, _ = start(tmp_path).communicate(timeout=60)
    assert out.split()[:4] == ["forkserver", "True", "False", "True"]


@FORKS
def test_after_a_change_of_the_environment_a_worker_is_a_new_process(tmp_path):
    out, _ = start(tmp_path, "changed").communicate(timeout=60)
    assert out.split()[:3] == ["spawn", "False", "True"]


@FORKS
def test_the_server_ends_with_the_command_however_that_ends(tmp_path):
    process = start(tmp_path, "waits")
    assert process.stdout is not None
    *_, worker, server = process.stdout.readline().split()
    assert os.path.exists(f"/proc/{server}") or sys.platform != "linux"
    process.kill()
    process.wait()
    os.kill(int(worker), 9)  # a worker ends by itself in `study.run.parallel`
    end = time.monotonic() + 20
    while _lives(int(server)):
        assert time.monotonic() < end, "the server is still there"
        time.sleep(0.05)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"


def test_without_a_server_workers_are_new_processes(monkeypatch):
    monkeypatch.setattr(forking, "_begun_with", None)
    assert worker_context().get_start_method() == "spawn"


def test_where_the_system_cannot_fork_there_is_no_server(monkeypatch):
    monkeypatch.setattr(forking, "get_all_start_methods", lambda: ["spawn"])
    monkeypatch.setattr(forking, "_begun_with", None)
    forking.serve_forks("wave")
    assert worker_context().get_start_method() == "spawn"


@FORKS
def test_where_its_socket_cannot_be_made_there_is_no_server(tmp_path):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program)], env={**os.environ, "TMPDIR": str(deep)}, capture_output=True, text=True
    )
    assert done.stdout.split()[:2] == ["spawn", "False"], done.stderr
