import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.federated import FederatedData
from idiolect.study.advice.contestants import BUDGET, DEFAULT, contestants, looked_at, safe_rate
from tests.federations import federation, split_of


def small() -> FederatedData:
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(8, 3)).astype(np.float32), rng.normal(size=8).astype(np.float32)) for _ in range(2)]
    return federation(split_of(parts))


def test_every_contestant_has_the_same_budget_and_the_two_ends_are_there() -> None:
    for names in (*DEFAULT.values(), ("reptile",), ()):
        found = contestants(names, small(), 0.5)
        assert [one.name for one in found[:2]] == ["local", "fedavg"]
        assert {len({str(dict(s)) for s in one.settings}) for one in found} == {BUDGET}


def test_kinds_are_what_a_client_gets() -> None:
    kinds = {one.name: one.kind for one in contestants(("ditto", "scaffold"), small(), 0.5)}
    assert kinds == {"local": "alone", "fedavg": "shared", "ditto": "personal", "scaffold": "shared"}


def test_rates_are_multiples_of_the_safe_one() -> None:
    once, twice = (contestants((), small(), rate)[0].settings for rate in (0.1, 0.2))
    assert [2 * one["rate"] for one in once] == [two["rate"] for two in twice]


def test_gradient_descent_with_the_safe_rate_converges_and_with_twice_it_not() -> None:
    data = small()
    rate, worst = safe_rate(data, True), 0.0
    for client in range(data.num_clients):
        x, _ = data.stored("train").client(client)
        z = np.concatenate([x, np.ones((len(x), 1))], axis=1).astype(np.float64)
        worst = max(worst, float(np.linalg.eigvalsh(z.T @ z / len(z)).max()))
    assert rate == pytest.approx(1 / worst)
    assert safe_rate(data, False) == 0.1


def test_bad_names_are_refused() -> None:
    for names, message in ((("dito",), "ditto"), (("ditto", "ditto"), "twice"), (("global",), "pools")):
        with pytest.raises(ConfigError, match=message):
            contestants(names, small(), 0.1)


def test_rounds_looked_at_end_with_the_last_and_grow() -> None:
    assert looked_at(1) == [1]
    assert looked_at(12) == [1, 2, 3, 4, 6, 9, 12]
    assert looked_at(40) == [1, 2, 3, 4, 6, 9, 14, 21, 32, 40]
    assert looked_at(21) == [1, 2, 3, 4, 6, 9, 14, 21]
    with pytest.raises(ConfigError, match="rounds = 0"):
        looked_at(0)
