"""What a hub asks the sites to train: one run of an experiment, in plain values, and a site's place in it."""

from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

PROTOCOL = 1
"""The version of the messages; hub and sites must have the same."""
VERSION = version("idiolect")
STUDY_ID = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,40}-[0-9a-f]{8}$"
"""A study's id, which is also the name of a folder at the sites."""
TRANSPORT = ("job", "call", "seconds")
"""The fields of a call that say how it travels. Every other field determines the answer: a new one, too."""


class Terms(BaseModel):
    """One run. Sites check it against what their own configuration allows.

    run: its id; method, model: complete specifications; kind: what the data are, see `deploy.kind`; metric, splits:
    what evaluations measure. seed decides all random draws. study: the id of the study to which the run belongs;
    approved: the digest of that study, see `deploy.study`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    run: str = Field(min_length=1)
    method: dict[str, Any]
    model: dict[str, Any]
    kind: dict[str, Any]
    seed: int = Field(ge=0)
    rounds: int = Field(ge=1)
    cohort: float | None = Field(default=None, gt=0)
    sampling: Literal["fixed", "binomial"] = "fixed"
    metric: str = ""
    splits: tuple[Literal["train", "validation", "test"], ...] = ("train", "test")
    study: str = ""
    approved: str = ""

    @property
    def method_name(self) -> str:
        """The method's name."""
        return str(self.method.get("name", ""))


class Place(BaseModel):
    """A site's place in the federation, and what the hub announces to all: see `client.Federation`.

    id: its client number. clients: N. samples: training samples of all sites. cohort: S. neighbours: of a method that
    is run by neighbours, their names with the weights of the edges; None for one that the hub aggregates.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: int = Field(ge=0)
    clients: int = Field(ge=1)
    samples: int = Field(ge=1)
    cohort: float = Field(gt=0)
    neighbours: dict[str, Annotated[float, Field(allow_inf_nan=False)]] | None = None
