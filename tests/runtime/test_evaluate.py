"""Evaluation against plain numpy, client by client."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

import idiolect
from idiolect.algorithms.fedavg import FedAvg, FedAvgFineTuned
from idiolect.algorithms.local import Local
from idiolect.client.objective import objective_of
from idiolect.client.samples import TILE, to_device
from idiolect.core.errors import ConfigError, DataError
from idiolect.data.federated import Split
from idiolect.data.sets.registry import load
from idiolect.models import build
from idiolect.runtime import evaluate
from idiolect.runtime.evaluate import Evaluator, client_model, evaluated_clients
from idiolect.runtime.simulate import Simulation
from tests.federations import bits, classification, federation, flat, labelled, quadratics, rows, run, split_of
from tests.modalities import FLAT, data_of
from tests.modalities import problem as modal
from tests.tiers import second

SIZES = (1, 5, TILE, 2 * TILE + 90, TILE + 1, 3)


@pytest.fixture(scope="module")
def problem():
    """Few training samples, test sets from one sample to more than two tiles; every client its own model."""
    return classification(SIZES[::-1])


def with_split(data, name, split):
    return type(data)(**vars(data) | {name: split})


def own_models(problem, data=None):
    """A federation in which every client holds a different model, without any training."""
    simulation = Simulation(data or problem.data, problem.objective, problem.params, Local(), block=2)
    state, scale = simulation.init(0), jnp.arange(1.0, 7.0)
    spread = lambda leaf: leaf * scale.reshape(-1, *(1,) * (leaf.ndim - 1))  # noqa: E731
    return simulation, eqx.tree_at(lambda s: s.private, state, jax.tree.map(spread, state.private))


def by_hand(split, params, index):
    """(mean loss, accuracy) of one client in double precision."""
    x, y = split.client(index)
    first, bias, second = (np.asarray(p, float) for p in (params.first, params.bias, params.second))
    logits = np.tanh(x @ first.T + bias) @ second.T
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(y)), y]
    return losses.mean(), np.mean(logits.argmax(axis=1) == y)


def test_tiles_equal_numpy_client_by_client(problem):
    simulation, state = own_models(problem)
    scores = Evaluator(simulation)(state, splits=("test", "train"))
    assert [(s.model, s.split) for s in scores] == [("local", "test"), ("local", "train")]
    for result in scores:
        split = problem.data.split(result.split)
        np.testing.assert_array_equal(result.count, split.sizes)
        for index in range(6):
            params = jax.tree.map(lambda leaf, i=index: leaf * (i + 1), problem.params)
            loss, accuracy = by_hand(split, params, index)
            np.testing.assert_allclose(result.loss[index], loss, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(result.values["accuracy"][index], accuracy, atol=1e-7)
    assert len(set(scores[0].loss)) == 6


def predicted(split, scales, params, clients):
    """Labels and predictions of each of some clients, in double precision."""
    for index in clients:
        first, bias, second = (
            np.asarray(p, float) * scales[index] for p in (params.first, params.bias, params.second)
        )
        x, y = split.client(index)
        yield y, (np.tanh(x @ first.T + bias) @ second.T).argmax(axis=1)


def check_classes(result, pairs, clients=slice(None)):
    """Accuracy and macro-F1 of every client and over all samples, as scikit-learn has them."""
    for index, (y, said) in enumerate(pairs):
        assert result.values["accuracy"][clients][index] == pytest.approx(accuracy_score(y, said))
        assert result.values["macro-f1"][clients][index] == pytest.approx(f1_score(y, said, average="macro"))
    y, said = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    assert result.pooled["accuracy"] == pytest.approx(accuracy_score(y, said))
    assert result.pooled["macro-f1"] == pytest.approx(f1_score(y, said, average="macro"))


def test_metrics_are_of_each_client_and_of_all_samples(problem):
    """Whatever the split, of all clients or of those that are evaluated."""
    simulation, state = own_models(problem)
    for clients in (None, 4):
        evaluator = Evaluator(simulation, clients)
        for result in evaluator(state, splits=("test", "train")):
            split = problem.data.split(result.split)
            check_classes(result, list(predicted(split, np.arange(1.0, 7.0), problem.params, evaluator.ids.tolist())))
            assert result.pooled["accuracy"] != pytest.approx(result.values["accuracy"].mean(), abs=1e-3)


def test_portions_of_clients_and_of_generated_samples(tmp_path, monkeypatch):
    """40 clients in portions of 16, the last filled up, as the samples say one client after the other."""
    data = load({"name": "synthetic-population", "clients": 40, "max_size": 30})
    model = build({"name": "mlr"}, data.feature_shape, data.num_outputs, data.task, jax.random.key(0))
    params = eqx.filter(model, eqx.is_inexact_array)
    simulation = Simulation(data, objective_of(model, data.task), params, Local())
    evaluator = Evaluator(simulation)
    monkeypatch.setattr(evaluate, "PORTION_BYTES", 16 * sum(leaf.nbytes for leaf in jax.tree.leaves(params)))
    state, own = simulation.init(0, rows=tmp_path / "rows"), np.random.default_rng(0)
    state.private.write(np.arange(40), jax.tree.map(lambda p: own.normal(size=(40, *p.shape)).astype("f4"), params))
    (result,) = evaluator(state)
    models = evaluator.client_params(state, ("local",))["local"].linear
    pairs = []
    samples = jax.jit(jax.vmap(to_device(data.test).of))(jnp.arange(40))
    for i, (xs, ys, _) in enumerate(zip(*map(np.asarray, samples), strict=True)):
        x, y = xs[: data.test.sizes[i]], ys[: data.test.sizes[i]]
        pairs.append((y, (x @ np.asarray(models.weight[i]).T + np.asarray(models.bias[i])).argmax(axis=1)))
    check_classes(result, pairs)


def test_samples_that_a_model_cannot_answer_count_in_no_metric():
    data = data_of([("acc", "text"), ("text",), ("acc",), ("acc", "gyro")])
    given = modal(data, **FLAT | {"modalities": ["acc"]})
    simulation = given.simulation(FedAvg())
    (result,) = Evaluator(simulation)(simulation.init(0))
    answered = [index for index in range(4) if index != 1]
    np.testing.assert_array_equal(result.count, data.test.sizes * (np.arange(4) != 1))
    model = jax.jit(jax.vmap(eqx.combine(given.params, given.objective.static)))
    clients = [data.test.client(index) for index in answered]
    pairs = [(y, np.asarray(model(x)).argmax(axis=1)) for x, y in clients]
    assert all(np.isnan(values[1]) for values in result.values.values())
    check_classes(result, pairs, answered)


def test_clients_that_number_their_own_classes_have_metrics_of_their_own_alone(problem):
    data = problem.data
    own = {name: replace(data.split(name), outputs=np.full(6, 3)) for name in ("train", "validation", "test")}
    data = type(data)(**vars(data) | own)
    simulation, state = own_models(problem, data)
    (result,) = Evaluator(simulation)(state)
    (shared,) = Evaluator(own_models(problem)[0])(state)
    for name in ("accuracy", "macro-f1"):
        np.testing.assert_array_equal(result.values[name], shared.values[name])
    assert result.pooled["accuracy"] == shared.pooled["accuracy"]
    assert np.isnan(result.pooled["macro-f1"])


def test_the_order_of_the_clients_is_the_order_of_the_results(problem):
    order = [4, 0, 5, 1, 3, 2]
    moved = split_of([problem.data.test.client(i) for i in order])
    algorithm = FedAvg()
    plain = problem.simulation(algorithm)
    other = Simulation(with_split(problem.data, "test", moved), problem.objective, problem.params, algorithm)
    (straight,), (shuffled,) = (Evaluator(s)(s.init(0)) for s in (plain, other))
    np.testing.assert_allclose(shuffled.loss, straight.loss[order], rtol=1e-6)
    np.testing.assert_array_equal(shuffled.count, straight.count[order])


def test_regression_scores_are_mean_squared_errors():
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(n, 1)).astype(np.float32), rng.normal(size=n).astype(np.float32)) for n in (2, 1)]

    class Slope(eqx.Module):
        slope: jax.Array

        def __call__(self, x):
            return self.slope * x

    params = Slope(jnp.array([2.0]))
    data = federation(split_of(parts))
    simulation = Simulation(data, objective_of(params, "regression", l2=10.0), params, FedAvg())
    (result,) = Evaluator(simulation)(simulation.init(0))
    errors = [np.mean((2 * x[:, 0] - y) ** 2) for x, y in parts]
    np.testing.assert_allclose(result.values["mse"], errors, rtol=1e-6)
    assert result.pooled["mse"] == pytest.approx(np.average(errors, weights=[2, 1]), rel=1e-6)
    np.testing.assert_allclose(result.loss, np.array(errors) / 2, rtol=1e-6)  # no L2 term in an evaluated loss


def test_a_client_without_samples_of_a_split_has_no_score(problem):
    x, y = labelled((4,), np.random.default_rng(1)).client(0)
    validation = Split(x, y, np.array([0, 0, 3, 3, 3, 4, 4]))
    simulation, state = own_models(problem, with_split(problem.data, "validation", validation))
    (result,) = Evaluator(simulation)(state, splits=("validation",))
    np.testing.assert_array_equal(result.count, [0, 3, 0, 0, 1, 0])
    np.testing.assert_array_equal(np.isnan(result.loss), result.count == 0)


def test_adapting_never_sees_validation_or_test_data(problem):
    """Other test and validation data, the same adapted models to the last bit; other training data, others."""
    algorithm = FedAvgFineTuned(finetune_steps=3, batch_size=4)
    other = labelled(SIZES[::-1], np.random.default_rng(7))
    adapted = []
    for changes in ({}, {"test": other, "validation": other}, {"train": other}):
        data = type(problem.data)(**vars(problem.data) | changes)
        simulation = Simulation(data, problem.objective, problem.params, algorithm)
        evaluator, state = Evaluator(simulation), simulation.init(0)
        evaluator._split("test")
        models = evaluator.client_params(state, ("adapted",))
        adapted.append([np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(models)])
    assert adapted[0] == adapted[1]
    assert adapted[0] != adapted[2]


def test_evaluation_leaves_the_state_alone(problem):
    simulation, state = own_models(problem)
    before = bits(state)
    Evaluator(simulation)(state)
    assert bits(state) == before


def test_the_clients_that_are_evaluated_are_drawn():
    """All, or so many: distinct, ascending, the same each time, and anywhere in the federation."""
    np.testing.assert_array_equal(evaluated_clients(7, None), np.arange(7))
    np.testing.assert_array_equal(evaluated_clients(7, 7), np.arange(7))
    with pytest.raises(ConfigError, match="eval_clients = 8 is more than the 7 clients; use at most 7"):
        evaluated_clients(7, 8)
    places = []
    for population in range(40, 100):
        ids = evaluated_clients(population, 20)
        assert len(np.unique(ids)) == 20
        assert (np.diff(ids) > 0).all()
        assert 0 <= ids[0] <= ids[-1] < population
        np.testing.assert_array_equal(ids, evaluated_clients(population, 20))
        places += (ids / (population - 1)).tolist()
    # 1,200 places that are uniform in [0, 1]: half of them in either half, their mean 1/2.
    assert abs(np.mean(places) - 0.5) < 5 / np.sqrt(12 * len(places))
    assert min(places) < 0.02
    assert max(places) > 0.98
    with pytest.raises(ConfigError, match="eval_clients = 0 must be at least 1"):
        evaluated_clients(7, 0)


def test_a_model_is_made_with_the_draws_of_the_next_round(problem):
    """Its mini-batches are those that training would take from this state: of this seed, this round, this client."""
    simulation = problem.simulation(FedAvg(rate=0.3, local_steps=3, batch_size=2, trained=True), rounds=3)
    state = run(simulation, 2, seed=3)
    trained = Evaluator(simulation).client_params(state, ("trained",))["trained"]
    share = problem.data.train.sizes / problem.data.train.count
    after = simulation.advance(state, 1).shared.params
    for mine, its in zip(jax.tree.leaves(trained), jax.tree.leaves(after), strict=True):
        np.testing.assert_allclose(np.tensordot(share, mine, axes=1), its, atol=1e-6)


class Pooled(Local):
    """Trains on pooled data, and keeps its model as the private state of the only client."""

    def training_data(self, data):
        return data.pooled()


@pytest.mark.parametrize("in_file", [False, second(True)])
def test_every_client_reads_the_one_private_state_of_a_method_that_pools_the_data(problem, tmp_path, in_file):
    simulation = problem.simulation(Pooled(rate=0.1, local_steps=2, batch_size=4))
    state = simulation.advance(simulation.init(0, rows=tmp_path / "rows" if in_file else None), 2)
    evaluator = Evaluator(simulation)
    memory = simulation.advance(simulation.init(0), 2)
    (only,) = rows(memory.private)
    for ids in (np.arange(6), np.array([5]), np.array([3, 1])):
        own = evaluator.private_of(state, ids)
        assert {len(leaf) for leaf in jax.tree.leaves(own)} == {len(ids)}
        np.testing.assert_allclose(rows(own), np.tile(only, (len(ids), 1)), atol=1e-6)
    models = evaluator.client_params(state, ("local",))["local"]
    np.testing.assert_allclose(rows(models), np.tile(only, (6, 1)), atol=1e-6)
    assert [score.count.tolist() for score in evaluator(state)] == [problem.data.test.sizes.tolist()]


def test_an_empty_split_and_an_unknown_model_are_named(problem):
    simulation, state = own_models(problem)
    evaluator = Evaluator(simulation)
    with pytest.raises(DataError, match="small: the validation split is empty"):
        evaluator(state, splits=("validation",))
    with pytest.raises(ConfigError, match="unknown split 'tests'; did you mean 'test'"):
        evaluator(state, splits=("tests",))
    for ask in (evaluator, evaluator.client_params):
        with pytest.raises(ConfigError, match="unknown model of local 'locl'; did you mean 'local'"):
            ask(state, ("locl",))


def test_it_is_the_client_s_own_by_name_or_number():
    simulation = quadratics().simulation(idiolect.Local(rate=0.1, batch_size=0))
    state, evaluator = run(simulation, 2), Evaluator(simulation)
    for client in (2, "c2"):
        np.testing.assert_array_equal(flat(client_model(evaluator, state, "local", client)), rows(state.private)[2])
    for model, client, message in (
        ("lokal", 0, "did you mean 'local'"),
        ("local", "c9", "unknown client 'c9'"),
        ("local", 4, "client 4 is not one of 0..3"),
        ("local", -1, "client -1 is not one of 0..3"),
    ):
        with pytest.raises(ConfigError, match=message):
            client_model(evaluator, state, model, client)
