"""The bytes that a hub's job takes from each site in one call: what is more is dropped before it is put together.

The engine sends every answer as streams of parts of 1 MB, and names a stream's size in its parts' headers. An answer
larger than `carriers.INSIDE` is fetched in several streams. `Meter` sees each part before the engine keeps it. A
stream that names a larger size is refused at its first part, and one that is longer than it says at the part that
exceeds the limit. Its sender is notified, so that an honest engine stops.

What remains: the engine has a part in memory before this module sees it. A site with a changed engine can continue
sending parts, which cost the hub's network and nothing of its memory.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from idiolect.core.errors import StoreError

SLACK = 4 << 20
"""Bytes above the limit that a call may take: names, encryption, and the engine's own messages."""
LATE = 3
"""Answers of the largest size that one site may send in a call: earlier ones may arrive late."""


class TooLarge(Exception):
    """A site has sent more bytes than an answer can have."""

    def __init__(self, most: int) -> None:
        super().__init__(f"sent more than {most:,} bytes, the most that this answer can have; it was cut off")


def _nothing(site: str, why: TooLarge) -> None:
    del site, why


class Meter:
    """Counts and limits the bytes of streams to this process by their sender.

    cell: the engine's end of the network in this process. Raises `StoreError` if the engine takes no such filter.
    """

    def __init__(self, cell: Any) -> None:
        from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
        from nvflare.fuel.f3.message import Message
        from nvflare.fuel.f3.streaming.stream_const import STREAM_CHANNEL, STREAM_DATA_TOPIC, StreamHeaderKey
        from nvflare.fuel.f3.streaming.stream_types import StreamError

        self._keys = MessageHeaderKey.ORIGIN, StreamHeaderKey.STREAM_ID, StreamHeaderKey.SIZE
        self._empty, self._error = Message, StreamError
        self._lock, self._most = threading.Lock(), 0
        self._open = frozenset[str]()
        self._cut: set[str] = set()
        self._whole, self._streams = defaultdict[str, int](int), defaultdict[tuple[str, Any], int](int)
        self._over: Callable[[str, TooLarge], None] = _nothing
        try:
            self._reject = cell.byte_receiver.reject
            cell.core_cell.add_incoming_filter(STREAM_CHANNEL, STREAM_DATA_TOPIC, self.filter)
        except AttributeError as error:
            raise StoreError(f"this engine cannot limit messages ({error}); nvflare 2.9 is needed") from None

    def begin(self, sites: Collection[str], most: int, over: Callable[[str, TooLarge], None]) -> None:
        """Begin a call: count anew. over: called once with a site that exceeds `most` bytes, from another thread."""
        with self._lock:
            self._open, self._most, self._over = frozenset(sites), most, over
            self._cut.clear()
            self._whole.clear()
            self._streams.clear()

    def filter(self, message: Any) -> Any:
        """None for a part that the engine shall keep; an empty message, which ends its delivery, for another one."""
        origin, stream, named = (message.get_header(key) for key in self._keys)
        site = str(origin).partition(".")[0]
        if site not in self._open:
            return None
        size = len(message.payload) if message.payload is not None else 0
        with self._lock:
            limit = self._most + SLACK
            self._whole[site] += size
            self._streams[site, stream] += size
            claimed = named if isinstance(named, int) else 0
            large = max(claimed, self._streams[site, stream]) > limit or self._whole[site] > LATE * limit
            if not large and site not in self._cut:
                return None
            first, over, most = site not in self._cut, self._over, self._most
            self._cut.add(site)
        if first:
            over(site, TooLarge(most))
        if large:
            self._reject(message, self._error("larger than an answer can be"))
        return self._empty()
