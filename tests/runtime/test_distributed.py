"""How several processes start, end and are lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError, IdiolectError
from idiolect.runtime.distributed import COORDINATOR, PROCESS, PROCESSES, join, start, watch
from idiolect.study.store.recorded import traffic_key
from idiolect.study.store.store import Store
from tests.engine import devices_flags
from tests.tiers import second

ROOT = Path(__file__).parents[2]
IDIOLECT = [sys.executable, "-m", "idiolect"]
FEDERATION = ["--data", "synthetic", "--set", "data.clients=9", "--methods", "ditto", "--cohort", "5"]
ROUNDS = ["--rounds", "60"]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def python(code):
    return subprocess.Popen([sys.executable, "-c", code])


def stop(children):
    for process in children:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["", "import time; time.sleep(.5)"], 0),
        (["raise SystemExit(3)", "import time; time.sleep(60)"], 3),
        (["import time; time.sleep(.8); raise SystemExit(1)", "raise SystemExit(1)"], 1),
    ],
)
def test_the_leaders_exit_code_counts(codes, expected):
    children = [python(code) for code in codes]
    try:
        assert watch(children) == expected
    finally:
        stop(children)


@pytest.mark.parametrize(
    ("code", "how"),
    [
        second("raise SystemExit(4)", "ended with code 4"),
        ("import os; os.kill(os.getpid(), 9)", r"killed \(SIGKILL\)"),
    ],
)
def test_a_lost_process_is_named(code, how):
    children = [python("import time; time.sleep(60)"), python(code)]
    try:
        with pytest.raises(IdiolectError, match=f"process 1 of 2 .*{how}"):
            watch(children)
    finally:
        stop(children)


def test_half_of_an_address_is_refused(monkeypatch):
    monkeypatch.setenv(COORDINATOR, "127.0.0.1:1")
    monkeypatch.setenv(PROCESS, "0")
    monkeypatch.delenv(PROCESSES, raising=False)
    with pytest.raises(ConfigError, match=f"only {COORDINATOR} and {PROCESS} are set"):
        join()


def test_nothing_happens_unless_asked(monkeypatch):
    for key in (COORDINATOR, PROCESS, PROCESSES):
        monkeypatch.delenv(key, raising=False)
    before = sys.stdout
    join()
    assert sys.stdout is before


def test_at_least_one_process():
    with pytest.raises(ConfigError, match="processes = 0"):
        start(0, [])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The scores of the same run, undisturbed, in one process, and its bytes of a round."""
    out = tmp_path_factory.mktemp("whole") / "run"
    return compared(["compare", *FEDERATION, *ROUNDS], out), traffic(out)


def compared(arguments, out, *before):
    done = subprocess.run(
        [*IDIOLECT, *before, *arguments, "--out", str(out), "--json"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return scores(json.loads(done.stdout))


def traffic(out):
    with Store(out, create=False) as store:
        return store.fact(traffic_key(store.runs()[0].cell, "ditto"))


def scores(report):
    lines = [line for cell in report["cells"] for line in cell["lines"]]
    return {(line["method"], line["model"]): line["pooled"]["mean"] for line in lines}


@pytest.mark.second
def test_two_processes_report_what_one_reports(tmp_path, whole):
    both = ["launch", "-n", "2", "--"]
    found = compared(["compare", *FEDERATION, *ROUNDS], tmp_path / "run", *both)
    assert found.keys() == whole[0].keys()
    assert found == pytest.approx(whole[0], abs=2e-3)
    assert traffic(tmp_path / "run") == whole[1] == [2440, 2440]
    assert (tmp_path / "run" / "models").is_dir()


@pytest.mark.second
def test_a_run_that_lost_a_process_goes_on_with_another_number_of_devices(tmp_path, whole):
    out = tmp_path / "run"
    running = subprocess.Popen(
        [*IDIOLECT, "launch", "-n", "2", "--", "compare", *FEDERATION, *ROUNDS, "--out", str(out)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 240
    while not list(out.glob("checkpoints/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(second(running.pid), signal.SIGKILL)
    _, errors = running.communicate(timeout=120)
    assert running.returncode == 1
    assert "process 1 of 2 was killed (SIGKILL)" in errors or "another process of this run was lost" in errors
    assert "Traceback" not in errors
    done = subprocess.run(
        [*IDIOLECT, "resume", str(out), "--json"],
        env=environment(XLA_FLAGS=devices_flags(3)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert scores(json.loads(done.stdout)) == pytest.approx(whole[0], abs=2e-3)


def second(parent):
    """The process number 1 of those that a launcher started."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[1])
