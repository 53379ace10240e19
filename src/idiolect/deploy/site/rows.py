"""The digest of a site's training rows: whether they are those with which the site joined a study.

It is salted with a number that only the site has, so that nobody who knows a digest can test a guess of the rows: the
hub learns whether they have changed, and nothing else. It depends on the rows as they are encoded, in their order,
with their labels.

This module imports no JAX: the process that talks to the network keeps the digests, and the trainer computes them.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from idiolect.core.errors import DataError, StoreError, os_errors_as
from idiolect.core.files import json_of, write_text
from idiolect.core.rights import make_folder
from idiolect.deploy.messages import Vector, digest_of

FILE = "rows.json"


def digest_of_rows(salt: str, arrays: Iterable[Vector]) -> str:
    """A salted sha256 (HMAC) over arrays: types, shapes, bytes. salt: hex digits."""
    content = digest_of({str(place): array for place, array in enumerate(arrays)})
    return hmac.new(bytes.fromhex(salt), content.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Rows:
    """What a site notes of its training rows in one study.

    salt: hex digits, drawn here. digest: of the rows with which it joined, "" before; kind: as which they were
    encoded, see `deploy.kind`.
    """

    salt: str
    digest: str = ""
    kind: dict[str, Any] | None = None

    @classmethod
    def load(cls, folder: Path) -> "Rows":
        """Read a study's folder; with a new salt if it has none. Raises `StoreError` for a damaged file."""
        path = folder / FILE
        try:
            values = json_of(path.read_bytes())
            bytes.fromhex(values["salt"])
            return cls(values["salt"], str(values["digest"]), values["kind"])
        except FileNotFoundError:
            return cls(secrets.token_hex(32))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"cannot read {path} ({error}); restore it from a backup") from None

    def save(self, folder: Path) -> None:
        """Write it into a study's folder. Raises `StoreError` if that fails."""
        with os_errors_as(f"cannot write to '{folder}'"):
            make_folder(folder)
        write_text(folder / FILE, json.dumps({"salt": self.salt, "digest": self.digest, "kind": self.kind}))

    def check(self, digest: str, study: str) -> None:
        """Raise `DataError` if rows with this digest are others than those with which the site joined."""
        if self.digest and not hmac.compare_digest(self.digest, digest):
            raise DataError(changed(study))


def changed(study: str) -> str:
    """The refusal of a site whose rows have changed."""
    return (
        f"this site's training rows have changed since it joined study '{study}': restore them, or let the site's "
        f"administrator accept the change with 'idiolect site accept-changes KIT {study or 'STUDY'}'"
    )


def accept_changes(folder: Path) -> bool:
    """Let a site join a study again with other rows; False if it has not joined. Raises `StoreError`."""
    rows = Rows.load(folder)
    if not rows.digest:
        return False
    Rows(rows.salt).save(folder)
    return True
