"""Kits without the engine's own provisioning: the files that idiolect reads and changes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from idiolect.deploy.site.approvals import approve
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.study import Study

NOW = datetime(2026, 6, 1, tzinfo=UTC)
Key = ec.EllipticCurvePrivateKey


def signed(name: str, issuer: str, key: Key, by: Key, start: datetime = NOW, days: float = 30) -> bytes:
    """A certificate of `name`, signed by the key `by`."""
    subject, by_name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, issuer))
    made = x509.CertificateBuilder(by_name, subject, key.public_key(), 7, start, start + timedelta(days=days))
    return made.sign(by, hashes.SHA256()).public_bytes(Encoding.PEM)


def write_key(path: Path, key: Key) -> None:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def site_kit(folder: Path, name: str = "site-1", start: datetime = NOW, port: int = 8002) -> Path:
    """A site's kit with a certificate of 30 days."""
    root, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    for part in ("startup", "local"):
        (folder / part).mkdir(parents=True)
    (folder / "startup" / "rootCA.pem").write_bytes(signed("fed", "fed", root, root, start))
    (folder / "startup" / "client.crt").write_bytes(signed(name, "fed", key, root, start))
    write_key(folder / "startup" / "client.key", key)
    server = {"service": {"target": f"localhost:{port}"}, "identity": "localhost"}
    (folder / "startup" / "fed_client.json").write_text(json.dumps({"servers": [server], "client": {"fqsn": name}}))
    defaults = {
        "resources": {"class_allow_list": ["x.Y"], "allow_log_streaming": True, "components": [{"id": "launcher"}]},
        "authorization": {"permissions": {"project_admin": "any", "lead": {"submit_job": "any", "byoc": "any"}}},
        "log_config": {"loggers": {"root": {"level": "INFO"}}, "handlers": {"file": {"maxBytes": 20971520}}},
    }
    for stem, content in defaults.items():
        (folder / "local" / f"{stem}.json.default").write_text(json.dumps(content))
    return folder


def approved_kit(folder: Path, study: Path) -> None:
    """Let the site of a kit approve a study's file, as its administrator does by hand."""
    site = folder / "idiolect"
    approve(site, SiteConfig.load(site).name, Study.load(study))
