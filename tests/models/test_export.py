"""Exported models compute what the model computes, in programs that do not know idiolect."""

import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from idiolect.core.errors import ConfigError
from idiolect.data import Schema, from_table
from idiolect.models import build
from idiolect.models.client_model import ClientModel
from idiolect.models.export import export_model
from tests.tables import wards

TABLE = wards()


@pytest.fixture(scope="module", params=["mlr", "mlp"])
def model(request):
    data = from_table(TABLE, "ward")
    module = build({"name": request.param}, data.feature_shape, 2, data.task, jax.random.key(0))
    return ClientModel(module, data.task, data.feature_shape, data.classes, data.schema, None, {"client": "west"})


def by_numpy(arrays, x):
    """A linear model, or a network of ReLU layers, as a reader of the documentation writes it."""
    names = sorted({name.rpartition(".")[0] for name in arrays})
    for place, name in enumerate(names):
        x = x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]
        x = np.maximum(x, 0) if place < len(names) - 1 else x
    return x


@pytest.mark.parametrize("form", ["safetensors", "numpy"])
def test_plain_arrays_compute_the_same(model, tmp_path, form):
    file, beside = export_model(model, tmp_path / "m", form)
    assert file.name == {"safetensors": "m.safetensors", "numpy": "m.npz"}[form]
    arrays = load_file(file) if form == "safetensors" else dict(np.load(file))
    said = json.loads(beside.read_text())
    x = Schema.from_dict(said["schema"]).encode(TABLE)
    np.testing.assert_allclose(by_numpy(arrays, x), model.outputs(TABLE), rtol=1e-5, atol=1e-5)
    assert said["classes"] == ["ill", "well"]
    assert said["about"] == {"client": "west"}
    assert tuple(said["feature_shape"]) == model.feature_shape


@pytest.mark.second
def test_onnx_computes_the_same_for_any_number_of_rows(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("jax2onnx")
    file, _ = export_model(model, tmp_path / "m.onnx", "onnx")
    session = runtime.InferenceSession(str(file))
    x = model.schema.encode(TABLE)
    for rows in (1, 7, len(x)):
        (outputs,) = session.run(None, {session.get_inputs()[0].name: x[:rows]})
        np.testing.assert_allclose(outputs, model.outputs(x)[:rows], rtol=1e-5, atol=1e-5)


def test_what_cannot_be_exported(model, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="unknown format 'onx'; did you mean 'onnx'"):
        export_model(model, tmp_path / "m", "onx")
    monkeypatch.setitem(__import__("sys").modules, "jax2onnx", None)
    with pytest.raises(ConfigError, match=r"pip install 'idiolect\[onnx\]'"):
        export_model(model, tmp_path / "m", "onnx")
    assert list(tmp_path.iterdir()) == []


def test_the_command(commandline, model, tmp_path, monkeypatch):
    from idiolect import save_model

    monkeypatch.chdir(tmp_path)
    sizes = {"feature_shape": model.feature_shape, "num_outputs": 2, "task": model.task}
    spec = "mlp" if hasattr(model.module, "layers") else "mlr"
    save_model("west.safetensors", model.module, spec=spec, **sizes, schema=model.schema)
    code, out, err = commandline("export", "west.safetensors", "--format", "numpy")
    assert (code, err, out.split()) == (0, "", ["west-exported.npz", "west-exported.json"])
    code, out, err = commandline("export", "west.safetensors", "--format", "numpy", "--json")
    assert (code, err, json.loads(out)) == (0, "", {"files": ["west-exported.npz", "west-exported.json"]})
    code, _, err = commandline("export", "none.safetensors")
    assert (code, err.count("\n")) == (1, 1)
