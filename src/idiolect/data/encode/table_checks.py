"""Read and check a table. Each check raises `DataError` naming file, column, row and client.

The first row of data is row 1.
"""

import re
import zlib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from idiolect.core.errors import DataError
from idiolect.data.encode.columns import column_of, is_numeric
from idiolect.data.federated import SPLITS
from idiolect.data.partition import Indices

_PARQUET = (".parquet", ".pq")
_SEPARATORS = {"comma": ",", "tab": "\t"}


def format_of(path: Path) -> str:
    """How a table is read, by its file's suffix (before .gz): Parquet, TSV (tab-separated), else CSV."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    if last and last[0] in _PARQUET:
        return "Parquet"
    return "TSV" if last == [".tsv"] else "CSV"


def read_table(source: str | Path | pd.DataFrame, client: str) -> tuple[pd.DataFrame, str]:
    """(the table, its name for messages); the file's suffix says the format, see `format_of`."""
    if isinstance(source, pd.DataFrame):
        table, where = source.reset_index(drop=True), "table"
    else:
        path, where = Path(source).expanduser(), str(source)
        if not path.is_file():
            raise DataError(f"{where}: no such file")
        kind = format_of(path)
        separator = "tab" if kind == "TSV" else "comma"
        try:
            if kind == "Parquet":
                table = pd.read_parquet(path)
            else:  # client names stay text: 007 is not 7
                table = pd.read_csv(path, sep=_SEPARATORS[separator], dtype={client: str}, low_memory=False)
        except ImportError as error:
            raise DataError(
                f"{where}: reading Parquet needs pyarrow; pip install 'idiolect[parquet]', or give a CSV file"
            ) from error
        except (ValueError, OSError, EOFError, zlib.error) as error:  # every parser error of pandas is a ValueError
            reason = " ".join(str(error).split())
            told = kind if kind == "Parquet" else f"{kind}, {separator}-separated"
            raise DataError(f"{where}: cannot be read as {told}: {reason}") from error
        if kind != "Parquet" and len(table.columns) == 1:
            raise DataError(
                f"{where}: read as {separator}-separated it has one column, '{str(table.columns[0])[:60]}'; "
                "name a comma-separated file .csv and a tab-separated one .tsv"
            )
        table = table.reset_index(drop=True)
    table.columns = [str(column) for column in table.columns]
    if twice := [str(column) for column in table.columns[table.columns.duplicated()]]:
        raise DataError(f"{where}: column '{twice[0]}' appears more than once")
    if len(table) == 0:
        raise DataError(f"{where}: the table has no rows")
    return table, where


def check_column(table: pd.DataFrame, column: str, role: str, where: str) -> None:
    """Check that the column exists; the error suggests the nearest name."""
    if column in table.columns:
        return
    options = [str(name) for name in table.columns]
    near = get_close_matches(column, options, n=1, cutoff=0.5)
    shown = ", ".join(options[:20]) + (", …" if len(options) > 20 else "")
    hint = f"did you mean '{near[0]}'?" if near else f"it has: {shown}"
    raise DataError(f"{where}: no {role} '{column}'; {hint}")


def client_names(column: pd.Series, where: str) -> Shaped[np.ndarray, "n"]:
    """The client's name in every row; none may be missing or blank."""
    _check_complete(column, "the client of every row must be known", where)
    names = column.astype(str).to_numpy(dtype=object)
    if blank := [row for row, name in enumerate(names) if not name.strip()]:
        raise DataError(f"{where}: column '{column.name}' has a blank client name in row {blank[0] + 1}")
    return names.astype(str)


def rows_of_clients(owners: Shaped[np.ndarray, "n"]) -> dict[str, Indices]:
    """Each client's rows; clients in natural order: 'ward 2' before 'ward 10'."""
    names, codes, sizes = np.unique(owners, return_inverse=True, return_counts=True)
    groups = np.split(np.argsort(codes.reshape(-1), kind="stable"), np.cumsum(sizes)[:-1])
    rows = dict(zip(names.tolist(), groups, strict=True))
    return {name: rows[name] for name in sorted(rows, key=_natural)}


def check_labels(column: pd.Series, owners: Shaped[np.ndarray, "n"], where: str) -> Shaped[np.ndarray, "n"]:
    """The labels as an array; none may be missing or infinite."""
    _check_complete(column, "remove these rows or fill the labels", where)
    if pd.api.types.is_bool_dtype(column.dtype) or not is_numeric(column):
        return column.astype(str).to_numpy(dtype=object).astype(str)
    labels = column.to_numpy(dtype=np.int64 if pd.api.types.is_integer_dtype(column.dtype) else np.float64)
    _check_finite(column, owners, where)
    return labels


def check_features(table: pd.DataFrame, features: Sequence[str], owners: Shaped[np.ndarray, "n"], where: str) -> None:
    """Check that there are features, each numeric or categorical, and none infinite."""
    if not features:
        raise DataError(f"{where}: no feature column beside the client and label columns")
    for name in features:
        column = column_of(table, name)
        kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
        if (kind in "mM" and kind) or isinstance(column.dtype, pd.DatetimeTZDtype):
            raise DataError(
                f"{where}: column '{name}' holds dates; turn it into numbers or leave it out (ignore=['{name}'])"
            )
        if kind == "c":
            raise DataError(f"{where}: column '{name}' holds complex numbers; split it into two columns")
        if is_numeric(column):
            _check_finite(column, owners, where)


def split_of_rows(column: pd.Series, where: str) -> list[str]:
    """The split of every row."""
    _check_complete(column, f"every row must be one of {', '.join(SPLITS)}", where)
    values = [str(value).strip().lower() for value in column]
    for row, value in enumerate(values):
        if value not in SPLITS:
            raise DataError(
                f"{where}: column '{column.name}' has '{value}' in row {row + 1}; "
                f"a split is one of {', '.join(SPLITS)} (name another column with split=, or leave it out: ignore=)"
            )
    return values


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key: the numbers in a name count by value."""
    parts = re.findall(r"\d+|\D+", name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def _check_complete(column: pd.Series, remedy: str, where: str) -> None:
    missing = np.flatnonzero(column.isna().to_numpy(dtype=bool))
    if len(missing):
        what = "value is" if len(missing) == 1 else "values are"
        raise DataError(
            f"{where}: column '{column.name}': {len(missing)} {what} missing, first in row {missing[0] + 1}; {remedy}"
        )


def _check_finite(column: pd.Series, owners: Shaped[np.ndarray, "n"], where: str) -> None:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise DataError(
            f"{where}: column '{column.name}' is infinite in row {infinite[0] + 1} (client "
            f"'{owners[infinite[0]]}'; {len(infinite)} in all); replace by a number or leave the cell empty"
        )
