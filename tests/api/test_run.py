"""Every client's model by name."""

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idiolect
from idiolect.api.run import ClientModels
from idiolect.core.errors import ConfigError, DivergedError
from idiolect.core.files import file_name
from idiolect.core.random import model_key
from idiolect.data import from_arrays
from idiolect.data.federated import Split
from tests.modalities import FLAT, MODEL, data_of


def test_it_is_a_mapping_that_builds_only_what_is_asked_for():
    built = []

    def build(client):
        built.append(client)
        return eqx.nn.Linear(1, 1, key=jax.random.key(len(built)))

    models = ClientModels(["a", "b", "c"], build)
    assert (list(models), len(models), built) == (["a", "b", "c"], 3, [])
    assert isinstance(models["b"], eqx.nn.Linear)
    assert "c" in models
    assert built == ["b"]
    assert models.get("d") is None
    assert "3 clients" in repr(models)
    with pytest.raises(ConfigError, match=r"^unknown client 'd'; there are 3, such as 'a'$"):
        models["d"]


METHODS = [
    {"name": "fedavg", "local_steps": 2, "batch_size": 4},
    {"name": "local", "local_steps": 2, "batch_size": 4},
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    rules = rng.normal(size=(3, 4))
    xs = [rng.normal(size=(40, 4)) for _ in rules]
    return from_arrays({f"c{i}": (x, (x @ rule > 0).astype(int)) for i, (x, rule) in enumerate(zip(xs, rules))})  # noqa: B905


@pytest.fixture(scope="module")
def finished(data):
    return idiolect.run(data, "mlr", idiolect.Local(rate=0.5, batch_size=0), rounds=12, eval_every=5)


def test_a_runs_client_models_give_its_scores(finished, data):
    """The model of each client, called on its own test samples, predicts as often right as the run says."""
    assert [e.round for e in finished.history] == [0, 5, 10, 12]
    scores = finished.scores("local")
    for index, client in enumerate(data.clients):
        model, (x, y) = finished.client_model("local", client), data.test.client(index)
        right = np.argmax(jax.vmap(model)(x), axis=1) == y
        assert right.mean() == pytest.approx(scores.values["accuracy"][index], abs=1e-6)
    assert finished.summary("local").pooled == scores.pooled["accuracy"] > 0.8
    assert finished.summary("local", metric="macro-f1").pooled == scores.pooled["macro-f1"] > 0.8
    with pytest.raises(ConfigError, match="unknown measured metric 'macro-f'; did you mean 'macro-f1'"):
        finished.summary("local", metric="macro-f")


def test_what_is_shown_of_a_run(finished, capsys):
    finished.show()
    shown = " ".join(capsys.readouterr().out.split())
    assert "model ┃ accuracy ┃ macro-F1 ┃ client mean" in shown
    summary = finished.summary("local")
    f1 = finished.summary("local", metric="macro-f1")
    assert f"{summary.pooled:.4f} │ {f1.pooled:.4f} │ {summary.mean:.4f} │ {summary.std:.4f}" in shown


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda r: r.scores("personal"), "unknown model/split 'personal/test'"),
        (lambda r: r.client_model("lokal", 0), "did you mean 'local'"),
        (lambda r: r.client_model("local", "c9"), "unknown client 'c9'"),
        (lambda r: r.client_model("local", 3), r"client 3 is not one of 0\.\.2"),
    ],
)
def test_what_a_run_does_not_have_is_named(finished, ask, message):
    with pytest.raises(ConfigError, match=message):
        ask(finished)


def test_scores_and_models_by_the_clients_names(finished, data):
    table = finished.table("local")
    assert table.columns.tolist()[:4] == ["client", "samples", "loss", "accuracy"]
    assert tuple(table.client) == data.clients
    np.testing.assert_array_equal(table.accuracy, finished.scores("local").values["accuracy"])
    np.testing.assert_array_equal(table.samples, data.test.sizes)
    few = idiolect.run(data, "mlr", "local", rounds=1, eval_clients=2)
    assert few.table("local").client.tolist() == [data.clients[i] for i in few.evaluator.ids]
    models = finished.models("local")
    assert tuple(models) == data.clients
    pairs = zip(jax.tree.leaves(models["c1"]), jax.tree.leaves(finished.client_model("local", 1)), strict=True)
    assert all((mine == its).all() for mine, its in pairs)
    with pytest.raises(ConfigError, match="did you mean 'local'"):
        finished.models("lokal")


def test_a_run_and_its_data_are_shown_in_one_line(finished, data):
    assert repr(data) == (
        "<FederatedData arrays: 3 clients, 78 train, 12 validation, 30 test samples; 4 features, 2 classes>"
    )
    assert repr(data.train) == "<Split: 78 samples of 3 clients, 4 features>"
    pooled = finished.summary("local").pooled
    assert repr(finished) == f"<Run: local on arrays, 12 rounds, test accuracy local {pooled:.4f}>"


def test_without_test_samples_a_run_trains_and_scores_what_there_is(data):
    nothing = Split(data.test.x[:0], data.test.y[:0], np.zeros(4, np.int64))
    run = idiolect.run(replace(data, test=nothing), "mlr", "local", rounds=1)
    assert np.isfinite(run.scores("local", "train").loss).all()
    with pytest.raises(ConfigError, match="unknown model/split 'local/test'"):
        run.scores("local")
    assert repr(run) == "<Run: local on arrays, 1 rounds>"


def test_an_own_model_runs_like_the_zoos(data, finished):
    model = idiolect.models.build("mlr", (4,), 2, "classification", model_key(0))
    own = idiolect.run(data, model, idiolect.Local(rate=0.5, batch_size=0), rounds=12, eval_every=12)
    np.testing.assert_allclose(own.scores("local").loss, finished.scores("local").loss, rtol=1e-6)


@pytest.mark.second
def test_compare_in_memory_and_on_disk_agree(data, tmp_path):
    asked = {"rounds": 4, "eval_every": 2, "quiet": True}
    memory = idiolect.compare(data, "mlr", METHODS, **asked)
    disk = idiolect.compare(data, "mlr", METHODS, out=tmp_path / "out", **asked)
    assert memory.folder is None
    assert (tmp_path / "out" / "report.md").is_file()
    assert [(line.method, line.model) for line in memory.lines] == [("fedavg", "global"), ("local", "local")]
    for a, b in zip(memory.lines, disk.lines, strict=True):
        assert a.pooled.mean == b.pooled.mean


def test_settings_out_of_range_are_one_line(data):
    with pytest.raises(ConfigError, match="rounds = 0"):
        idiolect.run(data, "mlr", idiolect.FedAvg(), rounds=0)
    rng = np.random.default_rng(1)
    arrays = {f"c{i}": (rng.normal(size=(9, 2)), rng.integers(0, 2, 9)) for i in range(2)}
    with pytest.raises(ConfigError, match="no validation split"):
        idiolect.compare(from_arrays(arrays, validation=0.0), "mlr", METHODS, select="best-validation", quiet=True)


def test_a_diverging_run_names_round_and_client(data):
    with pytest.raises(DivergedError, match="diverged"):
        idiolect.run(data, {"name": "mlr", "l2": 10.0}, idiolect.FedAvg(rate=1e30, batch_size=4), rounds=5)


@pytest.mark.second
def test_the_models_of_each_modality_are_compared_kept_and_loaded(tmp_path):
    """mmFL's models depend on the data and the model: the table, the figures and the files have them all."""
    data = data_of((("acc",), ("text",), ("acc", "text")), sizes=(5, 4, 6))
    method = {"name": "mmfl", "rates": 0.1, "local_steps": 1, "batch_size": 4}
    published = {"published": [{"model": "acc", "value": 50.0}]}
    spec = MODEL | FLAT
    found = idiolect.compare(data, spec, [method | published], rounds=1, out=tmp_path, quiet=True)
    names = ("global", "personal", "acc", "personal acc", "personal text", "text")
    assert tuple(line.model for line in found.lines) == names
    assert [line.published is not None for line in found.lines] == [name == "acc" for name in names]
    store, row = found.results.store, found.results.started()[0]
    for name in names:
        scores = store.scores(row.id, 1, name, "test")
        for index, client in enumerate(data.clients):
            file = f"{file_name(name)}/{client}" if name.startswith("personal") else name  # else shared
            model, (x, y) = (
                idiolect.load_model(store.models_folder(row) / f"{file}.safetensors"),
                data.test.client(index),
            )
            usable = jax.vmap(model.module.usable)(jnp.asarray(x)) > 0
            right = (np.argmax(jax.vmap(model)(jnp.asarray(x)), axis=1) == y)[np.asarray(usable)]
            assert scores.count[index] == len(right)
            said = model.predict(x)[np.asarray(usable)] == np.array(data.classes)[y[np.asarray(usable)]]
            assert said.tolist() == right.tolist()
            assert not len(right) or right.mean() == pytest.approx(scores.values["accuracy"][index], abs=1e-6)
    with pytest.raises(ConfigError, match="unknown model of mmfl 'gyro'"):
        idiolect.compare(data, spec, [method | {"published": [{"model": "gyro", "value": 1.0}]}], quiet=True)


def test_rounds_and_rates_by_themselves_end_with_the_least_validation_loss():
    """One rule for all clients and few rows: more rounds overfit, so the best round is not the last one."""
    rng = np.random.default_rng(0)
    parts = {name: (rng.normal(size=(30, 4)), rng.normal(size=30)) for name in ("a", "b")}  # labels are noise
    data = from_arrays(parts, task="regression", validation=0.3)
    found = idiolect.run(data, algorithm="fedavg")
    losses = [found_loss(one) for one in found.history if one.round]
    assert losses[-1] == min(losses)
    assert int(found.state.round) == found.history[-1].round < 200
    method = found.evaluator.simulation.algorithm
    assert (method.batch_size, method.rate < 1.0) == (0, True)
    rounds = found.history[-1].round
    same = idiolect.run(data, "linear", "fedavg", rounds=rounds, rate="auto")
    np.testing.assert_allclose(found.scores("global").loss, same.scores("global").loss, rtol=1e-5)
    assert idiolect.run(data, "linear", "fedavg", rounds=1).evaluator.simulation.algorithm == idiolect.FedAvg()


def found_loss(evaluated):
    return next(summary.loss for scores, summary in evaluated.results if scores.split == "validation")


def test_rounds_by_themselves_need_validation_rows_and_memory(data, tmp_path):
    bare = from_arrays({"a": (np.zeros((9, 1)), np.arange(9) % 2)}, validation=0.0)
    with pytest.raises(ConfigError, match=r"^rounds = 'auto' needs validation rows; give rounds a number"):
        idiolect.run(bare, "mlr", "fedavg", rounds="auto")
    with pytest.raises(ConfigError, match=r"^rounds = 'auto' keeps private states in memory; give rounds a number"):
        idiolect.run(data, "mlr", "local", rounds="auto", private=tmp_path / "states")


@pytest.mark.second
def test_a_method_with_a_setup_is_not_stopped_in_it(data):
    """Without a linear part, boosting's loss is flat for six rounds, until the first tree is grown."""
    few = idiolect.BoostedIntercept(linear=False, trees=2, leaves=3, bins=8, min_rows=4, client_splits=False)
    found = idiolect.run(data, "mlr", few, rounds="auto", splits="train")
    assert found.state.shared.model.done == 2
