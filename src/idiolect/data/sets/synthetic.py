"""Synthetic(alpha, beta): clients whose models differ (alpha) and whose inputs differ (beta).

T. Li et al., "Federated Optimization in Heterogeneous Networks", MLSys 2020, sec. 5.1. Sizes and draws are those
of the code published with pFedMe (NeurIPS 2020), which uses numpy's legacy generator.
"""

import numpy as np

from idiolect.core.errors import require
from idiolect.core.memory import check_fits
from idiolect.core.settings import MOST
from idiolect.data.divide.division import check_fractions, divide
from idiolect.data.federated import FederatedData
from idiolect.data.partition import apply_partition

FEATURES = 60
CLASSES = 10


def check_spread(alpha: float, beta: float) -> None:
    """Raise `ConfigError` if a standard deviation is negative."""
    require(alpha >= 0, f"alpha must not be negative, it is {alpha}")
    require(beta >= 0, f"beta must not be negative, it is {beta}")


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

    y = argmax(x W_i + b_i), x ~ N(v_i, diag(j^-1.2)), W_i, b_i ~ N(u_i, 1), u_i ~ N(0, alpha²),
    v_i ~ N(B_i, 1), B_i ~ N(0, beta²); client i has 5 (int(lognormal(4, 2)) + 50) samples.

    alpha, beta: standard deviations. max_size: cap on a client's samples, for demonstrations.
    """
    check_spread(alpha, beta)
    require(0 <= seed < 2**32, f"seed must lie between 0 and 2^32 - 1, it is {seed}")
    require(clients >= 1, f"clients must be at least 1, it is {clients}")
    check_fractions(test, validation)
    require(split_seed >= 0, f"split_seed must not be negative, it is {split_seed}")
    told = f"max_size must lie between 10 and {MOST:,}, it is {max_size}"
    require(max_size is None or 10 <= max_size <= MOST, told)
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

    partition = divide(
        np.split(np.arange(offsets[-1]), offsets[1:-1]),
        x,
        y,
        name="as-generated",
        seed=seed,
        test=test,
        validation=validation,
        split_seed=split_seed,
        notes=notes,
    )
    return apply_partition(
        partition,
        x,
        y,
        name=f"synthetic({alpha:g}, {beta:g})",
        task="classification",
        classes=[str(label) for label in range(CLASSES)],
        provenance={
            "source": "synthetic",
            "arguments": {
                "alpha": alpha,
                "beta": beta,
                "clients": clients,
                "seed": seed,
                "test": test,
                "validation": validation,
                "split_seed": split_seed,
                "max_size": max_size,
            },
            "normalisation": {"name": "none", "fitted_on": "nothing"},
        },
    )
