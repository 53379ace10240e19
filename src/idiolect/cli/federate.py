"""The command federate: an experiment between processes, each with only its own samples."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import (
    FEDERATED,
    DataDir,
    Json,
    MLflowTo,
    Only,
    Out,
    Settings,
    TensorBoardTo,
    assignments,
    check_output,
)
from idiolect.cli.stopping import stoppable, this_command
from idiolect.core.loading import loading


def federate(
    experiment_file: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="A TOML file, or a packaged name.", show_default=False)
    ],
    sites: Annotated[
        int | None, typer.Option("--sites", min=1, metavar="N", help="Sites (default: one per client).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run without network and certificates.")] = False,
    deadline: Annotated[
        float, typer.Option("--deadline", min=0.1, metavar="SECONDS", help="Longest time of a round.")
    ] = 60.0,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum", min=1, metavar="N", help="Answers that a round needs (default: half of its cohort)."
        ),
    ] = None,
    only: Only = None,
    set_: Settings = None,
    out: Out = None,
    data_dir: DataDir = None,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Run an experiment between real processes on this machine: a hub, and sites that keep their samples.

    Every message is sent over mutual TLS; the same command again resumes after a stop.

    Examples:
    idiolect federate sites --quick
    idiolect federate hospitals.toml --sites 4 -o study

    Writes: the folder of --out, by default runs/NAME-sites, with report.html, report.md, CSV files, and the models.
    """
    with loading():
        from idiolect.cli.federation import experiment_of, recorded, shown
        from idiolect.cli.inputs import inputs_of
        from idiolect.deploy.hub.config import HubConfig
        from idiolect.deploy.hub.monitor import Monitor
        from idiolect.deploy.hub.run import progress
        from idiolect.deploy.nvflare.local_federation import run_here
        from idiolect.deploy.this_machine import approval_line, divided, forget_samples, prepare, run_quick
        from idiolect.report.trackers.tracking import tracked, trackers_of
        from idiolect.runtime.compiled import use_compilation_cache
        from idiolect.study.run.resolve import Workbench
        from idiolect.study.spec.change import override
    if out is not None:
        check_output(out, Path(experiment_file), written=FEDERATED)
    experiment = override(experiment_of(experiment_file), assignments(set_), only or ())
    target = out or Path("runs") / f"{experiment.name.replace('/', '-')}-sites"
    check_output(target, Path(experiment_file), *inputs_of(experiment), written=FEDERATED)
    data = divided(experiment, Workbench(data_dir), sites)
    trackers = trackers_of(mlflow, tensorboard)
    use_compilation_cache()
    with stoppable(target), tracked(target, trackers):
        site_names = prepare(target, experiment, data, deadline=deadline, quorum=quorum)
        with shown(experiment, target) as display:
            display.console.print(approval_line(target), soft_wrap=True)
            monitor = Monitor(target, HubConfig.load(target), progress(target)[1], display.say)
            with monitor.watching():
                monitor.report(f"starting {len(site_names)} sites")
                if quick:
                    run_quick(target, site_names, data)
                    forget_samples(target)
                else:
                    run_here(target, site_names, data, monitor.report)
        recorded(target, this_command(), as_json)
