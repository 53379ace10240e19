import numpy as np
import pytest

from idiolect.report.launch import launch
from idiolect.study.run.launch import stored_options
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Experiment
from idiolect.study.store.store import Store
from tests.engine import LOCAL, experiment
from tests.report.stores import record

SPEC = experiment(LOCAL, seeds=2)
DONE = (
    "[ 50%] cell/local/seed0: 6 rounds in 3.0 s\n[100%] cell/local/seed1: 6 rounds in 3.0 s\n"
    "hint: cell/local: not learning: no better on its training samples than before round 1 (accuracy 50 %) (seed 0)\n"
)


@pytest.fixture
def folder(tmp_path):
    """Both runs are finished: nothing is left to be trained."""
    with Store(tmp_path / "out") as store:
        for row in Workbench().check(SPEC):
            store.start(row)
            for round in (0, 2, 4, 6):
                scores = {"local": np.full(5, 0.5 + row.seed / 4)}
                record(store, row.id, round, scores, splits=("train", "test"), counts=np.full(5, 8))
            store.finish(row.id, "done")
    return tmp_path / "out"


@pytest.mark.parametrize("given", [{"quiet": True}, {"quiet": True, "figures": True}, {"figures": True}])
def test_the_report_is_written_where_it_was_not_refused(folder, given, capsys):
    launch(SPEC, str(folder), command="idiolect run x", save_models="none", jobs=1, **given)
    assert "- made by: `idiolect run x`" in (folder / "report.md").read_text()
    assert [len(list((folder / "figures").glob(f"*.{end}"))) for end in ("png", "svg")] == [2, 2]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "" if "quiet" in given else DONE)


def test_without_figures_nothing_but_the_runs_is_written(folder, capsys):
    before = sorted(folder.iterdir())
    results = launch(SPEC, folder, save_models="none", jobs=1, figures=False)
    assert {*folder.iterdir()} <= {*before, folder / ".lock"}
    assert capsys.readouterr().err == DONE
    assert results.experiment == SPEC
    assert [(line.model, line.pooled.mean, line.pooled.seeds) for line in results.lines] == [("local", 0.625, 2)]


def test_the_other_options_are_those_of_the_study(folder):
    options = {"command": "c", "folder": str(folder.parent.resolve()), "save_models": "none", "jobs": 3}
    launch(SPEC, folder, quiet=True, figures=False, **options)
    with Store(folder) as store:
        assert stored_options(store) == {**options, "started_in": str(folder)}
    with pytest.raises(TypeError, match="savemodels"):
        launch(SPEC, folder, savemodels="none", quiet=True)


def test_each_comparison_but_the_last_answers_when_its_runs_have_ended(tmp_path, capsys):
    """The first comparison's headline comes before the second one begins; a single one has none of its own."""
    cell = experiment(LOCAL, {"name": "fedavg"}).cells[0]
    second = cell.model_copy(update={"id": "second", "title": "the second"})
    spec = Experiment(name="two", cells=(cell.model_copy(update={"title": "the first"}), second), seeds=2)
    launch(spec, tmp_path / "out", jobs=1, figures=False, save_models="none")
    lines = capsys.readouterr().err.splitlines()
    answers = [place for place, line in enumerate(lines) if line.startswith("the first: ")]
    assert len(answers) == 1
    assert lines[answers[0]].endswith(".")
    assert not any(line.startswith("the second: ") for line in lines)
    begun = next(place for place, line in enumerate(lines) if "] second/" in line)
    assert answers[0] < begun


def test_a_quiet_launch_answers_nothing(tmp_path, capsys):
    cell = experiment(LOCAL, {"name": "fedavg"}).cells[0]
    spec = Experiment(name="two", cells=(cell, cell.model_copy(update={"id": "second"})), seeds=2)
    launch(spec, tmp_path / "out", jobs=1, figures=False, save_models="none", quiet=True)
    assert capsys.readouterr().err == ""
