import weakref
from dataclasses import replace

import numpy as np
import pytest

from idiolect.core.errors import ConfigError, DataError
from idiolect.data import Modalities, from_arrays, from_table
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.schema.columns import Category, Column, LeftOut, Number
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.study.advice.draws import LARGE, SMALL, Draws, again, divisions_of
from tests.federations import federation, split_of


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


def test_the_divisions_follow_the_rows_where_none_is_given() -> None:
    assert [divisions_of(rows) for rows in (1, SMALL - 1, SMALL, LARGE - 1, LARGE)] == [16, 16, 8, 8, 5]
    assert Draws(again(made("classification")), None).count == 16


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


def divided(train=(-1.0, 3.0), shape=(1,), **changes) -> FederatedData:
    """A division of two clients: each has these labels in training, one test row, and the first a validation row."""

    def split(*labels: tuple[float, ...]) -> Split:
        return split_of([(np.ones((len(y), *shape), np.float32), np.array(y, np.float32)) for y in labels])

    fields = {"validation": split((5.0,), ()), "clients": ("a", "b"), **changes}
    return federation(split(train, train), split((1.0,), (2.0,)), **fields)


@pytest.mark.parametrize(
    ("target", "scale"),
    [(None, (1.0, 2.0)), (Target(name="y", mean=100.0, scale=10.0), (110.0, 20.0))],
)
def test_a_scale_is_in_the_users_units(target, scale) -> None:
    """Training labels -1 and 3 have mean 1 and deviation 2; in units of 10 from 100 on, 110 and 20."""
    draws = Draws(lambda draw: divided(target=target), 2)
    assert draws.scale == [scale, scale]
    assert [data.target for data in draws.data] == [None, None]
    assert draws.data[1].train.y.tolist() == [-1, 1, -1, 1]
    assert draws.data[1].validation.y.tolist() == [2]
    assert draws.data[1].test.y.tolist() == [0, 0.5]


def test_classes_are_not_scaled() -> None:
    draws = Draws(lambda draw: divided((0, 1), task="classification", classes=tuple("pqrstu")), 2)
    assert draws.scale == [(0, 1), (0, 1)]
    assert draws.first.train.y.tolist() == [0, 1, 0, 1]


def test_each_client_and_split_has_its_own_rows_of_the_pool() -> None:
    """A division has 4 training, 1 validation and 2 test rows, in this order."""
    draws = Draws(lambda draw: divided(), 3)
    assert (draws.count, draws.first is draws.data[0]) == (3, True)
    places = [draws.starts(draw, name).tolist() for draw in (0, 2) for name in SPLITS]
    assert places == [[0, 2], [4, 5], [5, 6], [14, 16], [18, 19], [19, 20]]
    assert [draws.owners(name).tolist() for name in SPLITS] == [[0, 0, 1, 1], [0], [0, 1]]
    assert draws.arrays(0, "test") is draws.arrays(0, "test")
    assert draws.ratio == 2 / 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": ("a", "c")}, "two divisions differ in clients, sizes or classes"),
        ({"train": (-1.0, 1.0, 3.0)}, "two divisions differ in clients, sizes or classes"),
        ({"validation": split_of([(np.ones((0, 1)), np.ones(0)), (np.ones((1, 1)), np.ones(1))])}, "two divisions"),
        ({"task": "classification", "classes": ("x", "y"), "train": (0, 1)}, "two divisions"),
        ({"shape": (2, 3)}, "differ in the shape of their features"),
    ],
)
def test_divisions_that_do_not_fit_together_are_refused(changes, message) -> None:
    """In one thing the last of three divisions is another than the first."""
    first = {"shape": (2, 2)} if "shape" in changes else {}
    if "task" in changes:
        first = {**changes, "classes": ("x", "z")}
    made_of = [divided(**first), divided(**first), divided(**{**first, **changes})]
    with pytest.raises((ConfigError, DataError), match=message):
        Draws(made_of.__getitem__, 3)


@pytest.mark.parametrize("shape", [(1,), (2, 2)])
def test_features_of_equal_shape_are_as_they_were(shape) -> None:
    assert Draws(lambda draw: divided(shape=shape), 2).first.train.x.tolist() == np.ones((4, *shape)).tolist()


def words(*categories: str) -> Category:
    return Category(name="c", categories=categories)


def of_columns(*columns: Column) -> FederatedData:
    """A division whose features are 1 to the number of features of these columns."""
    schema = Schema(client="client", label=Target(name="y"), columns=columns)
    data = divided(shape=(len(schema.features),), schema=schema)
    numbered = {name: replace(data.stored(name), x=np.cumsum(data.stored(name).x, axis=1)) for name in SPLITS}
    return replace(data, **numbered)


def test_features_of_a_schema_keep_their_places_where_a_division_lacks_some() -> None:
    """The union is z, z missing, the categories a, b, c, and v; a column that is nowhere used has no place."""
    made_of = [
        of_columns(
            Number(name="z", fill=0.0),
            words("a", "c"),
            LeftOut(name="e", why="it is empty"),
            Number(name="v", fill=0.0),
        ),
        of_columns(
            Number(name="z", fill=0.0, marks_missing=True),
            words("b", "c"),
            LeftOut(name="e", why="it is empty"),
            LeftOut(name="v", why="it is constant"),
        ),
    ]
    draws = Draws(made_of.__getitem__, 2)
    assert draws.data[0].test.x.tolist() == [[1, 0, 2, 0, 3, 4]] * 2
    assert draws.data[1].train.x.tolist() == [[1, 2, 0, 3, 4, 0]] * 4
    assert [data.categories for data in draws.data] == [((2, 3),)] * 2
    assert draws.first.schema is not None
    assert draws.first.schema.features == ("z", "z missing", "c=a", "c=b", "c=c", "v")


def test_features_of_one_name_have_their_own_places() -> None:
    """A column of numbers is called as a category's feature is."""
    number = Number(name="c=a", fill=0.0)
    made_of = [of_columns(words("a"), number), of_columns(words("a", "b"), number)]
    draws = Draws(made_of.__getitem__, 2)
    assert draws.data[0].test.x.tolist() == [[1, 0, 2]] * 2
    assert draws.data[1].test.x.tolist() == [[1, 2, 3]] * 2


def test_a_column_that_is_of_numbers_in_one_division_only_is_refused() -> None:
    made_of = [of_columns(words("1", "2")), of_columns(Number(name="c", fill=0.0))]
    with pytest.raises(DataError, match="column 'c' holds only numbers in some divisions and other words in some"):
        Draws(made_of.__getitem__, 2)


def test_features_are_held_once_by_the_divisions_and_the_device() -> None:
    """The pool's memory is that of each division's views; what `make` returned is free again."""
    made_of = []

    def make(draw: int) -> FederatedData:
        one = divided(shape=(16,))
        made_of.append([weakref.ref(one.stored(name).x) for name in SPLITS])
        return one

    draws = Draws(make, 3)
    assert all(held() is None for one in made_of for held in one)
    pool = np.asarray(draws.arrays(0, "train").x)
    assert pool.shape == (3 * 7, 16)
    for data in draws.data:
        assert all(np.shares_memory(data.stored(name).x, pool) for name in SPLITS)


def test_divisions_of_other_numbers_than_the_first_keep_theirs() -> None:
    """Features that the device would convert are converted for it; the divisions' stay as they are."""
    data = divided(shape=(2,))
    wide = replace(data, **{name: replace(data.stored(name), x=data.stored(name).x.astype("f8")) for name in SPLITS})
    for first, second in ((data, wide), (wide, data), (wide, wide)):
        draws = Draws([first, second].__getitem__, 2)
        assert draws.arrays(1, "test").x.dtype == np.float32
        assert np.asarray(draws.arrays(1, "test").x).tolist() == np.ones((14, 2)).tolist()
        assert draws.data[1].train.x.tolist() == np.ones((4, 2)).tolist()


def test_missing_features_without_a_schema_are_zeros_at_the_end() -> None:
    draws = Draws([divided(), divided(shape=(3,))].__getitem__, 2)
    assert draws.data[0].train.x.tolist() == [[1, 0, 0]] * 4
    assert draws.data[1].test.x.tolist() == [[1, 1, 1]] * 2


def test_classes_of_each_client_and_modalities_are_refused() -> None:
    labels = {"train": (0, 1), "task": "classification", "classes": ("0", "1")}
    own = divided(**labels)
    outputs = np.array([6, 6])
    numbered = {name: replace(own.stored(name), outputs=outputs) for name in SPLITS}
    with pytest.raises(ConfigError, match="clients number their own classes"):
        Draws(lambda draw: replace(own, **numbered), 2)
    with pytest.raises(ConfigError, match="data of one modality"):
        Draws(lambda draw: divided(modalities=Modalities(("x",), ((1,),))), 2)


@pytest.mark.parametrize(
    ("rows", "test", "enough"),
    [(1, 0.25, False), (2, 0.25, True), (3, 0.25, True), (20, 0.0, False), (20, 0.25, True)],
)
def test_each_client_needs_a_training_and_a_test_row(rows, test, enough) -> None:
    """Two rows are one for training and one for test; a validation row is none that a client must have."""
    sizes = (rows, 20)
    whole = split_of([(np.ones((n, 1), np.float32), np.arange(n, dtype=np.float32)) for n in sizes])
    none = Split(whole.x[:0], whole.y[:0], np.zeros(3, np.int64))
    data = federation(whole, none, clients=("few", "many"))
    if enough:
        made_anew = again(data, test=test)(1)
        assert int(made_anew.test.sizes[0]) == {2: 1, 3: 1, 20: 5}[rows]
        assert sorted(np.concatenate([made_anew.stored(name).client(0)[1] for name in SPLITS])) == [*range(rows)]
    else:
        with pytest.raises(DataError, match=f"client 'few' has {rows} rows, too few for training and test"):
            again(data, test=test)
