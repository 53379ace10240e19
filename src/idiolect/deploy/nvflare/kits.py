"""Kits: the folder of one participant, what its files say, and its certificate."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from idiolect.core.errors import StoreError, require
from idiolect.core.files import atomic_write
from idiolect.core.reading import json_of
from idiolect.deploy.nvflare.names import check_installed

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
            told = content["admin"]
            return Kit(folder, kind, told["username"], told["host"], int(told["port"]), told["server_identity"])
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
        raise StoreError(f"{bad} cannot be read as what its name says; build the kit again") from None

    def subject(oid: Any) -> str:
        found = own.subject.get_attributes_for_oid(oid)
        return str(found[0].value) if found else ""

    told = Certificate(
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
    if told.name != kit.name:
        raise StoreError(f"{paths[0]} is the certificate of '{told.name}', but the kit is of '{kit.name}'")
    now = now or datetime.now(UTC)
    if now > told.not_after:
        raise StoreError(f"{paths[0]} expired on {told.not_after:%Y-%m-%d}: ask for a new one (nvflare cert request)")
    if now < told.not_before:
        raise StoreError(
            f"{paths[0]} is valid from {told.not_before:%Y-%m-%d %H:%M} UTC, here it is {now:%Y-%m-%d %H:%M} UTC: "
            "set this machine's clock"
        )
    return told


def read_json(path: Path) -> Any:
    """A JSON file of a kit. Raises `StoreError` that names it."""
    try:
        return json_of(path.read_bytes())
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
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
