"""A table that is encoded into a folder: the bits of `from_table`, one column of a Parquet file at a time."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.data import Schema, encode_table, from_table, load
from idiolect.data.files import table as tables
from idiolect.data.sets import encoded, pool
from idiolect.data.sets.encoded import from_folder
from tests.data.sets.test_table import frame


def mixed() -> pd.DataFrame:
    """Rows of all kinds, not sorted by client, with gaps."""
    rng = np.random.default_rng(1)
    table = frame(clients=4, rows=30).sample(frac=1, random_state=0)
    table.loc[table.index[:9], "age"] = np.nan
    table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, len(table)), unit="D")
    table["weight"] = pd.array(rng.integers(40, 90, len(table)), dtype="Int64")
    table["group"] = pd.Categorical(rng.choice(["a", "b", "c"], len(table)))
    table["number"] = [f"{value:.1f}".replace(".", ",") for value in rng.normal(size=len(table))]
    table["code"] = np.arange(len(table)) + 1000  # an identifier
    table["same"] = 1
    return table


OPTIONS: dict[str, dict[str, object]] = {
    "usual": {},
    "regression": {"label": "age_now"},
    "settings": {"validation": 0.3, "minimum": 30, "categorical": ["weight"], "ignore": ["day"], "title": "mine"},
    "a split column": {"split": "part"},
    "a client too small": {"minimum": 31},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_data_are_those_of_the_table(tmp_path, name, kind):
    table, options = mixed(), OPTIONS[name]
    if name == "regression":
        table["age_now"] = np.linspace(20, 90, len(table))
    if name == "a split column":
        table["part"] = np.where(np.arange(len(table)) % 3 == 0, "test", "train")
    if name == "a client too small":
        table = table.iloc[1:]
    path = tmp_path / f"t.{kind}"
    table.to_parquet(path) if kind == "parquet" else table.to_csv(path, index=False)
    if name == "a client too small":
        options = {"minimum": int(table.groupby("client").size().max())}
    expected = from_table(path, **options)  # pyright: ignore[reportArgumentType]
    steps = list[tuple[str, float]]()
    found = encode_table(path, tmp_path / "data", on_progress=lambda *step: steps.append(step), **options)
    assert found.fingerprint == expected.fingerprint
    assert (found.name, found.notes, found.clients) == (expected.name, expected.notes, expected.clients)
    assert (found.schema, found.target) == (expected.schema, expected.target)
    assert {**found.provenance, "audit": None} == {**expected.provenance, "audit": None}
    assert [share for _, share in steps] == sorted(share for _, share in steps)
    assert steps[-1] == ("done", 1.0)
    assert {path.name for path in tmp_path.iterdir()} == {f"t.{kind}", "data"}


def test_one_column_of_a_parquet_file_is_read_at_a_time(tmp_path, monkeypatch):
    path, read, asked = tmp_path / "t.parquet", pd.read_parquet, list[list[str]]()
    mixed().to_parquet(path)

    def one(path, columns):
        asked.append(columns)
        return read(path, columns=columns)

    monkeypatch.setattr(tables.pd, "read_parquet", one)
    monkeypatch.setattr(pool, "read_table", lambda *args: pytest.fail("the whole file is read"))
    monkeypatch.setattr(encoded, "PIECE", 100)  # few rows at a time
    found = encode_table(path, tmp_path / "data")
    monkeypatch.undo()
    assert asked
    assert {len(columns) for columns in asked} == {1}
    assert found.fingerprint == from_table(path).fingerprint


def test_rows_are_encoded_like_those_of_other_data(tmp_path):
    path = tmp_path / "t.parquet"
    mixed().to_parquet(path)
    schema = from_table(frame(clients=4, rows=30)).schema
    assert isinstance(schema, Schema)
    assert (
        encode_table(path, tmp_path / "data", schema=schema).fingerprint
        == from_table(path, schema=schema).fingerprint
    )


def test_it_is_a_data_set_by_name(tmp_path):
    path = tmp_path / "t.parquet"
    mixed().to_parquet(path)
    made = encode_table(path, tmp_path / "data")
    data = load({"name": "encoded", "path": str(tmp_path / "data"), "title": "mine"})
    assert (data.name, data.fingerprint) == ("mine", made.fingerprint)
    assert from_folder(tmp_path / "data").name == str(path)
    with pytest.raises(ConfigError, match="needs path"):
        load({"name": "encoded"})
    with pytest.raises(StoreError, match="No such file"):
        load({"name": "encoded", "path": str(tmp_path)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_bytes(b"PAR1 nothing"), "cannot be read as Parquet: it is damaged"),
        (lambda path: mixed().drop(columns="client").to_parquet(path), "no client column 'client'"),
        (lambda path: mixed().iloc[:0].to_parquet(path), "the table has no rows"),
        (lambda path: mixed().assign(age=np.inf).to_parquet(path), "column 'age' is infinite in row 1"),
        (lambda path: mixed().assign(label="x").to_parquet(path), "label"),
    ],
)
def test_what_cannot_be_encoded_is_refused_as_by_the_table_and_leaves_nothing(tmp_path, change, message):
    path = tmp_path / "t.parquet"
    mixed().to_parquet(path)
    change(path)
    errors = list[str]()
    for make in (lambda: from_table(path), lambda: encode_table(path, tmp_path / "new" / "data")):
        with pytest.raises(DataError, match=message) as error:
            make()
        errors.append(str(error.value))
    assert errors[0] == errors[1]
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_damaged_inside_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    mixed().to_parquet(path, compression=None)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)  # the first column's pages; the list of columns at the end is whole
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read as Parquet: it is damaged"):
        encode_table(path, tmp_path / "data")
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def test_a_folder_that_is_not_empty_is_refused_before_the_table_is_read(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine").write_text("x")
    with pytest.raises(StoreError, match="is there already"):
        encode_table(Path("nowhere.parquet"), tmp_path / "data")
    assert (tmp_path / "data" / "mine").read_text() == "x"
