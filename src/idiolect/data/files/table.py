"""Read a table from a file: CSV in any usual dialect, Parquet, JSON, Excel. Errors name the file and the remedy."""

import codecs
import csv
import gzip
import io
import os
import warnings
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from jaxtyping import UInt64
from pandas.util import hash_pandas_object

from idiolect.core.errors import DataError, kind_of, reason_of
from idiolect.core.files import json_of
from idiolect.data.files.codes import columns_of_codes

Read = tuple[pd.DataFrame, list[str]]
"""The rows of a file, and notes on how it was read."""

_OLD = b"\xd0\xcf\x11\xe0"  # how Excel 97 to 2003 and every workbook with a password begins


_DAMAGED = "it is damaged or not a Parquet file; copy or write it again"


def read_parquet(path: Path, as_text: Sequence[str] = ()) -> Read:
    """Read a Parquet file; its columns have types. Raises `ValueError` if it is damaged."""
    del as_text
    return _by_library(lambda: pd.read_parquet(path), _DAMAGED), []


def read_workbook(path: Path, as_text: Sequence[str] = ()) -> Read:
    """Read the first sheet of a workbook of Excel. as_text: columns that stay text.

    Raises `ValueError` for an old, locked, damaged or foreign file.
    """
    with path.open("rb") as file:
        start = file.read(len(_OLD))
    if start == _OLD:
        old = "it is a workbook of Excel 97 to 2003 or has a password"
        raise ValueError(f"{old}; save it as .xlsx without a password, or as CSV")
    if start[:2] != b"PK":
        raise ValueError("it is not a workbook; save it as .xlsx or as CSV")
    damaged = "it is damaged or not a workbook of Excel; save it again as .xlsx, or as CSV"

    def read() -> pd.DataFrame:
        return pd.read_excel(path, dtype=dict.fromkeys(as_text, str), engine="openpyxl")

    return _by_library(read, damaged), ["the first sheet of the workbook is read"]


def _by_library(read: Callable[[], pd.DataFrame], damaged: str) -> pd.DataFrame:
    """What a library reads. Raises `ValueError(damaged)` for whatever it meets in a damaged or foreign file.

    Such libraries raise errors of many kinds (of their archive, their XML, a missing key) and warn of styles.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read()
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        raise ValueError(damaged) from error


TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".gz")
"""Suffixes of files that are read as tables."""
_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_EXTRA = {"Parquet": ("pyarrow", "parquet"), "Excel": ("openpyxl", "excel")}
_SAMPLE = 2**16
_PIECE = 2**20


class ParquetColumns:
    """The columns of a Parquet file, each read when it is asked for: as much of a DataFrame as a schema is fitted on.

    Every column is that of `read_parquet`, in type and values.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            described, count = file.schema_arrow, file.metadata.num_rows
        indices = [
            name for name in (described.pandas_metadata or {}).get("index_columns", []) if isinstance(name, str)
        ]
        self._path, self.index = path, pd.RangeIndex(count)
        self.columns = pd.Index([name for name in described.names if name not in indices], dtype=object)

    def __len__(self) -> int:
        """Rows."""
        return len(self.index)

    def __getitem__(self, name: str) -> pd.Series:
        """Read a column. Raises `DataError` if the file is damaged there."""
        try:
            frame = _by_library(lambda: pd.read_parquet(self._path, columns=[name]), _DAMAGED)
        except ValueError as error:
            raise DataError(f"{self._path}: cannot be read as Parquet: {error}") from error
        return cast(pd.Series, frame.reset_index(drop=True)[name])


Columns = pd.DataFrame | ParquetColumns
"""A table, in memory or in its file."""


class Table(NamedTuple):
    """A table's rows, its name for messages, and how the file was read where that is not evident."""

    rows: pd.DataFrame
    where: str
    notes: tuple[str, ...] = ()

    @property
    def comma_likely(self) -> bool:
        """Whether numbers probably have a decimal comma: the file's values are separated by semicolons."""
        return any("semicolon" in note for note in self.notes)


def format_of(path: Path) -> str:
    """How a table is read, by its file's suffix (before .gz): Parquet, JSON, Excel, else CSV."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    last = suffixes[-2:-1] if suffixes[-1:] == [".gz"] else suffixes[-1:]
    kinds = {".parquet": "Parquet", ".pq": "Parquet", ".json": "JSON", ".jsonl": "JSON", ".ndjson": "JSON"}
    return {**kinds, ".xlsx": "Excel", ".xls": "Excel"}.get(last[0] if last else "", "CSV")


def read_table(source: str | os.PathLike[str] | pd.DataFrame, as_text: Sequence[str] = ()) -> Table:
    """Read a file, or take a DataFrame. as_text: columns of a CSV file that stay text, such as clients: 007 is not 7.

    The separator and the encoding of a CSV file are found out and, where they are not the usual ones, noted. Raises
    `DataError` for what cannot be read, for a row longer than the header, and for a column named twice.
    """
    if isinstance(source, pd.DataFrame):
        rows, where, notes = source.reset_index(drop=True), "table", list[str]()
    elif not isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(f"a table is the path of a file or a pandas DataFrame, not {kind_of(source)}")
    else:
        path, where = Path(source).expanduser(), str(source)
        _check_file(path, where)
        kind = format_of(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                rows, notes = _READERS[kind](path, as_text)
        except ImportError as error:
            raise _missing(kind, where) from error
        except pd.errors.ParserWarning as error:
            raise DataError(f"{where}: rows have more values than the header has names; add names") from error
        except EOFError as error:
            raise DataError(f"{where}: cannot be read as {kind}: the file ends in the middle of its .gz") from error
        except (ValueError, OSError, zlib.error, csv.Error) as error:  # every parser error of pandas is a ValueError
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise DataError(f"{where}: cannot be read as {kind}: {reason}") from error
        if kind == "CSV" and len(rows.columns) == 1:
            raise DataError(
                f"{where}: it has one column, '{str(rows.columns[0])[:60]}'; separate values by commas, semicolons "
                "or tabs"
            )
        rows = rows.reset_index(drop=True)
    rows.columns = [str(column) for column in rows.columns]
    _check_table(rows, where)
    return Table(rows, where, tuple(notes))


def read_columns(source: str | os.PathLike[str]) -> ParquetColumns:
    """The columns of a Parquet file. Raises `DataError` for what cannot be read, as `read_table` does."""
    path, where = Path(source).expanduser(), str(source)
    _check_file(path, where)
    try:
        columns = ParquetColumns(path)
    except ImportError as error:
        raise _missing("Parquet", where) from error
    except Exception as error:  # of many kinds in a damaged or foreign file, see `_by_library`
        raise DataError(f"{where}: cannot be read as Parquet: {_DAMAGED}") from error
    _check_table(columns, where)
    return columns


def _missing(kind: str, where: str) -> DataError:
    package, extra = _EXTRA.get(kind, ("another package", "all"))
    return DataError(f"{where}: reading {kind} needs {package}; pip install 'idiolect[{extra}]', or give a CSV file")


def _check_table(rows: Columns, where: str) -> None:
    if twice := [str(column) for column in rows.columns[rows.columns.duplicated()]]:
        raise DataError(f"{where}: column '{twice[0]}' appears more than once; name or remove one of them")
    if len(rows) == 0:
        raise DataError(f"{where}: the table has no rows")


def check_column(table: Columns, column: str, role: str, where: str) -> None:
    """Check that the column exists; the error suggests the nearest name."""
    if column in table.columns:
        return
    options = [str(name) for name in table.columns]
    near = get_close_matches(column, options, n=1, cutoff=0.5)
    shown = ", ".join(options[:20]) + (", …" if len(options) > 20 else "")
    hint = f"did you mean '{near[0]}'?" if near else f"it has: {shown}"
    raise DataError(f"{where}: no {role} '{column}'; {hint}")


def column_name(name: object, role: str) -> str:
    """Return a column's name as text, as `read_table` names columns: a DataFrame's column 0 is '0'."""
    if name is None or isinstance(name, list | dict | set | pd.Series | pd.DataFrame):
        raise DataError(f"the {role} must be the name of a column, not {kind_of(name)}")
    return str(name)


def column_names(names: object, role: str) -> tuple[str, ...]:
    """Return columns' names as text; a single name stands for a list of one."""
    several = names if isinstance(names, list | tuple | set | frozenset | dict | pd.Index) else (names,)
    return tuple(column_name(name, role) for name in cast(Sequence[object], several))


def column_of(table: Columns, name: str) -> pd.Series:
    """One column of a table. Raises `DataError` if two have its name."""
    column = table[name]
    if isinstance(column, pd.DataFrame):
        raise DataError(f"column '{name}' appears more than once; name or remove one of them")
    return cast(pd.Series, column)


def identity_of(table: Columns) -> UInt64[np.ndarray, "n"]:
    """A hash of every row, before anything is fitted: pandas' own of a DataFrame, made column by column."""
    for as_text in (False, True):
        found, factor = np.full(len(table), 0x345678, np.uint64), np.uint64(1_000_003)
        with suppress(TypeError), np.errstate(over="ignore"):  # values that cannot be hashed: their text is
            for place, name in enumerate(table.columns):
                column = column_of(table, name)
                column = column.astype(str) if as_text else column
                found ^= hash_pandas_object(column, index=False).to_numpy()  # pyright: ignore[reportCallIssue]
                found *= factor
                factor += np.uint64(82_520 + 2 * (len(table.columns) - place))
            return found + np.uint64(97_531)
    raise AssertionError("text can be hashed")


def _check_file(path: Path, where: str) -> None:
    try:
        path.stat()
    except FileNotFoundError:
        raise DataError(f"{where}: no such file") from None
    except (OSError, ValueError) as error:  # a loop of links, a name too long, a null byte
        raise DataError(f"{where}: cannot be opened: {reason_of(error)}") from error
    if path.is_dir():
        raise DataError(f"{where}: is a folder; give the file of a table")
    if not path.is_file():
        raise DataError(f"{where}: is no regular file (a pipe, a device); save its content to a file first")


def _csv(path: Path, as_text: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    packed = path.suffix.lower() == ".gz"
    # Into memory of NumPy's, which has large pages: a third of the time of `read_bytes`.
    content = memoryview(gzip.decompress(path.read_bytes()) if packed else np.fromfile(path, np.uint8).data)
    encoding, notes = _encoding(content), list[str]()
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"the file is read as {encoding} text")
    begin = bytes(content[:_SAMPLE])
    if b"\0" in begin and not encoding.startswith("utf-16"):
        raise ValueError("it is no text")
    sample = begin.decode(encoding, errors="ignore")
    usual = "\t" if ".tsv" in [suffix.lower() for suffix in path.suffixes] else ","
    separator = _separator(sample, usual)
    if separator != usual:
        notes.append(f"the file is read as {_SEPARATORS[separator]}-separated")
    header = next(csv.reader(_lines(sample), delimiter=separator), [])
    names = [name.strip() for name in header if name.strip()]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"column '{twice[0]}' appears more than once; name or remove one of them")
    codes = columns_of_codes(content if encoding != "utf-16" else bytes(content).decode(encoding).encode(), separator)
    again = content.obj if packed else None
    del content  # pandas needs much memory of its own, and reads the file again

    def read(**options: Any) -> pd.DataFrame:
        source = path if again is None else io.BytesIO(again)
        options |= {"sep": separator, "encoding": encoding, "index_col": False, "compression": None}
        return pd.read_csv(source, **options)  # pyright: ignore

    rows = _in_pieces(read, as_text)
    numbers = [
        name
        for place, name in enumerate(rows.columns)
        if (codes is None or place in codes) and pd.api.types.is_numeric_dtype(rows[name].dtype)
    ]
    if numbers:
        words = read(dtype=str, usecols=numbers)
        for name in numbers:
            if bool(words[name].str.fullmatch(r"\s*[+-]?0\d+\s*", na=False).any()):
                rows[name] = words[name]
    rows.columns = [str(name).strip() for name in rows.columns]
    return rows, notes


def _in_pieces(read: Callable[..., pd.DataFrame], as_text: Sequence[str]) -> pd.DataFrame:
    """Read a file piece by piece, a quarter faster than at once; a column's type is that of all its values.

    pandas finds the type of each piece. Where pieces do not fit (numbers here, words there), it warns and mixes them;
    these columns are read again at once.
    """
    text = dict.fromkeys(as_text, str)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", pd.errors.DtypeWarning)
        rows = read(dtype=text)
    if any(issubclass(warning.category, pd.errors.DtypeWarning) for warning in caught):
        mixed = [name for name in rows.columns if rows[name].dtype == object]
        again = read(dtype={name: text[name] for name in mixed if name in text}, usecols=mixed, low_memory=False)
        for name in mixed:
            rows[name] = again[name]
    return rows


def _encoding(content: memoryview) -> str:
    """UTF-8 if the file is that, UTF-16 if it says so, else what Windows writes in the west."""
    begin = bytes(content[:3])
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if not _is_utf8(content):
        return "cp1252"
    return "utf-8-sig" if begin == b"\xef\xbb\xbf" else "utf-8"


def _is_utf8(content: memoryview) -> bool:
    """Whether the bytes are UTF-8, read piece by piece: as one text they take up to four times the memory."""
    pieces = [content[begin : begin + _PIECE] for begin in range(0, len(content), _PIECE)]
    if all(bytes(piece).isascii() for piece in pieces):
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _lines(sample: str) -> io.StringIO:
    r"""The text by lines, whether these end with \n, \r\n or, as old Macs wrote, \r."""
    return io.StringIO(sample, newline=None)


def _separator(sample: str, usual: str) -> str:
    """The separator by which the first lines have the most values, each line as many; `usual` if none has two."""

    def columns(separator: str) -> int:
        rows = list(islice(csv.reader(_lines(sample), delimiter=separator), 6))
        whole = rows[:-1] if 2 < len(rows) < 6 else rows  # the last one may be cut
        lengths = {len(row) for row in whole if row}
        return max(lengths) if len(lengths) == 1 else len(rows[0]) if rows and separator == usual else 1

    counts = {separator: columns(separator) for separator in (usual, *_SEPARATORS)}
    return max(counts, key=lambda separator: (counts[separator], separator == usual))


def _json(path: Path, as_text: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    content = gzip.decompress(path.read_bytes()) if path.suffix.lower() == ".gz" else path.read_bytes()
    text = content.decode("utf-8-sig")
    lines = any(suffix.lower() in (".jsonl", ".ndjson") for suffix in path.suffixes)
    values = [json_of(line) for line in text.splitlines() if line.strip()] if lines else json_of(text)
    if not isinstance(values, list) or not all(isinstance(row, dict) for row in cast(list[Any], values)):
        raise ValueError('write a list of objects, one per row: [{"client": "a", "label": 1}, ...]')
    rows = pd.DataFrame(cast(list[Any], values))
    for name in as_text:
        if name in rows:
            rows[name] = rows[name].map(str, na_action="ignore")
    return rows, ["the file is read as JSON, one object per row"]


_READERS = {"CSV": _csv, "Parquet": read_parquet, "JSON": _json, "Excel": read_workbook}
