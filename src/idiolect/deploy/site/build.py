"""Build a site's trainer, in the process that holds JAX."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from idiolect.core.errors import ConfigError
from idiolect.deploy.site.config import FILE
from idiolect.deploy.site.data import OwnData, own_data
from idiolect.deploy.site.trainer import Trainer
from idiolect.runtime.compiled import use_compilation_cache


def trainer_of(settings: Mapping[str, Any]) -> Trainer:
    """The trainer that a child's settings name; its data are read now. Raises `DataError` if they cannot be."""
    use_compilation_cache()
    folder = Path(settings["folder"])
    try:
        own = OwnData(name=settings["name"], **placed(settings["data"], folder))
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{folder / FILE}: data: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return Trainer(lambda kind: own_data(own, kind), folder / "models")


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a site's data, with paths as seen from its folder made absolute."""
    paths = {key: str(folder / str(data[key])) for key in ("table", "arrays", "schema") if data.get(key)}
    return {**data, **paths}
