"""The commands that keep a site going for months: stop, status, service, and what its administrator decides."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from idiolect.cli.combine import CellName, CombinationKind, RunSeed, print_made
from idiolect.cli.kits import KitFolder, StudyId, UnitFile, print_unit, site_kit
from idiolect.cli.options import Json
from idiolect.cli.terminal import console, print_json, print_outcome
from idiolect.core.errors import IdiolectError, require
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.deploy.nvflare.kits import Kit


def stop(kit_folder: KitFolder, as_json: Json = False) -> None:
    """Stop the site: 'idiolect site run' and all that it has started; nothing is lost.

    Examples:
    idiolect site stop north
    idiolect site stop north --json

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.nvflare.processes import stop as stop_processes
    stopped = stop_processes(site_kit(kit_folder))
    print_outcome({"stopped": stopped}, ["stopped" if stopped else "it did not run"], as_json)


def status(kit_folder: KitFolder, as_json: Json = False) -> None:
    """Show whether the site runs, its studies, the last round and refusal, and the days left of its certificate.

    Examples:
    idiolect site status north
    idiolect site status north --json

    Writes: nothing.
    """
    with loading():
        from idiolect.deploy.nvflare.processes import is_watched, running
        from idiolect.deploy.site.studies import studies_of
    kit = site_kit(kit_folder)
    studies, (days, problem) = studies_of(kit.site), _certificate(kit)
    values: dict[str, Any] = {"site": kit.name, "running": running(kit) is not None, "watched": is_watched(kit)}
    values |= {"certificate_days": days, "certificate_problem": problem, "studies": [asdict(one) for one in studies]}
    if as_json:
        print_json(values)
        return
    words = {(True, True): "runs", (True, False): "runs, but 'idiolect site run' does not: start it again"}
    words |= {(False, True): "starts", (False, False): "does not run"}
    lines = [f"site '{kit.name}' {words[values['running'], values['watched']]}"]
    lines.append(problem or f"its certificate is valid for {days} more days")
    for one in studies:
        runs = ", ".join(f"{run}: {rounds}" for run, rounds in one.runs.items())
        lines.append(f"study {one.id}{' (left)' if one.left else ''}: rounds {runs or 'none'}")
        if one.last is not None:
            lines.append(f"  last round: {one.last['run']}, round {one.last['round']}, {one.last['time'][:19]} UTC")
        if one.refusal is not None:
            lines.append(f"  last refusal: {one.refusal['time'][:19]} UTC, {one.refusal['error']}")
    for line in lines if studies else [*lines, "no hub has asked for a study yet"]:
        console().print(Text(line), soft_wrap=True)


def _certificate(kit: "Kit") -> tuple[int | None, str]:
    """(whole days until the certificate expires, what is wrong with it)."""
    from idiolect.deploy.nvflare.kits import certificate

    try:
        return (certificate(kit).not_after - datetime.now(UTC)).days, ""
    except IdiolectError as error:
        return None, str(error)


def accept_changes(kit_folder: KitFolder, study: StudyId, as_json: Json = False) -> None:
    """Let the site take part in a study with training rows that have changed since it joined.

    Examples:
    idiolect site accept-changes north heart-0a1b2c3d
    idiolect site accept-changes north heart-0a1b2c3d --json

    Writes: the study's rows.json in KIT.
    """
    with loading():
        from idiolect.deploy.site.studies import accept_changes as accept
    accept(site_kit(kit_folder).site, study)
    message = f"the site joins study '{study}' with the rows that it has at the next job"
    print_outcome({"study": study, "accepted": True}, [message], as_json)


def leave(
    kit_folder: KitFolder,
    study: StudyId,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Move them to this new folder.", show_default=False),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete them.")] = False,
    as_json: Json = False,
) -> None:
    """Leave a study for good, and move or delete the site's private states and models of it.

    What the hub has learned stays there until its administrator forgets the site: 'idiolect hub forget'.

    Examples:
    idiolect site leave north heart-0a1b2c3d --out kept
    idiolect site leave north heart-0a1b2c3d --delete

    Writes: the folder of --out; a mark in KIT that the site has left.
    """
    with loading():
        from idiolect.deploy.site.studies import leave as leave_study
    require(delete == (out is None), "say what becomes of the private states: either --out FOLDER or --delete")
    kit = site_kit(kit_folder)
    taken = leave_study(kit.site, study, out)
    word = "deleted" if out is None else f"moved to {out}"
    lines = [f"site '{kit.name}' has left study '{study}'", f"{word}: {', '.join(taken) or 'nothing was there'}"]
    lines.append("ask the hub's administrator to forget the site: idiolect hub forget")
    print_outcome({"study": study, "taken": taken, "to": None if out is None else str(out)}, lines, as_json)


def service(kit_folder: KitFolder, out: UnitFile = None, as_json: Json = False) -> None:
    """Make a unit file for systemd: the site starts with the machine, and again after a failure.

    Examples:
    idiolect site service kits/north
    idiolect site service kits/north -o idiolect-north.service

    Writes: the file of --out.
    """
    from idiolect.deploy.service import site_unit

    print_unit(site_unit(site_kit(kit_folder).folder), out, as_json)


def combine(
    kit_folder: KitFolder,
    kind: CombinationKind = "blend",
    study: Annotated[str, typer.Option("--study", metavar="STUDY", help="The study, if there are several.")] = "",
    cell: CellName = "",
    seed: RunSeed = None,
    as_json: Json = False,
) -> None:
    """Combine the site's models of several methods by its own validation rows; nothing is sent.

    Examples:
    idiolect site combine north
    idiolect site combine north --kind portfolio

    Writes: KIT/idiolect/models/STUDY/CELL__KIND__seedN/combined.json, by which 'idiolect predict' predicts.
    """
    with loading():
        from idiolect.deploy.site.combine import combine_here
        from idiolect.runtime.compiled import use_compilation_cache
        from idiolect.study.combine.combined import check_kind
    named = check_kind(kind)
    kit = site_kit(kit_folder)
    use_compilation_cache()
    print_made(combine_here(kit.site, named, study, cell, seed), as_json)
