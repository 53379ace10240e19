"""Build a site's trainer, in the process that holds JAX."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from idiolect.core.errors import ConfigError, first_of
from idiolect.deploy.site.config import FILE
from idiolect.deploy.site.data import OwnData, own_data
from idiolect.deploy.site.own_summary import described, own_summary
from idiolect.deploy.site.trainer import Trainer
from idiolect.runtime.compiled import use_compilation_cache


def trainer_of(settings: Mapping[str, Any]) -> Trainer:
    """The trainer that a child's settings name; its data are read now. Raises `DataError` if they cannot be."""
    use_compilation_cache()
    folder, own = Path(settings["folder"]), own_of(settings)
    rarest = int(settings.get("rarest", 5))
    tell = None if own.table is None else lambda asked: own_summary(own, asked, rarest)
    return Trainer(lambda kind: own_data(own, kind), folder / "models", tell, lambda: described(own, rarest))


def own_of(settings: Mapping[str, Any]) -> OwnData:
    """Where the data lie, by a child's settings. Raises `ConfigError` if they are none."""
    folder = Path(settings["folder"])
    try:
        return OwnData(name=settings["name"], **placed(settings["data"], folder))
    except ValidationError as error:
        raise ConfigError(f"{folder / FILE}: data: {first_of(error)}") from None


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a site's data, with paths as seen from its folder made absolute."""
    paths = {key: str(folder / str(data[key])) for key in ("table", "arrays", "schema") if data.get(key)}
    return {**data, **paths}
