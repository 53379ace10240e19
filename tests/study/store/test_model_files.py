import json
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random
from safetensors import safe_open
from safetensors.numpy import load_file

from idiolect.client.objective import objective_of
from idiolect.client.predictor import Predictor, Shared
from idiolect.core.errors import StoreError
from idiolect.models import build
from idiolect.models.files import read_header, read_model
from idiolect.study.store.model_files import save_client_models, write_index
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


def save(folder: Path, name: str, data, model, spec=SPEC, shared=None):
    params = jax.tree.map(lambda a: jnp.stack([a + i for i in range(5)]), model)
    keep(folder, name, params if shared is None else shared(params), data, model, spec)
    return params


def keep(folder: Path, name: str, models, data, model, spec=SPEC):
    objective, extra = objective_of(model, "classification"), {"run": "r", "round": 4}
    return save_client_models(
        folder, name, models, objective, data=data, clients=data.clients, spec=spec, extra=extra
    )


def test_every_client_has_its_own_file_whatever_its_name(tmp_path, data, model):
    params = save(tmp_path / "m", "personal", data, model)
    files = sorted((tmp_path / "m" / "personal").iterdir())
    found = {read_header(file)["client"]: read_model(file)[0] for file in files}
    assert set(found) == set(CLIENTS)
    assert len(files) == 5
    for index, client in enumerate(CLIENTS):
        assert np.array_equal(found[client].linear.weight, params.linear.weight[index])
    assert (tmp_path / "m" / "personal" / "east.safetensors").is_file()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]  # '..' went nowhere


def test_the_index_says_whose_each_file_is(tmp_path, data, model):
    params = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(data.clients)), eqx.filter(model, eqx.is_inexact_array))
    written = keep(tmp_path, "personal", params, data, model) + keep(tmp_path, "global", Shared(params), data, model)
    write_index(tmp_path, "cell", "ditto", written)
    index = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    assert (index["cell"], index["method"]) == ("cell", "ditto")
    assert [line.get("client") for line in index["files"]] == [*data.clients, None]
    for line in index["files"]:
        header = read_header(tmp_path / line["file"])
        assert header["model"] == line["model"]
        assert header.get("client") == line.get("client")
    assert index["files"][-1] == {"file": "global.safetensors", "model": "global", "clients": "all"}


def test_a_model_that_all_share_is_one_file(tmp_path, data, model):
    save(tmp_path, "global", data, model, shared=Shared)
    assert [f.name for f in tmp_path.iterdir()] == ["global.safetensors"]
    header = read_header(tmp_path / "global.safetensors")
    told = {"run": "r", "round": 4, "model": "global", "classes": ["a", "b", "c"], "task": "classification"}
    assert {key: header[key] for key in told} == told
    assert "client" not in header
    assert np.array_equal(read_model(tmp_path / "global.safetensors")[0].linear.weight, model.linear.weight)


def test_what_a_group_shares_is_one_file_a_group(tmp_path, data, model):
    groups = np.array([7, 2, 7, 7, 2])
    params = save(tmp_path, "cluster", data, model, shared=lambda params: Shared(params, jnp.asarray(groups)))
    assert sorted(p.name for p in tmp_path.rglob("*.safetensors")) == ["group-2.safetensors", "group-7.safetensors"]
    for group, first in ((2, 1), (7, 0)):
        file = tmp_path / "cluster" / f"group-{group}.safetensors"
        header = read_header(file)
        assert header["group"] == group
        assert header["clients"] == [name for name, of in zip(CLIENTS, groups, strict=True) if of == group]
        np.testing.assert_array_equal(read_model(file)[0].linear.weight, params.linear.weight[first])


def test_one_s_own_model_called_global_is_each_client_s(tmp_path, data, model):
    """Who shares a model is its type, not its name."""
    save(tmp_path, "global", data, model)
    assert len(list((tmp_path / "global").iterdir())) == 5
    save(tmp_path, "everyone's", data, model, shared=Shared)
    (file,) = tmp_path.glob("everyone_s-*.safetensors")
    assert read_header(file)["model"] == "everyone's"


@pytest.mark.parametrize("name", ["../../up", "/up", "..", "a/b"])
@pytest.mark.parametrize("shared", [None, Shared], ids=["own", "shared"])
def test_no_model_s_name_leaves_the_folder(tmp_path, data, model, name, shared):
    folder = tmp_path / "deep" / "models"
    save(folder, name, data, model, shared=shared)
    files = list(tmp_path.rglob("*.safetensors"))
    assert len(files) == (1 if shared else 5)
    assert all(folder in file.parents for file in files)
    assert [p.name for p in folder.parent.iterdir()] == ["models"]
    assert len(list(folder.iterdir())) == 1
    assert {read_header(file)["model"] for file in files} == {name}


class Mixture(Predictor):
    """share a(x) + (1 - share) b(x)."""

    a: Any
    b: Any
    share: jax.Array

    def bound(self, module):
        return Mixed(module(self.a), module(self.b), self.share)


class Mixed(eqx.Module):
    a: Any
    b: Any
    share: jax.Array

    def __call__(self, x):
        return self.share * self.a(x) + (1 - self.share) * self.b(x)


def test_a_predictor_is_kept_as_the_model_that_it_is(tmp_path, data, model):
    stack = jax.tree.map(lambda a: jnp.stack([a + i for i in range(5)]), model)
    keep(tmp_path, "mixture", Mixture(stack, stack, jnp.linspace(0, 1, 5)), data, model)
    like, x = Mixed(model, model, jnp.zeros(())), jnp.arange(3.0)
    loaded = read_model(tmp_path / "mixture" / "east.safetensors", like=like)[0]
    np.testing.assert_array_equal(loaded.share, 1.0)
    np.testing.assert_allclose(loaded(x), jax.tree.map(lambda a: a + 4, model)(x), rtol=1e-6)
    with pytest.raises(StoreError, match="pass like="):
        read_model(tmp_path / "mixture" / "east.safetensors")


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
        read_model(file)
    assert np.array_equal(read_model(file, like=model)[0].linear.weight, model.linear.weight + 4)


def test_a_folder_that_cannot_be(tmp_path, data, model):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write to"):
        save(tmp_path / "file", "personal", data, model)
