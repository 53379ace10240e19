"""S4 over the real engine: one of four sites lies, with the hub's default limits. The site of 29 rows is the liar."""

from pathlib import Path

import pytest

from idiolect.deploy.nvflare.kits import HUB_FOLDER
from idiolect.deploy.nvflare.local_federation import kits_here
from idiolect.deploy.this_machine import prepare
from tests.deploy.attacks.federation import HERE, supervise, with_code
from tests.deploy.federation import experiment_of
from tests.deploy.hub.liars import HONEST, LIAR, METHODS, OFF, OUT, WITHIN, Ended, data, ended, measured

pytestmark = pytest.mark.second
ROUNDS = 20


def over_the_engine(out: Path, method: str, told: str) -> Ended:
    """What `liars.ended` measures in one process, with real processes for the hub and each site."""
    experiment = experiment_of([METHODS[method][0]], rounds=ROUNDS, eval_every=5, metric="accuracy")
    names = prepare(out, experiment, data(), quorum=2)
    kits = kits_here(out, names, data())
    lie = {LIAR: {**with_code(HERE / "loose"), "LOOSE": told}}
    supervise(out, kits, {HUB_FOLDER: str(out)}, lie)
    return measured(out, method)


def test_a_lie_out_of_scale_is_refused_in_each_round_and_costs_at_most_two_points(tmp_path: Path) -> None:
    found = over_the_engine(tmp_path / "real", "FedAvg", "out of scale")
    assert (found.named, found.others, found.rolled) == (ROUNDS, [], [])
    assert found == ended("FedAvg", OUT["-100 times its model"], tmp_path / "inside", rounds=ROUNDS)
    honest = ended("FedAvg", HONEST, tmp_path / "honest", rounds=ROUNDS).accuracy["global"]
    free = ended("FedAvg", OUT["-100 times its model"], tmp_path / "free", OFF, ROUNDS)
    assert honest - found.accuracy["global"] <= 2
    assert honest - free.accuracy["global"] > 10  # the limit is what helps


def test_a_run_that_a_lie_within_scale_makes_diverge_is_rolled_back_without_the_liar(tmp_path: Path) -> None:
    found = over_the_engine(tmp_path / "real", "pFedMe", "against")
    assert [without for _, _, without in found.rolled] == [[LIAR]]
    assert found.others == []
    assert found == ended("pFedMe", WITHIN["-9 times its update"], tmp_path / "inside", rounds=ROUNDS)
    honest = ended("pFedMe", HONEST, tmp_path / "honest", rounds=ROUNDS).accuracy
    assert max(honest[model] - found.accuracy[model] for model in honest) <= 2
