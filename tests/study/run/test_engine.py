import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import idiolect.study.run.engine as module
from idiolect.core.errors import StoreError
from idiolect.core.files import file_names
from idiolect.models.client_model import load_model
from idiolect.models.files import SUFFIX, read_header
from idiolect.study.analyse.results import Results
from idiolect.study.run.resolve import Workbench
from idiolect.study.store.claim import claim, stored_experiment
from idiolect.study.store.store import Store
from tests.engine import DATA, FEDAVG, LOCAL, content, dies, experiment, leftovers, run
from tests.killed import INSTANTS, POPULATION, ROWS, SETTINGS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    run(experiment(select="best-validation"), out)
    return out


@pytest.mark.second
def test_killed_again_and_again_and_resumed_is_bit_identical(undisturbed, tmp_path):
    out = tmp_path / "out"
    for instant in INSTANTS:
        ended = subprocess.run(
            [sys.executable, "-m", "tests.killed", str(out), instant], cwd=ROOT, capture_output=True
        )
        assert ended.returncode == -9, ended.stderr.decode()
        assert any(row[3] == "running" for row in content(out)["runs"]), instant
        # Progress is written by a thread of its own, which the kill may also interrupt.
        assert len(leftovers(out / "checkpoints")) == (instant == INSTANTS[1])
    run(stored_experiment(Store(out, create=False)), out)
    assert content(out) == content(undisturbed)
    assert leftovers(out) == []


@pytest.mark.second
@pytest.mark.parametrize("instant", [ROWS, POPULATION])
def test_killed_between_rounds_that_changed_private_states_in_a_file(tmp_path, instant):
    """Resumed to an undisturbed run, to the last bit; with all of them in memory it is another program."""
    out, whole, memory = tmp_path / "out", tmp_path / "whole", tmp_path / "memory"
    ended = subprocess.run([sys.executable, "-m", "tests.killed", str(out), instant], cwd=ROOT, capture_output=True)
    assert ended.returncode == -9, ended.stderr.decode()
    assert list(out.glob("checkpoints/*.private"))
    resumed = run(stored_experiment(Store(out, create=False)), out)
    run(experiment(**SETTINGS[instant]), whole)
    assert content(out) == content(whole)
    held = run(experiment(**{**SETTINGS[instant], "private": "memory"}), memory)
    pairs = [(a.loss.mean, b.loss.mean) for a, b in zip(resumed.lines, held.lines, strict=True)]
    assert pairs == [(a, pytest.approx(a, rel=1e-5)) for a, _ in pairs]


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    out = tmp_path_factory.mktemp("local") / "out"
    run(experiment(LOCAL), out)
    return out


@pytest.fixture
def fitted(monkeypatch):
    """The seeds that are run."""
    seeds, fit = [], module.fit
    monkeypatch.setattr(
        module, "fit", lambda *args, **options: seeds.append(options["seed"]) or fit(*args, **options)
    )
    return seeds


def test_finished_runs_are_not_run_again_and_more_seeds_continue(local, tmp_path, fitted):
    out = tmp_path / "out"
    shutil.copytree(local, out)
    run(experiment(LOCAL), out)
    assert fitted == []
    results = run(experiment(LOCAL, seeds=2), out)
    assert fitted == [1]
    assert results.lines[0].pooled.seeds == 2
    kept = [row for row in content(out)["metrics"] if row[0].endswith("seed0")]
    assert kept == content(local)["metrics"]
    assert stored_experiment(Store(out)).seeds == 2
    run(experiment(LOCAL), out)  # fewer seeds: nothing is lost
    assert stored_experiment(Store(out)).seeds == 2


def test_models_asked_for_later_are_written_from_the_checkpoint(local, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(local, out)
    shutil.rmtree(out / "models")
    run(experiment(LOCAL), out, save_models="none")
    assert not (out / "models").exists()
    run(experiment(LOCAL), out, save_models="first")
    assert content(out) == content(local)
    assert len(content(out)["models"]) == 5 + 1  # and their index


def test_each_data_set_is_audited_for_leaks_once_a_run_on_it_has_ended(local):
    """The first round does not wait for it."""
    with Store(local) as store:
        assert all(store.fact(f"audit {row.data_hash}") for row in store.runs())


def test_metrics_that_were_lost_are_computed_again(local, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(local, out)
    store = Store(out)
    store._db.execute("DELETE FROM evaluations WHERE round = 2")
    store._db.execute("UPDATE runs SET status = 'running'")
    run(experiment(LOCAL), out)
    assert content(out) == content(local)


def test_saved_models_are_of_the_round_that_validation_chose_and_score_as_the_store_says(undisturbed):
    store = Store(undisturbed, create=False)
    spec = stored_experiment(store)
    cell = spec.cells[0]
    data = Workbench().load(cell)
    for method in cell.methods:
        for name in Results(store, spec).names(cell, method):
            row = store.run(f"cell/{method.title}/seed0")
            curve = store.curve(row.id, name, "validation", "accuracy")
            best = max(curve, key=lambda point: point[1])[0]
            folder = store.models_folder(row)
            scores = store.scores(row.id, best, name, "test")
            for index, client in enumerate(file_names(data.clients)):
                file = folder / ("global" if name == "global" else f"{name}/{client}")
                file = file.with_name(f"{file.name}{SUFFIX}")
                header = read_header(file)
                assert header["round"] == best
                x, y = data.test.client(index)
                model = load_model(file)
                right = np.mean(np.argmax(jax.vmap(model)(jnp.asarray(x)), axis=1) == y)
                assert right == pytest.approx(scores.values["accuracy"][index])


def test_changed_configuration_is_refused_naming_the_key_and_the_folder_stays(undisturbed):
    before, spec = content(undisturbed), stored_experiment(Store(undisturbed))
    for changes, key in (
        ({"rounds": 8}, "rounds"),
        ({"data": {**DATA, "alpha": 0.7}}, "data.alpha"),
        ({"methods": [{**LOCAL, "rate": 0.3}]}, "method.rate"),
        ({"select": "last"}, "select"),
    ):
        with pytest.raises(StoreError, match=rf"changed: {key}\)"):
            run(experiment(**{"select": "best-validation", **changes}), undisturbed)
    with pytest.raises(StoreError, match="name 'tiny', not 'other'"):
        run(experiment(name="other", select="best-validation"), undisturbed)
    assert content(undisturbed) == before
    assert stored_experiment(Store(undisturbed)) == spec


def test_a_new_method_must_fit_the_cells_settings(tmp_path):
    store = Store(tmp_path / "out")
    bench = Workbench()
    first = experiment(LOCAL)
    rows = bench.check(first)
    claim(store, first, rows)
    store.start(rows[0])
    other = experiment(FEDAVG)
    claim(store, other, bench.check(other))
    assert [m.name for m in stored_experiment(store).cells[0].methods] == ["fedavg", "local"]
    longer = experiment(FEDAVG, rounds=10)
    with pytest.raises(StoreError, match=r"cell 'cell' with other settings \(changed: rounds\)"):
        claim(store, longer, bench.check(longer))


@pytest.mark.second
def test_diagnostics_of_a_disturbed_run_are_those_of_an_undisturbed_one(tmp_path, monkeypatch):
    """It dies when round 2 is in the store and no checkpoint has been written since round 0."""
    spec = experiment({"name": "mocha"}, splits=["test"])
    whole = run(spec, tmp_path / "whole")
    course = whole.store.diagnostics("cell/mocha/seed0")
    assert [round for round, _ in course["dual objective"]] == [0, 2, 4, 6]
    assert len({value for _, value in course["dual objective"]}) == 4
    assert all(np.isnan(value) for _, value in course["duality gap"])  # two of five clients took part

    class Killed(Exception):
        pass

    def die():
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Store, "record", dies(Store.record, 2, die))
        with pytest.raises(Killed):
            run(spec, tmp_path / "out")
    store = Store(tmp_path / "out")
    assert [round for round, _ in store.diagnostics("cell/mocha/seed0")["dual objective"]] == [0, 2]
    store.record("cell/mocha/seed0", 3, [], seconds=0, compile_seconds=0, diagnostics={"dual objective": 7.0})
    run(spec, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_changed_data_are_refused(tmp_path):
    def table(label):
        rows = [f"{client},{i},{(i + label) % 2}" for client in "abc" for i in range(12)]
        (tmp_path / "t.csv").write_text("\n".join(["client,x,label", *rows]))

    spec = experiment(LOCAL, data={"name": "table", "path": str(tmp_path / "t.csv"), "validation": 0.2})
    store = Store(tmp_path / "out")
    table(0)
    store.start(Workbench().check(spec)[0])
    table(1)
    with pytest.raises(StoreError, match=r"the data of run cell/local/seed0 .* have changed"):
        run(spec, tmp_path / "out")
    assert store.fact("experiment") is None


def test_a_diverging_run_is_told_and_the_others_finish(tmp_path):
    wild = {"name": "fedavg", "label": "wild", "rate": 3e38, "local_steps": 2, "batch_size": 5}
    results = run(experiment(wild, LOCAL), tmp_path / "out")
    rows = results.rows
    assert rows["cell/local/seed0"].status == "done"
    row = rows["cell/wild/seed0"]
    assert row.status == "diverged"
    assert "in round 1, client '" in row.message
    assert "stage: local training" in row.message
    assert [r.id for r in results.diverged()] == [row.id]
    assert results.store.checkpoint_path(row.id).stat().st_size > 0
    assert (results.store.folder / "models" / "cell" / "local").is_dir()


def test_last_10_is_each_clients_mean_over_the_last_ten_rounds(tmp_path):
    spec = experiment({**LOCAL, "rate": 0.5}, rounds=12, eval_every=5, select="last-10", splits=["test"])
    run(spec, tmp_path / "out")
    store = Store(tmp_path / "out")
    results, row = Results(store, spec), store.run("cell/local/seed0")
    assert store.evaluated(row.id) == [0, *range(3, 13)]
    each = [store.scores(row.id, round, "local", "test") for round in range(3, 13)]
    chosen, scores = results.selected(spec.cells[0], row, "local")
    assert chosen == 12
    for of in (lambda s: s.loss, lambda s: s.values["accuracy"], lambda s: s.values["macro-f1"]):
        rounds = np.stack([of(s) for s in each])
        assert np.ptp(rounds, axis=0).max() > 0.01
        np.testing.assert_allclose(of(scores), rounds.mean(axis=0), rtol=1e-12)
    assert scores.pooled["macro-f1"] == pytest.approx(np.mean([s.pooled["macro-f1"] for s in each]))


def test_selection_looks_at_validation_only(undisturbed):
    store = Store(undisturbed, create=False)
    spec = stored_experiment(store)
    cell, results = spec.cells[0], Results(store, spec)
    row = store.run("cell/local/seed0")
    store._db.execute("BEGIN")
    try:
        change = "UPDATE metrics SET pooled = ? WHERE run = ? AND round = ? AND split = ?"
        for round in (0, 2, 4, 6):
            store._db.execute(change, (0.9 if round == 2 else 0.1, row.id, round, "validation"))
            store._db.execute(change, (0.9 if round == 4 else 0.1, row.id, round, "test"))
        assert results.selected(cell, row, "local")[0] == 2
        assert results.selected(cell.model_copy(update={"select": "last"}), row, "local")[0] == 6
        assert results.selected(cell.model_copy(update={"select": "best-test"}), row, "local")[0] == 4
    finally:
        store._db.execute("ROLLBACK")


def test_with_new_splits_every_seed_is_the_run_on_its_own_split(tmp_path):
    """In one group, and resumed seed by seed, it is what a run on that split_seed gives."""
    spec = experiment(LOCAL, seeds=3, new_splits=True, splits=["test"])
    found = run(spec, tmp_path / "all")
    for seed in (0, 2):
        data = {**DATA, "split_seed": seed}
        alone = experiment(LOCAL, splits=["test"], data=data).model_copy(update={"first_seed": seed})
        expected = run(alone, tmp_path / f"alone{seed}")
        name = f"cell/local/seed{seed}"
        assert found.store.curve(name, "local", "test", "accuracy") == expected.store.curve(
            name, "local", "test", "accuracy"
        )
    curves = [found.store.curve(f"cell/local/seed{seed}", "local", "test", "accuracy") for seed in range(3)]
    assert curves[0] != curves[1] != curves[2]
    run(spec.model_copy(update={"seeds": 1}), tmp_path / "resumed")
    (resumed,), (whole,) = run(spec, tmp_path / "resumed").lines, found.lines
    assert (resumed.pooled, resumed.mean, resumed.loss) == (whole.pooled, whole.mean, whole.loss)
