"""What is said while an advice is at work: the sign, the share, and the interval."""

import numpy as np
import pytest

from idiolect.study.advice.scored import Candidate
from idiolect.study.advice.stages import after, first_answer

SPREAD = 0.02 * np.array([-1, 1] * 4)
HALF = 2.364624 * 0.02 * np.sqrt(8 / 7 * (1 / 8 + 1 / 3))
"""Of the interval: t of 7 degrees of freedom, the corrected resampled error with test / other rows 1 / 3."""


def of(name: str, loss: float, spread: float = 0.0) -> Candidate:
    """A candidate with this mean loss over eight divisions of ten rows."""
    rows = tuple(np.full(10, each) for each in loss + spread * SPREAD)
    return Candidate(name, "baseline", rows, rows)


@pytest.mark.parametrize(
    ("loss", "words", "change"),
    [
        (1.5, "sharing is likely to pay", "25.0 % lower"),
        (2.5, "one shared model is likely to be worse than local training", "25.0 % higher"),
        (1.999, "inconclusive so far", "0.1 % lower"),
    ],
)
@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_the_first_answer_is_what_pooled_rows_change(loss: float, words: str, change: str, kind: str) -> None:
    bars = [of("own guess", 9.0), of(f"own {kind}", 2.0), of(f"pooled {kind}", loss, 1.0)]
    text = first_answer(bars, 1 / 3, 8)
    low, high = (100 * (loss - 2 + sign * HALF) / 2 for sign in (-1, 1))
    assert text == (
        f"First answer, from regressions: {words}. Pooled rows have {change} test loss than each client's own rows "
        f"(95 % interval {low:+.1f} % to {high:+.1f} %). "
        "Federated models, groups of clients and trees can still change this."
    )


def test_an_answer_from_some_divisions_says_so() -> None:
    bars = [of("own ridge", 2.0), of("pooled ridge", 1.5, 1.0)]
    assert first_answer(bars, 1 / 3, 12).startswith("First answer, from regressions on 8 of 12 divisions: sharing is")


def test_without_both_regressions_there_is_no_first_answer() -> None:
    assert first_answer([], 1 / 3, 8) == ""
    assert first_answer([of("own ridge", 1.0), of("pooled guess", 1.0)], 1 / 3, 8) == ""
    assert first_answer([of("pooled ridge", 1.0), of("pooled ridge without clients", 1.0)], 1 / 3, 8) == ""


def test_a_finished_method_is_told_with_those_to_come() -> None:
    local = of("local", 4.0)
    half = 100 * HALF / 4
    assert after(of("ditto", 3.0, 1.0), local, ["ifca", "apfl"], 1 / 3) == (
        "ditto: 25.0 % lower test loss than local training "
        f"(95 % interval {-25 - half:+.1f} % to {-25 + half:+.1f} %). Still to come: ifca, apfl."
    )
    assert after(of("ditto", 5.0, 1.0), local, [], 1 / 3).startswith("ditto: 25.0 % higher test loss than local")


def test_a_gap_that_is_equal_in_every_division_has_no_interval() -> None:
    assert (
        after(of("ditto", 3.0), of("local", 4.0), [], 1 / 3) == "ditto: 25.0 % lower test loss than local training."
    )
