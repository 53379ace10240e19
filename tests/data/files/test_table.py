"""Tables in binary formats: what is broken, cut or foreign is refused in one line."""

import gzip
import io
import os
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from idiolect.core.errors import DataError, IdiolectError
from idiolect.data.files.table import check_column, column_name, column_names, read_table
from idiolect.data.inspection import inspect_table

ROWS = "client,x,label\n" + "".join(f"{'ab'[i % 2]},{i / 7:.3f},{i % 3 % 2}\n" for i in range(12))


def workbook(**changed: bytes | None) -> bytes:
    """A workbook of Excel; changed: the new content of its part whose name ends so, or None to leave it out."""
    good, out = io.BytesIO(), io.BytesIO()
    pd.read_csv(io.StringIO(ROWS)).to_excel(good, index=False)
    with zipfile.ZipFile(good) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            stem = name.rpartition("/")[2].partition(".")[0].strip("[]")
            content = changed.get(stem, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return out.getvalue()


OPEN_DOCUMENT = io.BytesIO()
with zipfile.ZipFile(OPEN_DOCUMENT, "w") as archive:
    archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    archive.writestr("content.xml", "<a/>")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a workbook; save it as .xlsx or as CSV"),
        (b"client,x\na,1\n", "not a workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "Excel 97 to 2003 or has a password"),
        (workbook()[:1000], "damaged or not a workbook of Excel; save it again"),
        (workbook()[:-30], "damaged"),
        (workbook(workbook=None), "damaged"),
        (workbook(workbook=b"<x"), "damaged"),
        (workbook(sheet1=b"<worksheet><sheetData><row"), "damaged"),
        (workbook(styles=b"<x"), "damaged"),
        (workbook(Content_Types=None), "damaged"),
        (OPEN_DOCUMENT.getvalue(), "damaged or not a workbook"),
    ],
)
@pytest.mark.parametrize("name", ["own.xlsx", "own.xls"])
def test_a_workbook_that_is_broken_cut_or_foreign_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=rf"{name}: cannot be read as Excel: it (is|has) .*{message}"):
            read_table(tmp_path / name)


def test_a_workbook_without_styles_is_read_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "own.xlsx").write_bytes(workbook(styles=b"<a/>"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_table(tmp_path / "own.xlsx").rows.shape == (12, 3)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1 not really PAR1"])
def test_a_parquet_file_that_is_damaged_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "own.parquet").write_bytes(content)
    with pytest.raises(
        DataError, match=r"own\.parquet: cannot be read as Parquet: it is damaged or not a Parquet file"
    ):
        read_table(tmp_path / "own.parquet")


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
    (tmp_path / "t.xlsx").write_bytes(b"PK")
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


def test_a_columns_type_is_that_of_all_its_values(tmp_path: Path) -> None:
    """pandas reads a large file in pieces, of 2^20 values here, and would take the type of each."""
    few, many = 3, 20_000
    columns = {
        "client": ["1"] * (many + few),
        "whole": ["1"] * many + ["2"] * few,
        "number": ["1"] * many + ["0.5"] * few,
        "gaps": ["1"] * many + [""] * few,
        "words": ["1"] * many + ["one"] * few,
        "late": [""] * many + ["x"] * few,
        "truth": ["True"] * many + ["1"] * few,
        "code": ["1"] * many + ["007"] * few,
        **{f"x{number}": ["1"] * (many + few) for number in range(56)},
    }
    with pytest.warns(pd.errors.DtypeWarning):
        pd.read_csv(io.StringIO(pd.DataFrame(columns).to_csv(index=False)))
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = read_table(tmp_path / "t.csv", ["client"]).rows
    at_once = pd.read_csv(tmp_path / "t.csv", dtype={"client": str, "code": str}, low_memory=False)
    pd.testing.assert_frame_equal(rows, at_once)
    assert rows["words"].map(type).eq(str).all()
    assert rows["truth"].iloc[[0, -1]].tolist() == ["True", "1"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_the_encoding_of_a_file_is_found_wherever_its_first_letter_with_an_accent_is(
    tmp_path: Path, encoding: str
) -> None:
    # The file is looked through in pieces: the letter's two bytes are in two of them, in the first, in the last.
    for place in (2**20 - 1, 2**20 - 2, 2**20):
        text = "client,label\n" + "a" * (place - 16) + ",0\n\u00e9\u00e9,1"
        assert text.index("\u00e9") == place
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        assert read_table(tmp_path / "t.csv").rows["client"].iloc[1] == "\u00e9\u00e9"


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


@pytest.mark.parametrize("name", ["own.csv", "own.tsv", "own.csv.gz"])
@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_end_as_any_machine_writes_them(tmp_path: Path, name: str, end: str) -> None:
    text = ROWS.replace("\n", end) if name != "own.tsv" else ROWS.replace("\n", end).replace(",", "\t")
    content = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table = read_table(tmp_path / name).rows
    assert table.shape == (12, 3)
    assert table["label"].tolist() == [i % 3 % 2 for i in range(12)]


def test_a_code_at_the_start_of_a_line_that_ends_with_cr_keeps_its_zero(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_bytes(b"id,x\r007,1\r8,2\r")
    assert read_table(tmp_path / "own.csv").rows["id"].tolist() == ["007", "8"]


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("name", ["own.json", "own.jsonl"])
@pytest.mark.parametrize("content", [DEEP, f'{{"client": {DEEP}}}', f'[{{"client": {DEEP}}}]'])
def test_json_that_is_nested_too_deeply_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=f"{name}: cannot be read as JSON: its lists or tables are nested too deeply"):
        read_table(tmp_path / name)


def test_a_client_that_json_leaves_open_is_missing_and_not_named_none(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text('[{"who": "a", "x": 1}, {"who": null, "x": 2}]')
    assert read_table(tmp_path / "own.json", ["who"]).rows["who"].isna().tolist() == [False, True]


def test_names_of_columns_are_text() -> None:
    assert [column_name(name, "label column") for name in ("y", 0, 1.5, ("a", "b"))] == [
        "y",
        "0",
        "1.5",
        "('a', 'b')",
    ]
    assert column_names("xy", "columns of ignore") == ("xy",)
    assert column_names([0, "y"], "columns of ignore") == ("0", "y")
    with pytest.raises(DataError, match=r"^the label column must be the name of a column, not None$"):
        column_name(None, "label column")
    with pytest.raises(DataError, match="the columns of keep must be the name of a column, not a list"):
        column_names([["x"]], "columns of keep")


def whole_files() -> dict[str, bytes]:
    """A good table in every format."""
    frame = pd.read_csv(io.StringIO(ROWS))
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    lines = frame.to_json(orient="records", lines=True).encode()
    files = {"own.csv": ROWS.encode(), "own.csv.gz": gzip.compress(ROWS.encode()), "own.parquet": parquet.getvalue()}
    return files | {"own.xlsx": workbook(), "own.jsonl": lines, "own.json": frame.to_json(orient="records").encode()}


WHOLE = whole_files()
PIECES = st.one_of(
    st.binary(max_size=6), st.sampled_from([b"\r", b"\0", b'"', b"\xff\xfe", b"{", b"[" * 5000, b"1" * 5000])
)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), name=st.sampled_from(sorted(WHOLE)))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, data: st.DataObject, name: str) -> None:
    content = bytearray(WHOLE[name])
    for _ in range(data.draw(st.integers(1, 4))):
        first = data.draw(st.integers(0, len(content)))
        last = data.draw(st.one_of(st.integers(first, min(first + 4, len(content))), st.just(len(content))))
        content[first:last] = data.draw(PIECES)
    (tmp_path / name).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(IdiolectError):
            inspect_table(tmp_path / name)
