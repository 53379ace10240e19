"""Own labels: each client numbers the classes that it holds from 0, independently of the others."""

from dataclasses import replace

import numpy as np

from idiolect.core.errors import DataError
from idiolect.data.federated import SPLITS, FederatedData, Split


def number_own_labels(data: FederatedData) -> FederatedData:
    """The same samples, where client i numbers its K_i classes 0..K_i - 1, in the order of `data.classes`.

    A client's classes are those of its training, validation and test samples together. Raises `DataError` for a
    regression and for data that are numbered so already.
    """
    if data.task != "classification" or data.own_labels:
        raise DataError(f"{data.name}: only classes that all clients number alike can be numbered by each client")
    held = np.zeros((data.num_clients, len(data.classes)), dtype=bool)
    for name in SPLITS:
        split = data.split(name)
        held[split.owners, split.y] = True
    number = np.cumsum(held, axis=1) - 1
    outputs = held.sum(axis=1)
    least, most = int(outputs.min()), int(outputs.max())
    notes = data.notes if held.all() else (*data.notes, _note(least, most))

    def numbered(split: Split) -> Split:
        return Split(split.x, number[split.owners, split.y].astype(np.int32), split.offsets, outputs)

    return replace(
        data,
        classes=tuple(str(k) for k in range(most)),
        notes=notes,
        own_classes=tuple(tuple(np.array(data.classes)[own].tolist()) for own in held),
        **{name: numbered(data.stored(name)) for name in SPLITS},
    )


def _note(least: int, most: int) -> str:
    count = f"{most}" if least == most else f"{least} to {most}"
    return f"each client numbers its {count} classes from 0: label k means another class at another client"
