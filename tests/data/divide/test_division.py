import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import make_partition
from idiolect.data.divide.division import check_fractions, counts, divide, smallest

X = np.arange(200, dtype=np.float32).reshape(100, 2)
Y = np.resize(np.arange(4, dtype=np.int32), 100)
GROUPS = [np.arange(0, 40), np.arange(40, 100)]


@given(st.integers(2, 5000), st.floats(0.01, 0.6), st.floats(0, 0.3))
def test_counts_add_up(size, test, validation):
    train, held, tested = counts(size, test, validation)
    assert train + held + tested == size
    assert tested >= 1
    assert held >= 0


def test_train_fraction_is_rounded_down_as_published():
    assert counts(1554, 0.25, 0.0) == (1165, 0, 389)
    assert counts(5112, 0.25, 0.0) == (3834, 0, 1278)
    assert counts(10, 0.1, 0.0) == (9, 0, 1)
    assert counts(100, 0.25, 0.1) == (65, 10, 25)
    assert counts(2, 0.25, 0.1) == (1, 0, 1)


def test_every_sample_lands_in_one_split_of_its_client():
    partition = divide(GROUPS, X, Y, name="p")
    for client, group in enumerate(GROUPS):
        parts = [partition.rows(split).client(client) for split in ("train", "validation", "test")]
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), group)
    assert partition.train.sizes.tolist() == [26, 39]
    assert partition.validation.sizes.tolist() == [4, 6]
    assert partition.test.sizes.tolist() == [10, 15]
    assert partition.clients == ("client 0", "client 1")


def test_test_rows_depend_on_the_split_seed_but_not_on_validation():
    plain, held, other = (
        divide(GROUPS, X, Y, name="p", validation=v, split_seed=s) for v, s in ((0.0, 0), (0.2, 0), (0.0, 1))
    )
    np.testing.assert_array_equal(plain.test.index, held.test.index)
    assert not np.array_equal(plain.test.index, other.test.index)
    assert len(plain.validation.index) == 0


def test_a_client_does_not_depend_on_the_others():
    alone, both = divide(GROUPS[:1], X, Y, name="p"), divide(GROUPS, X, Y, name="p")
    np.testing.assert_array_equal(alone.train.client(0), both.train.client(0))


def test_clients_of_one_size_are_divided_differently():
    partition = divide([np.arange(0, 50), np.arange(50, 100)], X, Y, name="p")
    assert not np.array_equal(partition.test.client(0), partition.test.client(1) - 50)


def test_statistics():
    partition = divide([np.arange(0, 40), np.arange(20, 60)], X, Y, name="p")
    assert partition.statistics["labels"] == [[10] * 4, [10] * 4]
    assert partition.statistics["distinct"] == 60
    assert partition.statistics["unused"] == 40
    assert partition.statistics["sizes"] == {"train": [26, 26], "validation": [4, 4], "test": [10, 10]}


def test_statistics_of_labels_that_are_not_classes():
    signs = np.where(Y < 1, -1, 1)
    partition = divide(GROUPS, X, signs, name="p")
    assert partition.statistics["label_values"] == [-1, 1]
    assert partition.statistics["labels"] == [[10, 30], [15, 45]]
    assert "labels" not in divide(GROUPS, X, signs / 2, name="p").statistics


def test_refuses_a_client_that_is_too_small():
    with pytest.raises(DataError, match=r"client 'b' has 1 sample, too few .*minimum=2"):
        divide([np.arange(5), np.arange(5, 6)], X, Y, name="p", clients=["a", "b"])
    with pytest.raises(DataError, match=r"client 'a' has 5 samples.*test=0.9.*minimum=10"):
        divide([np.arange(5)], X, Y, name="p", clients=["a"], test=0.9, validation=0.0)


@pytest.mark.parametrize("fractions", [{"test": -0.1}, {"test": 1.0}, {"validation": -0.1}, {"validation": 0.75}])
def test_refuses_impossible_fractions(fractions):
    with pytest.raises(ConfigError, match="fraction"):
        divide(GROUPS, X, Y, name="p", **fractions)


def test_make_knows_the_partitioners_and_their_keys():
    partition = make_partition(X, Y, "labels_per_client", clients=4, seed=3, k=1)
    assert partition.parameters == {"clients": 4, "test": 0.25, "validation": 0.1, "split_seed": 0, "k": 1}
    assert (np.array(partition.statistics["labels"]) > 0).sum(axis=1).tolist() == [1] * 4
    assert make_partition(X, Y, "iid", seed=3).fingerprint != make_partition(X, Y, "iid", seed=4).fingerprint
    with pytest.raises(ConfigError, match="did you mean 'dirichlet'"):
        make_partition(X, Y, "dirichlt")
    with pytest.raises(ConfigError, match="unknown key of partition 'dirichlet' 'concentraton'; did you mean"):
        make_partition(X, Y, "dirichlet", concentraton=1.0)
    with pytest.raises(ConfigError, match="seed must not be negative"):
        make_partition(X, Y, "iid", seed=-1)


def test_without_a_test_fraction_all_samples_train_even_a_single_one():
    partition = divide([np.arange(1), np.arange(1, 5)], X, Y, name="p", test=0.0, validation=0.25)
    assert partition.train.sizes.tolist() == [1, 3]
    assert partition.validation.sizes.tolist() == [0, 1]
    assert partition.test.sizes.tolist() == [0, 0]
    assert (smallest(0.0), smallest(0.25)) == (1, 2)
    check_fractions(0.0, 0.1, untested=True)
    with pytest.raises(ConfigError, match="test fraction"):
        check_fractions(0.0, 0.1)
