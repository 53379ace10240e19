"""The best of several, and who is not told apart from it."""

import pytest
from scipy import stats

from idiolect.study.best import best_of


def seeds(*values):
    return dict(enumerate(values))


BASE = (0.80, 0.82, 0.81, 0.79, 0.83)
CLOSE = (0.81, 0.80, 0.815, 0.80, 0.815)
FAR = tuple(value - 0.1 + 0.001 * i for i, value in enumerate(BASE))


def test_only_what_the_test_does_not_tell_apart_is_alike():
    found = best_of({"a": seeds(*FAR), "b": seeds(*BASE), "c": seeds(*CLOSE)}, higher=True)
    assert (found.name, found.alike) == ("b", {"b", "c"})
    raw = {"a": stats.ttest_rel(FAR, BASE).pvalue, "c": stats.ttest_rel(CLOSE, BASE).pvalue}
    assert found.p == pytest.approx({"a": 2 * raw["a"], "c": max(raw["c"], 2 * raw["a"])})


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
    assert some.p["b"] == pytest.approx(stats.ttest_rel([0.70, 0.71], [0.82, 0.83]).pvalue)
