"""Make a page and write it: of runs in folders, or of an advice."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from idiolect.core.errors import StoreError
from idiolect.report.html.of_advice import advice_payload
from idiolect.report.html.payload import payload_of
from idiolect.report.html.render import PAGE, check_writable, write_page
from idiolect.report.view.as_json import REPORT, to_dict, write_json
from idiolect.report.view.folder import view_of_folder, view_of_folders
from idiolect.study.advice.stored import is_advice, stored_advice


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
        return payload_of(to_dict(view_of_folders(folders)))
    if len({*folders}) > 1:
        raise StoreError(f"'{advice}' holds an advice, whose page is its own; report it alone")
    return advice_payload(stored_advice(advice))


def write_folder(folder: Path) -> Path:
    """Write report.json and the page of the runs in a folder; returns the page's path. Raises as `folders_page`."""
    told = to_dict(view_of_folder(folder))
    write_json(told, folder / REPORT)
    return write_page(payload_of(told), folder / PAGE)
