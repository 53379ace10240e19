from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import jax
import numpy as np
import pytest
from annotated_types import Gt
from pydantic import AfterValidator
from typing_extensions import TypedDict

from idiolect.core.errors import ConfigError
from idiolect.core.settings import REQUIRED, Setting, Words, checked, json_schema, settings_of, validated

Number = jax.Array | np.floating | float
Order = Literal["fresh", "epoch"]


@pytest.mark.parametrize(
    ("annotation", "value", "read"),
    [
        (bool, True, True),
        (int, 3, 3),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (Number, 0.5, 0.5),
        (str, "b", "b"),
        (Number | None, None, None),
        (str | Callable[[Any], Any] | None, "adam", "adam"),
        (tuple[Number, ...], [0.1, 1], (0.1, 1.0)),
        (tuple[Number, ...], 0.1, (0.1,)),
        (tuple[str, ...], "acc", ("acc",)),
        (tuple[str, ...], ["acc", "gyro"], ("acc", "gyro")),
        (Sequence[int] | None, (1, 2.0), [1, 2]),
        (str | Sequence[str], "a", "a"),
        (str | Sequence[str], ["a"], ["a"]),
        (str | Path | None, "a/b", "a/b"),
        (Order, "fresh", "fresh"),
        (Order | None, None, None),
        (dict[str, int], {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_of_the_type_is_read_as_it(annotation, value, read):
    got = checked(annotation, value, "fedavg: key")
    assert got == read
    assert type(got) is type(read)


@pytest.mark.parametrize(
    ("annotation", "value", "wanted"),
    [
        (bool, 1, "true or false"),
        (int, 0.5, "a whole number"),
        (int, True, "a whole number"),
        (int, "1", "a whole number"),
        (int, float("inf"), "a whole number"),
        (int, float("nan"), "a whole number"),
        (float, "1", "a number"),
        (float, False, "a number"),
        (float, None, "a number"),
        (float, float("nan"), "a finite number"),
        (Number | None, float("inf"), "a finite number or null"),
        (str, 1, "a name"),
        (str | Path | None, 1, "a path or null"),
        (str | int | None, [], "a name, a whole number or null"),
        (tuple[Number, ...], [None], "a list of numbers"),
        (tuple[Number, ...], True, "a list of numbers"),
        (Sequence[str], "acc", "a list of names"),
        (Sequence[int], [0.5], "a list of whole numbers"),
        (str | Sequence[str], [1], "a name or a list of names"),
        (Order, 3, "'fresh' or 'epoch'"),
        (Order, "xyz", "'fresh' or 'epoch'"),
        (Order, "frsh", "'fresh' or 'epoch'; did you mean 'fresh'?"),
        (Order | None, "epcoh", "'fresh', 'epoch' or null; did you mean 'epoch'?"),
        (Mapping[str, int], 3, "a table"),
        (Annotated[int, Gt(0), Words("a count")] | None, 0, "a count or null"),
    ],
)
def test_a_value_of_another_type_is_refused_in_words(annotation, value, wanted):
    with pytest.raises(ConfigError) as caught:
        checked(annotation, value, "fedavg: key")
    assert str(caught.value) == f"fedavg: key = {value!r} must be {wanted}"


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (bool, {"type": "boolean"}),
        (int | None, {"type": "integer"}),
        (Number, {"type": "number"}),
        (str | Path | None, {"type": "string"}),
        (Order, {"enum": ["fresh", "epoch"]}),
        (Order | None, {"enum": ["fresh", "epoch"]}),
        (str | int, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        (tuple[float, ...], {"anyOf": [{"type": "number"}, {"type": "array", "items": {"type": "number"}}]}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (Mapping[str, int], {"type": "object"}),
        (Annotated[int, Gt(0), Words("a count")], {"type": "integer", "exclusiveMinimum": 0}),
        (jax.Array, {}),
    ],
)
def test_the_schema_of_a_type_is_that_of_its_plain_values(annotation, schema):
    assert json_schema(annotation) == schema


def test_a_long_value_is_cut():
    with pytest.raises(ConfigError) as caught:
        checked(int, "x" * 1000, "k")
    assert len(str(caught.value)) < 120


def test_a_types_own_refusal_comes_through():
    def even(value: int) -> int:
        if value % 2:
            raise ConfigError(f"{value} is odd")
        return value

    for kind in (Annotated[int, AfterValidator(even)], Annotated[int, AfterValidator(even)] | None):
        assert checked(kind, 2, "k") == 2
        with pytest.raises(ConfigError, match=r"^3 is odd"):
            checked(kind, 3, "k")


class More(TypedDict, total=False):
    share: float
    name: str


@dataclass
class Method:
    rate: Number = 0.1
    steps: int = 2
    made: int = field(default=0, init=False)
    needed: str = field(kw_only=True)


def loader(pool: np.ndarray, size: int, *, scale: float = 1.0, **more: Unpack[More]) -> None: ...


def test_a_signature_says_what_may_be_given():
    found = settings_of(loader, hidden=("pool",))
    assert list(found) == ["size", "scale", "share", "name"]
    assert found["size"] == Setting(int, REQUIRED)
    assert found["scale"] == Setting(float, 1.0)
    assert found["share"].annotation is float
    assert settings_of(Method) == {"rate": Setting(Number, 0.1), "steps": Setting(int, 2)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size": 3, "scael": 1}, "unknown key of data set 'x' 'scael'; did you mean 'scale'?"),
        ({"size": 3, "pool": 1}, "unknown key of data set 'x' 'pool'; known: name, scale, share, size"),
        ({"size": 3, 5: 1}, "unknown key of data set 'x' '5'"),
        ({"scale": 1}, "data set 'x' needs size, which must be a whole number"),
        ({"size": 3, "share": "half"}, "data set 'x': share = 'half' must be a number"),
    ],
)
def test_unknown_missing_and_mistyped_are_named(given, message):
    with pytest.raises(ConfigError) as caught:
        validated(settings_of(loader, hidden=("pool",)), given, "data set 'x'")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_what_is_given_comes_back_and_no_more():
    given = {"size": 3.0, "share": 1}
    found = validated(settings_of(loader, hidden=("pool",)), given, "x")
    assert found == {"size": 3, "share": 1.0}
    assert given == {"size": 3.0, "share": 1}
    with pytest.raises(ConfigError, match=r"^model\.rate = 'a' must"):
        validated(settings_of(Method), {"rate": "a"}, "method x", prefix="model.")
