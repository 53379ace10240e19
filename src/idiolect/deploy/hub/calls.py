"""A hub's calls of one job: which sites are called, and calls numbered so that a site obeys only the newest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Joined, Request
from idiolect.deploy.messages import Message, Vectors
from idiolect.deploy.transport import HubTransport, Replies

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


MARGIN = 0.9
"""The share of a deadline that a site may compute: the answer must travel, too."""


@dataclass
class Call:
    """A way to call sites. job, number: of the newest call; refused: sites that are never called, and why."""

    transport: HubTransport
    job: int
    number: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(
        self,
        requests: Mapping[str, Request],
        vectors: Mapping[str, Vectors] | None = None,
        *,
        round: int,
        deadline: float,
    ) -> Replies:
        """Send each site its request, and its vectors if it has any, with this job's next number."""
        self.number += 1
        ticket = {"job": self.job, "call": self.number, "round": round, "seconds": MARGIN * deadline}
        reached = {*self.transport.sites} - {*self.refused}
        sent = {
            site: request.model_copy(update=ticket).message((vectors or {}).get(site))
            for site, request in requests.items()
            if site in reached
        }
        absent = {s: self.refused.get(s, "not connected") for s in requests if s not in reached}
        got = self.transport.call(round, sent, deadline=deadline) if sent else Replies()
        return Replies(got.replies, {**absent, **got.missing}, frozenset(sent))
