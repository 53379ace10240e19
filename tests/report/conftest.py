"""One toy comparison for the tests of the report; nobody writes to it."""

import numpy as np
import pytest

from tests.report import stores


@pytest.fixture(scope="package")
def advice():
    """What a race of two rounds on two divisions advises three clients."""
    from idiolect.data import from_arrays
    from idiolect.study.advice.advise import advise

    rng = np.random.default_rng(0)
    parts = {}
    for i in range(3):
        x = rng.normal(size=(30, 2))
        parts[f"c{i}"] = (x, 10 * x[:, 0] + 5 * rng.normal(size=30))
    return advise(from_arrays(parts, title="made", task="regression"), methods=(), splits=2, rounds=2)


@pytest.fixture(scope="package")
def toy(tmp_path_factory):
    return stores.toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="package")
def said(tmp_path_factory):
    return stores.said(tmp_path_factory.mktemp("said"))


@pytest.fixture(scope="package")
def by_class(tmp_path_factory):
    return stores.by_class(tmp_path_factory.mktemp("by-class"))


@pytest.fixture(scope="package")
def timed(tmp_path_factory):
    return stores.timed(tmp_path_factory.mktemp("timed"))


@pytest.fixture(scope="package")
def tuned(tmp_path_factory):
    return stores.tuned(tmp_path_factory.mktemp("tuned"))


@pytest.fixture(scope="package")
def cell(toy):
    return toy.experiment.cells[0]
