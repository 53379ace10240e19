"""The personalization methods on clients of several modalities, some of them absent."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.registry import build
from idiolect.models.parts import separate
from idiolect.runtime.evaluate import Evaluator
from tests.federations import run
from tests.modalities import FLAT, SIZES, data_of, problem

HELD = (("acc", "gyro"), ("text",), ("acc", "text"), ("acc", "text"))
STEPS = {"local_steps": 2, "batch_size": 4}
METHODS = [
    {"name": "fedper", "head": "decoders", **STEPS},
    {"name": "ditto", **STEPS},
    {"name": "pfedme", "inner_steps": 2, **STEPS},
    {"name": "pflego", "head": "decoders", "local_steps": 3},
    {"name": "fedu", **STEPS},
]


@pytest.mark.second
@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec["name"])
def test_two_rounds_train_what_is_there_and_leave_the_absent_decoder_alone(spec):
    given = problem(data_of(HELD), **FLAT)
    simulation = given.simulation(build(spec))
    state = run(simulation, 2)
    name = simulation.algorithm.model_names[0]
    scores = Evaluator(simulation)(state, (name,))[0]
    np.testing.assert_array_equal(scores.count, SIZES)
    assert np.isfinite(scores.loss).all()
    if state.private is None or spec["name"] == "ditto":
        return
    start = separate(given.params, "decoders")[1].decoders
    for index, has in enumerate(HELD):
        own = jax.tree.map(lambda leaf, index=index: leaf[index], state.private).decoders
        for modality in ("acc", "text"):
            same = all(map(np.array_equal, *map(jax.tree.leaves, (own[modality], start[modality]))))
            assert same == (modality not in has)
