import math

import pytest

from idiolect.core.errors import ConfigError
from idiolect.core.settings import checked
from idiolect.models import spec


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        (spec.Positive, 3, 3),
        (spec.Widths, 100, [100]),
        (spec.Widths, (200, 100), [200, 100]),
        (spec.Layers, [], []),
        (spec.Layers, (), []),
        (spec.Layers, 384, [384]),
        (spec.Image | None, None, None),
        (spec.Image, (28, 28), [28, 28]),
        (spec.Image, [32, 32, 3], [32, 32, 3]),
        (spec.Penalty, 0, 0.0),
        (spec.Penalty, 0.5, 0.5),
        (spec.ActivationName, "tanh", "tanh"),
        (spec.PaddingName, "SAME", "SAME"),
        (spec.Initialisation, "zeros", "zeros"),
        (spec.Loss | None, None, None),
        (spec.Loss, "bce", "bce"),
    ],
)
def test_good_values_are_read(kind, value, read):
    got = checked(kind, value, "model.key")
    assert got == read
    assert type(got) is type(read)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (spec.Positive, [0, -1, 1.0, "3", True, None]),
        (spec.Widths, [[], 0, [100, 0], [1.5], "100", None, [[3]], [True]]),
        (spec.Layers, [0, [100, 0], "", "ab", None]),
        (spec.Image | None, [[28], [1, 2, 3, 4], [28, 0], 784, "28x28"]),
        (spec.Penalty, [-1e-9, math.nan, math.inf, "0.1", None, True]),
        (spec.ActivationName, [3, None, ["relu"]]),
    ],
)
def test_bad_values_name_the_key(kind, values):
    for value in values:
        with pytest.raises(ConfigError, match=r"^model\.key = .* must be (a|\[height)") as caught:
            checked(kind, value, "model.key")
        assert "\n" not in str(caught.value)


def test_unknown_names_suggest():
    with pytest.raises(ConfigError, match="unknown padding 'valid'; known: SAME, VALID"):
        checked(spec.PaddingName, "valid", "model.padding")
    for kind in (spec.ActivationName, spec.ActivationName | None):
        with pytest.raises(ConfigError, match="unknown activation 'rellu'; did you mean 'relu'"):
            checked(kind, "rellu", "model.activation")
