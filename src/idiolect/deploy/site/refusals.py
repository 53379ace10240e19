"""The lines in a site's log about calls that it refused."""

import logging
from collections import Counter

MANY = 1000
"""Different refusals that are counted at once."""
_LOG = logging.getLogger("idiolect.site")


class RefusalLog:
    """Logs the first, tenth, hundredth ... of equal refusals: many must not push other lines out of the log."""

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def note(self, line: str) -> None:
        """Count a refusal, and log it if its count is a power of ten."""
        self._counts[line] += 1
        count = self._counts[line]
        if str(count).strip("0") == "1":
            _LOG.warning("%s%s", line, "" if count == 1 else f" ({count} times so far)")
        if len(self._counts) > MANY:
            self._counts.clear()
