"""What a model file says about itself: a forged, contradictory or damaged one is refused in one line."""

import copy
import json
import subprocess
import sys
import warnings
from contextlib import suppress
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save, save_file

from idiolect.api.predict import predict
from idiolect.core.errors import ConfigError, DataError, IdiolectError, StoreError
from idiolect.data import from_table
from idiolect.data.modalities import Modalities
from idiolect.models.client_model import load_model
from idiolect.models.files import _digest, read_header, read_model, save_model
from idiolect.models.multimodal import branches
from idiolect.models.registry import build, complete_spec

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
@pytest.mark.parametrize("content", ["{oops", "", DEEP, "[" * 900 + "]" * 900, "1" * 5000])
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


@pytest.mark.second
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


KEY = jax.random.key(0)
DATA = {"feature_shape": (12, 12), "num_outputs": 3, "task": "classification"}
SPECS = ["mlr", {"name": "mlp", "hidden": [5, 4], "activation": "tanh", "l2": 0.1}]
SPECS += [{"name": "cnn", "channels": [2, 3], "kernel": 3, "dense": 4, "padding": "SAME"}]


def made(spec):
    return build(spec, *DATA.values(), KEY)


@pytest.fixture
def saved_files(tmp_path):
    path = tmp_path / "client.model"
    save_model(path, made("mlr"), spec="mlr", **DATA)
    return path


@pytest.mark.parametrize("spec", SPECS)
def test_a_zoo_model_loads_in_one_line_bit_for_bit(tmp_path, spec):
    path = tmp_path / "client 7.model"
    model = made(spec)
    save_model(str(path), model, spec=spec, **DATA, extra={"classes": ["a", "b", "ü"]})
    loaded = read_model(path)[0]
    assert eqx.tree_equal(loaded, model)
    x = jax.random.normal(KEY, (12, 12))
    np.testing.assert_array_equal(loaded(x), model(x))
    header = read_header(path)
    assert header["spec"] == complete_spec(spec)
    assert header["classes"] == ["a", "b", "ü"]
    assert (tuple(header["feature_shape"]), header["num_outputs"], header["task"]) == tuple(DATA.values())
    assert [p.name for p in tmp_path.iterdir()] == ["client 7.model"]


@pytest.mark.second
def test_a_model_of_several_modalities_loads_whole_and_branch_by_branch(tmp_path):
    layout = Modalities(("acc", "text"), ((8, 3), (5,)))
    spec = {"name": "multimodal", "channels": [2], "features": 3, "fusion": "concat"}
    shapes = {"feature_shape": (layout.width,), "num_outputs": 3, "task": "classification"}
    model = build(spec, *shapes.values(), KEY, layout)
    x = jnp.ones(layout.width)
    for index, part in enumerate((model, *branches(model).values())):
        path = tmp_path / f"{index}.model"
        save_model(path, part, spec=spec, **shapes, modalities=layout)
        loaded = read_model(path)[0]
        assert eqx.tree_equal(loaded, part)
        np.testing.assert_array_equal(loaded(x), part(x))
    with pytest.raises(ConfigError, match="is not what model multimodal builds"):
        save_model(
            path, build(spec | {"features": 4}, *shapes.values(), KEY, layout), spec=spec, **shapes, modalities=layout
        )


def test_other_tools_read_named_tensors_and_metadata(tmp_path):
    path, model = tmp_path / "m.safetensors", made({"name": "mlp", "hidden": [5]})
    save_model(path, model, spec={"name": "mlp", "hidden": [5]}, **DATA, extra={"client": "St. Mary", "round": 7})
    tensors = load_file(path)
    assert list(tensors) == ["layers.0.bias", "layers.0.weight", "layers.1.bias", "layers.1.weight"]
    np.testing.assert_array_equal(tensors["layers.1.weight"], model.layers[1].weight)
    with safe_open(path, framework="np") as opened:
        metadata = opened.metadata()
    assert metadata["client"] == '"St. Mary"'
    assert metadata["feature_shape"] == "[12, 12]"
    assert json.loads(metadata["spec"])["hidden"] == [5]
    assert (json.loads(metadata["format"]), json.loads(metadata["version"])) == ("idiolect-model", 1)


@pytest.mark.second
def test_the_same_model_gives_the_same_bytes(tmp_path):
    script = (
        "import jax, sys; from idiolect.models import build, save_model\n"
        "model = build('mlr', (4,), 3, 'classification', jax.random.key(0))\n"
        "save_model(sys.argv[1], model, spec='mlr', feature_shape=(4,), num_outputs=3, task='classification')"
    )
    for name in "ab":  # metadata are in an order of chance, other in each process
        subprocess.run([sys.executable, "-c", script, str(tmp_path / name)], check=True)
    content = (tmp_path / "a").read_bytes()
    assert content == (tmp_path / "b").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert (8 + length) % 8 == 0
    names = list(json.loads(content[8 : 8 + length])["__metadata__"])
    assert names == sorted(names)


def test_numbers_and_numpy_arrays_of_an_own_module_stay_what_they_are(tmp_path):
    class Scaled(eqx.Module):
        parts: dict
        factor: float
        steps: int
        table: np.ndarray
        activation: object = jax.nn.relu

    model = Scaled({"a": jnp.arange(3), "b": (jnp.ones(2, jnp.bfloat16),)}, 0.1, 3, np.arange(4.0))
    shapes = {"feature_shape": (4,), "num_outputs": 2, "task": "classification"}
    save_model(tmp_path / "m", model, **shapes)
    loaded = read_model(
        tmp_path / "m", like=Scaled({"a": jnp.zeros(3, int), "b": model.parts["b"]}, 0.0, 0, np.ones(4))
    )[0]
    assert eqx.tree_equal(loaded, model)
    assert (type(loaded.factor), type(loaded.steps), type(loaded.table)) == (float, int, np.ndarray)
    for other in (random_key := {"a": jax.random.key(1)}, {"a.b": 1.0, "a": {"b": 2.0}}, {"a": np.array([model])}):
        reason = "cannot hold" if other is random_key or "a.b" not in other else "have one name"
        with pytest.raises(ConfigError, match=reason):
            save_model(tmp_path / "n", Scaled(other, 0.1, 3, np.ones(2)), **shapes)
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_metadata_of_ones_own_do_not_replace_the_formats(tmp_path):
    for key in ("spec", "sha256", "version"):
        with pytest.raises(ConfigError, match=f"'{key}' has its own meaning"):
            save_model(tmp_path / "m", made("mlr"), spec="mlr", **DATA, extra={key: "x"})
    assert list(tmp_path.iterdir()) == []


def test_a_users_own_module_loads_with_like(tmp_path):
    path = tmp_path / "own.model"
    model = eqx.nn.MLP(4, 2, 3, 1, key=KEY)
    save_model(path, model, feature_shape=(4,), num_outputs=2, task="classification")
    with pytest.raises(StoreError, match="own module; pass like="):
        read_model(path)
    assert eqx.tree_equal(read_model(path, like=eqx.nn.MLP(4, 2, 3, 1, key=jax.random.key(5)))[0], model)
    for other in (eqx.nn.MLP(4, 2, 7, 1, key=KEY), eqx.nn.MLP(4, 2, 3, 2, key=KEY)):
        with pytest.raises(StoreError, match="does not fit the structure of MLP"):
            read_model(path, like=other)
    with pytest.raises(StoreError, match="more arrays than MLP has"):
        read_model(path, like=eqx.tree_at(lambda m: m.layers[1], model, None))


def test_numpy_arrays_are_saved_as_well(tmp_path):
    model = made("mlr")
    save_model(tmp_path / "m", jax.tree.map(np.asarray, model), spec="mlr", **DATA)
    assert eqx.tree_equal(read_model(tmp_path / "m")[0], model)


def test_every_truncation_and_every_damage_is_one_clear_line(saved_files):
    whole = saved_files.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for length in (0, 5, 10, header - 1, header, header + 1, len(whole) // 2, len(whole) - 1):
        saved_files.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"client\.model is (truncated or damaged|not an idiolect model)"):
            read_model(saved_files)
    for place in (*range(0, header, 7), header, header + 5, len(whole) - 1):
        saved_files.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StoreError, match=r"client\.model") as caught:
            read_model(saved_files)
        assert "\n" not in str(caught.value)
    saved_files.write_bytes(whole + b"more")
    with pytest.raises(StoreError, match="is truncated or damaged"):
        read_model(saved_files)
    saved_files.write_bytes(whole)
    read_model(saved_files)


@pytest.mark.parametrize("change", ["values", "shape", "type", "name", "metadata", "hash"])
def test_a_change_that_the_format_allows_is_damage(saved_files, change):
    with safe_open(saved_files, framework="np") as opened:
        metadata = opened.metadata()
    tensors = load_file(saved_files)
    if change == "values":
        tensors["linear.bias"][0] += 1
    elif change == "shape":
        tensors["linear.weight"] = tensors["linear.weight"].T.copy()
    elif change == "type":
        tensors["linear.bias"] = tensors["linear.bias"].view("int32")
    elif change == "name":
        tensors["linear.biases"] = tensors.pop("linear.bias")
    elif change == "metadata":
        metadata["task"] = '"regression"'
    else:
        del metadata["sha256"]
    save_file(tensors, saved_files, metadata)
    with pytest.raises(StoreError, match="is damaged: its content does not match its hash"):
        read_model(saved_files)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 50, b"[1, 2]\n", b'{"format": "x"}\n', b"a,b\n1,2\n"])
def test_foreign_files_are_recognised(tmp_path, content):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(StoreError, match=r"table\.csv is not an idiolect model file"):
        read_model(tmp_path / "table.csv")


def test_safetensors_of_others_are_recognised(tmp_path):
    for metadata in (None, {"format": "pt"}):
        save_file({"linear.weight": np.ones(2)}, tmp_path / "theirs.safetensors", metadata)
        with pytest.raises(StoreError, match=r"theirs\.safetensors is not an idiolect model file"):
            read_model(tmp_path / "theirs.safetensors")


def test_a_later_version_and_a_missing_file_are_named(saved_files, tmp_path):
    saved_files.write_bytes(saved_files.read_bytes().replace(b'"version": "1"', b'"version": "2"'))
    with pytest.raises(StoreError, match="format version 2; this version reads 1"):
        read_model(saved_files)
    with pytest.raises(StoreError, match=r"cannot read .*absent.*No such file"):
        read_model(tmp_path / "absent")
    with pytest.raises(StoreError, match="cannot read"):
        read_model(tmp_path)


def test_a_model_that_its_spec_does_not_build_is_refused_and_nothing_is_written(tmp_path):
    wrong = [
        made("mlp"),
        build("mlr", (12, 11), 3, "classification", KEY),
        jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), made("mlr")),
        eqx.tree_at(lambda m: m.linear.bias, made("mlr"), replace_fn=lambda b: b.astype("float16")),
    ]
    for model in wrong:
        with pytest.raises(ConfigError, match="is not what model mlr builds"):
            save_model(tmp_path / "m", model, spec="mlr", **DATA)
    with pytest.raises(ConfigError, match="cannot be written as JSON"):
        save_model(tmp_path / "m", made("mlr"), spec="mlr", **DATA, extra={"bad": object()})
    assert list(tmp_path.iterdir()) == []
