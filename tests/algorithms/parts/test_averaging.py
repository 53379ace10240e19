"""What a round leaves on a client, against the round itself."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.parts.averaging import Averaging
from idiolect.algorithms.parts.body_head import OneStart, Parted
from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.runtime.evaluate import Evaluator
from tests import parted
from tests.federations import run, start_with
from tests.parted import HEAD, SIZES, own

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


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec["name"])
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
    with pytest.raises(ConfigError, match="fedrecon: trained is not for it"):
        build({"name": "fedrecon", "trained": True})
