import json
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from idiolect.core.errors import ConfigError, StoreError
from idiolect.data.modalities import Modalities
from idiolect.models.files import load_module, read_header, save_model
from idiolect.models.multimodal import branches
from idiolect.models.registry import build, complete_spec

KEY = jax.random.key(0)
DATA = {"feature_shape": (12, 12), "num_outputs": 3, "task": "classification"}
SPECS = ["mlr", {"name": "mlp", "hidden": [5, 4], "activation": "tanh", "l2": 0.1}]
SPECS += [{"name": "cnn", "channels": [2, 3], "kernel": 3, "dense": 4, "padding": "SAME"}]


def made(spec):
    return build(spec, *DATA.values(), KEY)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "client.model"
    save_model(path, made("mlr"), spec="mlr", **DATA)
    return path


@pytest.mark.parametrize("spec", SPECS)
def test_a_zoo_model_loads_in_one_line_bit_for_bit(tmp_path, spec):
    path = tmp_path / "client 7.model"
    model = made(spec)
    save_model(str(path), model, spec=spec, **DATA, extra={"classes": ["a", "b", "ü"]})
    loaded = load_module(path)
    assert eqx.tree_equal(loaded, model)
    x = jax.random.normal(KEY, (12, 12))
    np.testing.assert_array_equal(loaded(x), model(x))
    header = read_header(path)
    assert header["spec"] == complete_spec(spec)
    assert header["classes"] == ["a", "b", "ü"]
    assert (tuple(header["feature_shape"]), header["num_outputs"], header["task"]) == tuple(DATA.values())
    assert [p.name for p in tmp_path.iterdir()] == ["client 7.model"]


def test_a_model_of_several_modalities_loads_whole_and_branch_by_branch(tmp_path):
    layout = Modalities(("acc", "text"), ((8, 3), (5,)))
    spec = {"name": "multimodal", "channels": [2], "features": 3, "fusion": "concat"}
    shapes = {"feature_shape": (layout.width,), "num_outputs": 3, "task": "classification"}
    model = build(spec, *shapes.values(), KEY, layout)
    x = jnp.ones(layout.width)
    for index, part in enumerate((model, *branches(model).values())):
        path = tmp_path / f"{index}.model"
        save_model(path, part, spec=spec, **shapes, modalities=layout)
        loaded = load_module(path)
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
    loaded = load_module(
        tmp_path / "m", like=Scaled({"a": jnp.zeros(3, int), "b": model.parts["b"]}, 0.0, 0, np.ones(4))
    )
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
        load_module(path)
    assert eqx.tree_equal(load_module(path, like=eqx.nn.MLP(4, 2, 3, 1, key=jax.random.key(5))), model)
    for other in (eqx.nn.MLP(4, 2, 7, 1, key=KEY), eqx.nn.MLP(4, 2, 3, 2, key=KEY)):
        with pytest.raises(StoreError, match="does not fit the structure of MLP"):
            load_module(path, like=other)
    with pytest.raises(StoreError, match="more arrays than MLP has"):
        load_module(path, like=eqx.tree_at(lambda m: m.layers[1], model, None))


def test_numpy_arrays_are_saved_as_well(tmp_path):
    model = made("mlr")
    save_model(tmp_path / "m", jax.tree.map(np.asarray, model), spec="mlr", **DATA)
    assert eqx.tree_equal(load_module(tmp_path / "m"), model)


def test_every_truncation_and_every_damage_is_one_clear_line(saved):
    whole = saved.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for length in (0, 5, 10, header - 1, header, header + 1, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"client\.model is (truncated or damaged|not an idiolect model)"):
            load_module(saved)
    for place in (*range(0, header, 7), header, header + 5, len(whole) - 1):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StoreError, match=r"client\.model") as caught:
            load_module(saved)
        assert "\n" not in str(caught.value)
    saved.write_bytes(whole + b"more")
    with pytest.raises(StoreError, match="is truncated or damaged"):
        load_module(saved)
    saved.write_bytes(whole)
    load_module(saved)


@pytest.mark.parametrize("change", ["values", "shape", "type", "name", "metadata", "hash"])
def test_a_change_that_the_format_allows_is_damage(saved, change):
    with safe_open(saved, framework="np") as opened:
        metadata = opened.metadata()
    tensors = load_file(saved)
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
    save_file(tensors, saved, metadata)
    with pytest.raises(StoreError, match="is damaged: its content does not match its hash"):
        load_module(saved)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 50, b"[1, 2]\n", b'{"format": "x"}\n', b"a,b\n1,2\n"])
def test_foreign_files_are_recognised(tmp_path, content):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(StoreError, match=r"table\.csv is not an idiolect model file"):
        load_module(tmp_path / "table.csv")


def test_safetensors_of_others_are_recognised(tmp_path):
    for metadata in (None, {"format": "pt"}):
        save_file({"linear.weight": np.ones(2)}, tmp_path / "theirs.safetensors", metadata)
        with pytest.raises(StoreError, match=r"theirs\.safetensors is not an idiolect model file"):
            load_module(tmp_path / "theirs.safetensors")


def test_a_later_version_and_a_missing_file_are_named(saved, tmp_path):
    saved.write_bytes(saved.read_bytes().replace(b'"version": "1"', b'"version": "2"'))
    with pytest.raises(StoreError, match="format version 2; this version reads 1"):
        load_module(saved)
    with pytest.raises(StoreError, match=r"cannot read .*absent.*No such file"):
        load_module(tmp_path / "absent")
    with pytest.raises(StoreError, match="cannot read"):
        load_module(tmp_path)


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
