"""Errors: what is raised where a name is unknown or a condition fails, and what a caller may catch."""

import pickle
from pathlib import Path

import pytest

from idiolect.core.errors import (
    ConfigError,
    DataError,
    DivergedError,
    IdiolectError,
    StoreError,
    in_words,
    os_errors_as,
    reason_of,
    require,
    unknown,
)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("fedavgg", "did you mean 'fedavg'?"),
        ("itto", "did you mean 'ditto'?"),
        ("xyz", "known: apfl, ditto, fedavg"),
        ("", "known: apfl, ditto, fedavg"),
    ],
)
def test_an_unknown_name_is_answered_by_the_nearest_or_by_all_in_order(name: str, hint: str) -> None:
    error = unknown("method", name, (known for known in ("fedavg", "ditto", "apfl")))
    assert isinstance(error, ConfigError)
    assert str(error) == f"unknown method '{name}'; {hint}"


def test_what_other_libraries_call_it_is_known_where_it_is_meant() -> None:
    assert str(unknown("key", "lr", ("rate", "clients"))) == "unknown key 'lr'; did you mean 'rate'?"
    assert str(unknown("key", "lr", ("clients",))) == "unknown key 'lr'; known: clients"


def test_only_a_condition_that_fails_is_an_error() -> None:
    require(True, "never")
    with pytest.raises(ConfigError, match=r"^rate = -1 must not be negative$"):
        require(False, "rate = -1 must not be negative")


def test_one_base_is_enough_to_catch_all_and_a_setting_is_a_value_error_too() -> None:
    for kind in (DataError, ConfigError, StoreError, DivergedError):
        assert issubclass(kind, IdiolectError)
    assert [issubclass(kind, ValueError) for kind in (ConfigError, DataError, StoreError)] == [True, False, False]


@pytest.mark.parametrize("client", ["ward 3", None])
def test_a_divergence_comes_back_whole_from_a_worker_process(client: str | None) -> None:
    error = pickle.loads(pickle.dumps(DivergedError("it burst", round=7, client=client, stage="local")))
    assert isinstance(error, DivergedError)
    assert (str(error), error.round, error.client, error.stage) == ("it burst", 7, client, "local")


def test_the_first_thing_that_a_model_found_wrong_is_said_with_its_place_or_of_all_of_it() -> None:
    from pydantic import BaseModel, ValidationError, field_validator

    from idiolect.core.errors import first_of

    class Settings(BaseModel):
        rounds: int

        @field_validator("rounds")
        @classmethod
        def positive(cls, value: int) -> int:
            if value < 1:
                raise ValueError("must be at least 1")
            return value

    said = {}
    for text in ('{"rounds": 0}', '{"rounds": "x"}', "{"):
        with pytest.raises(ValidationError) as error:
            Settings.model_validate_json(text)
        said[text] = first_of(error.value)
    assert said['{"rounds": 0}'] == "rounds: must be at least 1"
    assert said['{"rounds": "x"}'].startswith("rounds: Input should be a valid integer")
    assert said["{"].startswith("it: Invalid JSON: EOF")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Input should be a valid integer, unable to parse string as an integer", "must be a whole number"),
        ("Input should be a valid integer, got a number with a fractional part", "must be a whole number"),
        ("Input should be a valid number, unable to parse string as a number", "must be a number"),
        ("Input should be a valid tuple", "must be a list"),
        ("Input should be a valid dictionary or instance of Method", "must be a table"),
        ("Input should be greater than or equal to 1", "must be at least 1"),
        ("Input should be less than or equal to 10000", "must be at most 10000"),
        ("Input should be greater than 0", "must be greater than 0"),
        ("Input should be 'fixed' or 'binomial'", "must be 'fixed' or 'binomial'"),
        ("Tuple should have at least 1 item after validation, not 0", "must have at least 1 entry"),
        ("Value error, 'x' is not one of 'a', 'b'", "'x' is not one of 'a', 'b'"),
    ],
)
def test_what_pydantic_says_is_in_a_users_words(message, words):
    assert in_words(message) == words


def test_what_the_system_refuses_is_an_error_with_its_reason_and_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"^cannot read it: No such file or directory$") as caught,
        os_errors_as("cannot read it"),
    ):
        (tmp_path / "none").read_bytes()
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with (
        pytest.raises(DataError, match=r"^no table: Is a directory; name a file$"),
        os_errors_as("no table", DataError, after="; name a file"),
    ):
        tmp_path.read_bytes()
    with pytest.raises(ConfigError, match=r"^other$"), os_errors_as("cannot read it"):
        raise ConfigError("other")
    with os_errors_as("cannot read it"):
        pass
    assert reason_of(OSError("no number")) == "no number"
    assert reason_of(ValueError("embedded null byte")) == "embedded null byte"
