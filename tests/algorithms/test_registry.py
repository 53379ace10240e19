"""Methods by name: what a specification makes, and what it is refused for."""

import json
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import pytest

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.fedavg import FedAvg
from idiolect.algorithms.fedper import FedPer
from idiolect.algorithms.fedu import FedU
from idiolect.algorithms.mmfl import MmFL
from idiolect.algorithms.pfedme import PFedMe
from idiolect.algorithms.registry import (
    ALGORITHMS,
    build,
    describe_methods,
    hyperparameters,
    register,
    specification,
)
from idiolect.core.errors import ConfigError
from idiolect.graphs import complete


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


class Own(FedAvg):
    """A user's method: FedAvg under another name, with a setting more."""

    name: ClassVar[str] = "own"
    extra: float = 1.0


def test_a_users_class_is_a_method_by_its_name():
    assert register(Own) == "own"
    assert build({"name": "own", "extra": 2}) == Own(extra=2.0)
    again = type("Own", (FedAvg,), {"name": "own", "__module__": Own.__module__, "__qualname__": Own.__qualname__})
    assert (register(again), ALGORITHMS["own"]) == ("own", again)  # the cell of a notebook, run twice
    assert register(FedAvg) == "fedavg"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "the class Mine has the name 'fedavg' of FedAvg: set name: ClassVar"),
        ({"name": 3}, "the class Mine needs a name of letters, digits and hyphens"),
        ({"name": "a/b"}, "the class Mine needs a name of letters"),
        ({"name": ""}, "the class Mine needs a name of letters"),
        ({"name": "own"}, "the class Mine has the name 'own' of Own"),
    ],
)
def test_a_class_without_a_name_of_its_own_is_refused(names, message):
    register(Own)
    with pytest.raises(ConfigError, match=message):
        register(type("Mine", (FedAvg,), names))


@pytest.mark.parametrize(
    "method",
    [
        FedAvg(),
        FedAvg(rate=0.1, local_steps=3),
        FedAvg(rate=np.float32(0.5)),
        Own(extra=3.0),
        FedU(graph=complete(3)),
        FedPer(head=lambda path, _: "bias" in path),
        MmFL(rates=(0.1, 0.2)),
    ],
)
def test_a_specification_makes_an_equal_method(method):
    spec = specification(method)
    json.dumps(spec)
    made = build(spec)
    assert type(made) is type(method)
    for field in fields(method):
        assert getattr(made, field.name) == getattr(method, field.name)
    assert spec == specification(made)


def test_what_is_no_plain_value_stands_by_its_content():
    first, second = specification(FedU(graph=complete(3))), specification(FedU(graph=complete(3)))
    assert first == second
    assert first["graph"].startswith("own-")
    graph = complete(3)
    assert len(graph.components) == 1  # computed and kept, which changes nothing of what it is
    assert specification(FedU(graph=graph)) == first
    assert specification(FedU(graph=complete(4)))["graph"] != first["graph"]
    with pytest.raises(ConfigError, match="unknown graph 'own"):
        build({"name": "fedu", "graph": "own"})


def test_a_specification_has_only_what_is_not_the_default():
    assert specification(FedAvg(rate=FedAvg().rate)) == {"name": "fedavg"}
