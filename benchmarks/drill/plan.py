"""What happens in the drill, to whom, and after which round."""

from collections.abc import Mapping
from dataclasses import dataclass

FEWEST = 6
"""Sites: three at least must remain, and each of three leaves for a reason of its own or joins late."""


@dataclass(frozen=True)
class Cast:
    """The sites, and the part that each plays. Of few sites, the liar is the one whose certificate is revoked."""

    sites: tuple[str, ...]

    @classmethod
    def of(cls, sites: int) -> "Cast":
        """site-1, site-2, ..."""
        return cls(tuple(f"site-{number}" for number in range(1, sites + 1)))

    @property
    def late(self) -> str:
        """Joins a run that has begun."""
        return self.sites[-1]

    @property
    def leaver(self) -> str:
        """Leaves, and is forgotten."""
        return self.sites[-2]

    @property
    def liar(self) -> str:
        """Sends messages that are out of scale."""
        return self.sites[-3]

    @property
    def dropout(self) -> str:
        """Dies without a word."""
        return self.sites[-4]

    @property
    def revoked(self) -> str:
        """Its certificate is revoked."""
        return self.liar if len(self.sites) == FEWEST else self.sites[-5]

    @property
    def first(self) -> tuple[str, ...]:
        """The sites at the beginning."""
        return self.sites[:-1]

    @property
    def honest(self) -> tuple[str, ...]:
        """The sites of the run that do not lie."""
        return tuple(site for site in self.sites if site not in (self.leaver, self.liar))

    @property
    def parts(self) -> Mapping[str, str]:
        """Site -> its part; the others take part to the end."""
        parts = {self.late: "joins late", self.leaver: "leaves and is forgotten", self.liar: "lies"}
        parts[self.dropout] = "drops out"
        parts[self.revoked] = f"{parts[self.revoked]}, is revoked" if self.revoked in parts else "is revoked"
        return parts


EVENTS = (
    (0.10, "forget", "a site leaves and is forgotten"),
    (0.20, "join", "a late site joins"),
    (0.30, "begin_to_lie", "a site begins to lie"),
    (0.40, "kill_hub", "the hub's processes are killed"),
    (0.50, "revoke", "a certificate is revoked"),
    (0.64, "renew", "all certificates are renewed"),
    (0.84, "drop", "a site drops out"),
    (0.92, "kill_all_of_hub", "the hub's processes and the command that supervises them are killed"),
)
"""(share of the rounds, the method of `Drill`, what happens)"""


@dataclass(frozen=True)
class Size:
    """How large a drill is. pace: seconds by which the first site delays each answer; deadline: of a round.

    hold: while a step is prepared, the first site delays its answer for up to so many seconds, so that the step
    happens after the round that is planned.
    """

    sites: int = 10
    rounds: int = 500
    eval_every: int = 50
    deadline: float = 30.0
    hold: float = 20.0
    pace: float = 0.0

    def after(self, share: float) -> int:
        """The round after which an event at this share of the rounds happens."""
        return max(int(share * self.rounds), 1)


SMALL = Size(FEWEST, 30, 10, pace=0.5)
