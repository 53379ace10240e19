"""Optuna in sweeps: settings in batches from what was scored, each once, and the same after a stop."""

import json
import math
import sys

import numpy as np
import pytest

from idiolect import sweep
from idiolect.core.errors import ConfigError
from idiolect.runtime.program import Program
from idiolect.study.search.optuna import Study
from idiolect.study.search.space import space_of
from idiolect.study.store.store import Store
from tests.engine import dies

SMALL = {"name": "fedavg", "batch_size": 5}
RATE = {"rate": "loguniform(0.001,1)"}


def rates(batches, seed=0, score=lambda rate: -abs(math.log10(rate) + 1), space=RATE, method="fedavg"):
    """The settings that a study asks for in batches of these sizes, each batch told its scores."""
    study = Study(space_of(method, space), seed, higher=True)
    asked = []
    for count in batches:
        batch = study.ask(count)
        for values in batch:
            study.tell(values, score(values["rate"]))
        asked.append(batch)
    return asked


def distance(batch):
    """From the best rate, 0.1, in powers of ten."""
    return np.mean([abs(math.log10(values["rate"]) + 1) for values in batch])


def test_later_settings_lie_nearer_to_the_best_scores():
    searches = [rates([10, *[8] * 5], seed) for seed in range(4)]
    # Even draws in the logarithm, from 1e-3 to 1, are 5/6 of a power of ten away on average.
    assert np.mean([distance(batches[-1]) for batches in searches]) < 0.4
    settings = [values["rate"] for batches in searches for batch in batches for values in batch]
    assert all(0.001 <= rate <= 1 and rate == float(f"{rate:.6g}") for rate in settings)  # as tables show it


def test_where_runs_diverge_fewer_settings_are_tried():
    batches = rates([10, *[8] * 5], score=lambda rate: None if rate > 0.1 else -rate)
    assert np.mean([values["rate"] > 0.1 for values in batches[0]]) >= 0.2
    assert np.mean([values["rate"] > 0.1 for batch in batches[3:] for values in batch]) <= 0.1


def test_the_seed_and_the_scores_name_what_is_asked_for():
    assert rates([8, 4]) == rates([8, 4])
    assert rates([8, 4])[0] != rates([8, 4], seed=1)[0]
    one, other = rates([12, 4]), rates([12, 4], score=lambda rate: rate)
    assert one[0] == other[0]
    assert one[1] != other[1]
    assert rates([8, 3])[1] == rates([8, 8])[1][:3]  # a larger budget goes on where a smaller one ended


def test_each_setting_of_a_small_space_is_asked_for_once():
    space = {"rate": [0.1, 0.01, 0.3], "local_steps": "integer(1,4)"}
    asked = [repr(values) for batch in rates([5, 5, 2], space=space) for values in batch]
    assert len({*asked}) == 12


OPTIONS = {"rounds": 2, "eval_every": 2, "seeds": 2, "search": "optuna", "budget": 6, "batch": 3, "search_seed": 3}


def watched(monkeypatch):
    """What `Program.advance` is asked for: (the compiled function, runs, rounds x runs)."""
    seen, advance = [], Program.advance

    def watching(self, rows, states, end, *more):
        before = dict(zip(rows, np.atleast_1d(states.round).tolist(), strict=True))
        seen.append((id(self.compiled), len(before), sum(max(0, end - r) for r in before.values())))
        return advance(self, rows, states, end, *more)

    monkeypatch.setattr(Program, "advance", watching)
    return seen


def test_a_batch_is_one_program_and_the_next_one_uses_it(three_clients, monkeypatch, tmp_path):
    seen = watched(monkeypatch)
    result = sweep(three_clients, "mlr", {**SMALL, "local_steps": 2}, space=RATE, out=tmp_path, **OPTIONS)
    trained = [call for call in seen if call[2]]
    assert [call[1:] for call in trained] == [(6, 12), (6, 12)]  # 3 settings x 2 seeds, 2 rounds
    assert len({call[0] for call in trained}) == 1
    assert result.swept.budget == {"fedavg": {"settings": 6, "rounds x runs": 24}}
    tried = result.swept.tried
    assert len({t.setting.values["rate"] for t in tried}) == 6
    assert result.best.validation.mean == max(t.validation.mean for t in tried)
    assert [t.test is not None for t in tried] == [t.chosen for t in tried]
    seen.clear()
    more = sweep(
        three_clients, "mlr", {**SMALL, "local_steps": 2}, space=RATE, out=tmp_path, **{**OPTIONS, "budget": 8}
    )
    assert [t.setting.values for t in more.swept.tried[:6]] == [t.setting.values for t in tried]
    assert sum(call[2] for call in seen) == 2 * 2 * 2  # two new settings, and nothing again


@pytest.mark.second
def test_whole_numbers_divide_a_batch_into_programs_and_a_stopped_sweep_asks_for_the_same(
    three_clients, monkeypatch, tmp_path
):
    space = {"rate": "loguniform(0.001,1)", "local_steps": "1,2"}
    options = {**OPTIONS, "seeds": 1, "space": space}
    whole = sweep(three_clients, "mlr", SMALL, out=tmp_path / "whole", **options)
    assert {t.setting.values["local_steps"] for t in whole.swept.tried} == {1, 2}

    def stop():
        raise KeyboardInterrupt

    seen = watched(monkeypatch)
    with monkeypatch.context() as patched:
        patched.setattr(Store, "record", dies(Store.record, 4, stop))
        with pytest.raises(KeyboardInterrupt):
            sweep(three_clients, "mlr", SMALL, out=tmp_path / "out", **options)
    again = sweep(three_clients, "mlr", SMALL, out=tmp_path / "out", **options)
    assert again.table().equals(whole.table())
    assert sum(call[2] for call in seen) <= 6 * 2 + 3 * 2  # at most the stopped batch again


SWEEP = ["sweep", "--data", "synthetic", "--rounds", "1", "--set", "data.clients=3", "--set", "data.max_size=30",
         "--set", "data.validation=0.2", "--search", "optuna"]  # fmt: skip


@pytest.mark.second
def test_the_command_gives_each_method_the_same_budget(commandline, tmp_path):
    both = ["--methods", "fedavg,local", "--set", "fedavg.rate=loguniform(0.01,1)", "--set", "local.rate=0.1,0.2,0.3",
            "--set", "fedavg.local_steps=2", "--set", "local.local_steps=2"]  # fmt: skip
    code, out, _ = commandline(*SWEEP, *both, "--budget", 3, "--batch", 3, "--json", "--out", tmp_path)
    assert code == 0
    said = json.loads(out)
    assert said["budget"] == {name: {"settings": 3, "rounds x runs": 3} for name in ("fedavg", "local")}
    assert [row["method"] for row in said["settings"]] == [*["fedavg"] * 3, *["local"] * 3]
    assert sorted(row["rate"] for row in said["settings"] if row["method"] == "local") == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "fedavg.rate=0.1,0.2"], "search = 'optuna' needs a budget"),
        (["--set", "fedavg.rate=0.1,0.2", "--budget", "3"], "there are only 2"),
        (["--set", "fedavg.rate=uniform(-1,1)", "--budget", "3"], "rate = -1.0 must be greater than 0"),
        (["--set", "fedavg.raet=uniform(0,1)", "--budget", "3"], "did you mean 'rate'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(commandline, tmp_path, arguments, words):
    out = tmp_path / "out"
    code, _, err = commandline(*SWEEP, "--methods", "fedavg", *arguments, "--out", out)
    assert code == 1
    assert words in err
    assert err.count("\n") == 1
    assert not out.exists()


def test_without_optuna_one_line_says_how_to_install_it(commandline, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)  # as if it were not installed
    arguments = ["--methods", "fedavg", "--set", "fedavg.rate=uniform(0.1,1)", "--budget", "3"]
    code, _, err = commandline(*SWEEP, *arguments, "--out", tmp_path / "out")
    assert code == 1
    assert err == "error: search = 'optuna' needs Optuna: pip install 'idiolect[optuna]'\n"
    assert not (tmp_path / "out").exists()


def test_a_batch_has_at_least_one_setting(three_clients):
    with pytest.raises(ConfigError, match="batch = 0 must be at least 1"):
        sweep(three_clients, "mlr", SMALL, space=RATE, **{**OPTIONS, "batch": 0})
