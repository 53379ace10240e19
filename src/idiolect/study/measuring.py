"""The metrics that a cell's evaluations measure."""

from idiolect.core.errors import ConfigError
from idiolect.data.federated import FederatedData, TaskKind
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import measured, metric_of, names_in
from idiolect.study.experiment import Cell
from idiolect.study.published import LOSS


def metrics_of(cell: Cell, task: TaskKind) -> tuple[Metric, ...]:
    """List the metrics to measure: the cell's, the task's standard ones, those of published values.

    Selection, figures and `hurt` use the first one. Raises `ConfigError` for a metric that is unknown or of the other
    task.
    """
    values = [value for method in cell.methods for value in method.published]
    published = [value.metric for value in values if value.metric not in ("", LOSS.name)]
    return measured(task, names_in(cell.metric), published)


def check_metrics(cell: Cell, data: FederatedData) -> None:
    """Raise `ConfigError` for a metric of the other task, or one that needs classes the clients do not share."""
    first = metrics_of(cell, data.task)[0]
    if first.by_class and data.own_labels:
        raise ConfigError(f"metric '{first.name}' compares classes that all clients share, but each client numbers "
                          "its own; put another one before it")  # fmt: skip
    for method in cell.methods:
        for value in method.published:
            named = value.metric not in ("", LOSS.name)
            if named and metric_of(value.metric, data.task).by_class and data.own_labels:
                raise ConfigError(f"{method.title}: a published {value.metric} is compared on classes that all "
                                  "clients share; these data have none, so leave metric out")  # fmt: skip
