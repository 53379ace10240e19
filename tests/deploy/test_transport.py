import threading
import time

import numpy as np
import pytest

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import ConfigError
from idiolect.core.losses import cross_entropy
from idiolect.data import from_arrays, number_own_labels
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message
from idiolect.deploy.site.programs import programs_of
from idiolect.deploy.terms import Place, Terms
from idiolect.deploy.transport import KEPT, Inbox, InProcess
from idiolect.study.run.launch import launch
from idiolect.study.store.recorded import traffic_key
from idiolect.study.store.store import Store
from tests import modalities
from tests.deploy import leaves
from tests.deploy.federation import data_of, experiment_of, hub_of, scores_of, sites_of
from tests.tiers import by_method


def inbox_of(run: str = "r", *neighbours: str) -> Inbox:
    """One that takes messages of these neighbours."""
    made = Inbox()
    made.expect(run, neighbours or ("a", "b", "c"))
    return made


def of(run: str, text: str = "") -> Message:
    return Message({"run": run, "text": text})


def test_it_waits_until_all_have_come_and_keeps_them() -> None:
    inbox, wanted = inbox_of(), {"a": ("r", 1), "b": ("r", 1)}
    inbox.put("a", 1, of("r"))
    threading.Timer(0.05, lambda: inbox.put("b", 1, of("r"))).start()
    start = time.monotonic()
    assert set(inbox.wait(wanted, 120)) == {"a", "b"}
    assert time.monotonic() - start < 60
    assert set(inbox.wait(wanted, 0)) == {"a", "b"}


def test_other_runs_rounds_and_callers_do_not_count() -> None:
    inbox = inbox_of()
    inbox.put("a", 1, of("other"))
    inbox.put("a", 2, of("r"))
    inbox.put("c", 1, of("r"))
    assert inbox.wait({"a": ("r", 1)}, 0.01) == {}


def test_the_last_of_the_same_round_counts() -> None:
    inbox = inbox_of()
    inbox.put("a", 1, of("r", "first"))
    inbox.put("a", 1, of("r", "second"))
    assert inbox.wait({"a": ("r", 1)}, 0)["a"].header["text"] == "second"


def test_old_rounds_are_forgotten_and_coming_ones_are_not() -> None:
    inbox = inbox_of()
    for round in (3, 4, 5):
        inbox.put("a", round, of("r"))
    inbox.forget({("r", 5)})
    come = {round: bool(inbox.wait({"a": ("r", round)}, 0)) for round in (3, 4, 5)}
    assert come == {3: False, 4: True, 5: True}


def test_only_neighbours_of_the_run_in_progress_are_taken() -> None:
    inbox = Inbox()
    assert not inbox.put("a", 0, of("r"))
    assert inbox.neighbours == frozenset()
    inbox.expect("r", ["a", "b"])
    assert inbox.neighbours == {"a", "b"}
    assert inbox.put("a", 0, of("r"))
    assert inbox.put("b", 0, of("r"))
    assert not inbox.put("c", 0, of("r"))
    assert not inbox.put("a", 1, of("another"))
    assert inbox.wait({"a": ("another", 1)}, 0) == inbox.wait({"c": ("r", 0)}, 0) == {}
    inbox.expect("r", ["a"])  # the same run: what has come stays
    assert set(inbox.wait({"a": ("r", 0)}, 0)) == {"a"}
    assert inbox.wait({"b": ("r", 0)}, 0) == {}
    inbox.expect("next", ["a"])
    assert inbox.wait({"a": ("r", 0)}, 0) == {}
    inbox.expect("", ())
    assert not inbox.put("a", 0, of("next"))
    assert not inbox.put("a", 0, of(""))


def test_a_caller_that_sends_much_replaces_its_own() -> None:
    inbox = inbox_of()
    inbox.put("a", 0, of("r"))
    for round in range(100):
        inbox.put("b", round, of("r"))
    assert inbox.wait({"a": ("r", 0)}, 0)
    assert sum(bool(inbox.wait({"b": ("r", round)}, 0)) for round in range(100)) == KEPT


CANNOT = {"global": "pools all clients' samples"}
"""Methods that cannot run at sites, and what the user is told."""
METHODS = sorted(ALGORITHMS.keys() - CANNOT.keys() - leaves.MODALITIES)


@pytest.mark.parametrize("name", by_method(METHODS, first=("fedu", "scaffold")))
def test_sites_compute_what_the_simulation_computes(name, tmp_path):
    """And what has left the sites is the line of docs/what-leaves.md."""
    model = {"name": "mlr"} if name in leaves.LINEAR else {"name": "mlp", "hidden": [3]}
    cohort = None if ALGORITHMS[name].everyone else 2
    check(
        tmp_path,
        data_of(),
        experiment_of([name], model=model, cohort=cohort, rounds=3, eval_every=3, splits=("test",)),
    )
    assert leaves.row(name, tmp_path) == next(line for line in leaves.written().splitlines() if f"`{name}`" in line)


@pytest.mark.second
@pytest.mark.parametrize("name", sorted(leaves.MODALITIES))
def test_sites_with_different_modalities(name, tmp_path):
    held = (("acc",), ("text",))
    data = modalities.data_of(held, sizes=(8, 8))
    model = {"name": "multimodal", "features": 2, "decoder": [], **modalities.FLAT}
    model |= {"fusion": "concat"} if name == "mmfl-fusion" else {}
    method = {"name": name, "rates": [0.1], "batch_size": 4, "local_steps": 1, "meta_steps": 1}
    check(tmp_path, data, experiment_of([method], model=model, rounds=1, splits=("test",)))


@pytest.mark.second
def test_sites_that_number_their_own_classes(tmp_path):
    data = number_own_labels(data_of(classes=3))
    check(tmp_path, data, experiment_of(["fedper"], model={"name": "mlp", "hidden": [3]}, rounds=2))


@pytest.mark.second
def test_a_regression_in_the_users_units_with_a_metric_that_no_sums_give(tmp_path):
    rng = np.random.default_rng(1)
    parts = {f"site-{i}": ((x := rng.normal(size=(20, 3)).astype("f4")), 50 + 9 * x[:, 0]) for i in (1, 2, 3)}
    data = from_arrays(parts, task="regression")
    experiment = experiment_of(["fedavg"], model={"name": "linear"}, metric="mse,r2", rounds=2)
    check(tmp_path, data, experiment, unpooled={"r2"})


def bytes_of(folder, run):
    """What was computed before the first round."""
    with Store(folder, create=False) as store:
        return tuple(store.fact(traffic_key(*run.split("/")[:2])))


def check(folder, data, experiment, unpooled=()):
    """Run an experiment at sites and simulated, and compare every score; metrics `unpooled` have none over all."""
    transport = InProcess(sites_of(folder, data))
    run_hub(hub_of(folder / "hub", experiment, data), transport)
    launch(experiment, folder / "simulated", data=data, jobs=1)
    run = f"t/{experiment.cells[0].methods[0].title}/seed0"
    counted, computed = Participation(folder / "hub").traffic()[run], bytes_of(folder / "simulated", run)
    assert counted.of_a_client == computed == bytes_of(folder / "hub", run)
    real, simulated = scores_of(folder / "hub", run), scores_of(folder / "simulated", run)
    assert real.keys() == simulated.keys() != set()
    for key, expected in simulated.items():
        np.testing.assert_allclose(real[key].loss, expected.loss, rtol=1e-6, atol=1e-6, err_msg=str(key))
        assert (real[key].count == expected.count).all()
        for metric, values in expected.values.items():
            np.testing.assert_allclose(real[key].values[metric], values, rtol=1e-5, atol=1e-6)
            if metric in unpooled:
                assert np.isnan(real[key].pooled[metric])
            else:
                np.testing.assert_allclose(real[key].pooled[metric], expected.pooled[metric], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", sorted(CANNOT))
def test_a_method_that_needs_all_samples_in_one_place_is_refused(name, tmp_path):
    data = data_of()
    with pytest.raises(ConfigError, match=CANNOT[name]):
        hub_of(tmp_path / "hub", experiment_of([name]), data)
    config = HubConfig(experiment=experiment_of([name]).model_dump(mode="json"), kind={}, sites=data.clients)
    config.save(tmp_path / "hub")
    with pytest.raises(ConfigError, match=CANNOT[name]):
        run_hub(tmp_path / "hub", InProcess(sites_of(tmp_path, data)))
    assert sorted(path.name for path in (tmp_path / "hub").iterdir()) == ["hub.json"]


def test_each_method_is_in_one_list():
    assert {*METHODS, *CANNOT, *leaves.MODALITIES} == ALGORITHMS.keys()


def test_a_site_weighs_no_classes_by_its_own_labels():
    """A hub refuses class weights; a hub that asks for them all the same gets the plain loss."""
    data = data_of(sites=1)
    plain, balanced = (
        programs_of(
            Terms(
                run="r",
                method={"name": "fedavg"},
                model={"name": "mlr", "class_weights": weights},
                kind=Kind.of(data).to_dict(),
                seed=0,
                rounds=1,
            ),
            Place(id=0, clients=2, samples=40, cohort=2),
            data,
        )
        for weights in ("none", "balanced")
    )
    assert balanced.objective.sample_loss is plain.objective.sample_loss is cross_entropy
