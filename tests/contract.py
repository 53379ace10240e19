"""What the contract promises of every method, checked on small quadratics."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.algorithms.base import Algorithm, Cohort, start_of
from idiolect.client.client import Client
from tests.federations import quadratics, rows, run

KEY = jax.random.key(7)


def vector(params: Any) -> np.ndarray:
    """The parameters of one model as a vector in double precision."""
    return rows(jax.tree.map(lambda leaf: leaf[None], params))[0].astype(float)


@eqx.filter_jit
def sent_by(algorithm: Algorithm, client: Client, shared: Any, private: Any = None) -> tuple[Any, Any]:
    """(message, private state) of one client after one round."""
    view = algorithm.view(shared, client.id)
    return algorithm.local(view, private, client, jax.random.fold_in(KEY, client.id))


def close(state: Any, other: Any) -> None:
    """The same numbers, but for rounding."""
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(other), strict=True):
        if not jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6)


def is_the_same_however_executed(method: Algorithm, rounds: int = 4) -> None:
    """Block size, the amount of padding and clients trained for nothing change no state."""
    problem = quadratics((3, 1, 6, 2, 4), noise=1.0)
    sampled = {"cohort": 2.5, "sampling": "binomial"}
    plain = problem.simulation(method, **sampled, block=1, rounds=rounds)
    other = problem.simulation(method, **sampled, block=2, rounds=60, train="all")
    close(run(plain, rounds), run(other, rounds))
    sizes = {simulation.sampling.capacity(jax.random.key(0), simulation.rounds) for simulation in (plain, other)}
    assert len(sizes) == 2  # the cohorts really are padded differently


def ignores_padding(method: Algorithm, rounds: int = 1) -> None:
    """What a padded row holds, even NaN, does not reach the server; nor does the number of such rows."""
    problem = quadratics((3, 1, 6, 2), noise=1.0)
    start = start_of(problem.data, problem.params)
    shared = method.init(start, KEY)
    ids, sizes = jnp.asarray([2, 0, 3]), jnp.asarray([6.0, 3.0, 2.0])
    private = jax.vmap(lambda i: method.init_private(start, jax.random.fold_in(KEY, i)))(ids)
    total = jnp.asarray(float(problem.sizes.sum()))
    padded = Cohort(ids, sizes, jnp.asarray([True, True, False]), 4, total, 2.0)
    real = Cohort(ids[:2], sizes[:2], jnp.ones(2, bool), 4, total, 2.0)

    @eqx.filter_jit
    def one_round(shared: Any, private: Any) -> tuple[Any, Any, Any]:
        messages, private = jax.vmap(lambda i, own: sent_by(method, problem.client(i), shared, own))(ids, private)
        spoilt = jax.tree.map(lambda leaf: leaf.at[2].set(jnp.nan if eqx.is_inexact_array(leaf) else -1), messages)
        first = jax.tree.map(lambda leaf: leaf[:2], messages)
        return method.aggregate(shared, padded, spoilt), method.aggregate(shared, real, first), private

    for _ in range(rounds):
        got, expected, private = one_round(shared, private)
        close(got, expected)
        assert any(not np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, (got, shared)), strict=True))
        shared = got


def keeps_nothing(method: Algorithm) -> None:
    """The method has no private state; if given one, it neither sends nor touches it."""
    problem = quadratics((3, 1))
    start = start_of(problem.data, problem.params)
    assert method.init_private(start, KEY) is None
    shared = method.init(start, KEY)
    message, kept = sent_by(method, problem.client(0), shared, {"own": jnp.asarray([0.25, -3.0])})
    same, other = sent_by(method, problem.client(0), shared, {"own": jnp.asarray([7.0, 1.0])})
    np.testing.assert_array_equal(kept["own"], [0.25, -3.0])
    np.testing.assert_array_equal(other["own"], [7.0, 1.0])
    close(message, same)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(message)]
    assert paths
    assert not any("own" in path for path in paths)
