"""A reading that is possible at every site."""

import pytest

from idiolect.core.errors import DataError
from idiolect.deploy.schema.moments import Moments
from idiolect.deploy.schema.readings import choose, possible, the_same
from idiolect.deploy.schema.summary import ColumnSummary, Reading, WordCounts


def text(*readings):
    held = {name: Reading(moments=Moments(count=5, mean=float(k), m2=1.0)) for k, name in enumerate(readings)}
    return ColumnSummary(name="c", stored="text", count=5, missing=0, readings=held)


EMPTY = ColumnSummary(name="c", stored="number", count=0, missing=5)
WORDS = ColumnSummary(name="c", stored="text", count=5, missing=0, words=WordCounts(named={"a": 5}))
DAYS = ColumnSummary(name="c", stored="date", count=5, missing=0, readings=text("date").readings)


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ([text("number", "decimal comma"), text("decimal comma")], "decimal comma"),
        ([text("date d/m/y", "date m/d/y"), text("date m/d/y")], "date m/d/y"),
        ([text("date d/m/y"), DAYS], "date d/m/y"),
        ([DAYS, EMPTY], "date"),
        ([WORDS, EMPTY], None),
        ([EMPTY, EMPTY], "number"),
    ],
)
def test_the_first_that_all_can(columns, found):
    held = dict(zip("abc", columns, strict=False))
    assert choose("c", held, dict.fromkeys(held, False)) == found


def test_semicolons_decide_what_a_comma_means():
    held = {"a": text("number", "decimal comma"), "b": text("number", "decimal comma")}
    assert choose("c", held, {"a": True, "b": True}) == "decimal comma"
    assert choose("c", held, {"a": False, "b": False}) == "number"


def test_three_that_agree_by_pairs_only_are_refused():
    held = {"a": text("date d/m/y", "date m/d/y"), "b": text("date d/m/y"), "c": text("date m/d/y")}
    with pytest.raises(DataError, match="as date d/m/y at site 'b' but as date m/d/y at site 'c'; write dates as"):
        choose("x", held, dict.fromkeys(held, False))


def test_empty_fits_all():
    assert possible(EMPTY) == possible(EMPTY.model_copy(update={"stored": "text"}))


def test_one_value_for_all():
    assert the_same("label", {"a": "y", "b": "y"}, "label=") == "y"
    with pytest.raises(DataError, match="the label is 'y' at site 'a' but 'z' at site 'b'"):
        the_same("label", {"a": "y", "b": "z"}, "label=")
