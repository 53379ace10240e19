"""FedRecon: how samples are divided, and Algorithm 1 written out on the divided samples."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.fedrecon import FedRecon
from idiolect.client.objective import objective_of
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.models.dense import MLP
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.simulate import Simulation
from tests import parted
from tests.contract import ignores_padding, is_the_same_however_executed, keeps_nothing
from tests.federations import client_of, flat, rows, run, start_with
from tests.parted import HEAD, SIZES, descend
from tests.tiers import second

CLIENTS = len(SIZES)
OPTIONS = {"head": HEAD, "rate": 0.3, "recon_rate": 0.2, "recon_steps": 3, "local_steps": 2, "batch_size": 0}


@pytest.fixture(scope="module")
def problem():
    """The small federation, with each row's own number in feature 0, in hundredths, to tell rows apart."""
    return numbered(parted.problem())


def numbered(problem):
    problem.data.train.x[:, 0] = np.arange(len(problem.data.train.x)) / 100
    return problem


def divided(problem, algorithm):
    """For each client, the row numbers of its support and of its query samples, in round 2."""

    @jax.jit
    def rows_of(index):
        client = client_of(problem.data, problem.objective, index, round=2)
        batches = (part.take(jnp.arange(20)) for part in algorithm.divided(client))
        return [jnp.where(batch.weight > 0, batch.x[:, 0], -1) for batch in batches]

    for index in range(len(problem.data.clients)):
        parts = [np.rint(100 * np.asarray(rows)).astype(int) for rows in rows_of(jnp.asarray(index))]
        yield tuple(part[part >= 0].tolist() for part in parts)


@pytest.mark.parametrize(("support", "sizes"), [(0.5, (4, 0, 7, 2)), (0.01, (1, 0, 1, 1)), (1.0, (8, 0, 13, 3))])
def test_support_and_query_are_disjoint_and_cover_the_samples(problem, support, sizes):
    offsets = problem.data.train.offsets
    for index, (first, other) in enumerate(divided(problem, FedRecon(support=support))):
        assert len(first) == sizes[index]
        assert sorted(first + other) == list(range(offsets[index], offsets[index + 1]))


def test_the_division_is_the_clients_own_fixed_and_named_by_the_seed(problem):
    first, again, other = (list(divided(problem, FedRecon(split_seed=seed))) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    orders = [np.argsort(support + query) for support, query in first]
    assert all((np.diff(order) < 0).any() for order in orders if len(order) > 4)
    (one, _), (two, _) = divided(numbered(parted.problem(sizes=(9, 9))), FedRecon())
    assert set(one) != {row - 9 for row in two}  # clients of one size have permutations of their own


def slope(problem, samples, body, head):
    """Gradients of the mean loss over rows of the training split, with respect to (body, head)."""
    x, y = (jnp.asarray(a[np.asarray(samples)]) for a in (problem.data.train.x, problem.data.train.y))
    return _slope(problem.objective.l2, body, head, x, y)


@jax.jit
def _slope(l2, body, head, x, y):
    def loss(body, head):
        whole = tree.merged(head, body)
        losses = jax.vmap(lambda x, y: -jax.nn.log_softmax(whole(x))[y])(x, y)
        return losses.mean() + 0.5 * l2 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(whole))

    return jax.grad(loss, (0, 1))(body, head)


def decayed(problem, params):
    """The gradient of the L2 term alone: all that is left without samples."""
    return jax.tree.map(lambda leaf: problem.objective.l2 * leaf, params)


@pytest.mark.parametrize(
    "changes",
    [{}, {"split": "none"}, second({"weighting": "uniform", "server_optimizer": "sgd", "server_rate": 0.5})],
)
def test_two_rounds_are_algorithm_1(problem, changes):
    """Reconstruction from the same start each round, on support; body steps on query; weights |D_q|."""
    algorithm = FedRecon(**OPTIONS | changes)
    state = run(problem.simulation(algorithm), 2)
    parts = list(divided(problem, algorithm))
    body, initial = parted.start(problem)
    for _ in range(2):
        bodies = []
        for support, query in parts:
            head, mine = initial, body
            for _ in range(3):
                head = descend(
                    head, 0.2, slope(problem, support, body, head)[1] if support else decayed(problem, head)
                )
            for _ in range(2):
                mine = descend(mine, 0.3, slope(problem, query, mine, head)[0])
            bodies.append(mine)
        share = [1 if "weighting" in changes else len(query) for _, query in parts]
        change = jax.tree.map(jnp.zeros_like, body)
        for mine, weight in zip(bodies, share, strict=True):
            change = tree.add_scaled(change, weight / sum(share), tree.subtract(mine, body))
        body = tree.add_scaled(body, algorithm.server_rate, change)
    np.testing.assert_allclose(flat(state.shared.server.params), flat(body), atol=1e-5)
    np.testing.assert_array_equal(flat(state.shared.head), flat(initial))


@pytest.mark.parametrize("rebuild_on", ["all", "support"])
def test_the_personal_model_is_rebuilt_on_training_data(problem, rebuild_on):
    algorithm = FedRecon(rebuild_on=rebuild_on, **OPTIONS)
    simulation = problem.simulation(algorithm)
    personal = Evaluator(simulation).client_params(simulation.init(0), ("personal",))["personal"]
    for index, (support, query) in enumerate(divided(problem, algorithm)):
        body, head = parted.start(problem)
        samples = support + query if rebuild_on == "all" else support
        for _ in range(3):
            head = descend(head, 0.2, slope(problem, samples, body, head)[1] if samples else decayed(problem, head))
        np.testing.assert_allclose(rows(personal)[index], flat(tree.merged(head, body)), atol=1e-5)


def test_nothing_is_kept_and_what_is_kept_elsewhere_is_not_read(problem):
    keeps_nothing(FedRecon(head="tail", rate=0.1, recon_steps=1, batch_size=0))
    algorithm = FedRecon(**OPTIONS)
    shared = algorithm.init(start_with(problem.params), parted.KEY)
    paths, _, _ = parted.sent(algorithm, problem.client(0), shared, None)
    assert paths == [".first", ".bias"]


def test_kept_heads_are_where_the_next_reconstruction_starts(problem):
    """Named `keep`: two rounds of three steps are six steps where the body does not move."""
    options = OPTIONS | {"rate": 1e-9}
    kept = run(problem.simulation(FedRecon(keep=True, **options)), 2).private
    for index, (support, _) in enumerate(divided(problem, FedRecon())):
        body, head = parted.start(problem)
        for _ in range(6):
            head = descend(head, 0.2, slope(problem, support, body, head)[1] if support else decayed(problem, head))
        np.testing.assert_allclose(rows(kept)[index], flat(head), atol=1e-5)


def test_a_random_start_is_drawn_anew_by_each_client_in_each_round(problem):
    model = MLP(3, (4,), 3, key=jax.random.key(2))
    algorithm = FedRecon(head_init="uniform", recon_steps=0, batch_size=0)
    simulation = Simulation(problem.data, objective_of(model, "classification"), model, algorithm)
    evaluator, first = Evaluator(simulation), simulation.init(0)
    later = replace(first, round=first.round + 1)
    models = [evaluator.client_params(state, ("personal",))["personal"] for state in (first, later)]
    heads = np.concatenate([rows(model.layers[1]) for model in models])
    assert heads.min() >= 0
    assert len(np.unique(heads[:, 0])) == 2 * CLIENTS


@pytest.mark.second
def test_execution_and_padding_change_nothing():
    """Quadratics in two leaves, of which `tail` is the head."""
    algorithm = FedRecon(head="tail", rate=0.1, recon_steps=2, local_steps=2, batch_size=2)
    is_the_same_however_executed(algorithm)
    ignores_padding(algorithm)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rate", 0.0),
        ("recon_rate", 0.0),
        ("recon_steps", -1),
        ("support", 1.5),
        ("split", "half"),
        ("split_seed", -1),
        ("rebuild_on", "test"),
        ("local_steps", 0),
    ],
)
def test_what_is_out_of_range_is_named(key, value):
    with pytest.raises(ConfigError, match=f"fedrecon: {key} = "):
        FedRecon(**{key: value})
