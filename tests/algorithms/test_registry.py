"""Methods by name: what a specification makes, and what it is refused for."""

from typing import Any

import pytest

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.pfedme import PFedMe
from idiolect.algorithms.registry import ALGORITHMS, build, describe_methods, hyperparameters
from idiolect.core.errors import ConfigError


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_method_is_built_by_its_name_with_its_defaults(name: str) -> None:
    method = build(name)
    assert type(method) is ALGORITHMS[name]
    assert method.name == name
    defaults = hyperparameters(type(method))
    assert {key: getattr(method, key) for key in defaults} == defaults
    assert describe_methods()[name] == f"{method.summary} ({method.source})"
    assert isinstance(method, Algorithm)


def test_a_specification_changes_what_it_names() -> None:
    method = build({"name": "pfedme", "rate": 0.25, "local_steps": 7})
    assert isinstance(method, PFedMe)
    assert (method.rate, method.local_steps) == (0.25, 7)
    assert method.inner_steps == PFedMe().inner_steps
    assert build({"name": "fedavg", "rate": 1}).rate == 1  # a whole number stands for a float


def test_a_specification_is_not_used_up() -> None:
    spec = {"name": "fedavg", "rate": 0.5}
    assert build(spec).rate == build(spec).rate == 0.5
    assert spec == {"name": "fedavg", "rate": 0.5}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fedavgg", "unknown method 'fedavgg'; did you mean 'fedavg'"),
        ({"name": "fedavg", "rat": 1.0}, "unknown key of method fedavg 'rat'; did you mean 'rate'"),
        ({"name": "fedavg", "local_steps": 2.5}, "fedavg: local_steps"),
        ({"name": "fedavg", "rate": "fast"}, "fedavg: rate"),
        ({"name": "fedavg", "rate": -1.0}, "fedavg: rate = -1.0 must be greater than 0"),
        ({"rate": 1.0}, "a method needs a name .*fedavg.*, not None"),
        ({"name": 3}, "a method needs a name .*, not 3"),
        ({}, "a method needs a name"),
    ],
)
def test_refused_in_one_line(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        build(spec)
    assert "\n" not in str(error.value)


def test_hyperparameters_are_the_fields_with_their_defaults() -> None:
    found = hyperparameters(FedAvg)
    assert found["rate"] == FedAvg().rate
    assert "name" not in found
    assert "summary" not in found
    assert next(iter(found)) == "rate"  # settings are listed in this order


def bases_between(cls: type[Algorithm]) -> set[type]:
    return {base for base in cls.__mro__[1:] if issubclass(base, Algorithm) and base is not Algorithm}


def depth(cls: type) -> int:
    """Classes on the longest way up to `Algorithm`, which does not count itself."""
    above = [base for base in cls.__bases__ if issubclass(base, Algorithm)]
    return 0 if cls is Algorithm else 1 + max(map(depth, above))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_method_is_final_and_what_it_inherits_from_is_none(name: str) -> None:
    """What methods share is in few abstract bases, which have no name and are not registered."""
    cls = ALGORITHMS[name]
    assert {"name", "title", "summary", "source"} <= vars(cls).keys()  # its own, none inherited
    for base in bases_between(cls):
        assert base not in ALGORITHMS.values()
        assert not hasattr(base, "name")
    assert len(bases_between(cls)) <= 6
    assert depth(cls) - 1 <= 3
