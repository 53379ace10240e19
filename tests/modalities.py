"""Small federations of several modalities: two short signals and a feature vector, some of them absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.client.client import Client
from idiolect.client.objective import Objective, objective_of
from idiolect.data.federated import FederatedData, Split
from idiolect.data.modalities import Modalities
from idiolect.models import build
from idiolect.runtime.simulate import Simulation
from tests.federations import client_of, federation, split_of

LAYOUT = Modalities(("acc", "gyro", "text"), ((8, 3), (8, 2), (5,)))
SIZES = (9, 4, 12, 6)
FLAT = {"encoder": "mlp", "dense": [], "modalities": ["acc", "text"]}  # a model that compiles fast
MODEL = {"name": "multimodal", "channels": [4], "features": 6, "decoder": [5], "dense": [7]}
CLASSES = ("a", "b", "c")


def samples(size: int, names: Sequence[str], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Labelled samples that have these modalities; each carries the label in its own way."""
    y = rng.integers(0, len(CLASSES), size).astype(np.int32)
    parts = {
        name: rng.normal(size=(size, *shape)) + y.reshape(-1, *(1,) * len(shape)) * np.linspace(-1, 1, shape[-1])
        for name, shape in zip(LAYOUT.names, LAYOUT.shapes, strict=True)
    }
    there = {name: np.full(size, name in names) for name in LAYOUT.names}
    return LAYOUT.pack(parts, there), y


def data_of(
    held: Sequence[Sequence[str]] | None = None, sizes: Sequence[int] = SIZES, seed: int = 0
) -> FederatedData:
    """Clients of these sizes and modalities; all of them by default. Test data are of the same modalities."""
    held = held or [LAYOUT.names] * len(sizes)
    rng = np.random.default_rng(seed)
    train, test = (split_of([samples(n, names, rng) for n, names in zip(sizes, held, strict=True)]) for _ in "ab")
    return federation(train, test, task="classification", classes=CLASSES, modalities=LAYOUT)


@dataclass(frozen=True)
class Problem:
    """A federation of modalities with its objective and initial parameters."""

    data: FederatedData
    model: eqx.Module
    objective: Objective
    params: Any

    def client(self, index: int, round: int = 0) -> Client:
        return client_of(self.data, self.objective, index, round)

    def simulation(self, algorithm: Any, **options: Any) -> Simulation:
        return Simulation(self.data, self.objective, self.params, algorithm, **options)


def problem(data: FederatedData | None = None, l2: float = 0.0, dtype: Any = np.float32, **model: Any) -> Problem:
    """The small model, with changes, on a federation."""
    data = data or data_of()
    built = build(MODEL | model, data.feature_shape, 3, "classification", jax.random.key(3), data.modalities)
    built = jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, built)
    return Problem(data, built, objective_of(built, "classification", l2), eqx.filter(built, eqx.is_inexact_array))


def without(x: Any, name: str) -> Any:
    """Packed samples that have lost a modality."""
    parts = {m: np.asarray(LAYOUT.part(x, m)) for m in LAYOUT.names}
    there = {m: np.asarray(LAYOUT.present(x, m)) * (m != name) > 0 for m in LAYOUT.names}
    return LAYOUT.pack(parts, there)


@eqx.filter_jit
def value_and_slope(objective: Objective, params: Any, batch: Any) -> tuple[Any, Any]:
    """The objective on a batch, and its gradient."""
    return jax.value_and_grad(objective.loss)(params, batch)


def changed(split: Split, change: Any) -> Split:
    """The split with other samples: change(x) on a copy."""
    x = np.array(split.x)
    change(x)
    return Split(x, split.y, split.offsets, split.outputs)


def close(a: Any, b: Any, **tolerance: float) -> None:
    """Two trees of the same numbers, but for rounding."""
    leaves = zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    for one, other in leaves:
        np.testing.assert_allclose(jnp.asarray(one), jnp.asarray(other), **{"rtol": 1e-5, "atol": 1e-6} | tolerance)
