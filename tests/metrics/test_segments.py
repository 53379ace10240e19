import numpy as np

from idiolect.metrics.segments import segment_sum, wins


def test_sums_of_whole_numbers_are_exact():
    rng = np.random.default_rng(0)
    values, owner = rng.integers(0, 2**40, 4000), rng.integers(0, 3, 4000)
    expected = [values[owner == client].sum() for client in range(4)]
    np.testing.assert_array_equal(segment_sum(values, owner, 4), expected)


def test_wins_pair_by_pair():
    rng = np.random.default_rng(1)
    owner, score = rng.integers(0, 4, 300), rng.integers(0, 12, 300).astype(float)
    positive = rng.random(300) < 0.3
    found = wins(score, positive, owner, 5)
    for client in range(5):
        mine = owner == client
        ours, theirs = score[mine & positive][:, None], score[mine & ~positive][None]
        assert found[client] == (ours > theirs).sum() + (ours == theirs).sum() / 2


def test_a_tie_at_the_very_start_is_half_a_win_and_nobody_wins_nothing():
    found = wins(np.array([1.0, 1.0, 2.0]), np.array([False, True, True]), np.array([0, 0, 0]), 1)
    assert found.tolist() == [1.5]
    assert wins(np.zeros(0), np.zeros(0, bool), np.zeros(0, int), 2).tolist() == [0, 0]
