"""The contract's defaults, a cohort's weights, and the ranges of hyper-parameters."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from idiolect.algorithms.base import Algorithm, Cohort, check
from idiolect.algorithms.parts.averaging import Averaging
from idiolect.core.errors import ConfigError


def cohort(present: list[bool]) -> Cohort:
    sizes = jnp.array([6.0, 1.0, 3.0])
    return Cohort(jnp.array([4, 0, 2]), sizes, jnp.array(present), 5, jnp.asarray(20.0), 2.5)


@pytest.mark.parametrize(
    ("weighting", "present", "expected"),
    [
        ("uniform", [True, True, True], [1, 1, 1]),
        ("uniform", [True, False, True], [1, 0, 1]),
        ("size", [True, True, True], [6, 1, 3]),
        ("size", [False, True, False], [0, 1, 0]),
    ],
)
def test_a_message_weighs_one_or_its_samples_and_padding_nothing(
    weighting: Any, present: list[bool], expected: list[float]
) -> None:
    np.testing.assert_array_equal(cohort(present).weights(weighting), expected)


class Method(Algorithm):
    """A method with hyper-parameters and nothing else."""

    value: Any
    other: Any = 1.0
    name: ClassVar[str] = "mine"

    def local(self, *_: Any) -> Any:
        """Never called."""

    def aggregate(self, *_: Any) -> Any:
        """Never called."""


def test_a_setting_that_a_method_does_not_have_is_answered_by_the_one_that_is_meant() -> None:
    class Mine(Averaging):
        name: ClassVar[str] = "mine"

        def local(self, view: Any, private: Any, client: Any, key: Any) -> Any:
            return view, private

    assert Mine(weighting="uniform").weighting == "uniform"
    with pytest.raises(ConfigError, match=r"^unknown setting of mine 'server_rates'; did you mean 'server_rate'\?$"):
        Mine(server_rates=0.1)  # type: ignore[call-arg]


def test_by_default_the_client_sees_all_and_the_server_says_nothing() -> None:
    method, shared = Method(1.0), {"w": jnp.arange(3.0)}
    assert method.view(shared, jnp.asarray(3)) is shared
    assert method.model_names == ("global",)
    assert not method.everyone


BOUNDS = {
    # bound: values that are allowed; those that are not, with what is said of them
    "positive": ([0.1, 3, 1e9], [(0, "greater than 0"), (-1.0, "greater than 0")]),
    "nonnegative": ([0, 0.0, 2.5], [(-1e-9, "not be negative")]),
    "share": ([0.0, 0.5, 1.0], [(-0.1, "not be negative"), (1.1, "not be greater than 1")]),
    "decay": ([0.0, 0.999], [(-0.1, "not be negative"), (1.0, "less than 1")]),
    "count": ([1, 7], [(0, "greater than 0"), (-2, "greater than 0"), (1.0, "a whole number"), ("1", "a whole")]),
    "whole": ([0, 7], [(-1, "not be negative"), (0.5, "a whole number")]),
}


@pytest.mark.parametrize("bound", BOUNDS)
def test_values_of_a_range(bound: str) -> None:
    allowed, refused = BOUNDS[bound]
    for value in allowed:
        check(Method(value), value=bound)
    for value, said in refused:
        with pytest.raises(ConfigError, match=rf"^mine: value = {value!r} must (be a |be |)?{said}"):
            check(Method(value), value=bound)


@pytest.mark.parametrize("bound", ["positive", "nonnegative", "share", "decay"])
@pytest.mark.parametrize(
    ("value", "said"),
    [(float("nan"), "a finite number"), (float("inf"), "a finite number"), ("1", "a number"), (True, "a number")],
)
def test_what_is_no_finite_number(bound: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"^mine: value = .* must be {said}$"):
        check(Method(value), value=bound)


@pytest.mark.parametrize("make", [jnp.asarray, np.asarray, tuple])
def test_every_entry_is_checked(make: Any) -> None:
    check(Method(make([0.5, 1.0])), value="positive")
    check(Method(make([0.5, 1.0])), value="share")
    for bound, bad in (("positive", 0.0), ("nonnegative", -1.0), ("share", 2.0), ("decay", 1.0)):
        with pytest.raises(ConfigError):
            check(Method(make([0.5, bad])), value=bound)
        with pytest.raises(ConfigError):
            check(Method(make([bad, 0.5])), value=bound)


def test_a_name_is_one_of_the_allowed() -> None:
    check(Method("size"), value=("uniform", "size"))
    with pytest.raises(ConfigError, match=r"^mine: value = 'siz' is not one of 'uniform', 'size'$"):
        check(Method("siz"), value=("uniform", "size"))


def test_all_fields_are_checked_and_traced_values_are_left_to_who_made_them() -> None:
    with pytest.raises(ConfigError, match="other = -1"):
        check(Method(1.0, other=-1.0), value="positive", other="positive")

    @jax.jit
    def traced(value: Any) -> Any:
        check(Method(value), value="positive")
        return value

    assert traced(-1.0) == -1
