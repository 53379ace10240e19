"""`sweep`: try settings of methods, and choose each method's best on validation data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import equinox as eqx
import pandas as pd
from rich.console import Console

from idiolect.api.arguments import Method, check_data, check_model_argument, methods_named
from idiolect.core.errors import require
from idiolect.data.federated import FederatedData
from idiolect.study.run.resolve import Workbench
from idiolect.study.search.choose import Swept, Tried
from idiolect.study.search.launch import Search, launch_sweep
from idiolect.study.spec.experiment import comparison_of, own_or_named


@dataclass(frozen=True)
class SweepResult:
    """A finished sweep. swept: every setting with its scores, in the order in which it was tried."""

    swept: Swept
    folder: Path | None

    @property
    def best(self) -> Tried:
        """The setting with the best validation score, over all methods; `swept.chosen` has each method's.

        Raises `ConfigError` if every setting diverged.
        """
        require(len(self.swept.chosen) > 0, "every setting diverged; lower the learning rates")
        return self.swept.best

    def table(self) -> pd.DataFrame:
        """One row a setting: hyper-parameters, validation mean and std over seeds, rounds, whether chosen, test."""
        from idiolect.report.sweeps import frame  # here: it loads slowly, and most commands never need it

        return frame(self.swept)

    def show(self) -> None:
        """Print the table."""
        from idiolect.report.sweeps import rich_sweep  # here: it loads slowly, and most commands never need it

        Console().print(rich_sweep(self.swept))


def sweep(
    data: FederatedData,
    model: eqx.Module | Mapping[str, Any] | str,
    method: Method | Sequence[Method],
    *,
    space: Mapping[str, Any],
    seeds: int = 1,
    rounds: int = 100,
    cohort: float | None = None,
    sampling: Literal["fixed", "binomial"] = "fixed",
    eval_every: int = 10,
    search: Search = "grid",
    budget: int | None = None,
    eta: int = 3,
    folds: int = 5,
    batch: int | None = None,
    search_seed: int = 0,
    memory: int | None = None,
    block: int | None = None,
    metric: str = "",
    show_test: bool = False,
    out: str | Path | None = None,
) -> SweepResult:
    """Try settings of one or several methods on the same seeds; choose each method's best on validation data.

    Args:
        method: One or several, each a name, a specification, a method or its class, as in `compare`; what it sets is
            fixed.
        space: Hyper-parameter (or "model.l2") -> values, or a text as on the command line ("log(0.001,1,7)"); for a
            list of methods {method: space}.
        search: "grid"; "random": `budget` settings of each method; "halving": rungs of rounds, 1/eta of the settings
            kept at each; "cv": `folds` folds of each client's training samples; "optuna": `budget` settings of each
            method, proposed `batch` (8) at a time from the scores of earlier ones.
        memory: Bytes for the runs that run at once, by default IDIOLECT_MEMORY (GB) or a share of the machine's
            memory.
        block: Runs vmapped together.
        metric: The metric that chooses on validation data, accuracy or mse by default.
        show_test: Show test scores of all settings; they are not used for the choice.
        out: A folder from which a killed sweep resumes.

    Raises:
        ConfigError: For unknown settings or values out of range, before anything runs.
    """
    check_data(data)
    check_model_argument(model)
    several = isinstance(method, Sequence) and not isinstance(method, str)
    methods = methods_named(method if several else [method])
    names = [m if isinstance(m, str) else str(m.get("name")) for m in methods]
    module, spec = own_or_named(model)
    experiment = comparison_of(
        data.name,
        {"name": "own"},
        spec,
        methods,
        select="last",
        seeds=seeds,
        rounds=rounds,
        cohort=cohort,
        sampling=sampling,
        eval_every=eval_every,
        metric=metric,
    )
    options: dict[str, Any] = {"search": search, "budget": budget, "eta": eta, "folds": folds, "batch": batch}
    options |= {"search_seed": search_seed, "memory": memory, "block": block, "show_test": show_test}
    spaces: Mapping[str, Any] = space if several else {names[0]: space}
    bench = Workbench(data=data, model=module)
    if out is not None:
        return SweepResult(launch_sweep(experiment, spaces, bench, out, **options), Path(out))
    with TemporaryDirectory() as scratch:
        return SweepResult(launch_sweep(experiment, spaces, bench, scratch, **options), None)
