"""The best of several settings is chosen by validation data; test data have no say."""

from pathlib import Path

from idiolect.study.results import Results
from idiolect.study.store import Store
from idiolect.study.tuning import chosen, validation_score
from tests.report.stores import NAN, experiment, finished

# Of each setting: the validation score of every client in round 0 and in round 20, and the test score there.
COURSES = {"slow": (0.9, 0.6, 0.9), "fast": (0.1, 0.8, 0.2), "wild": (0.1, 0.7, 1.0)}


def results(folder: Path, task: str = "classification") -> Results:
    """FedAvg in three settings, two seeds each, and Local, that was not run."""
    store = Store(folder)
    settings = [{"name": "fedavg", "label": label, "rate": rate} for rate, label in enumerate(COURSES, start=1)]
    exp = experiment([*settings, {"name": "local"}], seeds=2)
    for label, (before, after, tested) in COURSES.items():
        for seed in (0, 1):
            shift = 0.1 * seed
            course = {0: {"global": (before,) * 3 + (NAN,)}, 20: {"global": (after - shift,) * 3 + (NAN,)}}
            run = finished(store, exp, "cell0", label, seed, course, splits=("validation",), task=task)
            other = {20: {"global": (tested,) * 3 + (NAN,)}}
            assert run == finished(store, exp, "cell0", label, seed, other, splits=("test",), task=task)
    return Results(store, exp)


def test_the_last_rounds_validation_score_decides(tmp_path: Path) -> None:
    found = results(tmp_path)
    (best,) = chosen(found, found.experiment.cells[0])
    assert (best.method, best.tried, best.line.method) == ("fedavg", 3, "fast")
    assert best.validation.seeds == 2
    assert abs(best.validation.mean - 0.75) < 1e-9
    assert abs(best.line.weighted.mean - 0.2) < 1e-9  # the worst on test data


def test_the_score_is_of_the_last_round_over_seeds(tmp_path: Path) -> None:
    found = results(tmp_path)
    cell = found.experiment.cells[0]
    scores = [validation_score(found, cell, method, "global") for method in cell.methods[:3]]
    assert [round(score.mean, 9) for score in scores] == [0.55, 0.75, 0.65]
    assert validation_score(found, cell, cell.methods[3], "local").seeds == 0
