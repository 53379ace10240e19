"""What a person or a file gives: each fault is an error of one kind."""

import tomllib
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError
from idiolect.core.reading import json_of, path_of, toml_of

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("content", ["", "{", "1" * 5000, b"\xff", DEEP, DEEP.encode()])
def test_every_fault_of_json_is_a_value_error(content) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_of(content)
    assert json_of('{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize("content", ["a", "a = ", f"a = {DEEP}"])
def test_every_fault_of_toml_is_of_one_kind(content: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match=r"."):
        toml_of(content)
    assert toml_of("a = [1]") == {"a": [1]}


def test_a_nesting_that_is_too_deep_is_named() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        json_of(DEEP)
    with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
        toml_of(f"a = {DEEP}")


@pytest.mark.parametrize(("value", "shown"), [(None, "None"), (3, "an int"), (b"x", "a bytes"), ([], "a list")])
def test_what_is_no_path_is_named(value, shown: str) -> None:
    with pytest.raises(ConfigError, match=f"^a model is the path of its file, not {shown}$"):
        path_of(value, "a model is the path of its file")
    assert path_of("a/b", "") == path_of(Path("a/b"), "") == Path("a/b")
