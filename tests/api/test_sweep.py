import importlib
import re
from typing import ClassVar

import pytest

import idiolect
from idiolect.api.sweep import SweepResult, sweep
from idiolect.core.errors import ConfigError
from idiolect.core.random import model_key
from idiolect.metrics.registry import METRICS
from idiolect.models import build
from idiolect.report.sweeps import frame
from idiolect.study.search.choose import NONE, Swept, Tried, setting_of
from idiolect.study.spec.experiment import comparison_of
from idiolect.study.store.summary import over_seeds

module = importlib.import_module("idiolect.api.sweep")  # the package's `sweep` is the function
SMALL = {"name": "fedavg", "local_steps": 2, "batch_size": 5}


def made(*chosen):
    """A sweep of two settings of a method."""
    experiment = comparison_of("d", {"name": "synthetic"}, {"name": "mlr"}, ["fedavg"])
    cell = experiment.cells[0]
    tried = [
        Tried(setting_of(cell, {"name": "fedavg"}, {"rate": rate}), over_seeds([rate]) if chosen else NONE, 1)
        for rate in (0.25, 0.5)
    ]
    for place in chosen:
        tried[place] = Tried(tried[place].setting, tried[place].validation, 1, chosen=True)
    return Swept(experiment, METRICS["accuracy"], tuple(tried), {})


@pytest.fixture
def asked(monkeypatch):
    """What a sweep is launched with."""
    calls = []

    def launch(*arguments, **options):
        calls.append((*arguments, options))
        return made(1)

    monkeypatch.setattr(module, "launch_sweep", launch)
    return calls


@pytest.mark.second
def test_settings_are_tried_and_the_best_is_kept_when_its_folder_is_gone(three_clients):
    method = {"name": "local", "local_steps": 2, "batch_size": 5}
    result = idiolect.sweep(three_clients, "mlr", method, space={"rate": [1e-6, 0.5]}, rounds=2)
    assert result.folder is None
    assert result.best.setting.values == {"rate": 0.5}
    assert result.table()["rate"].tolist() == [1e-6, 0.5]
    assert result.table()["chosen"].tolist() == [False, True]
    assert [row.test is None for row in result.swept.tried] == [True, False]


def test_the_best_is_the_best_of_the_chosen():
    result = SweepResult(made(0, 1), None)
    assert result.best is result.swept.tried[1]
    with pytest.raises(ConfigError, match="every setting diverged; lower the learning rates"):
        _ = SweepResult(made(), None).best


def test_the_table_is_the_frame_and_can_be_printed(capsys):
    result = SweepResult(made(1), None)
    assert result.table().equals(frame(result.swept))
    result.show()
    assert re.search(r"fedavg +rate=0\.5 +50\.00 +1 +chosen", capsys.readouterr().out)


def test_by_default_a_grid_of_one_seed_is_tried_in_a_folder_of_its_own(asked, three_clients):
    result = sweep(three_clients, "mlr", "fedavg", space={"rate": [0.1]})
    ((experiment, spaces, bench, folder, options),) = asked
    cell = experiment.cells[0]
    assert (cell.id, cell.data, cell.model) == (three_clients.name, {"name": "own"}, {"name": "mlr"})
    assert [method.spec for method in cell.methods] == [{"name": "fedavg"}]
    assert (experiment.seeds, cell.rounds, cell.cohort, cell.sampling) == (1, 100, None, "fixed")
    assert (cell.eval_every, cell.select, cell.metric) == (10, "last", "")
    assert spaces == {"fedavg": {"rate": [0.1]}}
    assert bench.data is three_clients
    assert bench.model is None
    assert options == {"search": "grid", "budget": None, "eta": 3, "folds": 5, "batch": None, "search_seed": 0,
                       "memory": None, "block": None, "show_test": False}  # fmt: skip
    assert result.folder is None
    assert not module.Path(folder).exists()


def test_what_is_asked_for_arrives(asked, three_clients, tmp_path):
    options = {"search": "optuna", "budget": 7, "eta": 4, "folds": 6, "batch": 2, "search_seed": 9, "memory": 10**6,
               "block": 3, "show_test": True}  # fmt: skip
    settings = {"seeds": 4, "rounds": 11, "cohort": 2.5, "sampling": "binomial", "eval_every": 5}
    space = {"rate": "log(0.01,1,3)"}
    own = build("mlr", (4,), 3, "classification", model_key(0))
    result = sweep(three_clients, own, SMALL, space=space, metric="macro-f1", out=tmp_path, **settings, **options)
    ((experiment, spaces, bench, folder, given),) = asked
    cell = experiment.cells[0]
    assert experiment.seeds == settings.pop("seeds")
    assert {key: getattr(cell, key) for key in settings} == settings
    assert (cell.model, cell.metric, cell.methods[0].spec) == ({"name": "own"}, "macro-f1", SMALL)
    assert spaces == {"fedavg": space}
    assert bench.model is own
    assert given == options
    assert folder == result.folder == tmp_path


def test_several_methods_have_a_space_each(asked, three_clients):
    space = {"fedavg": {"rate": [0.1, 0.2]}, "local": {"rate": [0.3, 0.4]}}
    sweep(three_clients, {"name": "mlr", "l2": 0.5}, [SMALL, "local"], space=space)
    sweep(three_clients, "mlr", ["local"], space={"local": space["local"]})
    (first, second) = asked
    assert first[1] == space
    assert [method.spec for method in first[0].cells[0].methods] == [SMALL, {"name": "local"}]
    assert first[0].cells[0].model == {"name": "mlr", "l2": 0.5}
    assert second[1] == {"local": space["local"]}


@pytest.mark.parametrize(
    ("method", "space", "message"),
    [
        ("fedavgg", {}, "unknown method 'fedavgg'; did you mean 'fedavg'"),
        ("fedavg", {"raet": [1]}, "did you mean 'rate'"),
        (["fedavg"], {"local": {"rate": [1]}}, "'local' is given values to try, but it is not swept"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(three_clients, tmp_path, method, space, message):
    with pytest.raises(ConfigError, match=message):
        sweep(three_clients, "mlr", method, space=space, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Own(idiolect.Local):
    """A user's method."""

    name: ClassVar[str] = "mine"


@pytest.mark.second
@pytest.mark.parametrize("method", [Own, Own(local_steps=2, batch_size=5)])
def test_a_method_is_swept_as_a_class_and_as_it_is_made(three_clients, method):
    result = idiolect.sweep(three_clients, "mlr", method, space={"rate": [1e-6, 0.5]}, rounds=2)
    assert result.best.setting.values["rate"] == 0.5
    both = idiolect.sweep(
        three_clients, "mlr", [method, "local"], space={"mine": {"rate": [0.5]}, "local": {"rate": [0.5]}}, rounds=1
    )
    assert {one.setting.cell.methods[0].name for one in both.swept.tried} == {"mine", "local"}
