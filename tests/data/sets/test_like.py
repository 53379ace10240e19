"""A table of new clients, encoded as the one that a run was trained on."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import from_arrays, from_table
from idiolect.data.sets.like import encode_like


def table(clients: dict[str, int], seed: int = 0) -> pd.DataFrame:
    """Numbers with gaps, categories, a column that is constant, and classes by name."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(list(clients), list(clients.values()))
    n = len(owners)
    age = rng.normal(50, 10, n)
    frame = pd.DataFrame(
        {
            "ward": owners,
            "age": np.where(rng.random(n) < 0.1, np.nan, age),
            "weight": rng.normal(70, 5, n),
            "kind": rng.choice(["a", "b", "c"], n),
            "always": 1,
            "outcome": np.where(age + rng.normal(0, 5, n) > 50, "ill", "well"),
        }
    )
    frame.loc[0, "age"] = np.nan
    return frame


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table({"w0": 40, "w1": 30})


@pytest.fixture(scope="module")
def known(frame):
    return from_table(frame, "ward", "outcome", validation=0.0)


def rows(data: Any) -> np.ndarray:
    """All samples with their labels, in an order of their own."""
    parts = [np.column_stack([split.x, split.y]) for split in (data.train, data.validation, data.test)]
    stacked = np.concatenate(parts)
    return stacked[np.lexsort(stacked.T)]


def test_the_known_table_given_again_is_encoded_to_the_same_numbers(frame, known):
    again = encode_like(known, frame)
    np.testing.assert_array_equal(rows(again), rows(known))
    assert (again.clients, again.classes, again.task) == (known.clients, known.classes, known.task)
    assert again.test.sizes.tolist() == [10, 8]


def test_one_row_one_class_and_unseen_categories(known):
    """Zeros for a category that training never saw; scaled by the known mean, not its own; not marked as missing."""
    new = pd.DataFrame([{"ward": "new", "age": 61.0, "weight": 70.0, "kind": "z", "outcome": "well", "extra": 5}])
    data = encode_like(known, new)
    columns = {column.name: column for column in known.schema.columns}
    by_name = dict(zip(known.schema.features, data.train.x[0].tolist(), strict=True))
    for name in ("age", "weight"):
        scaled = (new[name][0] - columns[name].mean) / columns[name].scale
        assert by_name.pop(name) == pytest.approx(scaled, rel=1e-6)
    assert len(by_name) == 4
    assert any("'z'" in note or "(z)" in note for note in data.notes), data.notes
    assert set(by_name.values()) == {0.0}
    assert data.train.y.tolist() == [1]
    assert (data.test.count, data.validation.count, data.classes) == (0, 0, ("ill", "well"))


def test_a_client_is_divided_alike_whoever_else_is_there(known):
    both = encode_like(known, table({"x": 12, "y": 20}, 3), split_seed=2)
    alone = encode_like(known, table({"x": 12, "y": 20}, 3).query("ward == 'y'"), split_seed=2)
    np.testing.assert_array_equal(alone.test.x, both.test.client(1)[0])
    other = encode_like(known, table({"x": 12, "y": 20}, 3), split_seed=3)
    assert not np.array_equal(other.test.x, both.test.x)
    assert encode_like(known, table({"x": 12}), test=0.0).test.count == 0


def test_a_split_column_of_both_tables_divides_the_rows():
    def with_split(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(split=["train", "test"] * (len(frame) // 2))

    known = from_table(with_split(table({"w0": 40, "w1": 30})), "ward", "outcome")
    data = encode_like(known, with_split(table({"x": 6}, 1)))
    assert (data.train.count, data.test.count) == (3, 3)
    only_test = with_split(table({"x": 6}, 1)).assign(split="test")
    with pytest.raises(DataError, match="client 'x' has no train rows in the split column"):
        encode_like(known, only_test)


def test_targets_of_a_regression_are_scaled_by_the_known_mean():
    frame = table({"w0": 40, "w1": 30}).assign(outcome=np.linspace(0.5, 7, 70))
    known = from_table(frame, "ward", "outcome")
    new = encode_like(known, frame[:10], test=0.0)
    label = known.schema.label
    scaled = (frame["outcome"][:10].to_numpy() - label.mean) / label.scale
    np.testing.assert_allclose(new.train.y, scaled, rtol=1e-6)
    assert new.label_scale == known.label_scale != 1
    with pytest.raises(DataError, match="column 'outcome': no number in row 1"):
        encode_like(known, frame[:10].assign(outcome="high"))


def test_the_client_and_label_columns_may_have_other_names(known):
    frame = table({"007": 4, "x": 4}, 2)
    renamed = frame.rename(columns={"ward": "clinic", "outcome": "result"})
    data = encode_like(known, renamed, client="clinic", label="result")
    assert data.clients == ("007", "x")
    np.testing.assert_array_equal(rows(data), rows(encode_like(known, frame)))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda t: t.drop(columns="weight"), "no column 'weight'"),
        (lambda t: t.drop(columns="ward"), "no client column 'ward'"),
        (lambda t: t.drop(columns="outcome"), "no label column 'outcome'"),
        (lambda t: t.assign(outcome="dead"), "'dead' is none of the classes"),
        (lambda t: t.assign(weight=np.inf), "column 'weight'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(known, changed, message):
    with pytest.raises(DataError, match=message):
        encode_like(known, changed(table({"x": 5})))


def test_data_that_are_no_table_are_refused():
    arrays = from_arrays({"a": (np.eye(8), np.arange(8) % 2)})
    with pytest.raises(ConfigError, match="have no schema"):
        encode_like(arrays, table({"x": 5}))
