"""The transport's contract: how a hub reaches sites, and how sites reach their neighbours.

Whoever implements these two protocols carries idiolect between machines; nothing else knows the engine. A site is
reached by `Site.answer(message, caller, peer)`, which never raises: an error is a `Message` with `header["error"]`.
The transport must verify the caller first: only the hub's calls reach `Site.answer`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from idiolect.core.errors import IdiolectError
from idiolect.deploy.messages import Message


class QuorumError(IdiolectError):
    """Too few sites answered; the message names those that did not, and why."""


@dataclass(frozen=True)
class Replies:
    """Who answered, and why the others did not. sent: those to whom a message went out at all."""

    replies: dict[str, Message] = field(default_factory=dict[str, Message])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    sent: frozenset[str] = frozenset()

    def require(self, quorum: int, what: str) -> "Replies":
        """These replies. Raises `QuorumError` if they are fewer than `quorum`."""
        if len(self.replies) >= quorum:
            return self
        told = "; ".join(f"{site}: {why}" for site, why in sorted(self.missing.items())) or "nobody was asked"
        raise QuorumError(f"{what}: {len(self.replies)} of the {quorum} sites needed have answered ({told})")


class HubTransport(Protocol):
    """What a hub needs."""

    @property
    def sites(self) -> Sequence[str]:
        """The names of the sites that can be called now."""
        ...

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """Send each site its message, at the same time; return when all have answered, or after `deadline` seconds.

        A site that answers later is missing. A reply with an error counts as missing, with that reason.
        """
        ...


class PeerTransport(Protocol):
    """What a site needs to reach its neighbours, in the middle of a hub's call."""

    def expect(self, run: str, neighbours: Collection[str]) -> None:
        """From now on take messages of this run from these sites only; no neighbours: from nobody."""
        ...

    def exchange(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        """Send each neighbour its message, end-to-end encrypted; return theirs of this round.

        Messages belong together by `header["run"]` and round. Neighbours whose message has not come after `deadline`
        seconds are missing. Called again for the same round, messages that have come already are returned.
        """
        ...


def split_errors(answers: Mapping[str, Message], missing: Mapping[str, str]) -> Replies:
    """Count replies with an error as missing."""
    told = {site: answer.error for site, answer in answers.items() if answer.error}
    return Replies({s: a for s, a in answers.items() if not a.error}, {**missing, **told})
