"""`advise`: whether clients should federate, and with what."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
from rich.console import Console
from rich.markdown import Markdown

from idiolect.api.arguments import Method, names_of
from idiolect.data.federated import FederatedData
from idiolect.data.sets.pool import table_kept
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.advice.advise import Advice, Baselines
from idiolect.study.advice.advise import advise as ask


def advise(
    data: FederatedData | Callable[[int], FederatedData],
    *,
    model: eqx.Module | Mapping[str, Any] | str | None = None,
    methods: Sequence[Method] | None = None,
    splits: int | None = None,
    rounds: int = 60,
    baselines: Baselines = "all",
    out: str | Path | None = None,
    quiet: bool = False,
) -> Advice:
    """Advise whether to federate: local training, a shared model, or a model per client; and who gains.

    Args:
        data: A federation, whose rows are divided anew, or a function that makes the division of a seed, such as
            `lambda seed: from_table(path, validation=0.2, split_seed=seed)`, so that features are scaled by each
            division's training rows.
        model: By default the linear model of the task, from zero.
        methods: Names or classes of methods, in addition to `local` and `fedavg`, which always run.
        splits: Number of random divisions; None: 8; 16 below 2,000 rows, 5 from 50,000.
        rounds: The largest number of rounds; validation data choose.
        baselines: Models without a federation: "all", "regressions" (without trees, which take long to grow) or
            "none". With "none", methods are compared with local training only, not with own regression.
        out: A folder for the page, tables and a figure; the same call resumes there if it was stopped.
        quiet: Do not print the page.

    Raises:
        ConfigError: For settings out of range and without scikit-learn.
        DataError: For data that cannot be divided.
        StoreError: If the folder cannot be written or holds another advice.
    """
    use_compilation_cache()
    folder = None if out is None else Path(out)
    names = None if methods is None else names_of(methods)
    with table_kept():
        advice = ask(data, model=model, methods=names, splits=splits, rounds=rounds, baselines=baselines, out=folder)
    if folder is not None:
        from idiolect.report.advice import write_advice  # here: it loads slowly, and most commands never need it
        from idiolect.report.page import write_folder

        write_advice(advice, folder)
        write_folder(folder)
    if not quiet:
        from idiolect.report.advice import page  # here: it loads slowly, and most commands never need it

        Console().print(Markdown(page(advice, figure=False)))
    return advice
