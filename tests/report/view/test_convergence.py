import numpy as np
import pytest

from idiolect.report.view.convergence import rising, still_improving
from idiolect.report.view.parts import Course, Quantity
from tests.report.html.made import part_of

FLAT = np.concatenate([np.linspace(0.1, 0.8, 10), 0.8 + 0.004 * np.array([1, -1, 1, -1, 1, -1, 1, -1, 1, -1])])
RISING = np.linspace(0.1, 0.8, 20)


@pytest.mark.parametrize(
    ("mean", "higher", "improving"),
    [
        (RISING, True, True),
        (RISING, False, False),
        (RISING[::-1], False, True),
        (RISING[::-1], True, False),
        (FLAT, True, False),
        (np.r_[FLAT, 0.8 + 0.0004 * np.arange(10)], True, False),  # rises surely, by less than 1 % of the range
        (np.r_[np.linspace(0.1, 0.7, 16), 0.70, 0.76, 0.71, 0.77], True, False),  # rises, within its noise
        (np.r_[np.linspace(0.1, 0.7, 16), 0.71, 0.729, 0.75, 0.768], True, True),
        (np.full(20, 0.5), True, False),
        (np.r_[RISING[:19], np.nan], True, True),
        (RISING[:5], True, True),
        (RISING[:4], True, True),  # too few for a test: a third of the range in the last step
        (np.r_[RISING[:4], np.nan], True, True),
        (RISING[:2], False, False),
        (np.array([0.1, 0.7, 0.79, 0.8]), True, False),  # less than a tenth of the range
        (np.array([0.9, 0.2]), False, True),
        (np.array([0.1, 0.6, 0.7]), True, True),  # a sixth of the range
        (np.array([0.1, 0.74, 0.8]), True, False),  # a twelfth
        (RISING[:1], True, None),
    ],
)
def test_a_curve_improves_if_its_end_rises_beyond_noise(mean, higher, improving):
    assert still_improving(np.asarray(mean), higher=higher) is improving


def test_a_models_curve_is_that_of_its_test_score():
    key, other = ("ditto", "personal"), ("local", "local")
    rounds, half = np.arange(20.0), np.full(20, np.nan)
    part = part_of(
        {key: {0: (0.8,) * 3}, other: {0: (0.8,) * 3}},
        quantities=(
            Quantity("score", "", True, (Course(key, rounds, RISING, half), Course(other, rounds, FLAT, half))),
            Quantity("validation", "", True, (Course(other, rounds, RISING, half),)),
        ),
    )
    assert rising(part, key)
    assert not rising(part, other)
    assert not rising(part, ("ditto", "global"))
