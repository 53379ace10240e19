import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, audit, har_fedmultimodal, har_modalities, load
from idiolect.data.sets.har.fedmultimodal import development, dirichlet_shards
from idiolect.data.sets.har.windows import read_windows
from tests.data.conftest import total_sizes
from tests.data.har_data import ROWS, write_har

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


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_har(tmp_path_factory.mktemp("signals"), columns=None)


def starts(data, split, client):
    """The moments at which a client's windows begin."""
    return data.modalities.part(data.split(split).client(client)[0], "body_acc")[:, 0, 0].astype(int).tolist()


@pytest.mark.parametrize("tested_on", ["people", "own"])
def test_each_window_is_at_one_client(small, tested_on):
    data = har_fedmultimodal(small, normalisation="none", tested_on=tested_on)
    assert data.clients[:6] == (*(f"subject 01 shard {i}" for i in range(5)), "subject 03 shard 0")
    assert data.num_clients == 10
    windows = read_windows(small, "signals", ["body_acc_x"])
    for person, clients in ((1, range(5)), (3, range(5, 10))):
        own = ("train", "validation") if tested_on == "people" else SPLITS
        found = [start for client in clients for split in own for start in starts(data, split, client)]
        assert sorted(found) == windows.x[windows.subjects == person, 0, 0].astype(int).tolist()
        assert sum(len(starts(data, "validation", client)) for client in clients) == ROWS // 5
    tested = sorted(start for client in range(10) for start in starts(data, "test", client))
    others = windows.x[windows.subjects == 12, 0, 0].astype(int).tolist()
    assert (tested == others) == (tested_on == "people")
    assert total_sizes(data).sum() == (3 * ROWS if tested_on == "people" else 2 * ROWS)


def test_what_is_tested_changes_no_validation_and_takes_from_training_only(small):
    people, own = (har_fedmultimodal(small, normalisation="none", tested_on=on) for on in ("people", "own"))
    np.testing.assert_array_equal(people.validation.x, own.validation.x)
    for client in range(10):
        assert sorted(starts(own, "train", client) + starts(own, "test", client)) == starts(people, "train", client)
    assert "which as published would train" in own.notes[0]
    assert "subject 12" in people.notes[0]


def test_the_signals_are_those_of_the_windows(small):
    data = har_fedmultimodal(small, ["body_gyro"])
    by_subject = har_modalities(small, ["body_gyro"], split="subjects", normalisation="window", validation=0.0)
    rows = {row.tobytes() for split in SPLITS for row in by_subject.split(split).x}
    assert {row.tobytes() for row in data.test.x} <= rows
    assert {row.tobytes() for row in data.train.x} <= rows


def test_the_leak_is_told(small):
    for on, split in (("people", "validation"), ("own", "validation"), ("own", "test")):
        data = har_fedmultimodal(small, normalisation="none", tested_on=on)
        shared, count = 0, 0
        for first in (0, 5):  # the five shards of a person
            trained = {m + k for c in range(first, first + 5) for m in starts(data, "train", c) for k in (-64, 64)}
            tested = [m for client in range(first, first + 5) for m in starts(data, split, client)]
            shared, count = shared + sum(m in trained for m in tested), count + len(tested)
        assert f"{shared / count:.1%} of the {split} windows" in " ".join(data.notes)
        assert any(f" {split} " in line and "divided at random" in line for line in audit(data).lines())


def test_is_made_again_from_its_arguments(small, monkeypatch):
    monkeypatch.setenv("IDIOLECT_DATA", str(small))
    options = ({}, {"alpha": 0.5, "shards": 3, "seed": 1, "tested_on": "own"}, {"missing": 0.4, "split_seed": 2})
    found = set()
    for chosen in options:
        data = load({"name": "har-fedmultimodal", **chosen})
        again = load({"name": "har-fedmultimodal", **data.provenance["arguments"]})
        assert again.fingerprint == data.fingerprint
        found.add(data.fingerprint)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha must be positive, it is 0"),
        ({"shards": 0}, "shards must be at least 1"),
        ({"seed": -1}, "seed must not be negative"),
        ({"tested_on": "person"}, "did you mean 'people'"),
        ({"test": 0.0}, "test fraction"),
        ({"modalities": "acc"}, "unknown modality 'acc'"),
        ({"normalisation": "zscore"}, "did you mean 'zscore-train'"),
        ({"missing": 1.0}, "below 1"),
    ],
)
def test_refuses_settings(small, options, message):
    with pytest.raises(ConfigError, match=message):
        har_fedmultimodal(small, **options)


@pytest.mark.second
@pytest.mark.parametrize("alpha", [5.0, 0.1])
def test_real_files(real_set, alpha):
    data = har_fedmultimodal(real_set("har"), alpha=alpha)
    assert data.num_clients == 105
    assert data.feature_shape == (2 * 384 + 2,)
    # 7,352 training windows of 21 people, a fifth of each person's, rounded down, for development.
    assert (data.train.sizes.sum(), data.validation.sizes.sum(), data.test.sizes.sum()) == (5890, 1462, 2947)
    assert data.train.sizes.min() >= 5
    kinds = [len(np.unique(data.train.client(client)[1])) for client in range(105)]
    assert (np.mean(kinds) > 5.9) if alpha == 5.0 else (np.mean(kinds) < 4)
