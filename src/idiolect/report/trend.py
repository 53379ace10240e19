"""A course of scores in a few characters: a sparkline, and an arrow that says where it goes."""

import math
from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
UP, FLAT, DOWN = "↑", "→", "↓"
BEFORE = 4
"""Evaluations with whose mean the last one is compared."""
STILL = 0.05
"""Share of the whole course's range below which a change is none."""


def sparkline(values: Sequence[float], width: int = 8) -> str:
    """The last `width` values as blocks, of the range of the whole course; a space for NaN and infinity."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, span = min(finite), max(finite) - min(finite)
    top = len(BLOCKS) - 1

    def block(value: float) -> str:
        if not math.isfinite(value):
            return " "
        return BLOCKS[round(top * (value - low) / span) if span > 0 else top // 2]

    return "".join(block(value) for value in values[-width:])


def arrow(values: Sequence[float]) -> str:
    """Where the values go: the last one against the mean of the few before it; "" for fewer than two."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    before = finite[-BEFORE - 1 : -1]
    change, span = finite[-1] - sum(before) / len(before), max(finite) - min(finite)
    if abs(change) <= STILL * span:
        return FLAT
    return UP if change > 0 else DOWN
