"""Numbers as a reader wants them: per cent, sensible digits, and a dash for what there is not."""

import math

from idiolect.data.federated import TaskKind
from idiolect.study.published import Published
from idiolect.study.summary import OverSeeds, shown_unit

MISSING = "—"


def number(value: float, task: TaskKind) -> str:
    """A score: accuracy, a fraction, as per cent with two decimals; mse with four significant digits."""
    return _shown(100 * value if task == "classification" else value, 0.0, task)[0]


def score(value: OverSeeds, task: TaskKind) -> str:
    """A score over seeds, "95.62 ± 0.04"; without ± for a single seed, a dash for none."""
    unit = shown_unit(task)
    return _with_std(unit * value.mean, unit * value.std, task)


def value(value: float) -> str:
    """Any number with four significant digits."""
    return MISSING if math.isnan(value) else f"{value:.4g}"


def score_axis(task: TaskKind) -> str:
    """What an axis of test scores is called."""
    return "test accuracy, %" if task == "classification" else "test mse"


def published(value: Published | None, task: TaskKind) -> str:
    """A published value with its standard deviation, in the units in which it was published; "F1" before macro-F1."""
    if value is None:
        return MISSING
    shown = _with_std(value.value, math.nan if value.std is None else value.std, task)
    return f"F1 {shown}" if value.metric == "macro-f1" else shown


def difference(value: float | None, task: TaskKind) -> str:
    """Measured minus published, with its sign."""
    if value is None or math.isnan(value):
        return MISSING
    return ("-" if value < 0 else "+") + _shown(abs(value), 0.0, task)[0]


def share(value: OverSeeds | None) -> str:
    """A fraction as a whole per cent; "<1 %" and ">99 %" keep few from reading as none, and most as all."""
    if value is None or math.isnan(value.mean):
        return MISSING
    whole = round(100 * value.mean)
    if whole == 0 and value.mean > 0:
        return "<1 %"
    return ">99 %" if whole == 100 and value.mean < 1 else f"{whole} %"


def seconds(value: OverSeeds) -> str:
    """Mean seconds, three digits or whole seconds."""
    if math.isnan(value.mean):
        return MISSING
    digits = 2 if value.mean < 9.995 else 1 if value.mean < 99.95 else 0
    return f"{value.mean:.{digits}f}"


def _with_std(mean: float, std: float, task: TaskKind) -> str:
    shown, spread = _shown(mean, std, task)
    return shown if math.isnan(mean) or math.isnan(std) else f"{shown} ± {spread}"


def _shown(value: float, std: float, task: TaskKind) -> tuple[str, str]:
    """A number, and its standard deviation to the same decimal place."""
    if math.isnan(value):
        return MISSING, MISSING
    if task == "classification" or math.isinf(value):
        return f"{value:.2f}", f"{std:.2f}"
    exponent = int(f"{value:.3e}".partition("e")[2])
    if not -4 <= exponent < 6:
        return f"{value:.3e}", f"{std:.1e}"
    decimals = max(0, 3 - exponent)
    return f"{value:.{decimals}f}", f"{std:.{decimals}f}"
