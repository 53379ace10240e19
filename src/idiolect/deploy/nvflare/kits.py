"""Kits: the folder of one participant, its files and certificate, and how an administrator hardens it before use.

A hardened kit runs no code but idiolect's, and reads and writes nothing outside its folder.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from idiolect.core.errors import StoreError, os_errors_as, reason_of, require
from idiolect.core.files import atomic_write, json_of
from idiolect.core.rights import make_folder, restrict

CONTROLLER = "nvflare.collab.runtime.controller.CollabController"
EXECUTOR = "nvflare.collab.runtime.executor.CollabExecutor"
HUB = "idiolect.deploy.nvflare.roles.HubRole"
SITE = "idiolect.deploy.nvflare.roles.SiteRole"
ALLOWED = (CONTROLLER, EXECUTOR, HUB, SITE)  # all that a job may name
HUB_FOLDER = "IDIOLECT_HUB"  # the environment variable that names the hub's folder


def check_installed() -> None:
    """Raise `ConfigError` if the engine is not installed."""
    require(find_spec("nvflare") is not None, "federating real sites needs nvflare: pip install 'idiolect[sites]'")


Kind = Literal["server", "client", "admin"]
_FILES: dict[Kind, str] = {"server": "fed_server.json", "client": "fed_client.json", "admin": "fed_admin.json"}


@dataclass(frozen=True)
class Kit:
    """A participant's folder. name: in its certificate; host, port: where the hub is; identity: the hub's name."""

    folder: Path
    kind: Kind
    name: str
    host: str
    port: int
    identity: str

    @property
    def site(self) -> Path:
        """The site's own folder: `open_site` gets it."""
        return self.folder / "idiolect"


@dataclass(frozen=True)
class Certificate:
    """A kit's certificate. organization: "" where it names none."""

    name: str
    organization: str
    not_before: datetime
    not_after: datetime


def read_kit(folder: Path) -> Kit:
    """What a kit's files say. Raises `StoreError` for a folder that is no kit, or is damaged."""
    folder = Path(folder).absolute()
    found: list[tuple[Kind, Path]] = [
        (kind, path) for kind, name in _FILES.items() if (path := folder / "startup" / name).is_file()
    ]
    if not found:
        raise StoreError(f"{folder} is no kit: it has no startup/fed_server.json, fed_client.json or fed_admin.json")
    kind, path = found[0]
    content = read_json(path)
    try:
        if kind == "admin":
            admin = content["admin"]
            return Kit(folder, kind, admin["username"], admin["host"], int(admin["port"]), admin["server_identity"])
        server = content["servers"][0]
        host, _, port = str(server["service"]["target"]).rpartition(":")
        identity = server["admin_server"] if kind == "server" else server["identity"]
        own = identity if kind == "server" else content["client"]["fqsn"]
        return Kit(folder, kind, own, host, int(port), identity)
    except (KeyError, IndexError, TypeError, ValueError):
        raise StoreError(
            f"{path} is not what `nvflare provision` or `nvflare package` writes; make it again"
        ) from None


def certificate(kit: Kit, now: datetime | None = None) -> Certificate:
    """The kit's certificate, checked. Raises `StoreError` if it, its key or the root is missing, expired, not yet
    valid, of another participant, or does not fit the others.
    """
    check_installed()
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from cryptography.x509.oid import NameOID

    stem = "server" if kit.kind == "server" else "client"
    paths = [kit.folder / "startup" / name for name in (f"{stem}.crt", f"{stem}.key", "rootCA.pem")]
    for path in paths:
        if not path.is_file():
            raise StoreError(
                f"{path} is missing: ask for a certificate (nvflare cert request) and build the kit again"
            )
    bad = paths[0]
    try:
        own = x509.load_pem_x509_certificate(paths[0].read_bytes())
        bad = paths[1]
        key = load_pem_private_key(paths[1].read_bytes(), None)
        bad = paths[2]
        root = x509.load_pem_x509_certificate(paths[2].read_bytes())
    except (ValueError, TypeError, UnsupportedAlgorithm, OSError):
        raise StoreError(
            f"{bad} cannot be read as the kind of file that its name says; build the kit again"
        ) from None

    def subject(oid: Any) -> str:
        found = own.subject.get_attributes_for_oid(oid)
        return str(found[0].value) if found else ""

    details = Certificate(
        subject(NameOID.COMMON_NAME),
        subject(NameOID.ORGANIZATION_NAME),
        own.not_valid_before_utc,
        own.not_valid_after_utc,
    )
    if key.public_key() != own.public_key():
        raise StoreError(
            f"{paths[1]} is not the key of {paths[0].name}; put the key there that the request was made with"
        )
    try:
        own.verify_directly_issued_by(root)
    except (InvalidSignature, ValueError, TypeError):
        raise StoreError(
            f"{paths[0]} was not signed by the federation's root in rootCA.pem; build the kit again"
        ) from None
    if details.name != kit.name:
        raise StoreError(f"{paths[0]} is the certificate of '{details.name}', but the kit is of '{kit.name}'")
    now = now or datetime.now(UTC)
    if now > details.not_after:
        raise StoreError(
            f"{paths[0]} expired on {details.not_after:%Y-%m-%d}: ask for a new one (nvflare cert request)"
        )
    if now < details.not_before:
        raise StoreError(
            f"{paths[0]} is valid from {details.not_before:%Y-%m-%d %H:%M} UTC, here it is {now:%Y-%m-%d %H:%M} UTC: "
            "set this machine's clock"
        )
    return details


def read_json(path: Path) -> Any:
    """A JSON file of a kit. Raises `StoreError` that names it."""
    try:
        return json_of(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {reason_of(error)}") from error
    except ValueError:
        raise StoreError(f"{path} is no JSON file any more; restore it or build the kit again") from None


def write_json(path: Path, content: Any) -> bool:
    """Write a JSON file, complete or not at all; False if it says this already."""
    text = json.dumps(content, indent=1).encode() + b"\n"
    if path.is_file() and path.read_bytes() == text:
        return False
    with atomic_write(path) as file:
        file.write(text)
    return True


def require_kind(kit: Kit, *kinds: Kind) -> None:
    """Raise `ConfigError` if the kit is of another kind of participant."""
    names = {"server": "a hub's", "client": "a site's", "admin": "an administrator's"}
    wanted = " or ".join(names[kind] for kind in kinds)
    require(kit.kind in kinds, f"{kit.folder} is {names[kit.kind]} kit; {wanted} is needed here")


_RIGHTS = ("submit_job", "clone_job", "manage_job", "download_job", "view", "operate")
_READERS = ("lead", "project_admin")  # may read a job's log at the hub, which the template refuses to a lead


def harden(folder: Path) -> list[str]:
    """Harden the kit of a hub or a site; the names of the files that were changed, none if it was hardened before.

    A job may name idiolect's four classes and no other; nobody may ship code or run shell commands, a project
    administrator neither; a site's logs stay there, and only warnings are logged; stores lie inside the kit. Other
    users of the machine lose all rights in the kit. Raises `StoreError` that names the kit's file.
    """
    kit = read_kit(folder)
    require_kind(kit, "server", "client")
    changes: dict[str, Callable[[Kit, Any], None]] = {
        "resources.json": _resources,
        "authorization.json": _authorization,
        "log_config.json": _logs,
    }
    changed: list[str] = []
    for name, change in changes.items():
        path = kit.folder / "local" / name
        source = path if path.is_file() else path.with_name(f"{name}.default")
        content = read_json(source)
        try:
            change(kit, content)
        except (KeyError, TypeError, AttributeError):
            raise StoreError(f"{source} is not as nvflare 2.9 writes it; restore it or build the kit again") from None
        if write_json(path, content):
            changed.append(name)
    restrict(kit.folder)
    return changed


def allow_list_lines() -> list[str]:
    """What administrators who edit local/resources.json by hand write there: the classes that a job may name."""
    return ['"class_list_enforcement_mode": "enforce",', '"class_allow_list": [', *_listed(), "],"]


def _listed() -> list[str]:
    return [f'  "{name}"' + ("," if name != ALLOWED[-1] else "") for name in ALLOWED]


def _resources(kit: Kit, content: Any) -> None:
    store = kit.folder / "store"
    content["class_list_enforcement_mode"] = "enforce"
    content["class_allow_list"] = list(ALLOWED)
    for component in content["components"]:
        if component["id"] == "job_manager":
            component["args"]["uri_root"] = str(store / "jobs")
        elif component["id"] == "log_receiver":  # else what sites send is staged in the system's temporary folder
            component["args"]["dest_dir"] = _made(store / "logs")
    if kit.kind == "server":
        content["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"] = str(store / "snapshots")
    else:
        content["allow_log_streaming"] = False
        content["components"] = [c for c in content["components"] if c["id"] != "site_log_streamer"]


def _made(folder: Path) -> str:
    with os_errors_as(f"cannot make {folder}"):
        make_folder(folder)
    return str(folder)


def _authorization(kit: Kit, content: Any) -> None:
    for name, role in content["permissions"].items():
        if isinstance(role, str):  # "any" includes shipped code
            role = dict.fromkeys(_RIGHTS, role)
        role |= {"byoc": "none", "shell_commands": "none"}
        if kit.kind == "server" and name in _READERS:
            role |= {"get_job_log": "any", "list_job": "any"}
        content["permissions"][name] = role


def _logs(_: Kit, content: Any) -> None:
    content["loggers"]["root"]["level"] = "WARNING"
    for handler in content["handlers"].values():
        if "maxBytes" in handler:
            handler |= {"maxBytes": 1_000_000, "backupCount": 2}
