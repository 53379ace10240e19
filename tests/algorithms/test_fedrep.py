"""FedRep against Algorithm 1 written out, and with one of its two parts at rest."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.fedrep import FedRep
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests import parted
from tests.contract import is_the_same_however_executed
from tests.federations import flat, rows, run, start_with
from tests.parted import HEAD, SIZES, descend, own, slopes
from tests.tiers import second

CLIENTS = len(SIZES)
FULL = {"head": HEAD, "rate": 0.3, "head_rate": 0.2, "batch_size": 0}


@pytest.mark.parametrize("changes", [{}, {"head_rate": None}, second({"weighting": "uniform"})])
def test_five_rounds_are_algorithm_1(changes):
    """Head steps first; then body steps against the head they led to; who is not drawn keeps its head."""
    problem = parted.problem()
    algorithm = FedRep(**FULL | {"head_steps": 3, "body_steps": 2} | changes)
    simulation = problem.simulation(algorithm, cohort=1.5, sampling="binomial", rounds=5)
    state, drawn = run(simulation, 5), parted.cohorts(simulation, 5)
    assert {i for cohort in drawn for i in cohort} == {1, 2, 3}
    body, head = parted.start(problem)
    heads, head_rate = [head] * CLIENTS, 0.3 if "head_rate" in changes else 0.2
    for cohort in drawn:
        bodies = []
        for i in cohort:
            for _ in range(3):
                heads[i] = descend(heads[i], head_rate, slopes(problem, body, heads[i], i)[1])
            mine = body
            for _ in range(2):
                mine = descend(mine, 0.3, slopes(problem, mine, heads[i], i)[0])
            bodies.append(mine)
        body = parted.mean(bodies, [1 if "weighting" in changes else SIZES[i] for i in cohort])
    np.testing.assert_allclose(flat(state.shared.params), flat(body), atol=1e-5)
    for i in range(CLIENTS):
        np.testing.assert_allclose(flat(own(state, i)), flat(heads[i]), atol=1e-5)
    personal = Evaluator(simulation).client_params(state, ("personal",))["personal"]
    np.testing.assert_allclose(rows(personal), [flat(tree.merged(h, body)) for h in heads], atol=1e-5)


@pytest.mark.parametrize(("given", "decays"), [second({}, (0.7, 0.7)), ({"head_momentum": 0.0}, (0.0, 0.7))])
def test_momentum_is_that_of_heavy_ball_steps_and_starts_anew_in_each_part(given, decays):
    problem = parted.problem()
    options = FULL | {"head_steps": 3, "body_steps": 3, "momentum": 0.7} | given
    state = run(problem.simulation(FedRep(**options)), 1)
    start, bodies = parted.start(problem), []
    for i in range(CLIENTS):
        mine = list(start)
        for part, rate, decay in ((1, 0.2, decays[0]), (0, 0.3, decays[1])):
            velocity = jax.tree.map(np.zeros_like, mine[part])
            for _ in range(3):
                slope = slopes(problem, *mine, i)[part]
                velocity = jax.tree.map(lambda v, g, decay=decay: decay * v + g, velocity, slope)
                mine[part] = descend(mine[part], rate, velocity)
        bodies.append(mine[0])
        np.testing.assert_allclose(flat(own(state, i)), flat(mine[1]), atol=1e-5)
    np.testing.assert_allclose(flat(state.shared.params), flat(parted.mean(bodies, SIZES)), atol=1e-5)


@pytest.mark.parametrize("batch_size", [second(0), 4])
@pytest.mark.parametrize("resting", ["body", "head"])
def test_a_part_without_steps_rests(resting, batch_size):
    problem = parted.problem()
    steps = {"head_steps": 2, "body_steps": 2} | {f"{resting}_steps": 0}
    state = run(problem.simulation(FedRep(**FULL | steps | {"batch_size": batch_size})), 2)
    body, head = parted.start(problem)
    # The mean of equal bodies may differ from them by rounding.
    moved = {
        "body": np.abs(flat(state.shared.params) - flat(body)).max(),
        "head": np.abs(rows(state.private) - flat(head)).max(axis=1).min(),
    }
    assert moved.pop(resting) < 1e-6
    assert next(iter(moved.values())) > 0.01


def test_epochs_are_passes_over_the_data():
    """A client of 9 samples in batches of 4: an epoch is three steps."""
    problem = parted.problem()
    client, (body, head) = problem.client(0), parted.start(problem)
    algorithm = FedRep(**FULL | {"batch_size": 4, "head_epochs": 2, "body_epochs": 1})
    sent, kept = jax.jit(lambda: algorithm.local(body, head, client, parted.KEY))()

    @jax.jit
    def by_hand(body, head):
        for_head, for_body = jax.random.split(parted.KEY)
        for number in range(6):
            head = descend(head, 0.2, client.grad(head, client.batch(for_head, number, 4, "epoch"), body))
        for number in range(3):
            body = descend(body, 0.3, client.grad(body, client.batch(for_body, number, 4, "epoch"), head))
        return body, head

    expected = by_hand(body, head)
    np.testing.assert_allclose(flat(sent), flat(expected[0]), atol=1e-6)
    np.testing.assert_allclose(flat(kept), flat(expected[1]), atol=1e-6)


def test_no_leaf_of_the_head_leaves_the_client():
    problem, algorithm = parted.problem(), FedRep(**FULL)
    shared = algorithm.init(start_with(problem.params), parted.KEY)
    private = algorithm.init_private(start_with(problem.params), parted.KEY)
    paths, _, kept = parted.sent(algorithm, problem.client(0), shared, private)
    assert paths == [".first", ".bias"]
    assert [leaf.shape for leaf in jax.tree.leaves(kept)] == [(3, 4)]


@pytest.mark.second
def test_execution_and_padding_change_nothing():
    """Quadratics in two leaves, of which `tail` is the head."""
    algorithm = FedRep(head="tail", rate=0.1, head_steps=2, batch_size=2)
    is_the_same_however_executed(algorithm)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", 0.0),
        ("head_rate", -1.0),
        ("head_steps", -1),
        ("body_steps", -1),
        ("head_epochs", -1),
        ("body_epochs", -2),
        ("momentum", 1.0),
        ("head_momentum", -0.1),
        ("batch_size", -1),
        ("batches", "shuffled"),
        ("weighting", "none"),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"fedrep: {key} = "):
        FedRep(**{key: value})
