"""Names on which sites, hub and jobs agree, and whether the engine is installed."""

from importlib.util import find_spec

from idiolect.core.errors import require

CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"
HUB = "idiolect.deploy.nvflare.roles.HubRole"
SITE = "idiolect.deploy.nvflare.roles.SiteRole"
ALLOWED = (CONTROLLER, EXECUTOR, HUB, SITE)  # all that a job may name
HUB_FOLDER = "IDIOLECT_HUB"  # the environment variable that names the hub's folder


def check_installed() -> None:
    """Raise `ConfigError` if the engine is not installed."""
    require(find_spec("nvflare") is not None, "federating real sites needs nvflare: pip install 'idiolect[sites]'")
