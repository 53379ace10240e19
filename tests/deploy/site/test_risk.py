"""What `site risk` finds, on rows where the answer is known by construction."""

from dataclasses import replace

import numpy as np
import pytest

from idiolect.deploy.kind import Kind
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.risk import measured
from idiolect.deploy.terms import Place, Terms
from tests.deploy.site.test_extraction import DATA, S2, federation, labelled
from tests.tiers import second

MLP = {"name": "mlp", "hidden": [128]}


def risk_of(method, data=DATA, model=None, rounds=200):
    terms = Terms(
        run="r", method=method, model=model or {"name": "mlr"}, kind=Kind.of(data).to_dict(), seed=0, rounds=rounds
    )
    place = Place(id=0, clients=3, samples=1, cohort=3)
    own = data.select(lambda index: data.clients[index] == "west")
    return measured(terms, place, own, Floors())


def rare(y):
    return (np.arange(len(y)) == 0).astype(y.dtype)


@pytest.mark.parametrize(
    ("method", "data", "model", "found", "verdict"),
    [
        (S2, DATA, None, 178, "reveals 178 of 178 training rows (the initial model; largest error"),
        ({"name": "fedavg"}, DATA, None, 0, "this attack found nothing"),
        ({"name": "fedavg"}, federation(rows=2), None, 1, "reveals 1 of 1 training rows"),
        second({"name": "mocha"}, federation(rows=2), None, 1, "reveals 1 of 1 training rows"),
        second({"name": "fedsgd"}, DATA, None, 0, "this attack found nothing"),
        ({"name": "fedsgd"}, labelled(DATA, rare), None, 1, "reveals 1 of 178 training rows (a model that the hub"),
        ({"name": "fedavg-intercept"}, federation(rows=30), None, 0, "reveals the space of dimension "),
        second({"name": "fedavg-intercept"}, DATA, None, 0, "this attack found nothing"),
        ({"name": "local"}, DATA, None, 0, "nothing is sent"),
    ],
)
def test_what_is_found_is_what_was_built_in(method, data, model, found, verdict):
    result = risk_of(method, data, model)
    assert result.found == found
    assert result.verdict.startswith(verdict)
    assert "safe" not in result.verdict


def test_a_model_that_the_hub_chooses_slices_the_rows_of_a_wide_layer():
    result = risk_of({"name": "fedsgd"}, model=MLP, rounds=1)
    assert 0 < result.found < 178
    assert "a model that the hub chooses" in result.verdict


def test_the_table_has_the_rows_the_rank_and_what_the_floors_say():
    one = risk_of(S2, rounds=3)
    assert (one.rows, one.step, one.message_rows, one.rank, one.largest_rank, one.found) == (178, 1, 1, 1, 2, 3)
    assert one.refusal.startswith("site 'west' refuses: floors.rows_per_step = 10")
    wide = risk_of({"name": "fedavg", "local_steps": 1}, model=MLP, rounds=1)
    assert (wide.step, wide.message_rows, wide.largest_rank) == (20, 20, 30)
    assert wide.rank == 20  # of 20 rows in 30 features: their space
    assert wide.verdict.startswith("reveals ")
    assert risk_of({"name": "fedavg"}, rounds=1).refusal == ""


def test_features_that_never_vary_are_no_rows():
    """A constant feature has no deviation; it must not make two rows equal."""
    own = DATA.stored("train")
    x = own.x.copy()
    x[:, 0] = 1.0
    data = replace(DATA, train=type(own)(x, own.y, own.offsets, own.outputs))
    assert risk_of(S2, data, rounds=5).found == 5
