"""Make a page and write it: of results that have just been made, of runs in folders, or of an advice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError
from idiolect.report.html.of_advice import advice_payload
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.payload import payload_of
from idiolect.report.html.read import whole_of_folders
from idiolect.report.html.render import PAGE, check_writable, write_page
from idiolect.study.advice.stored import is_advice, stored_advice
from idiolect.study.analyse.results import Results


def results_page(results: Results, folder: Path, command: str) -> Path:
    """Write the page of an experiment's results into its folder; returns its path. command: reproduces them."""
    return write_page(payload_of(whole_of(results, command)), folder / PAGE)


def folders_page(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page of one folder or several; returns its path. out: by default `PAGE` in the first folder.

    Raises `StoreError` or `DataError` if a folder holds neither runs nor an advice or cannot be read, or if the page
    cannot be written.
    """
    target = out or folders[0] / PAGE
    if out is not None:
        check_writable(out)
    return write_page(folders_payload(folders), target)


def folders_payload(folders: Sequence[Path]) -> dict[str, Any]:
    """The page's data of what folders hold. Raises as `folders_page` does, also if an advice is not alone."""
    advice = next((folder for folder in folders if is_advice(folder)), None)
    if advice is None:
        return payload_of(whole_of_folders(folders))
    if len({*folders}) > 1:
        raise StoreError(f"'{advice}' holds an advice, whose page is its own; report it alone")
    return advice_payload(stored_advice(advice))
