"""Private states in a file: the same federation, kept from checkpoint to checkpoint."""

import itertools
import signal

import jax
import numpy as np
import pytest

from idiolect.algorithms.registry import build
from idiolect.core import tree
from idiolect.core.errors import ConfigError, StoreError
from idiolect.runtime import evaluate, private_rows
from idiolect.runtime.evaluate import Evaluator
from idiolect.runtime.private_rows import PrivateRows
from tests.engine import python
from tests.federations import classification, flat
from tests.rights import loose, umask
from tests.tiers import second

METHODS = {
    "ditto": {"name": "ditto", "local_steps": 3, "batch_size": 4},
    "ditto-received": {"name": "ditto", "local_steps": 3, "batch_size": 4, "personal_start": "received"},
    "scaffold": {"name": "scaffold", "local_steps": 3, "batch_size": 4},
    "fedper": {"name": "fedper", "head": "second", "local_steps": 3, "batch_size": 4},
    "local": {"name": "local", "local_steps": 3, "batch_size": 4},
    "fedavg": {"name": "fedavg", "local_steps": 3, "batch_size": 4},
    "global": {"name": "global", "local_steps": 3, "batch_size": 4},
}


def fresh(clients):
    return {"a": 10.0 * clients[:, None] + np.arange(3.0), "b": (clients.astype(np.int32), None)}


def rows_at(folder, start=fresh):
    return PrivateRows(folder / "rows", start)


def test_the_file_is_their_owner_s_only(tmp_path):
    with umask(0):
        rows = PrivateRows(tmp_path / "new" / "rows", fresh)
        rows.write(np.asarray([1]), fresh(np.asarray([1])))
        rows.commit(b"checkpoint")
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["rows"]
        assert loose(tmp_path / "new") == []
        rows.close()


def test_who_was_never_written_is_as_it_starts(tmp_path):
    rows, some = rows_at(tmp_path), np.asarray([7, 2, 7])
    read = rows.read(some)
    np.testing.assert_array_equal(read["a"], fresh(some)["a"])
    np.testing.assert_array_equal(read["b"][0], [7, 2, 7])
    assert read["b"][1] is None
    assert read["b"][0].dtype == np.int32


def test_what_is_written_is_read_and_the_others_stay(tmp_path):
    rows, some = rows_at(tmp_path), np.asarray([3, 1_000_000])
    rows.write(some, jax.tree.map(lambda a: a + 1, fresh(some)))
    read = rows.read(np.asarray([1_000_000, 4, 3]))
    np.testing.assert_array_equal(read["a"][:, 0], [10_000_001, 40, 31])
    np.testing.assert_array_equal(read["b"][0], [1_000_001, 4, 4])


def test_many_clients(tmp_path):
    rows, many = rows_at(tmp_path), np.arange(1_300)
    rows.write(many, jax.tree.map(lambda a: -a, fresh(many)))
    np.testing.assert_array_equal(rows.read(many[::-1])["b"][0], -many[::-1])


def test_back_to_the_last_commit_and_no_further(tmp_path):
    rows, one = rows_at(tmp_path), np.asarray([5])
    assert rows.restore() is None
    for round in (1, 2):
        rows.write(one, {"a": np.full((1, 3), round, float), "b": (one, None)})
        rows.commit(b"%d" % round)
    size = (tmp_path / "rows").stat().st_size
    for round in (3, 4):
        rows.write(one, {"a": np.full((1, 3), round, float), "b": (one, None)})
    assert rows.restore() == b"2"
    assert rows.read(one)["a"][0, 0] == 2
    assert (tmp_path / "rows").stat().st_size == size
    rows.clear()
    assert rows.restore() is None
    assert rows.read(one)["a"][0, 0] == 50


KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from tests.runtime.test_private_rows import rows_at
rows, one = rows_at(Path(sys.argv[1])), np.asarray([5])
rows.write(one, {"a": np.full((1, 3), 1.0), "b": (one, None)})
rows.commit(b"1")
many = np.arange(5000)
rows.write(many, {"a": np.full((5000, 3), 2.0), "b": (many, None)})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.second
def test_a_killed_process_leaves_the_last_commit(tmp_path):
    done = python("-c", KILLED, tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    rows = rows_at(tmp_path)
    assert rows.restore() == b"1"
    np.testing.assert_array_equal(rows.read(np.asarray([4, 5]))["a"][:, 0], [40, 1])


def test_a_file_grows_by_rows_and_is_written_again_without_the_old_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(private_rows, "_SLACK", 4_000)
    monkeypatch.setattr(private_rows, "_AT_ONCE", 7)
    rows, sizes = rows_at(tmp_path), list[int]()
    rng = np.random.default_rng(0)
    expected = np.full(50, np.nan)
    for round in range(60):
        some = rng.permutation(50)[:10]
        expected[some] = round
        rows.write(some, {"a": np.full((10, 3), float(round)), "b": (some, None)})
        rows.commit(b"round %d" % round)
        sizes.append((tmp_path / "rows").stat().st_size)
        again = rows_at(tmp_path)
        assert again.restore() == b"round %d" % round
        known = np.flatnonzero(~np.isnan(expected))
        np.testing.assert_array_equal(again.read(known)["a"][:, 0], expected[known])
        again.close()
    assert max(sizes) < 4_000 + 2 * 50 * rows._width + 1_000
    assert sum(b < a for a, b in itertools.pairwise(sizes)) >= 3
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    rows.write(np.asarray([3]), fresh(np.asarray([3])))
    assert rows.restore() == b"round 59"
    np.testing.assert_array_equal(rows.read(np.arange(50))["a"][:, 0], expected)


def test_a_disk_without_room_for_the_new_file_leaves_the_old_one(tmp_path, monkeypatch):
    monkeypatch.setattr(private_rows, "_SLACK", 0)
    rows, one = rows_at(tmp_path), np.asarray([5])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    for round in range(2):
        rows.write(one, {"a": np.full((1, 3), float(round)), "b": (one, None)})
    with pytest.raises(StoreError, match="No space left"):
        rows.commit(b"1")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    assert rows.restore() == b"1"
    assert rows.read(one)["a"][0, 0] == 1


def test_wherever_a_file_ends_it_has_the_last_whole_commit(tmp_path):
    """A kill, or a disk without room, cuts the file at any byte; damaged bytes after a commit do not count either."""
    rows, ends, one = rows_at(tmp_path), list[int](), np.asarray([5])
    for round in range(3):
        rows.write(np.asarray([5, round]), {"a": np.full((2, 3), float(round)), "b": (np.asarray([5, round]), None)})
        rows.commit(b"%d" % round)
        ends.append((tmp_path / "rows").stat().st_size)
    content = (tmp_path / "rows").read_bytes()
    for length in range(len(content) + 1):
        (tmp_path / "cut").write_bytes(content[:length])
        cut = PrivateRows(tmp_path / "cut", fresh)
        done = sum(end <= length for end in ends)
        assert cut.restore() == (b"%d" % (done - 1) if done else None)
        assert cut.read(one)["a"][0, 0] == (done - 1 if done else 50)
        cut.write(one, {"a": np.full((1, 3), 9.0), "b": (one, None)})
        cut.commit(b"more")
        cut.close()
        again = PrivateRows(tmp_path / "cut", fresh)
        assert again.restore() == b"more"
        assert again.read(one)["a"][0, 0] == 9
        again.close()
    for place in range(ends[1], len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 255
        (tmp_path / "damaged").write_bytes(damaged)
        found = PrivateRows(tmp_path / "damaged", fresh)
        payload = found.restore() == b"2"  # a row's own bytes are not checked
        assert payload or found.read(one)["a"][0, 0] == 1
        found.close()


def test_a_failed_write_leaves_the_last_commit(tmp_path, monkeypatch):
    rows, one = rows_at(tmp_path), np.asarray([5])
    rows.write(one, {"a": np.full((1, 3), 1.0), "b": (one, None)})
    rows.commit(b"1")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(
        StoreError, match=r"cannot use .*rows.* for the clients' private states: No space left on device"
    ):
        rows.write(one, {"a": np.full((1, 3), 2.0), "b": (one, None)})
    with pytest.raises(StoreError, match="No space left"):
        rows.commit(b"2")
    monkeypatch.undo()
    assert rows.read(one)["a"][0, 0] == 1
    assert rows.restore() == b"1"
    assert rows_at(tmp_path).restore() == b"1"


def test_rows_of_another_model_and_files_of_another_kind_are_refused(tmp_path):
    rows = rows_at(tmp_path)
    rows.write(np.asarray([0]), fresh(np.asarray([0])))
    rows.commit(b"")
    other = rows_at(tmp_path, lambda clients: clients[:, None] * np.ones(9))
    with pytest.raises(StoreError, match="private states of another model"):
        other.read(np.asarray([0]))
    (tmp_path / "text").write_text("not a database, but long enough to be taken for one" * 30)
    with pytest.raises(StoreError, match=r"cannot use .*text"):
        PrivateRows(tmp_path / "text", fresh)
    with pytest.raises(StoreError, match="cannot use"):
        PrivateRows(tmp_path / "text" / "below", fresh)


@pytest.mark.parametrize(
    ("name", "sampling", "cohort"),
    [("ditto", "binomial", 2.5), ("scaffold", "fixed", 3)]
    + [second(name, "fixed", 3) for name in METHODS if name != "scaffold"]
    + [second(name, "binomial", 2.5) for name in METHODS if name != "ditto"],
)
def test_a_federation_is_the_same(tmp_path, monkeypatch, name, sampling, cohort):
    """Bit by bit where it trains; evaluated in portions of two clients, and at once."""
    problem = classification((9, 1, 14, 4, 6))
    sim = problem.simulation(build(METHODS[name]), cohort=cohort, sampling=sampling, block=1, rounds=4)
    evaluator = Evaluator(sim)
    memory = sim.advance(sim.init(1), 4)
    on_disk = sim.advance(sim.advance(sim.init(1, rows=tmp_path / "rows"), 3), 1)
    everyone = np.arange(sim.training.num_clients)
    kept = (on_disk.shared, on_disk.private.read(everyone))
    for a, b in zip(*map(jax.tree.leaves, (kept, (memory.shared, memory.private))), strict=True):
        np.testing.assert_array_equal(a, b)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(problem.params))
    monkeypatch.setattr(evaluate, "PORTION_BYTES", 2 * size * len(sim.algorithm.model_names))
    for a, b in zip(evaluator(on_disk), evaluator(memory), strict=True):
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-6)
        np.testing.assert_array_equal(a.values["accuracy"], b.values["accuracy"])
        np.testing.assert_array_equal(a.count, problem.data.test.sizes)
        assert a.pooled == pytest.approx(b.pooled)
    names = sim.algorithm.model_names
    for a, b in zip(*(jax.tree.leaves(evaluator.client_params(s, names)) for s in (on_disk, memory)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_round_that_diverges_writes_nothing(tmp_path):
    problem = classification((9, 4, 6))
    sim = problem.simulation(build({**METHODS["ditto"], "rate": 1e30}), cohort=2, rounds=3)
    state = sim.init(0, rows=tmp_path / "rows")
    rows = state.private
    with pytest.raises(Exception, match="diverged"):
        sim.advance(state, 3)
    everyone = np.arange(3)
    start = tree.gather(sim.init(0).private, everyone)
    np.testing.assert_array_equal(flat(rows.read(everyone)), flat(start))


def test_what_needs_all_states_at_hand_is_refused(tmp_path):
    problem = classification((9, 4, 6))
    for options in ({"train": "all"}, {"debug": True}):
        sim = problem.simulation(build(METHODS["ditto"]), **options)
        with pytest.raises(ConfigError, match="private states in a file"):
            sim.init(0, rows=tmp_path / "rows")
