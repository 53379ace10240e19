"""An old name works, and warns once, at the line that uses it."""

import sys
import types
import warnings
from pathlib import Path

import jaxtyping
import pytest

from idiolect.core import deprecation
from idiolect.core.deprecation import RenamedWarning, renamed_function, renamed_module, renamed_settings
from idiolect.core.errors import ConfigError


@pytest.fixture(autouse=True)
def nothing_warned_yet(monkeypatch):
    monkeypatch.setattr(deprecation, "_warned", set())
    checks = ("<@beartype", str(Path(jaxtyping.__file__).parent))  # the tests' type checks stand in between
    monkeypatch.setattr(deprecation, "_inside", (*deprecation._inside, *checks))


def caught(use):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        value = use()
    return value, found


def double(x, *, times=2):
    """Multiply."""
    return times * x


def test_a_renamed_function_warns_once_and_calls_the_new_one():
    twice = renamed_function(double, "twice", "0.3")
    value, (warning,) = caught(lambda: twice(4, times=3))
    assert value == 12
    assert warning.category is RenamedWarning
    assert str(warning.message) == (
        "the function 'twice' is now called 'double'; use the new name, because idiolect 0.3 removes the old one"
    )
    assert warning.filename == __file__
    assert caught(lambda: twice(4)) == (8, [])
    assert (twice.__name__, twice.__doc__) == ("twice", "Multiply.")


def test_old_settings_become_new_ones():
    def use():
        return renamed_settings({"rounds": 3, "lr": 0.1, "mu": 1.0}, {"lr": "rate", "mu": "prox_weight"}, "0.3")

    value, found = caught(use)
    assert list(value.items()) == [("rounds", 3), ("rate", 0.1), ("prox_weight", 1.0)]
    assert [str(warning.message).partition(";")[0] for warning in found] == [
        "the setting 'lr' is now called 'rate'",
        "the setting 'mu' is now called 'prox_weight'",
    ]
    assert all(warning.filename == __file__ for warning in found)
    assert caught(use)[1] == []


def test_new_settings_give_no_warning_and_both_names_are_refused():
    assert caught(lambda: renamed_settings({"rate": 0.1}, {"lr": "rate"}, "0.3")) == ({"rate": 0.1}, [])
    for both in ({"lr": 0.1, "rate": 0.2}, {"rate": 0.2, "lr": 0.1}):
        with pytest.raises(ConfigError, match="'lr' and 'rate' are the same setting; leave out 'lr'"):
            renamed_settings(both, {"lr": "rate"}, "0.3")


def test_a_module_that_has_moved_gives_the_names_of_the_new_one(monkeypatch):
    old = types.ModuleType("old_place")
    monkeypatch.setattr(old, "__getattr__", renamed_module("old_place", "json", "0.3"), raising=False)
    monkeypatch.setitem(sys.modules, "old_place", old)

    def use():
        return old.loads("[1]")

    value, (warning,) = caught(use)
    assert value == [1]
    assert str(warning.message).startswith("the module 'old_place' is now called 'json';")
    assert warning.filename == __file__
    assert caught(use) == ([1], [])
    with pytest.raises(AttributeError, match="neither 'old_place' nor 'json' has 'no_such'"):
        _ = old.no_such
    with pytest.raises(AttributeError, match="module 'old_place' has no attribute '__path__'"):
        _ = old.__path__


def test_python_shows_the_warning_by_default():
    assert issubclass(RenamedWarning, FutureWarning)
