import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import SPLITS
from idiolect.data.divide.missing import MissingPattern
from idiolect.data.modalities import Modalities
from idiolect.data.sets.mosei.utterances import Utterances, VideoOptions, from_utterances

LAYOUT = Modalities(("text", "audio"), ((4, 3), (4, 2)))
VIDEOS = ["a"] * 6 + ["b"] * 4 + ["c"] * 5 + ["d"] * 5 + ["e"] * 8
PARTS = ["train"] * 10 + ["validation"] * 5 + ["test"] * 13


def pool(**changes):
    """28 utterances of five videos, each with its row as its first number."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(28, 4, 5)).astype(np.float32)
    x[:, 0, 0] = x[:, 0, 3] = np.arange(28)
    y = rng.normal(size=28).astype(np.float32)
    return Utterances(
        **{"x": x, "y": y, "layout": LAYOUT, "video": np.array(VIDEOS), "part": np.array(PARTS), **changes}
    )


def options(**changes):
    plain = {
        "modalities": ["text", "audio"],
        "clients": None,
        "split": "within",
        "new": False,
        "normalisation": "none",
    }
    rest = {"minimum": None, "test": 0.25, "validation": 0.2, "split_seed": 0}
    return VideoOptions(**{**plain, **rest, **changes})


def rows(data, split, name="text"):
    return sorted(data.modalities.part(data.split(split).x, name)[:, 0, 0].astype(int).tolist())


def test_within_every_video_is_divided():
    data = from_utterances(pool(), options(), MissingPattern(), source="made")
    assert data.clients == ("a", "b", "c", "d", "e")
    assert sorted(row for split in SPLITS for row in rows(data, split)) == list(range(28))
    assert (data.task, data.train.y.dtype) == ("regression", np.float32)
    for split in SPLITS:
        owners = np.array(data.clients)[data.split(split).owners]
        x = data.modalities.part(data.split(split).x, "audio")[:, 0, 0].astype(int)
        assert np.array(VIDEOS)[x].tolist() == owners.tolist()


def test_published_parts_are_used_as_published():
    data = from_utterances(pool(), options(split="published"), MissingPattern(), source="made")
    assert data.clients == ("a", "b")
    assert (rows(data, "train"), rows(data, "validation")) == (list(range(10)), list(range(10, 15)))
    assert rows(data, "test") == list(range(15, 28))
    assert "the published validation utterances" in " ".join(data.notes)
    without = from_utterances(
        pool(part=np.array(["train"] * 15 + ["test"] * 13)),
        options(split="published"),
        MissingPattern(),
        source="made",
    )
    assert without.clients == ("a", "b", "c")
    assert sorted(rows(without, "train") + rows(without, "validation")) == list(range(15))
    assert without.validation.sizes.tolist() == [1, 1, 1]


def test_new_clients_are_the_published_test_videos():
    data = from_utterances(pool(), options(split="published", new=True), MissingPattern(), source="made")
    assert data.clients == ("d", "e")
    assert sorted(row for split in SPLITS for row in rows(data, split)) == list(range(15, 28))


def test_videos_merged_into_fewer_clients_keep_their_utterances_and_splits():
    whole, few = (
        from_utterances(pool(), options(clients=count), MissingPattern(), source="made") for count in (None, 2)
    )
    assert few.clients == ("a to b", "c to e")
    for split in SPLITS:
        for client, videos in enumerate(((0, 1), (2, 3, 4))):
            parts = [whole.split(split).client(video) for video in videos]
            for k in (0, 1):
                np.testing.assert_array_equal(
                    few.split(split).client(client)[k], np.concatenate([p[k] for p in parts])
                )
    with pytest.raises(ConfigError, match="clients = 6 must lie between 1 and 5"):
        from_utterances(pool(), options(clients=6), MissingPattern(), source="made")


def test_one_modality_is_taken_from_its_columns():
    data = from_utterances(pool(), options(modalities="audio"), MissingPattern(), source="made")
    assert data.feature_shape == (4 * 2 + 1,)
    everything = pool().x[:, :, 3:]
    for split in SPLITS:
        part = data.modalities.part(data.split(split).x, "audio")
        np.testing.assert_array_equal(part, everything[part[:, 0, 0].astype(int)])


def test_refuses():
    for changes, message in (
        ({"split": "withn"}, "did you mean 'within'"),
        ({"new": True}, "new goes with split='published', not 'within'"),
        ({"modalities": []}, "modalities must name one"),
        ({"normalisation": "z"}, "unknown normalisation"),
        ({"test": 0.0}, "test fraction"),
    ):
        with pytest.raises(ConfigError, match=message):
            options(**changes)
    with pytest.raises(ConfigError, match="unknown modality 'smell'"):
        from_utterances(pool(), options(modalities="smell"), MissingPattern(), source="made")
    part = np.array(["train"] * 28)
    with pytest.raises(DataError, match="no utterance is of the published test part"):
        from_utterances(pool(part=part), options(split="published"), MissingPattern(), source="made")
    with pytest.raises(DataError, match="every client has fewer than minimum=9"):
        from_utterances(pool(), options(minimum=9), MissingPattern(), source="made")
