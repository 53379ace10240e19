import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.runtime.sampling import Sampling

SEED = jax.random.key(2)
ROUNDS = 4000


def cohorts(sampling, rounds=ROUNDS):
    capacity = sampling.capacity(SEED, rounds)
    draw = jax.jit(jax.vmap(lambda t: sampling.draw(SEED, t, capacity)))
    return [np.asarray(a) for a in draw(jnp.arange(rounds))]


def test_a_fixed_cohort_has_s_distinct_clients_each_equally_often():
    ids, present = cohorts(Sampling(5, 20))
    assert present.all()
    assert ids.shape == (ROUNDS, 5)
    assert all(len(set(row)) == 5 for row in ids)
    counts, expected = np.bincount(ids.ravel(), minlength=20), ROUNDS * 5 / 20
    # Each count is binomial; (counts - expected) / sd has mean square 1.
    assert np.abs(counts - expected).max() < 4.5 * math.sqrt(expected * 0.75)
    together = np.mean([0 in row and 1 in row for row in ids])
    assert abs(together - 5 * 4 / (20 * 19)) < 4 * math.sqrt(0.0526 / ROUNDS)


def test_a_full_cohort_is_everyone():
    ids, present = cohorts(Sampling(7, 7), 5)
    assert present.all()
    assert all(sorted(row) == list(range(7)) for row in ids)


@pytest.fixture(scope="module")
def binomial():
    return cohorts(Sampling(2.5, 10, "binomial"))


def test_a_binomial_cohort_has_the_binomials_mean_and_variance(binomial):
    ids, present = binomial
    counts = present.sum(axis=1)
    assert abs(counts.mean() - 2.5) < 4 * math.sqrt(1.875 / ROUNDS)
    assert abs(counts.var() - 1.875) < 0.25
    assert counts.min() == 0  # probability .75^10 = 5.6 % a round
    assert counts.max() == present.shape[1]  # the capacity holds the largest cohort, and no more
    members = np.bincount(ids[present], minlength=10)
    assert np.abs(members - ROUNDS / 4).max() < 4.5 * math.sqrt(ROUNDS * 0.1875)
    for row, real in zip(ids[:200], present[:200], strict=True):
        assert len(set(row[real])) == real.sum()


def test_the_capacity_is_the_largest_cohort_of_exactly_these_rounds():
    """So that neither the first round nor the last may be left out."""
    sampling, keys = Sampling(2.5, 10, "binomial"), jax.random.split(jax.random.key(0), 12)
    draw = jax.jit(jax.vmap(jax.vmap(lambda k, t: sampling.draw(k, t, 10)[1].sum(), (None, 0)), (0, None)))
    drawn = np.maximum(draw(keys, jnp.arange(3)), 1)
    largest = set(np.argmax(drawn, axis=1).tolist())
    assert largest == {0, 1, 2}  # each round is the largest for some seed
    for key, counts in zip(keys, drawn, strict=True):
        assert sampling.capacity(key, 1) == counts[0]
        assert sampling.capacity(key, 3) == max(counts)
    assert sampling.capacity(keys[0], 0) == drawn[0, 0]  # a run without training is evaluated all the same
    assert Sampling(3, 10).capacity(keys[0], 3) == 3


def test_a_binomial_cohort_of_everyone_is_everyone():
    ids, present = Sampling(6, 6, "binomial").draw(SEED, 0, 6)
    assert present.all()
    assert sorted(ids.tolist()) == list(range(6))


def test_a_cohort_depends_on_seed_and_round_alone(binomial):
    fixed, (ids, _) = Sampling(3, 10), binomial
    draws = [fixed.draw(SEED, t, 3)[0].tolist() for t in range(6)]
    assert draws == [fixed.draw(SEED, t, 3)[0].tolist() for t in range(6)]
    assert len(set(map(tuple, draws))) > 1
    others = [fixed.draw(jax.random.key(3), t, 3)[0].tolist() for t in range(6)]
    assert draws != others
    assert len({row.tobytes() for row in ids}) > ROUNDS / 2
    alone, present = Sampling(2.5, 10, "binomial").draw(SEED, 7, ids.shape[1])
    np.testing.assert_array_equal(alone, ids[7])
    np.testing.assert_array_equal(present, binomial[1][7])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5), "cohort = 0 must be greater than 0"),
        ((-1, 5), "cohort = -1 must be"),
        ((6, 5), "cohort = 6 is larger than the 5 clients"),
        ((2.5, 5), "cohort = 2.5 must be a whole number"),
        ((float("nan"), 5), "cohort = nan must be"),
        ((6, 5, "binomial"), "cohort = 6 is larger"),
        ((2, 5, "poisson"), "sampling 'poisson'"),
    ],
)
def test_impossible_cohorts_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Sampling(*arguments)
