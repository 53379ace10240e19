import io

import pytest
from rich.console import Console

from idiolect.report.terminal import TerminalTable, in_short, rich_form, rich_table
from idiolect.report.text import bare
from idiolect.report.view.columns import Column, Row, Shown, Table
from idiolect.report.view.conclusion import conclusion_of
from idiolect.report.view.from_store import part_of

RANKS = {"seconds": 99, "client mean": 9, "hurt vs FedAvg": 7, "worst 10 %": 1}
TITLES = ("method", "model", "accuracy", "client mean", "worst 10 %", "hurt vs Local", "hurt vs FedAvg", "seconds")
LINES = (
    ("pFedMe [R = 20]", "personal", "95.62 ± 0.04", "95.11 ± 0.05", "70.00 ± 1.00", "12 %", "<1 %", "2.87"),
    ("pFedMe [R = 20]", "global", "94.18 ± 0.06", "94.00 ± 0.05", "60.00 ± 1.00", "50 %", "10 %", "2.87"),
    ("local", "local", "98.00 ± 0.01", "98.00 ± 0.02", "90.00 ± 0.50", "0 %", "1 %", "1.30"),
)


def no_line(_):
    raise AssertionError


WIDE = Table(
    title="a [bold] title",
    columns=tuple(
        Column(title, "", title not in ("method", "model"), no_line, marked=title == "accuracy",
               once=title in ("method", "seconds"), rank=RANKS.get(title, 0))
        for title in TITLES
    ),
    rows=tuple(
        Row(line[:2], tuple(Shown(text, None) for text in line), line[0] == "local", line[1] != "global")
        for line in LINES
    ),
    notes=("a note",),
)  # fmt: skip


def printed(table, width, **options):
    console = Console(width=width, record=True, file=io.StringIO(), **options)
    console.print(table)
    return console.export_text(styles=options.get("force_terminal", False))


def test_wide_terminal_has_every_number():
    shown = printed(TerminalTable(WIDE), 140)
    for row in WIDE.printed():
        for value in row:
            assert value.replace("± ", "±").replace(" %", "%") in shown
    assert "a [bold] title" in shown
    assert "a note" in shown
    assert "no room" not in shown


@pytest.mark.parametrize("width", [55, 60, 72, 80, 100, 140])
def test_no_width_breaks_a_word_or_cuts_a_column(width):
    shown = printed(TerminalTable(WIDE), width)
    assert max(map(len, shown.splitlines())) <= width
    words = shown.split()
    for word in ("method", "model", "accuracy", "Local", "personal", "95.62", "12%", "local"):
        assert word in words
    assert ("no room here for: seconds" in shown.replace("client mean, ", "")) == (
        "seconds" not in words
    ) or width < 80


def test_narrow_terminal_says_what_it_leaves_out():
    shown = printed(TerminalTable(WIDE), 55)
    assert "no room here for:" in shown
    assert "2.87" not in shown


def test_the_width_of_a_form_is_its_width():
    for compact in (False, True):
        form, width = rich_form(WIDE, ("seconds",), compact=compact)
        assert max(map(len, printed(form, 300).splitlines())) == width


def test_best_is_bold():
    shown = printed(rich_form(WIDE)[0], 140, force_terminal=True)
    assert "\x1b[1m98.00 ±0.01\x1b[0m" in shown
    assert "\x1b[1m95.62" not in shown


def test_rich_table_of_a_cell(toy, cell):
    shown = printed(rich_table(part_of(toy, cell)), 160)
    assert "80.00 ±31.77" in shown
    assert "fedavg: over 1 of 2 seeds (1 diverged)" in shown


def test_macro_f1_is_shown_where_there_is_room(by_class):
    shown = rich_table(part_of(by_class, by_class.experiment.cells[0]))
    assert "53.33 ±0.00" in printed(shown, 190)
    narrow = printed(shown, 75)
    assert "no room here for: macro-F1, " in narrow
    assert "53.33" not in narrow
    assert "macro-F1 before a published value" in " ".join(narrow.split())


def test_in_short_has_title_headline_and_what_is_known(toy, cell):
    """One paragraph; the marks of direction around names, which a terminal may show as boxes, are gone."""
    part = part_of(toy, cell)
    shown = in_short(part, "Made data.").plain
    assert shown.startswith(f"{part.title}: ")
    assert shown.endswith(" Made data.")
    assert bare(conclusion_of(part).headline) in shown
    assert not in_short(part).plain.endswith("Made data.")
    assert "\u2068" not in printed(rich_table(part), 160)
