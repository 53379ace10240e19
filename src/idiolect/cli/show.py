"""The commands show and list: what a folder holds, what can be named, and the page of each name."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli.options import Json
from idiolect.cli.terminal import print_entries, print_json
from idiolect.core.errors import unknown
from idiolect.core.loading import loading


def show(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs, or an advice's.")],
    as_json: Json = False,
) -> None:
    """Show what a folder holds: results, and runs that are not finished.

    Examples:
    idiolect show runs/penguins-1a2b3c
    idiolect show runs/penguins-1a2b3c --json

    Writes: nothing.
    """
    with loading():
        from idiolect.cli.inputs import check_runs
        from idiolect.cli.results import print_advice, print_results
        from idiolect.study.advice.stored import is_advice, stored_advice
        from idiolect.study.analyse.results import Results
        from idiolect.study.store.claim import stored_experiment
        from idiolect.study.store.store import Store
    if is_advice(folder):
        print_advice(stored_advice(folder), folder, as_json)
        return
    check_runs(folder)
    with Store(folder, create=False) as store:
        print_results(Results(store, stored_experiment(store)), as_json, folder)


def list_(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="methods, data, models, metrics or experiments.", show_default=False),
    ],
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One of them: what it is and its settings.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what can be named: methods, data, models, metrics, experiments; with a name, its page.

    Examples:
    idiolect list methods
    idiolect list data synthetic

    Writes: nothing.
    """
    with loading():
        from idiolect.cli.pages import LISTS, PAGES, print_page
    if kind not in PAGES:
        raise unknown("kind", kind, PAGES)
    if name is not None:
        print_page(kind, name, PAGES[kind](name), as_json)
    elif as_json:
        print_json(LISTS[kind]())
    else:
        print_entries(LISTS[kind]())
