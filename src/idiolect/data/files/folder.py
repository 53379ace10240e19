"""The folder of the data sets' files, named by the user, with one sub-folder a data set."""

import os
from pathlib import Path

from idiolect.core.errors import DataError

VARIABLE = "IDIOLECT_DATA"


def data_folder(folder: str | Path | None, data_set: str, published: str, *, also: str | None = None) -> Path:
    """The sub-folder `data_set` of `folder` (by default of the environment variable IDIOLECT_DATA).

    published: where the original files are published, for the message of the `DataError` if there is no such folder.
    also: another name that the sub-folder may have.
    """
    named = folder if folder is not None else os.environ.get(VARIABLE)
    if not named:
        raise DataError(
            f"{data_set}: no data folder; give --data-dir (folder=) or set {VARIABLE} to a folder that holds "
            f"'{data_set}/'; {published}"
        )
    path = Path(named).expanduser() / data_set
    if not path.is_dir() and also is not None and (path.parent / also).is_dir():
        return path.parent / also
    if not path.is_dir():
        raise DataError(f"{data_set}: there is no folder {path}; {published}")
    return path
