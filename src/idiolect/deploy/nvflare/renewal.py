"""Renew a certificate before it expires: same name, same key, a later date. The key never leaves its kit.

A request holds the old certificate, and a signing request that the same key has signed. So the holder of the root key
checks that who asks has the key, and issues a certificate for exactly the name that it had.
"""

import contextlib
import os
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, StoreError, os_errors_as, reason_of, require
from idiolect.core.files import atomic_write
from idiolect.deploy.nvflare.kits import Certificate, Kit, certificate, check_installed, read_kit


def stem_of(kit: Kit) -> str:
    """The name of a kit's certificate and key, without their ending."""
    return "server" if kit.kind == "server" else "client"


def write_request(kit: Kit, path: Path) -> None:
    """Write a request for a new certificate. Raises `StoreError` if the kit's own is damaged, or it cannot write.

    A certificate that has expired cannot be renewed: ask for a new one, as for a new site.
    """
    certificate(kit)
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    startup = kit.folder / "startup"
    own = x509.load_pem_x509_certificate((startup / f"{stem_of(kit)}.crt").read_bytes())
    key: Any = load_pem_private_key((startup / f"{stem_of(kit)}.key").read_bytes(), None)
    asked = x509.CertificateSigningRequestBuilder(own.subject).sign(key, hashes.SHA256())
    with atomic_write(path) as file:
        file.write(own.public_bytes(Encoding.PEM) + asked.public_bytes(Encoding.PEM))


def sign_request(
    path: Path, authority: Path, out: Path, days: int, revoked: Collection[str] = ()
) -> tuple[str, datetime]:
    """Sign a request, and return the name and the end of the new certificate.

    Args:
        path: what `write_request` wrote.
        authority: the folder with rootCA.pem and rootCA.key, as `nvflare cert init` made it.
        out: where the certificate goes.
        days: for which it is valid.
        revoked: names that get no certificate.

    Raises:
        ConfigError: if the request is none, or is not of this federation, or its sender has not the key.
        StoreError: if the root's files cannot be read, or the certificate not be written.
    """
    check_installed()
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    try:
        root = x509.load_pem_x509_certificate((authority / "rootCA.pem").read_bytes())
        key: Any = load_pem_private_key((authority / "rootCA.key").read_bytes(), None)
    except OSError as error:
        raise StoreError(f"cannot read {error.filename}: {error.strerror}; name the folder of the root key") from None
    except (ValueError, TypeError) as error:
        raise StoreError(f"{authority} holds no root key that can be read ({_first(error)})") from None
    require(key.public_key() == root.public_key(), f"{authority}: rootCA.key is not the key of rootCA.pem")
    try:
        content = path.read_bytes()
        old = x509.load_pem_x509_certificate(content)
        asked = x509.load_pem_x509_csr(content[content.index(b"-----BEGIN CERTIFICATE REQUEST") :])
    except OSError as error:
        raise StoreError(f"cannot read {path}: {reason_of(error)}") from None
    except ValueError:
        raise ConfigError(f"{path} is no request of 'idiolect site renew' or 'idiolect hub renew'") from None
    try:
        old.verify_directly_issued_by(root)
    except (InvalidSignature, ValueError, TypeError):
        raise ConfigError(f"{path}: its old certificate was not signed by the root in {authority}") from None
    good = asked.is_signature_valid and asked.public_key() == old.public_key() and asked.subject == old.subject
    require(good, f"{path}: the request is not of the key and name of its old certificate")
    name = _name(old)
    require(name not in revoked, f"'{name}' was revoked: it gets no new certificate")
    now = datetime.now(UTC).replace(microsecond=0)
    require(now <= old.not_valid_after_utc, f"{path}: the certificate of '{name}' has expired: make a new one")
    until = min(now + timedelta(days=days), root.not_valid_after_utc)
    made = x509.CertificateBuilder(
        root.subject, old.subject, old.public_key(), x509.random_serial_number(), now - timedelta(minutes=5), until
    )
    for extension in old.extensions:
        made = made.add_extension(extension.value, extension.critical)
    with atomic_write(out) as file:
        file.write(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    return name, until


def install(kit: Kit, path: Path) -> Certificate:
    """Put a renewed certificate into its kit; the old one stays next to it as NAME.crt.old.

    The kit's process uses it from its next start. Raises `StoreError` for the certificate of another key, name or
    root, or one that is not valid; the kit stays as it was.
    """
    check_installed()
    target = kit.folder / "startup" / f"{stem_of(kit)}.crt"
    before, old = target.with_name(f"{target.name}.old"), _read(target)
    new = _read(path)
    with atomic_write(before) as file:
        file.write(old)
    try:
        with atomic_write(target) as file:
            file.write(new)
        details = certificate(read_kit(kit.folder))
    except BaseException as error:
        with atomic_write(target) as file:
            file.write(old)
        with contextlib.suppress(OSError):
            os.unlink(before)
        if isinstance(error, StoreError):
            text = str(error).replace(str(target), str(path))
            raise StoreError(f"{path} does not fit {kit.folder}, which is unchanged: {text}") from None
        raise
    return details


def _read(path: Path) -> bytes:
    with os_errors_as(f"cannot read {path}"):
        return path.read_bytes()


def _name(of: Any) -> str:
    from cryptography.x509.oid import NameOID

    return str(of.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:100]
