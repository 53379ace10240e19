import math

import pytest

from idiolect.core.errors import ConfigError
from idiolect.models import spec


@pytest.mark.parametrize(
    ("reader", "value", "read"),
    [
        (spec.positive, 3, 3),
        (spec.widths, 100, [100]),
        (spec.widths, (200, 100), [200, 100]),
        (spec.layers, [], []),
        (spec.layers, (), []),
        (spec.layers, 384, [384]),
        (spec.image, None, None),
        (spec.image, (28, 28), [28, 28]),
        (spec.image, [32, 32, 3], [32, 32, 3]),
        (spec.penalty, 0, 0.0),
        (spec.penalty, 0.5, 0.5),
        (spec.activation, "tanh", "tanh"),
        (spec.padding, "SAME", "SAME"),
        (spec.initialisation, "zeros", "zeros"),
        (spec.loss, None, None),
        (spec.loss, "bce", "bce"),
    ],
)
def test_good_values_are_read(reader, value, read):
    got = reader("model.key", value)
    assert got == read
    assert type(got) is type(read)


@pytest.mark.parametrize(
    ("reader", "values"),
    [
        (spec.positive, [0, -1, 1.0, "3", True, None]),
        (spec.widths, [[], 0, [100, 0], [1.5], "100", None, [[3]], [True]]),
        (spec.layers, [0, [100, 0], "", "ab", None]),
        (spec.image, [[28], [1, 2, 3, 4], [28, 0], 784, "28x28"]),
        (spec.penalty, [-1e-9, math.nan, math.inf, "0.1", None, True]),
        (spec.activation, [3, None, ["relu"]]),
    ],
)
def test_bad_values_name_the_key(reader, values):
    for value in values:
        with pytest.raises(ConfigError, match=r"^model\.key must "):
            reader("model.key", value)


def test_unknown_names_suggest():
    with pytest.raises(ConfigError, match="unknown padding 'valid'; known: SAME, VALID"):
        spec.padding("model.padding", "valid")
    with pytest.raises(ConfigError, match="unknown activation 'rellu'; did you mean 'relu'"):
        spec.activation("model.activation", "rellu")
