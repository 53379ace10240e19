"""Texts that both pages share: what the columns mean, what was set, how rounds were chosen."""

from collections.abc import Iterable
from inspect import cleandoc
from pathlib import Path
from typing import Any

from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.metrics.base import Metric
from idiolect.study.experiment import Cell, Method
from idiolect.study.results import Results

CHOSEN = {
    "last": "The models of the last round are shown.",
    "last-10": "Each client's mean over the last ten rounds is shown.",
    "best-validation": "For each run and named model the round with the best score on VALIDATION data is shown.",
    "best-test": "For each run and named model the BEST ROUND ON TEST DATA is shown, as in the published code. "
    "These numbers are optimistic: the test data chose them.",
}
COLUMNS = """\
- The first column of numbers, **accuracy** or **mse** unless another metric was chosen: over all test samples of all
  clients, mean over seeds. Methods are compared by it. **client mean**: every client counts once. **worst 10 %**: the
  mean of the worst tenth of the clients. Other metrics are over all test samples, too; a published value after a
  metric's name is compared with that metric.
- **±** is {spread}; a single seed has no ±. `table.csv` also has the standard
  deviation over seeds. What follows ± in a published value is what the paper gives.
{metrics}
- **hurt vs Local**: the share of clients that are worse off than with Local training on their own data alone.
  **hurt vs FedAvg**: the share worse off than with the plain global model, FedAvg's; **hurt vs own global** where
  FedAvg was not run: than with the method's own.
- **seconds**: training time of one run, without compilation.
- Bold: the best score in its table.
- "Against ..." (two seeds or more): the difference over all test samples, mean over the same seeds, with Student's
  95 % interval; **p** is corrected by Holm's method for the table. The deviation over seeds counts as at least one
  test sample, because a few seeds can have equal differences by chance. **better**, **worse**: clients beyond the
  noise of their test samples and of the seeds, Holm over all clients and models of the table. {split}
"""
ONE_SPLIT = "Every seed has the same split: this is the uncertainty\n  of training, not of the split."
NEW_SPLITS = "Each seed draws its own split, too."


def metric_texts(metrics: Iterable[Metric]) -> list[str]:
    """What each metric is, a sentence each, none twice."""
    return [cleandoc(metric.__doc__ or "").splitlines()[0] for metric in dict.fromkeys(metrics)]


def split_text(results: Results) -> str:
    """Whether the spread over seeds is also that of the split."""
    return NEW_SPLITS if any(cell.new_splits for cell in results.experiment.cells) else ONE_SPLIT


def settings_of(cell: Cell) -> tuple[tuple[str, str], ...]:
    """A cell's settings as (label, text) pairs: its data, model and rounds, and each method's hyper-parameters."""
    cohort = "all clients" if cell.cohort is None else f"{cell.cohort:g} clients"
    sampling = "" if cell.sampling == "fixed" else f" ({cell.sampling} sampling, on average)"
    evaluated = "" if cell.eval_clients is None else f", on {cell.eval_clients:,} clients drawn once for all methods"
    return (
        ("data", _settings(cell.data)),
        ("model", _settings(cell.model)),
        (
            "",
            f"{cell.rounds} rounds, {cohort} a round{sampling}, evaluated every {cell.eval_every} rounds{evaluated}",
        ),
        *(_method(method) for method in cell.methods),
    )


def _method(method: Method) -> tuple[str, str]:
    label = method.title if method.title != method.name else ""
    return label, _settings({**hyperparameters(ALGORITHMS[method.name]), **method.spec})


def _settings(spec: dict[str, Any]) -> str:
    """Format a specification: its name, then its values; paths are cut to their last part."""
    pairs = ", ".join(f"{key} = {_public(value)}" for key, value in spec.items() if key not in ("name", "folder"))
    name = str(spec.get("name", ""))
    return f"{name} ({pairs})" if name and pairs else name or pairs


def _public(value: Any) -> Any:
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
