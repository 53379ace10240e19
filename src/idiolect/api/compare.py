"""`compare`: several methods on the same federation, cohorts and seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from rich.console import Console

from idiolect.api.arguments import Method, ModelSpec, check_data, check_model_argument, methods_named
from idiolect.data.federated import FederatedData
from idiolect.report.launch import launch
from idiolect.report.terminal import rich_table
from idiolect.report.view.from_store import part_of
from idiolect.study.analyse.outcomes import Line
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import raise_diverged
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
    model: ModelSpec,
    methods: Sequence[Method],
    *,
    rounds: int | Literal["auto"] = 100,
    rate: float | Literal["auto", "method"] = "method",
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
        methods: Each a name, {"name": "pfedme", "rate": 0.01, ...}, `idiolect.PFedMe(rate=0.01)`, or a class, also
            your own. Two methods of one class have labels with their settings.
        rounds: "auto": until the validation loss stops falling, at most 200.
        rate: Of methods that set none: "auto" by the curvature of the training loss, a number, or each "method"'s.
        select: By default best-validation where rounds is "auto", else last.
        metric: The metric of selection, figures and `hurt`, accuracy or mse by default; further metrics, separated by
            commas, are only measured.
        out: A folder for the report, figures and every client's model; without it nothing is written.
    """
    check_data(data)
    check_model_argument(model)
    named = methods_named(methods)
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
    if out is not None:
        results = launch(experiment, out, command="idiolect.compare(...)", data=data, model=module, quiet=quiet)
        raise_diverged(results)
        return Comparison(results, Path(out))
    with TemporaryDirectory() as scratch:
        results = launch(experiment, scratch, data=data, model=module, quiet=quiet, save_models="none", figures=False)
        results.store.to_memory()  # the folder is deleted
        raise_diverged(results)
        return Comparison(results, None)
