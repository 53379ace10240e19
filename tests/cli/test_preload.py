"""The processes of a command: forked with everything loaded, equal to one process, and gone when it is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

MAIN = "from idiolect.cli.main import main; main()"
NO_SERVER = "from idiolect.cli import command; command.serve_forks = lambda module: None; "
COMMAND = ["compare", "--data", "synthetic", "--jobs", "2"]
SMALL = ["--methods", "fedavg,local", "--rounds", "4", "--seeds", "2", "--set", "data.clients=6"]
forks = pytest.mark.skipif(sys.platform != "linux", reason="processes are counted in /proc")


def test_what_is_loaded_has_not_begun_to_compute():
    """A process in which XLA has threads must not be forked."""
    program = (
        "import sys, threading\nimport idiolect.cli.preload\nfrom jax._src import xla_bridge\n"
        "print(xla_bridge.backends_are_initialized(), threading.active_count())\n"
        "print('idiolect.study.run.parallel' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "True", "False"]


@pytest.mark.second
def test_forked_workers_give_the_results_of_new_processes(tmp_path):
    forked, new = tmp_path / "forked", tmp_path / "new"
    for out, program in ((forked, MAIN), (new, NO_SERVER + MAIN)):
        command = [sys.executable, "-c", program, *COMMAND, *SMALL, "--out", out]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "RuntimeWarning" not in done.stderr  # JAX warns of a fork after it has computed
    assert (forked / "clients.csv").read_bytes() == (new / "clients.csv").read_bytes()


@pytest.mark.second
@forks
def test_a_killed_command_leaves_no_process(tmp_path):
    long = ["--methods", "fedavg,local", "--rounds", "1000000", "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *COMMAND, *long],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("first rounds done"):
            break
    names = [name for name in group(process.pid) if "forkserver" in name]
    assert len(names) == 3, names  # the server, and two workers that it forked
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 30
    while group(process.pid):
        assert time.monotonic() < end, group(process.pid)
        time.sleep(0.05)
    process.stderr.close()


def group(leader: int) -> list[str]:
    """The commands of the living processes in a process group."""
    found: list[str] = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/stat") as stat, open(f"/proc/{number}/cmdline") as command:
                state, _, own = stat.read().rpartition(")")[2].split()[:3]
                if int(own) == leader and state != "Z":
                    found.append(command.read().replace("\0", " "))
        except OSError:
            continue
    return found
