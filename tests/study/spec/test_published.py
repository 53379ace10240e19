"""Published values as experiment files give them."""

import pytest

from idiolect.core.errors import ConfigError
from idiolect.study.spec.published import Gap, Published
from tests.report.stores import experiment


def given(**more):
    value = {"model": "global", "value": 70.0, **more}
    return experiment([{"name": "fedavg", "published": [value]}]).cells[0].methods[0].published[0]


def test_what_is_left_out():
    value = given()
    assert (value.model, value.value, value.std, value.within, value.row) == ("global", 70.0, None, 1.0, "")
    assert value.metric == ""  # accuracy or mse, as the data say
    assert Gap(larger="a/x", smaller="b/y", value=1.0).within == 0.5


@pytest.mark.parametrize("metric", ["accuracy", "macro-f1", "auroc", "mse", "loss"])
def test_it_can_be_of_every_metric(metric):
    assert given(metric=metric).metric == metric


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"metric": "macro-f2"},
            "method 'fedavg', published value 1: metric: unknown metric 'macro-f2'; did you mean 'macro-f1'",
        ),
        ({"metric": "score"}, "unknown metric 'score'"),
        ({"metrik": "auroc"}, "did you mean 'metric'"),
        ({"within": -1.0}, "within"),
        ({"std": -0.1}, "std"),
        ({"runs": 0}, "runs"),
        ({"half_width": -0.1}, "half_width"),
        ({"std": 0.1, "half_width": 0.1}, "has std or half_width, not both; give what the paper prints after ±"),
    ],
)
def test_what_is_wrong_is_named(wrong, message):
    with pytest.raises(ConfigError) as error:
        given(**wrong)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_it_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        Published(model="global", value=1.0).value = 2.0
