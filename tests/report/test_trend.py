import math

import pytest

from idiolect.report.trend import arrow, sparkline


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ""),
        ([math.nan], ""),
        ([1.0, 1.0], "▄▄"),
        ([0.0, 7.0], "▁█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0.0, math.nan, 7.0, math.inf], "▁ █ "),
        ([0.0, *[6.0] * 4, *[7.0] * 8], "█" * 8),  # of the range of all, not of what is shown
    ],
)
def test_a_sparkline(values, line):
    assert sparkline(values) == line


@pytest.mark.parametrize(
    ("values", "way"),
    [
        ([], ""),
        ([1.0], ""),
        ([math.nan, 1.0], ""),
        ([0.0, 1.0], "↑"),
        ([1.0, 0.0], "↓"),
        ([1.0, 1.0], "→"),
        ([0.0, 1.0, 1.01, 1.0, 1.0, 1.02], "→"),  # hardly, beside what it has come
        ([0.0, 1.0, 0.9, 0.8, 0.7, 0.6], "↓"),
    ],
)
def test_an_arrow(values, way):
    assert arrow(values) == way
