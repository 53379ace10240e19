"""The losses of dual methods against suprema, derivatives and minima found by brute force."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, xlogy

from idiolect.algorithms.base import start_of
from idiolect.algorithms.parts.dual import LOSSES, Subproblem, matrix_of, params_of, require_linear
from idiolect.client.objective import objective_of
from idiolect.core.errors import ConfigError
from idiolect.core.random import permuted
from idiolect.models import build
from tests.federations import client_of, federation, split_of

numbers = st.floats(-20, 20)
shares = st.floats(0, 1)
signs = st.sampled_from([-1.0, 1.0])


def at(name, field, *values):
    """A field of a loss at scalars, in double precision."""
    with jax.enable_x64(True):
        return float(jax.jit(getattr(LOSSES[name], field))(*(np.asarray(v, np.float64) for v in values)))


def known(name, z, y):
    """The loss by its textbook formula."""
    return {
        "hinge": max(0.0, 1 - y * z),
        "logistic": np.log1p(np.exp(-abs(z))) + max(0.0, -y * z),
        "squared": (z - y) ** 2 / 2,
    }[name]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_the_conjugate_is_the_supremum(name, y, share):
    """sup_z -a z - l(z; y); at the ends of its domain the supremum of the logistic loss is only approached."""
    a = y * share
    best = minimize_scalar(
        lambda z: a * z + known(name, z, y), bounds=(-40, 40), options={"xatol": 1e-10}, method="bounded"
    )
    assert at(name, "conjugate", a, y) == pytest.approx(-best.fun, abs=1e-6)


def test_the_squared_loss_takes_any_target():
    for a, y in ((-3.0, 2.5), (4.0, -0.7)):
        best = minimize_scalar(lambda z, a=a, y=y: a * z + (z - y) ** 2 / 2)
        assert at("squared", "conjugate", a, y) == pytest.approx(-best.fun, abs=1e-9)


@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_the_conjugate_is_infinite_outside_its_domain(name):
    for y in (-1.0, 1.0):
        for share in (-0.01, 1.01, -5.0):
            assert at(name, "conjugate", y * share, y) == np.inf


@pytest.mark.parametrize("name", LOSSES)
@settings(deadline=None, max_examples=60)
@given(z=numbers, y=signs, share=shares, free=numbers)
def test_fenchel_young(name, z, y, share, free):
    """l(z) + l*(-a) + a z >= 0."""
    a = free if name == "squared" else y * share
    assert known(name, z, y) == pytest.approx(at(name, "value", z, y), abs=1e-12)
    assert at(name, "value", z, y) + at(name, "conjugate", a, y) + a * z >= -1e-12


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_fenchel_young_is_an_equality_at_the_derivative_and_nowhere_else(name, y, x64):
    loss = LOSSES[name]
    z = np.linspace(-6, 6, 41) + 1e-3
    a = -jax.jit(jax.vmap(jax.grad(loss.value), (0, None)))(z, y)
    labels = np.full_like(z, y)
    both = jax.jit(lambda a, z, y: loss.value(z, y) + loss.conjugate(a, y) + a * z)
    gap = lambda a: both(a, z, labels)  # noqa: E731
    np.testing.assert_allclose(gap(a), 0, atol=1e-12)
    for step in (-1e-3, 1e-3):
        assert (gap(a + step) > 1e-9).all()


def cases(rng, count=4000):
    """(a, z, y, q) over many orders of magnitude, a at the ends of its domain too."""
    y = rng.choice([-1.0, 1.0], count)
    share = np.where(rng.random(count) < 0.3, rng.integers(0, 2, count), rng.random(count) ** 3)
    z = rng.normal(size=count) * 10 ** rng.uniform(-2, 2, count)
    return y * share, z, y, 10 ** rng.uniform(-5, 5, count)


def value(name, new, a, z, y, q):
    """What a coordinate step minimises, by numpy."""
    b = np.clip(y * new, 0, 1)
    conjugate = {"hinge": -b, "logistic": xlogy(b, b) + xlogy(1 - b, 1 - b), "squared": new**2 / 2 - new * y}[name]
    return conjugate + (new - a) * z + q / 2 * (new - a) ** 2


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_step_is_the_minimum_along_its_coordinate(name, dtype):
    """No point of a fine grid, in the domain or around the step, is lower."""
    a, z, y, q = cases(np.random.default_rng(0))
    with jax.enable_x64(dtype == "float64"):
        new = np.asarray(jax.jit(LOSSES[name].ascend)(*(v.astype(dtype) for v in (a, z, y, q))), np.float64)
    if name != "squared":
        assert ((y * new >= 0) & (y * new <= 1)).all()
    reached = value(name, new, a, z, y, q)
    scale = 1 + np.abs(z) + q * np.abs(new - a) + q * np.abs(new)
    rounding = scale * (3e-7 if dtype == "float32" else 1e-14)
    ladder = np.concatenate([np.linspace(0, 1, 41), *(10.0 ** -np.arange(1, 12) * k for k in (1, 3))])
    for share in np.concatenate([ladder, 1 - ladder]):
        other = y * share if name != "squared" else new + 10 * (share - 0.5)
        assert (reached <= value(name, other, a, z, y, q) + rounding).all()


def test_the_logistic_step_solves_its_equation_to_rounding(x64):
    """g(s) = s + y z + q (sigmoid(s) - y a) = 0 at s = logit(y a'), where that can be read from a'."""
    a, z, y, q = cases(np.random.default_rng(1))
    b = y * np.asarray(jax.jit(LOSSES["logistic"].ascend)(a, z, y, q))
    low, high = np.minimum(-y * z - q, 0) - 1, np.maximum(-y * z + q, 0) + 1
    for _ in range(200):
        middle = (low + high) / 2
        rising = middle + y * z + q * (expit(middle) - y * a) < 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    np.testing.assert_allclose(b, expit(low), atol=1e-14)


def test_a_sample_of_zeros(x64):
    """It has q = z = 0: the step minimises the conjugate alone."""
    zero, one = jnp.zeros(()), jnp.ones(())
    for y in (one, -one):
        assert LOSSES["hinge"].ascend(zero, zero, y, zero) == y
        assert LOSSES["logistic"].ascend(zero, zero, y, zero) == 0.5 * y
        assert LOSSES["squared"].ascend(zero, zero, y, zero) == y


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
    sub = problem(loss)
    got = eqx.filter_jit(Subproblem.totals)(sub, jnp.asarray(a), jnp.asarray(image))
    z = X @ (W + CURVATURE * image).T
    both = jax.jit(lambda z, a, y: (LOSSES[loss].value(z, y), LOSSES[loss].conjugate(a, y)))
    losses, conjugates = both(z, a[:SIZE], SIGNS)
    assert float(got.loss) == pytest.approx(np.sum(losses))
    assert float(got.conjugate) == pytest.approx(np.sum(conjugates))
    assert float(got.product) == pytest.approx(np.vdot(a[:SIZE], z))
    assert float(got.gap) == pytest.approx(float(got.loss + got.conjugate + got.product))
    assert float(eqx.filter_jit(Subproblem.conjugate)(sub, jnp.asarray(a))) == pytest.approx(float(got.conjugate))


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
