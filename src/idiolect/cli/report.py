"""The command `report`: one HTML page of finished or unfinished runs, or of committed CSV files."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import Json, file_path, folder_path
from idiolect.cli.outputs import check_output
from idiolect.cli.terminal import print_json, told_file


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            parser=folder_path,
            help="Folders of runs, an advice's, or folders that hold table.csv and clients.csv alone.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", parser=file_path, help="The page (default: report.html in the first folder)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page: the answer, the table, every client, how it was made.

    The page makes no request: it can be sent, printed and kept. Several folders of runs become one page.

    Example: idiolect report runs/mnist-1a2b3c -o report.html
    """
    from idiolect.report.page import PAGE, folders_page  # here: the other commands need nothing of it

    target = out or runs[0] / PAGE
    if not target.is_dir():
        check_output(target, *runs, unread=(".html",))
    page = folders_page(runs, out)
    if as_json:
        print_json({"page": str(page)})
    else:
        told_file("page", page)
