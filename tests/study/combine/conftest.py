from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import idiolect
from idiolect.data.federated import FederatedData
from tests.tables import wards
from tests.tiers import second

METHODS = [{"name": "local", "rate": 0.05}, {"name": "fedavg", "rate": 0.05}, {"name": "fedavg-ft", "rate": 0.05}]


def table_of(task: str) -> pd.DataFrame:
    return wards(rows=30, regression=task == "regression").drop(columns="split")


def compared(task: str, folder: Path, **settings: object) -> FederatedData:
    """Compare three methods on three wards; the folder has their models."""
    data = idiolect.data.from_table(table_of(task), "ward", validation=0.25, title="wards")
    model = "linear" if task == "regression" else "mlr"
    given = {"rounds": 3, "rate": "method", "eval_every": 1, "seeds": 1, "quiet": True, **settings}
    idiolect.compare(data, model, METHODS, out=folder, **given)  # pyright: ignore[reportArgumentType]
    return data


@pytest.fixture(scope="package", params=["classification", second("regression")])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FederatedData]:
    folder = tmp_path_factory.mktemp("runs")
    return folder, compared(request.param, folder)


def shares(outputs: np.ndarray, task: str) -> np.ndarray:
    """By hand: the softmax in float64, or the numbers."""
    wide = outputs.astype(np.float64)
    if task == "regression":
        return wide
    odds = np.exp(wide - wide.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
