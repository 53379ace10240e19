"""Count the rows behind the data that a site sends, and compare them with its floors; in the trainer's process."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.parts.rows_used import RowsUsed
from idiolect.core.errors import DataError
from idiolect.data.federated import FederatedData
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.programs import Programs
from idiolect.metrics.base import Metric


def check_run(floors: Floors, data: FederatedData, algorithm: Algorithm) -> None:
    """Check a site's rows, and the rows of the steps and messages that a method makes of them.

    Args:
        floors: the site's.
        data: its own, of one client.
        algorithm: the run's method, with all its settings.

    Raises:
        DataError: for the first floor that is not kept.
    """
    site, rows, method = data.clients[0], data.train.count, algorithm.name
    labels = labels_of(data, "train")
    floors.check_data(site, rows, labels if data.task == "classification" else None, len(labels))
    for field in fields(algorithm):
        floors.check_setting(site, method, field.name, getattr(algorithm, field.name))
    if not algorithm.sends:
        return
    for held, used in rows_behind(data, algorithm):
        floors.check_data(site, held, None, floors.classes)
        floors.check_rows(site, method, held, used)


def check_message(floors: Floors, data: FederatedData, programs: Programs, message: object) -> None:
    """Check the shapes of a method's message.

    Args:
        floors: the site's.
        data: its own, of one client.
        programs: the run's compiled functions.
        message: the message, or its shapes.

    Raises:
        DataError: if a linear system can give rows back.
    """
    algorithm = programs.algorithm
    if floors.solvable or not algorithm.sends:
        return
    rank = algorithm.rank(programs.start, message)
    for _, used in rows_behind(data, algorithm):
        if used is not None:
            floors.check_rank(data.clients[0], algorithm.name, used.message, rank)


def rows_behind(data: FederatedData, algorithm: Algorithm) -> list[tuple[int, RowsUsed | None]]:
    """(training rows, the fewest of them that are used), for all rows, or for those of each modality.

    A mini-batch may hold fewer rows of a modality than of all; what is counted is the worst draw.
    """
    rows = data.train.count
    used = algorithm.rows_used(rows)
    if data.modalities is None or used is None:
        return [(rows, used)]
    x = data.stored("train").x
    held = [int((data.modalities.present(x, name) > 0).sum()) for name in data.modalities.names]

    def least(drawn: int, count: int) -> int:
        return count if drawn >= rows else max(drawn - (rows - count), min(drawn, 1))

    return [
        (count, used._replace(step=least(used.step, count), message=least(used.message, count)))
        for count in held
        if count > 0
    ]


def labels_of(data: FederatedData, split: str) -> dict[str, int]:
    """Label -> rows of a split with it."""
    values, counts = np.unique(data.stored(split).y, return_counts=True)
    return {str(value): int(count) for value, count in zip(values, counts, strict=True)}


def withheld(floors: Floors, data: FederatedData, splits: Sequence[str], metrics: Sequence[Metric]) -> dict[str, str]:
    """The splits whose scores stay at the site, and why. metrics: those that the evaluation measures.

    A metric by class sends the rows of each class, so it needs enough of each.
    """
    by_class = any(metric.by_class for metric in metrics)
    reasons = dict[str, str]()
    for split in splits:
        rows = data.split(split).count
        try:
            per_class = labels_of(data, split) if by_class and rows and data.task == "classification" else None
            floors.check_split(data.clients[0], split, rows, per_class)
        except DataError as error:
            reasons[split] = str(error)
    return reasons
