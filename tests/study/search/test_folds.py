"""Folds: each client's training samples are divided, nothing else is touched, and one program runs all folds."""

import jax
import numpy as np
import pytest

from idiolect.algorithms.fedavg import FedAvg
from idiolect.core.errors import ConfigError
from idiolect.core.tree import gather
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.program import Program, signature
from idiolect.runtime.simulate import Simulation
from idiolect.study.search.folds import Folds
from tests.federations import classification

SIZES = (9, 2, 30, 4)


@pytest.fixture(scope="module")
def problem():
    return classification(SIZES)


def rows_of(split, client):
    return {row.tobytes() for row in split.client(client)[0]}


def test_each_sample_is_held_out_once_and_trained_on_otherwise(problem):
    folds = Folds(problem.data, 4, seed=1)
    for client, size in enumerate(SIZES):
        everything = rows_of(problem.data.train, client)
        held = [rows_of(folds.data(f).validation, client) for f in range(4)]
        assert set.union(*held) == everything
        assert sum(map(len, held)) == len(everything) == size
        assert max(map(len, held)) - min(map(len, held)) <= 1
        for fold in range(4):
            assert rows_of(folds.data(fold).train, client) == everything - held[fold]
    assert folds.data(2).test is problem.data.test


def test_labels_stay_with_their_samples_and_the_seed_names_the_folds(problem):
    train = problem.data.train
    label = {x.tobytes(): y for x, y in zip(train.x, train.y, strict=True)}
    part = Folds(problem.data, 3, seed=5).data(1).train
    assert all(label[x.tobytes()] == y for x, y in zip(part.x, part.y, strict=True))
    np.testing.assert_array_equal(part.x, Folds(problem.data, 3, seed=5).data(1).train.x)
    assert (part.x != Folds(problem.data, 3, seed=6).data(1).train.x).any()


def test_one_program_runs_every_fold_as_a_simulation_of_its_data_does(problem):
    folds = Folds(problem.data, 3)
    method = FedAvg(rate=0.2, local_steps=2, batch_size=4)
    sims = [Simulation(folds.data(f), problem.objective, problem.params, method, cohort=3) for f in range(3)]
    members = [folds.member(sim, f) for f, sim in enumerate(sims)]
    assert len({repr(signature(sim, m)[-2:]) for sim, m in zip(sims, members, strict=True)}) == 1
    program, rows = Program(sims, members), range(3)
    states = program.start(sims, [7] * 3, [problem.params] * 3)
    states = program.advance(rows, states, 3, program.capacity([7], 3))
    scores = program.scores(rows, states, ("validation",), ("global",))
    finals = []
    for fold in (0, 2):
        alone = sims[fold].advance(sims[fold].init(7), 3)
        mine = jax.tree.leaves(gather(states, fold).shared)
        finals.append(mine[0])
        for a, b in zip(mine, jax.tree.leaves(alone.shared), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        its = Evaluator(sims[fold])(alone, splits=("validation",))[0]
        np.testing.assert_array_equal(scores[fold][0].count, its.count)
        np.testing.assert_allclose(scores[fold][0].loss, its.loss, rtol=1e-3)
    assert np.abs(finals[0] - finals[1]).max() > 1e-3  # the folds are not one and the same


def test_what_cannot_be_divided_is_refused():
    with pytest.raises(ConfigError, match="client 'c1' has a single training sample"):
        Folds(classification((9, 1)).data)
    with pytest.raises(ConfigError, match="folds = 1 must lie between 2 and 100"):
        Folds(classification((9, 4)).data, 1)
    with pytest.raises(ConfigError, match="folds = 10 is more than any client has training samples, at most 9"):
        Folds(classification((9, 4)).data, 10)
