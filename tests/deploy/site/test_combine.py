"""A site combines the models that it has of two methods, by its own rows."""

import json
import os
from typing import Any

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError, StoreError
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.site.combine import combine_here
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.data import save_arrays
from idiolect.deploy.transport import InProcess
from idiolect.models.client_model import load_model
from idiolect.study.combine.combined import read_combined
from idiolect.study.combine.weights import weights_of
from tests.deploy.federation import LOOSE, data_of, experiment_of, hub_of, sites_of
from tests.tiers import second

DATA = data_of(3)
NAME = "site-2"


def at_rest(folder: Any, data: Any = DATA) -> Any:
    """The folder of a site, with the site.toml and the rows that its commands read."""
    save_arrays(folder / "rows.idi", data, data.clients.index(NAME))
    SiteConfig(name=NAME, data={"arrays": "rows.idi"}, floors=LOOSE).save(folder)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("trained")
    sites = sites_of(folder, DATA)
    run_hub(hub_of(folder / "hub", experiment_of(["local", "fedavg"]), DATA), InProcess(sites))
    return at_rest(folder / NAME)


@pytest.mark.parametrize("kind", ["blend", second("portfolio")])
def test_the_weights_are_those_of_the_sites_validation_rows(trained: Any, kind: Any) -> None:
    before = os.umask(0o022)
    try:
        made = combine_here(trained, kind)
    finally:
        os.umask(before)
    own = DATA.select(lambda index: index == 1)
    part = own.stored("validation")
    losses, files = [], []
    for method, model in (("fedavg", "global.safetensors"), ("local", "local/site-2.safetensors")):
        (file,) = trained.glob(f"models/*/t__{method}__seed0/{model}")
        shares = load_model(file).predict_proba(part.x)
        losses.append(-np.log(shares[np.arange(len(part.y)), part.y]))
        files.append(file)
    expected, _ = weights_of(kind, np.stack(losses), np.zeros(len(part.y), int), 1, True)
    assert list(made.combined.weights.columns) == ["fedavg", "local"]
    np.testing.assert_allclose(made.combined.weights.to_numpy(), expected, atol=1e-6)
    path = made.combined.path
    assert path.parent.name == f"t__{kind}__seed0"
    assert path.stat().st_mode & 0o077 == 0
    test = own.stored("test")
    mixed = sum(w * load_model(file).predict_proba(test.x) for w, file in zip(expected[0], files, strict=True))
    outputs = read_combined(path).outputs(test.x, np.full(len(test.y), NAME, object))
    np.testing.assert_allclose(np.exp(outputs), mixed, atol=1e-6)
    # What is made is no run: the same call makes it again.
    assert json.loads(combine_here(trained, kind).combined.path.read_text())["rows"] == len(part.y)


def test_what_cannot_be_combined_is_one_line_and_leaves_nothing(trained: Any, tmp_path: Any) -> None:
    before = sorted(trained.rglob("*"))
    with pytest.raises(StoreError, match="no models of cell other; it has the cells t"):
        combine_here(trained, "blend", cell="other")
    with pytest.raises(ConfigError, match="no models of study 'x'"):
        combine_here(trained, "blend", study="x")
    with pytest.raises(StoreError, match="holds no models"):
        combine_here(at_rest_empty(tmp_path / "new"), "blend")
    assert sorted(trained.rglob("*")) == before


def at_rest_empty(folder: Any) -> Any:
    folder.mkdir()
    return at_rest(folder)


def test_other_rows_than_those_of_the_study_are_refused(trained: Any) -> None:
    at_rest(trained, data_of(3, seed=1))
    try:
        with pytest.raises(DataError, match="training rows have changed"):
            combine_here(trained, "blend")
    finally:
        at_rest(trained)


def test_one_method_is_too_few(tmp_path: Any) -> None:
    run_hub(hub_of(tmp_path / "hub", experiment_of(["local"]), DATA), InProcess(sites_of(tmp_path, DATA)))
    with pytest.raises(ConfigError, match="models of one method only, local"):
        combine_here(at_rest(tmp_path / NAME), "blend")
