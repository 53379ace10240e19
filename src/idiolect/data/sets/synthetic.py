"""Synthetic(alpha, beta): clients whose models differ (alpha) and whose inputs differ (beta).

T. Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, sec. 5.1. Sizes and draws of `synthetic`
are those of the code published with pFedMe (NeurIPS 2020), which uses numpy's legacy generator.
`synthetic_population` has any number of clients: samples are generated from a client's number when they are used.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from idiolect.core.errors import require
from idiolect.core.memory import check_fits
from idiolect.core.plugins import named
from idiolect.core.random import check_seed
from idiolect.core.settings import MOST
from idiolect.data.divide.division import check_fractions, counts, divide
from idiolect.data.federated import SPLITS, FederatedData, GeneratedSplit, Maker
from idiolect.data.partition import apply_partition

FEATURES = 60
CLASSES = 10


def check_spread(alpha: float, beta: float) -> None:
    """Raise `ConfigError` if a standard deviation is negative."""
    require(alpha >= 0, f"alpha must not be negative, it is {alpha}")
    require(beta >= 0, f"beta must not be negative, it is {beta}")


@named("synthetic", task="classification")
def synthetic(
    alpha: float = 0.5,
    beta: float = 0.5,
    clients: int = 100,
    seed: int = 0,
    *,
    test: float = 0.25,
    validation: float = 0.0,
    split_seed: int = 0,
    max_size: int | None = None,
) -> FederatedData:
    """Synthetic(alpha, beta): 60 features, 10 classes, each client with its own linear model and inputs.

    y = argmax(x W_i + b_i), x ~ N(v_i, diag(j^-1.2)), W_i, b_i ~ N(u_i, 1), u_i ~ N(0, alpha²), v_i ~ N(B_i, 1), B_i
    ~ N(0, beta²); client i has 5 (int(lognormal(4, 2)) + 50) samples.

    Args:
        alpha: The standard deviation of u_i: how much models differ.
        beta: The standard deviation of B_i: how much inputs differ.
        max_size: Cap on a client's samples, for demonstrations.
    """
    check_spread(alpha, beta)
    require(0 <= seed < 2**32, f"seed must lie between 0 and 2^32 - 1, it is {seed}")
    require(clients >= 1, f"clients must be at least 1, it is {clients}")
    check_fractions(test, validation)
    require(split_seed >= 0, f"split_seed must not be negative, it is {split_seed}")
    message = f"max_size must lie between 10 and {MOST:,}, it is {max_size}"
    require(max_size is None or 10 <= max_size <= MOST, message)
    fewest = 250 if max_size is None else min(250, max_size)
    check_fits(clients * fewest * (FEATURES + 1) * 4, f"{clients:,} clients; use fewer, or synthetic-population")
    # The order of the draws defines the data set: do not change it.
    random = np.random.RandomState(seed)
    sizes = (random.lognormal(4, 2, clients).astype(int) + 50) * 5
    notes: tuple[str, ...] = ()
    if max_size is not None:
        notes = (f"{(sizes > max_size).sum()} of {clients} clients are capped at max_size={max_size} samples",)
        sizes = np.minimum(sizes, max_size)
    model_means = random.normal(0, alpha, clients)
    input_means = random.normal(0, beta, clients)
    deviations = np.sqrt(np.arange(1, FEATURES + 1, dtype=np.float64) ** -1.2)
    centres = [random.normal(mean, 1, FEATURES) for mean in input_means]

    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x = np.empty((offsets[-1], FEATURES), dtype=np.float32)
    y = np.empty(offsets[-1], dtype=np.int32)
    for i in range(clients):
        weights = random.normal(model_means[i], 1, (FEATURES, CLASSES))
        bias = random.normal(model_means[i], 1, CLASSES)
        drawn = random.standard_normal((sizes[i], FEATURES)) * deviations + centres[i]
        rows = slice(offsets[i], offsets[i + 1])
        x[rows], y[rows] = drawn, np.argmax(drawn @ weights + bias, axis=1)

    arguments = {
        "alpha": alpha,
        "beta": beta,
        "clients": clients,
        "seed": seed,
        "test": test,
        "validation": validation,
        "split_seed": split_seed,
        "max_size": max_size,
    }
    return as_generated(
        "synthetic", arguments, x, y, offsets, name=f"synthetic({alpha:g}, {beta:g})", classes=CLASSES, notes=notes
    )


def as_generated(
    source: str,
    arguments: Mapping[str, Any],
    x: Float[np.ndarray, "pool ..."],
    y: Int[np.ndarray, "pool"],
    offsets: Int[np.ndarray, "edges"],
    *,
    name: str,
    classes: int,
    notes: Sequence[str] = (),
) -> FederatedData:
    """Generated samples as a federation: client i has the rows offsets[i] to offsets[i + 1], divided at random.

    source, arguments: the generator and all its arguments, with `seed`, `test`, `validation` and `split_seed`.
    """
    division = {key: arguments[key] for key in ("seed", "test", "validation", "split_seed")}
    groups = np.split(np.arange(offsets[-1]), offsets[1:-1])
    return apply_partition(
        divide(groups, x, y, name="as-generated", notes=notes, **division),
        x,
        y,
        name=name,
        task="classification",
        classes=[str(label) for label in range(classes)],
        provenance={
            "source": source,
            "arguments": dict(arguments),
            "normalisation": {"name": "none", "fitted_on": "nothing"},
        },
    )


_MODEL, _INPUTS, _SAMPLES = 0, 1, 2  # a client's streams; split k has the stream _SAMPLES + k


class SyntheticClient(Maker):
    """Generates one split of a client, see `synthetic_population`. seed: the key's data; split: index in SPLITS."""

    seed: UInt32[np.ndarray, "2"]
    alpha: float
    beta: float
    capacity: int = eqx.field(static=True)
    split: int = eqx.field(static=True)

    def samples(self, client_id: Int[Array, ""]) -> tuple[Float[Array, "capacity 60"], Int[Array, "capacity"]]:
        """x ~ N(v_i, diag(j^-1.2)), y = argmax(x W_i + b_i) for all `capacity` rows."""
        client_key = jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(self.seed)), client_id)

        def normal(stream: int, *shape: int) -> Float[Array, "..."]:
            return jax.random.normal(jax.random.fold_in(client_key, stream), shape)

        model = normal(_MODEL, 1 + (FEATURES + 1) * CLASSES)
        weights = (self.alpha * model[0] + model[1:]).reshape(FEATURES + 1, CLASSES)
        inputs = normal(_INPUTS, 1 + FEATURES)
        centre = self.beta * inputs[0] + inputs[1:]
        noise = normal(_SAMPLES + self.split, self.capacity, FEATURES)
        x = centre + noise * jnp.arange(1, FEATURES + 1) ** -0.6
        return x, jnp.argmax(x @ weights[:-1] + weights[-1], axis=1).astype(jnp.int32)


@named("synthetic-population", task="classification")
def synthetic_population(
    alpha: float = 0.5,
    beta: float = 0.5,
    clients: int = 1_000_000,
    seed: int = 0,
    *,
    scale: float = 0.4,
    max_size: int = 100,
    test: float = 0.25,
    validation: float = 0.0,
) -> FederatedData:
    """Synthetic(alpha, beta) for any number of clients, whose samples are generated when they are used.

    The distributions are those of `synthetic`: y = argmax(x W_i + b_i), x ~ N(v_i, diag(j^-1.2)), W_i, b_i ~
    N(u_i, 1), u_i ~ N(0, alpha²), v_i ~ N(B_i, 1), B_i ~ N(0, beta²). A client depends only on the seed and its
    number, not on the number of clients; its splits are independent draws.

    scale, max_size: client i has scale (int(lognormal(4, 2)) + 50) samples, rounded up and at most max_size.
    """
    check_spread(alpha, beta)
    check_seed(seed)
    require(1 <= clients < 2**31, f"clients must lie between 1 and 2^31 - 1, it is {clients}")
    require(scale > 0, f"scale must be greater than 0, it is {scale}")
    require(10 <= max_size <= 1_000_000, f"max_size must lie between 10 and 1,000,000, it is {max_size}")
    check_fractions(test, validation)
    check_fits(100 * clients, f"the names and sizes of {clients:,} clients; use fewer")
    drawn = np.random.Generator(np.random.PCG64(seed)).lognormal(4, 2, clients)
    sizes = np.minimum(np.ceil(scale * (np.floor(drawn) + 50)), max_size).astype(np.int64)
    divided = np.array([counts(size, test, validation) for size in range(max_size + 1)])  # split sizes by client size
    key = np.asarray(jax.random.key_data(jax.random.key(seed)))
    splits = {
        name: GeneratedSplit(
            SyntheticClient(
                seed=key, alpha=float(alpha), beta=float(beta), capacity=max(int(divided[-1, place]), 1), split=place
            ),
            divided[sizes, place].astype(np.int32),
        )
        for place, name in enumerate(SPLITS)
    }
    return FederatedData(
        name=f"synthetic-population({alpha:g}, {beta:g})",
        clients=tuple(f"client {number}" for number in range(clients)),
        task="classification",
        classes=tuple(str(label) for label in range(CLASSES)),
        notes=("samples are generated from the client's number whenever they are used; none is stored",),
        provenance={
            "source": "synthetic-population",
            "arguments": {
                "alpha": alpha,
                "beta": beta,
                "clients": clients,
                "seed": seed,
                "scale": scale,
                "max_size": max_size,
                "test": test,
                "validation": validation,
            },
            "normalisation": {"name": "none", "fitted_on": "nothing"},
        },
        train=splits["train"],
        validation=splits["validation"],
        test=splits["test"],
    )
