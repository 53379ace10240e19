"""pFedMe against closed forms on quadratics, and against Algorithm 1 written out by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.pfedme import PFedMe
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests.federations import flat, quadratics, rows, run
from tests.tiers import second

LAMBDA = 2.0
# In single precision ||grad h|| cannot fall much below 1e-6; h is (lambda + mu)-strongly convex.
PRECISION = {"float32": {"tolerance": 2e-6, "atol": 1e-5}, "float64": {"tolerance": 1e-12, "atol": 1e-10}}


@pytest.fixture(params=["float32", "float64"])
def precision(request):
    """(quadratics, tolerance of the inner solver, tolerance of the comparison) in each precision."""
    with jax.enable_x64(request.param == "float64"):
        values = PRECISION[request.param]
        yield quadratics(dtype=request.param), values["tolerance"], values["atol"]


def exact(tolerance, **changes):
    """pFedMe with the inner problem solved to a tolerance, so that a round is known in closed form."""
    options = {"prox_weight": LAMBDA, "rate": 0.1, "inner_rate": 0.3, "inner_steps": 500, "local_steps": 1}
    return PFedMe(**options | {"tolerance": tolerance, "batch_size": 4} | changes)


def solver(problem, algorithm, index=0):
    """w -> the method's own prox point of client `index`, as vectors."""
    client = problem.client(index)
    batch = client.draw(jax.random.key(0), algorithm.batch_size)
    prox = jax.jit(lambda w: algorithm.prox(client, w, w, batch))
    return lambda w: flat(prox(problem.tree(w)))


@pytest.mark.parametrize("inner_optimizer", ["sgd", "nesterov"])
def test_the_prox_point_is_the_closed_form(precision, inner_optimizer):
    problem, tolerance, atol = precision
    w = np.linspace(-1, 2, 5)
    for index in (0, 1):
        got = solver(problem, exact(tolerance, inner_optimizer=inner_optimizer, inner_rate=0.1), index)(w)
        np.testing.assert_allclose(got, problem.prox(index, w, LAMBDA), atol=atol, rtol=0)


def test_the_moreau_gradient_is_the_gradient_of_the_envelope(precision):
    """Eq. (6), with the envelope's value and its gradient by automatic differentiation."""
    problem, tolerance, atol = precision
    a, c = jnp.asarray(problem.a[0]), jnp.asarray(problem.c[0])

    def envelope(w):
        theta = jnp.linalg.solve(a + LAMBDA * jnp.eye(5), a @ c + LAMBDA * w)
        return 0.5 * (theta - c) @ a @ (theta - c) + 0.5 * LAMBDA * jnp.sum((theta - w) ** 2)

    w = np.linspace(-1, 2, 5)
    moreau = LAMBDA * (w - solver(problem, exact(tolerance))(w))
    np.testing.assert_allclose(moreau, jax.grad(envelope)(jnp.asarray(w, a.dtype)), atol=atol, rtol=0)


def test_the_envelope_is_lambda_smooth_and_strongly_convex(precision):
    """Proposition 1: the gradient map's slope has eigenvalues from lambda mu / (lambda + mu) up to below lambda."""
    problem, tolerance, atol = precision
    prox = solver(problem, exact(tolerance))
    gradient = lambda w: LAMBDA * (w - prox(w))  # noqa: E731
    columns = [gradient(problem.c[0] + column) - gradient(problem.c[0]) for column in np.eye(5)]
    eigenvalues = np.linalg.eigvals(np.stack(columns, axis=1)).real
    mu, smooth = problem.mu, problem.smooth
    np.testing.assert_allclose(eigenvalues.min(), LAMBDA * mu / (LAMBDA + mu), atol=2 * atol)
    np.testing.assert_allclose(eigenvalues.max(), LAMBDA * smooth / (LAMBDA + smooth), atol=2 * atol)
    assert eigenvalues.max() < LAMBDA


def test_the_fixed_point_minimises_the_sum_of_the_envelopes(precision):
    problem, tolerance, atol = precision
    hessians = [problem.moreau_hessian(i, LAMBDA) for i in range(problem.clients)]
    pulls = [h @ c for h, c in zip(hessians, problem.c, strict=True)]
    best = np.linalg.solve(sum(hessians), sum(pulls))
    simulation = problem.simulation(exact(tolerance, rate=0.8))
    state = run(simulation, 120)
    np.testing.assert_allclose(flat(state.shared), best, atol=atol, rtol=0)
    models = Evaluator(simulation).client_params(state, ("personal",))
    points = [problem.prox(i, best, LAMBDA) for i in range(problem.clients)]
    np.testing.assert_allclose(rows(models["personal"]), points, atol=atol, rtol=0)


def test_the_fixed_point_of_several_local_rounds(x64):
    """R local rounds contract w - c_i by (I - eta M_i)^R: the fixed point drifts from the minimiser, as derived."""
    problem, eta, local_rounds = quadratics(dtype=np.float64), 0.4, 3
    pulls = [
        np.eye(5) - np.linalg.matrix_power(np.eye(5) - eta * problem.moreau_hessian(i, LAMBDA), local_rounds)
        for i in range(problem.clients)
    ]
    fixed = np.linalg.solve(sum(pulls), sum(p @ c for p, c in zip(pulls, problem.c, strict=True)))
    state = run(problem.simulation(exact(1e-12, rate=eta, local_steps=local_rounds)), 80)
    np.testing.assert_allclose(flat(state.shared), fixed, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("beta", "weighting"), [(1.0, "uniform"), (2.0, "uniform"), (1.0, "size")])
def test_one_exact_local_round_moves_to_the_mean_of_the_prox_points(beta, weighting):
    """eta lambda = 1, R = 1: w_{i,1} = theta_i, hence w <- (1 - beta) w + beta mean_i theta_i."""
    problem = quadratics()
    algorithm = exact(2e-6, rate=1 / LAMBDA, server_step=beta, weighting=weighting)
    start = flat(problem.params).astype(float)
    points = [problem.prox(i, start, LAMBDA) for i in range(problem.clients)]
    mean = np.average(points, axis=0, weights=problem.sizes if weighting == "size" else None)
    state = run(problem.simulation(algorithm))
    np.testing.assert_allclose(flat(state.shared), (1 - beta) * start + beta * mean, atol=2e-5, rtol=0)


def test_the_tolerance_bounds_the_gradient_and_no_step_is_made_beyond_it():
    """Eq. (8)."""
    problem, w = quadratics(), np.linspace(-1, 2, 5)
    slope = lambda t: problem.a[0] @ (t - problem.c[0]) + LAMBDA * (t - w)  # noqa: E731
    for nu in (1.0, 1e-2, 1e-4):
        got = solver(problem, exact(nu))(w)
        assert np.linalg.norm(slope(got)) <= nu * (1 + 1e-3)
        theta = w.copy()  # by hand: the first iterate inside the bound
        while np.linalg.norm(slope(theta)) > nu:
            theta = theta - 0.3 * slope(theta)
        np.testing.assert_allclose(got, theta, atol=1e-6)
    capped = solver(problem, exact(1e-6, inner_steps=2))(w)
    unbounded = solver(problem, exact(None, inner_steps=2))(w)
    np.testing.assert_allclose(capped, unbounded, atol=1e-7)
    assert np.linalg.norm(slope(capped)) > 1e-2


def algorithm_1(problem, algorithm, round, *, hidden=0.0, warm=True):
    """One local round of Algorithm 1 on each client in plain numpy, with batches in cyclic order."""
    size, results = algorithm.batch_size, []
    for index in range(problem.clients):
        x, _ = problem.data.train.client(index)
        batches = [x[i : i + size].astype(float) for i in range(0, len(x), size)]
        w = theta = flat(problem.params).astype(float)
        for r in range(algorithm.local_steps):
            batch = batches[(round * algorithm.local_steps + r) % len(batches)]
            theta = theta if warm else w
            for _ in range(algorithm.inner_steps):
                slope = np.mean([s[:, :5] @ (theta - s[:, 5]) for s in batch], axis=0)
                slope = slope + algorithm.prox_weight * (theta - w) + hidden * theta
                theta = theta - algorithm.inner_rate * slope
            w = w - algorithm.rate * algorithm.prox_weight * (w - theta)
        results.append((w, theta))
    return results


@pytest.mark.parametrize(
    "changes", [{}, second({"hidden_l2": 0.5}), {"warm_start": False}, {"weighting": "size", "server_step": 2.0}]
)
def test_a_round_is_algorithm_1_written_out(changes):
    """K steps on each of R mini-batches; each deviation of the published code changes what its name says."""
    problem = quadratics((5, 1, 7, 4), noise=1.0)
    options = {"rate": 0.2, "inner_rate": 0.1, "prox_weight": 3.0, "local_steps": 4, "inner_steps": 3}
    algorithm = PFedMe(**options | {"batch_size": 2, "batches": "cyclic"} | changes)
    simulation = problem.simulation(algorithm)
    models = Evaluator(simulation).client_params
    start = simulation.init(0)
    start = eqx.tree_at(lambda s: s.round, start, jnp.asarray(2, jnp.int32))  # the iterator is in mid-pass
    clients = models(start, ("personal", "local", "global"))
    hidden, warm = changes.get("hidden_l2", 0.0), changes.get("warm_start", True)
    expected = algorithm_1(problem, algorithm, 2, hidden=hidden, warm=warm)
    w, theta = (np.stack(part) for part in zip(*expected, strict=True))
    np.testing.assert_allclose(rows(clients["local"]), w, atol=1e-5)
    np.testing.assert_allclose(rows(clients["personal"]), theta, atol=1e-5)
    w0 = flat(problem.params)
    np.testing.assert_allclose(rows(clients["global"]), np.tile(w0, (4, 1)), atol=0)
    weights = problem.sizes if "weighting" in changes else None
    beta = changes.get("server_step", 1.0)
    after = (1 - beta) * w0 + beta * np.average(w, axis=0, weights=weights)
    np.testing.assert_allclose(flat(simulation.advance(start, 1).shared), after, atol=2e-5)


def test_epochs_give_each_client_passes_over_its_own_samples(x64):
    """Two reshuffled passes of ceil(n_i / 4) mini-batches in numpy; the last one of a pass may be short."""
    problem = quadratics((9, 1, 4), dtype=np.float64, noise=1.0)
    method = PFedMe(rate=0.1, inner_rate=0.2, prox_weight=LAMBDA, inner_steps=2, epochs=2, batch_size=4)
    key, counts = jax.random.key(3), []
    for index in range(3):
        client, steps = problem.client(index), 2 * -(-int(problem.sizes[index]) // 4)
        w = theta = flat(problem.params)
        for r in range(steps):
            batch = client.batch(key, r, 4, "epoch")
            kept = np.asarray(batch.x)[np.asarray(batch.weight) > 0]
            for _ in range(2):
                slope = problem.a[index] @ (theta - kept[:, :, 5].mean(axis=0)) + LAMBDA * (theta - w)
                theta = theta - 0.2 * slope
            w = w - 0.1 * LAMBDA * (w - theta)
        got = jax.jit(lambda start, client=client: method.train(start, client, key))(problem.params)
        np.testing.assert_allclose(flat(got[0]), w, atol=1e-12)
        np.testing.assert_allclose(flat(got[1]), theta, atol=1e-12)
        counts.append(steps)
    assert counts == [6, 2, 2]


def test_hidden_l2_is_an_l2_term_of_the_inner_problem():
    problem, w, hidden = quadratics(), np.linspace(-1, 2, 5), 0.7
    a, c = problem.a[0], problem.c[0]
    closed = np.linalg.solve(a + (LAMBDA + hidden) * np.eye(5), a @ c + LAMBDA * w)
    named = solver(problem, exact(2e-6, hidden_l2=hidden))(w)
    np.testing.assert_allclose(named, closed, atol=1e-5)
    penalised = eqx.tree_at(lambda p: p.l2, problem.objective, hidden)
    client = eqx.tree_at(lambda c: c.objective, problem.client(0), penalised, is_leaf=lambda x: x is None)
    batch = client.draw(jax.random.key(0), 4)
    same = jax.jit(lambda w: exact(2e-6).prox(client, w, w, batch))(problem.tree(w))
    np.testing.assert_allclose(named, flat(same), atol=1e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inner_steps", 0),
        ("local_steps", 0),
        ("server_step", 0.0),
        ("prox_weight", -1.0),
        ("prox_weight", 0),
        ("rate", -0.1),
        ("inner_rate", float("nan")),
        ("rate", float("inf")),
        ("rate", np.float32(-1)),
        ("batch_size", 0),
        ("epochs", -1),
        ("hidden_l2", -1e-3),
        ("tolerance", 0.0),
        ("batches", "random"),
        ("weighting", "sizes"),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"pfedme: {key} = "):
        PFedMe(**{key: value})


def test_an_unknown_inner_optimiser_is_refused_at_once():
    with pytest.raises(ConfigError, match="did you mean 'nesterov'"):
        PFedMe(inner_optimizer="nestrov")


@pytest.mark.second
def test_hyper_parameters_can_be_a_batch_axis(x64):
    problem, w = quadratics(dtype=np.float64), np.linspace(-1, 2, 5)
    client = problem.client(0)
    batch = client.draw(jax.random.key(0), 4)
    weights = jnp.array([1.0, 5.0])
    points = jax.jit(
        jax.vmap(lambda lam: exact(1e-12, prox_weight=lam, inner_rate=0.1).prox(client, start, start, batch))
    )
    start = problem.tree(w)
    expected = [problem.prox(0, w, lam) for lam in (1.0, 5.0)]
    np.testing.assert_allclose(rows(points(weights)), expected, atol=1e-10)
