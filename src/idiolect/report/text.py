"""Numbers and names as text: per cent, significant digits, a dash for a missing value; a name in a sentence."""

import math
import re
from collections.abc import Sequence

from idiolect.metrics.base import Metric
from idiolect.study.analyse.intervals import Difference
from idiolect.study.spec.published import Published
from idiolect.study.store.summary import OverSeeds

MISSING = "—"
WIDTH = "half of the 95 % interval"
SPREAD = f"{WIDTH} over seeds (Student's t)"
"""What follows ± wherever idiolect writes a mean over seeds; in short, and in full."""


def number(value: float, metric: Metric) -> str:
    """Format a score: two decimals in per cent, else four significant digits."""
    return _shown(metric.unit * value, 0.0, metric)[0]


def score(value: OverSeeds, metric: Metric) -> str:
    """Format a score over seeds with half of its 95 % interval: "95.62 ± 0.04".

    A single seed has no ±; without any, the score is a dash.
    """
    return with_width(metric.unit * value.mean, metric.unit * value.half_width, metric)


def size(count: float) -> str:
    """Format a number of bytes: "31.4 kB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.3g} {unit}"
        count /= 1000
    raise AssertionError


def some(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and the number of the others; a dash for none."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else MISSING


def value(value: float) -> str:
    """Format any number with four significant digits."""
    return MISSING if math.isnan(value) else f"{value:.4g}"


def score_axis(metric: Metric) -> str:
    """The label of an axis of test scores."""
    return f"test {metric.column}, %" if metric.percent else f"test {metric.column}"


def published(value: Published | None, metric: Metric, compared: Metric) -> str:
    """Format a published value of a metric, in the units in which it was published; its ± is what the paper gives.

    The metric's name is put before it if the table compares another metric.
    """
    if value is None:
        return MISSING
    shown = with_width(value.value, math.nan if value.given is None else value.given, metric)
    return shown if metric is compared else f"{metric.column} {shown}"


def compared(value: OverSeeds, metric: Metric) -> str:
    """Format what is compared with a published value; it is in the published value's units already."""
    return with_width(value.mean, value.half_width, metric)


def difference(value: float | None, interval: Difference | None, metric: Metric) -> str:
    """Format a difference with its sign, and the ends of its 95 % interval: "+0.12 [-0.05, +0.29]".

    A difference without an interval has the reason instead: "+0.12 [—: equal in every seed]".
    """
    if value is None or math.isnan(value):
        return MISSING
    if interval is None:
        return _signed(value, metric)
    if interval.low is None or interval.high is None:
        return f"{_signed(value, metric)} [{MISSING}: {interval.why}]"
    return f"{_signed(value, metric)} [{_signed(interval.low, metric)}, {_signed(interval.high, metric)}]"


def ends(interval: Difference, metric: Metric) -> str:
    """Format the ends of an interval that has both: "+1.40 to +2.80"."""
    assert interval.low is not None
    assert interval.high is not None
    return f"{_signed(interval.low, metric)} to {_signed(interval.high, metric)}"


def plain_difference(interval: Difference) -> str:
    """Format a difference of losses to three digits, with the ends of its 95 % interval or the reason without one."""
    if interval.low is None or interval.high is None:
        return f"{interval.mean:+.3g} [{MISSING}: {interval.why}]"
    return f"{interval.mean:+.3g} [{interval.low:+.3g}, {interval.high:+.3g}]"


def _signed(value: float, metric: Metric) -> str:
    return ("-" if value < 0 else "+") + _shown(abs(value), 0.0, metric)[0]


def p_value(value: float) -> str:
    """Format a p value: two significant digits, or "<0.001"."""
    if math.isnan(value):
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def share(value: OverSeeds | None) -> str:
    """Format a fraction in whole per cent; "<1 %" and ">99 %" separate a few from none, and most from all."""
    if value is None or math.isnan(value.mean):
        return MISSING
    percent = round(100 * value.mean)
    if percent == 0 and value.mean > 0:
        return "<1 %"
    return ">99 %" if percent == 100 and value.mean < 1 else f"{percent} %"


def seconds(value: OverSeeds) -> str:
    """Format mean seconds: three digits, or whole seconds."""
    if math.isnan(value.mean):
        return MISSING
    digits = 2 if value.mean < 9.995 else 1 if value.mean < 99.95 else 0
    return f"{value.mean:.{digits}f}"


def with_width(mean: float, width: float, metric: Metric) -> str:
    """Format a number in the units that are shown, and what follows its ±; only the number where that is NaN."""
    shown, spread = _shown(mean, width, metric)
    return shown if math.isnan(mean) or math.isnan(width) else f"{shown} ± {spread}"


def _shown(value: float, width: float, metric: Metric) -> tuple[str, str]:
    """Format a number, and its width to the same decimal place."""
    if math.isnan(value):
        return MISSING, MISSING
    if metric.percent or math.isinf(value):
        return f"{value:.2f}", f"{width:.2f}"
    exponent = int(f"{value:.3e}".partition("e")[2])
    if not -4 <= exponent < 6:
        return f"{value:.3e}", f"{width:.1e}"
    decimals = max(0, 3 - exponent)
    return f"{value:.{decimals}f}", f"{width:.{decimals}f}"


LONGEST = 60
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069\0]")
"""Marks that turn or isolate the direction of the text after them, and NUL."""


def unmarked(name: str) -> str:
    """A name on one line without marks of direction, cut in the middle if it is very long."""
    return middle(" ".join(_TURNS.sub("", name).split()) or "(no name)", LONGEST)


def isolated(name: str) -> str:
    """A name for a sentence: on one line, cut if it is very long, and with a direction of its own."""
    return f"\u2068{unmarked(name)}\u2069"


def bare(sentence: str) -> str:
    """A sentence without marks of direction, for files and terminals that would show them."""
    return _TURNS.sub("", sentence)


def middle(name: str, most: int) -> str:
    """Cut a name in its middle to so many characters, because names of models differ at the end."""
    end = most // 2
    return name if len(name) <= most else f"{name[: most - 1 - end]}…{name[len(name) - end :]}"
