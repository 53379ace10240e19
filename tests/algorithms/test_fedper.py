"""FedPer and LG-FedAvg against FedAvg, Local, each other, and a round written out."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedper import FedPer, LGFedAvg
from idiolect.algorithms.local import Local
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.runtime.evaluate import Evaluator
from tests import parted
from tests.contract import is_the_same_however_executed
from tests.federations import bits, flat, rows, run, start_with
from tests.tiers import second

OPTIONS = {"rate": 0.2, "local_steps": 2, "batch_size": 4}
CLIENTS = len(parted.SIZES)


@pytest.mark.parametrize("changes", [{}, second({"server_optimizer": "adam", "server_rate": 0.1})])
def test_with_an_empty_head_it_is_fedavg(changes):
    problem = parted.problem()
    fedper, fedavg = (
        problem.simulation(method, cohort=2)
        for method in (FedPer(head="none", **OPTIONS, **changes), FedAvg(**OPTIONS, **changes))
    )
    assert bits(run(fedper, 3)) == bits(run(fedavg, 3))


def test_with_nothing_but_a_head_it_is_local_training():
    problem = parted.problem()
    fedper, local = (
        run(problem.simulation(method, cohort=2), 3) for method in (FedPer(head="all", **OPTIONS), Local(**OPTIONS))
    )
    assert bits(fedper) == bits(local)
    assert np.abs(rows(fedper.private) - flat(problem.params)).max() > 0.1


@pytest.mark.parametrize("weighting", ["size", second("uniform")])
def test_five_rounds_written_out(weighting):
    """Joint mini-batch SGD on both parts; the mean of the bodies; heads stay, and rest where nobody trains them."""
    problem = parted.problem()
    simulation = problem.simulation(
        FedPer(head=parted.HEAD, weighting=weighting, **OPTIONS), cohort=1.5, sampling="binomial", rounds=5
    )
    state, drawn = run(simulation, 5), parted.cohorts(simulation, 5)
    assert {i for cohort in drawn for i in cohort} == {1, 2, 3}
    body, head = parted.start(problem)
    heads = [head] * CLIENTS
    for round, cohort in enumerate(drawn):
        bodies = []
        for i in cohort:
            key = stream(jax.random.key(0), "local", round, i)
            trained = problem.sgd(problem.client(i), key, tree.merged(heads[i], body), 0.2, 2)
            own, heads[i] = parted.split_of(trained)
            bodies.append(own)
        body = parted.mean(bodies, [parted.SIZES[i] if weighting == "size" else 1 for i in cohort])
    np.testing.assert_allclose(flat(state.shared.params), flat(body), atol=1e-6)
    for i in range(CLIENTS):
        np.testing.assert_allclose(flat(parted.own(state, i)), flat(heads[i]), atol=1e-6)
    personal = Evaluator(simulation).client_params(state, ("personal",))["personal"]
    whole = [flat(tree.merged(h, body)) for h in heads]
    np.testing.assert_allclose(rows(personal), whole, atol=1e-6)


def test_lg_fedavg_is_fedper_with_the_parts_exchanged():
    problem = parted.problem()
    lower = FedPer(head=lambda path, _: path in ("first", "bias"), **OPTIONS)
    upper = LGFedAvg(head=parted.HEAD, **OPTIONS)
    fedper, exchanged = (run(problem.simulation(method, cohort=2), 3) for method in (lower, upper))
    assert bits(fedper) == bits(exchanged)
    assert [leaf.shape for leaf in jax.tree.leaves(exchanged.shared)] == [(3, 4)]


@pytest.mark.parametrize(
    ("method", "leaves"),
    [
        (FedPer(head=parted.HEAD, **OPTIONS), [".first", ".bias"]),
        (LGFedAvg(head=parted.HEAD, **OPTIONS), [".second"]),
    ],
)
def test_nothing_private_leaves_the_client(method, leaves):
    problem = parted.problem()
    shared = method.init(start_with(problem.params), parted.KEY)
    paths, _, kept = parted.sent(
        method, problem.client(0), shared, method.init_private(start_with(problem.params), parted.KEY)
    )
    assert paths == leaves
    assert len(jax.tree.leaves(kept)) == 3 - len(leaves)


@pytest.mark.second
def test_execution_and_padding_change_nothing():
    """Quadratics in two leaves, of which `tail` is the head."""
    algorithm = FedPer(head="tail", rate=0.1, local_steps=2, batch_size=2)
    is_the_same_however_executed(algorithm)


@pytest.mark.parametrize(
    ("key", "value"), [("rate", 0.0), ("local_steps", 0), ("weighting", "none"), ("head_init", "x")]
)
def test_what_is_out_of_range_is_named(key, value):
    for method in (FedPer, LGFedAvg):
        with pytest.raises(ConfigError, match=f"{method.name}: {key} = "):
            method(**{key: value})
