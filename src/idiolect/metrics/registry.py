"""The metrics by name, and which of them an evaluation measures.

A file of this folder with a named class is a metric; nothing else lists it.
"""

from collections.abc import MutableMapping, Sequence
from inspect import cleandoc

import idiolect.metrics
from idiolect.core.errors import ConfigError, unknown
from idiolect.core.plugins import Registry, named_classes
from idiolect.data.federated import TaskKind
from idiolect.metrics.base import Metric, OfSamples, OfSums


def _provided(name: str, metric: object) -> Metric:
    """A metric from another package: an instance, or a class that is made without arguments."""
    made = metric() if isinstance(metric, type) else metric
    if not isinstance(made, OfSums | OfSamples):
        raise ConfigError("it is neither an OfSums nor an OfSamples of idiolect.metrics.base")
    if made.name != name:
        raise ConfigError(f"the metric has the name {made.name!r}")
    return made


_OWN: dict[str, Metric] = {cls.name: cls() for cls in named_classes(idiolect.metrics, OfSums, OfSamples)}
METRICS: MutableMapping[str, Metric] = Registry("idiolect.metrics", _OWN, _provided)
ALWAYS: dict[TaskKind, tuple[str, ...]] = {"classification": ("accuracy", "macro-f1"), "regression": ("mse",)}
"""What every evaluation measures; the first one is what is compared where no other is chosen."""


def names_in(text: str) -> tuple[str, ...]:
    """The metrics in a text, separated by commas. Raises `ConfigError` on an unknown name, suggesting the nearest."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if text and not names:
        raise unknown("metric", text, METRICS)
    for name in names:
        if name not in METRICS:
            raise unknown("metric", name, METRICS)
    return names


def measured(task: TaskKind, chosen: Sequence[str] = (), also: Sequence[str] = ()) -> tuple[Metric, ...]:
    """The metrics of an evaluation, each once: the chosen ones, those that are always measured, others.

    The first is the one by which models are compared. Raises `ConfigError` for a name that is unknown or of the
    other task.
    """
    names = dict.fromkeys([*(chosen or ALWAYS[task][:1]), *ALWAYS[task], *also])
    return tuple(metric_of(name, task) for name in names)


def chosen_only(task: TaskKind, chosen: Sequence[str] = ()) -> tuple[Metric, ...]:
    """The chosen metrics and no others; without any, those that are always measured. Raises as `measured`."""
    return tuple(metric_of(name, task) for name in dict.fromkeys(chosen or ALWAYS[task]))


def metric_of(name: str, task: TaskKind) -> Metric:
    """A metric by its name. Raises `ConfigError` if it is unknown or of the other task."""
    fitting = [metric.name for metric in METRICS.values() if metric.task == task]
    if name not in METRICS:
        raise unknown("metric", name, fitting)
    if name not in fitting:
        raise ConfigError(f"metric '{name}' is for {METRICS[name].task}, but the data are for {task}: choose one of "
                          f"{', '.join(fitting)}")  # fmt: skip
    return METRICS[name]


def describe_metrics() -> dict[str, str]:
    """Every metric's name with the first line of its docstring."""
    return {
        name: f"{metric.task}: {cleandoc(metric.__doc__ or '').splitlines()[0]}" for name, metric in METRICS.items()
    }
