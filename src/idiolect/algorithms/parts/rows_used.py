"""How many of a client's rows enter a step and a message: what a site compares with its floors before it computes.

Every method answers `Algorithm.rows_used`. The answer needs only the method's settings and the number of rows.
"""

from typing import Any, NamedTuple

import jax
from jaxtyping import PyTree


class RowsUsed(NamedTuple):
    """The fewest training rows behind what one client sends in one round.

    step: rows of one gradient step, or of one sum. message: different rows of the whole message; with random draws
    the expected number, rounded down. cell: rows behind one number of the message, if a number can be a sum over
    fewer rows than a step, such as a bin of a histogram; None if it cannot.
    """

    step: int
    message: int
    cell: int | None = None


def whole(rows: int) -> RowsUsed:
    """Each number is a sum over all rows."""
    return RowsUsed(rows, rows)


def of_batches(rows: int, *, batch_size: int, steps: int, epochs: int = 0, order: str = "fresh") -> RowsUsed:
    """The rows used by mini-batch steps, see `Client.batch` and `LocalSteps`.

    In a fixed order ("cyclic") the last batch may be short: with 21 rows in batches of 20 it has one row.
    """
    if not steps and not epochs:
        return RowsUsed(0, 0)
    if batch_size == 0 or batch_size >= rows:
        return whole(rows)
    per_pass = -(-rows // batch_size)
    if epochs or (order != "fresh" and steps >= per_pass):
        return RowsUsed(batch_size, rows)  # all rows are in the message, so its short batch is not by itself
    if order == "fresh":
        return RowsUsed(batch_size, int(rows * (1 - (1 - batch_size / rows) ** steps) + 1e-9))
    if order == "epoch":
        return RowsUsed(batch_size, steps * batch_size)
    # "cyclic" continues in the next round, so that one round has the short batch at the end of the rows.
    short = rows % batch_size or batch_size
    return RowsUsed(short, (steps - 1) * batch_size + short)


def by_settings(method: Any, rows: int) -> RowsUsed | None:
    """The rows used by a method with the settings of mini-batches; None if it has no `batch_size`."""
    batch_size = getattr(method, "batch_size", None)
    if not isinstance(batch_size, int):
        return None
    return of_batches(
        rows,
        batch_size=batch_size,
        steps=getattr(method, "local_steps", 1),
        epochs=getattr(method, "epochs", 0),
        order=getattr(method, "batches", "fresh"),
    )


def widest_rank(message: PyTree) -> int:
    """The largest rank that a matrix of a message can have, of arrays or shapes.

    The update of a layer's weights is a sum over rows of (error of the output) x (input of the layer). If fewer rows
    than this rank are in the sum, the matrix says which space they span, and a linear system can give them back.
    """
    return max((min(leaf.shape) for leaf in jax.tree.leaves(message) if len(leaf.shape) == 2), default=0)
