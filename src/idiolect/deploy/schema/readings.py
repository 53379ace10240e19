"""How all sites read one column: a reading that is possible at each of them."""

from collections.abc import Mapping
from typing import cast, get_args

from idiolect.core.errors import DataError
from idiolect.data.schema.values import ReadAs
from idiolect.deploy.schema.summary import ColumnSummary

NUMBERS = ("number", "decimal comma")
DATES = ("date", "date d.m.y", "date d/m/y", "date m/d/y")
ORDER = (*NUMBERS, *DATES, "duration", "words")
assert {*ORDER} == {*get_args(ReadAs), "words"}


def the_same(what: str, values: Mapping[str, str], setting: str) -> str:
    """The value that all sites have; `DataError` names two that differ."""
    first, value = next(iter(values.items()))
    for site, other in values.items():
        if other != value:
            raise DataError(
                f"the {what} is '{value}' at site '{first}' but '{other}' at site '{site}'; name it alike ({setting})"
            )
    return value


def choose(name: str, held: Mapping[str, ColumnSummary], commas: Mapping[str, bool]) -> ReadAs | None:
    """How all sites read the column; None if it holds categories. Raises `DataError` if there is no such way."""
    options = {site: possible(column) for site, column in held.items()}
    both = set[str](ORDER).intersection(*options.values())
    if "words" in both and both != {*ORDER} and _foreign_words(held):
        both.discard("words")
    if not both:
        raise _disagreement(name, options)
    if both == {*ORDER}:  # nobody has a value
        return None if any(column.stored == "text" for column in held.values()) else "number"
    found = _ordered(name, held, commas, both)
    return None if found == "words" else cast(ReadAs, found)


def possible(column: ColumnSummary) -> set[str]:
    """How a site can read its column: in any way if it has no values, or too few to tell of."""
    if column.words is not None:
        return {*ORDER} if column.count == 0 else {"words"}
    if not column.readings:
        return {*ORDER}
    own: dict[str, set[str]] = {
        "number": {*NUMBERS},
        "boolean": {*NUMBERS, "words"},
        "date": {*DATES},
        "duration": {"duration"},
    }
    return own.get(column.stored, {*column.readings})


def _ordered(name: str, held: Mapping[str, ColumnSummary], commas: Mapping[str, bool], both: set[str]) -> str:
    """The first reading that is left; where a comma may mean two things, what the files' separators say."""
    if not {*NUMBERS} <= both:
        return next(reading for reading in ORDER if reading in both)
    texts = {site: column for site, column in held.items() if column.stored == "text" and column.readings}
    matters = [site for site, c in texts.items() if c.readings[NUMBERS[0]] != c.readings[NUMBERS[1]]]
    if len({commas[site] for site in matters}) > 1:
        comma, point = (next(site for site in matters if commas[site] is likely) for likely in (True, False))
        raise DataError(
            f"column '{name}': 1,234 is 1.234 at site '{comma}' but 1234 at site '{point}', by their files' "
            "separators; write a decimal point at all sites"
        )
    return NUMBERS[1] if any(commas[site] for site in (matters or texts)) else NUMBERS[0]


def _foreign_words(held: Mapping[str, ColumnSummary]) -> bool:
    """Whether truth values stand beside other words."""
    words = [column.words for column in held.values() if column.words is not None]
    other = any({*one.named} - {"False", "True"} or one.withheld_words > 2 for one in words)
    return other and any(column.stored == "boolean" and column.readings for column in held.values())


def _apart(told: Mapping[str, str]) -> tuple[str, str]:
    """The first two sites that read otherwise, or just the first two."""
    sites = list(told)
    return sites[0], next((site for site in sites if told[site] != told[sites[0]]), sites[-1])


def _disagreement(name: str, options: Mapping[str, set[str]]) -> DataError:
    """Names two sites that read the column differently."""
    told = {site: next((one for one in ORDER if one in possible), "words") for site, possible in options.items()}
    pairs = [(a, b) for a in options for b in options if a < b and not options[a] & options[b]]
    a, b = pairs[0] if pairs else _apart(told)
    kinds = {told[a], told[b]}
    if kinds <= {*DATES}:
        remedy = "write dates as YYYY-MM-DD at all sites"
    elif "words" in kinds:
        remedy = f"write numbers at all sites, or name it at all: categorical=['{name}'] or ignore=['{name}']"
    else:
        remedy = f"write it alike at all sites, or leave it out: ignore=['{name}']"
    return DataError(f"column '{name}' is read as {told[a]} at site '{a}' but as {told[b]} at site '{b}'; {remedy}")
