"""A finished run of a folder, loaded for new clients."""

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, StoreError
from idiolect.data.sets.registry import load
from idiolect.study.run.finished import is_inside, load_finished
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.store import Store
from tests.engine import DATA, FEDAVG, LOCAL, experiment, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two methods and two seeds; the best round on validation data counts."""
    out = tmp_path_factory.mktemp("finished") / "out"
    run(experiment(FEDAVG, LOCAL, seeds=2, select="best-validation"), out)
    return out


@pytest.mark.second
def test_known_clients_given_again_have_the_scores_of_the_report(folder):
    """A shared model of the round that validation data chose, in each seed."""
    data = load(DATA)
    for seed in (None, 1):
        with Store(folder, create=False) as store:
            loaded = load_finished(store, Workbench(), method="fedavg", seed=seed)
            assert loaded.row.seed == (seed or 0)
            chosen = int(loaded.finished.states["global"].round)
            validation = store.curve(loaded.row.id, "global", "validation", "accuracy")
            assert chosen == max(validation, key=lambda point: point[1])[0]
            stored = store.scores(loaded.row.id, chosen, "global", "test")
        scores = loaded.finished.personalize(data).scores("global")
        np.testing.assert_allclose(scores.loss, stored.loss, rtol=1e-6)


def test_what_is_not_clear_or_not_there_is_refused(folder, tmp_path):
    with Store(folder, create=False) as store:
        with pytest.raises(ConfigError, match=r"several methods \(cell/fedavg, cell/local\); name one with --method"):
            load_finished(store, Workbench())
        with pytest.raises(ConfigError, match="no finished run of seed 7; it has: cell/fedavg/seed0"):
            load_finished(store, Workbench(), seed=7)
        with pytest.raises(ConfigError, match="no finished run of cell other, method local"):
            load_finished(store, Workbench(), cell="other", method="local")
        path = store.checkpoint_path("cell/local/seed0")
        content = path.read_bytes()
        try:
            path.write_bytes(content[:-1])
            with pytest.raises(StoreError, match="is damaged"):
                load_finished(store, Workbench(), method="local")
            path.unlink()
            with pytest.raises(StoreError, match="is missing, and with it the trained state of run cell/local/seed0"):
                load_finished(store, Workbench(), method="local")
        finally:
            path.write_bytes(content)
    with Store(tmp_path) as store:
        store.set_fact("experiment", experiment(LOCAL).model_dump(mode="json"))
        with pytest.raises(StoreError, match="holds no finished run"):
            load_finished(store, Workbench())


def test_data_made_in_python_are_refused(three_clients, tmp_path):
    run(experiment(LOCAL, rounds=1, cohort=None, splits=["test"]), tmp_path, data=three_clients)
    with Store(tmp_path, create=False) as store, pytest.raises(ConfigError, match="made in Python"):
        load_finished(store, Workbench())


def test_inside(tmp_path):
    assert is_inside(tmp_path / "a" / "b", tmp_path / "a")
    assert is_inside(tmp_path / "a" / "..", tmp_path)
    assert not is_inside(tmp_path / "ab", tmp_path / "a")
