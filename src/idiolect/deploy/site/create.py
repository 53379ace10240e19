"""Create a site's configuration: where its data are, and what it allows. No data are copied."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from idiolect.core.errors import ConfigError, first_of, os_errors_as, require
from idiolect.core.rights import make_folder
from idiolect.deploy.site.config import Allowed, SiteConfig
from idiolect.deploy.site.data import FORMAT
from idiolect.deploy.site.floors import Floors


def site_config(
    folder: Path,
    name: str,
    data: Path,
    allow: Mapping[str, Any],
    schema: Path | None = None,
    floors: Mapping[str, Any] | None = None,
    **settings: Any,
) -> SiteConfig:
    """A site's configuration. data: a table, or a file that `save_arrays` wrote; settings: of `OwnData`.

    allow, floors: settings of `Allowed` and of `Floors`.

    Paths are kept as seen from the folder, unless they lie on another drive. Raises `ConfigError` for a file that is
    not there or settings of another kind.
    """
    for path in (data, *(() if schema is None else (schema,))):
        require(path.is_file(), f"no such file: {path}")
    kind = "arrays" if _is_arrays(data) else "table"
    given = {key: value for key, value in settings.items() if value is not None}
    if kind == "arrays":
        require(schema is None and not given, f"{data} holds arrays: leave the settings of a table out")
    values: dict[str, Any] = {kind: _seen_from(folder, data), **given}
    if schema is not None:
        values["schema"] = _seen_from(folder, schema)
    try:
        limits = Floors.model_validate(dict(floors or {}))
        return SiteConfig(name=name, data=values, allow=Allowed.model_validate(dict(allow)), floors=limits)
    except ValidationError as error:
        raise ConfigError(first_of(error)) from None


def write_site(folder: Path, config: SiteConfig) -> None:
    """Make the folder and write the configuration into it."""
    with os_errors_as(f"cannot write to '{folder}'"):
        make_folder(folder)
    config.save(folder)


def _seen_from(folder: Path, path: Path) -> str:
    try:
        return os.path.relpath(path.absolute(), folder.absolute())
    except ValueError:  # another drive
        return str(path.absolute())


def _is_arrays(path: Path) -> bool:
    with os_errors_as(f"cannot read {path}", ConfigError), path.open("rb") as file:
        return FORMAT.encode() in file.read(4096)
