"""Make a page and write it: of results that have just been made, or of folders."""

from collections.abc import Sequence
from pathlib import Path

from idiolect.report.html.of_results import whole_of
from idiolect.report.html.payload import payload_of
from idiolect.report.html.read import whole_of_folders
from idiolect.report.html.render import PAGE, check_writable, write_page
from idiolect.study.results import Results


def results_page(results: Results, folder: Path, command: str) -> Path:
    """Write the page of an experiment's results into its folder; returns its path. command: reproduces them."""
    return write_page(payload_of(whole_of(results, command)), folder / PAGE)


def folders_page(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page of one folder or several; returns its path. out: by default `PAGE` in the first folder.

    Raises `StoreError` or `DataError` if a folder is no run, cannot be read, or the page cannot be written.
    """
    target = out or folders[0] / PAGE
    if out is not None:
        check_writable(out)
    return write_page(payload_of(whole_of_folders(folders)), target)
