"""No method's honest federation is refused a message or rolled back, over sites that differ in size and classes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.transport import InProcess
from tests import modalities
from tests.deploy.federation import experiment_of, hub_of, participation, sites_of

SIZES = (120, 60, 24, 10)
METHODS = sorted(ALGORITHMS.keys() - {"global"})
MODALITIES = {"mmfl", "mmfl-fusion"}


def uneven(seed: int = 0, classes: int = 4) -> FederatedData:
    """Four sites: twelve times as many rows, four times the scale of features, few classes each."""
    rng, parts = np.random.default_rng(seed), {}
    plane = rng.normal(size=(6, classes))
    for number, rows in enumerate(SIZES, 1):
        x = (rng.normal(size=(8 * rows, 6)) * number + number).astype("f4")
        y = (x @ plane).argmax(1)
        share = rng.dirichlet([0.3] * classes)[y]
        chosen = rng.choice(len(y), rows, p=share / share.sum())
        parts[f"site-{number}"] = x[chosen], y[chosen]
    return from_arrays(parts)


def federated(name: str) -> tuple[FederatedData, Mapping[str, Any], Mapping[str, Any]]:
    """(the data, the method, the model)."""
    if name not in MODALITIES:
        return uneven(), {"name": name}, {"name": "mlr"} if name == "mocha" else {"name": "mlp", "hidden": [4]}
    model = {"name": "multimodal", "features": 2, "decoder": [], **modalities.FLAT}
    model |= {"fusion": "concat"} if name == "mmfl-fusion" else {}
    method = {"name": name, "rates": [0.1], "batch_size": 4, "local_steps": 1, "meta_steps": 1}
    return modalities.data_of((("acc",), ("text",)), sizes=(40, 8)), method, model


@pytest.mark.second
@pytest.mark.parametrize("name", METHODS)
def test_an_honest_federation_is_not_disturbed(name: str, tmp_path: Path) -> None:
    data, method, model = federated(name)
    experiment = experiment_of([method], rounds=12, eval_every=4, model=model)
    hub = hub_of(tmp_path / "hub", experiment, data)
    run_hub(hub, InProcess(sites_of(tmp_path, data)))
    lines = participation(hub)
    assert len(lines) == 12
    assert not any("rollback" in line for line in lines)
    assert [line["refused"] for line in lines] == [{}] * 12
    assert all({*line["answered"]} == {*line["cohort"]} for line in lines)
    assert [line["neighbours_missing"] for line in lines] == [{}] * 12
