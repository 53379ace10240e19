"""FedMultimodal's shards of one person's samples, with the same draws as its published code.

(T. Feng et al., "FedMultimodal: A Benchmark for Multimodal Federated Learning", KDD 2023; github.com/usc-sail/
fed-multimodal, features/data_partitioning.)
"""

import numpy as np
from jaxtyping import Int, Shaped

from idiolect.core.errors import DataError
from idiolect.data.partition import Indices

SEED = 8
MINIMUM = 5
HELD = 5  # one in five samples is for development
_DRAWS = 1000


def development(keys: list[str], seed: int = SEED) -> tuple[Indices, Indices]:
    """(training, development): positions in `keys`; a fifth of them, rounded down, is for development.

    The published code sorts a person's samples by their keys as texts, '7/10' before '7/9', then shuffles them.
    """
    by_text = np.array(sorted(range(len(keys)), key=keys.__getitem__))
    # numpy's legacy generator, whose draws never change, reproduces the published split.
    order = np.random.RandomState(seed).permutation(len(keys))
    cut = len(keys) // HELD
    return by_text[order[cut:]], by_text[order[:cut]]


def dirichlet_shards(
    labels: Shaped[np.ndarray, "n"], count: int, alpha: float, *, seed: int = SEED, minimum: int = MINIMUM
) -> list[Indices]:
    """The positions of each shard's samples; all is redrawn until each of `count` shards has `minimum` samples.

    Each class is divided in proportions p ~ Dir(alpha, ..., alpha) among the shards with fewer than n / count
    samples. Raises `DataError` if no draw succeeds.
    """
    random = np.random.RandomState(seed)
    total = len(labels)
    for _ in range(_DRAWS):
        parts: list[list[Int[np.ndarray, "_"]]] = [[] for _ in range(count)]
        sizes = np.zeros(count, dtype=np.int64)
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            random.shuffle(rows)
            drawn = random.dirichlet(np.full(count, alpha)) * (sizes < total / count)
            # If every shard with a share is full, the last one gets the class, as in the published code.
            share = np.cumsum(drawn / drawn.sum()) if drawn.sum() > 0 else np.zeros(count)
            pieces = np.split(rows, (share * len(rows)).astype(np.int64)[:-1])
            for part, piece in zip(parts, pieces, strict=True):
                part.append(piece)
            sizes += [len(piece) for piece in pieces]
        if sizes.min() >= minimum:
            return [np.concatenate(part) for part in parts]
    raise DataError(
        f"no draw of {_DRAWS} gives each of {count} shards {minimum} of {total} samples; raise alpha ({alpha}) or "
        "lower the number of shards"
    )
