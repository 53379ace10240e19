"""The commands of a hub for queries: score one model at the sites, and describe their tables."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from idiolect.cli.options import Json, file_path, folder_path, names_in
from idiolect.cli.stopping import stoppable
from idiolect.cli.terminal import console, print_json, print_outcome
from idiolect.core.errors import ConfigError, require
from idiolect.core.loading import loading

if TYPE_CHECKING:
    from idiolect.deploy.query import DescribeStudy, ScoreStudy

Folder = Annotated[
    Path, typer.Argument(parser=folder_path, metavar="FOLDER", help="The hub's folder.", show_default=False)
]
Sites = Annotated[
    str, typer.Option("--sites", metavar="SITES", help="Ask these sites only, comma-separated (default: all).")
]
HubKit = Annotated[
    Path | None,
    typer.Option("--kit", parser=folder_path, metavar="KIT", help="The hub's kit; with it, the sites are asked."),
]
AdminKit = Annotated[
    Path | None,
    typer.Option("--admin", parser=folder_path, metavar="KIT", help="The kit of the person who submits jobs."),
]
SPLITS = ("train", "validation", "test")


def score(
    model: Annotated[
        Path, typer.Argument(parser=file_path, metavar="MODEL", help="A model file.", show_default=False)
    ],
    folder: Folder,
    sites: Sites = "",
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAMES", help="Metrics, comma-separated (default: as in a run).")
    ] = "",
    splits: Annotated[
        str, typer.Option("--splits", metavar="SPLITS", help="Rows to score: train, validation, test.")
    ] = "test",
    kit: HubKit = None,
    admin: AdminKit = None,
    as_json: Json = False,
) -> None:
    """Let approved sites score one model on their rows. Sites send sums; nothing is trained.

    The first call writes the query's file, for the sites to approve. With --kit and --admin, the same command asks
    the sites that have not answered yet, and prints the result.

    Examples:
    idiolect hub score m.safetensors study --metric accuracy
    idiolect hub score m.safetensors study --kit kits/hub --admin kits/lead

    Writes: queries/ID in FOLDER: study.json, and with --kit the sites' answers and result.json, .csv, .md.
    """
    with loading():
        from idiolect.deploy.hub.query import new_score
    chosen = names_in(splits)
    for split in chosen:
        require(split in SPLITS, f"--splits {split}: name some of {', '.join(SPLITS)}")
    require(bool(chosen), f"--splits: name some of {', '.join(SPLITS)}")
    query = new_score(folder, model, sites=names_in(sites), metric=metric, splits=chosen)
    _ask(folder, query, kit, admin, as_json)


def describe(
    folder: Folder, sites: Sites = "", kit: HubKit = None, admin: AdminKit = None, as_json: Json = False
) -> None:
    """Describe the columns of approved sites' training rows: counts, means, deviations, quantiles, categories.

    The first call writes the query's file, for the sites to approve. With --kit and --admin, the same command asks
    the sites that have not answered yet, and prints the result.

    Examples:
    idiolect hub describe study
    idiolect hub describe study --kit kits/hub --admin kits/lead

    Writes: queries/ID in FOLDER: study.json; with --kit the sites' answers and description.json, .csv, .md, .html.
    """
    with loading():
        from idiolect.deploy.hub.query import new_description
    _ask(folder, new_description(folder, sites=names_in(sites)), kit, admin, as_json)


def _ask(
    folder: Path, query: "ScoreStudy | DescribeStudy", kit: Path | None, admin: Path | None, as_json: bool
) -> None:
    """Say what sites must approve; or ask them and print the result."""
    from idiolect.deploy.hub.query import is_answered, query_folder, result_of
    from idiolect.deploy.study import FILE

    place = query_folder(folder, query.id)
    file = place / FILE
    if (kit is None) != (admin is None):
        raise ConfigError("name both kits, --kit and --admin, to ask the sites; or none, to write the query's file")
    if kit is None or admin is None:
        lines = [
            f"query: {file}, digest {query.digest}",
            f"sites: {', '.join(query.sites)}",
            "send this file to every site, and the digest by another channel; each site approves it with:",
            f"  idiolect site approve {FILE} KIT",
            "then ask the sites: the same command with --kit KIT --admin KIT",
        ]
        value = {"query": query.id, "digest": query.digest, "file": str(file), "sites": list(query.sites)}
        print_outcome(value, lines, as_json)
        return
    with loading():
        from idiolect.deploy.nvflare.supervisor import hub_kits, served, watch_of
    kits, screen = hub_kits(kit, admin), console()
    if not is_answered(folder, query):
        with stoppable(folder), served(folder, kits):
            watch_of(folder, kits, (lambda _: None) if as_json else print, query.id).run()
    result = result_of(folder, query)
    if as_json:
        print_json(result.to_dict())
        return
    head, *body = result.lines()
    table = Table(box=None)
    for name in head:
        table.add_column(Text(name))
    for line in body:
        table.add_row(*map(Text, line))
    screen.print(table)
    for line in (*result.remarks(), f"result: {shlex.quote(str(place))}"):
        screen.print(Text(line), soft_wrap=True)
