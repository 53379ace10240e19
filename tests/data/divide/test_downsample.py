import math

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import Partition, apply_partition, downsample, make_partition, mnist, mnist_partition

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 3)).astype(np.float32)
Y = RNG.integers(0, 3, 700).astype(np.int32)


@pytest.fixture(scope="module")
def whole():
    return make_partition(X, Y, "lognormal_sizes", clients=7, sigma=0.5, minimum=20)


def cut(whole, part):
    """Which clients have fewer training samples than before."""
    return [i for i in range(7) if part.train.sizes[i] < whole.train.sizes[i]]


def test_half_of_the_clients_keep_a_fifth(whole):
    part = downsample(whole, Y, 0.2)
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
    part = downsample(whole, Y, 0.2, test=0.4)
    for i in range(7):
        size = len(whole.test.client(i))
        expected = size - math.floor(size * 0.6 + 1e-9) if i in cut(whole, part) else size
        assert len(part.test.client(i)) == expected
    assert cut(whole, part) == cut(whole, downsample(whole, Y, 0.2))
    assert "0.4 of their test samples" in part.notes[-1]
    assert "test samples are all kept" in downsample(whole, Y, 0.2).notes[-1]


def test_it_is_part_of_the_partition(whole, tmp_path):
    part = downsample(whole, Y, 0.2, seed=3)
    assert part.fingerprint == downsample(whole, Y, 0.2, seed=3).fingerprint
    assert part.fingerprint != downsample(whole, Y, 0.2, seed=4).fingerprint != whole.fingerprint
    assert part.parameters["downsample"] == 0.2
    assert part.parameters["downsample_seed"] == 3
    sizes = part.statistics["sizes"]
    assert sizes["train"] == part.train.sizes.tolist()
    assert part.statistics["distinct"] + part.statistics["unused"] == 700
    named = part.notes[-1].split(": ")[-1].split(", ")
    assert named == [whole.clients[i] for i in cut(whole, part)]
    part.save(tmp_path / "p.npz")
    loaded = Partition.load(tmp_path / "p.npz")
    data = [apply_partition(p, X, Y, name="d", task="classification", classes="abc") for p in (part, loaded)]
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
    assert len({tuple(cut(whole, downsample(whole, Y, 0.2, seed=seed))) for seed in range(20)}) > 5


def test_every_client_keeps_a_sample(whole):
    part = downsample(whole, Y, 0.001, test=0.001)
    assert part.train.sizes.min() == part.test.sizes.min() == 1


def test_nothing_asked_nothing_done(whole):
    assert downsample(whole, Y, None) is whole


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
        downsample(whole, Y, keep, test=test)


def test_one_client_has_no_half():
    with pytest.raises(ConfigError, match="two at least"):
        downsample(make_partition(X, Y, "iid", clients=1), Y, 0.2)
