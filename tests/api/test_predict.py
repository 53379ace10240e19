"""Predictions of raw rows: the files alone give the scores of the report, in the table's words and units."""

import json
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import pytest

import idiolect
from idiolect.api.predict import predict
from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data.encode.labels import number_own_labels
from tests.tables import wards
from tests.tiers import second


@pytest.fixture(scope="module", params=["classification", second("regression")])
def compared(request, tmp_path_factory):
    """(the table, the comparison, the folder of models)."""
    table = wards(regression=request.param == "regression")
    folder = tmp_path_factory.mktemp("compared")
    data = idiolect.data.from_table(table, "ward", title="wards")
    model = "linear" if request.param == "regression" else {"name": "mlp", "hidden": [4]}
    methods = [{"name": "fedavg-ft", "rate": 0.05}, {"name": "local", "rate": 0.05}]
    found = idiolect.compare(data, model, methods, rounds=3, seeds=1, out=folder, quiet=True)
    return table, found, folder / "models" / "wards"


def scored(comparison, method, model):
    return next(one for one in comparison.lines if (one.method, one.model) == (method, model))


@pytest.mark.parametrize(
    ("method", "model", "place"),
    [
        ("local", "local", "local/seed0/local"),
        second("fedavg-ft", "adapted", "fedavg-ft/seed0/adapted"),
        ("fedavg-ft", "global", "fedavg-ft/seed0/global.safetensors"),
    ],
)
def test_the_tables_own_test_rows_have_the_scores_of_the_report(compared, tmp_path, method, model, place):
    table, comparison, models = compared
    test = table[table["split"] == "test"]
    test.to_csv(tmp_path / "new.csv", index=False)
    line = scored(comparison, method, model)
    for rows in (test, tmp_path / "new.csv"):
        found = predict(models / place, rows)
        for name, value in line.metrics.items():
            assert found.scores[name] == pytest.approx(value.mean, rel=1e-6), name
        said, truth = found.frame["prediction"].to_numpy(), test["label"].to_numpy()
        if "mse" in line.metrics:  # scikit-learn's definition, in the table's units
            assert np.mean((said - truth) ** 2) == pytest.approx(line.metrics["mse"].mean, rel=1e-5)
        else:
            assert np.mean(said == truth) == pytest.approx(line.metrics["accuracy"].mean, rel=1e-12)
            shares = found.frame[["P(ill)", "P(well)"]].to_numpy()
            np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
            assert (np.array(["ill", "well"])[shares.argmax(axis=1)] == said).all()


def test_a_row_is_predicted_by_its_clients_file(compared):
    table, _, models = compared
    folder = models / "local" / "seed0" / "local"
    together = predict(folder, table, with_input=True).frame
    assert together["age"].tolist() == table["age"].tolist()
    for ward, rows in table.groupby("ward"):
        model = idiolect.load_model(folder / f"{ward}.safetensors")
        assert model.about["client"] == ward
        assert idiolect.data.Schema.load(folder.parent / "schema.json") == model.schema
        np.testing.assert_array_equal(together.loc[rows.index, "prediction"].to_numpy(), model.predict(rows))


def test_many_rows_are_predicted_as_one_by_one(compared, monkeypatch):
    table, _, models = compared
    model = idiolect.load_model(models / "fedavg-ft" / "seed0" / "global.safetensors")
    whole = model.outputs(table)
    x = model.schema.encode(table)
    np.testing.assert_allclose(whole, [np.asarray(model(row)).reshape(-1) for row in x], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr("idiolect.models.client_model.BATCH", 16)
    np.testing.assert_allclose(model.outputs(table), whole, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.outputs(table.iloc[:0]).shape, (0, whole.shape[1]))


def test_where_the_table_lacks_labels_nothing_is_scored(compared):
    table, _, models = compared
    found = predict(models / "fedavg-ft" / "seed0" / "global.safetensors", table.drop(columns=["label", "ward"]))
    assert found.scores == {}
    assert "client" not in found.frame


def test_what_cannot_be_predicted(compared, tmp_path):
    table, _, models = compared
    folder = models / "local" / "seed0" / "local"
    with pytest.raises(DataError, match="no model of client 'east'; 'idiolect personalize' makes one"):
        predict(folder, table.assign(ward="east"))
    with pytest.raises(DataError, match="no client column 'ward'"):
        predict(folder, table.drop(columns="ward"))
    with pytest.raises(DataError, match="no column 'age'"):
        predict(folder, table.drop(columns="age"))
    with pytest.raises(StoreError, match=r"no folder of clients' models: name one of .*global\.safetensors"):
        predict(models / "fedavg-ft" / "seed0", table)
    with pytest.raises(StoreError, match="holds no model file"):
        predict(tmp_path, table)
    with pytest.raises(StoreError, match="cannot read"):
        predict(tmp_path / "none.safetensors", table)


def test_models_of_arrays_predict_arrays(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    data = idiolect.data.from_arrays({"a": (x, y), "b": (x + 1, y)}, classes=("no", "yes"))
    idiolect.compare(data, "mlr", ["fedavg"], rounds=2, out=tmp_path, quiet=True)
    (file,) = tmp_path.rglob("global.safetensors")
    model = idiolect.load_model(file)
    said = model.predict(x.astype(np.float32))
    assert set(said) <= {"no", "yes"}
    assert (model.labels[model.predict_proba(x).argmax(axis=1)] == said).all()
    with pytest.raises(DataError, match=r"these rows are numbers of shape \(40, 2\); give shape \(rows, 3\)"):
        model.predict(x[:, :2])
    with pytest.raises(DataError, match="trained on arrays and has no schema"):
        model.predict(pd.DataFrame(x))
    with pytest.raises(StoreError, match="trained on arrays, not on a table"):
        predict(file, wards())


def test_a_regression_has_no_probabilities(compared):
    table, _, models = compared
    model = idiolect.load_model(models / "fedavg-ft" / "seed0" / "global.safetensors")
    if model.task == "regression":
        with pytest.raises(ConfigError, match="no probabilities"):
            model.predict_proba(table)
    else:
        assert model.predict_proba(table).shape == (len(table), 2)


def test_clients_with_classes_of_their_own_are_told_in_these(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        name: (rng.normal(size=(30, 4)), np.resize(own, 30)) for name, own in {"a": [0, 2], "b": [1, 2]}.items()
    }
    data = number_own_labels(idiolect.data.from_arrays(arrays, classes=("red", "green", "blue")))
    idiolect.compare(data, "mlr", ["local"], rounds=5, out=tmp_path, quiet=True)
    for index, own in enumerate((("red", "blue"), ("green", "blue"))):
        (file,) = tmp_path.rglob(f"local/{'ab'[index]}.safetensors")
        model = idiolect.load_model(file)
        assert model.classes == own
        x, y = data.test.client(index)
        expected = np.array(own)[np.asarray(jax.vmap(model)(x))[:, :2].argmax(axis=1)]
        assert model.predict(x).tolist() == expected.tolist()
        assert y.max() < len(own)


def test_a_users_own_module(tmp_path):
    table = wards()
    data = idiolect.data.from_table(table, "ward")
    module = eqx.nn.MLP(data.feature_shape[0], 2, 3, 1, key=jax.random.key(0))
    path = tmp_path / "own.safetensors"
    sizes = {"feature_shape": data.feature_shape, "num_outputs": 2, "task": data.task}
    idiolect.save_model(path, module, **sizes, schema=data.schema, extra={"classes": data.classes})
    with pytest.raises(StoreError, match="pass like="):
        idiolect.load_model(path)
    assert set(idiolect.load_model(path, like=module).predict(table)) <= {"ill", "well"}


def test_the_command_writes_what_python_says(compared, commandline, tmp_path: Path, monkeypatch):
    table, _, models = compared
    table.to_csv(tmp_path / "new.csv", index=False)
    file = models / "fedavg-ft" / "seed0" / "global.safetensors"
    code, out, err = commandline("predict", file, tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    assert (code, out) == (0, "")
    assert "on the labels of this table: " in err
    assert f"{len(table)} predictions in" in err
    written, said = pd.read_csv(tmp_path / "p.csv"), predict(file, table).frame
    assert list(written.columns) == list(said.columns)
    if written["prediction"].dtype.kind == "f":
        np.testing.assert_allclose(written["prediction"], said["prediction"], rtol=1e-12)
    else:
        assert written["prediction"].tolist() == said["prediction"].tolist()
    code, out, err = commandline("predict", file, tmp_path / "new.csv")
    assert out == (tmp_path / "p.csv").read_text()
    code, out, err = commandline("predict", file, tmp_path / "new.csv", "--json")
    told = json.loads(out)
    assert (code, err, told["rows"]) == (0, "", len(table))
    said = [row["prediction"] for row in told["predictions"]]
    values = written["prediction"].tolist()
    assert said == (pytest.approx(values) if isinstance(values[0], float) else values)
    monkeypatch.setattr("idiolect.cli.models.LONG", 1)
    code, out, err = commandline("predict", file, tmp_path / "new.csv", "--out", tmp_path / "long.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "long.csv"), written)
    code, out, err = commandline("predict", file, tmp_path / "none.csv", "--out", tmp_path / "q.csv")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert not (tmp_path / "q.csv").exists()
