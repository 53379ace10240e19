import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import Partition, apply_partition, downsample, make_partition, mnist, mnist_partition
from idiolect.data.divide.division import by_time, check_fractions, counts, divide, overlapping, smallest

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


def pool(bouts):
    """Windows of two units, one unit apart in a bout: their starts, and which overlap the one before."""
    starts, overlaps, clock = [], [], 0
    for length in bouts:
        starts += [clock + i for i in range(length)]
        overlaps += [False] + [True] * (length - 1)
        clock += length + 1
    return np.array(starts), np.array(overlaps)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 3),
    st.floats(0.05, 0.6),
    st.floats(0.0, 0.3),
)
def test_no_two_splits_share_a_moment(bouts, activities, test, validation):
    starts, overlaps = pool(bouts)
    owner = np.repeat(np.arange(len(bouts)) % activities, bouts)
    series = [np.flatnonzero(owner == k) for k in np.unique(owner)]
    parts = by_time(series, overlaps, test, validation)
    moments = [{t for row in part for t in (starts[row], starts[row] + 1)} for part in parts]
    assert not moments[0] & moments[1]
    assert not moments[0] & moments[2]
    assert not moments[1] & moments[2]
    # One window a cut at most is lost, and none of the test windows.
    dropped = len(starts) - sum(map(len, parts))
    assert dropped <= 2 * len(series)
    assert len(parts[2]) == sum(counts(len(rows), test, validation)[2] for rows in series)


def test_a_cut_inside_a_bout_costs_one_window_and_between_bouts_none():
    _, inside = pool([8])
    assert [part.tolist() for part in by_time([np.arange(8)], inside, 0.25, 0.0)] == [[0, 1, 2, 3, 4], [], [6, 7]]
    _, between = pool([6, 2])
    assert [part.tolist() for part in by_time([np.arange(8)], between, 0.25, 0.0)] == [[0, 1, 2, 3, 4, 5], [], [6, 7]]


def test_the_first_train_and_the_last_test():
    _, overlaps = pool([20])
    train, validation, test = by_time([np.arange(20)], overlaps, 0.25, 0.2)
    assert train.tolist() == list(range(10))
    assert validation.tolist() == [11, 12, 13]
    assert test.tolist() == list(range(15, 20))


def test_a_vanishing_validation_part_does_not_open_a_leak():
    _, overlaps = pool([8])
    train, validation, test = by_time([np.arange(8)], overlaps, 0.25, 0.125)
    assert (train.tolist(), validation.tolist(), test.tolist()) == ([0, 1, 2, 3, 4], [], [6, 7])


def test_overlap_across_two_series_is_seen():
    """Window 3 ends one activity's training part, window 4 is another activity's test part."""
    overlaps = np.array([False, True, True, True, True, True])
    train, _, test = by_time([np.array([0, 1, 5]), np.array([2, 3, 4])], overlaps, 0.3, 0.0)
    assert not overlapping(train, test, overlaps).any()
    assert test.tolist() == [4, 5]
    assert train.tolist() == [0, 1, 2]


def test_overlapping_looks_both_ways():
    _, overlaps = pool([3, 3])
    rows = np.arange(6)
    assert overlapping(rows, np.array([1]), overlaps).tolist() == [True, False, True, False, False, False]
    assert overlapping(rows, np.array([2, 5]), overlaps).tolist() == [False, True, False, False, True, False]


RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(700, 3)).astype(np.float32)
LABELS = RNG.integers(0, 3, 700).astype(np.int32)


@pytest.fixture(scope="module")
def whole():
    return make_partition(FEATURES, LABELS, "lognormal_sizes", clients=7, sigma=0.5, minimum=20)


def cut(whole, part):
    """Which clients have fewer training samples than before."""
    return [i for i in range(7) if part.train.sizes[i] < whole.train.sizes[i]]


def test_half_of_the_clients_keep_a_fifth(whole):
    part = downsample(whole, LABELS, 0.2)
    chosen = cut(whole, part)
    assert len(chosen) == 3
    for i in range(7):
        for split in ("train", "validation"):
            before, after = whole.rows(split).client(i), part.rows(split).client(i)
            assert np.isin(after, before).all()
            size = len(before)
            assert len(after) == (size - math.floor(size * 0.8 + 1e-9) if i in chosen else size)
        np.testing.assert_array_equal(part.test.client(i), whole.test.client(i))


def test_the_test_samples_are_cut_only_by_name(whole):
    part = downsample(whole, LABELS, 0.2, test=0.4)
    for i in range(7):
        size = len(whole.test.client(i))
        expected = size - math.floor(size * 0.6 + 1e-9) if i in cut(whole, part) else size
        assert len(part.test.client(i)) == expected
    assert cut(whole, part) == cut(whole, downsample(whole, LABELS, 0.2))
    assert "0.4 of their test samples" in part.notes[-1]
    assert "test samples are all kept" in downsample(whole, LABELS, 0.2).notes[-1]


def test_it_is_part_of_the_partition(whole, tmp_path):
    part = downsample(whole, LABELS, 0.2, seed=3)
    assert part.fingerprint == downsample(whole, LABELS, 0.2, seed=3).fingerprint
    assert part.fingerprint != downsample(whole, LABELS, 0.2, seed=4).fingerprint != whole.fingerprint
    assert part.parameters["downsample"] == 0.2
    assert part.parameters["downsample_seed"] == 3
    sizes = part.statistics["sizes"]
    assert sizes["train"] == part.train.sizes.tolist()
    assert part.statistics["distinct"] + part.statistics["unused"] == 700
    named = part.notes[-1].split(": ")[-1].split(", ")
    assert named == [whole.clients[i] for i in cut(whole, part)]
    part.save(tmp_path / "p.npz")
    loaded = Partition.load(tmp_path / "p.npz")
    data = [
        apply_partition(p, FEATURES, LABELS, name="d", task="classification", classes="abc") for p in (part, loaded)
    ]
    assert data[0].fingerprint == data[1].fingerprint
    assert data[1].notes[-1] == part.notes[-1]
    assert data[1].provenance["partition"]["parameters"]["downsample"] == 0.2


def test_mnist_by_name(tiny_mnist, tmp_path):
    whole, less = (mnist(tiny_mnist, verify=False, downsample=keep) for keep in (None, 0.2))
    assert (less.train.sizes < whole.train.sizes).sum() == 10
    np.testing.assert_array_equal(less.test.y, whole.test.y)
    mnist_partition(tiny_mnist, verify=False, downsample=0.2).save(tmp_path / "p.npz")
    assert mnist(tiny_mnist, str(tmp_path / "p.npz"), verify=False).fingerprint == less.fingerprint
    with pytest.raises(ConfigError, match="leave out downsample"):
        mnist(tiny_mnist, str(tmp_path / "p.npz"), verify=False, downsample=0.2)


def test_other_seeds_choose_other_clients(whole):
    assert len({tuple(cut(whole, downsample(whole, LABELS, 0.2, seed=seed))) for seed in range(20)}) > 5


def test_every_client_keeps_a_sample(whole):
    part = downsample(whole, LABELS, 0.001, test=0.001)
    assert part.train.sizes.min() == part.test.sizes.min() == 1


def test_nothing_asked_nothing_done(whole):
    assert downsample(whole, LABELS, None) is whole


@pytest.mark.parametrize(
    ("keep", "test", "message"),
    [
        (0.0, None, "downsample must lie between 0 and 1, it is 0.0"),
        (1.5, None, "downsample must lie"),
        (0.2, 1.0, "downsample_test must lie"),
        (None, 0.4, "downsample_test needs downsample"),
    ],
)
def test_refuses(whole, keep, test, message):
    with pytest.raises(ConfigError, match=message):
        downsample(whole, LABELS, keep, test=test)


def test_one_client_has_no_half():
    with pytest.raises(ConfigError, match="two at least"):
        downsample(make_partition(FEATURES, LABELS, "iid", clients=1), LABELS, 0.2)
