"""Federated data in a folder: the same bits as in memory, complete or not there at all, refused when damaged."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data import FolderWriter, audit, from_table, hold_out, load_data, mixed_effects, save_data
from idiolect.data.audit import audit_lines
from idiolect.data.files import folder as folder_module
from tests.data.sets.test_table import frame
from tests.rights import loose, umask


def small():
    return from_table(frame(), validation=0.2)


@pytest.mark.parametrize("make", [small, mixed_effects, lambda: from_table(frame().assign(label=np.arange(36) / 7))])
def test_what_is_loaded_is_what_was_saved(tmp_path, make):
    data = make()
    save_data(data, tmp_path / "new" / "data")
    loaded = load_data(tmp_path / "new" / "data", verify=True)
    assert loaded.fingerprint == data.fingerprint
    for name in ("name", "clients", "task", "classes", "notes", "modalities", "schema", "target", "own_classes"):
        assert getattr(loaded, name) == getattr(data, name), name
    assert isinstance(loaded.train.x, np.memmap)
    assert {**loaded.provenance, "audit": None} == {**json.loads(json.dumps(data.provenance)), "audit": None}


def test_clients_that_number_their_own_classes_and_splits_without_rows_are_kept(tmp_path):
    data = small()
    outputs = np.full(3, 2, np.int64)
    own = replace(data, train=replace(data.train, outputs=outputs), own_classes=(("ill", "well"),) * 3)
    none = replace(data.validation, x=data.validation.x[:0], y=data.validation.y[:0], offsets=np.zeros(4, np.int64))
    own = replace(own, validation=replace(none, outputs=outputs), test=replace(data.test, outputs=outputs))
    save_data(own, tmp_path / "data")
    loaded = load_data(tmp_path / "data", verify=True)
    assert loaded.own_classes == own.own_classes
    assert loaded.validation.count == 0
    assert loaded.fingerprint == own.fingerprint


def test_rows_are_written_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_module, "PIECE", 64)
    data = small()
    save_data(data, tmp_path / "data")
    assert load_data(tmp_path / "data", verify=True).fingerprint == data.fingerprint


def test_clients_are_written_one_after_the_other(tmp_path):
    rng = np.random.default_rng(0)
    made = {f"c{i}": (rng.normal(size=(5 + i, 2, 3)), rng.integers(0, 2, 5 + i)) for i in range(3)}
    with FolderWriter(tmp_path / "data", task="classification", classes=("no", "yes"), notes=("drawn",)) as out:
        for name, (x, y) in made.items():
            out.add(name, train=(x[2:], y[2:]), test=(x[:2], y[:2]))
            assert not (tmp_path / "data").exists()
    data = load_data(tmp_path / "data", verify=True)
    assert (data.name, data.clients, data.notes, data.feature_shape) == (
        "data",
        ("c0", "c1", "c2"),
        ("drawn",),
        (2, 3),
    )
    assert (data.train.sizes.tolist(), data.test.sizes.tolist(), data.validation.count) == ([3, 4, 5], [2, 2, 2], 0)
    for place, (x, y) in enumerate(made.values()):
        np.testing.assert_array_equal(data.train.client(place)[0], x[2:].astype(np.float32))
        np.testing.assert_array_equal(data.test.client(place)[1], y[:2])
    assert data.provenance["source"] == "folder"


X, Y = np.ones((4, 2)), np.zeros(4, int)


@pytest.mark.parametrize(
    ("add", "error", "message"),
    [
        (lambda out: None, ConfigError, "no client was added"),
        (
            lambda out: out.add("b", train=(X[:0], Y[:0])),
            DataError,
            "client 'b' has no training samples; leave it out",
        ),
        (lambda out: (out.add("b", train=(X, Y)), out.add("b", train=(X, Y))), DataError, "'b' is added twice"),
        (lambda out: out.add("b", train=(X * np.nan, Y)), DataError, "client 'b', train: NaN or infinity"),
        (lambda out: out.add("b", train=(X, Y * np.nan)), DataError, "client 'b', train: NaN or infinity"),
        (lambda out: out.add("b", train=(X, Y), test=(X[:, :1], Y)), DataError, r"they must be \('rows', 2\)"),
        (lambda out: out.add("b", train=(X, Y[:3])), DataError, r"labels of shape \(3,\)"),
        (lambda out: out.add("b", train=(X, Y + 2)), DataError, "whole numbers from 0 to 1"),
        (lambda out: out.add("b", train=(X, Y + 0.5)), DataError, "whole numbers from 0 to 1"),
        (lambda out: out.add("b", train=(X, Y - 1)), DataError, "whole numbers from 0 to 1"),
        (
            lambda out: out.add("b", train=(X.astype(str) + "x", Y)),
            DataError,
            "client 'b', train: .* must be numbers",
        ),
        (
            lambda out: out.add("b", train=(X, Y.astype(str) + "x")),
            DataError,
            "client 'b', train: .* must be numbers",
        ),
        (lambda out: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_after_an_error_nothing_is_left(tmp_path, add, error, message):
    writer = FolderWriter(tmp_path / "new" / "data", task="classification", classes=("no", "yes"))
    with pytest.raises(error, match=message), writer as out:
        add(out)
    assert not (tmp_path / "new").exists()


def test_a_task_and_its_classes_must_fit(tmp_path):
    with pytest.raises(ConfigError, match="not classification or regression"):
        FolderWriter(tmp_path / "data", task="ranking")  # pyright: ignore[reportArgumentType]
    for task, classes in (("classification", ("no",)), ("regression", ("no", "yes"))):
        with pytest.raises(ConfigError, match="at least two; a regression has none"):
            FolderWriter(tmp_path / "data", task=task, classes=classes)


def test_clients_are_added_inside_of_the_block(tmp_path):
    writer = FolderWriter(tmp_path / "data", task="classification", classes=("no", "yes"))
    with pytest.raises(ConfigError, match="inside of the with block"):
        writer.add("a", train=(X, Y))
    with writer as out:
        out.add("a", train=(X, Y))
    with pytest.raises(ConfigError, match="inside of the with block"):
        writer.add("b", train=(X, Y))
    assert load_data(tmp_path / "data").clients == ("a",)


def test_a_folder_that_is_there_is_kept(tmp_path):
    (tmp_path / "data").mkdir()
    save_data(small(), tmp_path / "data")  # an empty one is used
    before = (tmp_path / "data" / "federation.json").read_bytes()
    with pytest.raises(StoreError, match="is there already; name a new folder"):
        save_data(mixed_effects(), tmp_path / "data")
    assert (tmp_path / "data" / "federation.json").read_bytes() == before
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "data"):
        with pytest.raises(StoreError):
            save_data(small(), place)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "file"}


def test_what_a_killed_writer_left_does_not_stay(tmp_path):
    (tmp_path / ".data.partial").mkdir()
    (tmp_path / ".data.partial" / "train.x.npy").write_bytes(b"half")
    save_data(small(), tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_the_files_are_their_owner_s_only(tmp_path):
    with umask(0):
        save_data(small(), tmp_path / "new" / "data")
        assert loose(tmp_path / "new") == []


def _change(path: Path, **changed: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "federation.json").unlink(), "No such file"),
        (lambda folder: (folder / "federation.json").write_text("{"), "is not JSON"),
        (lambda folder: (folder / "federation.json").write_text("[1]"), "does not hold federated data of version 1"),
        (lambda folder: _change(folder / "federation.json", version=2), "does not hold federated data of version 1"),
        (lambda folder: _change(folder / "federation.json", clients=None), "is damaged"),
        (lambda folder: _change(folder / "federation.json", target={"mean": "?"}), "is damaged"),
        (lambda folder: (folder / "test.y.npy").unlink(), "test.y.npy is missing; copy the whole folder"),
        (lambda folder: (folder / "train.x.npy").write_bytes(b"x"), "has 1 bytes instead of"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path, damage, message):
    save_data(small(), tmp_path / "data")
    damage(tmp_path / "data")
    with pytest.raises(StoreError, match=message):
        load_data(tmp_path / "data")


def test_changed_bytes_are_found_when_asked_for(tmp_path):
    save_data(small(), tmp_path / "data")
    path = tmp_path / "data" / "train.x.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)
    load_data(tmp_path / "data")
    with pytest.raises(StoreError, match="do not match their sha256"):
        load_data(tmp_path / "data", verify=True)


def test_what_cannot_be_written_is_refused(tmp_path):
    from idiolect.data.sets.synthetic import synthetic_population

    with pytest.raises(DataError, match="generated"):
        save_data(synthetic_population(clients=20), tmp_path / "data")
    with pytest.raises(DataError, match="hold them out after loading"):
        save_data(hold_out(small(), 0.34, seed=0), tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


def test_the_audit_is_that_of_the_writing_as_long_as_the_data_are_those(tmp_path, monkeypatch):
    data = small()
    save_data(data, tmp_path / "data")
    loaded = load_data(tmp_path / "data")
    assert audit_lines(loaded) == audit(data).lines()
    known = {**loaded.provenance, "audit": {**loaded.provenance["audit"], "lines": ["as it was"]}}
    assert audit_lines(replace(loaded, provenance=known)) == ["as it was"]
    other = replace(loaded, provenance=known, test=data.validation, validation=data.test)
    assert audit_lines(other) != ["as it was"]
    monkeypatch.setattr(folder_module, "AUDITED", 35)
    save_data(data, tmp_path / "more")
    assert audit_lines(load_data(tmp_path / "more")) == ["Not audited: more than 35 rows."]
