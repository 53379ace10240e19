"""The commands of a hub: create, run, show and stop it, and change its sites."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from idiolect.cli.hub_operation import forget, service
from idiolect.cli.kits import AdminKit, HubFolder, HubKit, Metrics
from idiolect.cli.options import (
    Json,
    MLflowTo,
    Settings,
    TensorBoardTo,
    assignments,
    check_output,
    file_path,
    folder_path,
)
from idiolect.cli.queries import describe, score
from idiolect.cli.renewal import InstallFile, RequestFile, renewed
from idiolect.cli.stopping import stoppable, this_command
from idiolect.cli.terminal import console, print_json, print_outcome
from idiolect.core.errors import ConfigError, require
from idiolect.core.loading import loading

app = typer.Typer(no_args_is_help=True, help="The hub of a federation; it receives no rows.", rich_markup_mode="rich")

for command in (score, describe):
    app.command()(command)

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
    metrics: Metrics = None,
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
        from idiolect.deploy.hub.monitor import Monitor
        from idiolect.deploy.hub.plan import change_lines, current_study
        from idiolect.deploy.hub.run import experiment_for, progress
        from idiolect.deploy.nvflare.kits import certificate
        from idiolect.deploy.nvflare.processes import running, terminable
        from idiolect.deploy.nvflare.revocation import enforce
        from idiolect.deploy.nvflare.supervisor import hub_kits, served, watch_of
        from idiolect.report.trackers.tracking import tracked, trackers_of
    config = HubConfig.load(folder)
    experiment, kits = experiment_for(config), hub_kits(kit, admin)
    own = {"hub": certificate(kits.hub).not_after, "lead": certificate(kits.lead).not_after}
    with stoppable(folder), terminable(), tracked(folder, trackers_of(mlflow, tensorboard)):
        changes = change_lines(folder, *current_study(folder))  # hub.json may have been changed by hand
        with shown(experiment, folder) as display:
            for line in changes:
                display.console.print(Text(line), soft_wrap=True)
            monitor = Monitor(
                folder, config, progress(folder)[1], display.say, own=own, pid=lambda: running(kits.hub)
            )
            with monitor.watching(metrics):
                monitor.report("starting the hub's process")
                enforce(folder, kits.hub, kits.lead)
                with served(folder, kits, monitor.report):
                    watch_of(folder, kits, monitor.report).run()
        recorded(folder, this_command(), as_json)


@app.command()
def status(
    folder: HubFolder,
    admin: Annotated[
        Path | None,
        typer.Option(
            "--admin", parser=folder_path, metavar="KIT", help="Ask the hub, too: the kit of who submits jobs."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the rounds done, who was missing and why, certificates, and what the hub waits for now.

    With --admin: also which sites are registered, and whether a job runs.

    Examples:
    idiolect hub status study --json
    idiolect hub status study --admin kits/lead@example.org

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.hub.config import HubConfig
        from idiolect.deploy.hub.journal import Participation
        from idiolect.deploy.hub.run import progress
        from idiolect.deploy.hub.status import Ledger, status_of
        from idiolect.deploy.nvflare.kits import certificate, read_kit, require_kind
        from idiolect.deploy.nvflare.session import session
    config = HubConfig.load(folder)
    total, own, registered, jobs = progress(folder)[1], {}, None, None
    if admin is not None:
        kit = read_kit(admin)
        require_kind(kit, "admin")
        own["lead"] = certificate(kit).not_after
        with session(kit) as opened:
            found = opened.status()
        registered, jobs = {site: site in found.sites for site in config.present}, list(found.running)
    values = status_of(folder, config, total, Ledger(folder), registered=registered, jobs=jobs, own=own)
    if as_json:
        print_json(values)
        return
    lines = [f"sites: {', '.join(_site(name, of) for name, of in values['sites'].items())}"]
    lines += [] if jobs is None else [f"jobs running: {', '.join(jobs) or 'none'}"]
    lines += [f"rounds done: {values['rounds']['done']} of {total}"]
    lines += [] if values["agreed"] else ["the sites have not agreed on a schema yet"]
    lines += [
        f"certificate of {who}: {of['days']:.0f} days left" + (", renew it" if of["warn"] else "")
        for who, of in values["certificates"].items()
    ]
    if (waits := values["now"]) is not None:
        lines += [f"waiting for {', '.join(waits['sites'])} since {waits['time'][:19]} UTC: {waits['task']}"]
    for line in list(Participation(folder).lines())[-LAST:]:
        where = f"{line['run']}, round {line['round'] + 1}"
        lines += [f"{where}: {site}: {why}" for site, why in line["missing"].items()]
    for line in lines:
        console().print(Text(line), soft_wrap=True)


def _site(name: str, of: dict[str, Any]) -> str:
    """A site with what there is to say of it."""
    words = {"left": of["left"], "revoked": of["revoked"], "registered": of["registered"] is True}
    words |= {"not registered": of["registered"] is False and not of["left"]}
    said = [word for word, holds in words.items() if holds]
    return f"{name} ({', '.join(said)})" if said else name


@app.command()
def revoke(
    folder: HubFolder,
    site: Annotated[str, typer.Argument(metavar="SITE", help="Its name.", show_default=False)],
    kit: HubKit,
    admin: AdminKit,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the audit.")] = "",
    as_json: Json = False,
) -> None:
    """Refuse a site's certificate from now on: it cannot connect, and a hub that runs drops it at once.

    Examples:
    idiolect hub revoke study east --kit kits/hub --admin kits/lead
    idiolect hub revoke study east --kit hub --admin lead --reason "key lost"

    Writes: revoked.json in FOLDER, and the engine's list in the hub's kit.
    """
    with loading():
        from idiolect.deploy.events import EventLog
        from idiolect.deploy.hub.config import HubConfig
        from idiolect.deploy.hub.create import remove_site
        from idiolect.deploy.hub.revoked import revoke as add_to_list
        from idiolect.deploy.nvflare.revocation import enforce
        from idiolect.deploy.nvflare.supervisor import hub_kits
    kits = hub_kits(kit, admin)
    new = add_to_list(folder, site, reason)
    names = enforce(folder, kits.hub, kits.lead)
    if new:
        log = EventLog(folder, "hub revoke")
        log.write("revoked", f"the certificate of '{site}' was revoked: {reason or 'no reason given'}", site=site)
        log.close()
    lines = [f"the hub refuses the certificate of '{site}' from now on" if new else f"'{site}' was revoked before"]
    if site not in HubConfig.load(folder).left:  # else a new run would wait for it
        try:
            remove_site(folder, site)
        except ConfigError as error:
            lines.append(f"it is still a site of the study, so that no new run begins: {error}")
    print_outcome({"revoked": names, "new": new}, lines, as_json)


@app.command()
def audit(
    folder: HubFolder,
    out: Annotated[Path, typer.Option("--out", "-o", parser=folder_path, metavar="DIR", help="A new folder.")],
    site_logs: Annotated[
        Path | None,
        typer.Option(
            "--site-logs", parser=folder_path, metavar="DIR", help="Logs that sites handed over: SITE/sent.jsonl."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one folder for the data protection officer: who took part when, what was sent, terms, and refusals.

    With --site-logs, each message in a site's log is compared with what the hub received, by hash.

    Examples:
    idiolect hub audit study -o audit
    idiolect hub audit study -o audit --site-logs handed-over

    Writes: report.md, report.html, copies of the logs, and ro-crate-metadata.json in DIR.
    """
    with loading():
        from idiolect.deploy.hub.crate import write_audit
    found = write_audit(folder, out, site_logs)
    handed = [site for site, one in found.sites.items() if one.handed]
    equal, differ = sum(one.equal for one in found.sites.values()), len(found.differences)
    compared = f"logs compared of {', '.join(handed)}: {equal:,} messages are equal, {differ:,} differ"
    lines = [f"audit: {out / 'report.md'}", compared if handed else "no site has handed over its log"]
    value = {"audit": str(out), "compared": handed, "equal": equal, "differences": differ}
    print_outcome(value, lines, as_json)


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
    """Let a site leave the study for good; its number stays, and it is not called from the next job on.

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
        "its certificate stays valid, also for other studies of this hub: 'idiolect hub revoke' ends that",
        *change_lines(folder, now.study, now.differences),
    ]
    print_outcome({"removed": site, "sites": list(now.config.present), "digest": now.study.digest}, lines, as_json)


@app.command()
def renew(
    kit_folder: Annotated[
        Path,
        typer.Argument(parser=folder_path, metavar="KIT", help="The hub's kit, or the lead's.", show_default=False),
    ],
    request: RequestFile = None,
    install: InstallFile = None,
    as_json: Json = False,
) -> None:
    """Renew the certificate of the hub or of the lead, before it expires; the key stays in the kit.

    First --request writes a file for the holder of the federation's root key; 'idiolect hub sign' makes a
    certificate of it, which --install puts into the kit.

    Examples:
    idiolect hub renew kits/hub --request hub.request
    idiolect hub renew kits/hub --install hub.crt

    Writes: the request, or the certificate in KIT; the old one stays next to it.
    """
    renewed(kit_folder, request, install, ("server", "admin"), as_json)


@app.command()
def sign(
    request: Annotated[Path, typer.Argument(parser=file_path, metavar="REQUEST", help="Of 'renew --request'.")],
    authority: Annotated[
        Path,
        typer.Option("--ca", parser=folder_path, metavar="DIR", help="The folder with rootCA.pem and rootCA.key."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", parser=file_path, metavar="FILE", help="The certificate.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--hub", parser=folder_path, metavar="FOLDER", help="The hub's folder; its revoked sites get none."
        ),
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, metavar="N", help="Days that it is valid.")] = 1095,
    as_json: Json = False,
) -> None:
    """Sign a renewed certificate with the root key, for the same name and the same key as the old one.

    Examples:
    idiolect hub sign north.request --ca ca -o north.crt
    idiolect hub sign north.request --ca ca -o north.crt --hub study --days 365

    Writes: the certificate.
    """
    with loading():
        from idiolect.deploy.hub.revoked import revoked_names
        from idiolect.deploy.nvflare.renewal import sign_request
    revoked = frozenset[str]() if folder is None else revoked_names(folder)
    check_output(out, request, option="-o")
    name, until = sign_request(request, authority, out, days, revoked)
    value = {"name": name, "certificate": str(out), "expires": until.isoformat()}
    print_outcome(value, [f"certificate of '{name}', valid until {until:%Y-%m-%d}: {out}"], as_json)
