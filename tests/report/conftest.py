"""One toy comparison for the tests of the report; nobody writes to it."""

import pytest

from tests.report import stores


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
