"""New clients of a finished run: scores, models, and scores against the number of own samples."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError, DataError, DivergedError
from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.study.run.personalized import shuffled
from tests.federations import flat

RULE = np.random.default_rng(0).normal(size=(3, 4))


def clients(sizes: dict[str, int], seed: int, **options: object) -> FederatedData:
    rng = np.random.default_rng(seed)
    parts = {name: (x := rng.normal(size=(size, 4)), (x @ RULE.T).argmax(axis=1)) for name, size in sizes.items()}
    return from_arrays(parts, classes=("a", "b", "c"), **options)


@pytest.fixture(scope="module")
def finished():
    known = clients({"k0": 40, "k1": 60, "k2": 30}, 1)
    return idiolect.run(known, "mlr", idiolect.FedAvgFineTuned(rate=0.1, finetune_steps=30), rounds=5, eval_every=5)


@pytest.fixture(scope="module")
def made(finished):
    return finished.personalize(clients({"x": 40, "y": 16}, 2))


def test_scores_are_those_of_the_models(made):
    for model in ("adapted", "global"):
        scores = made.scores(model)
        for i, name in enumerate(made.data.clients):
            x, y = made.data.test.client(i)
            right = np.asarray(jax.vmap(made.client_model(model, name))(x)).argmax(axis=1) == y
            assert scores.values["accuracy"][i] == pytest.approx(right.mean(), abs=1e-6)
    assert repr(made) == "Personalized(2 new clients, 0 rounds each, models: adapted, global)"


def test_the_shared_model_is_the_run_s_to_the_last_bit(finished, made):
    np.testing.assert_array_equal(flat(made.client_model("global", "x")), flat(finished.client_model("global", 0)))


def test_the_table_has_a_row_for_each_model_and_client(made):
    table = made.table()
    assert list(table.columns[:4]) == ["model", "client", "used", "n"]
    assert table[["model", "client"]].values.tolist() == [[m, c] for m in ("adapted", "global") for c in ("x", "y")]
    assert table["used"].tolist() == [*made.data.train.sizes] * 2
    np.testing.assert_array_equal(table["accuracy"][:2], made.scores("adapted").values["accuracy"])
    assert made.mean("adapted", made.finished.metrics[0]) == pytest.approx(table["accuracy"][:2].mean())


def test_a_curve_ends_where_all_samples_are_used_and_a_point_is_its_own_run(finished, made):
    curve = made.curve((1, 5, 500), seed=3)
    most = int(made.data.train.sizes.max())
    assert sorted(set(curve["samples"])) == [1, 5, most]
    assert curve[curve["samples"] == 5]["used"].tolist() == [5] * 4
    assert curve[curve["samples"] == most]["used"].tolist() == [*made.data.train.sizes] * 2
    glob = curve[curve["model"] == "global"].groupby("client")["accuracy"].nunique()
    assert glob.tolist() == [1, 1]  # a shared model does not look at own samples
    data = shuffled(made.data, 3)
    keep = [data.train.client(i) for i in range(2)]
    five = replace(
        data,
        train=replace(
            data.train,
            x=np.concatenate([x[:5] for x, _ in keep]),
            y=np.concatenate([y[:5] for _, y in keep]),
            offsets=np.array([0, 5, 10]),
        ),
    )
    loss = finished.personalize(five).scores("adapted").loss
    at = curve[(curve["samples"] == 5) & (curve["model"] == "adapted")]
    np.testing.assert_allclose(at["loss"], loss, rtol=1e-5)
    with pytest.raises(ConfigError, match="counts = \\(0, 1\\) must be numbers of at least 1 sample"):
        made.curve((0, 1))


def test_the_order_of_a_client_s_samples_does_not_depend_on_the_others(made):
    whole = shuffled(made.data, 1)
    alone = shuffled(made.data.select(lambda i: i == 1), 1)
    np.testing.assert_array_equal(alone.train.x, whole.train.client(1)[0])
    assert sorted(whole.train.client(1)[1]) == sorted(made.data.train.client(1)[1])
    assert not np.array_equal(shuffled(made.data, 2).train.x, whole.train.x)


def test_without_test_samples_there_are_models_and_no_scores(finished):
    made = finished.personalize(clients({"one": 1}, 5, test=0.0, validation=0.0))
    assert np.isfinite(flat(made.client_model("adapted", "one"))).all()
    table = made.table()
    assert table["n"].tolist() == [0, 0]
    assert table["accuracy"].isna().all()
    for ask in (lambda: made.scores("adapted"), made.curve):
        with pytest.raises(DataError, match="the test split is empty"):
            ask()


def test_an_unknown_model_is_refused(made):
    with pytest.raises(ConfigError, match="unknown model 'personal'"):
        made.scores("personal")


def test_a_client_that_diverges_is_named(finished):
    known, wild = finished.data, clients({"wild": 20}, 3)
    x = wild.train.x * np.float32(1e30)
    with pytest.raises(DivergedError, match="client 'wild'"):
        finished.personalize(replace(wild, train=replace(wild.train, x=x))).scores("adapted")
    assert known is finished.data
