"""Several random divisions of one federation into training, validation and test rows, as one pool of samples."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from idiolect.client.samples import Arrays, total_of
from idiolect.core.errors import ConfigError, DataError, require
from idiolect.core.memory import aligned_empty
from idiolect.data.divide.division import counts, shuffled
from idiolect.data.federated import SPLITS, FederatedData, Split
from idiolect.data.schema.columns import Category, Column, Number
from idiolect.data.schema.schema import Schema

TEST, VALIDATION = 0.25, 0.2
Make = Callable[[int], FederatedData]
SMALL, LARGE = 2_000, 50_000
"""Rows below which more divisions are the default, and from which fewer are: the gap of many rows varies little."""


def divisions_of(rows: int) -> int:
    """The number of divisions where none is given: 8, 16 below `SMALL` rows, 5 from `LARGE` rows."""
    return 16 if rows < SMALL else 5 if rows >= LARGE else 8


class Draws:
    """`count` divisions of a federation, for draws 0, 1, ...; None: see `divisions_of`.

    data: of each division; labels of a regression have mean 0 and deviation 1 over the training rows of all clients.
    scale: (mean, deviation) of each division's labels, the deviation in the user's units; (0, 1) for classes.
    Clients have as many rows of each split in every division, so that one compiled program runs all divisions.

    Raises `ConfigError` where the advice is not possible (clients that number their own classes, generated or packed
    samples), `DataError` where the divisions differ in clients or sizes.
    """

    def __init__(self, make: Make, count: int | None) -> None:
        require(
            count is None or count >= 2, f"splits = {count} must be at least 2: an interval needs several divisions"
        )
        first = make(0)
        count = count or divisions_of(sum(first.split(name).count for name in SPLITS))
        features = _Features(first, count)
        made = [features.put(0, first)]
        first = made[0]
        made += [features.put(draw, make(draw)) for draw in range(1, count)]
        require(not first.own_labels, f"{first.name}: clients number their own classes; a shared model means nothing")
        require(first.modalities is None, f"{first.name}: advice is for data of one modality")
        require(first.num_clients >= 2, f"{first.name}: there is one client, nobody to federate with")
        require(
            sum(one.validation.count for one in made) > 0,
            f"{first.name}: no client has rows enough for a validation row, which settings are chosen on",
        )
        for one in made[1:]:
            same = all(np.array_equal(one.split(name).sizes, first.split(name).sizes) for name in SPLITS)
            if one.clients != first.clients or not same or one.classes != first.classes:
                raise DataError(f"{first.name}: two divisions differ in clients, sizes or classes")
        scaled = [_scaled(one) for one in _aligned(made)]
        self.scale = [scale for _, scale in scaled]
        self._pool, self.data = _pooled([data for data, _ in scaled], features)
        self._arrays: dict[tuple[int, str], Arrays] = {}

    @property
    def count(self) -> int:
        """Number of divisions S."""
        return len(self.data)

    @property
    def first(self) -> FederatedData:
        """The first division: what all have in common."""
        return self.data[0]

    def arrays(self, draw: int, name: str) -> Arrays:
        """One split of one division on the device, as rows of the pool of all."""
        if (draw, name) not in self._arrays:
            sizes, (x, y) = self.first.split(name).sizes, self._pool
            starts, own = (jnp.asarray(rows, jnp.int32) for rows in (self.starts(draw, name), sizes))
            self._arrays[draw, name] = Arrays(x, y, starts, own, total_of(sizes), jnp.asarray(len(y), jnp.int32))
        return self._arrays[draw, name]

    def starts(self, draw: int, name: str) -> np.ndarray:
        """(N,) each client's first row in the pool."""
        before = [self.first.split(other).count for other in SPLITS[: SPLITS.index(name)]]
        every = sum(self.first.split(other).count for other in SPLITS)
        return self.first.stored(name).starts + draw * every + sum(before)

    def owners(self, name: str) -> np.ndarray:
        """(n,) the client of each row of a split, in every division."""
        return self.first.stored(name).owners

    @property
    def ratio(self) -> float:
        """Test rows / training rows: how much the training sets of two divisions overlap, see `resampled`."""
        return self.first.test.count / (self.first.train.count + self.first.validation.count)


def again(data: FederatedData, test: float = TEST, validation: float = VALIDATION) -> Make:
    """Divide a federation's rows anew: all rows of a client, whatever their split was, are drawn from again.

    Raises `DataError` if a client has too few rows.
    """
    pools = [[data.stored(name).client(i) for name in SPLITS] for i in range(data.num_clients)]
    rows = [tuple(np.concatenate(parts) for parts in zip(*pool, strict=True)) for pool in pools]
    for name, (_, y) in zip(data.clients, rows, strict=True):
        if min(counts(len(y), test, validation)[::2]) < 1:
            raise DataError(f"client '{name}' has {len(y)} rows, too few for training and test; leave it out")

    def make(draw: int) -> FederatedData:
        drawn = [shuffled(np.arange(len(y)), i, draw, test, validation) for i, (_, y) in enumerate(rows)]
        splits = {
            name: _split([(x[part[k]], y[part[k]]) for (x, y), part in zip(rows, drawn, strict=True)])
            for k, name in enumerate(SPLITS)
        }
        return replace(data, **splits)

    return make


def _split(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> Split:
    offsets = np.concatenate([[0], np.cumsum([len(y) for _, y in parts])]).astype(np.int64)
    return Split(np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]), offsets)


class _Features:
    """One array for the features of all divisions, into which each is put as soon as it is made.

    So a large table is in memory once for each division, and once more only while one is made. A division can be put
    there if it has the features and sizes of the first, in the same type of numbers.
    """

    def __init__(self, first: FederatedData, count: int) -> None:
        self._kind, self._rows, self._held = _kind(first), sum(first.split(name).count for name in SPLITS), 0
        self._x = aligned_empty((count * self._rows, *first.feature_shape), first.stored("train").x.dtype)

    def put(self, draw: int, data: FederatedData) -> FederatedData:
        """The division with its features as views of this array, or as it is if it does not fit."""
        if _kind(data) != self._kind:
            return data
        at, splits = draw * self._rows, dict[str, Split]()
        for name in SPLITS:
            part = data.stored(name)
            view = self._x[at : at + part.count]
            view[:] = part.x
            splits[name], at = replace(part, x=view), at + part.count
        self._held += 1
        return replace(data, **splits)

    @property
    def all(self) -> Float[np.ndarray, "rows ..."] | None:
        """The features of all divisions, one after the other; None if some could not be put here."""
        return self._x if self._held * self._rows == len(self._x) else None


def _kind(data: FederatedData) -> object:
    """What divisions have in common whose features are in the same places of one array."""
    names = None if data.schema is None else _named_features(data.schema)
    return data.feature_shape, names, [(split.sizes.tolist(), split.x.dtype) for split in map(data.stored, SPLITS)]


def _pooled(every: Sequence[FederatedData], features: _Features) -> tuple[tuple[Array, Array], list[FederatedData]]:
    """The samples of all divisions on the device, (x, y), and the divisions with their features as views of them.

    On a processor the device's memory is the host's, so that the features are held once.
    """
    parts = [data.stored(name) for data in every for name in SPLITS]
    y = jnp.asarray(np.concatenate([part.y for part in parts]))
    if (together := features.all) is not None:
        return (jax.device_put(together, may_alias=True), y), [*every]
    x = jnp.asarray(np.concatenate([part.x for part in parts]))
    host, at, viewed = np.asarray(x), 0, list[FederatedData]()
    for data in every:
        splits: dict[str, Split] = {}
        for name in SPLITS:
            part = data.stored(name)
            if part.x.dtype == host.dtype:
                splits[name] = replace(part, x=host[at : at + part.count])
            at += part.count
        viewed.append(replace(data, **splits))
    return (x, y), viewed


def _aligned(made: Sequence[FederatedData]) -> list[FederatedData]:
    """The divisions with the same features in the same places.

    Zeros stand for those that only other divisions have: a category that none of its training rows holds. Without
    schemas, which say what features are, these zeros are at the end. Raises `DataError` where a column is one of
    numbers in some divisions and one of words in others, `ConfigError` where divisions differ in the shape of their
    features.
    """
    schemas = [one.schema for one in made if one.schema is not None]
    if len(schemas) < len(made):
        width = max(one.feature_shape[-1] for one in made)
        return [_placed(one, range(one.feature_shape[-1]), width) for one in made]
    names = [_named_features(schema) for schema in schemas]
    if all(each == names[0] for each in names):
        return [*made]
    columns = tuple(_united(made[0].name, kinds) for kinds in zip(*(each.columns for each in schemas), strict=True))
    common = schemas[0].model_copy(update={"columns": columns})
    places = {name: place for place, name in enumerate(_named_features(common))}
    return [
        _placed(replace(one, schema=common), [places[name] for name in mine], len(places))
        for one, mine in zip(made, names, strict=True)
    ]


def _named_features(schema: Schema) -> list[tuple[str, str]]:
    """(column, feature) of each feature: two columns may have features of one name."""
    return [(column.name, feature) for column in schema.columns for feature in column.features]


def _united(where: str, kinds: Sequence[Column]) -> Column:
    """A column's kind with all features that it has in some division. Its scale, if any, is that of one division."""
    words = [kind for kind in kinds if isinstance(kind, Category)]
    numbers = [kind for kind in kinds if isinstance(kind, Number)]
    if words and numbers:
        raise DataError(
            f"{where}: column '{words[0].name}' holds only numbers in some divisions and other words in some; name "
            "it in categorical=, or write what is missing as empty cells"
        )
    if words:
        every = {name for kind in words for name in kind.categories}
        return words[0].model_copy(update={"categories": tuple(sorted(every))})
    if not numbers:
        return kinds[0]
    marks, constant = any(kind.marks_missing for kind in numbers), all(kind.constant for kind in numbers)
    return numbers[0].model_copy(update={"marks_missing": marks, "constant": constant})


def _placed(data: FederatedData, places: Sequence[int], width: int) -> FederatedData:
    """The data with each feature at its place among so many."""
    if width == data.feature_shape[-1]:
        return data
    if len(data.feature_shape) > 1:
        raise ConfigError(f"{data.name}: divisions differ in the shape of their features")
    splits: dict[str, Split] = {}
    for name in SPLITS:
        split = data.stored(name)
        x = np.zeros((split.count, width), split.x.dtype)
        x[:, places] = split.x
        splits[name] = replace(split, x=x)
    return replace(data, **splits)


def _scaled(data: FederatedData) -> tuple[FederatedData, tuple[float, float]]:
    """Labels of a regression scaled by training rows, and their (mean, deviation) in the user's units."""
    if data.task == "classification":
        return data, (0.0, 1.0)
    labels = data.stored("train").y.astype(np.float64)
    mean, deviation = float(labels.mean()), float(labels.std())
    require(deviation > 0, f"{data.name}: all training labels are {mean:g}; there is nothing to learn")

    def scaled(y: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
        return ((y.astype(np.float64) - mean) / deviation).astype(np.float32)

    splits = {name: replace(data.stored(name), y=scaled(data.stored(name).y)) for name in SPLITS}
    in_units = mean if data.target is None else float(data.target.decode(np.array([mean]))[0])
    return replace(data, **splits, target=None), (in_units, deviation * data.label_scale)
