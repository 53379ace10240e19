"""Keep what neighbours of a run in progress have sent to a site, until the site asks for it."""

import threading
from collections.abc import Collection, Iterable, Mapping

from idiolect.deploy.messages import Message

Key = tuple[str, int]  # run, round
KEPT = 4  # messages of one neighbour; it is at most one round ahead, whoever sends more replaces its own


class Inbox:
    """Messages by (run, round, caller), of the neighbours in the run that the hub has begun and of nobody else.

    Those of one caller are at most `KEPT`: nobody can fill another's memory.
    """

    def __init__(self) -> None:
        self._come, self._changed = dict[str, dict[Key, Message]](), threading.Condition()
        self._run, self._neighbours = "", frozenset[str]()

    @property
    def neighbours(self) -> frozenset[str]:
        """Who may send now."""
        return self._neighbours

    def expect(self, run: str, neighbours: Collection[str]) -> None:
        """Take messages of this run from these sites only, and drop all others; no neighbours: take none."""
        with self._changed:
            self._run, self._neighbours = run, frozenset(neighbours)
            for caller in list(self._come):
                self._come[caller] = {key: m for key, m in self._come[caller].items() if key[0] == run}
                if caller not in self._neighbours:
                    del self._come[caller]

    def put(self, caller: str, round: int, message: Message) -> bool:
        """Keep a message, in place of one of the same run, round and caller; False if it is not expected."""
        key = str(message.header.get("run", "")), round
        with self._changed:
            if caller not in self._neighbours or key[0] != self._run:
                return False
            kept = self._come.setdefault(caller, {})
            kept.pop(key, None)
            kept[key] = message
            while len(kept) > KEPT:
                del kept[next(iter(kept))]
            self._changed.notify_all()
            return True

    def wait(self, wanted: Mapping[str, Key], seconds: float) -> dict[str, Message]:
        """The wanted messages, as soon as all are there; after `seconds`, those that are. They stay in the inbox."""

        def come() -> dict[str, Message]:
            return {
                caller: self._come[caller][key] for caller, key in wanted.items() if key in self._come.get(caller, {})
            }

        with self._changed:
            self._changed.wait_for(lambda: len(come()) == len(wanted), seconds)
            return come()

    def forget(self, asked: Iterable[Key]) -> None:
        """Drop what can no longer be asked for: other runs, and rounds before the last but this."""
        first = dict(asked)
        with self._changed:
            for kept in self._come.values():
                for run, round in list(kept):
                    if run not in first or round < first[run] - 1:
                        del kept[run, round]
