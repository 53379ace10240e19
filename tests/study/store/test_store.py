import math
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.store.store import DATABASE, RunRow, Store, changes

CONFIG = {"rounds": 6, "method": {"name": "local", "rate": 0.1}}
ROW = RunRow("c/local/seed0", "c", "local", "local", 0, CONFIG, "h", "d", {"n": 1}, "running", 0, 0.0, 0.0, "")


def scores(value: float = 0.5) -> ClientScores:
    each, f1 = np.array([value, np.nan]), np.array([0.25, np.nan])
    values, pooled = {"macro-f1": f1, "accuracy": each}, {"macro-f1": math.nan, "accuracy": value}
    return ClientScores("local", "test", np.array([4, 0]), each, values, pooled)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "deep" / "out")


def record(store, round, value=0.5):
    store.record(ROW.id, round, [scores(value)], seconds=round / 2, compile_seconds=1.0)


def test_runs_come_back(store):
    assert store.run(ROW.id) is None
    assert store.check(ROW) is None
    assert store.start(ROW) == ROW
    assert store.start(ROW) == ROW
    assert store.runs() == [ROW]
    record(store, 2)
    assert store.run(ROW.id) == replace(ROW, round=2, seconds=1.0, compile_seconds=1.0)
    store.finish(ROW.id, "diverged", "why")
    assert (store.run(ROW.id).status, store.run(ROW.id).message) == ("diverged", "why")


def test_scores_come_back_to_the_last_bit(store):
    store.start(ROW)
    record(store, 2, 1 / 3)
    found = store.scores(ROW.id, 2, "local", "test")
    expected = scores(1 / 3)
    assert list(found.values) == ["macro-f1", "accuracy"]
    for name, values in expected.values.items():
        assert found.values[name].tobytes() == values.tobytes()
    assert found.loss.tobytes() == expected.loss.tobytes()
    assert found.count.tolist() == [4, 0]
    assert found.pooled["accuracy"] == 1 / 3
    assert math.isnan(found.pooled["macro-f1"])
    record(store, 4, 0.5)
    assert store.curve(ROW.id, "local", "test", "accuracy") == [(2, 1 / 3, 1 / 3), (4, 0.5, 0.5)]
    assert [math.isnan(value) for _, value, _ in store.curve(ROW.id, "local", "test", "macro-f1")] == [True, True]
    assert store.curve(ROW.id, "local", "test", "mse") == []
    columns = "metric, pooled, mean, worst10 FROM metrics WHERE round = 4 ORDER BY metric"
    assert store._db.execute(f"SELECT {columns}") == [
        ("accuracy", 0.5, 0.5, 0.5),
        ("macro-f1", None, 0.25, 0.25),
    ]
    assert store.models(ROW.id) == ["local"]
    assert store.scores(ROW.id, 6, "local", "test") is None


def test_rewind_forgets_what_came_after(store):
    store.start(ROW)
    for round in (0, 2, 4):
        record(store, round)
    store.rewind(ROW.id, 2)
    assert store.evaluated(ROW.id) == [0, 2]
    assert store._db.execute("SELECT DISTINCT run, round FROM metrics ORDER BY round") == [
        (ROW.id, 0),
        (ROW.id, 2),
    ]
    assert store.run(ROW.id).round == 2
    store.rewind(ROW.id, -1)
    assert store.evaluated(ROW.id) == []
    assert store.run(ROW.id).round == 0


def test_diagnostics_come_back_and_are_rewound(store):
    store.start(ROW)
    store.start(replace(ROW, id="other"))
    for round in (0, 2, 10):
        said = {"gap": 1 / (round + 3), "a": float("nan") if round == 0 else float("inf")}
        store.record(ROW.id, round, [scores()], seconds=0, compile_seconds=0, diagnostics=said)
    record(store, 12)
    store.record("other", 12, [], seconds=0, compile_seconds=0, diagnostics={"gap": 5.0})
    found = store.diagnostics(ROW.id)
    assert found["gap"] == [(0, 1 / 3), (2, 1 / 5), (10, 1 / 13)]
    assert found["a"][1:] == [(2, np.inf), (10, np.inf)]
    assert found["a"][0][0] == 0
    assert np.isnan(found["a"][0][1])
    store.rewind(ROW.id, 2)
    assert {name: [round for round, _ in course] for name, course in store.diagnostics(ROW.id).items()} == {
        "a": [0, 2],
        "gap": [0, 2],
    }
    assert store.diagnostics("other") == {"gap": [(12, 5.0)]}
    store.rewind(ROW.id, -1)
    assert store.diagnostics(ROW.id) == {}


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_of_another_version_is_refused_and_stays(store, create):
    store._db.execute("PRAGMA user_version = 1")
    store._db.execute("DROP TABLE metrics")
    store.close()
    before = sorted(store.folder.rglob("*"))
    with pytest.raises(StoreError, match=r"the runs in '.*out' are of another version of idiolect"):
        Store(store.folder, create=create)
    assert sorted(store.folder.rglob("*")) == before


def test_a_round_is_recorded_whole_or_not_at_all(store):
    store.start(ROW)
    record(store, 0)
    refuse = "BEGIN SELECT RAISE(ABORT, 'no'); END"
    store._db.execute(f"CREATE TRIGGER late BEFORE INSERT ON metrics WHEN NEW.round = 2 {refuse}")
    with pytest.raises(StoreError, match="cannot use"):
        record(store, 2)
    assert store._db.execute("SELECT count(*) FROM evaluations WHERE round = 2") == [(0,)]
    store._db.execute("DROP TRIGGER late")
    bad = {"gap": 1.0, "worse": [1]}
    with pytest.raises(StoreError, match="cannot use"):
        store.record(ROW.id, 2, [scores()], seconds=1, compile_seconds=1, diagnostics=bad)
    assert store.diagnostics(ROW.id) == {}
    assert store.evaluated(ROW.id) == [0]
    assert store.run(ROW.id).round == 0


def test_changes_are_named(store):
    store.start(ROW)
    other = {"rounds": 7, "method": {"name": "local", "rate": 0.2, "epochs": 1}}
    with pytest.raises(StoreError, match=r"changed: method\.epochs, method\.rate, rounds"):
        store.start(replace(ROW, config=other, config_hash="other"))
    with pytest.raises(StoreError, match=r"the data of run c/local/seed0 .* have changed"):
        store.start(replace(ROW, data_hash="other"))
    assert changes({"a": {"b": 1}}, {"a": 2}) == ["a"]


def test_clients_of_real_sites_are_named_later_and_erased_with_the_scores(store):
    store.start(ROW)
    store.name_clients(ROW.id, ["north", "sécond"])
    assert store.run(ROW.id) == replace(ROW, provenance={**ROW.provenance, "clients": ["north", "sécond"]})
    record(store, 2)
    store.erase(ROW.id, -1)
    assert store.run(ROW.id).provenance == {**ROW.provenance, "clients": []}
    assert not any(b"north" in path.read_bytes() for path in store.folder.iterdir() if path.is_file())


def test_facts(store):
    assert store.fact("x") is None
    store.set_fact("x", [1, {"y": None}])
    store.set_fact("x", [2])
    assert store.fact("x") == [2]


def test_checkpoints_of_different_runs_never_share_a_file(store):
    names = ["a/b/seed0", "a/b c/seed0", "a/b_c/seed0", "a__b/c/seed0", "a/b__c/seed0", "a/../seed0", "a/λ/seed0"]
    paths = [store.checkpoint_path(name) for name in names]
    assert len(set(paths)) == len(names)
    assert all(path.parent == store.folder / "checkpoints" for path in paths)
    folder = store.models_folder(replace(ROW, cell="..", label="../x"))
    assert ".." not in folder.relative_to(store.folder).parts


def test_a_folder_that_is_none_is_refused_and_left_alone(tmp_path):
    with pytest.raises(StoreError, match=f"no runs in '{tmp_path}': it has no {DATABASE}"):
        Store(tmp_path, create=False)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StoreError, match="no runs in"):
        Store(tmp_path / "absent", create=False)
    assert not (tmp_path / "absent").exists()


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(StoreError, match=f"cannot write to '{path}'"):
            Store(path)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / DATABASE).write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match=f"{DATABASE}: file is not a database"):
        Store(tmp_path, create=False).runs()


def test_read_only_folder_can_be_shown(store, monkeypatch):
    store.start(ROW)
    store.close()
    monkeypatch.setattr("idiolect.study.store.database.os.access", lambda *_: False)
    before = sorted(store.folder.rglob("*"))
    again = Store(store.folder, create=False)
    assert again.runs() == [ROW]
    with pytest.raises(StoreError, match="readonly database"):
        again.set_fact("x", 1)
    assert sorted(store.folder.rglob("*")) == before


def test_full_disk_is_one_line_and_nothing_half_recorded(store):
    store.start(ROW)
    record(store, 0)
    store._db.execute("PRAGMA max_page_count = 1")
    many = np.zeros(10**6)
    big = ClientScores("local", "test", many.astype(np.int64), many, {"accuracy": many}, {"accuracy": 0.0})
    with pytest.raises(StoreError, match="database or disk is full"):
        store.record(ROW.id, 2, [big], seconds=1, compile_seconds=1)
    assert store.evaluated(ROW.id) == [0]


def test_two_writers(store):
    other = Store(store.folder)
    store.start(ROW)
    other.start(replace(ROW, id="second"))
    assert [row.id for row in store.runs()] == [ROW.id, "second"]
    with sqlite3.connect(store.folder / DATABASE) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
