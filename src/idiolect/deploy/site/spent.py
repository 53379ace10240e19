"""How many replies of a run a site has computed so far, durably: its floors bound them.

Only what is computed counts. A repeated request that gets the reply of before is free.
"""

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write
from idiolect.core.rights import make_folder

FILE = "spent.json"


class Spent(BaseModel):
    """rounds, evaluations: replies that the site has begun to compute in one run."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    rounds: int = Field(default=0, ge=0)
    evaluations: int = Field(default=0, ge=0)

    @classmethod
    def load(cls, folder: Path) -> "Spent":
        """Read the counts of a run's folder; all 0 without a file. Raises `StoreError` if it is damaged."""
        path = folder / FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return cls()
        except (OSError, ValidationError):
            raise StoreError(f"cannot read {path}; restore it from a backup, or remove the run's folder") from None

    def add(self, folder: Path, rounds: int = 0, evaluations: int = 0) -> "Spent":
        """Count more, and write it before anything is computed. Raises `StoreError` if that fails."""
        more = Spent(rounds=self.rounds + rounds, evaluations=self.evaluations + evaluations)
        try:
            make_folder(folder)
        except OSError as error:
            raise StoreError(f"cannot write to '{folder}': {error.strerror or error}") from error
        with atomic_write(folder / FILE) as file:
            file.write(json.dumps(more.model_dump()).encode())
        return more
