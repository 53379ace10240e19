"""Everything of a summary stands in its listing."""

import pytest

from idiolect.deploy.schema.listing import listing
from tests.deploy.schema.tables import hospitals, summaries


def leaves(value):
    """Every text and number of plain values, keys that are words of the table too."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, int) and not isinstance(inner, bool) and key not in COUNTS:
                yield key
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value and not isinstance(value, bool):
        yield value


COUNTS = ["rows", "minimum", "count", "missing", "distinct", "withheld_words", "withheld_rows", "version"]


@pytest.mark.parametrize("label", ["words", "amount", "classes"])
def test_every_number_and_every_word_is_listed(label):
    for told in summaries(hospitals(label=label), categorical=["code"], keep=["running"]).values():
        lines = listing(told)
        assert len(lines) == 3 + len(told.columns)
        for line, column in zip(lines[3:], told.columns, strict=True):
            values = column.model_dump(mode="json", exclude={"readings"})
            for reading in column.readings.values():
                one = reading.model_dump(mode="json")
                if one["moments"]["constant"]:
                    one["moments"].pop("m2")
                assert all(str(leaf) in line for leaf in leaves(one)), (line, one)
            assert all(str(leaf) in line for leaf in leaves(values)), (line, values)
        values = told.label.model_dump(mode="json")
        assert all(str(leaf) in lines[2] for leaf in leaves(values)), lines[2]
        assert told.site in lines[0]
        assert str(told.rows) in lines[0]


def test_what_is_withheld_is_said():
    lines = listing(summaries(hospitals(), minimum=200)["west"])
    assert any("'age'" in line and "too few values: nothing else is told" in line for line in lines)
    assert any("'sex'" in line and "no word is told; not told: 2 rare words in" in line for line in lines)
