"""Splits whose samples are made when they are used."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from idiolect.algorithms.registry import build
from idiolect.core.errors import ConfigError, DataError
from idiolect.data import federated
from idiolect.data.audit import audit_lines
from idiolect.data.federated import SPLITS, FederatedData, GeneratedSplit, Maker, Split
from idiolect.data.schema.columns import Category
from idiolect.data.schema.label import Target
from idiolect.data.schema.schema import Schema
from idiolect.graphs.registry import graph_for


class Counted(Maker):
    """Client i has i, i + step, i + 2 step, ... and labels 0, 1, 0, 1, ..."""

    step: float
    capacity: int = eqx.field(static=True, default=4)

    def samples(self, client_id: Array) -> tuple[Array, Array]:
        rows = jnp.arange(self.capacity)
        return (client_id + self.step * rows)[:, None] * jnp.ones(2), rows % 2


def federation(step: float = 0.5, sizes: tuple[int, ...] = (3, 1, 4)) -> FederatedData:
    split = GeneratedSplit(Counted(step), np.asarray(sizes))
    names = tuple(f"c{i}" for i in range(len(sizes)))
    return FederatedData("made", split, split, split, names, "classification", ("0", "1"))


def test_a_client_has_its_own_rows_and_no_more() -> None:
    split = federation().test
    x, y = split.client(2)
    np.testing.assert_array_equal(x, np.repeat([[2], [2.5], [3], [3.5]], 2, axis=1))
    np.testing.assert_array_equal(y, [0, 1, 0, 1])
    assert [len(split.client(i)[1]) for i in range(3)] == [3, 1, 4]
    assert (split.count, split.feature_shape) == (8, (2,))


def test_the_fingerprint_tells_what_is_made_apart() -> None:
    prints = {federation().fingerprint, federation(0.25).fingerprint, federation(sizes=(3, 1, 3)).fingerprint}
    assert len(prints) == 3
    assert federation().fingerprint in prints


def test_what_needs_all_samples_is_refused_in_one_line() -> None:
    data = federation()
    for action in (
        data.pooled,
        lambda: data.select(lambda _: True),
        lambda: data.train.x,
        lambda: data.train.y,
        lambda: data.train.owners,
        lambda: data.train.offsets,
        lambda: build({"name": "global"}).training_data(data),
        lambda: graph_for("by_labels", data),
    ):
        with pytest.raises(DataError, match="never stored together"):
            action()
    assert "Not audited" in audit_lines(data)[0]


def test_sizes_beyond_what_is_made_are_refused() -> None:
    with pytest.raises(DataError, match="from 0 to 4 samples"):
        federation(sizes=(5,))
    with pytest.raises(DataError, match="client 'c1' has no training samples"):
        federation(sizes=(1, 0))


SIZES = {"train": (2, 3, 1, 4), "validation": (0, 1, 2, 0), "test": (1, 2, 1, 3)}


def split_of(sizes: tuple[int, ...], start: int, **changes: Any) -> Split:
    """Sample k of all has the features (k, -k) and the label k mod 3."""
    rows = np.arange(start, start + sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Split(np.stack([rows, -rows], axis=1).astype("f4"), (rows % 3).astype("i4"), offsets, **changes)


def small_federation(**changes: Any) -> FederatedData:
    splits = {name: split_of(sizes, 100 * k) for k, (name, sizes) in enumerate(SIZES.items())}
    given = {
        "name": "small",
        "clients": ("a", "b", "c", "d"),
        "task": "classification",
        "classes": ("x", "y", "z"),
        "notes": ("note",),
        "provenance": {"source": "here"},
    }
    return FederatedData(**given | splits | changes)


DATA = small_federation()


def first(split: Split) -> list[list[int]]:
    """The first feature of every client's samples."""
    return [split.client(i)[0][:, 0].astype(int).tolist() for i in range(len(split.sizes))]


def test_a_client_owns_the_rows_between_its_offsets() -> None:
    split = DATA.train
    assert first(split) == [[0, 1], [2, 3, 4], [5], [6, 7, 8, 9]]
    assert split.client(1)[1].tolist() == [2, 0, 1]
    assert split.sizes.tolist() == [2, 3, 1, 4]
    assert split.starts.tolist() == [0, 2, 5, 6]
    assert split.owners.tolist() == [0, 0, 1, 1, 1, 2, 3, 3, 3, 3]
    assert (split.count, split.feature_shape) == (10, (2,))
    assert first(DATA.validation) == [[], [100], [101, 102], []]


@pytest.mark.parametrize(
    ("offsets", "labels", "message"),
    [
        ([0, 2, 5], 4, r"rise from 0 to the number of samples \(4\); they run 0\.\.5"),
        ([0, 2, 3], 4, r"rise from 0 .* they run 0\.\.3"),
        ([1, 2, 4], 4, r"they run 1\.\.4"),
        ([0, 3, 2, 4], 4, "offsets must rise"),
    ],
)
def test_a_split_whose_arrays_do_not_fit_is_refused(offsets: list[int], labels: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Split(np.zeros((labels, 2), "f4"), np.zeros(labels, "i4"), np.array(offsets))


def test_every_sample_has_features_and_a_label() -> None:
    split = replace(DATA.train)
    object.__setattr__(split, "x", split.x[:-1])  # the tests' checks of shapes let no such split be made
    with pytest.raises(DataError, match="9 feature rows but 10 labels"):
        split.__post_init__()


def test_own_labels_lie_below_the_clients_number_of_classes() -> None:
    labels, offsets = np.array([0, 1, 0, 2], "i4"), np.array([0, 2, 4])
    x = np.zeros((4, 2), "f4")
    assert Split(x, labels, offsets, np.array([2, 3])).outputs is not None
    with pytest.raises(DataError, match="client 1 has 2 classes but a label beyond them"):
        Split(x, labels, offsets, np.array([2, 2]))
    with pytest.raises(DataError, match="client 0 has 1 classes"):
        Split(x, labels, offsets, np.array([1, 2]))
    assert Split(x[:0], labels[:0], np.zeros(3, int), np.array([2, 2])).count == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": ("a", "b", "c")}, "small: 3 clients but the train split has 4"),
        ({"validation": split_of((1, 1), 0)}, "small: 4 clients but the validation split has 2"),
        ({"train": split_of((2, 3, 0, 4), 0)}, "client 'c' has no training samples; drop it or merge it"),
    ],
)
def test_every_client_has_training_and_test_samples(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        small_federation(**changes)


def test_a_federation_without_any_test_sample_is_for_training_alone() -> None:
    data = small_federation(test=split_of((0, 0, 0, 0), 0))
    assert (data.test.count, data.pooled().test.count, data.merged(2).num_clients) == (0, 0, 2)
    assert repr(data).startswith(
        "<FederatedData small: 4 clients, 10 train, 3 validation, 0 test samples; 2 features"
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", SPLITS)
def test_the_client_of_a_value_that_is_not_finite_is_named(name: str, value: float) -> None:
    split = DATA.stored(name)
    row = int(np.flatnonzero(split.owners == 1)[-1])
    x, y = split.x.copy(), split.y.astype("f4")
    x[row, 1] = value
    with pytest.raises(DataError, match=f"small: NaN or infinity in the {name} features of client 'b'"):
        small_federation(**{name: replace(split, x=x)})
    y[row] = value
    with pytest.raises(DataError, match=f"in the {name} labels of client 'b'"):
        small_federation(task="regression", classes=(), **{name: replace(split, y=y)})


def test_what_is_derived_from_the_fields() -> None:
    assert [DATA.split(name).count for name in SPLITS] == [10, 3, 7]
    assert DATA.split("test") is DATA.test is DATA.stored("test")
    assert (DATA.num_clients, DATA.num_outputs, DATA.feature_shape) == (4, 3, (2,))
    assert small_federation(task="regression").num_outputs == 1
    assert not DATA.own_labels
    assert small_federation(train=split_of(SIZES["train"], 0, outputs=np.full(4, 3))).own_labels
    with pytest.raises(ConfigError, match="unknown split 'tests'; did you mean 'test'"):
        DATA.split("tests")


SCHEMA = Schema(client="c", label=Target(name="y"), columns=(Category(name="k", categories=("a", "b")),))


def test_the_fingerprint_tells_every_number_and_name_and_nothing_else() -> None:
    assert small_federation().fingerprint == DATA.fingerprint
    assert small_federation(name="other", notes=(), provenance={}).fingerprint == DATA.fingerprint
    moved = DATA.train.x.copy()
    moved[3, 1] = np.nextafter(moved[3, 1], np.float32(np.inf))
    others = [
        small_federation(train=replace(DATA.train, x=moved)),
        small_federation(test=replace(DATA.test, y=DATA.test.y[::-1])),
        small_federation(validation=replace(DATA.validation, offsets=np.array([0, 1, 1, 3, 3]))),
        small_federation(validation=replace(DATA.validation, outputs=np.full(4, 3))),
        small_federation(clients=("a", "b", "c", "e")),
        small_federation(classes=("x", "y", "w")),
        small_federation(train=replace(DATA.train, y=DATA.train.y.astype("i8"))),
        small_federation(task="regression"),
        small_federation(schema=SCHEMA),
    ]
    assert len({DATA.fingerprint, *(other.fingerprint for other in others)}) == len(others) + 1


def test_the_pool_is_one_client_with_all_samples() -> None:
    pooled = DATA.pooled()
    assert pooled.clients == ("pooled",)
    assert (pooled.name, pooled.classes, pooled.notes) == (DATA.name, DATA.classes, DATA.notes)
    for name in SPLITS:
        assert pooled.split(name).offsets.tolist() == [0, DATA.split(name).count]
        np.testing.assert_array_equal(pooled.split(name).x, DATA.split(name).x)
        np.testing.assert_array_equal(pooled.split(name).y, DATA.split(name).y)


@pytest.mark.parametrize(
    ("count", "names", "trained"),
    [
        (1, ("a to d",), [[*range(10)]]),
        (2, ("a to b", "c to d"), [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]),
        (3, ("a", "b", "c to d"), [[0, 1], [2, 3, 4], [5, 6, 7, 8, 9]]),
        (4, ("a", "b", "c", "d"), [[0, 1], [2, 3, 4], [5], [6, 7, 8, 9]]),
    ],
)
def test_merging_joins_neighbours(count: int, names: tuple[str, ...], trained: list[list[int]]) -> None:
    merged = DATA.merged(count)
    assert merged.clients == names
    assert first(merged.train) == trained
    np.testing.assert_array_equal(merged.test.x, DATA.test.x)
    for bad in (0, 5):
        with pytest.raises(ConfigError, match=f"clients = {bad} must lie between 1 and 4"):
            DATA.merged(bad)


def test_clients_with_own_labels_are_not_merged() -> None:
    own = small_federation(**{name: split_of(SIZES[name], 0, outputs=np.full(4, 3)) for name in SPLITS})
    with pytest.raises(ConfigError, match="with the same classes for all"):
        own.merged(2)


def test_selecting_keeps_whole_clients() -> None:
    own = small_federation(**{name: split_of(SIZES[name], 0, outputs=np.arange(3, 7)) for name in SPLITS})
    chosen = own.select(lambda i: i in (1, 3))
    assert chosen.clients == ("b", "d")
    assert first(chosen.train) == [[2, 3, 4], [6, 7, 8, 9]]
    assert first(chosen.validation) == [[0], []]
    assert chosen.train.outputs.tolist() == [4, 6]
    assert chosen.train.client(1)[1].tolist() == own.train.client(3)[1].tolist()
    assert DATA.select(lambda i: True).fingerprint == DATA.fingerprint
    assert DATA.select(lambda i: True).train.outputs is None
    with pytest.raises(DataError, match="small: no client is left after the selection"):
        DATA.select(lambda i: False)


@pytest.mark.parametrize("row", [0, 6, 7, 19])
def test_the_first_row_that_is_not_finite_is_found_in_whatever_piece(monkeypatch, row):
    monkeypatch.setattr(federated, "_PIECE", 21)  # seven rows of three numbers
    values = np.zeros((20, 3), np.float32)
    assert federated.first_not_finite(values) is None
    values[row, 1], values[19, 2] = np.inf, np.nan
    assert federated.first_not_finite(values) == row
    assert federated.first_not_finite(np.zeros((0, 3), np.float32)) is None
    assert federated.first_not_finite(np.arange(3)) is None
