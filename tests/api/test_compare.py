import gc
import os
import warnings
from pathlib import Path

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
