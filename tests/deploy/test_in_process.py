"""Every method file runs unchanged at sites, and computes what the simulation computes."""

import numpy as np
import pytest

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import ConfigError
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.in_process import InProcess
from idiolect.study.launch import launch
from tests.deploy.federation import data_of, experiment_of, hub_of, scores_of, sites_of

CANNOT = {"global": "pools all clients' samples"}
"""Methods that cannot run at sites, and what the user is told."""
MODALITIES = {"mmfl", "mmfl-fusion"}
HAS_BODY = {"fedper", "lg-fedavg", "fedrep", "fedbabu", "fedrecon", "pflego"}
METHODS = sorted(ALGORITHMS.keys() - CANNOT.keys() - MODALITIES)


@pytest.mark.parametrize("name", METHODS)
def test_sites_compute_what_the_simulation_computes(name, tmp_path):
    data = data_of()
    model = {"name": "mlp", "hidden": [3]} if name in HAS_BODY else {"name": "mlr"}
    cohort = None if ALGORITHMS[name].everyone else 2
    experiment = experiment_of([name], model=model, cohort=cohort, rounds=3, eval_every=3)
    transport = InProcess(sites_of(tmp_path, data))
    run_hub(hub_of(tmp_path / "hub", experiment, data), transport)
    launch(experiment, tmp_path / "simulated", data=data, jobs=1)
    run = f"t/{name}/seed0"
    real, simulated = scores_of(tmp_path / "hub", run), scores_of(tmp_path / "simulated", run)
    assert real.keys() == simulated.keys() != set()
    for key, expected in simulated.items():
        np.testing.assert_allclose(real[key].loss, expected.loss, atol=1e-6, err_msg=str(key))
        assert (real[key].count == expected.count).all()
        for metric, values in expected.values.items():
            np.testing.assert_allclose(real[key].values[metric], values, atol=1e-6)
            np.testing.assert_allclose(real[key].pooled[metric], expected.pooled[metric], atol=1e-6)


@pytest.mark.parametrize("name", sorted(CANNOT))
def test_a_method_that_needs_all_samples_in_one_place_is_refused(name, tmp_path):
    data = data_of()
    hub = hub_of(tmp_path / "hub", experiment_of([name]), data)
    with pytest.raises(ConfigError, match=CANNOT[name]):
        run_hub(hub, InProcess(sites_of(tmp_path, data)))
    assert sorted(path.name for path in hub.iterdir()) == ["hub.json"]


def test_each_method_is_in_one_list():
    assert {*METHODS, *CANNOT, *MODALITIES} == ALGORITHMS.keys()
