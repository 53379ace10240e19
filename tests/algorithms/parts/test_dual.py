"""One client's dual coordinate ascent against plain coordinate ascent written by hand."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.parts.conjugates import LOSSES
from idiolect.algorithms.parts.dual import Subproblem, matrix_of, params_of, require_linear
from idiolect.algorithms.start import start_of
from idiolect.client.objective import objective_of
from idiolect.core.errors import ConfigError
from idiolect.core.random import permuted
from idiolect.models import build
from tests.federations import client_of, federation, split_of

SIZE, OUTPUTS, CURVATURE = 75, 3, 0.8  # three blocks of samples, the last one short
KEY = jax.random.key(5)
rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(size=(SIZE, 4)), np.ones((SIZE, 1))], axis=1)
Y = rng.integers(0, OUTPUTS, SIZE)
SIGNS = np.where(np.arange(OUTPUTS) == Y[:, None], 1.0, -1.0)
W = rng.normal(size=(OUTPUTS, 5))


class Linear(eqx.Module):
    """weight x + bias."""

    weight: jax.Array
    bias: jax.Array

    def __call__(self, x):
        return self.weight @ x + self.bias


@pytest.fixture
def problem(x64):
    """Between two other clients' samples lie the 75 of one client, who has room for 80."""
    parts = [(10 + rng.normal(size=(n, 4)), rng.integers(0, OUTPUTS, n)) for n in (7, 80)]
    data = federation(split_of([parts[0], (X[:, :4], Y), parts[1]]), task="classification", classes=("a", "b", "c"))
    model = Linear(jnp.asarray(W[:, :4]), jnp.asarray(W[:, 4]))
    client = client_of(data, objective_of(model, "classification"), 1)
    start = matrix_of(model)
    np.testing.assert_array_equal(start, W)
    return lambda loss: Subproblem(client, start, jnp.asarray(CURVATURE), LOSSES[loss])


def duals(loss, seed=1):
    """Dual variables inside their domain; the last rows belong to no sample."""
    values = np.zeros((80, OUTPUTS))
    values[:SIZE] = SIGNS * np.random.default_rng(seed).uniform(0.1, 0.9, (SIZE, OUTPUTS))
    return values


def by_hand(loss, a, image, sweeps):
    """Coordinate ascent one sample and one output after the other, in the order of the key."""
    step = jax.jit(LOSSES[loss].ascend)
    a, image = a.copy(), image.copy()
    for number in range(sweeps):
        order = permuted(jax.random.fold_in(KEY, number), jnp.arange(SIZE), SIZE)
        assert sorted(order.tolist()) == list(range(SIZE))
        for i in np.asarray(order):
            z = (W + CURVATURE * image) @ X[i]
            new = np.asarray(step(*map(jnp.asarray, (a[i], z, SIGNS[i], np.asarray(CURVATURE * X[i] @ X[i])))))
            image += np.outer(new - a[i], X[i])
            a[i] = new
    return a, image


def objective(loss, a, change):
    """G by its definition, at the change of the dual variables."""
    image = change[:SIZE].T @ X
    conjugate = LOSSES[loss].conjugate(jnp.asarray((a + change)[:SIZE]), jnp.asarray(SIGNS))
    return float(jnp.sum(conjugate) + np.vdot(W, image) + CURVATURE / 2 * np.vdot(image, image))


@eqx.filter_jit
def solve(problem, a, passes, theta=0.0):
    a = jnp.asarray(a)
    return problem.solve(a, problem.totals(a, jnp.zeros_like(problem.start)), KEY, passes, theta)


@pytest.mark.parametrize("loss", LOSSES)
def test_sweeps_are_coordinate_ascent_by_hand(problem, loss):
    a = duals(loss)
    for passes in (1, 2):
        new, image = map(np.asarray, solve(problem(loss), a, passes))
        expected, change = by_hand(loss, a, np.zeros_like(W), passes)
        np.testing.assert_allclose(new, expected, atol=1e-12)
        np.testing.assert_allclose(image, change, atol=1e-11)
        np.testing.assert_allclose(image, (new - a)[:SIZE].T @ X, atol=1e-11)
        np.testing.assert_array_equal(new[SIZE:], 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_totals_are_the_sums_by_definition(problem, loss):
    a, image = duals(loss), np.random.default_rng(2).normal(size=W.shape)
    got = problem(loss).totals(jnp.asarray(a), jnp.asarray(image))
    z, own, signs = X @ (W + CURVATURE * image).T, jnp.asarray(a[:SIZE]), jnp.asarray(SIGNS)
    assert float(got.loss) == pytest.approx(float(LOSSES[loss].value(jnp.asarray(z), signs).sum()))
    assert float(got.conjugate) == pytest.approx(float(LOSSES[loss].conjugate(own, signs).sum()))
    assert float(got.product) == pytest.approx(float(np.vdot(a[:SIZE], z)))
    assert float(got.gap) == pytest.approx(float(got.loss + got.conjugate + got.product))
    assert float(problem(loss).conjugate(jnp.asarray(a))) == pytest.approx(float(got.conjugate))


@pytest.mark.parametrize("loss", LOSSES)
def test_theta_is_kept_and_no_sweep_is_made_beyond_what_is_sure(problem, loss):
    """Eq. (5) with the subproblem's true minimum; and the first sweep whose certificate suffices is the last."""
    sub, a = problem(loss), duals(loss)
    sweep, gap_at = eqx.filter_jit(Subproblem.sweep), eqx.filter_jit(lambda *args: Subproblem.totals(*args).gap)
    course = [(jnp.asarray(a), jnp.zeros_like(sub.start))]
    for number in range(60):
        course.append(sweep(sub, *course[-1], jax.random.fold_in(KEY, number)))
    values = np.array([objective(loss, a, np.asarray(d) - a) for d, _ in course])
    gaps = np.array([float(gap_at(sub, *point)) for point in course])
    assert (np.diff(values) <= 1e-12).all()
    least = values[-1]
    assert gaps[-1] < 1e-6 * (values[0] - least)
    assert (gaps >= values - least - 1e-9).all()
    stops = []
    for theta in (0.5, 0.1, 1e-3):
        new = np.asarray(solve(sub, a, 60, jnp.asarray(theta))[0])
        stop = next(n for n, (d, _) in enumerate(course) if np.allclose(d, new, rtol=0, atol=1e-13))
        assert (values[stop] - least) / (values[0] - least) <= theta
        sure = gaps <= theta * (values[0] - values + gaps)
        assert sure[stop]
        assert not sure[:stop].any()
        stops.append(stop)
    assert 0 < stops[0] < stops[-1] < 60


def test_theta_of_one_changes_nothing_and_passes_is_the_most(problem):
    sub, a = problem("logistic"), duals("logistic")
    new, image = solve(sub, a, 3, 1.0)
    np.testing.assert_array_equal(new, a)
    np.testing.assert_array_equal(image, 0)
    np.testing.assert_array_equal(solve(sub, a, 3, 1e-9)[0], solve(sub, a, 3)[0])


def test_regression_takes_the_targets_as_they_are(x64):
    y = rng.normal(size=SIZE)
    data = federation(split_of([(X[:, :4], y)]))
    model = Linear(jnp.asarray(W[0, :4]), jnp.asarray(W[0, 4]))
    start = matrix_of(model)
    sub = Subproblem(client_of(data, objective_of(model, "regression"), 0), start, jnp.ones(()), LOSSES["squared"])
    nothing = jnp.zeros((SIZE, 1))
    assert float(sub.totals(nothing, 0 * start).loss) == pytest.approx(((X @ W[0] - y) ** 2).sum() / 2)
    _, image = solve(sub, nothing, 300)
    # G is least where d = y - X (w + X'd), that is (I + XX') d = y - X w.
    best = np.linalg.solve(np.eye(SIZE) + X @ X.T, y - X @ W[0])
    np.testing.assert_allclose(image[0], best @ X, atol=1e-9)


LAYOUTS = [
    Linear(jnp.ones((3, 4)), jnp.ones(3)),
    Linear(jnp.ones((1, 4)), jnp.ones(1)),
    Linear(jnp.ones(4), jnp.ones(())),
    {"a_bias": jnp.ones(3), "weight": jnp.ones((3, 4))},
    {"weight": jnp.ones((3, 4))},
    (jnp.ones(4),),
    Linear(jnp.ones((1, 1)), jnp.ones(1)),
]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parameters_and_matrix_are_each_others_inverse(layout):
    leaves, structure = jax.tree.flatten(layout)
    values = np.random.default_rng(3)
    params = structure.unflatten([jnp.asarray(values.normal(size=leaf.shape), jnp.float32) for leaf in leaves])
    matrix = matrix_of(params)
    weight = max(jax.tree.leaves(params), key=lambda leaf: leaf.ndim)
    np.testing.assert_array_equal(matrix[:, : weight.shape[-1]], np.atleast_2d(weight))
    assert matrix.shape[1] - weight.shape[-1] == len(leaves) - 1
    back = params_of(matrix, params)
    assert jax.tree.structure(back) == structure
    for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(params), strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def of(features, classes):
    names = tuple("abcdef"[:classes])
    y = np.zeros(2, np.int32) if classes else np.zeros(2, np.float32)
    data = federation(split_of([(np.zeros((2, *features), np.float32), y)]))
    return replace(data, task="classification", classes=names) if classes else data


@pytest.mark.parametrize(
    ("features", "classes", "name"), [((4,), 3, "mlr"), ((2, 2), 2, "mlr"), ((4,), 0, "linear"), ((1,), 0, "linear")]
)
def test_the_linear_models_of_the_zoo_are_linear(features, classes, name):
    data = of(features, classes)
    model = build(name, features, data.num_outputs, data.task, jax.random.key(0))
    require_linear("mocha", start_of(data, eqx.filter(model, eqx.is_inexact_array)))
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), eqx.filter(model, eqx.is_array))
    require_linear("mocha", start_of(data, shapes))


@pytest.mark.parametrize(
    "params",
    [
        build("mlp", (4,), 3, "classification", jax.random.key(0)),
        Linear(jnp.ones((4, 3)), jnp.ones(3)),
        Linear(jnp.ones((3, 5)), jnp.ones(3)),
        Linear(jnp.ones((3, 4)), jnp.ones(4)),
        Linear(jnp.ones((3, 4)), jnp.ones(())),
        Linear(jnp.ones(4), jnp.ones(())),
        (jnp.ones(3),),
        (),
    ],
)
def test_other_models_are_refused(params):
    with pytest.raises(ConfigError, match=r"mocha trains linear models: mlr or linear, one weight of shape \(3, 4\)"):
        require_linear("mocha", start_of(of((4,), 3), eqx.filter(params, eqx.is_inexact_array)))
