import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from idiolect.core.errors import StoreError
from idiolect.data.federated import FederatedData
from idiolect.models.client_model import load_model
from idiolect.study.combine.sources import source_in
from tests.study.combine.conftest import shares
from tests.tiers import second

Runs = tuple[Path, FederatedData]


@pytest.mark.parametrize(
    ("method", "model"), [("local", "local"), ("fedavg", "global"), second("fedavg-ft", "adapted")]
)
def test_each_row_is_predicted_by_its_clients_file(runs: Runs, method: str, model: str) -> None:
    folder, data = runs
    place = folder / "models" / "wards" / method / "seed0"
    source = source_in(place, model)
    assert (source.shared is not None) is (method == "fedavg")
    x, names = data.stored("test").x, np.asarray(data.clients, object)[data.stored("test").owners]
    rows = [3, 0, len(x) - 1]
    found, some = source.predicted(x, names), source.predicted(x, names, rows)
    np.testing.assert_array_equal(some, found[rows])
    for name in data.clients:
        file = place / f"{model}.safetensors" if method == "fedavg" else place / model / f"{name}.safetensors"
        expected = shares(load_model(file).outputs(x[names == name]), data.task)
        np.testing.assert_allclose(found[names == name], expected, rtol=1e-12)


def test_no_rows_are_no_predictions(runs: Runs) -> None:
    source = source_in(runs[0] / "models" / "wards" / "local" / "seed0", "local")
    assert len(source.predicted(np.zeros((0, 4), np.float32), np.zeros(0, object))) == 0


def test_what_is_missing_or_damaged_is_named_in_one_line(runs: Runs, tmp_path: Path) -> None:
    place = tmp_path / "seed0"

    def refused(model: str = "local") -> str:
        with pytest.raises(StoreError) as error:
            source_in(place, model)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "index.json is missing" in refused()
    shutil.copytree(runs[0] / "models" / "wards" / "local" / "seed0", place)
    assert "no files of the model 'personal'" in refused("personal")
    (place / "local" / "south.safetensors").unlink()
    assert "south.safetensors is missing" in refused()
    for content in ("{", "[]", json.dumps({"files": [{"model": "local"}]}), json.dumps({"files": 3})):
        (place / "index.json").write_text(content)
        assert "index.json is damaged" in refused()
