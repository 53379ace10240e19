import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.store import DATABASE, RunRow, Store, changes

CONFIG = {"rounds": 6, "method": {"name": "local", "rate": 0.1}}
ROW = RunRow("c/local/seed0", "c", "local", "local", 0, CONFIG, "h", "d", {"n": 1}, "running", 0, 0.0, 0.0, "")


def scores(value: float = 0.5) -> ClientScores:
    each = np.array([value, np.nan])
    return ClientScores("local", "test", each, each, np.array([4, 0]), np.array([[2, 0], [3, 1], [2, 2]]))


SUMMARY = {"weighted": 0.5, "mean": 0.5, "worst10": 0.5, "loss": 0.5}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "deep" / "out")


def record(store, round, value=0.5):
    store.record(ROW.id, round, [(scores(value), SUMMARY)], seconds=round / 2, compile_seconds=1.0)


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
    assert found.score.tobytes() == scores(1 / 3).score.tobytes()
    assert found.count.tolist() == [4, 0]
    assert found.classes.tolist() == [[2, 0], [3, 1], [2, 2]]
    store.record(ROW.id, 4, [(replace(scores(), classes=None), SUMMARY)], seconds=1.0, compile_seconds=1.0)
    assert store.scores(ROW.id, 4, "local", "test").classes is None
    assert store.curve(ROW.id, "local", "test") == [(2, 0.5, 0.5), (4, 0.5, 0.5)]
    assert store.models(ROW.id) == ["local"]
    assert store.scores(ROW.id, 6, "local", "test") is None


def test_rewind_forgets_what_came_after(store):
    store.start(ROW)
    for round in (0, 2, 4):
        record(store, round)
    store.rewind(ROW.id, 2)
    assert store.evaluated(ROW.id) == [0, 2]
    assert store._db.execute("SELECT run, round FROM classes") == [(ROW.id, 0), (ROW.id, 2)]
    assert store.run(ROW.id).round == 2
    store.rewind(ROW.id, -1)
    assert store.evaluated(ROW.id) == []
    assert store.run(ROW.id).round == 0


def test_diagnostics_come_back_and_are_rewound(store):
    store.start(ROW)
    store.start(replace(ROW, id="other"))
    for round in (0, 2, 10):
        said = {"gap": 1 / (round + 3), "a": float("nan") if round == 0 else float("inf")}
        store.record(ROW.id, round, [(scores(), SUMMARY)], seconds=0, compile_seconds=0, diagnostics=said)
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


def test_a_folder_from_before_there_were_diagnostics_and_tables_of_classes(store, monkeypatch):
    store.start(ROW)
    record(store, 0)
    for table in ("diagnostics", "classes"):
        store._db.execute(f"DROP TABLE {table}")
    store.close()

    def is_read(old):
        assert old.diagnostics(ROW.id) == {}
        found = old.scores(ROW.id, 0, "local", "test")
        assert (found.score[0], found.classes) == (0.5, None)

    is_read(Store(store.folder, create=False))
    with monkeypatch.context() as patch:
        patch.setattr("idiolect.study.database.os.access", lambda *_: False)
        is_read(Store(store.folder, create=False))
    again = Store(store.folder)  # as for a run that goes on
    is_read(again)
    again.rewind(ROW.id, 0)
    again.record(ROW.id, 2, [(scores(), SUMMARY)], seconds=1, compile_seconds=1, diagnostics={"gap": 0.5})
    assert again.scores(ROW.id, 2, "local", "test").classes.tolist() == scores().classes.tolist()
    assert again.diagnostics(ROW.id) == {"gap": [(2, 0.5)]}
    assert again.evaluated(ROW.id) == [0, 2]


def test_a_round_is_recorded_whole_or_not_at_all(store):
    store.start(ROW)
    record(store, 0)
    with pytest.raises(StoreError, match="cannot use"):
        store.record(
            ROW.id, 2, [(scores(), SUMMARY), (scores(), {**SUMMARY, "loss": [1]})], seconds=1, compile_seconds=1
        )
    bad = {"gap": 1.0, "worse": [1]}
    with pytest.raises(StoreError, match="cannot use"):
        store.record(ROW.id, 2, [(scores(), SUMMARY)], seconds=1, compile_seconds=1, diagnostics=bad)
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
    monkeypatch.setattr("idiolect.study.database.os.access", lambda *_: False)
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
    big = ClientScores("local", "test", many, many, many.astype(np.int64))
    with pytest.raises(StoreError, match="database or disk is full"):
        store.record(ROW.id, 2, [(big, SUMMARY)], seconds=1, compile_seconds=1)
    assert store.evaluated(ROW.id) == [0]


def test_two_writers(store):
    other = Store(store.folder)
    store.start(ROW)
    other.start(replace(ROW, id="second"))
    assert [row.id for row in store.runs()] == [ROW.id, "second"]
    with sqlite3.connect(store.folder / DATABASE) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
