"""Macro-F1 against its definition, and numbers over no seed."""

import math

import numpy as np
import pytest

from idiolect.study.summary import macro_f1, over_seeds


def table_of(predicted, actual, classes):
    """The table of classes, sample by sample."""
    table = np.zeros((3, classes), np.int64)
    for said, true in zip(predicted, actual, strict=True):
        table[0, true] += said == true
        table[1, said] += 1
        table[2, true] += 1
    return table


def by_definition(predicted, actual):
    """The mean of 2 P R / (P + R), 0 where a class has no right prediction, over the labels in either list."""
    values = []
    for label in {*predicted, *actual}:
        right = sum(said == true == label for said, true in zip(predicted, actual, strict=True))
        if right == 0:
            values.append(0.0)
            continue
        precision = right / sum(said == label for said in predicted)
        recall = right / sum(true == label for true in actual)
        values.append(2 * precision * recall / (precision + recall))
    return sum(values) / len(values)


def test_by_hand():
    # Class 0: 2 right of 3 predicted and 2 there, 4/5. Class 1: 1 of 1 and 2, 2/3. Class 2: predicted in vain, 0.
    # Class 3 is there and never predicted, 0. Class 4 is neither: it does not count.
    predicted, actual = [0, 0, 0, 1, 2], [0, 0, 1, 1, 3]
    assert macro_f1(table_of(predicted, actual, 5)) == pytest.approx((4 / 5 + 2 / 3 + 0 + 0) / 4)


@pytest.mark.parametrize("seed", range(5))
def test_by_definition(seed):
    """On random predictions, of which some classes never occur."""
    rng = np.random.default_rng(seed)
    actual = rng.choice(9, 40, p=rng.dirichlet(np.full(9, 0.4)))
    predicted = np.where(rng.random(40) < 0.6, actual, rng.integers(0, 7, 40))
    table = table_of(predicted, actual, 9)
    assert macro_f1(table) == pytest.approx(by_definition(predicted.tolist(), actual.tolist()), rel=1e-12)
    assert macro_f1(3 * table) == pytest.approx(macro_f1(table))
    assert abs(macro_f1(table) - table[0].sum() / 40) > 0.01  # accuracy is another number


def test_no_sample_is_no_number():
    assert math.isnan(macro_f1(np.zeros((3, 4), np.int64)))
    nothing = over_seeds([])
    assert nothing.seeds == 0
    assert all(math.isnan(value) for value in (nothing.mean, nothing.std, nothing.half_width))
