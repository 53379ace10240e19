"""What a model file says about itself: a forged, contradictory or damaged one is refused in one line."""

import copy
import json
import warnings
from contextlib import suppress
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save

from idiolect.api.predict import predict
from idiolect.core.errors import DataError, IdiolectError, StoreError
from idiolect.data import from_table
from idiolect.models import build
from idiolect.models.client_model import load_model
from idiolect.models.files import _digest, read_header, save_model

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "client": list("aabb") * 10,
        "x": RNG.normal(size=40),
        "word": RNG.choice(list("pqr"), 40),
        "label": RNG.choice(["u", "v"], 40),
    }
)
DEEP = "[" * 100_000 + "]" * 100_000
GONE = object()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(metadata, tensors) of the file of a good model."""
    path, data = tmp_path_factory.mktemp("model") / "good.safetensors", from_table(FRAME)
    shape: Any = {"feature_shape": data.feature_shape, "num_outputs": data.num_outputs, "task": data.task}
    model = build("mlr", *shape.values(), jax.random.key(0))
    save_model(path, model, spec="mlr", **shape, schema=data.schema, extra={"classes": ["u", "v"], "client": "a"})
    return read_header(path), load_file(path)


def forged(path, saved, tensors=None, text=None, **changed):
    """A file whose hash is right although metadata (changed; text: not JSON) or tensors are not what was saved."""
    header, arrays = saved
    header = {key: value for key, value in {**header, **changed}.items() if value is not GONE}
    metadata = {key: json.dumps(value) for key, value in header.items()} | (text or {})
    arrays = arrays if tensors is None else tensors
    metadata["sha256"] = json.dumps(_digest(metadata, arrays))
    path.write_bytes(save(arrays, metadata))
    return path


def test_a_forged_file_that_says_the_truth_predicts(saved, tmp_path):
    path = forged(tmp_path / "m.safetensors", saved)
    assert set(predict(path, FRAME).frame["prediction"]) <= {"u", "v"}


@pytest.mark.parametrize(
    "key", ["spec", "feature_shape", "num_outputs", "task", "absent", "schema", "classes", "client"]
)
@pytest.mark.parametrize("content", ["{oops", "", DEEP, "1" * 5000])
def test_metadata_that_is_not_json_is_named(saved, tmp_path, key, content):
    path = forged(tmp_path / "m.safetensors", saved, text={key: content})
    for read in (load_model, read_header):
        with pytest.raises(StoreError, match=rf"m\.safetensors is damaged: its metadata '{key}' is not JSON"):
            read(path)


@pytest.mark.parametrize("key", ["spec", "feature_shape", "num_outputs", "task"])
def test_metadata_that_are_needed_are_named(saved, tmp_path, key):
    with pytest.raises(StoreError, match=f"does not say what the model is: its metadata {key}: Field required"):
        load_model(forged(tmp_path / "m.safetensors", saved, **{key: GONE}))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        *(({"spec": value}, "its metadata spec: ") for value in (3, "mlr", [], True, 1.5)),
        *(
            ({"feature_shape": value}, "its metadata feature_shape")
            for value in (None, 4, "4", [0], [-1], [3.5], ["4"])
        ),
        *(({"feature_shape": [value]}, "its metadata feature_shape.0: ") for value in (True, 2**40, None, [4])),
        *(({"num_outputs": value}, "its metadata num_outputs: ") for value in (None, "2", 2.5, 0, -1, True, 2**40)),
        *(({"task": value}, "its metadata task: ") for value in (None, 3, "x", [], {}, ["classification"])),
        *(({"modalities": value}, "its metadata modalities") for value in (3, "x", [], {}, [["a"]], True)),
        *(
            ({"modalities": value}, "does not say what the model is")
            for value in ([["a"], 3], [3, [[4]]], [["a"], [4]])
        ),
        *(({"absent": value}, "its metadata absent") for value in (None, 3, "x", {}, [[1]], True)),
        *(({"schema": value}, "its metadata schema: ") for value in (3, "x", [], True)),
        ({"schema": {}}, "no schema of this version: client: field required"),
        *(({"classes": value}, "its metadata classes") for value in (3, "uv", {"u": 1}, [["u"], "v"], [None])),
        *(({"client": value}, "its metadata client") for value in ([], {}, 1.5)),
        ({"clients": "ab"}, "its metadata clients"),
        ({"target": 3}, "its metadata target"),
        ({"target": {"name": "y", "scale": 0.0}}, "how labels were scaled: target scale: "),
        ({"classes": ["u", "v", "w"]}, "contradicts itself: it names 3 classes"),
        ({"classes": ["u", "u"]}, "contradicts itself: it names 2 classes; they must differ"),
        ({"classes": ["u", "w"]}, "contradicts itself: its schema's label has the classes u, v"),
        ({"feature_shape": [3]}, "does not fit the structure"),
        ({"num_outputs": 3}, "does not fit the structure"),
        ({"spec": {"name": "nope"}}, "describes a model this version cannot build: unknown model 'nope'"),
        ({"spec": {"name": ["a"]}}, "cannot build: a model specification needs a name"),
        ({"spec": {"name": "mlr", "l2": 1e400}}, "cannot build: "),
    ],
)
def test_metadata_of_a_wrong_kind_or_that_contradict_are_named(saved, tmp_path, changed, message):
    with pytest.raises(StoreError, match=message) as caught:
        load_model(forged(tmp_path / "m.safetensors", saved, **changed))
    assert "\n" not in str(caught.value)


def with_schema(saved, change):
    """The schema of the file, changed."""
    schema = copy.deepcopy(saved[0]["schema"])
    change(schema)
    return schema


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["columns"].pop(), "its schema has 1 features, its model takes 4"),
        (lambda s: s["columns"].pop(0), "its schema has 3 features, its model takes 4"),
        (lambda s: s["columns"].append({"kind": "number", "name": "z", "fill": 0.0}), "its schema has 5 features"),
        (lambda s: s["label"].update(classes=["u", "v", "w"]), "the classes u, v, w, its model 2 outputs"),
        (
            lambda s: s.update(label={"kind": "target", "name": "label"}),
            "is a classification, its schema's label is not",
        ),
    ],
)
def test_a_schema_that_does_not_fit_the_model_is_refused(saved, tmp_path, change, message):
    path = forged(tmp_path / "m.safetensors", saved, schema=with_schema(saved, change))
    with pytest.raises(StoreError, match=rf"m\.safetensors contradicts itself: .*{message}"):
        load_model(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_refused(saved, tmp_path, value):
    tensors = {name: array.copy() for name, array in saved[1].items()}
    tensors["linear.bias"][1] = value
    path = forged(tmp_path / "m.safetensors", saved, tensors)
    with pytest.raises(StoreError, match=r"cannot predict: 1 of 2 numbers in 'linear.bias' are NaN or infinite"):
        load_model(path)
    assert read_header(path)["task"] == "classification"


def test_outputs_that_overflow_are_refused_by_the_row(saved, tmp_path):
    tensors = {name: np.full_like(array, 3e38) for name, array in saved[1].items()}
    path = forged(tmp_path / "m.safetensors", saved, tensors)
    with pytest.raises(DataError, match=r"output for row \d+ is NaN or infinite \(\d+ such rows in all\)"):
        predict(path, FRAME)


@pytest.mark.parametrize("classes", [GONE, None, []])
def test_classes_that_the_file_does_not_name_are_the_schemas_or_numbers(saved, tmp_path, classes):
    path = tmp_path / "m.safetensors"
    assert load_model(forged(path, saved, classes=classes)).classes == ("u", "v")
    model = load_model(forged(path, saved, classes=classes, schema=None))
    assert model.classes == ("0", "1")
    assert set(model.predict(np.zeros((3, 4)))) <= {"0", "1"}


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), value=VALUES)
def test_any_metadata_load_or_are_refused_in_one_line(saved, tmp_path, data, value):
    header = copy.deepcopy(saved[0])
    key = data.draw(st.sampled_from(sorted(set(header) - {"format", "version"})))
    place = header[key]
    if isinstance(place, dict) and data.draw(st.booleans()):
        inner = data.draw(st.sampled_from(sorted(place)))
        if inner == "columns" and data.draw(st.booleans()):
            place = data.draw(st.sampled_from(place[inner]))
            inner = data.draw(st.sampled_from(sorted(place)))
        place[inner] = value
    else:
        header[key] = value
    path = forged(tmp_path / "m.safetensors", (header, saved[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(IdiolectError):
            predict(path, FRAME)
