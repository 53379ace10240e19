"""Open a site from its folder, with its trainer in a process of its own."""

from pathlib import Path
from typing import Any

from idiolect.deploy.messages import Message
from idiolect.deploy.site.child import Child
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.site import Site


def open_site(folder: Path) -> Site:
    """The site of a folder, as `idiolect site init` made it; its trainer starts at once.

    Raises `ConfigError` for a wrong configuration.
    """
    config = SiteConfig.load(folder)
    child = child_of(folder, config)
    child.start()
    return Site(folder, config, child)


def child_of(folder: Path, config: SiteConfig) -> Child:
    """The site's trainer in a process of its own, not yet started."""
    settings = {"folder": str(folder.absolute()), "data": config.data, "name": config.name}
    # Compiled programs are kept in the site's own folder, as all that it writes.
    environment = {"IDIOLECT_CACHE": str(folder.absolute() / "cache"), **config.environment}
    return Child({**settings, "rarest": config.allow.rarest}, environment)


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
