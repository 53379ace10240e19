"""The best of several, and who is not told apart from it."""

import numpy as np
import pytest
from scipy import stats

from idiolect.study.best import best_of
from idiolect.study.intervals import holm, paired


def seeds(*values):
    return dict(enumerate(values))


BASE = (0.80, 0.82, 0.81, 0.79, 0.83)
CLOSE = (0.81, 0.80, 0.815, 0.80, 0.815)
FAR = tuple(value - 0.1 + 0.001 * i for i, value in enumerate(BASE))


def test_only_what_the_test_does_not_tell_apart_is_alike():
    found = best_of({"a": seeds(*FAR), "b": seeds(*BASE), "c": seeds(*CLOSE)}, higher=True)
    assert (found.name, found.alike) == ("b", {"b", "c"})
    pairs = ((FAR, BASE), (FAR, CLOSE), (CLOSE, BASE))
    raw = holm([stats.ttest_rel(one, other).pvalue for one, other in pairs])
    assert found.p == pytest.approx({"a": raw[0], "c": raw[2]})


def test_where_low_is_good():
    assert best_of({"a": seeds(*FAR), "b": seeds(*BASE)}, higher=False).alike == {"a"}


def test_one_seed_proves_nothing():
    assert best_of({"a": seeds(0.9), "b": seeds(0.1)}, higher=True) is None
    assert best_of({"a": seeds(*BASE)}, higher=True) is None
    assert best_of({"a": seeds(*BASE), "b": seeds(float("nan"), 1.0)}, higher=True) is None


def test_seeds_are_paired_where_both_have_them():
    some = best_of({"a": seeds(*BASE), "b": {1: 0.70, 4: 0.71}, "c": {9: 0.1, 10: 0.1}}, higher=True)
    assert some.name == "a"
    assert "c" in some.alike  # without a common seed nobody can tell
    assert "c" not in some.p
    equal = best_of({"a": seeds(*BASE), "b": {1: 0.70, 4: 0.71}}, higher=True, resolution=0.01)
    assert equal.p["b"] == pytest.approx(paired([0.82, 0.83], [0.70, 0.71], resolution=0.01).p)
    assert (some.p["b"], "b" in some.alike) == (1.0, True)  # two equal gaps of 0.12 prove nothing without steps


@pytest.mark.parametrize("methods", [3, 10])
def test_the_best_of_equal_models_is_seldom_ahead_beyond_noise(methods):
    """The same ten seeds choose the best and test it."""
    rng, tries = np.random.default_rng(methods), 60
    wrong = 0
    for _ in range(tries):
        scores = rng.binomial(500, 0.9, (methods, 10)) / 500
        found = best_of({i: seeds(*row) for i, row in enumerate(scores)}, higher=True, resolution=1 / 500)
        wrong += len(found.alike) < methods
    assert stats.binomtest(wrong, tries, 0.05, alternative="greater").pvalue > 1e-3
