"""New clients: what each method gives them, and that nothing of the run changes."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idiolect
from idiolect.algorithms.fedu import Neighbours
from idiolect.algorithms.registry import ALGORITHMS, build
from idiolect.core import tree
from idiolect.core.errors import ConfigError, DataError
from idiolect.data.federated import FederatedData
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.newcomers import Newcomers, numbers_of, personalize
from idiolect.runtime.simulate import Simulation
from tests.algorithms.test_contract import trainable
from tests.federations import (
    Quadratics,
    bits,
    classification,
    federation,
    flat,
    labelled,
    quadratics,
    rows,
    run,
    split_of,
)
from tests.tiers import by_method, second

REFUSED: dict[str, str] = {}


def alone(data: FederatedData, *indices: int, **changes: Any) -> FederatedData:
    """Some clients of a federation as a federation of their own, in this order."""

    def part(name: str) -> Any:
        return split_of([data.stored(name).client(i) for i in indices])

    names = tuple(data.clients[i] for i in indices)
    fields = {"train": part("train"), "test": part("test"), "validation": part("validation"), "clients": names}
    return replace(data, **{**fields, **changes})


def models(made: Newcomers, name: str) -> np.ndarray:
    """A named model of all new clients, one row each."""
    return rows(made.evaluator.client_params(made.state, [name])[name])


@pytest.mark.parametrize("name", by_method(ALGORITHMS, first=("fedu", "pfedme", "scaffold")))
def test_every_method_serves_new_clients(name: str) -> None:
    """Finite scores of every model it offers, of clients with one sample and one class too; the run is as it was."""
    simulation = trainable(name)
    state = run(simulation, 2)
    before = bits(state)
    data, rng = simulation.data, np.random.default_rng(3)
    parts = [(rng.normal(size=(n, *data.feature_shape)).astype("f4"), np.full(n, n % 2, "i4")) for n in (1, 7)]
    if data.modalities is not None:
        parts = [data.stored("train").client(i) for i in range(2)]
    new = replace(
        data,
        clients=("x", "y"),
        train=split_of(parts),
        test=split_of(parts),
        validation=split_of([(x[:0], y[:0]) for x, y in parts]),
    )
    made = personalize(simulation, state, new)
    assert bits(state) == before
    scores = made.scores()
    assert {s.model for s in scores} == {*simulation.offered}
    for s in scores:
        assert np.isfinite(s.loss).all()
        assert s.count.tolist() == [len(y) for _, y in parts]
    keeps = jax.tree.leaves(made.state.private.private)
    assert made.rounds == (2 if keeps else 0)


@pytest.mark.second
def test_a_known_client_given_again_gets_its_own_model() -> None:
    """Where nothing is private: the draws are those of its own number, whatever the order."""
    for method, name in ((idiolect.PFedMe(local_steps=3), "personal"), (idiolect.FedAvgFineTuned(), "adapted")):
        problem = classification()
        simulation = problem.simulation(method, cohort=2)
        state = run(simulation, 3)
        known = rows(Evaluator(simulation).client_params(state, [name])[name])
        again = personalize(simulation, state, alone(problem.data, 3, 0, 2))
        np.testing.assert_allclose(models(again, name), known[[3, 0, 2]], rtol=1e-6, atol=1e-7)
        other = personalize(simulation, state, alone(problem.data, 3, 0, 2, clients=("c3", "c0", "new")))
        assert not np.allclose(models(other, name)[2], known[2], atol=1e-4)  # another number, other draws


@pytest.mark.second
@pytest.mark.parametrize("method", [idiolect.Ditto(), idiolect.PFedMe(), idiolect.FedU()], ids=lambda m: m.name)
def test_a_new_client_does_not_depend_on_the_others(method: Any) -> None:
    problem, rng = classification(), np.random.default_rng(5)
    simulation = problem.simulation(method)
    state = run(simulation, 2)
    new = federation(
        labelled((6, 1, 11), rng), task="classification", classes=problem.data.classes, clients=("x", "y", "z")
    )
    all_ = models(personalize(simulation, state, new), "personal")
    np.testing.assert_allclose(
        models(personalize(simulation, state, alone(new, 2, 0, 1)), "personal"), all_[[2, 0, 1]], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        models(personalize(simulation, state, alone(new, 1)), "personal")[0], all_[1], rtol=1e-5, atol=1e-6
    )


def new_quadratic(problem: Quadratics, seed: int = 9) -> Quadratics:
    """A quadratic client of its own, with the model of the others."""
    one = quadratics((4,), seed=seed)
    data = replace(one.data, clients=("new",))
    return replace(one, data=data, objective=problem.objective)


def test_ditto_reaches_the_prox_point_of_the_trained_model() -> None:
    """argmin f(v) + (lambda / 2) ||v - w||^2, w the run's global model."""
    problem = quadratics()
    simulation = problem.simulation(idiolect.Ditto(rate=0.1, prox_weight=0.7, batch_size=0))
    state, one = run(simulation, 5), new_quadratic(problem)
    made = personalize(simulation, state, one.data, rounds=60)
    w = flat(state.shared.params).astype(float)
    np.testing.assert_allclose(models(made, "personal")[0], one.prox(0, w, 0.7), atol=2e-5)
    np.testing.assert_array_equal(models(made, "global")[0], flat(state.shared.params))


@pytest.mark.parametrize(
    ("graph", "degree"),
    [("complete", 4.0), second("ring", 4 * 2 / 3), ("star", 1.0)],
    ids=["complete", "ring", "star"],
)
def test_fedu_reaches_the_optimum_between_fixed_neighbours(graph: str, degree: float) -> None:
    """argmin F(w) + (eta / 2) a ||w - m||^2; by steps that are exact, not small."""
    problem, eta = quadratics(), 0.3
    method = idiolect.FedU(rate=0.02, local_steps=1, batch_size=0, coupling=eta, graph=graph)
    simulation = problem.simulation(method)
    state, one = run(simulation, 20), new_quadratic(problem)
    seen: Neighbours = method.new_view(state.shared)
    weights = np.ones(4) if graph != "star" else np.array([0, 0, 0, 0, 1.0])
    centre = np.average(rows(state.shared.params), axis=0, weights=weights)
    assert float(seen.weight) == pytest.approx(degree)
    np.testing.assert_allclose(flat(seen.centre), centre, rtol=1e-5, atol=1e-6)
    got = models(personalize(simulation, state, one.data, rounds=1500), "personal")[0]
    # Mixing follows the gradient step, so the fixed point solves A (w - c) (1 - mu eta a) + eta a (w - m) = 0.
    a, c, pull = one.a[0], one.c[0], eta * degree
    damped = (1 - 0.02 * pull) * a
    np.testing.assert_allclose(got, np.linalg.solve(damped + pull * np.eye(5), damped @ c + pull * centre), atol=3e-5)


def test_fedu_trains_alone_where_nobody_is_a_neighbour() -> None:
    problem = quadratics()
    simulation = problem.simulation(idiolect.FedU(rate=0.1, batch_size=0, coupling=0.0, graph="complete"))
    one = new_quadratic(problem)
    made = personalize(simulation, run(simulation, 3), one.data, rounds=20)
    np.testing.assert_allclose(models(made, "personal")[0], one.c[0], atol=2e-5)


def linear(sizes: tuple[int, ...], seed: int = 0) -> tuple[FederatedData, Any]:
    """Regressions with their own rules and, as a federation, an `idiolect.run` away from a linear model."""
    rng = np.random.default_rng(seed)
    parts = []
    for size in sizes:
        x = rng.normal(size=(size, 3))
        parts.append((x.astype("f4"), (x @ rng.normal(size=3) + 0.1 * rng.normal(size=size)).astype("f4")))
    return federation(split_of(parts)), parts


def test_mocha_reaches_ridge_regression_around_the_mean() -> None:
    """argmin sum (w'x - y)^2 / 2 + (c / 2) ||w - wbar||^2 + (lambda_2 / 2) ||w||^2, c = lambda_1 N / (N + 1)."""
    data, _ = linear((8, 5, 9))
    run_ = idiolect.run(data, "linear", idiolect.Mocha(loss="squared", coupling=2.0, shrinkage=0.5), rounds=5)
    new, ((x, y),) = linear((7,), seed=4)
    made = personalize(run_.evaluator.simulation, run_.state, replace(new, clients=("new",)), rounds=200)
    design = np.concatenate([x, np.ones((7, 1))], axis=1).astype(float)
    known = run_.evaluator.client_params(run_.state, ["personal"])["personal"]
    bias, weight = sorted(jax.tree.leaves(known), key=np.size)
    weight, bias = weight.reshape(3, 3), bias.reshape(3, 1)
    mean, pull = np.concatenate([weight, bias], axis=1).astype(float).mean(axis=0), 2.0 * 3 / 4
    expected = np.linalg.solve(design.T @ design + (pull + 0.5) * np.eye(4), design.T @ y + pull * mean)
    got = made.evaluator.client_params(made.state, ["personal"])["personal"]
    parts = sorted(jax.tree.leaves(got), key=lambda leaf: -leaf.size)
    np.testing.assert_allclose(np.concatenate([np.ravel(leaf) for leaf in parts]), expected, atol=2e-4)


@pytest.mark.parametrize("setting", [{"relationship": "learned"}, {"relation": np.eye(4)}])
def test_mocha_refuses_new_clients_beside_a_relation_that_does_not_know_them(setting: dict[str, Any]) -> None:
    simulation = trainable("mocha")
    method = idiolect.Mocha(**setting)
    other = Simulation(simulation.data, simulation.objective, simulation.params, method)
    with pytest.raises(ConfigError, match="has no row for new clients"):
        personalize(other, run(other, 1), simulation.data)


@pytest.mark.second
@pytest.mark.parametrize("name", ["fedper", "fedrep", "pflego"])
def test_the_head_alone_is_fitted_on_a_frozen_body(name: str) -> None:
    """The head's gradient vanishes, the body is the run's to the last bit. Ridge keeps the optimum in reach."""
    settings = {"fedper": {"rate": 0.5, "batch_size": 0}, "fedrep": {"rate": 0.5, "batch_size": 0, "head_steps": 20}}
    method = build({"name": name, **settings.get(name, {"head_rate": 0.5})})
    problem = classification(l2=0.1)
    rng = np.random.default_rng(2)
    data = replace(
        problem.data,
        clients=("new",),
        train=(part := labelled((20,), rng)),
        test=part,
        validation=split_of([(part.x[:0], part.y[:0])]),
    )
    model = idiolect.models.build({"name": "mlp", "hidden": [4]}, (3,), 3, "classification", jax.random.key(0))
    done = idiolect.run(problem.data, model, method, rounds=2, l2=0.1)
    made = personalize(done.evaluator.simulation, done.state, data, rounds=60)
    params = tree.gather(made.evaluator.client_params(made.state, ["personal"])["personal"], 0)
    body, head = method.part(params)
    for mine, theirs in zip(jax.tree.leaves(body), jax.tree.leaves(done.state.shared.params), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    client = made.evaluator.simulation.plan.client(made.evaluator.simulation.arrays, jnp.asarray(0), jnp.asarray(0))
    slope = eqx.filter_jit(client.grad)(head, None, body)
    assert np.abs(flat(slope)).max() < 2e-4


def test_local_trains_alone_for_as_many_rounds_as_a_known_client() -> None:
    """With all samples in each step nothing is drawn: a client with a known one's data gets the known one's model."""
    problem = quadratics()
    simulation = problem.simulation(idiolect.Local(rate=0.1, batch_size=0))
    state = run(simulation, 4)
    new = alone(problem.data, 1, clients=("new",))
    np.testing.assert_allclose(
        models(personalize(simulation, state, new), "local")[0], rows(state.private)[1], rtol=1e-6
    )
    half = problem.simulation(idiolect.Local(rate=0.1, batch_size=0), cohort=2)
    assert personalize(half, run(half, 4), new).rounds == 2


@pytest.mark.second
def test_a_client_may_use_fewer_of_its_samples() -> None:
    """As if it had no others."""
    problem, rng = classification(), np.random.default_rng(5)
    simulation = problem.simulation(idiolect.FedAvgFineTuned())
    state = run(simulation, 2)
    new = federation(labelled((6, 11), rng), task="classification", classes=problem.data.classes, clients=("x", "y"))
    cut = replace(new, train=split_of([(x[:4], y[:4]) for x, y in map(new.train.client, range(2))]))
    few = models(personalize(simulation, state, new, most=4), "adapted")
    np.testing.assert_allclose(few, models(personalize(simulation, state, cut), "adapted"), rtol=1e-5, atol=1e-6)
    assert not np.allclose(few, models(personalize(simulation, state, new), "adapted"), atol=1e-3)


def test_numbers_are_those_of_the_run_or_hashes_beyond_them() -> None:
    numbers = numbers_of(("a", "b"), ("b", "new", "a", "other"))
    assert numbers[[0, 2]].tolist() == [1, 0]
    assert (numbers[[1, 3]] >= 2).all()
    assert numbers_of(("a", "b"), ("other", "new")).tolist() == numbers[[3, 1]].tolist()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ("a", "b", "d")}, "the classes are a, b, d, but the run's are a, b, c"),
        ({"task": "regression", "classes": ()}, "task is 'regression'"),
        ({"train": labelled((9, 1, 30, 4, 17), np.random.default_rng(0), features=2)}, "feature shape is"),
    ],
)
def test_data_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    problem = classification()
    simulation = problem.simulation(idiolect.FedAvg())
    with pytest.raises(DataError, match=message):
        personalize(simulation, simulation.init(0), replace(problem.data, **changes))


def test_settings_out_of_range_are_refused() -> None:
    problem = classification()
    simulation = problem.simulation(idiolect.FedAvg())
    with pytest.raises(ConfigError, match="rounds = -1 must be at least 1"):
        personalize(simulation, simulation.init(0), problem.data, rounds=-1)
    with pytest.raises(ConfigError, match="most = 0 must be at least one sample"):
        personalize(simulation, simulation.init(0), problem.data, most=0)


@pytest.mark.second
def test_new_clients_without_test_samples_have_models_but_no_scores() -> None:
    problem, rng = classification(), np.random.default_rng(5)
    simulation = problem.simulation(idiolect.FedAvgFineTuned())
    state, train = run(simulation, 1), labelled((6, 2), rng)
    some = split_of([(train.x[:3], train.y[:3]), (train.x[:0], train.y[:0])])
    new = federation(train, some, task="classification", classes=problem.data.classes, clients=("x", "y"))
    (scores,) = personalize(simulation, state, new).scores(["adapted"])
    assert np.isfinite(scores.loss).tolist() == [True, False]
    none = replace(new, test=replace(some, x=some.x[:0], y=some.y[:0], offsets=np.zeros(3, int)))
    made = personalize(simulation, state, none)
    assert np.isfinite(models(made, "adapted")).all()
    with pytest.raises(DataError, match="the test split is empty, nothing to evaluate on"):
        made.scores()
