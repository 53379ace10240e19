"""What a round leaves on a client, against the round itself."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvgFineTuned
from idiolect.algorithms.parts.averaging import Averaging, FineTuned
from idiolect.algorithms.parts.body_head import OneStart, Parted
from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.algorithms.reptile import Reptile
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.runtime.evaluate import Evaluator
from tests import parted
from tests.federations import classification, flat, rows, run, start_with
from tests.parted import HEAD, SIZES, own
from tests.tiers import second

CLIENTS = len(SIZES)
STEPS = {"local_steps": 3, "rate": 0.2}
METHODS = [
    {"name": "fedavg", **STEPS},
    {"name": "fedprox", "prox_weight": 0.5, **STEPS},
    {"name": "ditto", **STEPS},
    {"name": "fedper", "head": HEAD, **STEPS},
    {"name": "lg-fedavg", "head": HEAD, **STEPS},
    {"name": "fedrep", "head": HEAD, "head_steps": 3, "body_steps": 2, "rate": 0.2},
    {"name": "fedbabu", "head": HEAD, "head_init": "model", **STEPS},
]


def leaves(params):
    """Every array that is there, by its path."""
    return {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(params)}


@pytest.mark.parametrize(
    "spec",
    [spec if spec["name"] in ("ditto", "fedbabu") else second(spec) for spec in METHODS],
    ids=lambda spec: spec["name"],
)
def test_trained_is_what_the_next_round_would_leave_on_each_client(spec):
    algorithm = build({**spec, "batch_size": 0, "trained": True})
    simulation = parted.problem().simulation(algorithm, rounds=3)
    assert simulation.offered == (*type(algorithm).model_names, "trained")
    before = run(simulation, 2)
    trained = Evaluator(simulation).client_params(before, ("trained",))["trained"]
    models = [leaves(tree.gather(trained, i)) for i in range(CLIENTS)]
    after = simulation.advance(before, 1)
    average = leaves(parted.mean([tree.gather(trained, i) for i in range(CLIENTS)], list(SIZES)))
    for place, leaf in leaves(algorithm.view(after.shared, 0)).items():
        np.testing.assert_allclose(average[place], leaf, atol=1e-6)
    if isinstance(algorithm, Parted) and not isinstance(algorithm, OneStart):
        for i in range(CLIENTS):
            for place, leaf in leaves(own(after, i)).items():
                np.testing.assert_allclose(models[i][place], leaf, atol=1e-6)


def test_it_is_offered_only_if_asked_for_and_never_where_it_has_no_meaning():
    for name, cls in ALGORITHMS.items():
        if issubclass(cls, Averaging):
            assert "trained" not in build(name).offered(start_with(None))
    with pytest.raises(ConfigError, match="fedrecon: it has no setting trained"):
        build({"name": "fedrecon", "trained": True})


@pytest.mark.parametrize("rate", [None, 0.3])
@pytest.mark.parametrize("order", [second("fresh"), "epoch", second("cyclic")])
def test_it_is_sgd_from_the_shared_model_on_the_client_s_mini_batches(order, rate):
    problem, round = classification((9, 1, 14)), 1
    method = FedAvgFineTuned(
        rate=0.2, local_steps=2, batch_size=4, batches=order, finetune_steps=5, finetune_rate=rate
    )
    simulation = problem.simulation(method)
    state = run(simulation, round)
    models = Evaluator(simulation).client_params(state, ("adapted", "global"))
    for index in range(3):
        key = stream(simulation.init(0).seed, "local", round, index)
        tuned = problem.sgd(problem.client(index, round), key, state.shared.params, rate or 0.2, 5, order)
        np.testing.assert_allclose(rows(models["adapted"])[index], flat(tuned), atol=1e-6)
        np.testing.assert_array_equal(rows(models["global"])[index], flat(state.shared.params))


def test_who_is_fine_tuned():
    assert {cls for cls in ALGORITHMS.values() if issubclass(cls, FineTuned)} == {FedAvgFineTuned, Reptile}
