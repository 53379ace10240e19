"""Scores of model files of each kind at one site, compared with the model's own predictions."""

import jax
import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data import from_table
from idiolect.deploy.hub.query import kind_of
from idiolect.deploy.query import ScoredModel, ScoreStudy
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.score import scored
from idiolect.metrics.base import measure_rows
from idiolect.metrics.registry import METRICS
from idiolect.models import load_model
from idiolect.models.files import read_header, save_model
from tests.deploy.federation import data_of
from tests.deploy.queries import model_of, table_of
from tests.models.test_forest import forest_of


def query_of(path, metric):
    model = ScoredModel(name="m", sha256="0" * 64, bytes=9, numbers=2, model=None)
    kind = kind_of(read_header(path), path).to_dict()
    return ScoreStudy(id="q-00000000", sites=("a",), model=model, kind=kind, metric=metric)


def one_client(folder, table):
    """The rows of the table as one client's, encoded as in the model's file."""
    table.assign(client="a").to_csv(folder / "one.csv", index=False)
    return from_table(folder / "one.csv", missing="mean")


@pytest.mark.parametrize(("label", "metric"), [("words", "accuracy,log-loss"), ("amount", "mae,rmse")])
def test_the_sums_are_those_of_the_model(tmp_path, label, metric):
    table = table_of(label=label).assign(client="a")
    path = model_of(tmp_path / "m.safetensors", table)
    data = one_client(tmp_path, table)
    answer = scored(query_of(path, metric), path.read_bytes(), data, Floors.none())
    found = answer.header["scores"]["model"]["test"]
    loaded, own = load_model(path), table[table.split == "test"]
    metrics = [METRICS[name] for name in metric.split(",")]
    expected = measure_rows(metrics, loaded.outputs(own), loaded.schema.encode_labels(own))
    assert found["count"] == len(own)
    for name, value in expected.items():
        top, bottom = found["values"][name]
        assert top / bottom == pytest.approx(value, rel=1e-5)


def test_trees_of_arrays_are_scored(tmp_path):
    data = data_of()
    own = data.select(lambda index: index == 0)
    shape = {"feature_shape": (3,), "num_outputs": 2, "task": "classification"}
    path = tmp_path / "trees.safetensors"
    save_model(path, forest_of("classification", 2), **shape, extra={"classes": list(data.classes)})
    answer = scored(query_of(path, "accuracy"), path.read_bytes(), own, Floors.none())
    test = own.stored("test")
    right = (load_model(path).outputs(test.x).argmax(axis=1) == test.y).sum()
    assert answer.header["scores"]["model"]["test"]["values"]["accuracy"] == [right, len(test.y)]


def test_a_model_of_other_data_or_none_is_refused(tmp_path):
    table = table_of().assign(client="a")
    path = model_of(tmp_path / "m.safetensors", table)
    data = one_client(tmp_path, table.drop(columns="age"))
    query = query_of(path, "accuracy")
    with pytest.raises(DataError, match="takes other features"):
        scored(query, path.read_bytes(), data, Floors.none())
    with pytest.raises(StoreError, match="the hub's model is not an idiolect model file"):
        scored(query, b"x" * 30, data, Floors.none())
    with pytest.raises(StoreError, match=r"the hub's model is (damaged|truncated)"):
        scored(query, path.read_bytes()[:-1] + b"\1", data, Floors.none())


def test_classes_of_a_client_of_its_own_are_no_model_for_others(tmp_path):
    module = jax.tree.map(np.asarray, load_model(model_of(tmp_path / "m.safetensors", table_of())).module)
    header = read_header(tmp_path / "m.safetensors")
    save_model(
        tmp_path / "own.safetensors",
        module,
        spec={"name": "mlr"},
        feature_shape=header["feature_shape"],
        num_outputs=2,
        task="classification",
        extra={"classes": ["only"]},
    )
    with pytest.raises(ConfigError, match="classes of its own client"):
        kind_of(read_header(tmp_path / "own.safetensors"), "own.safetensors")
    assert pd.Series(kind_of(header, "m").classes).tolist() == ["ill", "well"]
