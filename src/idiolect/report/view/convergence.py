"""Whether a curve still improves at the end of training."""

import math

import numpy as np
from jaxtyping import Float

from idiolect.report.view.parts import Key, Part
from idiolect.study.analyse.intervals import ALPHA

TAIL, FEWEST = 0.2, 4
"""The share of evaluations at the end that are tested, and how many these are at least."""
SMALL = 0.01
"""A change over these evaluations that is less than this share of the whole curve's range does not count."""
LAST = 0.1
"""With too few evaluations for a test: the share of the range by which the last one improves on the one before."""


def still_improving(mean: Float[np.ndarray, "rounds"], *, higher: bool) -> bool | None:
    """Whether the last evaluations improve beyond their noise; None with fewer than two evaluations.

    The slope of the least-squares line through the last 20 % of the evaluations (four or more) is tested against its
    standard error (Student's t, one-sided, 5 %). Evaluations must also improve by more than 1 % of the curve's range.
    With four evaluations or fewer nothing can be tested: the last step counts if it is over 10 % of the range.
    """
    values = mean[np.isfinite(mean)] if higher else -mean[np.isfinite(mean)]
    if len(values) < 2:
        return None
    if len(values) <= FEWEST:
        return bool(values[-1] - values[-2] > LAST * float(np.ptp(values)))
    tail = values[-max(FEWEST, math.ceil(TAIL * len(values))) :]
    place = np.arange(len(tail)) - (len(tail) - 1) / 2
    slope = float(place @ tail / (place @ place))
    if slope * (len(tail) - 1) <= SMALL * float(np.ptp(values)):
        return False
    rest = tail - tail.mean() - slope * place
    error = math.sqrt(float(rest @ rest) / (len(tail) - 2) / float(place @ place))
    from scipy import stats  # here: it loads slowly, and most commands never need it

    return error == 0 or float(stats.t.sf(slope / error, len(tail) - 2)) < ALPHA


def rising(part: Part, key: Key) -> bool:
    """Whether a model's test score still improves at the end; False where its curve is not known.

    Where runs stop by their validation loss, this loss decides.
    """
    if part.falling is not None:
        return key in part.falling
    courses = (c for q in part.quantities if q.kind == "score" for c in q.courses if c.key == key)
    return any(still_improving(course.mean, higher=part.metric.higher) for course in courses)
