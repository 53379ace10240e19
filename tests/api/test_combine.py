from pathlib import Path

import numpy as np
import pytest

import idiolect
from idiolect.api.predict import predict
from idiolect.core.errors import ConfigError, DataError, StoreError
from tests.study.combine.conftest import compared, table_of
from tests.tiers import second


@pytest.mark.parametrize("task", ["classification", second("regression")])
def test_raw_rows_are_predicted_by_the_combination(task: str, tmp_path: Path) -> None:
    """The probabilities, or the numbers in the label's units, are the weighted means of the methods' own."""
    data = compared(task, tmp_path / "runs")
    made = idiolect.combine(tmp_path / "runs", data)
    table = table_of(task)
    folder = tmp_path / "runs" / "models" / "wards"
    places = {"local": "local/seed0/local", "fedavg": "fedavg/seed0/global.safetensors",
              "fedavg-ft": "fedavg-ft/seed0/adapted"}  # fmt: skip
    own = {name: predict(folder / place, table).frame for name, place in places.items()}
    columns = ["prediction"] if task == "regression" else ["P(ill)", "P(well)"]
    share = made.weights.loc[table["ward"]].to_numpy()
    parts = [share[:, [k]] * own[name][columns].to_numpy(float) for k, name in enumerate(made.weights.columns)]
    expected = np.sum(parts, axis=0)
    for model in (made, made.path, made.path.parent):
        found = predict(model, table)
        np.testing.assert_allclose(found.frame[columns].to_numpy(float), expected, rtol=1e-5)
        assert found.scores
    if task == "classification":
        said = np.where(expected[:, 0] > expected[:, 1], "ill", "well")
        assert predict(made, table).frame["prediction"].tolist() == said.tolist()
    with pytest.raises(DataError, match="no client column 'ward'"):
        predict(made, table.drop(columns="ward"))
    east = table.head(2).assign(ward="east")  # only FedAvg's model is for everybody
    shared = predict(folder / places["fedavg"], east).frame[columns]
    np.testing.assert_allclose(predict(made, east).frame[columns], shared, rtol=1e-5)


def test_a_folder_without_runs_and_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no runs"):
        idiolect.combine(tmp_path)
    compared("classification", tmp_path / "runs", rounds=1)
    with pytest.raises(ConfigError, match="kind = 'best' must be one of"):
        idiolect.combine(tmp_path / "runs", kind="best")
