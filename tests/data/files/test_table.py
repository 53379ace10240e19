"""Tables in every usual format and dialect, and what is refused: each error names the file and the remedy."""

import gzip
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.files.table import check_column, read_table

TABLE = pd.DataFrame({"who": ["007", "7", "007"], "age": [1.5, 2.0, 3.0], "label": [0, 1, 0]})


@pytest.mark.parametrize("kind", ["csv", "txt", "tsv", "parquet", "PQ"])
def test_files_are_read_by_their_ending_and_names_stay_text(tmp_path, kind: str) -> None:
    path = tmp_path / f"t.{kind}"
    if kind in ("parquet", "PQ"):
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    table, where, _ = read_table(path, ["who"])
    assert where == str(path)
    assert table["who"].tolist() == ["007", "7", "007"]
    assert table["age"].tolist() == [1.5, 2.0, 3.0]


def test_a_frame_is_not_changed_and_its_rows_count_from_the_first() -> None:
    frame = TABLE.set_axis([5, 9, 2]).rename(columns={"age": 3})
    table, where, _ = read_table(frame, ["who"])
    assert where == "table"
    assert table.index.tolist() == [0, 1, 2]
    assert list(table.columns) == ["who", "3", "label"]
    assert frame.index.tolist() == [5, 9, 2]


def test_tables_that_cannot_be_read(tmp_path) -> None:
    path = tmp_path / "t.csv"
    with pytest.raises(DataError, match=r"t\.csv: no such file"):
        read_table(path, ["who"])
    with pytest.raises(DataError, match="is a folder; give the file of a table"):
        read_table(tmp_path, ["who"])
    path.write_text("who age\n7 3\n")
    with pytest.raises(DataError, match=r"it has one column, 'who.age'; separate values by commas"):
        read_table(path, ["who"])
    path.write_text("who,age\n")
    with pytest.raises(DataError, match=r"t\.csv: the table has no rows"):
        read_table(path, ["who"])
    path.write_text('who,age\n"1')
    with pytest.raises(DataError, match=r"t\.csv: cannot be read as CSV: ") as error:
        read_table(path, ["who"])
    assert "\n" not in str(error.value)
    path.rename(tmp_path / "t.pq")
    with pytest.raises(DataError, match=r"t\.pq: cannot be read as Parquet: "):
        read_table(tmp_path / "t.pq", ["who"])
    with pytest.raises(DataError, match="table: column 'age' appears more than once"):
        read_table(pd.concat([TABLE, TABLE[["age"]]], axis=1), ["who"])


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", missing)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"needs pyarrow; pip install 'idiolect\[parquet\]'"):
        read_table(tmp_path / "t.parquet", ["who"])


def test_a_column_that_is_not_there_is_answered_by_the_nearest_or_by_what_there_is() -> None:
    check_column(TABLE, "age", "column", "t")
    with pytest.raises(DataError, match=r"^t: no label column 'lable'; did you mean 'label'\?$"):
        check_column(TABLE, "lable", "label column", "t")
    with pytest.raises(DataError, match=r"^t: no column 'zz'; it has: who, age, label$"):
        check_column(TABLE, "zz", "column", "t")
    for columns, end in ((20, "c19$"), (21, "c19, …$")):
        wide = pd.DataFrame([range(columns)], columns=[f"c{k}" for k in range(columns)])
        with pytest.raises(DataError, match=f"it has: c0, .*{end}"):
            check_column(wide, "zz", "column", "t")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_dialect_of_a_csv_file_is_found(tmp_path: Path, separator: str, encoding: str) -> None:
    frame = TABLE.assign(ort=["Köln, Süd; 1|2", "Aix", "Gävle"])
    frame.to_csv(tmp_path / "t.csv", index=False, sep=separator, encoding=encoding)
    read = read_table(tmp_path / "t.csv", ["who"])
    pd.testing.assert_frame_equal(read.rows, frame, check_dtype=False)
    told = " ".join(read.notes)
    assert (encoding in told) == (encoding in ("utf-16", "cp1252"))
    assert ("-separated" in told) == (separator != ",")
    assert read.comma_likely == (separator == ";")


def test_json_rows_and_lines(tmp_path: Path) -> None:
    TABLE.to_json(tmp_path / "t.json", orient="records")
    TABLE.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for name in ("t.json", "t.jsonl"):
        rows, _, notes = read_table(tmp_path / name, ["who"])
        assert rows["who"].tolist() == ["007", "7", "007"]
        assert rows["age"].tolist() == [1.5, 2.0, 3.0]
        assert "JSON" in notes[0]


def test_excel_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_excel", missing)
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=r"needs openpyxl; pip install 'idiolect\[excel\]'"):
        read_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"who,age,age\n1,2,3\n", "column 'age' appears more than once"),
        (b"who,age\n1,2,3\n4,5,6\n", "more values than the header"),
        (b"who,age\n1,2\n4,5,6\n", "line 3"),
        (b"who,age\n\x00\x01", "it is no text"),
        (b"", "cannot be read as CSV"),
    ],
)
def test_text_that_is_no_table(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "t.csv")


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    os.mkfifo(tmp_path / "pipe.csv")
    whole = gzip.compress(b"who,age\n" + b"1,2\n" * 5000)
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    for name, message in (
        ("loop.csv", "cannot be opened: .*symbolic links"),
        ("pipe.csv", "is no regular file"),
        ("cut.csv.gz", "ends in the middle"),
        ("x" * 300 + ".csv", "cannot be opened: .*too long"),
        ("a\0b.csv", "cannot be opened: .*null"),
    ):
        with pytest.raises(DataError, match=message):
            read_table(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_leading_zeros_are_kept_in_columns_that_have_some(tmp_path: Path, encoding: str) -> None:
    text = "client,zip,gap,time,x,label\na,010,,08:30,0.5,0\nb,123,007,09:15,0,1\nb,-04,12,10:00,10,1\n"
    (tmp_path / "t.csv").write_bytes(text.encode(encoding))
    rows = read_table(tmp_path / "t.csv", ["client"]).rows
    assert rows["zip"].tolist() == ["010", "123", "-04"]
    assert rows["gap"].isna().tolist() == [True, False, False]
    assert rows["gap"].tolist()[1:] == ["007", "12"]
    assert rows["time"].tolist() == ["08:30", "09:15", "10:00"]
    assert rows["x"].tolist() == [0.5, 0, 10]
    assert rows["label"].tolist() == [0, 1, 1]
