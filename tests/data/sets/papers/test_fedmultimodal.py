import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data.sets.papers.fedmultimodal import development, dirichlet_shards

LABELS = np.resize([0, 1, 2, 0, 1], 60)


def test_the_draws_are_those_of_the_published_code():
    """What FedMultimodal's own functions give for the same labels and keys (run at commit 1013d71)."""
    assert [len(part) for part in dirichlet_shards(LABELS, 4, 5.0)] == [13, 19, 16, 12]
    second = [35, 53, 28, 5, 55, 25, 29, 9, 49, 24, 59, 11, 41, 16, 12, 57, 42, 37, 22]
    assert dirichlet_shards(LABELS, 4, 5.0)[1].tolist() == second
    assert [len(part) for part in dirichlet_shards(LABELS, 4, 0.1)] == [17, 5, 13, 25]
    assert dirichlet_shards(LABELS, 4, 0.1)[1].tolist() == [47, 32, 27, 52, 42]
    assert development([f"{i:02}" for i in range(12)])[1].tolist() == [7, 9]
    assert development([str(i) for i in range(12)])[1].tolist() == [5, 7]  # places 7 and 9 of 0, 1, 10, 11, 2, ...


@pytest.mark.parametrize("alpha", [0.1, 5.0, 1000.0])
def test_each_sample_is_in_one_shard(alpha):
    for seed in range(5):
        parts = dirichlet_shards(LABELS, 4, alpha, seed=seed)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(60))
        assert min(map(len, parts)) >= 5


def test_a_small_alpha_gives_few_classes_a_large_one_all():
    def kinds(alpha):
        parts = [part for seed in range(20) for part in dirichlet_shards(LABELS, 4, alpha, seed=seed)]
        return np.mean([len(np.unique(LABELS[part])) for part in parts])

    assert kinds(1000.0) == 3
    assert kinds(0.1) < 2.3


def test_a_fifth_is_for_development():
    train, held = development([f"7/{i}" for i in range(52)])
    np.testing.assert_array_equal(np.sort(np.concatenate([train, held])), np.arange(52))
    assert len(held) == 10


def test_a_class_that_only_full_shards_would_get_goes_to_the_last():
    labels = np.repeat([0, 1], [50, 10])
    for seed in range(40):  # with so small an alpha a class has one taker, and the first of them is full
        parts = dirichlet_shards(labels, 2, 1e-4, seed=seed, minimum=0)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(60))


def test_too_few_samples_for_so_many_shards():
    with pytest.raises(DataError, match=r"no draw of 1000 gives each of 4 shards 5 of 19 samples; raise alpha"):
        dirichlet_shards(LABELS[:19], 4, 5.0)
