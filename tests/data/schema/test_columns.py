"""Fitted columns, applied to new rows: what they give, what they note, and what they refuse."""

import math

import numpy as np
import pandas as pd
import pytest
from pydantic import TypeAdapter, ValidationError

from idiolect.core.errors import DataError
from idiolect.data.schema.columns import MISSING, Category, Column, LeftOut, Number, some

NAN = float("nan")


def rows(*values):
    """A column of a table, of which row 11 is the first."""
    return pd.Series(values, name="dose", index=range(10, 10 + len(values)))


def number(**options):
    return Number.model_validate({"name": "dose", "fill": 2.0} | options)


def test_a_number_is_scaled_and_what_is_missing_is_filled_and_marked():
    """(1 - 1) / 2, (2 - 1) / 2 for the missing one, (5 - 1) / 2."""
    column = number(mean=1.0, scale=2.0, marks_missing=True)
    x, notes = column.encode(rows(1.0, NAN, 5.0))
    assert column.features == ("dose", "dose missing")
    assert (x.tolist(), x.dtype) == ([[0, 0], [0.5, 1], [2, 0]], np.float32)
    assert notes == ("column 'dose': 1 missing values are the training median 2; marked in 'dose missing'",)
    x, notes = number(missing="mean", fill=2.5).encode(rows(NAN, 3.0, NAN))
    assert x.tolist() == [[2.5], [3], [2.5]]
    assert notes == ("column 'dose': 2 missing values are the training mean 2.5; not marked, as training had none",)
    assert number(marks_missing=True).encode(rows(1.0))[1] == ()
    assert number().features == ("dose",)


def test_words_among_numbers_are_noted_and_a_column_of_words_is_refused():
    x, notes = number().encode(rows("1", "lost", "unknown"))
    assert x.tolist() == [[1], [2], [2]]
    assert notes == (
        "column 'dose': 2 missing values are the training median 2; not marked, as training had none ('lost', "
        "'unknown' are read as missing)",
    )
    assert number().encode(rows(None, None))[0].tolist() == [[2], [2]]
    with pytest.raises(DataError) as refused:
        number().encode(rows("lost", None))
    assert str(refused.value) == (
        "column 'dose' has no number but 'lost'; it had numbers in training (read as number): write them so, or "
        "leave the cells of missing values empty"
    )


def test_a_number_has_a_feature():
    marked = number(constant=True, marks_missing=True)
    assert (marked.features, marked.encode(rows(2.0, NAN))[0].tolist()) == (("dose missing",), [[0], [1]])
    with pytest.raises(ValueError, match="it is constant and marks nothing as missing, so it has no feature"):
        number(constant=True)


def test_values_out_of_range_name_their_row():
    assert number().encode(rows(1e30, -1e30))[0].tolist() == np.float32([[1e30], [-1e30]]).tolist()
    for values, message in (
        ((1.0, math.inf, -math.inf), "column 'dose' is infinite in row 12 (2 in all)"),
        ((1.0, 2.0, -2e30), "column 'dose' is beyond 1e+30 in row 13 (1 in all)"),
    ):
        with pytest.raises(DataError) as refused:
            number().encode(rows(*values))
        assert str(refused.value) == f"{message}; replace by a number or leave the cell empty"


@pytest.mark.filterwarnings("error")
def test_values_far_from_those_of_training_name_their_row():
    """5 / 1e-30 is 5e30; 5e20 / 1e-300 is beyond double precision."""
    far = "is too far from the training mean 0, for a deviation of"
    for scale, values, message in (
        (1e-30, (1.0, 5.0, 6.0), f"column 'dose': 5 in row 12 {far} 1e-30"),
        (1e-300, (5e20, 0.0, 0.0), f"column 'dose': 5e+20 in row 11 {far} 1e-300"),
    ):
        with pytest.raises(DataError) as refused:
            number(scale=scale).encode(rows(*values))
        assert str(refused.value) == f"{message}; replace it or leave the row out"


def test_a_category_is_a_feature_and_other_words_are_all_zeros():
    column = Category(name="ward", categories=("a", MISSING, "b"))
    assert column.features == ("ward=a", "ward=(missing)", "ward=b")
    x, notes = column.encode(rows("b", None, "a", "z", "y", "y"))
    assert (x.tolist(), x.dtype) == (
        [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
        np.float32,
    )
    assert notes == (
        "column 'ward': 1 missing values are the category '(missing)'",
        "column 'ward': 3 values are of no category that has a feature and are all zeros (y, z)",
    )
    assert column.encode(rows("b", "a"))[1] == ()
    x, notes = Category(name="ward", categories=("a",)).encode(rows("a", None))
    assert x.tolist() == [[1], [0]]
    assert notes == ("column 'ward': 1 values are of no category that has a feature and are all zeros ((missing))",)


def test_a_category_is_there_once():
    with pytest.raises(ValueError, match="'a' is there twice"):
        Category(name="ward", categories=("b", "a", "a"))
    with pytest.raises(ValueError, match="categories"):
        Category(name="ward", categories=())


def test_a_column_that_is_left_out_gives_no_feature():
    column = LeftOut(name="id", why="an identifier")
    x, notes = column.encode(rows("a", "b"))
    assert (column.features, x.shape, x.dtype, notes) == ((), (2, 0), np.float32, ())


@pytest.mark.parametrize(
    "wrong",
    [
        {"fill": NAN}, {"fill": math.inf}, {"fill": 2e30}, {"fill": -2e30}, {"mean": 2e30}, {"mean": -2e30},
        {"scale": 0}, {"scale": -1}, {"scale": 2e30}, {"scale": NAN}, {"missing": "mode"}, {"other": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_file_with_a_number_that_no_table_has_is_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        number(**wrong)


def test_a_file_names_the_kind_of_each_column():
    """What a file leaves out is the default; older files call the fill "median"."""
    read = TypeAdapter(Column).validate_python
    found = read({"kind": "number", "name": "a", "median": -1e30, "scale": 0.5})
    assert found == Number(name="a", fill=-1e30, scale=0.5)
    default = read({"kind": "number", "name": "a", "fill": 1})
    assert (default.read_as, default.missing, default.mean, default.scale) == ("number", "median", 0, 1)
    assert (default.marks_missing, default.constant) == (False, False)
    assert not read({"kind": "category", "name": "a", "categories": ["x"]}).numbers
    assert read({"kind": "left out", "name": "a", "why": "constant"}).why == "constant"
    for column in (default, Category(name="a", categories=("x",)), LeftOut(name="a", why="b")):
        assert read(column.model_dump()) == column
        with pytest.raises(ValidationError, match="frozen"):
            column.name = "b"
    with pytest.raises(ValidationError, match="Unable to extract tag using discriminator 'kind'"):
        read({"name": "a", "fill": 1})


def test_of_more_than_five_names_the_others_are_counted():
    assert some(list("abcde")) == "a, b, c, d, e"
    assert some(list("abcdefg")) == "a, b, c, d, e and 2 more"
