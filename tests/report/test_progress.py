import io
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
from rich.console import Console, Group
from rich.text import Text

from idiolect.report import progress
from idiolect.report.progress import COMPILING, Display, SweepDisplay, fitting, live, short
from idiolect.study.run import launch as study
from idiolect.study.run.following import read_pulse
from idiolect.study.run.launch import Unwatched
from idiolect.study.run.recording import Progress
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import DATABASE, Store
from tests.engine import LOCAL, experiment
from tests.report import stores
from tests.report.test_standing import standing


def text(one, width, height=40, **more):
    screen = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=width, height=height)
    screen.print(live(one, screen, **more))
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_the_terminal_and_says_what_matters(width):
    lines = text(standing(), width)
    assert all(len(line) <= width for line in lines)
    assert "120/240 rounds 10 rounds/s 0:12 left" in lines[0]
    assert lines[1].startswith("fedavg")
    for part in ("70/80", "5/s", "0:02", "global 50", "→"):
        assert part in lines[1]
    assert "local 80" in lines[2]
    assert "waiting" in lines[3]
    told = " ".join(lines[4:])
    assert "fedavg: Local ahead by 30 points at round 30 (test accuracy) (seed 0)" in told
    assert "local: NaN" in told


def test_what_is_over_stopped_or_has_not_begun_says_so():
    assert "stopped" in text(standing(alive=False), 80)[0]
    assert "done" in text(replace(standing(alive=False), over=True), 80)[0]
    assert "has not begun" in text(replace(standing(alive=False), begun=False, lines=()), 80)[0]


def test_where_there_is_little_room_what_is_at_work_comes_first():
    lines = standing().lines
    kept, hidden = fitting(lines, 2)
    assert ([line.method for line in kept], hidden) == (["fedavg"], 2)
    assert "and 2 more methods" in text(standing(), 80, height=6)[-1]
    assert fitting(lines, 100) == ([*lines], 0)
    assert fitting((), 10) == ([], 0)


def test_a_terminal_without_unicode_gets_none():
    class Ascii(io.TextIOWrapper):
        pass

    file = Ascii(io.BytesIO(), encoding="ascii", write_through=True)
    screen = Console(file=file, force_terminal=True, color_system=None, width=80, height=40, legacy_windows=False)
    screen.print(live(standing(), screen))
    assert b"global 50" in file.buffer.getvalue()


def test_numbers_are_short():
    assert [short(value) for value in (0.98765, -1.5, 98.765, 1234.56)] == ["0.988", "-1.500", "98.77", "1235"]
    assert [progress.clock(value) for value in (0.4, 7, 59.7, 750, 7500)] == [
        "0:00",
        "0:07",
        "1:00",
        "12:30",
        "2:05:00",
    ]


SCORES = {"personal": 0.98765, "global": 0.91234, "local": 0.97531}


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


def terminal(width=100):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=30)


def lines(display, *parts):
    """What the parts of a display look like, without colours."""
    with display.console.capture() as capture:
        display.console.print(Group(*parts))
    return [line.rstrip() for line in Text.from_ansi(capture.get()).plain.splitlines()]


@pytest.mark.parametrize("width", [80, 100])
def test_all_runs_fit_the_terminal(width, clock):
    spec = experiment({"name": "pfedme"}, LOCAL, rounds=800, id="mnist-paper-2020-mlr")
    display = Display(spec, console=terminal(width), get_time=clock)
    first, second = display.rounds
    display.progress(first, Progress(0, 800, 0.0, {}))
    display.progress(second, Progress(0, 800, 0.0, {}))
    clock.now += 2  # compiling
    display.progress(first, Progress(10, 800, 0.0, {}))
    clock.now += 10
    display.progress(first, Progress(410, 800, 40.0, SCORES))
    display.beat()
    said = lines(display, display.view())
    assert all(len(line) <= width for line in said)
    assert len(said) == 3
    assert "410/1600" in said[0]
    assert "0:00:12 + 00:30 left 40.0 rounds/s" in said[0]  # 400 rounds in 10 s, 1190 are left
    assert said[1].startswith("pfedme")
    assert "410/800" in said[1]
    assert "40/s" in said[1]
    assert "0:10" in said[1]
    assert "compiling" in said[2]


@pytest.fixture
def folder(tmp_path):
    """FedAvg at work with seed 0, far behind Local, which has ended."""
    with Store(tmp_path) as store:
        spec = stores.experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
        run = stores.start(store, spec, "cell0", "fedavg", 0)
        for round, score in enumerate((0.1, 0.2, 0.25, 0.3)):
            stores.record(store, run, 5 * round, {"global": (score,) * 4}, counts=[1000] * 4)
        course = {5 * round: {"local": (score,) * 4} for round, score in enumerate((0.1, 0.7, 0.8, 0.9))}
        stores.finished(store, spec, "cell0", "local", 0, course, counts=[1000] * 4)
    return tmp_path


SPEC = stores.experiment([{"name": "fedavg"}, {"name": "local"}], seeds=1)
AHEAD = "cell0/fedavg: Local ahead by 60 points at round 15 (test accuracy)"


def test_a_terminal_shows_each_methods_score_its_trend_and_hints(folder, clock):
    display = Display(SPEC, console=terminal(), get_time=clock, folder=folder)
    display.progress("cell0/fedavg/seed0", Progress(15, 20, 2.0, {}))
    display.progress("cell0/fedavg/seed0", Progress(17, 20, 2.0, {}))
    display.beat()
    said = lines(display, display.view())
    assert "17/20" in said[1]
    assert "global 30 ↑ ▁▅▆█" in said[1]
    assert "local 90 ↑" in said[2]
    assert said[2].rstrip().endswith("1 seed  done")
    assert said[3] == AHEAD.removeprefix("cell0/")
    assert display.console.file.getvalue() == ""


@pytest.mark.parametrize("quiet", [False, True])
def test_without_a_terminal_each_hint_is_said_once(folder, capsys, quiet):
    display = Display(SPEC, quiet, Console(file=io.StringIO()), folder=folder)
    with display.shown():
        display.beat()
        display.beat()
    assert capsys.readouterr().err == ("" if quiet else f"hint: {AHEAD}\n")


def test_the_folder_has_a_pulse_while_it_is_at_work(folder, monkeypatch):
    monkeypatch.setattr("idiolect.report.progress._BEAT", 0.01)
    display = Display(SPEC, quiet=True, folder=folder)
    with display.shown():
        display.progress("cell0/fedavg/seed0", Progress(17, 20, 2.0, {}))
        end = time.monotonic() + 20
        while (pulse := read_pulse(folder)) is None or not pulse.runs:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert pulse.fresh
        assert (pulse.done, pulse.total, pulse.runs) == (17, 40, {"cell0/fedavg/seed0": (17, 2.0)})
    assert read_pulse(folder) is None


def test_a_folder_that_cannot_be_read_stops_nothing(tmp_path, capsys):
    (tmp_path / DATABASE).write_text("no database")
    display = Display(SPEC, False, Console(file=io.StringIO()))
    display.follower.folder = tmp_path
    display.beat()
    assert capsys.readouterr().err == ""


def test_a_sweep_has_a_pulse_from_its_first_round_on(tmp_path):
    display = SweepDisplay(Console(file=io.StringIO()), folder=tmp_path)
    assert display.pulse() is None
    display.progress("4 runs, round 10", 0.25)
    assert (display.pulse().done, display.pulse().text) == (0.25, "4 runs, round 10")


def test_what_a_resumed_run_had_does_not_make_it_faster(clock):
    spec = experiment(LOCAL, rounds=1000, seeds=3)
    rows = Workbench().check(spec)
    display = Display(spec, console=terminal(), get_time=clock)
    display.finished(done(rows[0], 1000))  # by another process, before
    display.progress(rows[1].id, Progress(600, 1000, 0.0, {}))
    for _ in range(3):
        clock.now += 1
        display.progress(rows[1].id, Progress(display.done[rows[1].id] + 20, 1000, 0.0, SCORES))
    display.progress(rows[2].id, Progress(900, 1000, 0.0, {}))
    (total,) = lines(display, display.everything)
    assert "2560/3000" in total
    assert "20.0 rounds/s" in total
    assert "0:00:03 + 00:22 left" in total  # 440 rounds


def test_the_rest_of_a_diverged_run_is_over_but_was_not_done(clock):
    spec = experiment(LOCAL, rounds=1000, seeds=2)
    rows = Workbench().check(spec)
    display = Display(spec, console=terminal(), get_time=clock)
    for row in rows:
        display.progress(row.id, Progress(0, 1000, 0.0, {}))
    for round in (10, 20, 30):
        clock.now += 1
        display.progress(rows[0].id, Progress(round, 1000, 0.0, SCORES))
    display.finished(done(rows[0], 30, "diverged"))
    (total,) = lines(display, display.everything)
    assert "1000/2000" in total
    assert "10.0 rounds/s" in total
    assert "01:40 left" in total


def done(row, round, status="done"):
    from dataclasses import replace

    return replace(row, round=round, status=status, seconds=1.25, message="why")


def test_until_the_first_round_is_done_the_time_of_compiling_is_shown(clock):
    spec = experiment(LOCAL, rounds=1000, seeds=2)
    rows = Workbench().check(spec)
    display = Display(spec, console=terminal(), get_time=clock)
    display.progress(rows[0].id, Progress(0, 1000, 0.0, {}))
    clock.now += 7
    assert lines(display, display.view())[0].strip() == f"{COMPILING}: 0:07 so far"
    assert "all rounds" not in "".join(lines(display, display.view()))
    display.progress(rows[0].id, Progress(10, 1000, 0.0, SCORES))
    assert "10/2000" in lines(display, display.view())[0]
    assert f"{COMPILING}:" not in "".join(lines(display, display.view()))


def test_a_terminal_says_that_the_data_are_read_until_they_are():
    spec, screen = experiment(LOCAL), terminal()
    with Display(spec, console=screen).preparing():
        pass
    assert "reading the data" in screen.file.getvalue()
    assert screen.file.getvalue().endswith("\x1b[2K")  # the line is wiped
    for display in (
        Display(spec, quiet=True, console=terminal()),
        Display(spec, console=Console(file=io.StringIO())),
    ):
        with display.preparing():
            assert display.console.file.getvalue() == ""


def test_a_launch_says_so_before_anything_is_run(tmp_path):
    said = []

    class Watches(Unwatched):
        @contextmanager
        def preparing(self):
            said.append("reads")
            yield
            said.append("has read")

        def progress(self, name, progress):
            said.append(progress.round)

    study.launch(experiment(LOCAL), tmp_path / "out", jobs=1, watcher=Watches())
    assert said[:3] == ["reads", "has read", 0]


def test_a_resumed_run_shows_its_rounds_and_that_it_compiles(clock):
    spec = experiment(LOCAL, rounds=1000)
    row = Workbench().check(spec)[0]
    display = Display(spec, console=terminal(), get_time=clock)
    display.progress(row.id, Progress(600, 1000, 0.0, {}))
    first, second, *_ = lines(display, display.view())
    assert first.startswith(COMPILING)
    assert "600/1000" in second


def test_a_sweep_says_that_it_compiles_until_something_is_done(clock, capsys):
    display = SweepDisplay(terminal(), clock)
    display.progress("4 runs, round 0", 0.0)
    clock.now += 5
    (line,) = lines(display, display.bar)
    assert f"4 runs, round 0: {COMPILING}" in line
    assert "0:00:05" in line
    display.progress("4 runs, round 1", 0.1)
    assert COMPILING not in lines(display, display.bar)[0]
    plain = SweepDisplay(Console(file=io.StringIO()))
    plain.progress("4 runs, round 0", 0.0)
    plain.progress("2 runs, round 0", 0.0)
    assert capsys.readouterr().err == f"[  0%] 4 runs, round 0: {COMPILING}\n"


def test_late_news_of_a_finished_run_is_ignored():
    spec = experiment(LOCAL)
    display = Display(spec, quiet=True)
    row = Workbench().check(spec)[0]
    display.finished(row)
    display.progress(row.id, Progress(2, 6, 1.0, {}))
    assert display.done[row.id] == 6
    assert display.at_work == {}


@pytest.mark.parametrize("quiet", [False, True])
def test_without_a_terminal_a_line_for_each_finished_run(quiet, capsys):
    spec = experiment(LOCAL, seeds=2)
    rows = Workbench().check(spec)
    display = Display(spec, quiet, Console(file=io.StringIO()))
    with display.shown():
        display.progress(rows[0].id, Progress(0, 6, 0.0, {}))
        display.progress(rows[0].id, Progress(2, 6, 1.0, {}))
        display.finished(done(rows[0], 6))
        display.finished(done(rows[1], 3, "diverged"))
    first = f"{COMPILING}\nfirst rounds done after 0:00\n[ 50%] cell/local/seed0: 6 rounds in 1.2 s\n"
    assert capsys.readouterr().err == ("" if quiet else first)
    assert display.console.file.getvalue() == "cell/local/seed1: why\n"


def test_on_a_terminal_the_bars_vanish():
    spec = experiment(LOCAL)
    display = Display(spec, console=terminal())
    with display.shown():
        display.progress(next(iter(display.rounds)), Progress(2, 6, 1.0, {}))
    assert "all rounds" in display.console.file.getvalue()
    assert display.console.file.getvalue().endswith("\x1b[1A\x1b[2K")


def test_a_sweep_shows_what_is_at_work_and_the_time_left(clock):
    display = SweepDisplay(terminal(), clock)
    for share in (0.1, 0.2, 0.3):
        clock.now += 5
        display.progress(f"4 runs, round {share}", share)
    (line,) = lines(display, display.bar)
    assert "4 runs, round 0.3" in line
    assert "30%" in line
    assert "0:00:15 + 00:35 left" in line


def test_a_sweep_without_a_terminal_says_each_tenth(capsys):
    display = SweepDisplay(Console(file=io.StringIO()))
    with display.shown():
        for step in range(1, 41):
            display.progress(f"round {step}", step / 40)
    told = capsys.readouterr().err.splitlines()
    assert told == [f"[{step * 2.5:3.0f}%] round {step}" for step in range(4, 41, 4)]
    assert display.console.file.getvalue() == ""
