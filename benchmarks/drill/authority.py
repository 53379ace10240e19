"""Certificates by request, as for several owners: each key is made in its participant's folder and stays there."""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.drill.services import called
from idiolect.core.rights import make_folder
from idiolect.deploy.nvflare.kits import Kit, read_kit

PROJECT, HUB, LEAD = "drill", "localhost", "lead@hub.org"
SHORT = 20
"""Days of the first certificates: fewer than those for which a hub warns."""


@dataclass(frozen=True)
class Authority:
    """The holder of the root key. folder: of the whole federation; port: the hub's."""

    folder: Path
    port: int

    @property
    def root(self) -> Path:
        """The folder with rootCA.pem and rootCA.key."""
        return self.folder / "ca"

    @property
    def _profile(self) -> Path:
        return self.folder / "profile.yml"

    def begin(self) -> None:
        """Make the root's certificate."""
        server = {"host": HUB, "fed_learn_port": self.port, "admin_port": self.port}
        profile = {"name": PROJECT, "scheme": "http", "connection_security": "mtls", "server": server}
        self._profile.write_text(json.dumps(profile))  # JSON is YAML
        self._nvflare("cert", "init", "--profile", self._profile, "-o", self.root)

    def issue(self, name: str) -> Kit:
        """Make a participant's kit: its request, the signature, and its package; only the kit keeps the key."""
        own = self.folder / "requests" / name
        make_folder(own)
        kind = {HUB: "server", LEAD: "admin"}.get(name, "client")
        entry = {"name": name, "type": kind, "org": "hub" if kind != "client" else name.replace("-", "_")}
        entry |= {"role": "lead"} if kind == "admin" else {}
        about = {"name": PROJECT, "description": "a drill", "participants": [entry]}
        (own / "me.yml").write_text(json.dumps(about))
        self._nvflare("cert", "request", "-p", own / "me.yml", "--out", own / "req")
        (request,) = (own / "req").glob("*.request.zip")
        signed = own / f"{name}.signed.zip"
        days = ("--valid-days", SHORT)
        self._nvflare("cert", "approve", request, "-c", self.root, "--profile", self._profile, "--out", signed, *days)
        package = ("package", signed, "--request-dir", own / "req", "--fingerprint", self.fingerprint)
        self._nvflare(*package, "-w", own / "ws")
        target = self.folder / "kits" / name
        make_folder(target.parent)
        shutil.move(own / "ws" / PROJECT / "prod_00" / name, target)
        shutil.rmtree(own)  # the other copies of the key
        return read_kit(target)

    @property
    def fingerprint(self) -> str:
        """Of the root's certificate, SHA-256."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        root = x509.load_pem_x509_certificate((self.root / "rootCA.pem").read_bytes())
        return "SHA256:" + ":".join(f"{byte:02X}" for byte in root.fingerprint(hashes.SHA256()))

    def _nvflare(self, *arguments: object) -> None:
        home = self.folder / "home"
        make_folder(home)
        line = [sys.executable, "-c", "from nvflare.cli import main; main()", *map(str, arguments)]
        called(line, f"nvflare {arguments[0]}", self.folder, {"HOME": str(home)})
