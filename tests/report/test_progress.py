import io

import pytest
from rich.console import Console, Group
from rich.text import Text

from idiolect.report.progress import Display, SweepDisplay, short
from idiolect.study.recording import Progress
from idiolect.study.resolve import Workbench
from tests.engine import LOCAL, experiment

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
def test_it_fits_the_terminal_and_says_what_matters(width, clock):
    spec = experiment({"name": "pfedme"}, LOCAL, rounds=800, id="mnist-paper-2020-mlr")
    display = Display(spec, console=terminal(width), get_time=clock)
    first, second = display.rounds
    display.progress(first, Progress(0, 800, 0.0, {}))
    display.progress(second, Progress(0, 800, 0.0, {}))
    clock.now += 2  # compiling
    display.progress(first, Progress(10, 800, 0.0, {}))
    clock.now += 10
    display.progress(first, Progress(410, 800, 40.0, SCORES))
    said = lines(display, display.everything, display.runs)
    assert all(len(line) <= width for line in said)
    assert len(said) == 3
    assert "410/1600" in said[0]
    assert "0:00:12 + 00:30 left 40.0 rounds/s" in said[0]  # 400 rounds in 10 s, 1190 are left
    assert "410/800" in said[1]
    assert "personal 0.988" in said[1]
    assert "global 0.912" in said[1]
    assert "…" in said[1] or "local 0.975" in said[1]
    assert "pfedme/seed0" in said[1]
    assert "compiling" in said[2]


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


def test_late_news_of_a_finished_run_is_ignored():
    spec = experiment(LOCAL)
    display = Display(spec, quiet=True)
    row = Workbench().check(spec)[0]
    display.finished(row)
    display.progress(row.id, Progress(2, 6, 1.0, {}))
    assert display.done[row.id] == 6
    assert display.tasks == {}


@pytest.mark.parametrize("quiet", [False, True])
def test_without_a_terminal_a_line_for_each_finished_run(quiet, capsys):
    spec = experiment(LOCAL, seeds=2)
    rows = Workbench().check(spec)
    display = Display(spec, quiet, Console(file=io.StringIO()))
    with display.shown():
        display.progress(rows[0].id, Progress(2, 6, 1.0, {}))
        display.finished(done(rows[0], 6))
        display.finished(done(rows[1], 3, "diverged"))
    first = "[ 50%] cell/local/seed0: 6 rounds in 1.2 s\n"
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


def test_scores_are_short():
    assert [short(value) for value in (0.98765, -1.5, 99.9999, 1234.56)] == ["0.988", "-1.500", "100.000", "1235"]
