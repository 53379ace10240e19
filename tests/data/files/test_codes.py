"""Columns of codes in CSV files: found wherever a line by line search with a regular expression finds them."""

import re

import numpy as np
import pytest

from idiolect.data.files import codes
from idiolect.data.files.codes import columns_of_codes

CODE = re.compile(r"[ \t]*[+-]?0\d+[ \t]*")


def by_lines(text: str, separator: str) -> set[int]:
    """The columns, found value by value."""
    lines = re.split(r"\r\n|\r|\n", text)[1:]
    values = [(place, value) for line in lines for place, value in enumerate(line.split(separator))]
    return {place for place, value in values if CODE.fullmatch(value)}


@pytest.mark.parametrize("step", [7, 64, codes._STEP])  # values lie across the borders of pieces
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_no_column_of_codes_is_missed_and_no_other_is_named(
    separator: str, end: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "_STEP", step)
    rng = np.random.default_rng(0)
    values = [
        "7",
        "0",
        "0.5",
        "10.07",
        "-0.01",
        "1e05",
        "2020-01-05",
        "05.03.2020",
        "08:30",
        "007",
        " -01",
        "+00 ",
        "",
    ]
    for _ in range(40):
        cells = rng.choice(values, (rng.integers(1, 6), rng.integers(1, 5)))
        text = end.join(separator.join(row) for row in [["name"] * cells.shape[1], *cells.tolist()])
        assert columns_of_codes(text.encode(), separator) == by_lines(text, separator)


def test_quotes_and_mixed_line_ends_leave_the_columns_open() -> None:
    assert columns_of_codes(b'a,b\n"x",1\n', ",") == set()
    assert columns_of_codes(b'a,b\n"x, 07",01\n', ",") is None
    assert columns_of_codes(b"a,b\n1,01\r2,3\r\n", ",") is None


@pytest.mark.parametrize("content", [b"", b"0", b"00", b"\n0", b"a\n00", b"a,b\n1,0"])
def test_short_files(content: bytes) -> None:
    assert columns_of_codes(content, ",") == by_lines(content.decode(), ",")
