"""AFL: the minimax point in closed form, FedAvg without ascent, unbiased steps, the projection onto the simplex."""

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect.algorithms.afl import AFL, Agnostic, Report, Sent, onto_simplex
from idiolect.algorithms.base import Cohort
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.registry import build
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests import contract
from tests.federations import classification, flat, quadratics, quadratics_of, rows, run, start_with
from tests.tiers import second

# ---- the projection

points = st.integers(1, 6).flatmap(lambda n: st.lists(st.floats(-3, 3, width=32), min_size=n, max_size=n))


compiled = jax.jit(onto_simplex)


def projected(point):
    return np.asarray(compiled(jnp.asarray(point, jnp.float32)), np.float64)


def nearest(point):
    """The nearest point of the simplex: for each possible support the nearest point of its plane, the best of all."""
    point, best = np.asarray(point, np.float64), None
    for size in range(1, len(point) + 1):
        for support in map(list, combinations(range(len(point)), size)):
            candidate = np.zeros(len(point))
            candidate[support] = point[support] + (1 - point[support].sum()) / size
            if (candidate >= 0).all() and (best is None or np.sum((candidate - point) ** 2) < best[0]):
                best = (np.sum((candidate - point) ** 2), candidate)
    return best[1]


@settings(deadline=None, max_examples=80)
@given(points)
def test_the_projection_is_the_nearest_point_of_the_simplex(point):
    got = projected(point)
    assert (got >= 0).all()
    np.testing.assert_allclose(got.sum(), 1, atol=1e-6)
    np.testing.assert_allclose(got, nearest(point), atol=2e-6)
    np.testing.assert_allclose(projected(got), got, atol=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.sampled_from([0.01, 1.0, 100.0]))
def test_no_corner_of_the_simplex_lies_in_the_direction_of_the_point(seed, spread):
    """(x - p) . (q - p) <= 0 for all q of the simplex, at its corners: the optimality condition, many entries."""
    point = (spread * np.random.default_rng(seed).normal(size=300)).astype(np.float32)
    got, far = projected(point), point.astype(np.float64)
    slopes = (far - got) - (far - got) @ got
    assert slopes.max() <= 1e-5 * max(1.0, spread)
    np.testing.assert_allclose(got.sum(), 1, atol=1e-5)


def test_the_projection_keeps_its_digits_far_from_the_simplex():
    """A million added to every entry changes nothing, though sums of such entries have few digits left."""
    point = np.repeat([0.25, 0.0], 25)
    expected = np.repeat([1 / 25, 0.0], 25)
    np.testing.assert_allclose(projected(point), expected, atol=1e-6)
    np.testing.assert_allclose(projected(1e6 + point), expected, atol=1e-6)


# ---- the minimax point


def between(dtype=np.float64):
    """f_1 = a_1 |w - c_1|^2 / 2, f_2 alike, and a third client that is never the worst.

    The minimax point lies between c_1 and c_2 with f_1 = f_2: sqrt(a_1) |w - c_1| = sqrt(a_2) |w - c_2|; the
    gradients cancel where lambda_1 sqrt(a_1) = lambda_2 sqrt(a_2).
    """
    rng = np.random.default_rng(5)
    curvatures, c = np.array([1.0, 2.5, 0.5]), rng.normal(size=(3, 5))
    root = np.sqrt(curvatures[:2])
    mixture = np.array([*root[::-1] / root.sum(), 0.0])
    w = (root[0] * c[0] + root[1] * c[1]) / root.sum()
    c[2] = w + 0.1
    a = curvatures[:, None, None] * np.eye(5)
    problem = quadratics_of(a, [np.tile(c[i], (2, 1)) for i in range(3)], rng.normal(size=5), dtype)
    return problem, w, mixture


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, second({"batch_size": 2, "batches": "epoch", "weights": "normalised"})]
)
def test_it_finds_the_minimax_point_and_the_worst_mixture(x64, options):
    problem, w, mixture = between()
    losses = [0.5 * (w - c) @ a @ (w - c) for a, c in zip(problem.a, problem.c, strict=True)]
    np.testing.assert_allclose(losses[0], losses[1])  # the closed form is right: equal losses, and no gradient
    slopes = [p * a @ (w - c) for p, a, c in zip(mixture, problem.a, problem.c, strict=True)]
    np.testing.assert_allclose(np.sum(slopes, axis=0), 0, atol=1e-12)
    assert losses[2] < losses[0]
    state = run(problem.simulation(AFL(rate=0.2, mixture_rate=0.05, **options)), 3000)
    np.testing.assert_allclose(contract.vector(state.shared.params), w, atol=1e-9, rtol=0)
    np.testing.assert_allclose(state.shared.mixture, mixture, atol=1e-9, rtol=0)
    assert np.linalg.norm(w - problem.optimum()) > 0.1


# ---- the two steps


@pytest.mark.second
def test_without_ascent_it_is_fedavg_with_equal_weights():
    problem = classification()
    options = {"rate": 0.1, "local_steps": 3, "batch_size": 4}
    fedavg = run(problem.simulation(FedAvg(weighting="uniform", **options), cohort=3), 3)
    for weights in ("unbiased", "normalised"):
        afl = run(problem.simulation(AFL(mixture_rate=0.0, weights=weights, **options), cohort=3), 3)
        np.testing.assert_allclose(flat(afl.shared.params), flat(fedavg.shared.params), atol=1e-6, rtol=0)
        np.testing.assert_allclose(afl.shared.mixture, np.full(5, 0.2), atol=1e-6, rtol=0)


def messages_of(algorithm, problem):
    """What every client sends in the first round; (shared state, messages)."""
    shared = algorithm.init(start_with(problem.params, problem.data), contract.KEY)
    sent = [contract.sent_by(algorithm, problem.client(i), shared)[0] for i in range(problem.clients)]
    return shared, jax.tree.map(lambda *leaves: jnp.stack(leaves), *sent)


def aggregated(algorithm, *given):
    return jax.jit(lambda *given: algorithm.aggregate(*given))(*given)


def cohort_of(ids, problem):
    ids = jnp.asarray(ids)
    sizes = jnp.asarray(problem.sizes, float)[ids]
    return Cohort(ids, sizes, jnp.ones(len(ids), bool), problem.clients, jnp.sum(sizes), len(ids))


@pytest.mark.second
def test_a_cohorts_steps_are_unbiased(x64):
    """Over all cohorts of two of four clients, both steps have the mean of the step with everyone."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    start = np.array([0.1, 0.2, 0.3, 0.4])
    algorithm = AFL(rate=0.1, mixture_rate=1e-3, mixture=start, batch_size=0)
    shared, messages = messages_of(algorithm, problem)
    full = aggregated(algorithm, shared, cohort_of(range(4), problem), messages)
    w = contract.vector(problem.params)
    slopes = [a @ (w - c) for a, c in zip(problem.a, problem.c, strict=True)]
    np.testing.assert_allclose(contract.vector(full.params), w - 0.1 * start @ slopes, atol=1e-12)
    pairs = [
        aggregated(algorithm, shared, cohort_of(ids, problem), tree.gather_on_host(messages, np.asarray(ids)))
        for ids in combinations(range(4), 2)
    ]
    mean = np.mean([contract.vector(pair.params) for pair in pairs], axis=0)
    np.testing.assert_allclose(mean, contract.vector(full.params), atol=1e-12)
    np.testing.assert_allclose(np.mean([p.mixture for p in pairs], axis=0), full.mixture, atol=1e-12)
    losses = np.asarray(messages.loss)
    np.testing.assert_allclose(full.mixture, start + 1e-3 * (losses - losses.mean()), atol=1e-12)
    assert np.abs(np.asarray(full.mixture) - start).max() > 1e-4


def test_normalised_weights_divide_by_the_cohorts_own(x64):
    problem = quadratics(dtype=np.float64)
    mixture = np.array([0.1, 0.6, 0.3, 0.0])
    algorithm = AFL(weights="normalised", mixture=mixture, mixture_rate=0.0)
    shared, messages = messages_of(algorithm, problem)
    two = aggregated(algorithm, shared, cohort_of([2, 0], problem), tree.gather_on_host(messages, np.asarray([2, 0])))
    models = rows(messages.params)
    np.testing.assert_allclose(contract.vector(two.params), (0.3 * models[2] + 0.1 * models[0]) / 0.4, atol=1e-12)


def test_positional_weights_belong_to_the_places_of_a_cohort(x64):
    """Three rounds in numpy, S = 3 of 4 clients: the k-th client drawn has the k-th weight, whoever it is."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    method = AFL(rate=0.1, mixture_rate=0.05, weights="positional", batch_size=0, output="average")
    simulation = problem.simulation(method, cohort=3)
    state, w, mixture, seen = simulation.init(0), contract.vector(problem.params), np.full(3, 1 / 3), []
    for round in range(3):
        ids = np.asarray(simulation.sampling.draw(state.seed, round, 3)[0]).tolist()
        losses = np.array([full_loss(problem, i, w) for i in ids])
        w = mixture @ [w - 0.1 * problem.a[i] @ (w - problem.c[i]) for i in ids]
        mixture = nearest(mixture + 0.05 * losses)
        seen.append(w)
    state = simulation.advance(state, 3)
    np.testing.assert_allclose(contract.vector(state.shared.params), w, atol=1e-12)
    np.testing.assert_allclose(state.shared.mixture, [*mixture, 0.0], atol=1e-12)
    np.testing.assert_allclose(contract.vector(state.shared.average), np.mean(seen, axis=0), atol=1e-12)
    assert np.ptp(mixture) > 1e-2


def full_loss(problem, index, w):
    """f_i(w) on all samples of a client, each with a centre of its own."""
    x, _ = problem.data.train.client(index)
    gaps = w - x[:, :, 5]
    return 0.5 * np.mean(np.einsum("ni,ij,nj->n", gaps, problem.a[index], gaps))


def test_a_place_that_nobody_fills_has_no_weight():
    """Binomial sampling pads the cohort; a round without clients moves no model, and padding earns no weight."""
    method = AFL(weights="positional", mixture_rate=0.5)
    shared = Agnostic(jnp.ones(2), jnp.full(3, 1 / 3), None, jnp.asarray(0))
    ids, messages = jnp.array([2, 0]), Report(jnp.array([[4.0, 4.0], [9.0, 9.0]]), jnp.array([0.2, 3.0]))
    one = Cohort(ids, jnp.ones(2), jnp.array([True, False]), 3, jnp.asarray(3.0), 1.5)
    after = aggregated(method, shared, one, messages)
    np.testing.assert_allclose(after.params, [4.0, 4.0])
    np.testing.assert_allclose(after.mixture, [*nearest([0.5 + 0.5 * 0.2, 0.5]), 0.0], atol=1e-6)
    none = one._replace(present=jnp.zeros(2, bool))
    np.testing.assert_array_equal(aggregated(method, shared, none, messages).params, [1.0, 1.0])


def test_positional_weights_take_no_mixture_of_clients():
    with pytest.raises(ConfigError, match="afl: mixture gives one weight per client"):
        AFL(weights="positional", mixture=np.array([0.5, 0.5]))


@pytest.mark.parametrize("weights", ["unbiased", "normalised"])
def test_a_cohort_without_weight_moves_no_model(weights):
    """The projection makes exact zeros, so this happens; the mixture still learns of the losses."""
    algorithm = AFL(weights=weights, mixture_rate=0.5)
    shared = Agnostic(jnp.ones(2), jnp.array([0.0, 0.25, 0.75]), None, jnp.asarray(0))
    one = Cohort(jnp.array([0]), jnp.ones(1), jnp.ones(1, bool), 3, jnp.asarray(3.0), 1)
    after = aggregated(algorithm, shared, one, Report(jnp.full((1, 2), 9.0), jnp.array([0.2])))
    np.testing.assert_array_equal(after.params, [1.0, 1.0])
    np.testing.assert_allclose(after.mixture, nearest([0.5 * 3 * 0.2, 0.25, 0.75]), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ({}, "fresh"),
        second({"batches": "cyclic", "local_steps": 2}, "cyclic"),
        second({"epochs": 2, "batches": "cyclic"}, "epoch"),
        ({"batch_size": 0}, None),
    ],
)
def test_the_loss_is_that_of_the_received_model_on_the_first_gradients_samples(options, order):
    """By hand on each of the client's mini-batches, or on all its samples; L2 included."""
    problem = classification((9, 1, 4), l2=0.1)
    algorithm = AFL(**{"rate": 0.1, "batch_size": 4} | options)
    shared, client = (
        algorithm.init(start_with(problem.params, problem.data), contract.KEY),
        problem.client(0, round=1),
    )
    message, _ = contract.sent_by(algorithm, client, shared)
    x, y = (jnp.asarray(v) for v in problem.data.train.client(0))
    if order is not None:
        batch = client.batch(jax.random.fold_in(contract.KEY, 0), 0, 4, order, algorithm.local_steps)
        x, y = batch.x[batch.weight > 0], batch.y[batch.weight > 0]

    def loss(w):
        data = -jnp.mean(jax.vmap(lambda a, b: jax.nn.log_softmax(w(a))[b])(x, y))
        return data + 0.05 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(w))

    np.testing.assert_allclose(message.loss, loss(problem.params), rtol=1e-5)
    if "local_steps" not in options and "epochs" not in options:  # the paper's step: one gradient, these samples
        step = flat(problem.params) - 0.1 * flat(jax.grad(loss)(problem.params))
        np.testing.assert_allclose(flat(message.params), step, atol=1e-6)


@pytest.mark.second
def test_the_average_is_the_mean_of_all_models():
    """The paper's output w^A, through the evaluation that asks for `global`; training is the same."""
    problem = quadratics(noise=1.0)
    options = {"rate": 0.1, "mixture_rate": 0.1, "batch_size": 0}
    last, average = (problem.simulation(AFL(output=output, **options), cohort=2) for output in ("last", "average"))
    state, seen = last.init(0), []
    for _ in range(4):
        state = last.advance(state, 1)
        seen.append(flat(state.shared.params))
    mean = run(average, 4)
    np.testing.assert_allclose(flat(mean.shared.params), seen[-1], atol=1e-6)
    models = [
        rows(Evaluator(s).client_params(end, ("global",))["global"]) for s, end in ((last, state), (average, mean))
    ]
    np.testing.assert_allclose(models[0], np.tile(seen[-1], (4, 1)), atol=0)
    np.testing.assert_allclose(models[1], np.tile(np.mean(seen, axis=0), (4, 1)), atol=1e-6)


def test_the_average_is_exact_in_double_precision(x64):
    """The mean of seven models: 1/3, 1/6 and 1/7 are no single-precision numbers."""
    problem = quadratics(dtype=np.float64, noise=1.0)
    simulation = problem.simulation(AFL(rate=0.1, batch_size=0, output="average"))
    state, seen = simulation.init(0), []
    for _ in range(7):
        state = simulation.advance(state, 1)
        seen.append(contract.vector(state.shared.params))
        np.testing.assert_allclose(contract.vector(state.shared.average), np.mean(seen, axis=0), rtol=0, atol=1e-12)
    assert np.ptp(seen, axis=0).max() > 0.1


# ---- the contract


@pytest.mark.second
def test_the_contract_holds():
    method = AFL(rate=0.1, mixture_rate=0.1, local_steps=2, batch_size=2)
    contract.is_the_same_however_executed(method)
    contract.ignores_padding(method)
    contract.keeps_nothing(method)


def test_the_message_is_a_model_and_a_loss_and_no_client_sees_the_mixture():
    problem = quadratics()
    algorithm = AFL()
    shared = algorithm.init(start_with(problem.params, problem.data), contract.KEY)
    message, _ = contract.sent_by(algorithm, problem.client(0), shared)
    assert jax.tree.structure(message.params) == jax.tree.structure(problem.params)
    assert message.loss.shape == ()
    view = algorithm.view(shared, jnp.asarray(0))
    assert jax.tree.structure(view) == jax.tree.structure(Sent(problem.params, None))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mixture_rate", -0.1),
        ("weights", "biased"),
        ("output", "mean"),
        ("rate", 0.0),
        ("mixture", 1.0),
        ("mixture", "uniform"),
        ("mixture", np.array([0.5, 0.6])),
        ("mixture", np.array([1.5, -0.5])),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"afl: {key} = "):
        AFL(**{key: value})


def test_the_mixture_must_fit_the_federation():
    problem = quadratics()
    with pytest.raises(ConfigError, match="afl: mixture has 2 weights, but there are 4 clients"):
        problem.simulation(AFL(mixture=np.array([0.5, 0.5])))
    assert build("afl").local_steps == 1
