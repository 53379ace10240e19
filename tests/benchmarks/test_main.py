"""The command line's reading of floors."""

from pathlib import Path

import pytest

from benchmarks.__main__ import interpreters, read_floors
from idiolect.core.errors import ConfigError


def test_the_floors_that_are_kept_here_can_be_read() -> None:
    floors = read_floors(Path(__file__).parents[2] / "benchmarks" / "floors.toml")
    assert floors
    assert all(floor > 0 for peers in floors.values() for floor in peers.values())


@pytest.mark.parametrize(
    ("text", "problem"),
    [("[W99]\ntorch = 1", "unknown workload 'W99'"), ("[W1]\nfedjax = 1", "unknown peer of W1"), ("[W1", "--check")],
)
def test_floors_of_nothing_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "floors.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_floors(path)


@pytest.mark.parametrize("given", ["flower=nowhere/python", "nobody=python"])
def test_an_interpreter_that_is_not_there_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=given.split("=")[0]):
        interpreters([given])
