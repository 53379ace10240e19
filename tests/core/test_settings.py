import pytest

from idiolect.core.errors import ConfigError
from idiolect.core.settings import check_type


@pytest.mark.parametrize(
    ("value", "default"),
    [
        *[(True, False), (3, 1), (3.0, 1), (3, 1.0), (0.5, 1.0), ("a", "b"), (None, None), (0.5, None)],
        *[("adam", None), ([0.1, 1], (0.1,)), (0.1, (0.1,)), ("acc", ()), (["acc", "gyro"], ())],
    ],
)
def test_a_value_of_the_default_s_type_passes(value, default):
    check_type("fedavg: key", value, default)


@pytest.mark.parametrize(
    ("value", "default", "wanted"),
    [
        (1, False, "true or false"),
        (0.5, 1, "a whole number"),
        (True, 1, "a whole number"),
        (float("inf"), 1, "a whole number"),
        (float("nan"), 1, "a whole number"),
        ("1", 1.0, "a number"),
        (False, 1.0, "a number"),
        (1, "name", "a name"),
        ([], None, "a number, a name or null"),
        ([None], (0.1,), "a list"),
        (True, (0.1,), "a list"),
    ],
)
def test_a_value_of_another_type_is_refused(value, default, wanted):
    with pytest.raises(ConfigError, match=f"fedavg: key = .* must be {wanted}"):
        check_type("fedavg: key", value, default)
