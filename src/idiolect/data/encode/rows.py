"""Check a table's clients, labels and splits. Each check raises `DataError` naming file, column and row.

The first row of data is row 1.
"""

import re
from collections import Counter

import numpy as np
import pandas as pd
from jaxtyping import Bool, Shaped

from idiolect.core.errors import DataError
from idiolect.data.federated import SPLITS
from idiolect.data.partition import Indices
from idiolect.data.schema.columns import check_range, some
from idiolect.data.schema.label import Read, read_labels
from idiolect.data.schema.values import ReadAs, is_numeric, words_of


def client_names(column: pd.Series, where: str) -> tuple[Shaped[np.ndarray, "n"], tuple[str, ...]]:
    """(the client's name in every row, notes); none may be missing or blank.

    Blanks around a name do not count, and equal-looking names are one (Unicode's NFC).
    """
    _check_complete(column, "the client of every row must be known", where)
    try:
        words = words_of(column)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    if (words.code < 0).any():
        row = np.flatnonzero(words.code < 0)[0] + 1
        raise DataError(f"{where}: column '{column.name}' has a blank client name in row {row}")
    names = words.distinct.astype(str)
    given = {str(value) for value in pd.unique(column)}
    notes: list[str] = []
    if len(given) > len(names):
        notes.append(
            f"column '{column.name}': {len(given)} spellings of {len(names)} clients, which differ in "
            "blanks around the name or in how a letter is stored, are put together"
        )
    folded = Counter(name.casefold() for name in names)
    if alike := [name for name, count in folded.items() if count > 1]:
        notes.append(
            f"column '{column.name}': names that differ only in capitals are different clients: {some(alike)}"
        )
    return names[words.code], tuple(notes)


def rows_of_clients(owners: Shaped[np.ndarray, "n"]) -> dict[str, Indices]:
    """Each client's rows; clients in natural order: 'ward 2' before 'ward 10'."""
    codes, names = pd.factorize(owners, sort=True)
    short = codes.astype(np.min_scalar_type(len(names)))  # NumPy sorts codes of 16 bits by counting
    groups = np.split(np.argsort(short, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    rows = dict(zip(names.tolist(), groups, strict=True))
    return {name: rows[name] for name in sorted(rows, key=_natural)}


def check_labels(column: pd.Series, where: str, *, comma_likely: bool = False) -> tuple[Read, ReadAs]:
    """(the labels, how text was read, see `read_labels`); none may be missing, blank or infinite."""
    try:
        column = column.where(is_given(column))
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    _check_complete(column, "remove these rows or fill the labels", where)
    try:
        labels, read_as = read_labels(column, comma_likely=comma_likely)
        if labels.dtype.kind == "f":
            check_range(labels, column)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    return labels, read_as


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


def is_given(column: pd.Series) -> Bool[np.ndarray, "n"]:
    """Whether each row has a value: it is neither missing nor blank.

    Raises `DataError` for values that are no words, such as lists.
    """
    given = ~column.isna().to_numpy(dtype=bool)
    return given if is_numeric(column) else given & (words_of(column).code >= 0)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key: the numbers in a name count by value, that is by the count of their digits, then by these."""
    parts = [part.lstrip("0") if part.isdecimal() else part for part in re.findall(r"\d+|\D+", name)]
    return [(0, len(part), part) if part.isdecimal() or not part else (1, 0, part) for part in parts]


def _check_complete(column: pd.Series, remedy: str, where: str) -> None:
    missing = np.flatnonzero(column.isna().to_numpy(dtype=bool))
    if len(missing):
        what = "value is" if len(missing) == 1 else "values are"
        raise DataError(
            f"{where}: column '{column.name}': {len(missing)} {what} missing, first in row {missing[0] + 1}; {remedy}"
        )
