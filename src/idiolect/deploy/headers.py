"""The headers of messages between hub, site and trainer: each is a type, written and read here.

A header has only the fields that its sender has set, as JSON values. What a receiver cannot read is a `DataError`
that names the field and what is wrong with it.
"""

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from idiolect.core.errors import DataError, first_of
from idiolect.deploy.messages import Message, Vectors
from idiolect.deploy.terms import Place, Terms

Whole = Annotated[int, Field(ge=0, strict=True)]
Used = Annotated[int, Field(ge=-1, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]

H = TypeVar("H", bound="Header")


class Header(BaseModel):
    """The header of a kind of message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def message(self, vectors: Vectors | None = None) -> Message:
        """A message with this header and these vectors."""
        return Message(self.model_dump(mode="json", exclude_unset=True), vectors or {})

    @classmethod
    def of(cls: type[H], message: Message, what: str) -> H:
        """The header of a message. Raises `DataError` with the first wrong field and why. what: what was sent."""
        try:
            return cls.model_validate(message.header)
        except ValidationError as error:
            raise DataError(f"{what} cannot be read: {first_of(error)}") from None


class Grid(BaseModel):
    """Where the histogram of a column lies, read so; see `schema.describe.cells`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    reading: str
    start: Number
    width: Annotated[float, Field(allow_inf_nan=False, strict=True, gt=0)]


class Request(Header):
    """A call of a site by its hub, or of a trainer by its site.

    task: what to do. run, terms: what is trained; place: the site's place in it. used: the round in which the hub
    last used an answer of this site (-1: none); good: the values of `used` to which the hub may return; start: how
    often the run was started again without a site that is forgotten. study, approved: the id and the digest of a
    study, in a call without terms. names: the models to score or to write. table: how to read the site's table,
    before there is a schema. query: what a trainer is asked, see `deploy.query`; grids: of a description's
    histograms. revoked: sites that the hub refuses, with its greeting. job, call, round, seconds: which call it is,
    and its deadline; see `hub.calls`. salt, rows: only from a site to its trainer, see `site.rows`; a hub's are
    ignored.
    """

    task: str
    run: str = ""
    terms: Terms | None = None
    place: Place | None = None
    used: Used = -1
    good: tuple[Used, ...] = ()
    start: Whole = 0
    study: str = ""
    approved: str = ""
    names: tuple[str, ...] = ()
    table: dict[str, Any] = Field(default_factory=dict[str, Any])
    revoked: tuple[str, ...] = ()
    query: dict[str, Any] = Field(default_factory=dict[str, Any])
    grids: dict[str, Grid] = Field(default_factory=dict[str, Grid])
    job: Whole = 0
    call: Whole = 0
    round: Whole = 0
    seconds: Number | None = None
    salt: str = ""
    rows: str = ""

    @property
    def its_terms(self) -> Terms:
        """The terms. Raises `DataError` if the call has none."""
        if self.terms is None:
            raise DataError(f"the call '{self.task}' names no terms of a run")
        return self.terms

    @property
    def its_place(self) -> Place:
        """The site's place. Raises `DataError` if the call has none."""
        if self.place is None:
            raise DataError(f"the call '{self.task}' names no place of the site")
        return self.place

    def passed_on(self, task: str, **more: Any) -> "Request":
        """What the site's trainer is asked for a part of this call: without what only the site needs, and more."""
        given = {name: getattr(self, name) for name in _TRAINER if name in self.model_fields_set} | more
        return Request.model_construct({"task", *given}, task=task, **given)


_TRAINER = ("terms", "place", "round", "names", "table")


class Greeting(Header):
    """A site's answer to "hello"; one of another version may say more.

    expires: until when its certificate is valid, as text in UTC; "" if the site has none.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    name: str
    protocol: int
    version: str
    expires: str = Field(default="", max_length=40)


class Joined(Header):
    """A site's answer to "join": a split's name -> the number of the site's samples in it.

    rows: the salted digest of its training rows, see `site.rows`.
    """

    samples: dict[str, Whole]
    rows: str = Field(default="", max_length=64)


class Summed(Header):
    """A site's answer to "summary": sums and names of its columns, see `schema.summary`."""

    summary: dict[str, Any]


class Columns(Header):
    """A site's answer to "describe": its columns, see `schema.describe`; may_show: whether the hub may show them as
    this site's, and not only in sums over sites."""

    summary: dict[str, Any]
    may_show: bool = False


class Histograms(Header):
    """A site's answer to "histograms": column -> (low, high, rows) of each cell; None for an open end."""

    cells: dict[str, tuple[tuple[Number | None, Number | None, Whole], ...]]


class Begun(Header):
    """A site's answer to "begin": whether it had no state of the run yet."""

    begun: bool


class Met(Header):
    """A site's answer to a round; empty without neighbours.

    exchange_seconds: spent on the exchange; exchanged: bytes (received, sent); missing: neighbours without a usable
    message, and why.
    """

    exchange_seconds: Number = 0.0
    exchanged: tuple[Whole, Whole] = (0, 0)
    missing: dict[str, str] = Field(default_factory=dict[str, str])


class Score(Header):
    """A model's score on one split. values: metric -> (numerator, denominator)."""

    count: Whole
    loss: Number
    values: dict[str, tuple[Number, Number]]


class Scored(Header):
    """A site's answer to "evaluate": model -> split -> score; empty if the site does not let them leave.

    withheld: the splits that have no score because of the site's floors, and why.
    """

    scores: dict[str, dict[str, Score]] = Field(default_factory=dict[str, dict[str, Score]])
    withheld: dict[str, str] = Field(default_factory=dict[str, str])


class Finished(Header):
    """A site's answer to "finish"."""

    finished: bool


class Written(Header):
    """A trainer's answer to "models": the files that it has written."""

    written: tuple[str, ...]


class Looked(Header):
    """A trainer's answer to "look": what the data are, in words, and this process's memory in bytes."""

    data: str
    resident: Whole


class Risk(Header):
    """A trainer's answer to "risk": what a run's messages reveal of the site's rows, see `site.risk`.

    rows: training rows of the site. step, message_rows: the fewest rows of a step, and of a message; None if the
    method does not say. rank, largest_rank: of the update that was found, and that a message can have. found:
    training rows that the attacks have found; deviation: their largest error in standard deviations. refusal: of the
    site's floors.
    """

    method: str
    rows: Whole
    step: Whole | None = None
    message_rows: Whole | None = None
    rank: Whole = 0
    largest_rank: Whole = 0
    found: Whole = 0
    deviation: Number = 0.0
    verdict: str = ""
    refusal: str = ""
