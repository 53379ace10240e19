"""A site's own configuration: its data, and what it allows a hub to ask."""

import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import ConfigError, DataError, first_of
from idiolect.core.files import toml_of, write_text
from idiolect.deploy.alerts import Alert
from idiolect.deploy.messages import Message
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.terms import Terms

FILE = "site.toml"


class Allowed(BaseModel):
    """What a hub may ask of the site.

    methods: by name; "all" for every method. evaluation: whether sums of its scores may leave. summaries: whether
    sums of its columns may leave, to agree on a schema or to describe them. per_site: whether a description may be
    shown as this site's, and not only in sums over sites. neighbours: sites with which it may exchange models in a
    method without a server; "all" for every site. largest: bytes of a message in either direction. seconds: of one
    call. How much must be behind the data sent is in `Floors`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    methods: tuple[str, ...] = ("all",)
    evaluation: bool = True
    summaries: bool = False
    per_site: bool = False
    neighbours: tuple[str, ...] = ("all",)
    largest: int = Field(default=200_000_000, ge=1)
    seconds: float = Field(default=600.0, gt=0)

    def check_terms(self, terms: Terms) -> None:
        """Raise `DataError` for a run that is not allowed."""
        if "all" not in self.methods and terms.method_name not in self.methods:
            raise DataError(
                f"method '{terms.method_name}' is not allowed here (allowed: {', '.join(self.methods) or 'none'})"
            )

    def check_neighbour(self, name: str) -> None:
        """Raise `DataError` for a neighbour that is not allowed."""
        if "all" not in self.neighbours and name not in self.neighbours:
            raise DataError(f"site '{name}' is not allowed as a neighbour here")

    def check_size(self, message: Message, what: str) -> None:
        """Raise `DataError` for a message that is too large."""
        if message.size > self.largest:
            raise DataError(f"{what} has {message.size:,} bytes; at most {self.largest:,} are allowed here")


class SiteConfig(BaseModel):
    """A site.

    data: see `site.data.OwnData`; floors: see `Floors`; environment: more variables for its trainer; alert: see
    `alerts`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = Field(min_length=1)
    data: dict[str, Any]
    allow: Allowed = Allowed()
    floors: Floors = Floors()
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    alert: Alert = Alert()

    def save(self, folder: Path) -> None:
        """Write folder/site.toml."""
        write_text(folder / FILE, tomli_w.dumps(self.model_dump(mode="json", exclude_none=True)))

    @classmethod
    def load(cls, folder: Path) -> "SiteConfig":
        """Read folder/site.toml. Raises `ConfigError` in one line if it is missing or wrong."""
        path = folder / FILE
        try:
            values = toml_of(path.read_text(encoding="utf-8"))
            if isinstance(values.get("allow"), dict) and "rarest" in values["allow"]:
                raise ConfigError(f"{path}: allow.rarest is floors.count now: move it to [floors] as count")
            return cls.model_validate(values)
        except FileNotFoundError:
            raise ConfigError(f"{path} is missing; make it with 'idiolect site init'") from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {path}: {error}") from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{path} is not valid TOML: {error}") from None
        except ValidationError as error:
            raise ConfigError(f"{path}: {first_of(error)}") from None
