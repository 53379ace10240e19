"""The run-time type checker of the tests: beartype, but for choices, whose values the code checks itself."""

from collections.abc import Callable
from typing import Any, Literal, get_origin

from beartype import BeartypeConf, beartype
from beartype.roar import BeartypeDecorHintPep3119Exception

_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int may stand for a float


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the arguments and the result of each call; a Literal lets any value through to the code's own check."""
    function.__annotations__ = {
        name: object if get_origin(hint) is Literal else hint for name, hint in function.__annotations__.items()
    }
    try:
        return _beartype(function)
    except BeartypeDecorHintPep3119Exception:  # a protocol that cannot be checked at run time
        return function
