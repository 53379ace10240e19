"""Launch an experiment for a command: its results are printed, Ctrl-C and a lost process end with what resumes it."""

import shlex
from pathlib import Path
from typing import Any

import jax

from idiolect.cli.inputs import inputs_of
from idiolect.cli.options import check_output
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import resume_command
from idiolect.core.errors import StoreError
from idiolect.report.launch import launch
from idiolect.report.trackers.tracking import tracked, trackers_of
from idiolect.runtime.distributed import speaks_of_a_loss
from idiolect.study.run.launch import raise_diverged
from idiolect.study.spec.experiment import Experiment


def execute(
    experiment: Experiment,
    out: Path,
    *,
    as_json: bool,
    mlflow: str | None = None,
    tensorboard: str | None = None,
    **options: Any,
) -> None:
    """Launch an experiment, print its results, and raise `DivergedError` if a run diverged.

    mlflow, tensorboard: where the runs are sent, too, while they are at work and when they have ended.
    """
    check_output(out, *inputs_of(experiment))
    options.setdefault("command", this_command())
    trackers = trackers_of(mlflow, tensorboard)
    sent = [f"--{name} {shlex.quote(to)}" for name, to in (("mlflow", mlflow), ("tensorboard", tensorboard)) if to]

    def goes_on() -> str:
        return " ".join([resume_command(out), *sent])

    try:
        with stoppable(out, goes_on), tracked(out, trackers):
            results = launch(experiment, out, **options)
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if not speaks_of_a_loss(error):
            raise
        reason = f"another process of this run was lost ({str(error).splitlines()[0][:200]})"
        raise StoreError(f"{reason}; resume, with any number of devices, with: {goes_on()}") from error
    from idiolect.cli.results import print_results  # here: the first round need not wait for what draws reports

    print_results(results, as_json, out, skip=1)
    raise_diverged(results)
