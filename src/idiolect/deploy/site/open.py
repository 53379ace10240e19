"""Open a site from its folder: in the worker with a child for its trainer, and the trainer in the child."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from idiolect.core.errors import ConfigError
from idiolect.deploy.messages import Message
from idiolect.deploy.site.child import Child, Handle
from idiolect.deploy.site.config import FILE, SiteConfig
from idiolect.deploy.site.site import Site


def open_site(folder: Path) -> Site:
    """The site of a folder, as `idiolect site init` made it. Raises `ConfigError` for a wrong configuration."""
    config = SiteConfig.load(folder)
    settings = {"folder": str(folder.absolute()), "data": config.data, "name": config.name}
    # Compiled programs are kept in the site's own folder, as all that it writes.
    environment = {"IDIOLECT_CACHE": str(folder.absolute() / "cache"), **config.environment}
    return Site(folder, config, Child(settings, environment))


def trainer_of(settings: Mapping[str, Any]) -> Any:
    """The trainer that a child's settings name; its data are read now. Raises `DataError` if they cannot be."""
    from idiolect.deploy.site.data import OwnData, own_data
    from idiolect.deploy.site.trainer import Trainer
    from idiolect.runtime.compiled import use_compilation_cache

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


class Inline:
    """A trainer in the same process: for tests and debugging."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def call(self, message: Message, seconds: float) -> Message:
        """As `child.Handle.call`; there is no deadline."""
        del seconds
        return self.trainer(message)

    def close(self) -> None:
        """Nothing is to end."""


__all__ = ["Handle", "Inline", "open_site", "trainer_of"]
