"""What a person should look at in a table before anything is trained on it."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Shaped

from idiolect.data.encode.labels import lopsided
from idiolect.data.schema.columns import Column, LeftOut, some
from idiolect.data.schema.leaks import repeated_columns

FEW_ROWS = 10


def suspicions_of(
    table: pd.DataFrame,
    features: list[str],
    label: str,
    owners: Shaped[np.ndarray, "n"],
    columns: Sequence[Column],
    telling: Sequence[str],
) -> list[str]:
    """Columns that tell the label, repeat another or identify a row; rows that are there twice.

    owners: each row's client. columns: what the feature columns mean. telling: those that tell every label.
    """
    found = [
        f"column '{name}' alone tells the label of every row: is it the label under another name?" for name in telling
    ]
    found += [f"column '{name}' repeats '{other}'" for name, other in repeated_columns(table, features)]
    left_out = [column for column in columns if isinstance(column, LeftOut)]
    found += [f"column '{column.name}' is {column.why}" for column in left_out if "identifier" in column.why]
    return found + _copies(table.loc[:, [*features, label]], owners)


def of_clients(rows: Mapping[str, int]) -> list[str]:
    """Clients with few rows, and a federation of one. rows: of each client."""
    small = [name for name, count in rows.items() if count < FEW_ROWS]
    found = [f"{len(small)} of {len(rows)} clients have fewer than {FEW_ROWS} rows: {some(small)}"] if small else []
    return found + (["there is a single client: nothing to federate"] if len(rows) == 1 else [])


def of_classes(
    y: Shaped[np.ndarray, "n"], classes: tuple[str, ...], counts: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Classes of which nearly all labels are, at all clients or at some. counts: each client's rows of each class."""
    found: list[str] = []
    if (most := lopsided(y, classes)) is not None:
        name, share = most
        found.append(
            f"{share:.1%} of the labels are '{name}': accuracy says little, compare by balanced-accuracy or auroc"
        )
    single = [name for name, held in counts.items() if sum(count > 0 for count in held.values()) == 1]
    if single:
        found.append(f"{len(single)} of {len(counts)} clients have one class only: {some(single)}")
    return found


def _copies(table: pd.DataFrame, owners: Shaped[np.ndarray, "n"]) -> list[str]:
    """Rows with equal features and label at several clients, and more than once at one.

    Rows of few columns with few values repeat by chance, so this speaks only where most rows are distinct.
    """
    if len(table) == 0:
        return []
    rows = table.astype(str)
    number = rows.groupby(list(rows.columns), sort=False, dropna=False).ngroup().to_numpy()
    if len(np.unique(number)) < 0.9 * len(number):
        return []
    held = np.unique(np.stack([number, np.unique(owners, return_inverse=True)[1]]), axis=1)
    clients = np.bincount(held[0])
    shared, repeated = int((clients[number] > 1).sum()), len(number) - held.shape[1]
    found = [f"{shared} rows stand at more than one client"] if shared else []
    return found + ([f"{repeated} rows repeat another row of their client"] if repeated else [])
