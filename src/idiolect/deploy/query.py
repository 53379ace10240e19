"""Queries: studies in which nothing is trained. Sites score one model for a hub, or describe their tables to it.

A query is a file as a study is (`deploy.study`): the hub's administrator hands it to the sites, and each site's
administrator approves it by its digest. A site answers a query with sums, see `site.queries`. This module imports no
JAX, because the process that talks to the network reads queries.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from idiolect.core.errors import ConfigError, first_of
from idiolect.core.files import json_of, write_text
from idiolect.deploy.messages import digest_of_values
from idiolect.deploy.study import Strict, Study, content_of, shown
from idiolect.deploy.terms import STUDY_ID

SHA256 = r"^[0-9a-f]{64}$"


class Query(Strict):
    """What both kinds of query say.

    id: drawn once. sites: those that are asked. answers: how often a site answers at most.
    """

    version: Literal[1] = 1
    id: str = Field(pattern=STUDY_ID)
    sites: tuple[str, ...] = Field(min_length=1)
    answers: int = Field(default=3, ge=1)

    @model_validator(mode="after")
    def _once(self) -> "Query":
        twice = [site for site in self.sites if self.sites.count(site) > 1]
        if twice:
            raise ValueError(f"sites: '{shown(twice[0])}' is named twice")
        return self

    @property
    def present(self) -> tuple[str, ...]:
        """The sites that are asked."""
        return self.sites

    @property
    def digest(self) -> str:
        """A sha256 of all of it: equal exactly when two queries are."""
        return digest_of_values(self.model_dump(mode="json"))

    @property
    def question(self) -> dict[str, Any]:
        """All of it but the id: equal when two queries ask the same."""
        return self.model_dump(mode="json", exclude={"id"})

    def save(self, path: Path) -> None:
        """Write the file. Raises `StoreError` if it cannot be written."""
        write_text(path, json.dumps(self.model_dump(mode="json"), indent=1) + "\n")


class ScoredModel(Strict):
    """The model file that sites score. sha256, bytes: of the whole file; numbers: its parameters.

    name: the file's name. model: how the zoo builds it; None for boosted trees.
    """

    name: str = Field(min_length=1)
    sha256: str = Field(pattern=SHA256)
    bytes: int = Field(ge=1)
    numbers: int = Field(ge=0)
    model: dict[str, Any] | None


class ScoreStudy(Query):
    """Sites score one model file on their rows. kind: the data that the model takes; metric: names, with commas."""

    purpose: Literal["score"] = "score"
    model: ScoredModel
    kind: dict[str, Any]
    metric: str
    splits: tuple[Literal["train", "validation", "test"], ...] = Field(default=("test",), min_length=1)


class DescribeStudy(Query):
    """Sites describe the columns of their training rows. table: how tables are read; see `study.ASKED`."""

    purpose: Literal["describe"] = "describe"
    table: dict[str, Any]


def _purpose(value: Any) -> str:
    """Which kind of study a value is."""
    named = value.get("purpose") if isinstance(value, dict) else getattr(value, "purpose", None)
    return named if named in ("score", "describe") else "train"


AnyStudy = Annotated[
    Annotated[Study, Tag("train")] | Annotated[ScoreStudy, Tag("score")] | Annotated[DescribeStudy, Tag("describe")],
    Discriminator(_purpose),
]
"""All that an administrator can approve."""


def load_study(path: Path) -> Study | ScoreStudy | DescribeStudy:
    """Read a study's or a query's file. Raises `ConfigError` in one line, as `Study.load` does."""
    content = content_of(path)
    try:
        values = json_of(content)
        purpose = _purpose(values)
        if purpose != "train" and values.get("version", 1) == 1:
            return (ScoreStudy if purpose == "score" else DescribeStudy).model_validate(values)
    except ValidationError as error:
        reason = first_of(error)
    except ValueError as error:
        reason = f"it is not JSON ({error})"
    else:
        if purpose == "train":
            return Study.of_json(content, str(path))
        reason = f"it is of version {values['version']}, and this idiolect reads version 1"
    raise ConfigError(f"{path} is no study: {shown(reason, 200)}; ask the hub for it again")
