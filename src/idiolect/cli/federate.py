"""The command federate: an experiment between processes, each with its own samples alone."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.federation import experiment_of, recorded, shown
from idiolect.cli.options import DataDir, Json, MLflowTo, Out, Settings, TensorBoardTo, assignments
from idiolect.cli.outputs import FEDERATED, check_output, inputs_of
from idiolect.cli.stopping import stoppable, this_command
from idiolect.deploy.nvflare.local_federation import run_here
from idiolect.deploy.this_machine import divided, forget_samples, prepare, run_quick
from idiolect.report.trackers.tracking import tracked, trackers_of
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.study.override import override
from idiolect.study.resolve import Workbench


def federate(
    experiment_file: Annotated[str, typer.Argument(metavar="EXPERIMENT.toml", help="A file, or a packaged name.")],
    sites: Annotated[int | None, typer.Option("--sites", min=1, help="Sites (default: one a client).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Without network and certificates.")] = False,
    deadline: Annotated[float, typer.Option("--deadline", min=0.1, help="Seconds of a round.")] = 60.0,
    quorum: Annotated[
        int | None, typer.Option("--quorum", min=1, help="Answers that a round needs (default: half of its cohort).")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A cell, a method, or cell/method.")] = None,
    set_: Settings = None,
    out: Out = None,
    data_dir: DataDir = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Run an experiment between real processes on this machine: a hub, and sites that keep their samples.

    Every message goes over mutual TLS; the same command again goes on after a stop.

    idiolect federate sites

    idiolect federate hospitals.toml --sites 4

    idiolect federate hospitals.toml --quick
    """
    if out is not None:
        check_output(out, Path(experiment_file), written=FEDERATED)
    experiment = override(experiment_of(experiment_file), assignments(set_)).only(tuple(only or ()))
    target = out or Path("runs") / f"{experiment.name.replace('/', '-')}-sites"
    check_output(target, Path(experiment_file), *inputs_of(experiment), written=FEDERATED)
    data = divided(experiment, Workbench(data_dir), sites)
    trackers = trackers_of(mlflow, tensorboard)
    use_compilation_cache()
    with stoppable(target), tracked(target, trackers):
        site_names = prepare(target, experiment, data, deadline=deadline, quorum=quorum)
        with shown(experiment, target) as display:
            if quick:
                run_quick(target, site_names, data)
                forget_samples(target)
            else:
                run_here(target, site_names, data, display.console.print)
        recorded(target, this_command(), as_json)
