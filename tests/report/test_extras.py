import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.extras import extras
from tests.report.stores import experiment


def test_seconds_a_round_stand_beside_published_ones_as_multiples_of_the_papers_fastest(timed):
    (extra,) = extras(timed, timed.experiment.cells[0])
    assert extra.header == ("method", "measured", "times fedper", "published", "times fedper, published")
    # 20 rounds in 4 seconds on average, 1 and 1.
    assert extra.rows == (
        ("fedavg", "0.2", "4.00", "16.5", "3.00"),
        ("fedper", "0.05", "1.00", "5.5", "1.00"),
        ("ditto", "—", "—", "33", "6.00"),
        ("local", "0.05", "1.00", "—", "—"),
    )


def test_published_seconds_are_no_hyperparameter_and_positive():
    (method,) = experiment([{"name": "fedavg", "published_seconds": 2}]).cells[0].methods
    assert method.spec == {"name": "fedavg"}
    with pytest.raises(ConfigError, match="published_seconds"):
        experiment([{"name": "fedavg", "published_seconds": 0}])
