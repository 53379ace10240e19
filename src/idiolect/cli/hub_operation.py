"""The commands that keep a hub going for months: a service, and forgetting a site."""

import sys
from contextlib import closing
from typing import Annotated

import typer

from idiolect.cli.kits import AdminKit, HubFolder, HubKit, UnitFile, print_unit
from idiolect.cli.options import Json
from idiolect.cli.terminal import print_outcome
from idiolect.core.errors import require
from idiolect.core.loading import loading


def forget(
    site: Annotated[str, typer.Argument(metavar="SITE", help="Its name.", show_default=False)],
    folder: HubFolder,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start again also the runs that the site joined late.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without a question.")] = False,
    as_json: Json = False,
) -> None:
    """Forget a site: start its runs again without it, from their beginning or from before it joined.

    The cost is shown first. Afterwards nothing in FOLDER depends on the site's messages: checkpoints, scores and
    reports of the repeated rounds are removed; forgotten.jsonl keeps who took part in them.

    Examples:
    idiolect hub forget east study
    idiolect hub forget east study --yes

    Writes: hub.json, study.json and forgotten.jsonl in FOLDER.
    """
    with loading():
        from idiolect.deploy.events import EventLog
        from idiolect.deploy.hub.forget import forget as forget_site
        from idiolect.deploy.hub.forget import plan_of
        from idiolect.deploy.hub.plan import next_lines
        from idiolect.deploy.study import FILE, Study
    plan = plan_of(folder, site, from_beginning)
    cost = [
        f"{one.run}: from {f'round {one.to}' if one.to else 'its beginning'}, {one.rounds} rounds, "
        f"{one.seconds:,.0f} s" for one in plan.restarts
    ]  # fmt: skip
    lines = [*cost, f"to be repeated: {plan.rounds} rounds, which took {plan.seconds:,.0f} s"]
    lines += ["the sites agree on a schema anew: all runs begin again"] if plan.schema else []
    if not yes:
        print("\n".join(lines), file=sys.stderr if as_json else sys.stdout)
        require(sys.stdin.isatty(), "forgetting cannot be undone: repeat the command with --yes")
        require(typer.confirm(f"Forget site '{site}'? This cannot be undone"), "nothing was changed")
    forget_site(folder, plan)
    with closing(EventLog(folder, "hub forget")) as log:
        log.write("forgotten", f"site '{site}' is forgotten: {plan.rounds} rounds are repeated", site=site)
    study = Study.load(folder / FILE)
    done = [f"site '{site}' is forgotten; 'idiolect hub run' repeats the rounds", *next_lines(folder, study)]
    values = {
        "site": site,
        "digest": study.digest,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "schema": plan.schema,
    }
    values |= {"runs": {one.run: {"from": one.to, "rounds": one.rounds} for one in plan.restarts}}
    print_outcome(values, [*lines, *done] if yes else done, as_json)


def service(folder: HubFolder, kit: HubKit, admin: AdminKit, out: UnitFile = None, as_json: Json = False) -> None:
    """Make a unit file for systemd: the study continues when the machine starts, and after a failure.

    Examples:
    idiolect hub service study --kit kits/hub --admin kits/lead
    idiolect hub service study --kit kits/hub --admin kits/lead -o hub.service

    Writes: the file of --out.
    """
    with loading():
        from idiolect.deploy.hub.config import HubConfig
        from idiolect.deploy.nvflare.supervisor import hub_kits
        from idiolect.deploy.service import hub_unit
    HubConfig.load(folder)
    kits = hub_kits(kit, admin)
    print_unit(hub_unit(folder, kits.hub.folder, kits.lead.folder), out, as_json)
