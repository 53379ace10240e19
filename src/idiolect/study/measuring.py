"""Which metrics a cell's evaluations measure."""

from idiolect.core.errors import ConfigError
from idiolect.data.federated import FederatedData, TaskKind
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import measured, metric_of, names_in
from idiolect.study.experiment import Cell


def metrics_of(cell: Cell, task: TaskKind) -> tuple[Metric, ...]:
    """What is measured: the cell's metrics, those that always are, those of published values.

    The first is the one that selection, figures and `hurt` use.
    """
    published = [value.metric for method in cell.methods for value in method.published if value.metric]
    return measured(task, names_in(cell.metric), published)


def check_metrics(cell: Cell, data: FederatedData) -> None:
    """Refuse a metric of the other task, and one over all clients that the data cannot have.

    Raises `ConfigError`.
    """
    first = metrics_of(cell, data.task)[0]
    if first.by_class and data.own_labels:
        raise ConfigError(f"metric '{first.name}' compares classes that all clients share, but each client numbers "
                          "its own; put another one before it")  # fmt: skip
    for method in cell.methods:
        for value in method.published:
            if value.metric and metric_of(value.metric, data.task).by_class and data.own_labels:
                raise ConfigError(f"{method.title}: a published {value.metric} is compared on classes that all "
                                  "clients share; these data have none, so leave metric out")  # fmt: skip
