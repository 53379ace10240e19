"""Private fusion heads: mmFL beside them is unchanged, and a head is SGD on held encoders' features."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.mmfl import MmFL
from idiolect.algorithms.mmfl_fusion import MmFLFusion
from idiolect.core import tree
from idiolect.core.errors import ConfigError
from idiolect.core.random import stream
from idiolect.models.multimodal import joined
from idiolect.models.parts import separate
from idiolect.runtime.evaluate import Evaluator
from tests.contract import sent_by
from tests.federations import batches_of, run, start_with
from tests.modalities import FLAT, SIZES, close, data_of, problem, value_and_slope

HELD = (("acc", "gyro"), ("text",), ("acc", "text"), ("acc", "gyro", "text"))
OPTIONS = {"rates": (0.3, 0.03), "local_steps": 2, "batch_size": 4}
FUSED = MmFLFusion(head_rate=0.2, head_steps=3, **OPTIONS)


@pytest.mark.second
def test_mmfl_is_unchanged_and_the_head_takes_sgd_steps_on_held_encoders():
    given = problem(data_of(HELD), l2=0.1, fusion="attention", **FLAT)
    simulation = given.simulation(FUSED)
    state = run(simulation)
    close(state.shared, run(given.simulation(MmFL(**OPTIONS))).shared)
    start = simulation.init(0)
    body = joined(start.shared.params)
    for index in range(len(SIZES)):
        key = jax.random.fold_in(stream(jax.random.key(0), "local", 0, index), 0x68)
        batches = batches_of(given.client(index), key, 3, "fresh")
        head = tree.gather(start.private, index)
        for step in range(3):
            batch = jax.tree.map(lambda leaf, step=step: leaf[step], batches)
            _, slope = value_and_slope(given.objective, tree.merged(head, body), batch)
            head = tree.add_scaled(head, -0.2, separate(slope, "fusion")[1])
        close(tree.gather(state.private, index), head)


def test_a_head_reads_nothing_of_an_absent_modality_and_is_never_sent():
    given = problem(data_of(HELD), fusion="concat", **FLAT)
    method = FUSED
    shared = method.init(start_with(given.params), jax.random.key(0))
    private = method.init_private(start_with(given.params), jax.random.key(0))
    message, head = sent_by(method, given.client(0), shared, private)  # has no text
    paths = {jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(message)}
    assert paths
    assert not any("fusion" in path for path in paths)
    first, before = (np.asarray(part.fusion.head.layers[0].weight) for part in (head, private))
    width = given.model.fusion.width
    np.testing.assert_array_equal(first[:, width:], before[:, width:])  # the columns of text
    assert not np.array_equal(first[:, :width], before[:, :width])


@pytest.mark.second
def test_the_fused_model_is_the_head_on_the_servers_encoders():
    given = problem(data_of(HELD), fusion="attention", **FLAT)
    simulation = given.simulation(FUSED)
    assert simulation.offered[:3] == ("fused", "global", "personal")
    state = run(simulation)
    params = Evaluator(simulation).client_params(state, ["fused", "global"])
    for index in range(len(SIZES)):
        own = tree.gather(params["fused"], index)
        close(own.head.fusion, tree.gather(state.private, index).fusion)
        close(own.encoders, joined(state.shared.params))
        bound = given.objective.model(own)  # the multimodal model with both
        close(bound.fusion, own.head.fusion)
        close(bound.encoders, own.encoders.encoders)
        assert not jax.tree.leaves(tree.gather(params["global"], index).fusion)


def test_a_model_without_a_head_is_refused():
    given = problem(**FLAT)
    with pytest.raises(ConfigError, match="needs a model with a fusion head"):
        given.simulation(FUSED)
    with pytest.raises(ConfigError, match="mmfl-fusion: head_steps = 0"):
        MmFLFusion(head_steps=0)
    with pytest.raises(ConfigError, match="mmfl-fusion: rates"):
        MmFLFusion(rates=(-1.0,))
