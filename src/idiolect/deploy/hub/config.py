"""A hub's own configuration, and its counter of jobs."""

import json
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import ConfigError, StoreError, first_of, reason_of
from idiolect.core.files import json_of, write_text
from idiolect.deploy.alerts import Alert
from idiolect.deploy.hub.guard import FEWEST, GuardSettings
from idiolect.deploy.kind import Kind
from idiolect.deploy.terms import STUDY_ID

FILE = "hub.json"
JOBS = "hub-jobs.json"


class HubConfig(BaseModel):
    """A hub. sites: all sites' names; a site's place in the list is its client number, so that it never changes.

    experiment: see `study.experiment.Experiment`. kind: what the data are, see `deploy.kind`; None until the sites
    have agreed on a schema, by `table`: how they read their tables, see `agreement`. deadline: seconds of a
    round; starting: seconds that a site may take to load its data and to compile. quorum: answers that a round needs
    at least (None: half of the cohort, rounded up). tries: how often a round without quorum is called. patience:
    after so many calls without an answer a site is called only in every tenth round. left: sites that have left for
    good. study: the study's id, see `deploy.study`. agree: whether the sites agree on the kind, which is then no part
    of the study; agreed_by: the sites that did. again: how often a site may be asked again for a round or an
    evaluation, with other numbers than before (None: see `plan.repeats`). starts: run -> how often it was started
    again, see `hub.forget`. alert: the command for events, see `alerts`. guard: what the hub refuses, see
    `guard.GuardSettings`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    study: str = Field(default="", pattern=rf"^$|{STUDY_ID}")
    experiment: dict[str, Any]
    kind: dict[str, Any] | None
    agree: bool = False
    agreed_by: tuple[str, ...] = ()
    starts: dict[str, int] = Field(default_factory=dict[str, int])
    table: dict[str, Any] = Field(default_factory=dict[str, Any])
    sites: tuple[str, ...] = Field(min_length=1)
    left: tuple[str, ...] = ()
    deadline: float = Field(default=60.0, gt=0)
    starting: float = Field(default=120.0, gt=0)
    quorum: int | None = Field(default=None, ge=1)
    tries: int = Field(default=3, ge=1)
    patience: int = Field(default=3, ge=1)
    again: int | None = Field(default=None, ge=0)
    alert: Alert = Alert()
    guard: GuardSettings = GuardSettings()

    @property
    def present(self) -> tuple[str, ...]:
        """The sites that have not left for good."""
        return tuple(site for site in self.sites if site not in self.left)

    def needed(self, cohort: int) -> int:
        """Return how many of so many sites must answer: `quorum`, by default half, rounded up.

        Of a cohort with fewer sites than the quorum (some have left, or few were drawn) all must answer.
        """
        return min(self.quorum or (cohort + 1) // 2, cohort)

    @property
    def agreed(self) -> Kind:
        """What the data are. Raises `ConfigError` if the sites have not agreed yet."""
        if self.kind is None:
            raise ConfigError("the sites have not agreed on a schema yet; 'idiolect hub run' lets them")
        return Kind.from_dict(self.kind)

    def check(self) -> None:
        """Raise `ConfigError` if two sites have one name, or there are too few sites for a round or for `robust`."""
        twice = [site for site in self.sites if self.sites.count(site) > 1]
        if twice:
            raise ConfigError(f"two sites are called '{twice[0]}'; give each its own name")
        if (self.quorum or 0) > len(self.present):
            raise ConfigError(
                f"--quorum {self.quorum}: there are {len(self.present)} sites; a round needs at most all"
            )
        if self.guard.robust is not None and len(self.present) < FEWEST:
            raise ConfigError(
                f"guard.robust needs {FEWEST} sites, and there are {len(self.present)}: of two nobody knows which "
                "one is wrong; remove guard.robust from hub.json"
            )

    def save(self, folder: Path) -> None:
        """Write folder/hub.json. Raises `ConfigError` as `check` does."""
        self.check()
        write_text(folder / FILE, json.dumps(self.model_dump(mode="json"), indent=1))

    @classmethod
    def load(cls, folder: Path) -> "HubConfig":
        """Read folder/hub.json. Raises `ConfigError` in one line if it is missing or wrong, see `check`."""
        path = folder / FILE
        try:
            config = cls.model_validate_json(path.read_bytes())
            config.check()
            return config
        except FileNotFoundError:
            raise ConfigError(f"{path} is missing; make it with 'idiolect hub init'") from None
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {reason_of(error)}") from None
        except ValidationError as error:
            raise ConfigError(f"{path}: {first_of(error)}") from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None


def next_job(folder: Path) -> int:
    """The number of this hub's next job, durably: sites obey only the newest.

    It is the time in seconds, or one more than the last number. So the jobs of a new study on the same sites, and of
    a folder that was restored from a backup, are newer than all jobs before.
    """
    path = folder / JOBS
    try:
        last = int(json_of(path.read_bytes())["job"]) if path.is_file() else 0
        job = max(last + 1, int(time.time()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"cannot read {path}: {error}") from None
    write_text(path, json.dumps({"job": job}))
    return job
