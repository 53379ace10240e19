"""Sweeps: chosen on validation data alone, resumed without a round run twice, equal budgets."""

import jax
import pytest

from idiolect import compare, sweep
from idiolect.core.errors import ConfigError
from idiolect.data import from_arrays
from idiolect.runtime import program
from idiolect.study.run.resolve import Workbench
from idiolect.study.search.launch import launch_sweep
from tests.engine import FEDAVG, experiment

SMALL = {"name": "fedavg", "local_steps": 2, "batch_size": 5}


@pytest.fixture(scope="module")
def halved(three_clients, tmp_path_factory):
    """Successive halving over three settings, one of which diverges."""
    out = tmp_path_factory.mktemp("sweep")
    space = {"rate": [0.3, 0.001, 1e38], "model.l2": [0.01]}
    options = {"space": space, "seeds": 2, "rounds": 4, "eval_every": 4, "search": "halving", "eta": 2}
    return options, sweep(three_clients, "mlr", SMALL, out=out, **options), out


@pytest.mark.second
def test_a_setting_that_diverges_is_named_and_not_chosen(halved):
    _, result, _ = halved
    good, _, bad = result.swept.tried
    assert good.chosen
    assert result.best is good
    assert good.test is not None
    assert len(bad.failures) == 2
    assert all(part in bad.failures[0] for part in ("rate=1e+38", "seed0", "round 1", "client 'c"))
    assert [t.test is None for t in result.swept.tried] == [False, True, True]  # nobody looked at their test data


@pytest.mark.second
def test_halving_drops_settings_and_records_what_it_spent(halved):
    _, result, _ = halved
    assert [t.rounds for t in result.swept.tried] == [4, 2, 2]
    # Two rounds of three settings with two seeds, then two more rounds of one setting.
    assert result.swept.budget == {"fedavg": {"settings": 3, "rounds x runs": 2 * 3 * 2 + 2 * 1 * 2}}


def test_a_finished_sweep_runs_no_round_again(halved, three_clients, monkeypatch):
    options, result, out = halved
    monkeypatch.setattr(program.Program, "advance", None)
    again = sweep(three_clients, "mlr", SMALL, out=out, **options)
    assert again.table().equals(result.table())


@pytest.mark.second
def test_the_chosen_setting_has_the_scores_of_a_comparison_with_it(halved, three_clients):
    _, result, _ = halved
    method = {**SMALL, "rate": 0.3}
    line = compare(three_clients, {"name": "mlr", "l2": 0.01}, [method], rounds=4, seeds=2, quiet=True).lines[0]
    assert result.best.test.mean == pytest.approx(line.pooled.mean, abs=1e-6)
    assert result.best.test.std == pytest.approx(line.pooled.std, abs=1e-6)


@pytest.mark.second
def test_a_budget_too_small_for_two_runs_gives_the_same_numbers_one_run_at_a_time(three_clients, monkeypatch):
    at_once, advance = [], program.Program.advance

    def watched(self, rows, *more):
        at_once.append(len(rows))
        return advance(self, rows, *more)

    monkeypatch.setattr(program.Program, "advance", watched)
    options = {"space": {"rate": [0.3, 0.01]}, "seeds": 2, "rounds": 3, "eval_every": 3}
    together = sweep(three_clients, "mlr", SMALL, **options).table()
    assert at_once == [
        4,
        4,
        2,
    ]  # compiled, then done; the chosen setting's two have test scores left
    at_once.clear()
    one_by_one = sweep(three_clients, "mlr", SMALL, memory=1, **options).table()
    assert at_once == [1] * (4 * 3 + 2)  # each is compiled, begins with one round to show progress, and ends
    assert together["validation"].tolist() == pytest.approx(one_by_one["validation"].tolist(), abs=1e-6)
    assert together["chosen"].tolist() == one_by_one["chosen"].tolist()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"private": "file"}, "a sweep holds private states in memory"),
        ({"select": "last-10"}, "a sweep compares last rounds; leave select = 'last-10' out"),
        ({"cohort": 9}, "cohort = 9.0 is larger than the 5 clients"),
    ],
)
def test_what_a_sweep_cannot_do_is_refused_before_its_folder_is_made(tmp_path, settings, words):
    with pytest.raises(ConfigError, match=words):
        launch_sweep(experiment(FEDAVG, **settings), {}, Workbench(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_several_processes_are_told_what_to_do_instead(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ConfigError, match=r"a sweep runs in one process.*without launch and --distributed"):
        launch_sweep(experiment(FEDAVG), {}, Workbench(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_validation_data_nothing_is_chosen(three_clients):
    bare = from_arrays(
        {name: three_clients.train.client(i) for i, name in enumerate(three_clients.clients)}, validation=0.0
    )
    with pytest.raises(ConfigError, match="no validation split"):
        sweep(bare, "mlr", SMALL, space={"rate": [0.1, 0.2]})
