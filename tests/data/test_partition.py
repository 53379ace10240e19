import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import Partition, apply_partition, make_partition

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3)).astype(np.float32)
Y = RNG.integers(0, 3, 120).astype(np.int32)


@pytest.fixture
def partition():
    return make_partition(X, Y, "dirichlet", clients=6, seed=2, concentration=1.0, minimum=4)


def test_round_trip(partition, tmp_path):
    partition.save(tmp_path / "deep" / "p.npz")
    loaded = Partition.load(tmp_path / "deep" / "p.npz")
    assert loaded.fingerprint == partition.fingerprint
    assert loaded.clients == partition.clients
    assert loaded.parameters == partition.parameters
    assert loaded.statistics == partition.statistics
    for split in ("train", "validation", "test"):
        np.testing.assert_array_equal(loaded.rows(split).index, partition.rows(split).index)
        assert loaded.rows(split).index.dtype == np.int64
    before, after = (
        apply_partition(p, X, Y, name="d", task="classification", classes="abc") for p in (partition, loaded)
    )
    assert before.fingerprint == after.fingerprint


def test_made_again_it_gives_the_same_bytes(partition, tmp_path):
    partition.save(tmp_path / "a.npz")
    make_partition(X, Y, "dirichlet", clients=6, seed=2, concentration=1.0, minimum=4).save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["a.npz", "b.npz"]
    assert "train" in np.load(tmp_path / "a.npz")


def test_fingerprint_tells_every_part(partition):
    other = replace(partition, seed=3), replace(partition, notes=("x",)), replace(partition, clients=tuple("abcdef"))
    moved = replace(partition, train=replace(partition.train, index=partition.train.index[::-1]))
    assert len({partition.fingerprint, moved.fingerprint, *(p.fingerprint for p in other)}) == 5


def test_fingerprint_refuses_values_that_no_file_can_hold(partition):
    with pytest.raises(ConfigError, match="plain values"):
        _ = replace(partition, parameters={"f": print}).fingerprint


def _rewrite(path, name, change):
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    members[name] = change(members[name])
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("train.npy", lambda c: c[:-8] + bytes(8), "does not match its own sha256"),
        ("header.json", lambda c: c.replace(b'"seed": 2', b'"seed": 9'), "does not match its own sha256"),
        ("header.json", lambda c: c.replace(b'"notes"', b'"nodes"'), "no entry 'notes'"),
    ],
)
def test_load_refuses_changes(partition, tmp_path, name, change, message):
    path = tmp_path / "p.npz"
    partition.save(path)
    _rewrite(path, name, change)
    with pytest.raises(DataError, match=message):
        Partition.load(path)


def test_apply_refuses_another_pool(partition):
    changed = X.copy()
    changed[7, 1] += 1
    for x, y in ((changed, Y), (X, 1 - Y), (X[:-1], Y[:-1])):
        with pytest.raises(DataError, match="made for another pool"):
            apply_partition(partition, x, y, name="d", task="classification")


def test_apply_gathers_the_clients_samples(partition):
    data = apply_partition(
        partition, X, Y, name="d", task="classification", classes="abc", encode=lambda rows: rows * 2
    )
    x, y = data.train.client(3)
    np.testing.assert_array_equal(x, X[partition.train.client(3)] * 2)
    np.testing.assert_array_equal(y, Y[partition.train.client(3)])
    assert (x.dtype, y.dtype) == (np.float32, np.int32)
    assert data.provenance["partition"]["fingerprint"] == partition.fingerprint
    assert data.provenance["pool"] == partition.pool
