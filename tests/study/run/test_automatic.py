from pathlib import Path

import numpy as np
import pytest

from idiolect.algorithms.registry import build
from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.study.run.automatic import default_methods, default_metric, default_model, is_own, resolved, with_rates
from idiolect.study.run.launch import launch
from idiolect.study.run.resolve import Workbench
from idiolect.study.run.rounds import FIXED
from idiolect.study.spec.assemble import problem_of
from idiolect.study.spec.experiment import Experiment, comparison_of
from tests.federations import federation, split_of


def line(rows: int = 40, noise: float = 0.1, **options) -> FederatedData:
    rng = np.random.default_rng(0)
    parts = {}
    for name in ("a", "b"):
        x = rng.normal(size=(rows, 2)).astype(np.float32)
        parts[name] = (x, (x @ [1.0, -2.0] + noise * rng.normal(size=rows)).astype(np.float32))
    return from_arrays(parts, task="regression", **{"validation": 0.2, **options})


def experiment(methods=("fedavg",), **settings) -> Experiment:
    return comparison_of("line", {"name": "own"}, {"name": "linear"}, methods, **{"rounds": "auto", **settings})


def test_rates_that_are_left_out_are_one_over_the_curvature_and_given_ones_stay() -> None:
    """One feature of 0 everywhere: z z' is 1 for the bias and L is 1 at a whole batch."""
    nothing = (np.zeros((4, 1), np.float32), np.zeros(4, np.float32))
    data = federation(split_of([nothing, nothing]))
    given = {"name": "fedavg", "rate": 0.7, "label": "given"}
    whole = {"name": "fedavg", "batch_size": 0}
    cell = resolved(experiment([whole, given], rate="auto"), Workbench(data=data)).cells[0]
    assert cell.method("fedavg").spec["rate"] == 1.0
    assert cell.method("given").spec["rate"] == 0.7
    assert cell.rate == "method"
    once = Experiment(name="x", cells=(cell,))
    assert resolved(once, Workbench(data=data)) == once


def test_a_number_is_the_rate_of_every_method_that_sets_none() -> None:
    cell = resolved(experiment(["fedavg", "mocha"], rate=0.25), Workbench(data=line())).cells[0]
    assert cell.method("fedavg").spec["rate"] == 0.25
    assert "rate" not in cell.method("mocha").spec


def test_without_automatic_settings_an_experiment_stays_itself() -> None:
    plain = experiment(rounds=3)
    assert resolved(plain, Workbench(data=line())) is plain


def test_without_validation_rows_rounds_are_fixed_and_a_line_says_so() -> None:
    cell = resolved(experiment(), Workbench(data=line(validation=0.0))).cells[0]
    assert (cell.rounds, cell.stop, cell.select) == (FIXED, "last", "last")
    assert "No client has validation rows" in cell.note


@pytest.mark.parametrize(("classes", "metric"), [(2, "auroc,accuracy"), (3, "log-loss,accuracy")])
def test_the_metric_follows_the_balance_of_labels(classes, metric) -> None:
    def data(rare: int) -> FederatedData:
        y = np.zeros(100, np.int32)
        y[:rare] = np.arange(rare) % (classes - 1) + 1
        names = tuple("abc"[:classes])
        return federation(split_of([(np.ones((100, 1), np.float32), y)]), task="classification", classes=names)

    assert default_metric(data(5))[0] == metric
    assert "95.0%" in default_metric(data(5))[1]
    assert default_metric(data(6)) == ("", "")


def test_default_methods_have_local_training_first() -> None:
    assert default_methods()[:4] == ["local", "fedavg", "fedavg-ft", "ditto"]


def test_a_run_that_converges_stops_early_and_one_that_cannot_uses_every_round(tmp_path: Path) -> None:
    """Least squares at rate 1 / L is at its optimum within a few rounds; at a rate of 1e-6 it falls for ever."""
    slow = {"name": "fedavg", "rate": 1e-4, "label": "slow"}
    results = launch(experiment(["fedavg", slow], rate="auto"), tmp_path / "run", data=line(), save_models="none")
    rows = {row.label: row for row in results.store.runs()}
    assert rows["fedavg"].round <= 32
    assert rows["slow"].round == 200


def test_a_stopped_and_resumed_run_ends_in_the_same_round_with_the_same_scores(tmp_path: Path, monkeypatch) -> None:
    from idiolect.study.run import loop

    whole = launch(experiment(rate="auto"), tmp_path / "whole", data=line(), save_models="none")
    (row,) = whole.store.runs()
    evaluate, calls = loop._Loop.evaluate, []

    def failing(self, states, round):
        evaluate(self, states, round)
        calls.append(round)
        if round == row.round:  # after the last evaluation is recorded, before the run is marked as done
            raise KeyboardInterrupt

    monkeypatch.setattr(loop._Loop, "evaluate", failing)
    with pytest.raises(KeyboardInterrupt):
        launch(experiment(rate="auto"), tmp_path / "cut", data=line(), save_models="none")
    monkeypatch.setattr(loop._Loop, "evaluate", evaluate)
    again = launch(experiment(rate="auto"), tmp_path / "cut", data=line(), save_models="none")
    assert again.store.runs()[0].round == row.round
    for split in ("validation", "test"):
        assert again.store.losses(row.id, split) == whole.store.losses(row.id, split)


@pytest.mark.parametrize(("rows", "size"), [(512, 0), (513, 64)])
def test_batch_sizes_that_are_left_out_are_all_rows_of_small_clients(rows, size) -> None:
    """Rows of zeros: z z' is 1 for the bias and |z|^2 is 1, so L is 1 with all rows and 1 + 1 / 64 with batches."""
    data = federation(split_of([(np.zeros((n, 1), np.float32), np.zeros(n, np.float32)) for n in (2, rows)]))
    given = {"name": "fedavg", "batch_size": 7, "label": "given"}
    cell = resolved(experiment(["fedavg", given, "mocha"], rate="auto"), Workbench(data=data)).cells[0]
    assert cell.method("fedavg").spec["batch_size"] == size
    assert cell.method("fedavg").spec["rate"] == (1.0 if size == 0 else 0.985)
    assert cell.method("given").spec["batch_size"] == 7
    assert cell.method("given").spec["rate"] == 0.875
    assert "batch_size" not in cell.method("mocha").spec
    assert f"Batch sizes that were not set are {'all rows of a client' if size == 0 else '64 rows'}." in cell.note


def test_a_method_takes_the_same_settings_outside_of_an_experiment() -> None:
    problem = problem_of(line(), "linear")
    spec = {"name": "ditto", "prox_weight": 1.0}
    method = with_rates(build(spec), spec, problem, "auto")
    cell = resolved(experiment([spec], rate="auto"), Workbench(data=problem.data)).cells[0]
    assert method == build(cell.methods[0].spec)
    assert with_rates(build(spec), spec, problem, "method") == build(spec)
    assert with_rates(build(spec), spec, problem, 0.5) == build({**spec, "rate": 0.5})
    assert with_rates(build({"name": "mocha"}), {"name": "mocha"}, problem, 0.5) == build({"name": "mocha"})


def test_a_table_and_arrays_are_own_data_with_their_methods_and_model() -> None:
    assert is_own(line())
    assert not is_own(federation(split_of([(np.zeros((4, 1), np.float32), np.zeros(4, np.float32))])))
    assert default_model(line()) == "linear"
    assert default_methods(own=False) == ["pfedme", "perfedavg", "fedavg-ft", "local", "global"]
