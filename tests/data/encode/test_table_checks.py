"""What a table is refused for: file, column, row and client are named."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.encode.table_checks import (
    check_column,
    check_features,
    check_labels,
    client_names,
    read_table,
    rows_of_clients,
    split_of_rows,
)

TABLE = pd.DataFrame({"who": ["007", "7", "007"], "age": [1.5, 2.0, 3.0], "label": [0, 1, 0]})
OWNERS = np.array(["a", "b", "b", "c"])


def series(values: Any, **options: Any) -> pd.Series:
    return pd.Series(values, name="v", **options)


@pytest.mark.parametrize("kind", ["csv", "txt", "tsv", "parquet", "PQ"])
def test_files_are_read_by_their_ending_and_names_stay_text(tmp_path, kind: str) -> None:
    path = tmp_path / f"t.{kind}"
    if kind in ("parquet", "PQ"):
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    table, where = read_table(path, "who")
    assert where == str(path)
    assert table["who"].tolist() == ["007", "7", "007"]
    assert table["age"].tolist() == [1.5, 2.0, 3.0]


def test_a_frame_is_not_changed_and_its_rows_count_from_the_first() -> None:
    frame = TABLE.set_axis([5, 9, 2]).rename(columns={"age": 3})
    table, where = read_table(frame, "who")
    assert where == "table"
    assert table.index.tolist() == [0, 1, 2]
    assert list(table.columns) == ["who", "3", "label"]
    assert frame.index.tolist() == [5, 9, 2]


def test_tables_that_cannot_be_read(tmp_path) -> None:
    path = tmp_path / "t.csv"
    with pytest.raises(DataError, match=r"t\.csv: no such file"):
        read_table(path, "who")
    with pytest.raises(DataError, match="no such file"):
        read_table(tmp_path, "who")
    path.write_text("who\tage\n7\t3\n")
    with pytest.raises(
        DataError, match=r"read as comma-separated it has one column, 'who.age'; name a comma-separated"
    ):
        read_table(path, "who")
    path.write_text("who,age\n")
    with pytest.raises(DataError, match=r"t\.csv: the table has no rows"):
        read_table(path, "who")
    path.write_text('who,age\n"1')
    with pytest.raises(DataError, match=r"t\.csv: cannot be read as CSV, comma-separated: ") as error:
        read_table(path, "who")
    assert "\n" not in str(error.value)
    path.rename(tmp_path / "t.pq")
    with pytest.raises(DataError, match=r"t\.pq: cannot be read as Parquet: "):
        read_table(tmp_path / "t.pq", "who")
    with pytest.raises(DataError, match="table: column 'age' appears more than once"):
        read_table(pd.concat([TABLE, TABLE[["age"]]], axis=1), "who")


def test_parquet_without_its_library_says_what_to_install(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> None:
        raise ImportError("no engine")

    monkeypatch.setattr(pd, "read_parquet", missing)
    (tmp_path / "t.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"needs pyarrow; pip install 'idiolect\[parquet\]'"):
        read_table(tmp_path / "t.parquet", "who")


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


def test_client_names_are_strings_and_never_blank() -> None:
    assert client_names(series([3, 10, 3]), "t").tolist() == ["3", "10", "3"]
    with pytest.raises(DataError, match="t: column 'v' has a blank client name in row 2"):
        client_names(series(["a", " ", ""]), "t")
    with pytest.raises(DataError, match="column 'v': 1 value is missing, first in row 3; the client of every row"):
        client_names(series(["a", "b", None]), "t")
    with pytest.raises(DataError, match="2 values are missing, first in row 1"):
        client_names(series([None, "b", None]), "t")


def test_the_rows_of_clients_in_natural_order() -> None:
    owners = np.array(["ward 10", "ward 2", "b3", "ward 10", "3", "ward 2", "b"])
    rows = rows_of_clients(owners)
    assert list(rows) == ["3", "b", "b3", "ward 2", "ward 10"]
    assert {name: own.tolist() for name, own in rows.items()} == {
        "3": [4],
        "b": [6],
        "b3": [2],
        "ward 2": [1, 5],
        "ward 10": [0, 3],
    }
    assert list(rows_of_clients(np.array(["a2b10", "a10b1", "a2b9"]))) == ["a2b9", "a2b10", "a10b1"]


@pytest.mark.parametrize(
    ("values", "expected", "dtype"),
    [
        ([3, 1, 2, 1], [3, 1, 2, 1], np.int64),
        ([0.5, 1, 2, 3], [0.5, 1, 2, 3], np.float64),
        ([True, False, True, True], ["True", "False", "True", "True"], None),
        (["x", "y", "x", "z"], ["x", "y", "x", "z"], None),
        (pd.array([1, 2, 3, 4], dtype="Int64"), [1, 2, 3, 4], np.int64),
        (pd.Categorical(["p", "q", "p", "q"]), ["p", "q", "p", "q"], None),
    ],
)
def test_labels_are_integers_numbers_or_strings(values: Any, expected: list[Any], dtype: Any) -> None:
    labels = check_labels(series(values), OWNERS, "t")
    assert labels.tolist() == expected
    assert labels.dtype == dtype if dtype else labels.dtype.kind == "U"


def test_labels_that_are_missing_or_infinite() -> None:
    with pytest.raises(DataError, match="column 'v': 1 value is missing, first in row 2; remove these rows"):
        check_labels(series([1, None, 2, 3]), OWNERS, "t")
    with pytest.raises(DataError, match=r"column 'v' is infinite in row 3 \(client 'b'; 2 in all\); replace"):
        check_labels(series([1, 2, np.inf, -np.inf]), OWNERS, "t")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.date_range("2020-01-01", periods=4), r"column 'f' holds dates.*ignore=\['f'\]"),
        (pd.date_range("2020-01-01", periods=4, tz="UTC"), "holds dates"),
        (pd.to_timedelta([1, 2, 3, 4], unit="s"), "holds dates"),
        ([1j, 2, 3, 4], "column 'f' holds complex numbers; split it"),
        ([1, 2, 3, np.inf], r"column 'f' is infinite in row 4 \(client 'c'; 1 in all\)"),
    ],
)
def test_features_that_cannot_be_used(column: Any, message: str) -> None:
    table = pd.DataFrame({"g": range(4), "f": column})
    with pytest.raises(DataError, match=message):
        check_features(table, ["g", "f"], OWNERS, "t")
    check_features(table, ["g"], OWNERS, "t")


def test_features_may_be_text_or_missing_but_must_be_there() -> None:
    check_features(pd.DataFrame({"f": ["a", None, "b", "c"], "g": [1, np.nan, 2, 3]}), ["f", "g"], OWNERS, "t")
    with pytest.raises(DataError, match="t: no feature column beside"):
        check_features(TABLE, [], OWNERS, "t")


def test_the_split_of_every_row() -> None:
    assert split_of_rows(series(["train", " Test ", "VALIDATION"]), "t") == ["train", "test", "validation"]
    with pytest.raises(
        DataError, match=r"t: column 'v' has 'dev' in row 2; a split is one of train, validation, test"
    ):
        split_of_rows(series(["train", "dev", "oops"]), "t")
    with pytest.raises(DataError, match="1 value is missing, first in row 2; every row must be one of train"):
        split_of_rows(series(["train", None]), "t")
