"""A hub's calls of one job: which sites are called, and calls numbered so that a site obeys only the newest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Joined, Request
from idiolect.deploy.hub.received import Now, Received
from idiolect.deploy.messages import Message, Vectors, text_of
from idiolect.deploy.transport import Bounded, HubTransport, Replies

AGAIN = 10
"""A silent site is asked again in every tenth round."""

Counts = dict[str, int]
"""A split's name -> the number of a site's samples in it."""


@dataclass
class Roster:
    """The sites of one run. counts: in the order of client numbers; silent: calls in a row without an answer."""

    patience: int
    counts: dict[str, Counts] = field(default_factory=dict[str, Counts])
    silent: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def names(self) -> list[str]:
        """All sites, by client number."""
        return list(self.counts)

    def number(self, site: str) -> int:
        """A site's client number."""
        return self.names.index(site)

    def join(self, site: str, counts: Mapping[str, int]) -> None:
        """Note a site's counts. Raises `DataError` if it had others when it first joined this run."""
        known = self.counts.get(site)
        if known is not None and dict(known) != dict(counts):
            changed = [split for split in known if known[split] != counts.get(split)]
            raise DataError(
                f"its data have changed since the run began ({changed[0]}: {known[changed[0]]} samples then, "
                f"{counts.get(changed[0])} now); restore them, or begin a new run"
            )
        self.counts[site] = dict(counts)

    def asked(self, sites: Sequence[str], round: int) -> list[str]:
        """Those of these sites that are worth a call in this round."""
        return [s for s in sites if self.silent.get(s, 0) < self.patience or round % AGAIN == 0]

    def heard(self, answered: Iterable[str], missing: Iterable[str]) -> None:
        """Note who answered a call and who did not."""
        for site in answered:
            self.silent.pop(site, None)
        for site in missing:
            self.silent[site] = self.silent.get(site, 0) + 1


def joined_of(answer: Message) -> Joined:
    """What a site says of its samples. Raises `DataError` if that cannot be read."""
    return Joined.of(answer, "its numbers of samples")


SMALL = 16 << 20
"""Bytes of an answer that carries no message of a method: counts, scores, sums of columns."""
HEADER = 64 << 10
"""Bytes of an answer's header."""
NAMED = 256
"""Bytes by which an answer describes one vector, without its name."""
MARGIN = 0.9
"""The share of a deadline that a site may compute: the answer must travel, too."""


@dataclass
class Call:
    """A way to call sites.

    job, number: of the newest call; refused: sites that are never called, and why; received: notes all that comes;
    now: notes what is awaited; revoked: reads the list of revoked sites, each with why it is not called.
    """

    transport: HubTransport
    job: int
    number: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])
    received: Received | None = None
    now: Now | None = None
    revoked: Callable[[], dict[str, str]] | None = None

    def out(self) -> dict[str, str]:
        """The sites that were revoked, and why they are not called; somebody may revoke one while the job runs."""
        return {} if self.revoked is None else self.revoked()

    def __call__(
        self,
        requests: Mapping[str, Request],
        vectors: Mapping[str, Vectors] | None = None,
        *,
        round: int,
        deadline: float,
        most: int = SMALL,
    ) -> Replies:
        """Send each site its request, and its vectors if it has any, with this job's next number.

        most: bytes that an answer can have. A larger one counts as missing; a `Bounded` transport cuts it off.
        """
        self.number += 1
        if isinstance(self.transport, Bounded):
            self.transport.bound(most)
        ticket = {"job": self.job, "call": self.number, "round": round, "seconds": MARGIN * deadline}
        self.refused |= self.out()
        reached = {*self.transport.sites} - {*self.refused}
        sent = {
            site: request.model_copy(update=ticket).message((vectors or {}).get(site))
            for site, request in requests.items()
            if site in reached
        }
        absent = {s: self.refused.get(s, "not connected") for s in requests if s not in reached}
        if self.now is not None:
            self.now.write({site: requests[site] for site in sent}, ticket, deadline)
        got = self.transport.call(round, sent, deadline=deadline) if sent else Replies()
        large = {site: size for site, reply in got.replies.items() if (size := whole_size(reply)) > most}
        why = {site: f"its answer has {size:,} bytes; it can have at most {most:,}" for site, size in large.items()}
        replies = {site: reply for site, reply in got.replies.items() if site not in large}
        answers = Replies(replies, {**absent, **got.missing, **why}, frozenset(sent), got.seconds)
        if self.received is not None:
            self.received.write({site: requests[site] for site in sent}, ticket, answers)
        return answers


def whole_size(message: Message) -> int:
    """Bytes of a message: its vectors, and its header as text."""
    return message.size + len(text_of(dict(message.header)))


def most_of(vectors: Mapping[str, int]) -> int:
    """Bytes that an answer with these vectors (name -> bytes) can have at most."""
    return sum(vectors.values()) + sum(NAMED + len(name) for name in vectors) + HEADER
