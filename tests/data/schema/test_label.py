import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import DataError
from idiolect.data.schema.label import Classes, Target, fit_classes, fit_target, read_labels


@pytest.mark.parametrize(
    ("raw", "classes", "kind"),
    [
        (["ill", "well", "ill"], ["ill", "well"], "O"),
        ([3, 10, 3], ["3", "10"], "i"),
        ([True, False, True], ["False", "True"], "b"),
    ],
)
def test_classes_there_and_back(raw, classes, kind):
    column = pd.Series(raw, name="y")
    labels, _ = read_labels(column)
    fitted = fit_classes("y", labels, classes, column.dtype == bool)
    code = fitted.encode(column)
    assert [classes[k] for k in code] == [str(value) for value in raw]
    assert fitted.decode(code).tolist() == raw
    assert fitted.decode(code).dtype.kind == kind


def test_a_class_that_is_not_known_and_a_label_that_is_missing():
    fitted = Classes(name="y", classes=("a", "b"))
    with pytest.raises(DataError, match="column 'y': 'z' is none of the classes a, b, first in row 2"):
        fitted.encode(pd.Series(["a", "z"]))
    with pytest.raises(DataError, match="missing"):
        fitted.encode(pd.Series(["a", None]))


def test_targets_there_and_back():
    values = np.array([50_000.0, 70_000.0, 90_000.0])
    fitted = fit_target("y", values, "number")
    assert (fitted.mean, fitted.scale) == (70_000.0, pytest.approx(values.std(), rel=1e-15))
    scaled = fitted.encode(pd.Series(values, name="y"))
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(fitted.decode(scaled), values, rtol=1e-7)
    assert fit_target("y", np.ones(3), "number").scale == 1
    with pytest.raises(DataError, match=r"column 'y': no number in row 2 .'high' is no number"):
        fitted.encode(pd.Series(["1", "high"], name="y"))
    comma = Target(name="y", mean=1, scale=2, read_as="decimal comma")
    assert comma.encode(pd.Series(["1,5"])).tolist() == [0.25]


def test_dates_are_no_labels():
    with pytest.raises(DataError, match="dates or durations"):
        read_labels(pd.Series(pd.to_datetime(["2020-01-01"]), name="y"))


LONG = "123456789012345678901234567890"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([LONG, LONG[:-1] + "1"], [LONG, LONG[:-1] + "1"]),
        ([LONG, "1"], [LONG, "1"]),
        (["1" * 400, "2"], ["1" * 400, "2"]),
        (["1" * 5000, "2"], ["1" * 5000, "2"]),
        (["9007199254740993", "1,000"], ["9007199254740993", "1,000"]),
        (np.array([2**63, 2**64 - 1], np.uint64), [str(2**63), str(2**64 - 1)]),
    ],
)
def test_whole_numbers_that_no_number_holds_exactly_are_words(values, expected) -> None:
    labels, _ = read_labels(pd.Series(values, name="y"))
    assert labels.tolist() == expected
    fitted = fit_classes("y", labels, sorted(expected), is_boolean=False)
    assert fitted.type == "text"
    assert fitted.decode(fitted.encode(pd.Series(values))).tolist() == expected


def test_whole_numbers_that_are_exact_stay_numbers() -> None:
    assert read_labels(pd.Series(["9007199254740991", "1,000"]))[0].tolist() == [2**53 - 1, 1000]
    assert read_labels(pd.Series([2**62, 7]))[0].tolist() == [2**62, 7]
