"""Decide whether a measured number agrees with a published one: one rule, for every paper."""

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Literal, get_args

from idiolect.study.intervals import CONFIDENCE, Difference, from_published
from idiolect.study.published import Published
from idiolect.study.summary import OverSeeds

Verdict = Literal[
    "agrees", "consistent, wide", "close", "differs", "other data", "not measured", "not run", "diverged"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

RULE = """\
**agrees**: the whole 95 % interval of measured minus published lies within the margin. **consistent, wide**: the
interval includes 0 but reaches beyond the margin, so no difference is shown, and one that matters is not excluded.
**close**: the difference is within the margin, but the interval excludes 0 and reaches beyond it, or there is no
interval (a single seed). **differs**: none of these; "explained" where a run that is named shows why. **other data**:
not those of the paper, so nothing is reproduced, whatever the difference. The interval is Welch's, from our seeds and
what the paper gives after ±, a standard deviation or half of a confidence interval; the margin, a difference that
does not matter, stands under each table."""


def interval_of(measured: OverSeeds, published: Published) -> Difference | None:
    """Measured minus published with its interval; None for a single seed. measured: in the published units.

    A published half-width h of a 95 % interval has the standard error h / 1.96, whatever it is the mean of.
    """
    if measured.seeds < 2 or math.isnan(measured.std):
        return None
    std, runs = published.std, published.runs
    if published.half_width is not None:
        std, runs = published.half_width / NormalDist().inv_cdf(0.5 + CONFIDENCE / 2), 1
    return from_published(measured.mean, measured.std, measured.seeds, published.value, std, runs)


def verdict_of(measured: OverSeeds, published: Published) -> Verdict:
    """The verdict of `RULE` on at least one seed. measured: in the published units."""
    if published.other_data:
        return "other data"
    if math.isnan(measured.mean):
        return "not measured"
    interval, near = interval_of(measured, published), abs(measured.mean - published.value) <= published.within
    if interval is not None and interval.within(published.within):
        return "agrees"
    if interval is not None and interval.includes_zero:
        return "consistent, wide"
    return "close" if near else "differs"


def in_words(verdict: Verdict, published: Published) -> str:
    """The verdict as a table shows it: a difference is explained or not."""
    if verdict != "differs":
        return verdict
    return "differs, explained" if published.explained else "differs, unexplained"


def sentence(verdicts: Sequence[Verdict], explained: int) -> str:
    """How many published values have which verdict; empty for none. explained: of those that differ."""
    if not verdicts:
        return ""
    many = {"agrees": "agree", "close": "are close", "differs": "differ", "other data": "rest on other data"}
    many |= {"consistent, wide": "are consistent with a wide interval"}
    single = {"close": "is close", "other data": "rests on other data"}
    single |= {"consistent, wide": "is consistent with a wide interval"}
    parts: list[str] = []
    for verdict in VERDICTS:
        count = verdicts.count(verdict)
        if count or verdict in ("agrees", "close", "differs"):
            more = f" ({explained} explained)" if verdict == "differs" and explained else ""
            parts.append(f"{count} {(single if count == 1 else many).get(verdict, verdict)}{more}")
    return f"{len(verdicts)} published value{'s' if len(verdicts) > 1 else ''}: {', '.join(parts)}."
