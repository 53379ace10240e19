import io
from dataclasses import replace

import pytest
from rich.console import Console

from idiolect.report.live import clock, fitting, live, short
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
    assert [clock(value) for value in (0.4, 7, 59.7, 750, 7500)] == ["0:00", "0:07", "1:00", "12:30", "2:05:00"]
