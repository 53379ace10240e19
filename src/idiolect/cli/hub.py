"""The commands of a hub: create, run, show and stop it, and change its sites."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from idiolect.cli.hub_operation import forget, service
from idiolect.cli.kits import AdminKit, HubFolder, HubKit
from idiolect.cli.options import (
    Json,
    MLflowTo,
    Settings,
    TensorBoardTo,
    assignments,
    check_output,
    file_path,
)
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import console, print_json, print_outcome
from idiolect.core.errors import require
from idiolect.core.loading import loading

app = typer.Typer(no_args_is_help=True, help="The hub of a federation; it receives no rows.", rich_markup_mode="rich")

LAST = 5
"""Rounds of which the status names the missing sites."""


for command in (forget, service):
    app.command()(command)


@app.command()
def init(
    folder: HubFolder,
    experiment_file: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="A TOML file, or a packaged name.", show_default=False)
    ],
    sites: Annotated[
        str,
        typer.Option("--sites", metavar="SITES", help="The names of the sites' certificates, comma-separated."),
    ],
    schema: Annotated[
        Path | None,
        typer.Option("--schema", parser=file_path, metavar="FILE", help="The schema by which all sites encode."),
    ] = None,
    agree: Annotated[
        bool, typer.Option("--agree", help="The sites agree on a schema before the first round.")
    ] = False,
    deadline: Annotated[
        float, typer.Option("--deadline", min=0.1, metavar="SECONDS", help="Longest time of a round.")
    ] = 60.0,
    starting: Annotated[
        float,
        typer.Option("--starting", min=1, metavar="SECONDS", help="Longest time to load data and compile."),
    ] = 120.0,
    quorum: Annotated[
        int | None,
        typer.Option(
            "--quorum", min=1, metavar="N", help="Answers that a round needs (default: half of its cohort)."
        ),
    ] = None,
    set_: Settings = None,
    as_json: Json = False,
) -> None:
    """Make a hub's folder. The experiment's own data are not read: the sites have them.

    Examples:
    idiolect hub init study hospitals.toml --sites north,south,west --agree
    idiolect hub init study hospitals.toml --sites north,south --schema s.json

    Writes: hub.json and study.json in FOLDER; every site must approve study.json.
    """
    with loading():
        from idiolect.cli.federation import experiment_of
        from idiolect.deploy.hub.create import make_hub
        from idiolect.deploy.hub.plan import current_study, next_lines
        from idiolect.deploy.nvflare.kits import allow_list_lines
        from idiolect.study.spec.change import override
    check_output(folder / "hub.json", Path(experiment_file), *([] if schema is None else [schema]), option="FOLDER")
    require((schema is None) == agree, "name the sites' schema with --schema FILE, or let them agree with --agree")
    names = [name.strip() for name in sites.split(",")]
    experiment = override(experiment_of(experiment_file), assignments(set_))
    make_hub(folder, experiment, names, schema, deadline=deadline, starting=starting, quorum=quorum)
    study, _ = current_study(folder)
    allowed = list(allow_list_lines())
    lines = [
        f"hub: {folder / 'hub.json'}, sites: {', '.join(names)}",
        "the experiment's own data are not read: every site has its own",
        *next_lines(folder, study),
        "kits are hardened by 'idiolect hub run' and 'idiolect site init'; by hand, local/resources.json gets:",
        *(f"  {line}" for line in allowed),
        f"to start it: idiolect hub run {shlex.quote(str(folder))} --kit KIT --admin KIT",
    ]
    values = {"hub": str(folder / "hub.json"), "sites": names, "resources": allowed}
    print_outcome({**values, "study": study.id, "digest": study.digest}, lines, as_json)


@app.command()
def run(
    folder: HubFolder,
    kit: HubKit,
    admin: AdminKit,
    mlflow: MLflowTo = None,
    tensorboard: TensorBoardTo = None,
    as_json: Json = False,
) -> None:
    """Start the hub if it does not run, and train until the last round; the same command resumes after a stop.

    Examples:
    idiolect hub run study --kit kits/hub --admin kits/lead
    idiolect hub run study --kit kits/hub --admin kits/lead --tensorboard tracked

    Writes: the runs and, after the last round, report.html, report.md and CSV files in FOLDER.
    """
    with loading():
        from idiolect.cli.federation import recorded, shown
        from idiolect.deploy.hub.config import HubConfig
        from idiolect.deploy.hub.plan import change_lines, current_study
        from idiolect.deploy.hub.run import experiment_for
        from idiolect.deploy.nvflare.processes import terminable
        from idiolect.deploy.nvflare.supervisor import hub_kits, served, watch_of
        from idiolect.report.trackers.tracking import tracked, trackers_of
    config = HubConfig.load(folder)
    experiment, kits = experiment_for(config), hub_kits(kit, admin)
    with stoppable(folder), terminable(), tracked(folder, trackers_of(mlflow, tensorboard)):
        changes = change_lines(folder, *current_study(folder))  # hub.json may have been changed by hand
        with served(folder, kits, _say), shown(experiment, folder) as display:
            for line in changes:
                display.console.print(Text(line), soft_wrap=True)
            watch_of(folder, kits, display.console.print).run()
        recorded(folder, this_command(), as_json)


@app.command()
def status(folder: HubFolder, admin: AdminKit, as_json: Json = False) -> None:
    """Tell which sites are registered, whether a job runs, the rounds done, and who was missing and why.

    Examples:
    idiolect hub status study --admin kits/lead@example.org
    idiolect hub status study --admin kits/lead@example.org --json

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.hub.config import HubConfig
        from idiolect.deploy.hub.journal import Participation
        from idiolect.deploy.hub.run import progress
        from idiolect.deploy.nvflare.kits import read_kit, require_kind
        from idiolect.deploy.nvflare.session import session
    config = HubConfig.load(folder)
    done, total = progress(folder)
    kit = read_kit(admin)
    require_kind(kit, "admin")
    with session(kit) as opened:
        found = opened.status()
    here = {site: site in found.sites for site in config.present}
    last = list(Participation(folder).lines())[-LAST:]
    missing: list[dict[str, Any]] = [
        {"run": line["run"], "round": int(line["round"]) + 1, "missing": line["missing"]} for line in last
    ]
    values: dict[str, Any] = {"sites": here, "left": list(config.left), "jobs": list(found.running)}
    values |= {"rounds": done, "of": total, "last": missing, "agreed": config.kind is not None}
    if as_json:
        print_json(values)
        return
    print(f"sites: {', '.join(f'{s} ({_word(on)})' for s, on in here.items())}")
    print(f"jobs running: {', '.join(found.running) or 'none'}")
    print(f"rounds done: {done} of {total}")
    if config.kind is None:
        print("the sites have not agreed on a schema yet")
    for line in missing:
        for site, why in line["missing"].items():
            console().print(Text(f"{line['run']}, round {line['round']}: {site}: {why}"), soft_wrap=True)


def _word(registered: bool) -> str:
    return "registered" if registered else "not registered"


@app.command()
def stop(kit: HubKit, as_json: Json = False) -> None:
    """Stop the hub's process; 'idiolect hub run' resumes it.

    Examples:
    idiolect hub stop --kit kits/hub.example.org
    idiolect hub stop --kit kits/hub.example.org --json

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.nvflare.kits import read_kit, require_kind
        from idiolect.deploy.nvflare.processes import stop as stop_process
    own = read_kit(kit)
    require_kind(own, "server")
    stopped = stop_process(own)
    print_outcome({"stopped": stopped}, ["stopped" if stopped else "it did not run"], as_json)


@app.command()
def add(
    folder: HubFolder,
    site: Annotated[str, typer.Argument(metavar="SITE", help="The name in its certificate.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Let a site join, with the next job.

    Examples:
    idiolect hub add study east
    idiolect hub add study east --json

    Writes: hub.json and study.json in FOLDER; every site must approve the study again.
    """
    with loading():
        from idiolect.deploy.hub.create import add_site
        from idiolect.deploy.hub.plan import change_lines
    now = add_site(folder, site)
    lines = [
        f"site '{site}' joins with the next job: end 'idiolect hub run' with Ctrl-C and start it again",
        *change_lines(folder, now.study, now.differences),
    ]
    print_outcome({"added": site, "sites": list(now.config.present), "digest": now.study.digest}, lines, as_json)


@app.command()
def remove(
    folder: HubFolder,
    site: Annotated[str, typer.Argument(metavar="SITE", help="Its name.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Let a site leave for good: it is never called again.

    Examples:
    idiolect hub remove study east
    idiolect hub remove study east --json

    Writes: hub.json and study.json in FOLDER; every site must approve the study again.
    """
    with loading():
        from idiolect.deploy.hub.create import remove_site
        from idiolect.deploy.hub.plan import change_lines
    now = remove_site(folder, site)
    lines = [
        f"site '{site}' is not called from the next job on; its private state and models stay with it",
        *change_lines(folder, now.study, now.differences),
    ]
    print_outcome({"removed": site, "sites": list(now.config.present), "digest": now.study.digest}, lines, as_json)


def _say(line: str) -> None:
    """Print a line at once, also into a file."""
    print(line, flush=True)
