"""Numbers as the page's data hold them: five significant digits, null for what is no number."""

import json
import math
from collections.abc import Iterable
from typing import Any

DIGITS = 5


def number(value: Any) -> float | int | None:
    """Round a number to five significant digits; whole ones stay whole, NaN and infinity become None."""
    if value is None:
        return None
    value = float(value)
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def numbers(values: Iterable[Any]) -> list[float | int | None]:
    """Round many numbers."""
    return [number(value) for value in values]


_MARKS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def script_json(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark, escape in _MARKS.items():
        text = text.replace(mark, escape)
    return text.encode("utf-8", "backslashreplace").decode()
