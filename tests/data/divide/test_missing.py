import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS, FederatedData, Split, har_modalities
from idiolect.data.divide.missing import MissingPattern, drop_modalities
from idiolect.data.modalities import Modalities
from tests.data.har_data import write_har

LAYOUT = Modalities(("a", "b", "c"), ((2, 2), (3,), (1,)))


def federation(clients: int = 40, size: int = 6, layout: Modalities = LAYOUT) -> FederatedData:
    """Every client has as many samples in each split; all modalities are there."""
    rng = np.random.default_rng(0)
    count = clients * size

    def split() -> Split:
        parts = {n: rng.normal(size=(count, *s)) for n, s in zip(layout.names, layout.shapes, strict=True)}
        return Split(layout.pack(parts), rng.integers(0, 2, count).astype(np.int32), np.arange(clients + 1) * size)

    names = tuple(f"client {i}" for i in range(clients))
    return FederatedData("made", split(), split(), split(), names, "classification", ("0", "1"), modalities=layout)


def flags(data: FederatedData, split: str = "train") -> np.ndarray:
    """(samples, modalities): which are there."""
    x = data.split(split).x
    return np.stack([LAYOUT.present(x, name) for name in data.modalities.names], axis=1) > 0


@pytest.mark.parametrize("by", ["client", "sample"])
def test_what_is_lost_is_zero_and_the_rest_is_untouched(by: str) -> None:
    whole = federation()
    less = drop_modalities(whole, MissingPattern(0.4, by))
    for split in SPLITS:
        there = flags(less, split)
        assert 0 < there.mean() < 1
        assert there.any(axis=1).all()
        for number, name in enumerate(LAYOUT.names):
            before, after = (LAYOUT.part(data.split(split).x, name) for data in (whole, less))
            shown = there[:, number].reshape(-1, *(1,) * (before.ndim - 1))
            np.testing.assert_array_equal(after, np.where(shown, before, 0))
        np.testing.assert_array_equal(less.split(split).y, whole.split(split).y)


@pytest.mark.parametrize("by", ["client", "sample"])
def test_a_higher_rate_takes_away_all_that_a_lower_one_does(by: str) -> None:
    whole = federation()
    rates = (0.0, 0.1, 0.2, 0.35, 0.5, 0.8, 0.99)
    for split in SPLITS:
        kept = [flags(drop_modalities(whole, MissingPattern(rate, by)), split) for rate in rates]
        for lower, higher in pairwise(kept):
            assert not (higher & ~lower).any()
        assert kept[0].all()
        np.testing.assert_array_equal(kept[-1].sum(axis=1).mean(), 1)  # at most one is left, and never none
        assert kept[2].mean() > kept[4].mean() > kept[5].mean()


@pytest.mark.parametrize("by", ["client", "sample"])
@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_the_share_that_is_lost(by: str, rate: float) -> None:
    """r - r^M / M, within four standard errors of independent draws."""
    data = federation(4000, 1) if by == "client" else federation(40, 100)
    lost = ~flags(drop_modalities(data, MissingPattern(rate, by, missing_seed=1)))
    expected = rate - rate**3 / 3
    error = np.sqrt(expected * (1 - expected) / len(lost))
    for share in lost.mean(axis=0):  # each modality alike
        assert abs(share - expected) < 4 * error
    if by == "client":
        pairs = (lost[:, 0] & lost[:, 1]).mean()  # r^2 (1 - r), and a third of the r^3 that would lose all
        assert abs(pairs - (rate**2 * (1 - rate) + rate**3 / 3)) < 4 * np.sqrt(pairs / len(lost))


def test_a_client_lacks_a_modality_in_all_of_its_samples() -> None:
    data = drop_modalities(federation(), MissingPattern(0.5, "client"))
    of_clients = [flags(data, split).reshape(40, 6, 3) for split in SPLITS]
    for there in of_clients:
        np.testing.assert_array_equal(there, np.broadcast_to(there[:, :1], there.shape))
        np.testing.assert_array_equal(there, of_clients[0])
    by_sample = flags(drop_modalities(federation(), MissingPattern(0.5, "sample"))).reshape(40, 6, 3)
    assert (by_sample != by_sample[:, :1]).any()
    assert (
        by_sample != flags(drop_modalities(federation(), MissingPattern(0.5, "sample")), "test").reshape(40, 6, 3)
    ).any()


@pytest.mark.parametrize("by", ["client", "sample"])
def test_the_draws_do_not_depend_on_the_other_clients(by: str) -> None:
    whole = federation()
    pattern = MissingPattern(0.5, by, missing_seed=3)
    first = drop_modalities(whole.select(lambda client: client % 3 == 1), pattern)
    then = drop_modalities(whole, pattern).select(lambda client: client % 3 == 1)
    assert first.fingerprint == then.fingerprint
    turned = replace(
        whole,
        clients=whole.clients[::-1],
        **{
            split: Split(
                np.concatenate([whole.split(split).client(i)[0] for i in reversed(range(40))]),
                np.concatenate([whole.split(split).client(i)[1] for i in reversed(range(40))]),
                whole.split(split).offsets,
            )
            for split in SPLITS
        },
    )
    there = flags(drop_modalities(whole, pattern)).reshape(40, 6, 3)
    np.testing.assert_array_equal(flags(drop_modalities(turned, pattern)).reshape(40, 6, 3)[::-1], there)
    assert (there != flags(drop_modalities(whole, replace(pattern, missing_seed=4))).reshape(40, 6, 3)).any()


def test_only_in_the_splits_named() -> None:
    whole = federation()
    data = drop_modalities(whole, MissingPattern(0.5, "sample", missing_in=("test", "train")))
    assert data.validation is whole.validation
    assert not flags(data, "train").all()
    assert not flags(data, "test").all()
    everywhere = drop_modalities(whole, MissingPattern(0.5, "sample"))
    np.testing.assert_array_equal(data.test.x, everywhere.test.x)
    assert data.provenance["missing"][0]["missing_in"] == ["train", "test"]
    assert MissingPattern(0.5, missing_in="test").missing_in == ("test",)


def test_by_client_and_then_by_sample() -> None:
    once = drop_modalities(federation(), MissingPattern(0.5, "client"))
    twice = drop_modalities(once, MissingPattern(0.5, "sample"))
    assert not (flags(twice) & ~flags(once)).any()
    assert flags(twice).any(axis=1).all()
    assert flags(twice).mean() < flags(once).mean()
    assert [done["missing_by"] for done in twice.provenance["missing"]] == ["client", "sample"]


def test_it_is_told() -> None:
    whole = federation()
    assert drop_modalities(whole, MissingPattern()) is whole
    data = drop_modalities(whole, MissingPattern(0.3, "sample", 7, ("train",)))
    assert data.name == "made/missing-0.3-by-sample"
    (told,) = json.loads(json.dumps(data.provenance))["missing"]
    lost = ~flags(data)
    assert told["absent"] == {n: pytest.approx(share, abs=1e-6) for n, share in zip("abc", lost.mean(0), strict=True)}
    assert f"a is absent in {lost.mean(0)[0]:.1%} of the samples" in data.notes[-1]
    assert "seed 7, in train" in data.notes[-1]


def test_a_split_without_samples_stays_so() -> None:
    whole = federation()
    empty = Split(whole.train.x[:0], whole.train.y[:0], np.zeros(41, np.int64))
    data = drop_modalities(replace(whole, validation=empty), MissingPattern(0.5, missing_in=("validation",)))
    assert data.validation.x.shape == empty.x.shape
    assert data.provenance["missing"][0]["absent"] == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"missing": 1.0}, "missing must be at least 0 and below 1, it is 1.0"),
        ({"missing": float("nan")}, "missing must be at least 0"),
        ({"missing_by": "clients"}, "did you mean 'client'"),
        ({"missing_seed": -1}, "missing_seed must not be negative"),
        ({"missing_in": ["tests"]}, "did you mean 'test'"),
        ({"missing_in": []}, "missing_in must name one split"),
    ],
)
def test_refuses_settings(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        MissingPattern(**settings)
    assert "\n" not in str(error.value)


def test_refuses_data_without_modalities() -> None:
    with pytest.raises(DataError, match="made: its samples have no modalities"):
        drop_modalities(replace(federation(), modalities=None), MissingPattern(0.3))


def test_as_options_of_a_source(tmp_path) -> None:
    root = write_har(tmp_path, columns=None)
    whole = har_modalities(root)
    data = har_modalities(root, missing=0.6, missing_by="sample", missing_seed=2, missing_in=["test"])
    assert data.fingerprint == drop_modalities(whole, MissingPattern(0.6, "sample", 2, ("test",))).fingerprint
    assert har_modalities(root, **data.provenance["arguments"]).fingerprint == data.fingerprint
    with pytest.raises(ConfigError, match="below 1"):
        har_modalities(root, missing=1.5)
