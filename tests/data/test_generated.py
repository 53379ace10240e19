"""Splits whose samples are made when they are used."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from idiolect.algorithms.registry import build
from idiolect.core.errors import DataError
from idiolect.data.audit import audit_lines
from idiolect.data.federated import FederatedData
from idiolect.data.generated import GeneratedSplit, Maker
from idiolect.graphs.spec import graph_for


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
