import numpy as np
import pytest

from idiolect.core.errors import ConfigError
from idiolect.data.federated import FederatedData
from idiolect.study.advice.contestants import _GRIDS, BUDGET, DEFAULT, L2, contestant, contestants, defaults, passes
from tests.federations import federation, split_of

TREES = "boosted-intercept"
"""Trees at one rate, with and without a linear part: of their rounds, passes over rows, validation data choose."""


def small() -> FederatedData:
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(8, 3)).astype(np.float32), rng.normal(size=8).astype(np.float32)) for _ in range(2)]
    return federation(split_of(parts))


def test_every_contestant_has_the_same_budget_and_the_two_ends_are_there() -> None:
    for names in (defaults(small(), True), defaults(small(), False), ("reptile",), ("apfl", "fedu", "mocha"), ()):
        found = contestants(names, small(), 0.5, 60)
        assert [one.name for one in found[:2]] == ["local", "fedavg"]
        assert {len({str(dict(s)) for s in one.settings}) for one in found if one.name != TREES} == {BUDGET}


def test_kinds_are_what_a_client_gets() -> None:
    kinds = {one.name: one.kind for one in contestants(("ditto", "scaffold"), small(), 0.5, 60)}
    assert kinds == {"local": "alone", "fedavg": "shared", "ditto": "personal", "scaffold": "shared"}


def test_rates_are_multiples_of_the_safe_one() -> None:
    once, twice = (contestants((), small(), rate, 60)[0].settings for rate in (0.1, 0.2))
    assert [2 * one["rate"] for one in once] == [two["rate"] for two in twice]


@pytest.mark.parametrize(("rows", "leaves"), [(19_999, 8), (20_000, 15)])
def test_trees_are_tried_with_and_without_a_linear_part(rows, leaves) -> None:
    parts = [(np.ones((n, 1), np.float32), np.ones(n, np.float32)) for n in (1, rows - 1)]
    found = contestant(TREES, federation(split_of(parts)), 0.5, 60)
    assert [(s["linear_l2"], s["leaves"]) for s in found.settings] == [(0.0, leaves), (100.0 * rows, leaves)]


def test_bad_names_are_refused() -> None:
    for names, message in ((("dito",), "ditto"), (("ditto", "ditto"), "twice"), (("global",), "pools")):
        with pytest.raises(ConfigError, match=message):
            contestants(names, small(), 0.1, 60)


@pytest.mark.parametrize(("rows", "batch"), [(512, 0), (513, 64)])
def test_a_step_sees_all_rows_of_clients_with_up_to_512(rows, batch) -> None:
    data = federation(split_of([(np.ones((n, 1), np.float32), np.ones(n, np.float32)) for n in (2, rows)]))
    for one in contestants(("fedavg-ft", "reptile"), data, 0.5, 60):
        assert {(s["batch_size"], s["local_steps"], s.get("finetune_steps")) for s in one.settings} == {
            (batch, 10, 20 if one.name == "fedavg-ft" else None)
        }
    for settings in contestant("fedsgd", data, 0.5, 60).settings:
        assert settings.keys() == {"rate", "batch_size"}


def test_a_method_without_a_grid_and_a_rate_is_refused(monkeypatch) -> None:
    monkeypatch.delitem(_GRIDS, "mocha")
    with pytest.raises(ConfigError, match="no grid for mocha, which has no learning rate; choose among local,"):
        contestant("mocha", small(), 0.5, 60)


@pytest.mark.parametrize(
    ("changes", "loss"),
    [({}, "squared"), ({"task": "classification", "classes": ("a", "b")}, "logistic")],
)
def test_mocha_has_the_loss_of_the_task_and_no_steps(changes, loss) -> None:
    data = federation(split_of([(np.ones((2, 1), np.float32), np.array([0, 1], np.float32))] * 2), **changes)
    fixed = {"relationship": "learned", "passes": 2, "omega_every": 1, "loss": loss}
    expected = [{**fixed, "coupling": c, "shrinkage": s} for c in (0.3, 3.0) for s in (0.1, 1.0)]
    assert list(contestant("mocha", data, 0.5, 60).settings) == expected


def test_rates_of_the_grids_are_multiples_of_the_safe_rate() -> None:
    """With 2 as the safe rate; `rate` and `finetune_rate` are multiples of it, other settings are as they are."""
    fields = {
        "apfl": "mixture",
        "fedu": "coupling",
        "local": "model.l2",
        "fedavg": "model.l2",
        "ditto": "prox_weight",
        "fedavg-ft": "finetune_rate",
        "ifca": "groups",
    }
    grids = {
        name: [(s["rate"], s[field]) for s in contestant(name, small(), 2.0, 60).settings]
        for name, field in fields.items()
    }
    assert grids == {
        "apfl": [(2.0, mixture) for mixture in (0.2, 0.4, 0.6, 0.8)],
        "fedu": [(2.0, coupling) for coupling in (0.001, 0.003, 0.01, 0.03)],
        "fedavg": [(2.0, l2) for l2 in (0.0, 0.01, 0.05, 0.2)],
        "local": [(2.0, l2) for l2 in (0.0, 0.01, 0.05, 0.2)],
        "ditto": [(2.0, weight) for weight in (0.03, 0.1, 0.3, 1.0)],
        "fedavg-ft": [(2.0, fine) for fine in (0.02, 0.2, 0.6, 2.0)],
        "ifca": [(2.0, groups) for groups in (1.0, 2.0, 3.0, 4.0)],
    }
    assert [s["rate"] for s in contestant("reptile", small(), 2.0, 60).settings] == [0.2, 0.6, 2.0, 6.0]


def test_l2_weights_of_an_exact_solver_are_in_rows_of_all_clients() -> None:
    """Two clients have eight training rows each."""
    assert [(s["intercept_penalty"], s[L2]) for s in contestant("fedavg-intercept", small(), 2.0, 60).settings] == [
        (penalty, rows / 16) for penalty in (2.0, 10.0) for rows in (1.0, 30.0)
    ]


def test_methods_whose_round_is_another_thing_have_their_own_number_of_rounds() -> None:
    found = {one.name: one.rounds for one in contestants(("fedavg-intercept", "boosted-intercept"), small(), 2.0, 9)}
    assert found == {"local": 9, "fedavg": 9, "fedavg-intercept": 14, "boosted-intercept": 400}


def test_large_tables_have_fewer_passes() -> None:
    data = federation(split_of([(np.ones((n, 90), np.float32), np.ones(n, np.float32)) for n in (100, 99_900)]))
    few = contestant(TREES, data, 0.5, 60)
    assert (few.rounds, few.half) == (120, 48)
    assert contestant(TREES, small(), 0.5, 60).half == 108
    assert [passes(400, cells) for cells in (1, 2_000_000, 4_000_000, 10**9)] == [400, 400, 200, 120]


def test_larger_trees_have_more_passes_where_the_table_is_not_too_large() -> None:
    data = federation(split_of([(np.ones((n, 20), np.float32), np.ones(n, np.float32)) for n in (100, 19_900)]))
    more = contestant(TREES, data, 0.5, 60)
    assert (more.settings[0]["leaves"], more.rounds, more.half) == (15, 700, 162)
    assert passes(700, 1_150_000) == 695


def test_the_methods_of_an_advice_where_none_are_named() -> None:
    assert defaults(small(), True) == list(DEFAULT)
    assert defaults(small(), False) == ["local", "fedavg", "fedavg-ft", "ditto", "ifca"]


@pytest.mark.parametrize(
    ("clients", "rows", "there"), [(40, 1, True), (41, 1, False), (2, 300, True), (2, 301, False)]
)
def test_what_grows_too_fast_is_only_for_few_and_small_clients(clients: int, rows: int, there: bool) -> None:
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(rows, 1)).astype(np.float32), np.zeros(rows, np.float32)) for _ in range(clients)]
    assert ("mocha" in defaults(federation(split_of(parts)), True)) == there


def test_a_contestant_has_its_title_and_the_model_that_is_scored() -> None:
    found = contestants(("fedavg-ft", "ditto", "fedavg"), small(), 0.5, 60)
    assert [(one.name, one.title, one.model) for one in found] == [
        ("local", "Local", "local"),
        ("fedavg", "FedAvg", "global"),
        ("fedavg-ft", "FedAvg + fine-tuning", "adapted"),
        ("ditto", "Ditto", "personal"),
    ]
