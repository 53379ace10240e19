"""A hub's calls of one job: numbered, so that a site obeys only the newest."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from idiolect.deploy.messages import Message
from idiolect.deploy.transport import HubTransport, Replies

MARGIN = 0.9
"""The share of a deadline that a site may compute: the answer must travel, too."""


@dataclass
class Call:
    """A way to call sites. job, number: of the newest call; refused: sites that are never called, and why."""

    transport: HubTransport
    job: int
    number: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])

    def __call__(self, messages: Mapping[str, Message], *, round: int, deadline: float) -> Replies:
        """Send each site its message with this job's next number."""
        self.number += 1
        ticket = {"job": self.job, "call": self.number, "round": round, "seconds": MARGIN * deadline}
        reached = {*self.transport.sites} - {*self.refused}
        sent = {s: Message({**m.header, **ticket}, m.vectors) for s, m in messages.items() if s in reached}
        absent = {s: self.refused.get(s, "not connected") for s in messages if s not in reached}
        got = self.transport.call(round, sent, deadline=deadline) if sent else Replies()
        return Replies(got.replies, {**absent, **got.missing}, frozenset(sent))
