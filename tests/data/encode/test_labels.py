import warnings
from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import FederatedData, Split, audit, number_own_labels
from idiolect.data.encode.labels import as_labels, check_numbers, check_task, encode_labels, guess_task


@pytest.mark.parametrize(
    ("labels", "arrays", "table"),
    [
        ([0, 1, 2], "classification", "classification"),
        (["a", "b"], "classification", "classification"),
        ([True, False], "classification", "classification"),
        ([0.0, 1.0, 1.0], "regression", "classification"),
        ([0.5, 1.0], "regression", "regression"),
        (np.arange(21.0), "regression", "regression"),
        (np.arange(100), "classification", "classification"),
        (np.arange(101), "classification", "regression"),
    ],
)
def test_guess_task(labels, arrays, table):
    labels = np.asarray(labels)
    assert guess_task(labels) == arrays
    assert guess_task(labels, whole_floats=True) == table


def test_classes_are_the_sorted_labels():
    codes, classes = encode_labels(np.array([7, 2, 7, 5]), "classification", "here")
    assert codes.tolist() == [2, 0, 2, 1]
    assert codes.dtype == np.int32
    assert classes == ("2", "5", "7")
    assert encode_labels(as_labels(["b", "a"], "here"), "classification", "here")[1] == ("a", "b")
    assert encode_labels(np.array([1.0, 0.0]), "classification", "here")[1] == ("0", "1")


def test_given_classes_keep_the_numbers():
    codes, classes = encode_labels(np.array([2, 2]), "classification", "here", ["x", "y", "z"])
    assert codes.tolist() == [2, 2]
    assert classes == ("x", "y", "z")


def test_targets():
    targets, classes = encode_labels(np.array([1, 3]), "regression", "here")
    assert targets.dtype == np.float32
    assert classes == ()


@pytest.mark.parametrize(
    ("labels", "task", "classes", "message"),
    [
        ([0.5, 1.0], "classification", (), "fractions"),
        (["a", "b"], "regression", (), "regression needs numbers"),
        ([3, 3], "classification", (), "all labels are '3'"),
        ([0, 3], "classification", ("a", "b"), r"integers 0\.\.1"),
    ],
)
def test_refuses(labels, task, classes, message):
    with pytest.raises(DataError, match=message):
        encode_labels(np.asarray(labels), task, "here", classes)


def test_unknown_task():
    assert check_task("regression") == "regression"
    with pytest.raises(ConfigError, match="did you mean 'classification'"):
        check_task("clasification")


def test_labels_have_one_dimension():
    with pytest.raises(DataError, match="one dimension"):
        as_labels(np.zeros((2, 1)), "here")


def test_numbers_with_a_point_that_are_not_exact_are_no_classes() -> None:
    labels = np.array([1e19, 2e19])
    assert guess_task(labels, whole_floats=True) == "regression"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"t: labels of 9007199254740992 or more .* write them as text"):
            encode_labels(labels, "classification", "t")
    assert encode_labels(np.array([1.0, 2.0**53 - 1]), "classification", "t")[1] == ("1", str(2**53 - 1))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_numbers_that_single_precision_does_not_hold_are_named(dtype) -> None:
    values = np.zeros((3, 2), dtype)
    check_numbers(values, "features", "t")
    check_numbers(np.array(["x"]), "features", "t")
    values[2, 1] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"^t: features\[2, 1\] is inf \(1 such in all\); numbers must be finite"):
            check_numbers(values, "features", "t")


def split(*groups):
    """Each client's labels; the features are the labels, so that a row shows what it was."""
    y = np.concatenate([np.array(group, dtype=np.int32) for group in groups])
    offsets = np.cumsum([0, *map(len, groups)])
    return Split(y[:, None].astype(np.float32), y, offsets)


def federation():
    train, validation, test = split([4, 2, 4], [0, 1]), split([], [3]), split([2, 7], [1, 0, 0])
    return FederatedData(
        "d", train, validation, test, ("a", "b"), "classification", tuple("abcdefgh"), notes=("before",)
    )


def test_each_client_counts_its_classes_from_0_in_their_order():
    data = number_own_labels(federation())
    assert data.own_labels
    assert data.classes == ("0", "1", "2")
    for name in ("train", "validation", "test"):
        part = data.split(name)
        np.testing.assert_array_equal(part.outputs, [3, 3])
        np.testing.assert_array_equal(part.x, federation().split(name).x)
        assert part.y.dtype == np.int32
    assert data.train.y.tolist() == [1, 0, 1, 0, 1]  # a holds 2, 4, 7; b holds 0, 1, 3
    assert data.validation.y.tolist() == [2]
    assert data.test.y.tolist() == [0, 2, 1, 0, 0]
    assert data.notes[0] == "before"
    assert "numbers its 3 classes from 0" in data.notes[1]


def test_classes_that_all_clients_hold_keep_their_numbers():
    data = federation()
    same = replace(
        data, train=split([0, 1], [1, 0]), validation=split([], []), test=split([1], [0]), classes=("x", "y")
    )
    numbered = number_own_labels(same)
    np.testing.assert_array_equal(numbered.train.y, same.train.y)
    assert numbered.notes == same.notes


def test_numbers_differ_between_clients():
    data = replace(federation(), test=split([2], [1]))
    assert number_own_labels(data).train.outputs.tolist() == [2, 3]
    assert "its 2 to 3 classes" in number_own_labels(data).notes[-1]


def test_not_twice_and_not_for_numbers():
    with pytest.raises(DataError, match="numbered by each client"):
        number_own_labels(number_own_labels(federation()))
    with pytest.raises(DataError, match="numbered by each client"):
        number_own_labels(replace(federation(), task="regression"))


def test_the_audit_finds_copies_whatever_each_client_calls_them():
    data = federation()
    assert audit(data).test_in_other_train == 0
    shared = replace(data, train=split([4, 2, 4], [0, 1, 7, 5]))  # 7 is a test sample of a, and 2 of 3 there
    plain, own = audit(shared), audit(number_own_labels(shared))
    assert plain.test_in_other_train == own.test_in_other_train == 1
    assert number_own_labels(shared).test.y[1] != number_own_labels(shared).train.y[-2]
    assert own.test_in_own_train == plain.test_in_own_train == 4
