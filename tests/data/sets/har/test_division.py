from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data import SPLITS
from idiolect.data.sets.har.division import Division, divided, notes_on, people
from idiolect.data.sets.har.files import Windows

PEOPLE, BOUT = (2, 5, 6, 11), 20  # two activities each, half-overlapping windows of a bout; the last two are held out


def windows() -> Windows:
    """Window k of the pool has the single feature k."""
    count = len(PEOPLE) * 2 * BOUT
    return Windows(
        x=np.arange(count, dtype=np.float32)[:, None],
        y=np.tile(np.repeat([0, 1], BOUT), len(PEOPLE)).astype(np.int32),
        subjects=np.repeat(PEOPLE, 2 * BOUT).astype(np.int32),
        held=np.repeat([False, False, True, True], 2 * BOUT),
        overlaps=np.arange(count) % BOUT > 0,
        measured=True,
        classes=("walk", "sit"),
        kind="signals",
    )


def division(split: str, **changes: Any) -> Division:
    plain = {"new": False, "held_out": None, "test": 0.25, "validation": 0.2, "split_seed": 0}
    return Division(split, **{**plain, "downsample": None, "downsample_test": None, **changes})


def test_people_and_their_windows() -> None:
    found = people(windows(), windows().held)
    assert list(found) == ["subject 06", "subject 11"]
    np.testing.assert_array_equal(found["subject 06"], np.arange(80, 120))


@pytest.mark.parametrize("validation", [0.0, 0.2])
def test_held_out_people_are_tested_and_the_others_train_on_all_they_have(validation: float) -> None:
    found = divided(windows(), division("subjects", validation=validation))
    assert found.partition.clients == ("subject 02", "subject 05")
    np.testing.assert_array_equal(np.sort(found.partition.test.index), np.arange(80, 160))
    used = [found.partition.rows(split).index for split in ("train", "validation")]
    # One training window of each activity overlaps the first validation window, and is left out.
    assert len(np.concatenate(used)) == 80 - (4 if validation else 0)
    assert not np.isin(used[0] + 1, used[1]).any()
    assert len(used[1]) == 80 * validation
    np.testing.assert_array_equal(found.fitted, used[0])
    assert notes_on(windows(), found) == ["incomplete: 160 windows of 10,299"]


def test_new_people_are_divided_as_they_would_be_among_all() -> None:
    new = divided(windows(), division("subjects", new=True))
    everyone = divided(windows(), division("blocked"))
    assert new.partition.clients == ("subject 06", "subject 11")
    for split in SPLITS:
        for own, client in ((0, 2), (1, 3)):
            expected = everyone.partition.rows(split).client(client)
            np.testing.assert_array_equal(new.partition.rows(split).client(own), expected)
    np.testing.assert_array_equal(new.fitted, divided(windows(), division("subjects")).partition.train.index)


def test_down_sampling_cuts_the_training_people_and_what_is_fitted() -> None:
    whole, less = (divided(windows(), division("subjects", downsample=keep)) for keep in (None, 0.5))
    assert sorted(less.partition.train.sizes / whole.partition.train.sizes) == [0.5, 1]
    np.testing.assert_array_equal(less.fitted, less.partition.train.index)
    new = divided(windows(), division("subjects", downsample=0.5, new=True))
    np.testing.assert_array_equal(new.fitted, less.fitted)
    untouched = divided(windows(), division("subjects", new=True))
    assert new.partition.fingerprint == untouched.partition.fingerprint


def test_only_a_random_split_leaks() -> None:
    leaks = {split: divided(windows(), division(split)).leaks for split in ("blocked", "random", "subjects")}
    assert [len(leaks[split]) for split in ("blocked", "random", "subjects")] == [0, 1, 0]
    assert any("share samples with" in note for note in notes_on(windows(), divided(windows(), division("random"))))


def test_choices_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match="new goes with split='subjects', not 'random'"):
        division("random", new=True)
    with pytest.raises(ConfigError, match="held_out goes with split='subjects', not 'blocked'"):
        division("blocked", held_out=[2])
    with pytest.raises(ConfigError, match="did you mean 'subjects'"):
        division("subject")
    assert division("subjects", held_out=(2,)).arguments["held_out"] == [2]
