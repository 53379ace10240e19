from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import FederatedData, Split, audit, number_own_labels


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
