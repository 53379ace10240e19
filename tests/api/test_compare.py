import gc
import os
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import idiolect
from idiolect.core.errors import ConfigError, StoreError
from idiolect.data import from_arrays
from tests.modalities import FLAT, MODEL, data_of

METHODS = [{"name": "local", "local_steps": 1}, {"name": "fedavg", "local_steps": 1}]
SMALL = {"rounds": 2, "eval_every": 1, "quiet": True}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    arrays = {name: (rng.normal(size=(12, 3)), rng.integers(0, 2, 12)) for name in ("north", "south", "west")}
    return from_arrays(arrays, validation=0.0)


def open_files(folder: Path) -> list[str]:
    """The files below a folder that this process holds open."""
    held = []
    for handle in Path("/proc/self/fd").iterdir():
        try:
            held.append(os.readlink(handle))
        except OSError:
            continue  # the listing's own
    return [file for file in held if file.startswith(str(folder))]


@pytest.mark.second
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are listed on Linux only")
@pytest.mark.parametrize("kept", [True, False])
def test_no_file_stays_open(data, tmp_path, monkeypatch, kept):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    out = tmp_path / "out" if kept else None
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        found = idiolect.compare(data, "mlr", METHODS, out=out, **SMALL)
        assert open_files(tmp_path) == []
        found.show()
        assert open_files(tmp_path) == []
        if kept:
            with pytest.raises(StoreError, match="another configuration"):
                idiolect.compare(data, "mlr", METHODS, out=out, **SMALL | {"rounds": 3})
        for wrong in ({"cohort": 7}, {"select": "best-validation"}):
            with pytest.raises(ConfigError):
                idiolect.compare(data, "mlr", METHODS, out=tmp_path / "other", **SMALL | wrong)
        assert open_files(tmp_path) == []
        gc.collect()
    assert [file.name for file in tmp_path.iterdir()] == (["out"] if kept else [])


@pytest.mark.second
def test_without_a_folder_everything_is_still_there_to_read(capsys):
    data = data_of((("acc",), ("text",), ("acc", "text")), sizes=(5, 4, 6))
    method = {"name": "mmfl", "rates": 0.1, "local_steps": 1, "batch_size": 4}
    found = idiolect.compare(data, MODEL | FLAT, [method], rounds=1, quiet=True)
    found.show()
    assert "personal text" in capsys.readouterr().out
    cell = found.results.experiment.cells[0]
    row = found.results.started()[0]
    assert found.results.store.scores(row.id, 1, "personal", "test") is not None
    assert found.results.curves(cell, "test", ["personal"])[0].rounds.tolist() == [0, 1]
    assert found.results.audit(cell)


class Own(idiolect.Local):
    """A user's method: local training by another name, with a setting that has no default elsewhere."""

    name: ClassVar[str] = "mine"


@pytest.mark.second
def test_methods_are_compared_as_classes_and_as_they_are_made(data, tmp_path):
    graph = idiolect.graphs.complete(3)
    given = [Own, Own(rate=0.3, local_steps=1), idiolect.FedAvg, idiolect.FedU(graph=graph, local_steps=1)]
    found = idiolect.compare(data, "mlr", given, out=tmp_path / "out", **SMALL)
    titles = list(dict.fromkeys(line.method for line in found.lines))
    assert titles == ["mine", "mine rate=0.3 local_steps=1", "fedavg", "fedu"]
    # The numbers are those of the same methods in `run`.
    of_run = {title: idiolect.run(data, "mlr", method, rounds=2) for title, method in zip(titles, given, strict=True)}
    for line in found.lines:
        summary = of_run[line.method].summary(line.model)
        assert line.mean.mean == pytest.approx(summary.mean, abs=1e-6)
    assert "mine rate=0.3" in (tmp_path / "out" / "report.md").read_text()
    again = idiolect.compare(data, "mlr", given, out=tmp_path / "out", **SMALL)
    assert [line.method for line in again.lines] == [line.method for line in found.lines]
    with pytest.raises(StoreError, match="another configuration"):
        idiolect.compare(data, "mlr", [Own(rate=0.4)], out=tmp_path / "out", **SMALL)


def test_what_is_no_method_is_refused_before_anything_is_written(data, tmp_path):
    for given in ([idiolect.FedAvg(), idiolect.FedAvg()], [idiolect.FedAvg, "fedavg"]):
        with pytest.raises(ConfigError, match="two methods are labelled 'fedavg'"):
            idiolect.compare(data, "mlr", given, out=tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()


@pytest.mark.second
def test_the_headline_stands_above_the_table(data, capsys):
    found = idiolect.compare(data, "mlr", METHODS, out=None, **SMALL | {"seeds": 2})
    found.show()
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith(".")
    assert first.split(":")[0].split(" ")[0] in {"Use", "Do", "Inconclusive", "No"}


def test_own_arrays_need_neither_methods_nor_settings():
    rng = np.random.default_rng(0)
    data = from_arrays({name: (rng.normal(size=(40, 2)), np.arange(40) % 2) for name in "ab"}, validation=0.2)
    found = idiolect.compare(data, methods=["local", "fedavg"], quiet=True).results.experiment.cells[0]
    assert (found.rounds, found.stop, found.select, found.model["name"]) == (200, "settled", "best-validation", "mlr")
    assert all("rate" in method.spec for method in found.methods)
    plain = idiolect.compare(data, "mlr", ["fedavg"], rounds=1, quiet=True).results.experiment.cells[0]
    assert (plain.rounds, plain.stop, plain.select) == (1, "last", "last")
    assert "rate" not in plain.methods[0].spec
