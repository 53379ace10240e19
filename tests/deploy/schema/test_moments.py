"""Moments of groups, pooled, are those of all numbers."""

import numpy as np
import pytest

from idiolect.deploy.schema.moments import Moments, pooled


def of(values):
    return Moments(count=len(values), mean=values.mean(), m2=((values - values.mean()) ** 2).sum())


@pytest.mark.parametrize("origin", [0.0, 1e12, -3e12])
def test_pooled_is_of_all_numbers_also_far_from_zero(origin):
    values = origin + np.random.default_rng(0).integers(0, 100, 60).astype(float)
    found = pooled([of(part) for part in np.split(values, [1, 20, 55])])
    exact = np.array([value - origin for value in values])
    assert found.count == 60
    assert found.mean - origin == pytest.approx(exact.mean(), abs=max(abs(origin), 1) * 1e-15)
    assert found.m2 == pytest.approx(((exact - exact.mean()) ** 2).sum(), rel=1e-6)


def test_constant_only_if_all_are_and_alike():
    one, other = (Moments(count=3, mean=mean, m2=0.0, constant=True) for mean in (0.1, 0.2))
    assert pooled([one, one, one]) == Moments(count=9, mean=0.1, m2=0.0, constant=True)
    apart = pooled([one, other])
    assert (apart.constant, apart.m2) == (False, pytest.approx(6 * 0.05**2))
