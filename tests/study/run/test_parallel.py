import os
import signal
import sqlite3
import subprocess
import sys
import time
from multiprocessing import active_children
from pathlib import Path

import pytest

from idiolect.core.errors import DataError, StoreError
from idiolect.report.launch import launch
from idiolect.study.run.engine import groups
from idiolect.study.run.parallel import divide, run_parallel, shares
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import DATABASE, Store
from tests.engine import LOCAL, content, experiment, run

ROOT = Path(__file__).parents[3]
ROUNDS = 40
PROGRAM = f"""
from pathlib import Path
import sys
import time
from idiolect.study.store.store import Store
from tests import engine
Store.record = engine.dies(Store.record, 12, lambda: time.sleep(600))  # every process stands still, mid-run
if __name__ == "__main__":
    engine.run(engine.experiment(engine.LOCAL, seeds=2, rounds={ROUNDS}), Path(sys.argv[1]), jobs=2)
"""


def start(out: Path, program: Path) -> subprocess.Popen:
    """The program, in a process group of its own."""
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.Popen(
        [sys.executable, str(program), str(out)], cwd=ROOT, env=environment, start_new_session=True
    )


def members(group: int) -> int:
    """Living processes of a process group."""
    listed = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True)
    return sum(line.split()[0] == str(group) and "Z" not in line.split()[1] for line in listed.stdout.splitlines())


def evaluations(out: Path) -> int:
    try:
        with sqlite3.connect(f"file:{out / DATABASE}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM metrics").fetchone()[0]
    except sqlite3.Error:
        return 0


def wait_until(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


@pytest.mark.second
def test_killed_with_two_processes_and_resumed_with_two_is_bit_identical_to_one_process(tmp_path):
    out, whole = tmp_path / "out", tmp_path / "whole"
    process = start(out, tmp_path / "program.py")
    wait_until(lambda: evaluations(out) > 20 or process.poll() is not None)
    assert process.poll() is None
    assert members(process.pid) >= 3
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: members(process.pid) == 0, 20)
    assert "running" in {row[3] for row in content(out)["runs"]}  # on a busy machine one of them may be done
    seen, done = set(), []
    spec = stored_experiment(Store(out))
    run_parallel(
        out,
        spec,
        groups(spec),
        jobs=2,
        folder=None,
        save_models=(0,),
        on_progress=lambda name, progress: seen.add((name, progress.round)),
        on_done=done.append,
    )
    run(experiment(LOCAL, seeds=2, rounds=ROUNDS), whole)
    assert content(out) == content(whole)
    assert {row.id for row in done} == {"cell/local/seed0", "cell/local/seed1"}
    assert {(row.id, ROUNDS) for row in done} <= seen


@pytest.mark.parametrize(
    ("own", "jobs", "each"),
    [
        (range(4), 2, [[0, 1], [2, 3]]),
        (range(3), 2, [[0], [1]]),
        ([0, 2, 5, 7, 8], 2, [[0, 2], [5, 7]]),
        (range(2), 3, 3 * [[0, 1]]),
    ],
)
def test_every_process_has_equally_many_cores(monkeypatch, own, jobs, each):
    monkeypatch.setattr("idiolect.study.run.parallel.cores", lambda: list(own))
    assert shares(jobs) == each


def test_the_error_of_a_worker_comes_back_and_no_worker_stays(tmp_path):
    table = tmp_path / "t.csv"
    rows = [f"{client},{i},{i % 2}" for client in "abc" for i in range(12)]
    table.write_text("\n".join(["client,x,label", *rows]))
    spec = experiment(LOCAL, seeds=2, data={"name": "table", "path": str(table), "validation": 0.2})
    Store(tmp_path / "out")
    table.unlink()
    with pytest.raises((DataError, StoreError), match=r"t\.csv"):
        run_parallel(
            tmp_path / "out",
            spec,
            groups(spec),
            jobs=1,
            folder=None,
            save_models=(),
            on_progress=lambda *_: None,
            on_done=lambda _: None,
        )
    assert active_children() == []


def test_work_is_divided_without_loss_longest_first():
    spec = experiment({"name": "pfedme"}, LOCAL, seeds=7)
    for jobs in (1, 2, 5):
        pieces = divide(spec, groups(spec), jobs)
        pairs = [(piece.title, seed) for piece in pieces for seed in piece.seeds]
        assert sorted(pairs) == sorted((t, s) for t in ("pfedme", "local") for s in range(7))
        assert pieces[0].title == "pfedme"
    assert len(divide(spec, groups(spec), 5)) >= 10


def test_the_first_cell_runs_first():
    """Although the second one costs more; within a cell the costliest method is first."""
    one = experiment(LOCAL, {"name": "pfedme"}).cells[0]
    spec = Experiment(name="two", cells=(one, one.model_copy(update={"id": "dearer", "rounds": 900})), seeds=2)
    order = [(piece.cell, piece.title) for piece in divide(spec, groups(spec), 1)]
    assert [cell for cell, _ in order] == sorted((cell for cell, _ in order), key=(one.id, "dearer").index)
    assert order[0] == (one.id, "pfedme")


def test_nothing_left_starts_no_process(tmp_path, monkeypatch):
    spec = experiment(LOCAL)
    store = Store(tmp_path)
    for row in Workbench().check(spec):
        store.start(row)
        store.finish(row.id, "diverged", "why")
    monkeypatch.setattr("idiolect.study.run.launch.run_parallel", None)
    results = launch(spec, tmp_path, jobs=2, figures=False, quiet=True)
    assert [row.message for row in results.diverged()] == ["why"]


ADDED = """
import os, sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from idiolect.core.forking import serve_forks, worker_context
from idiolect.study.run import parallel

def added():
    return os.environ.get("ADDED")

if __name__ == "__main__":
    serve_forks("idiolect.study.run.parallel")
    os.environ["ADDED"] = "later"
    context = worker_context()
    shares = context.Queue()
    shares.put(sorted(os.sched_getaffinity(0))[:1])
    begin = Path(sys.argv[1]), None, (), context.Queue(), shares, None, dict(os.environ)
    with ProcessPoolExecutor(1, mp_context=context, initializer=parallel._begin, initargs=begin) as pool:
        print(context.get_start_method(), pool.submit(added).result())
"""


@pytest.mark.second
@pytest.mark.skipif(sys.platform != "linux", reason="a share of the cores is given by sched_setaffinity")
def test_a_forked_worker_has_the_variables_that_were_added_after_the_server_began(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ADDED)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, str(program), str(tmp_path / "out")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.split() == ["forkserver", "later"], done.stderr
