import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from safetensors import safe_open
from safetensors.numpy import load_file

from idiolect import load_model
from idiolect.core.errors import StoreError
from idiolect.models import build
from idiolect.models.files import read_header
from idiolect.study.model_files import save_client_models
from tests.federations import federation, labelled

CLIENTS = ("north 1", "north/1", "North_1", "..", "east")
SPEC = {"name": "mlr"}


@pytest.fixture
def data():
    split = labelled((3,) * 5, np.random.default_rng(0))
    return federation(split, task="classification", classes=("a", "b", "c"), clients=CLIENTS)


@pytest.fixture
def model():
    return build(SPEC, (3,), 3, "classification", random.key(0))


def save(folder: Path, name: str, data, model, spec=SPEC):
    params = jax.tree.map(lambda a: jnp.stack([a + i for i in range(5)]), model)
    save_client_models(
        folder, name, params, model, data=data, clients=data.clients, spec=spec, extra={"run": "r", "round": 4}
    )
    return params


def test_every_client_has_its_own_file_whatever_its_name(tmp_path, data, model):
    params = save(tmp_path / "m", "personal", data, model)
    files = sorted((tmp_path / "m" / "personal").iterdir())
    found = {read_header(file)["client"]: load_model(file) for file in files}
    assert set(found) == set(CLIENTS)
    assert len(files) == 5
    for index, client in enumerate(CLIENTS):
        assert np.array_equal(found[client].linear.weight, params.linear.weight[index])
    assert (tmp_path / "m" / "personal" / "east.safetensors").is_file()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]  # '..' went nowhere


def test_the_global_model_is_one_file(tmp_path, data, model):
    save(tmp_path, "global", data, model)
    assert [f.name for f in tmp_path.iterdir()] == ["global.safetensors"]
    header = read_header(tmp_path / "global.safetensors")
    told = {"run": "r", "round": 4, "model": "global", "classes": ["a", "b", "c"], "task": "classification"}
    assert {key: header[key] for key in told} == told
    assert "client" not in header
    assert np.array_equal(load_model(tmp_path / "global.safetensors").linear.weight, model.linear.weight)


def test_other_tools_read_a_client_model(tmp_path, data, model):
    params = save(tmp_path, "personal", data, model)
    file = tmp_path / "personal" / "east.safetensors"
    tensors = load_file(file)
    assert set(tensors) == {"linear.weight", "linear.bias"}
    np.testing.assert_array_equal(tensors["linear.weight"], params.linear.weight[4])
    with safe_open(file, framework="np") as opened:
        metadata = {key: json.loads(text) for key, text in opened.metadata().items()}
    told = {"client": "east", "run": "r", "round": 4, "model": "personal", "classes": ["a", "b", "c"]}
    told |= {"task": "classification", "feature_shape": [3], "num_outputs": 3, "modalities": None}
    assert {key: metadata[key] for key in told} == told
    assert metadata["spec"]["name"] == "mlr"


def test_own_modules_load_with_like(tmp_path, data, model):
    save(tmp_path, "personal", data, model, spec=None)
    file = tmp_path / "personal" / "east.safetensors"
    with pytest.raises(StoreError, match="pass like="):
        load_model(file)
    assert np.array_equal(load_model(file, like=model).linear.weight, model.linear.weight + 4)


def test_a_folder_that_cannot_be(tmp_path, data, model):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write to"):
        save(tmp_path / "file", "personal", data, model)
