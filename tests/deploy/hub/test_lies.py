"""One of four sites lies: what that costs the three honest ones, with the hub's rules and without them.

The table of breast cancer in sites of 275, 185, 80 and 29 rows, as in `liars`. The smallest site lies. A cost is the
honest run's accuracy minus the lie's, in points, as a mean over three seeds: each draws sites, batches and the model.
"""

import pytest

from tests.deploy.hub.liars import MOST, OUT, WITHIN, cost, run

METHODS = ("FedAvg", "Ditto", "pFedMe")
pytestmark = pytest.mark.second


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("told", sorted(WITHIN))
def test_lies_within_scale(method: str, told: str) -> None:
    """With the recommended rule no lie costs more than two points."""
    assert cost(method, told, "robust", 3, 10) <= MOST
    for seed in range(3):
        found = run(method, told, "robust", seed, 10)
        assert (found.others, found.rolled, found.error) == ([], [], "")


@pytest.mark.parametrize("told", ["-1 times its model", "-2 times its update"])
def test_without_the_rule_lies_within_scale_cost_more(told: str) -> None:
    """So the test above can fail: pFedMe weighs its sites equally."""
    assert cost("pFedMe", told, "no guard", 3, 10) > MOST


def test_a_lie_whose_cost_grows_with_the_rounds_has_none_under_the_rule() -> None:
    """After 10 to 30 rounds it costs two points without the rule, after 60 four."""
    told = "-1 times its update"
    assert cost("pFedMe", told, "no guard", 3, 60) > MOST
    assert cost("pFedMe", told, "robust", 3, 60) <= MOST
    assert all(run("pFedMe", told, "robust", seed, 60).rolled == [] for seed in range(3))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("told", sorted(OUT))
def test_lies_out_of_scale(method: str, told: str) -> None:
    """By default, lies out of scale cost no more than two points, and each run names the liar and nobody else."""
    assert cost(method, told, "default", 3, 5) <= MOST
    for seed in range(3):
        found = run(method, told, "default", seed, 5)
        assert (found.others, found.error) == ([], "")
        assert found.named >= (1 if "once" in told else 5)


@pytest.mark.parametrize("told", ["1e30 once", "3e38 once", "1e9 rows, -1 times its model"])
def test_without_the_guard_lies_out_of_scale_cost_more(told: str) -> None:
    assert cost("FedAvg", told, "no guard", 3, 5) > MOST
