from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import DataError
from idiolect.data import audit
from idiolect.data.sets.tasks import Options, binary, from_tasks

RNG = np.random.default_rng(0)
PLAIN = Options("none", None, 0.25, 0.1, 0, None, None)


def tasks(*sizes, labels=(-1, 1)):
    return {
        f"t{i}": (RNG.normal(i, 1 + i, (n, 3)).astype(np.float32), np.resize(np.array(labels, float), n))
        for i, n in enumerate(sizes)
    }


@pytest.mark.parametrize(("labels", "names"), [((-1, 1), ("-1", "+1")), ((0, 1), ("0", "1"))])
def test_binary_labels(labels, names):
    coded, classes = binary(tasks(4, 5, labels=labels), "file")
    assert classes == names
    assert coded["t1"][1].tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ((-1, 1, 0), "file: t0 has the label 0; labels are -1 and 1, or 0 and 1"),
        ((0, 1, 2), "file: t0 has the label 2"),
        ((-1, 0.5), "file: t0 has the label 0.5"),
        ((1, 1), "all labels are 1; classification needs both"),
        ((-1, -1), "all labels are -1"),
    ],
)
def test_refuses_other_labels(labels, message):
    with pytest.raises(DataError, match=message):
        binary(tasks(6, labels=labels), "file")


def test_one_client_a_task():
    given = tasks(20, 7, 9)
    coded, classes = binary(given, "file")
    data = from_tasks(coded, PLAIN, source="s", file="f.mat", classes=classes)
    assert data.clients == ("t0", "t1", "t2")
    assert data.train.y.dtype == np.int32
    assert [part.sizes.tolist() for part in (data.train, data.validation, data.test)] == [
        [13, 4, 5],
        [2, 1, 1],
        [5, 2, 3],
    ]
    for i, name in enumerate(given):
        rows = np.concatenate([data.split(split).client(i)[0] for split in ("train", "validation", "test")])
        np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(given[name][0], axis=0))
    assert data.provenance["file"] == "f.mat"
    assert audit(data).fitted_on == "unknown"


def test_targets_stay_numbers():
    data = from_tasks(tasks(20, 30, labels=(1.5, 7.25, 3)), PLAIN, source="s", file="f")
    assert data.task == "regression"
    assert data.classes == ()
    assert set(data.train.y.tolist()) == {1.5, 7.25, 3.0}


def test_options_do_what_they_say():
    coded, classes = binary(tasks(40, 40, 3), "file")

    def made(**changes):
        return from_tasks(coded, replace(PLAIN, **changes), source="s", file="f", classes=classes)

    scaled = made(normalisation="zscore-train")
    np.testing.assert_allclose(scaled.train.x.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(scaled.train.x.std(axis=0), 1, atol=1e-5)
    assert audit(scaled).fitted_on == "train"
    assert made(minimum=4).clients == ("t0", "t1")
    assert "t2" in made(minimum=4).notes[0]
    assert made(downsample=0.2).train.sizes.sum() < made().train.sizes.sum()
    assert made(split_seed=1).fingerprint != made().fingerprint
    with pytest.raises(DataError, match=r"client 't2' has 3 samples.*minimum=4"):
        made(test=0.75, validation=0.0)
