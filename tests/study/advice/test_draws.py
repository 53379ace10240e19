from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import from_arrays, from_table
from idiolect.data.federated import SPLITS, FederatedData
from idiolect.study.advice.draws import Draws, again


def made(task: str = "regression", clients: int = 3, rows: int = 20) -> FederatedData:
    rng = np.random.default_rng(0)
    parts = {}
    for i in range(clients):
        x = rng.normal(size=(rows + i, 2))
        y = 50_000 + 3000 * x[:, 0] if task == "regression" else (x[:, 0] > 0).astype(int)
        parts[f"c{i}"] = (x, y)
    return from_arrays(parts, task=task)


def rows_of(data: FederatedData, client: int) -> set[float]:
    return {float(v) for name in SPLITS for v in data.stored(name).client(client)[0][:, 0]}


def test_every_division_has_all_rows_of_each_client_in_another_order() -> None:
    data = made()
    make = again(data)
    for client in range(3):
        assert rows_of(make(0), client) == rows_of(make(1), client) == rows_of(data, client)
    assert not np.array_equal(make(0).stored("test").x, make(1).stored("test").x)
    np.testing.assert_array_equal(make(0).stored("test").x, make(0).stored("test").x)


def test_labels_are_scaled_by_training_rows() -> None:
    draws = Draws(again(made()), 3)
    for data, (mean, deviation) in zip(draws.data, draws.scale, strict=True):
        train = data.stored("train").y.astype(np.float64)
        np.testing.assert_allclose([train.mean(), train.std()], [0, 1], atol=1e-6)
        assert 49_000 < mean < 51_000
        assert 2000 < deviation < 4000


def test_the_pool_holds_each_split_of_each_division() -> None:
    draws = Draws(again(made("classification")), 2)
    for draw, data in enumerate(draws.data):
        for name in SPLITS:
            arrays = draws.arrays(draw, name)
            for client in range(3):
                first, size = int(arrays.starts[client]), int(arrays.sizes[client])
                x, y = data.stored(name).client(client)
                np.testing.assert_array_equal(arrays.x[first : first + size], x)
                np.testing.assert_array_equal(arrays.y[first : first + size], y)


def test_a_category_that_one_division_lacks_is_a_column_of_zeros_there() -> None:
    import pandas as pd

    frame = pd.DataFrame({"client": ["a"] * 12 + ["b"] * 12, "label": [0, 1] * 12, "v": range(24)})
    frame["kind"] = ["x"] * 11 + ["rare"] + ["y"] * 12
    draws = Draws(lambda seed: from_table(frame, test=0.25, validation=0.2, split_seed=seed), 6)
    assert len({data.feature_shape for data in draws.data}) == 1


def test_what_cannot_be_advised_on_is_refused() -> None:
    data = made()
    with pytest.raises(ConfigError, match="splits = 1"):
        Draws(again(data), 1)
    with pytest.raises(ConfigError, match="one client"):
        Draws(again(data.pooled()), 2)
    constant = replace(data, **{n: replace(data.stored(n), y=np.ones_like(data.stored(n).y)) for n in SPLITS})
    with pytest.raises(ConfigError, match="nothing to learn"):
        Draws(again(constant), 2)
    with pytest.raises(DataError, match="differ in clients"):
        Draws(lambda seed: again(made(rows=20 + seed))(seed), 2)
    with pytest.raises(ConfigError, match="validation row"):
        Draws(again(data, validation=0.0), 2)


def test_the_ratio_is_of_test_rows_to_all_other_rows() -> None:
    """Clients of 20, 21 and 22 rows test on 5, 6 and 6 of them; validation rows are trained on in the end, too."""
    draws = Draws(again(made()), 2)
    assert [data.test.count for data in draws.data] == [17, 17]
    assert draws.first.validation.count == 12
    assert draws.ratio == pytest.approx(17 / 46)
