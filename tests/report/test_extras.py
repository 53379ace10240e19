import pytest

from idiolect.errors import ConfigError
from idiolect.report.extras import extras
from idiolect.results import Results
from idiolect.store import Store
from tests.report.stores import TRAINED, experiment, finished, start


@pytest.fixture
def timed(tmp_path):
    """FedPer is the fastest in the paper, Ditto has not ended, Local is not in the paper."""
    methods = [
        {"name": "fedavg", "published_seconds": 16.5},
        {"name": "fedper", "published_seconds": 5.5},
        {"name": "ditto", "published_seconds": 33},
        {"name": "local"},
    ]
    store, exp = Store(tmp_path), experiment(methods)
    for method, seconds in (("fedavg", (3.0, 5.0)), ("fedper", (1.0, 1.0)), ("local", (0.5, 1.5))):
        for seed in (0, 1):
            finished(store, exp, "cell0", method, seed, TRAINED, seconds=seconds[seed])
    start(store, exp, "cell0", "ditto", 0)
    return Results(store, exp)


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
