"""Launch an experiment for a command: print its results, say how to go on when it was stopped."""

import shlex
import sys
from pathlib import Path
from typing import Any

import jax
import typer

from idiolect.cli.terminal import print_results, resume_command
from idiolect.core.errors import StoreError
from idiolect.report.launch import launch
from idiolect.runtime.distributed import speaks_of_a_loss
from idiolect.study.experiment import Experiment
from idiolect.study.launch import raise_diverged
from idiolect.study.store import DATABASE


def execute(experiment: Experiment, out: Path, *, as_json: bool, **options: Any) -> None:
    """Launch an experiment, print its results, and raise `DivergedError` if a run diverged."""
    options.setdefault("command", shlex.join(["idiolect", *sys.argv[1:]]))
    try:
        results = launch(experiment, out, **options)
    except KeyboardInterrupt:
        stored = (out / DATABASE).is_file()
        print(f"stopped; {f'go on with: {resume_command(out)}' if stored else 'nothing was kept'}", file=sys.stderr)
        raise typer.Exit(130) from None
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if not speaks_of_a_loss(error):
            raise
        reason = f"another process of this run was lost ({str(error).splitlines()[0][:200]})"
        raise StoreError(f"{reason}; go on, with any number of devices: {resume_command(out)}") from error
    print_results(results, as_json, out, told=1)
    raise_diverged(results)
