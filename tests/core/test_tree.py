import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core import tree

X = {"a": jnp.array([1.0, 2.0]), "b": {"c": jnp.array([[3.0]])}}
Y = {"a": jnp.array([10.0, 20.0]), "b": {"c": jnp.array([[30.0]])}}


def leaves(x):
    return [*np.asarray(x["a"]), float(x["b"]["c"][0, 0])]


def test_add_scaled_subtract_and_lerp():
    assert leaves(tree.add_scaled(X, -2.0, Y)) == [-19, -38, -57]
    assert leaves(tree.subtract(X, Y)) == [-9, -18, -27]
    assert leaves(tree.lerp(X, Y, 0.25)) == [3.25, 6.5, 9.75]
    assert leaves(tree.lerp(X, Y, 2.0)) == [19, 38, 57]


def test_lerp_is_exact_at_both_ends():
    x, y = jnp.array([0.1, 1e8]), jnp.array([1 / 3, 7.0])
    np.testing.assert_array_equal(tree.lerp(x, y, 0.0), x)
    np.testing.assert_array_equal(tree.lerp(x, y, 1.0), y)


def test_dot_sums_the_products_of_all_leaves():
    assert float(tree.dot(X, Y)) == 140.0


def test_squared_norm_sums_over_leaves():
    assert float(tree.squared_norm(X)) == 14.0
    assert float(tree.squared_norm(None)) == 0.0


def test_arithmetic_keeps_single_precision_under_x64(x64):
    x, y = jnp.ones(3, jnp.float32), jnp.ones(3, jnp.float64)
    for result in (tree.add_scaled(x, np.float64(0.1), y), tree.lerp(x, x, 0.5), tree.squared_norm(x)):
        assert result.dtype == jnp.float32


def test_weighted_mean_divides_by_the_sum_of_the_weights():
    stack = {"a": jnp.array([[1.0, 2.0], [3.0, 6.0]]), "b": jnp.array([4.0, 8.0])}
    mean = tree.weighted_mean(stack, jnp.array([1.0, 3.0]))
    np.testing.assert_allclose(mean["a"], [2.5, 5.0])
    np.testing.assert_allclose(mean["b"], 7.0)


def test_weighted_sum_adds_rows_times_their_weights():
    stack = {"a": jnp.array([[1.0, 2.0], [3.0, 4.0], [jnp.nan, jnp.inf]])}
    total = tree.weighted_sum(stack, jnp.array([2.0, 1.0, 0.0]))
    np.testing.assert_allclose(total["a"], [5.0, 8.0])


def test_weighted_mean_ignores_what_a_row_of_weight_zero_holds():
    stack = jnp.array([[1.0], [jnp.nan], [jnp.inf]])
    np.testing.assert_array_equal(tree.weighted_mean(stack, jnp.array([2.0, 0.0, 0.0])), [1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_all_finite_sees_every_leaf_and_skips_integers(bad):
    assert bool(tree.all_finite((X, jnp.arange(3))))
    assert bool(tree.all_finite(None))
    assert not bool(tree.all_finite((X, {"d": jnp.array([0.0, bad])})))


def test_what_has_no_finiteness_is_not_asked():
    """The key of a random stream is among the leaves of a state."""
    assert bool(tree.all_finite((X, jax.random.key(0))))
    assert not bool(tree.all_finite((jax.random.key(0), jnp.array(np.nan))))


def test_partial_trees_are_combined_and_a_whole_one_is_itself():
    part, rest = {"a": X["a"], "b": {"c": None}}, {"a": None, "b": X["b"]}
    assert leaves(tree.merged(part, rest)) == leaves(X)
    assert leaves(tree.merged(rest, part)) == leaves(X)
    assert tree.merged(X, None) is X


def test_trees_of_other_shapes_have_no_product():
    with pytest.raises(ValueError, match="zip"):
        tree.dot(X, {"a": Y["a"]})


def test_bytes_are_those_of_all_leaves():
    mixed = {"pair": (jnp.arange(3.0), (jnp.asarray(2, jnp.int32), None)), "flag": jnp.asarray(True)}
    assert tree.bytes_of(mixed) == 3 * 4 + 4 + 1
    assert tree.bytes_of(jax.eval_shape(lambda: mixed)) == 3 * 4 + 4 + 1


def test_a_copy_has_buffers_of_its_own_and_keeps_what_is_no_array():
    given = {"x": jnp.arange(3.0), "key": jax.random.key(7), "none": None, "name": "mean", "rate": 0.5}
    copy = tree.copied(given)
    assert copy["x"].unsafe_buffer_pointer() != given["x"].unsafe_buffer_pointer()
    assert jax.random.key_data(copy["key"]).tolist() == jax.random.key_data(given["key"]).tolist()
    jax.jit(lambda kept: (kept[0] + 1, kept[1]), donate_argnums=0)((copy["x"], copy["key"]))
    assert copy["x"].is_deleted()
    assert given["x"].tolist() == [0, 1, 2]
    assert jax.random.key_data(given["key"]).tolist() == jax.random.key_data(jax.random.key(7)).tolist()
    assert (copy["none"], copy["name"], copy["rate"]) == (None, "mean", 0.5)


def test_gather_takes_rows_of_every_leaf():
    stack = (jnp.arange(6).reshape(3, 2), None)
    np.testing.assert_array_equal(tree.gather(stack, jnp.array([2, 0]))[0], [[4, 5], [0, 1]])
    assert tree.gather(None, 1) is None


def test_rows_on_the_host_are_copies_in_numpy_and_keys_stay_keys():
    stack = {"w": jnp.arange(6.0).reshape(3, 2), "key": jax.random.split(jax.random.key(5), 3)}
    found = tree.gather_on_host(stack, np.asarray([2, 0, 2]))
    assert isinstance(found["w"], np.ndarray)
    np.testing.assert_array_equal(found["w"], [[4, 5], [0, 1], [4, 5]])
    found["w"][:] = 0
    np.testing.assert_array_equal(stack["w"], np.arange(6).reshape(3, 2))
    assert tree.is_key(found["key"])
    assert not tree.is_key(found["w"])
    assert (jax.random.key_data(found["key"]) == jax.random.key_data(stack["key"])[np.asarray([2, 0, 2])]).all()


@pytest.mark.parametrize(("setting", "off"), [(0, True), (0.0, True), (1e-9, False), (jnp.asarray(0.0), False)])
def test_only_what_is_zero_before_compilation_is_off(setting, off):
    assert tree.is_off(setting) is off
