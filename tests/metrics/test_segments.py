import jax.numpy as jnp
import numpy as np

from idiolect.metrics.segments import exact_sum, segment_sum, wins


def test_sums_leave_out_what_does_not_count():
    values = jnp.array([[1.0, jnp.inf], [3.0, 4.0], [5.0, 6.0]])
    keep, owner = jnp.array([[True, False], [True, True], [True, True]]), jnp.array([1, 1, 0])
    np.testing.assert_array_equal(segment_sum(values, keep, owner, 3), [11, 8, 0])


def test_whole_numbers_add_up_to_the_last_one():
    rng = np.random.default_rng(0)
    values, owner = rng.integers(0, 2**30, 4000), rng.integers(0, 4, 4000)
    found = exact_sum(jnp.asarray(values, jnp.int32), jnp.asarray(owner), 3)
    expected = [values[owner == client].sum() for client in range(3)]
    np.testing.assert_allclose(found, expected, rtol=1.5e-7)
    np.testing.assert_array_equal(exact_sum(jnp.full(2**14, 1023), jnp.zeros(2**14, int), 1), [1023 * 2**14])


def test_wins_pair_by_pair():
    rng = np.random.default_rng(1)
    owner, score = rng.integers(0, 4, 300), rng.integers(0, 12, 300).astype(np.float32)
    positive = rng.random(300) < 0.3
    found = wins(jnp.asarray(score), jnp.asarray(positive), jnp.asarray(owner), 3)
    for client in range(3):
        mine = owner == client
        ours, theirs = score[mine & positive][:, None], score[mine & ~positive][None]
        assert found[client] == (ours > theirs).sum() + (ours == theirs).sum() / 2


def test_a_tie_at_the_very_start_is_half_a_win():
    found = wins(jnp.array([1.0, 1.0, 2.0]), jnp.array([False, True, True]), jnp.array([0, 0, 0]), 1)
    assert found.tolist() == [1.5]
