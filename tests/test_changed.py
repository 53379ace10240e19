"""A changed module, test or page has its test file."""

from pathlib import Path

import pytest

from tests.changed import ROOT, mirror_of


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("src/idiolect/runtime/round.py", "tests/runtime/test_round.py"),
        ("src/idiolect/deploy/hub/server.py", "tests/deploy/hub/test_server.py"),
        ("tests/runtime/test_round.py", "tests/runtime/test_round.py"),
        ("tests/federations.py", None),
        ("docs/advice.md", "tests/docs/test_words.py"),
        ("Makefile", None),
    ],
)
def test_the_mirror_of_a_changed_file(path, test):
    found = mirror_of(Path(path))
    assert found == (None if test is None else Path(test))
    assert found is None or (ROOT / found).is_file()
