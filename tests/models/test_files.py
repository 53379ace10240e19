import errno
import json
import os
import stat

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.core.files import atomic_write
from idiolect.data.modalities import Modalities
from idiolect.models.files import load_model, read_header, save_model
from idiolect.models.multimodal import branches
from idiolect.models.registry import build, resolve

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
    loaded = load_model(path)
    assert eqx.tree_equal(loaded, model)
    x = jax.random.normal(KEY, (12, 12))
    np.testing.assert_array_equal(loaded(x), model(x))
    header = read_header(path)
    assert header["spec"] == resolve(spec)
    assert header["extra"] == {"classes": ["a", "b", "ü"]}
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
        loaded = load_model(path)
        assert eqx.tree_equal(loaded, part)
        np.testing.assert_array_equal(loaded(x), part(x))
    with pytest.raises(ConfigError, match="is not what model multimodal builds"):
        save_model(
            path, build(spec | {"features": 4}, *shapes.values(), KEY, layout), spec=spec, **shapes, modalities=layout
        )


def test_the_header_is_one_line_of_json_that_any_program_reads(saved):
    header = json.loads(saved.read_bytes().split(b"\n", 1)[0])
    assert header["format"] == "idiolect-model"
    assert header["version"] == 1


def test_a_users_own_module_loads_with_like(tmp_path):
    path = tmp_path / "own.model"
    model = eqx.nn.MLP(4, 2, 3, 1, key=KEY)
    save_model(path, model, feature_shape=(4,), num_outputs=2, task="classification")
    with pytest.raises(StoreError, match="own module; pass like="):
        load_model(path)
    assert eqx.tree_equal(load_model(path, like=eqx.nn.MLP(4, 2, 3, 1, key=jax.random.key(5))), model)
    for other in (eqx.nn.MLP(4, 2, 7, 1, key=KEY), eqx.nn.MLP(4, 2, 3, 2, key=KEY)):
        with pytest.raises(StoreError, match="does not fit the structure of MLP"):
            load_model(path, like=other)
    with pytest.raises(StoreError, match="more arrays than MLP has"):
        load_model(path, like=eqx.tree_at(lambda m: m.layers[1], model, None))


def test_numpy_arrays_are_saved_as_well(tmp_path):
    model = made("mlr")
    save_model(tmp_path / "m", jax.tree.map(np.asarray, model), spec="mlr", **DATA)
    assert eqx.tree_equal(load_model(tmp_path / "m"), model)


def test_every_truncation_and_every_damage_is_one_clear_line(saved):
    whole = saved.read_bytes()
    header = whole.index(b"\n") + 1
    for length in (0, 10, header - 1, header, header + 1, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:length])
        with pytest.raises(StoreError, match=r"client\.model (is truncated|is not an idiolect model)"):
            load_model(saved)
    for place in (30, header // 2, header + 5, len(whole) - 1):
        saved.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(StoreError, match=r"client\.model") as caught:
            load_model(saved)
        assert "\n" not in str(caught.value)
    saved.write_bytes(whole + b"more")
    with pytest.raises(StoreError, match="is damaged"):
        load_model(saved)
    saved.write_bytes(whole)
    load_model(saved)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 50, b"[1, 2]\n", b'{"format": "x"}\n', b"a,b\n1,2\n"])
def test_foreign_files_are_recognised(tmp_path, content):
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(StoreError, match=r"table\.csv is not an idiolect model file"):
        load_model(tmp_path / "table.csv")


def test_a_later_version_and_a_missing_file_are_named(saved, tmp_path):
    saved.write_bytes(saved.read_bytes().replace(b'"version": 1', b'"version": 2'))
    with pytest.raises(StoreError, match="format version 2; this version reads 1"):
        load_model(saved)
    with pytest.raises(StoreError, match=r"cannot read .*absent.*No such file"):
        load_model(tmp_path / "absent")
    with pytest.raises(StoreError, match="cannot read"):
        load_model(tmp_path)


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


def test_atomic_write_replaces_and_leaves_no_other_file(tmp_path):
    target = tmp_path / "a.bin"
    for content in (b"old", b"new"):
        with atomic_write(target) as file:
            file.write(content)
            assert not target.exists() or target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x"), OSError(errno.EIO, "x", "other")])
def test_atomic_write_keeps_the_old_file_and_passes_other_errors_on(tmp_path, error):
    target = tmp_path / "a.bin"
    target.write_bytes(b"old")

    def half():
        with atomic_write(target) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)):
        half()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("call", "code"), [("fsync", errno.ENOSPC), ("replace", errno.EACCES)])
def test_a_full_disk_or_read_only_folder_is_one_clear_line(tmp_path, monkeypatch, call, code):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, fail)
    message = rf"cannot write .*a\.bin: {os.strerror(code)}"
    with pytest.raises(StoreError, match=message), atomic_write(tmp_path / "a.bin") as file:
        file.write(b"x")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_and_a_folder_in_the_way_are_named(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write .*No such file"), atomic_write(tmp_path / "no" / "a"):
        pytest.fail("there is no file to write to")
    (tmp_path / "b").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*b: "), atomic_write(tmp_path / "b") as file:
        file.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]
