"""The commands show and list: what a folder holds, and what can be named."""

from pathlib import Path
from typing import Annotated

import typer

from idiolect.cli import pages
from idiolect.cli.advise import print_advice
from idiolect.cli.options import Json
from idiolect.cli.printed import print_page, print_results
from idiolect.cli.terminal import print_entries, print_json
from idiolect.core.errors import unknown
from idiolect.study.advice.stored import is_advice, stored_advice
from idiolect.study.analyse.results import Results
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import Store


def show(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A folder of runs, or an advice's.")],
    as_json: Json = False,
) -> None:
    """Show what a folder holds: results, and runs that are not finished.

    idiolect show runs/penguins-1a2b3c --json
    """
    if is_advice(folder):
        print_advice(stored_advice(folder), folder, as_json)
        return
    with Store(folder, create=False) as store:
        print_results(Results(store, stored_experiment(store)), as_json, folder)


def list_(
    kind: Annotated[str, typer.Argument(help="methods, data, models, metrics or experiments.")],
    name: Annotated[str | None, typer.Argument(help="One of them: what it is and its settings.")] = None,
    as_json: Json = False,
) -> None:
    """List what can be named: methods, data, models, metrics, experiments; with a name, its page.

    idiolect list methods

    idiolect list methods pfedme --json
    """
    if kind not in pages.PAGES:
        raise unknown("kind", kind, pages.PAGES)
    if name is not None:
        print_page(kind, name, pages.PAGES[kind](name), as_json)
    elif as_json:
        print_json(pages.LISTS[kind]())
    else:
        print_entries(pages.LISTS[kind]())
