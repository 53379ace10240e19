"""Read the values of a column: as words, or as numbers, dates and durations, also where these are written as text."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped

from idiolect.core.errors import DataError


class Words(NamedTuple):
    """The distinct words of a column, and which of them each row has; -1 where the value is missing or blank."""

    distinct: Shaped[np.ndarray, "words"]
    code: Int[np.ndarray, "n"]


def is_numeric(column: pd.Series) -> bool:
    """Whether the column holds numbers or truth values; pandas' categories never are numbers."""
    return pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)


def words_of(column: pd.Series) -> Words:
    """The column as words: text without blanks around it (Unicode's NFC), whole numbers without a point.

    Raises `DataError` where a value is no word: a list, bytes.
    """
    try:
        code, values = pd.factorize(column)
    except TypeError:
        held = next(value for value in column if not _hashable(value))
        raise DataError(f"column '{column.name}' holds a {type(held).__name__}, not one value a row") from None
    distinct = np.array([_word(value, str(column.name)) for value in values], dtype=object)
    words, again = np.unique(distinct, return_inverse=True) if len(distinct) else (distinct, np.zeros(0, np.int64))
    blank = np.flatnonzero(words == "")
    again = np.where(again == blank[0], -1, again - 1) if len(blank) else again  # "" sorts first
    words = words[1:] if len(blank) else words
    return Words(words.astype(object), np.append(again, -1)[code])


def text_of(column: pd.Series) -> Shaped[np.ndarray, "n"]:
    """Every row's word; None where it is missing."""
    words = words_of(column)
    return np.array([*words.distinct, None], dtype=object)[words.code]


def _word(value: object, name: str) -> str:
    if isinstance(value, bytes | bytearray | list | dict | set | np.ndarray):
        raise DataError(f"column '{name}' holds {type(value).__name__}, not numbers or text")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return unicodedata.normalize("NFC", str(value).strip())


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


ReadAs = Literal["number", "decimal comma", "duration", "date", "date d.m.y", "date d/m/y", "date m/d/y"]
"""How a column becomes numbers. date: days since 1970-01-01 (UTC), written as ISO 8601 has it or as named;
duration: days."""

EXACT = 3
"""So many words without a digit ("unknown", "?") may stand among numbers; they are missing values."""

_SPACED = r"[1-9]\d{0,2}(?:[ '\u00a0\u202f]\d{3})+|\d+"  # 12 345, 12'345, 12345
_POINT = re.compile(rf"[+-]?(?:[1-9]\d{{0,2}}(?:,\d{{3}})+|{_SPACED})?(?:\.\d*)?(?:[eE][+-]?\d+)?")
_COMMA = re.compile(rf"[+-]?(?:[1-9]\d{{0,2}}(?:\.\d{{3}})+|{_SPACED})?(?:,\d*)?(?:[eE][+-]?\d+)?")
_CODE = re.compile(r"[+-]?0\d+")  # 007 is a name, not 7
_DATES: dict[ReadAs, tuple[re.Pattern[str], str]] = {
    "date": (re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "ISO8601"),
    "date d.m.y": (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), "%d.%m.%Y"),
    "date d/m/y": (re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), "%d/%m/%Y"),
    "date m/d/y": (re.compile(r"\d{1,2}/\d{1,2}/\d{4}"), "%m/%d/%Y"),
}
_DAY = np.timedelta64(1, "D")


class Numbers(NamedTuple):
    """A column's numbers, NaN where there is none, and the words that are none and count as missing."""

    values: Float[np.ndarray, "n"]
    unread: tuple[str, ...] = ()


def guess_reading(column: pd.Series, *, comma_likely: bool = False) -> ReadAs | None:
    """How the column becomes numbers, or None if it holds categories.

    Text is read as numbers if all its words are, but for at most `EXACT` words without a digit. One such word may
    always be there, several only if there are more different numbers: 0, A, B, AB are categories. So is a column with
    a word such as 007 or 4+. comma_likely: 1,234, which is ambiguous by itself, then is 1.234.
    """
    return next(possible_readings(column, comma_likely=comma_likely), None)


def possible_readings(column: pd.Series, *, comma_likely: bool = False) -> Iterator[ReadAs]:
    """All ways in which the column becomes numbers, the likeliest first: 1,234 and 1/2/1970 are ambiguous."""
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
    if kind == "c":
        raise DataError(f"column '{column.name}' holds complex numbers; split it into two columns")
    if kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype):
        yield "date"
    elif kind == "m":
        yield "duration"
    elif is_numeric(column):
        yield "number"
    elif not isinstance(column.dtype, pd.CategoricalDtype):
        yield from _readings_of_text(column, comma_likely)


def _readings_of_text(column: pd.Series, comma_likely: bool) -> Iterator[ReadAs]:
    words = words_of(column)
    distinct = words.distinct.tolist()
    with_digit = [word for word in distinct if any(map(str.isdigit, word))]
    others = len(distinct) - len(with_digit)
    names = others > EXACT or 1 < others >= len(with_digit)
    if not with_digit or names or any(map(_CODE.fullmatch, with_digit)):
        return
    order: tuple[ReadAs, ...] = ("decimal comma", "number") if comma_likely else ("number", "decimal comma")
    for reading in (*order, *_DATES):
        if not np.isnan(_numbers(with_digit, reading)).any():
            yield reading


def numbers_of(column: pd.Series, reading: ReadAs) -> Numbers:
    """The column's numbers, read as it was when the schema was fitted. Raises `DataError` for a foreign type."""
    kind = column.dtype.kind if isinstance(column.dtype, np.dtype) else ""
    is_date = kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype)
    if is_date or kind == "m":
        if reading.startswith("date") != is_date or (kind == "m" and reading != "duration"):
            content = "dates" if is_date else "durations"
            raise DataError(f"column '{column.name}' holds {content}, but was read as '{reading}' in training")
        return Numbers(_days(column, is_date))
    if is_numeric(column):
        if reading.startswith("date"):
            raise DataError(f"column '{column.name}' holds numbers, but dates in training; write YYYY-MM-DD")
        return Numbers(column.to_numpy(dtype=np.float64, na_value=np.nan).copy())
    words = words_of(column)
    values = _numbers(words.distinct.tolist(), reading)
    unread = words.distinct[np.isnan(values)]
    return Numbers(np.append(values, np.nan)[words.code], tuple(unread.tolist()))


def _numbers(words: Sequence[str], reading: ReadAs) -> Float[np.ndarray, "words"]:
    """Each word as a number, NaN where it is none."""
    if reading in _DATES:
        pattern, layout = _DATES[reading]
        fitting = pd.Series([word if pattern.fullmatch(word) else None for word in words], dtype=object)
        return _days(pd.to_datetime(fitting, format=layout, errors="coerce", utc=True), is_date=True)
    pattern, marks = (_COMMA, (".", ",")) if reading == "decimal comma" else (_POINT, (",", "."))
    numbers = np.full(len(words), np.nan)
    for place, word in enumerate(words):
        if pattern.fullmatch(word) and any(map(str.isdigit, word.lower().partition("e")[0])):
            plain = re.sub(r"[ '\u00a0\u202f]", "", word.replace(marks[0], "")).replace(marks[1], ".")
            numbers[place] = float(plain)
    if reading == "duration":  # a number is days; a file writes "3 days 04:00:00"
        other = pd.Series([None if np.isfinite(n) else w for w, n in zip(words, numbers, strict=True)], dtype=object)
        return np.where(np.isfinite(numbers), numbers, _days(pd.to_timedelta(other, errors="coerce"), is_date=False))
    return numbers


def _days(column: pd.Series, is_date: bool) -> Float[np.ndarray, "n"]:
    """Days since 1970-01-01 (UTC), or the days that a duration takes; NaN where there is none."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    values = column.to_numpy()
    days = (values - np.datetime64(0, "s")) / _DAY if is_date else values / _DAY
    return np.asarray(days, dtype=np.float64)


def numbered(code: Int[np.ndarray, "n"], count: int) -> Int[np.ndarray, "count"]:
    """How often each of `count` words occurs."""
    return np.bincount(code[code >= 0], minlength=count)


assert set(_DATES) <= set(get_args(ReadAs))
