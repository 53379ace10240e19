import os
import shutil
import sqlite3

import pytest

from idiolect.core.errors import StoreError
from idiolect.study.store.database import Database

SCHEMA = "CREATE TABLE IF NOT EXISTS t (x INTEGER PRIMARY KEY)"


@pytest.fixture
def opened():
    """Every connection that was opened, to ask whether it still is."""
    made = []

    def connect(*arguments, **options):
        made.append(real(*arguments, **options))
        return made[-1]

    real = sqlite3.connect
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("idiolect.study.store.database.sqlite3.connect", connect)
        yield lambda: [db for db in made if is_open(db)]


def is_open(db):
    try:
        db.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_a_damaged_file_has_a_fault(tmp_path):
    Database(tmp_path / "a.db", SCHEMA).close()
    assert Database(tmp_path / "a.db", SCHEMA).fault() == ""
    content = bytearray((tmp_path / "a.db").read_bytes())
    content[36:40] = (7).to_bytes(4, "big")  # free pages that are not there
    (tmp_path / "b.db").write_bytes(content)
    fault = Database(tmp_path / "b.db", SCHEMA, create=False).fault()
    assert "reelist" in fault
    assert "\n" not in fault


def test_a_closed_database_is_read_and_written_and_stays_closed(tmp_path, opened):
    db = Database(tmp_path / "a.db", SCHEMA)
    assert len(opened()) == 1
    db.execute("INSERT INTO t VALUES (?)", (1,))
    assert len(opened()) == 1
    db.close()
    db.close()
    assert opened() == []
    assert db.execute("SELECT x FROM t") == [(1,)]
    with db.transaction() as writer:
        writer.execute("INSERT INTO t VALUES (2)")
    assert db.execute("SELECT x FROM t ORDER BY x") == [(1,), (2,)]
    with pytest.raises(StoreError, match=r"cannot use .*a\.db: no such table: absent"):
        db.execute("SELECT * FROM absent")
    assert opened() == []
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db"]  # no log is left


def test_a_transaction_is_whole_or_nothing(tmp_path):
    db = Database(tmp_path / "a.db", SCHEMA)
    for closed in (False, True):
        with pytest.raises(StoreError, match="UNIQUE"), db.transaction() as writer:
            writer.executemany("INSERT INTO t VALUES (?)", [(1,), (1,)])
        with pytest.raises(ZeroDivisionError), db.transaction() as writer:
            writer.execute(f"INSERT INTO t VALUES ({1 // 0})")
        assert db.execute("SELECT * FROM t") == []
        if not closed:
            db.close()


def test_in_memory_it_needs_no_file_and_is_no_longer_written(tmp_path, opened):
    db = Database(tmp_path / "sub.db", SCHEMA)
    with db.transaction() as writer:
        writer.executemany("INSERT INTO t VALUES (?)", [(x,) for x in range(5000)])
    db.to_memory()
    shutil.rmtree(tmp_path)
    for _ in range(2):
        assert db.execute("SELECT COUNT(*), SUM(x) FROM t") == [(5000, 5000 * 4999 // 2)]
    assert opened() == []


@pytest.mark.parametrize("content", [b"not a database, but long enough to be looked at" * 50, None])
def test_what_cannot_be_opened_is_one_line_and_leaves_nothing_open(tmp_path, opened, content):
    if content is None:
        (tmp_path / "a.db").mkdir()
    else:
        (tmp_path / "a.db").write_bytes(content)
    for create in (True, False):
        with pytest.raises(StoreError, match=r"cannot use .*a\.db: (file is not|unable to open)"):
            Database(tmp_path / "a.db", SCHEMA, create=create)
    assert opened() == []


def test_a_bad_schema_leaves_nothing_open(tmp_path, opened):
    with pytest.raises(StoreError, match="syntax error"):
        Database(tmp_path / "a.db", "CREATE TABLE (")
    assert opened() == []


def test_what_cannot_be_written_is_read_without_a_trace(tmp_path, monkeypatch):
    Database(tmp_path / "a.db", SCHEMA).close()
    monkeypatch.setattr("idiolect.study.store.database.os.access", lambda path, mode: mode != os.W_OK)
    db = Database(tmp_path / "a.db", SCHEMA, create=False)
    assert db.execute("SELECT * FROM t") == []
    with pytest.raises(StoreError, match="readonly"):
        db.execute("INSERT INTO t VALUES (1)")
    assert [file.name for file in tmp_path.iterdir()] == ["a.db"]
