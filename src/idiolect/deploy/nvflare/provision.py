"""A federation whose kits are all made on this machine: for one command, for tests, and to try it out."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from idiolect.core.errors import ConfigError, StoreError, reason_of, require
from idiolect.core.files import write_text
from idiolect.core.rights import PRIVATE_UMASK, make_folder, restrict
from idiolect.deploy.nvflare.kits import Kit, check_installed, harden, read_kit

LEAD = "lead@hub.org"
_BUILDERS = (
    ("workspace.WorkspaceBuilder", {"template_file": ["master_template.yml"]}),
    ("static_file.StaticFileBuilder", {"config_folder": "config"}),
    ("cert.CertBuilder", {}),
    ("signature.SignatureBuilder", {}),
)
_LIMIT = 300.0  # seconds for making the keys of a large federation


@dataclass(frozen=True)
class Kits:
    """The hardened kits of a federation: of the hub, of each site by name, and of who may submit jobs."""

    hub: Kit
    sites: dict[str, Kit]
    lead: Kit


def provision(folder: Path, project: str, sites: Sequence[str], port: int, host: str = "localhost") -> Kits:
    """Make keys, certificates and kits in `folder`, which is new or empty, and harden them.

    host: the hub's name, which must resolve at every site. Each key is in one place, its owner's kit. The root's key,
    with which anybody can be any site, is deleted, and so are the engine's copies of all keys: nobody can join later.
    For that, and for several owners, use certificates by request.
    Raises `ConfigError` for names that the engine does not take, `StoreError` if it cannot be made.
    """
    check_installed()
    _check(project, sites, port, host)
    folder = Path(folder).absolute()
    made = not folder.exists()
    require(made or not any(folder.iterdir()), f"{folder} is not empty: name a new folder")
    try:
        make_folder(folder / "home")
        write_text(folder / "project.yml", json.dumps(_project(project, sites, port, host), indent=1))  # JSON is YAML
        _run_provision(folder)
        root = folder / project / "prod_00"
        shutil.rmtree(folder / project / "state")
        restrict(folder)
        for name in (host, *sites):
            harden(root / name)
        return Kits(read_kit(root / host), {site: read_kit(root / site) for site in sites}, read_kit(root / LEAD))
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StoreError(f"cannot write {folder}: {reason_of(error)}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def load_kits(folder: Path, project: str, sites: Sequence[str], host: str = "localhost") -> Kits:
    """The kits that `provision` made. Raises `StoreError` if they are not there."""
    root = Path(folder).absolute() / project / "prod_00"
    return Kits(read_kit(root / host), {site: read_kit(root / site) for site in sites}, read_kit(root / LEAD))


def check_site(name: str) -> None:
    """Raise `ConfigError` for a name that no certificate of a site can have."""
    _check_name("site", name)


def _check_name(kind: str, name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", name):
        raise ConfigError(
            f"{kind} '{name}': use letters, digits, - and _, at most 63, beginning with a letter or digit"
        )


def _check(project: str, sites: Sequence[str], port: int, host: str) -> None:
    _check_name("project", project)
    for site in sites:
        check_site(site)
    require(len(sites) > 0, "a federation needs a site")
    doubled = {site for site in sites if list(sites).count(site) > 1}
    require(not doubled, f"two sites are named '{min(doubled, default='')}': every site needs a name of its own")
    clash = {site for site in sites if site.lower() in (host.lower(), "server", "admin")}
    require(not clash, f"a site cannot be named '{min(clash, default='')}': the hub is")
    good = re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?", host)
    require(good is not None and len(host) <= 63, f"host '{host}' is no name of a machine (at most 63 characters)")
    require(0 < port < 65536, f"port {port} is none: 1 to 65535")


def _project(project: str, sites: Sequence[str], port: int, host: str) -> dict[str, object]:
    hub = {"name": host, "type": "server", "org": "hub", "fed_learn_port": port, "admin_port": port}
    clients = [{"name": site, "type": "client", "org": re.sub("[^A-Za-z0-9_]", "_", site)} for site in sites]
    lead = {"name": LEAD, "type": "admin", "org": "hub", "role": "lead"}
    builders = [{"path": f"nvflare.lighter.impl.{path}", "args": args} for path, args in _BUILDERS]
    return {
        "api_version": 3,
        "name": project,
        "description": "idiolect",
        "participants": [hub, *clients, lead],
        "builders": builders,
    }


def _run_provision(folder: Path) -> None:
    code = "from nvflare.cli import main; main()"
    arguments = ["provision", "-p", str(folder / "project.yml"), "-w", str(folder), "--force"]
    environment = {**os.environ, "HOME": str(folder / "home")}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            stdin=subprocess.DEVNULL,
            umask=PRIVATE_UMASK,
        )
    except subprocess.TimeoutExpired:
        raise StoreError(f"nvflare provision did not end within {_LIMIT:g} s in {folder}") from None
    if done.returncode:
        lines = [line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
        raise StoreError(
            f"nvflare provision failed in {folder}: {lines[0].strip()[:200] if lines else 'no reason given'}"
        )
