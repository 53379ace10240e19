import io
import json
import os
import stat
import warnings
import zipfile
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import Partition, apply_partition, make_partition
from idiolect.data.partition import FORMAT, HEADER, VERSION, encode, read, write

ARRAYS = {"train": np.asarray([3, 1, 2]), "offsets": np.asarray([0, 3]), "none": np.zeros(0, np.int64)}
CONTENT = encode({"seed": 2, "name": "x"}, ARRAYS)


def members():
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def header(**changes):
    return json.dumps({"format": FORMAT, "version": VERSION, **changes}).encode()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "p.npz"


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "deep" / "er" / "p.npz"
    write(str(path), CONTENT)
    assert path.read_bytes() == CONTENT
    found, arrays = read(str(path))
    assert found == {"format": "idiolect-partition", "version": 1, "seed": 2, "name": "x"}
    assert [*arrays] == [*ARRAYS]
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == np.int64


def test_equal_content_gives_equal_bytes_wherever_and_whenever_it_is_made():
    every_second = np.asarray([3, 0, 1, 0, 2, 0], np.int32)[::2]
    same = {**ARRAYS, "train": every_second, "offsets": ARRAYS["offsets"].astype(">i8")}
    assert encode({"name": "x", "seed": 2}, same) == CONTENT
    assert encode({"name": "x", "seed": 3}, ARRAYS) != CONTENT
    assert encode({"name": "x", "seed": 2}, {**ARRAYS, "train": np.asarray([1, 3, 2])}) != CONTENT
    with zipfile.ZipFile(io.BytesIO(CONTENT)) as archive:
        infos = archive.infolist()
    assert [info.filename for info in infos] == [HEADER, "train.npy", "offsets.npy", "none.npy"]
    for info in infos:
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert info.compress_type == zipfile.ZIP_STORED
        assert (info.create_system, info.external_attr) == (3, 0o600 << 16)


def test_numpy_reads_the_arrays_as_eight_bytes_little_endian(path):
    write(path, CONTENT)
    with np.load(path) as found:
        np.testing.assert_array_equal(found["train"], [3, 1, 2])
        assert found["train"].dtype.str == "<i8"


def test_the_header_is_sorted_and_says_format_and_version():
    found = json.loads(members()[HEADER])
    assert [*found] == sorted(found)
    assert (found["format"], found["version"]) == (FORMAT, VERSION) == ("idiolect-partition", 1)


def test_a_file_is_replaced_whole_and_anyone_may_read_it(path):
    path.write_bytes(b"before")
    write(path, CONTENT)
    assert read(path)[0]["seed"] == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(path.parent) == ["p.npz"]


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failed_write_leaves_what_there_was(path, monkeypatch, step):
    path.write_bytes(b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(DataError, match=r"cannot write the partition file .*p\.npz: No space left on device$"):
        write(path, CONTENT)
    assert os.listdir(path.parent) == ["p.npz"]
    assert path.read_bytes() == b"before"


def test_an_error_without_a_number_is_told_in_its_words(path, monkeypatch):
    def odd(*_):
        raise OSError("something odd")

    path.write_bytes(CONTENT)
    monkeypatch.setattr(os, "fsync", odd)
    with pytest.raises(DataError, match=r"cannot write the partition file .*: something odd$"):
        write(path, CONTENT)
    monkeypatch.setattr(type(path), "read_bytes", odd)
    with pytest.raises(DataError, match=r"cannot read the partition file .*: something odd$"):
        read(path)


def test_a_folder_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write the partition file .*file/p\.npz: "):
        write(tmp_path / "file" / "p.npz", CONTENT)


def test_bytes_are_on_the_disk_before_the_file_is_in_its_place(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append((os.fstat(handle).st_size, path.exists())))
    write(path, CONTENT)
    assert synced == [(len(CONTENT), False)]


def test_a_file_that_is_missing_or_none_is_refused(path, tmp_path):
    with pytest.raises(DataError, match=r"no partition file .*p\.npz; check the path or make"):
        read(path)
    with pytest.raises(DataError, match=r"cannot read the partition file .*: Is a directory$"):
        read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        CONTENT[: len(CONTENT) // 2],
        b"",
        b"something else",
        packed({"train.npy": members()["train.npy"]}),
        packed({HEADER: b"{"}),
        packed({HEADER: b"7"}),
        packed({HEADER: header(), "train.npy": members()["train.npy"][:-8]}),
        packed({HEADER: header(), "train.npy": b""}),
        CONTENT.replace(b"\x03\x00\x00\x00\x00\x00\x00\x00\x01", b"\x03\x00\x00\x00\x00\x00\x00\x00\x07"),
    ],
    ids=["half", "nothing", "text", "no header", "no JSON", "no table", "short", "empty", "another byte"],
)
def test_damage_is_named_with_the_way_out(path, content):
    assert content != CONTENT
    path.write_bytes(content)
    told = r"p\.npz is truncated, damaged or not a partition file; make the partition again or copy the whole file$"
    with pytest.raises(DataError, match=told):
        read(path)


def test_no_code_is_read_from_a_file(path):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray([print], object), allow_pickle=True)
    path.write_bytes(packed({HEADER: header(), "train.npy": buffer.getvalue()}))
    with pytest.raises(DataError, match="damaged or not a partition file"):
        read(path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": 7}, r"\(format 'idiolect-partition', version 7\)"),
        ({"format": "other"}, r"\(format 'other', version 1\)"),
        ({"version": None}, r"\(format 'idiolect-partition', version None\)"),
    ],
)
def test_another_format_or_version_is_refused(path, changes, told):
    path.write_bytes(packed({HEADER: header(**changes)}))
    with pytest.raises(DataError, match=rf"is not a partition file of version 1 {told}; make the partition again"):
        read(path)


def test_other_members_are_left_alone(path):
    path.write_bytes(packed({**members(), "notes.txt": b"mine"}))
    assert [*read(path)[1]] == [*ARRAYS]


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_part_is_read_or_refused_in_one_line(path, data):
    parts = members()
    name = data.draw(st.sampled_from(sorted(parts)))
    content = bytearray(parts[name])
    first = data.draw(st.integers(0, min(len(content), 140)))
    content[first : first + data.draw(st.integers(0, 3))] = data.draw(
        st.one_of(st.binary(max_size=4), st.sampled_from([b"[" * 3000, b"(9999999999,)", b"9L", b'"', b"{"]))
    )
    path.write_bytes(packed({**parts, name: bytes(content)}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(DataError):
            read(path)


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
