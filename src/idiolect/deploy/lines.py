"""Files of JSON lines that only grow: what left a site, who took part in a round."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from idiolect.core.reading import json_of
from idiolect.core.rights import private


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line, durably, to a file that only its owner may read. Raises `OSError` if it cannot be written."""
    with open(path, "a+b", opener=private) as file:
        if file.tell() and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
            file.write(b"\n")  # a crash has cut off the last line: it must not swallow this one
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """All lines, in their order; none without a file. A line that a crash has cut off is left out."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield json_of(line)
            except ValueError:
                continue
