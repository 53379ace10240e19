"""Read tables in binary formats by the libraries for them: Parquet, and workbooks of Excel."""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

Read = tuple[pd.DataFrame, list[str]]
"""The rows of a file, and notes on how it was read."""

_OLD = b"\xd0\xcf\x11\xe0"  # how Excel 97 to 2003 and every workbook with a password begins


def read_parquet(path: Path, as_text: Sequence[str] = ()) -> Read:
    """Read a Parquet file, whose columns have types of their own. Raises `ValueError` if it is damaged."""
    del as_text
    damaged = "it is damaged or not a Parquet file; copy or write it again"
    return _by_library(lambda: pd.read_parquet(path), damaged), []


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
