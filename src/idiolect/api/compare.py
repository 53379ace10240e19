"""`compare`: several methods on the same federation, cohorts and seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from rich.console import Console

from idiolect.api.arguments import Method, ModelSpec, automatic, check_data, check_model_argument, methods_named
from idiolect.data.federated import FederatedData
from idiolect.report.launch import launch
from idiolect.report.terminal import rich_table
from idiolect.report.view.from_store import part_of
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.results import Results
from idiolect.study.run.automatic import default_methods, default_model, is_own, with_metric
from idiolect.study.run.launch import raise_diverged
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import comparison_of, own_or_named


@dataclass(frozen=True)
class Comparison:
    """A finished comparison: one line for each method and named model."""

    results: Results
    folder: Path | None

    def __repr__(self) -> str:
        """One line: the methods and the data."""
        names = dict.fromkeys(line.method for line in self.lines)
        return f"<Comparison: {', '.join(names)} on {self.results.experiment.cells[0].id}; see show() and lines>"

    @property
    def lines(self) -> list[Line]:
        """The table's lines, with every number over seeds."""
        return self.results.lines

    def show(self) -> None:
        """Print the headline and the table."""
        for cell in self.results.experiment.cells:
            Console().print(rich_table(part_of(self.results, cell, clients=False)))


def compare(
    data: FederatedData,
    model: ModelSpec | None = None,
    methods: Sequence[Method] | None = None,
    *,
    rounds: int | Literal["auto"] | None = None,
    rate: float | Literal["auto", "method"] | None = None,
    cohort: float | None = None,
    sampling: Literal["fixed", "binomial"] = "fixed",
    seeds: int = 1,
    eval_every: int = 10,
    select: Literal["last", "last-10", "best-validation", ""] = "",
    metric: str = "",
    out: str | Path | None = None,
    quiet: bool = False,
) -> Comparison:
    """Compare methods on the same cohorts and seeds.

    Args:
        model: By default linear regression ("linear") or logistic regression ("mlr").
        methods: Each a name, {"name": "pfedme", "rate": 0.01, ...}, `idiolect.PFedMe(rate=0.01)`, or a class, also
            your own. Two methods of one class have labels with their settings. By default those of `idiolect
            compare`.
        rounds: "auto": until each method's validation loss stops falling, at most 200; the default on a table or
            arrays with validation rows. Elsewhere the default is 100.
        rate: Of methods that set none: "auto" by the curvature of the training loss, a number, or each "method"'s.
            The default is "auto" where rounds is, else "method".
        select: By default best-validation where rounds is "auto", else last.
        metric: The metric of selection, figures and `hurt`, accuracy or mse by default; further metrics, separated by
            commas, are only measured. Where rounds is "auto" and 95 % of the labels are of one class, the default is
            AUROC, or log-loss for three or more classes.
        out: A folder for the report, figures and every client's model; without it nothing is written.
    """
    check_data(data)
    rounds, rate = automatic(data, rounds, rate)
    model = default_model(data) if model is None else model
    check_model_argument(model)
    named = methods_named(default_methods(is_own(data)) if methods is None else methods)
    module, spec = own_or_named(model)
    experiment = comparison_of(
        data.name,
        {"name": "own"},
        spec,
        named,
        rounds=rounds,
        rate=rate,
        cohort=cohort,
        sampling=sampling,
        eval_every=eval_every,
        select=select,
        metric=metric,
        seeds=seeds,
    )
    if rounds == "auto":
        experiment = with_metric(experiment, Workbench(data=data, model=module))
    if out is not None:
        results = launch(experiment, out, command="idiolect.compare(...)", data=data, model=module, quiet=quiet)
        raise_diverged(results)
        return Comparison(results, Path(out))
    with TemporaryDirectory() as scratch:
        results = launch(experiment, scratch, data=data, model=module, quiet=quiet, save_models="none", figures=False)
        results.store.to_memory()  # the folder is deleted
        raise_diverged(results)
        return Comparison(results, None)
