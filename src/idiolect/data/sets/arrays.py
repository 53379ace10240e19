"""Federated data from the arrays of each client."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Shaped

from idiolect.core.errors import DataError, kind_of
from idiolect.data.divide.division import divide, large_enough
from idiolect.data.encode.labels import as_labels, check_numbers, check_task, encode_labels, guess_task
from idiolect.data.federated import FederatedData
from idiolect.data.partition import apply_partition, pool_hash
from idiolect.data.schema.label import fit_target

Arrays = tuple[Shaped[np.ndarray, "m ..."], Shaped[np.ndarray, "m"]]


def from_arrays(
    clients: Mapping[str, tuple[Any, Any]],
    *,
    title: str = "arrays",
    task: str | None = None,
    classes: Sequence[str] = (),
    minimum: int | None = None,
    test: float = 0.25,
    validation: float = 0.1,
    split_seed: int = 0,
    scale_labels: bool = True,
) -> FederatedData:
    """Make federated data from your own arrays: a mapping from each client's name to its (features, labels).

    Features stay as they are, in single precision; a note reports lost digits.

    Args:
        task: By default integer (and text) labels are classes and float labels are regression targets.
        classes: The names of the labels 0, 1, ...; by default the classes are the sorted distinct labels.
        minimum: Drop clients with fewer samples than this, and say so in the notes.
        scale_labels: A regression's labels are scaled to mean 0 and deviation 1 of the training samples; scores and
            predictions are in the units before.
    """
    if not isinstance(clients, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DataError(
            f"{title}: clients must be a mapping {{name: (features, labels)}}, not {kind_of(clients)}; "
            "for a list of pairs write dict(enumerate(pairs))"
        )
    if not clients:
        raise DataError(f"{title}: there are no clients")
    arrays = {str(client): _check(f"{title}, client '{client}'", pair) for client, pair in clients.items()}
    if len(arrays) < len(clients):
        names = [str(client) for client in clients]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{title}: two clients have the name '{twice}' as text; give each client its own")
    kept, notes = large_enough({client: len(y) for client, (_, y) in arrays.items()}, minimum, title)
    arrays = {client: arrays[client] for client in kept}
    first = next(iter(arrays))
    for client, (features, _) in arrays.items():
        if features.shape[1:] != (expected := arrays[first][0].shape[1:]):
            raise DataError(
                f"{title}: client '{client}' has features of shape {features.shape[1:]}, "
                f"client '{first}' of shape {expected}"
            )
    wide = np.concatenate([features for features, _ in arrays.values()])
    x, lost = wide.astype(np.float32), lost_digits(wide)
    labels = np.concatenate([y for _, y in arrays.values()])
    kind = check_task(task) if task else guess_task(labels)
    y, names = encode_labels(labels, kind, title, classes)
    ends = np.cumsum([len(target) for _, target in arrays.values()])
    partition = divide(
        np.split(np.arange(ends[-1]), ends[:-1]),
        x,
        y,
        name="as-given",
        clients=list(arrays),
        test=test,
        validation=validation,
        split_seed=split_seed,
        notes=notes,
    )
    arguments = {
        "task": kind,
        "minimum": minimum,
        "test": test,
        "validation": validation,
        "split_seed": split_seed,
        "scale_labels": scale_labels,
    }
    pool, target = pool_hash(x, y), None
    if kind == "regression" and scale_labels:
        target = fit_target("label", labels[partition.train.index], "number")
        y = target.scaled(labels)
    return apply_partition(
        partition,
        x,
        y,
        name=title,
        task=kind,
        classes=names,
        pool=pool,
        notes=lost,
        target=target,
        provenance={
            "source": "arrays",
            "arguments": arguments,
            "normalisation": {"name": "as given", "fitted_on": "unknown"},
        },
    )


def _check(where: str, pair: Any) -> Arrays:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        what = f"{len(pair)} of them" if isinstance(pair, tuple | list) else kind_of(pair)
        raise DataError(f"{where}: a client has a pair (features, labels), not {what}")
    features, labels = pair
    try:
        x, y = np.asarray(features), as_labels(labels, where)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{where}: features must have one shape per sample ({error})") from error
    if x.dtype.kind not in "fiub":
        raise DataError(f"{where}: features must be numbers, they are {x.dtype}")
    if x.ndim < 2 or (len(x) and x.size == 0):
        raise DataError(f"{where}: features must have the shape (samples, ...), it is {x.shape}")
    if len(x) != len(y):
        raise DataError(f"{where}: {len(x)} feature rows but {len(y)} labels")
    if len(y) == 0:
        raise DataError(f"{where}: it has no samples; leave the client out")
    check_numbers(x, "features", where)
    return x, y


def lost_digits(x: Shaped[np.ndarray, "n ..."]) -> tuple[str, ...]:
    """A note if single precision changes a feature by more than a thousandth of its deviation."""
    if x.dtype.kind == "b" or x.dtype.itemsize < 4 or x.dtype == np.float32:
        return ()
    flat = x.reshape(len(x), -1).astype(np.float64)
    error = np.abs(flat - flat.astype(np.float32)).max(axis=0)
    lost = np.flatnonzero(error > 1e-3 * flat.std(axis=0))
    lost = lost[(error[lost] > 0) & (np.ptp(flat[:, lost], axis=0) > 0)]  # a constant distinguishes nothing
    if len(lost) == 0:
        return ()
    return (
        f"{len(lost)} features lose digits in single precision, the first is number {lost[0]} (values around "
        f"{np.abs(flat[:, lost[0]]).mean():g}, deviation {flat[:, lost[0]].std():g}): subtract its mean first",
    )
