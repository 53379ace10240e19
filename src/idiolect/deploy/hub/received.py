"""What a hub notes of its calls: every message that it received with its hash, what it awaits now, and greetings."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from idiolect.core.errors import os_errors_as
from idiolect.core.files import json_of, write_text
from idiolect.core.rights import private
from idiolect.deploy.events import now
from idiolect.deploy.headers import Greeting, Request
from idiolect.deploy.messages import Vectors, append_lines, digest_of, digest_of_values, lines_of, size_of
from idiolect.deploy.transport import Replies

FILE, NOW, GREETINGS = "received.jsonl", "now.json", "greetings.json"


class Received:
    """An append-only file: a line for each message that the hub received from a site.

    A line has the same hash of the vectors as the line in the site's `sent.jsonl`, and a hash of the header that the
    site's log has in full. So an audit can compare both logs without the messages.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE

    def write(self, requests: Mapping[str, Request], ticket: Mapping[str, Any], got: Replies) -> None:
        """Add a line for each site that was called, and why it did not answer if so.

        Args:
            requests: site -> what it was asked.
            ticket: the call's numbers, see `Call`.
            got: what has come.

        Raises:
            StoreError: if the file cannot be written.
        """
        time, lines = now(), list[dict[str, Any]]()
        for site, request in requests.items():
            about = {"time": time, "site": site, "task": request.task, "run": request.run}
            about |= {name: ticket[name] for name in ("round", "job", "call")}
            if site in got.replies:
                reply = got.replies[site]
                about |= {"seconds": round(got.seconds.get(site, 0.0), 3), "bytes": reply.size}
                about |= {"sha256": digest_of(reply.vectors) if reply.vectors else ""}
                about |= {"header_sha256": digest_of_values(dict(reply.header))}
            else:
                about |= {"error": got.missing.get(site, "no answer")}
            lines.append(about)
        with os_errors_as(f"cannot write {self.path}"):
            append_lines(self.path, lines)

    def lines(self) -> Iterator[dict[str, Any]]:
        """All lines; one that a crash has cut off is left out."""
        return (line for line in lines_of(self.path) if "site" in line)


def per_site(sent: Mapping[str, Vectors], got: Replies) -> dict[str, dict[str, float]]:
    """Seconds and bytes of each site that was called in a round; no seconds for one that did not answer.

    Args:
        sent: site -> the vectors that went to it.
        got: what has come.
    """
    found = dict[str, dict[str, float]]()
    for site in sorted(got.sent):
        reply = got.replies.get(site)
        found[site] = {"bytes_down": size_of(sent.get(site, {})), "bytes_up": 0 if reply is None else reply.size}
        if site in got.seconds:
            found[site]["seconds"] = round(got.seconds[site], 3)
    return found


class Now:
    """A small file that says which call a hub's job waits for; other processes read it with `read_now`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NOW

    def write(self, requests: Mapping[str, Request], ticket: Mapping[str, Any], deadline: float) -> None:
        """Note a call before it is made. A file that cannot be written is no error: it is for onlookers only."""
        tasks = sorted({request.task for request in requests.values()})
        runs = sorted({request.run for request in requests.values()})
        about = {"time": now(), "task": ", ".join(tasks), "run": ", ".join(runs), "sites": sorted(requests)}
        content = {**about, "round": ticket["round"], "job": ticket["job"], "deadline": deadline}
        scratch = self._path.with_name(f".{NOW}.{os.getpid()}.tmp")
        with suppress(OSError):
            with open(scratch, "w", encoding="utf-8", opener=private) as file:
                json.dump(content, file)
            os.replace(scratch, self._path)

    def close(self) -> None:
        """Remove the file: the job has ended."""
        with suppress(OSError):
            self._path.unlink()


def read_now(folder: Path) -> dict[str, Any] | None:
    """What a hub's job waits for; None if no job runs."""
    try:
        content = json_of((folder / NOW).read_bytes())
        return {**content, "round": int(content["round"]), "deadline": float(content["deadline"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None


def keep_greetings(folder: Path, greetings: Mapping[str, Greeting]) -> None:
    """Keep what sites said of themselves: version, and until when their certificates are valid.

    Raises `StoreError` if it cannot be written.
    """
    time = now()
    values = {site: {"time": time, "version": g.version, "expires": g.expires} for site, g in greetings.items()}
    write_text(folder / GREETINGS, json.dumps(greetings_of(folder) | values, indent=1))


def forget_greeting(folder: Path, site: str) -> None:
    """Remove what a site said of itself. Raises `StoreError` if it cannot be written."""
    rest = {name: said for name, said in greetings_of(folder).items() if name != site}
    if (folder / GREETINGS).is_file():
        write_text(folder / GREETINGS, json.dumps(rest, indent=1))


def greetings_of(folder: Path) -> dict[str, dict[str, str]]:
    """Site -> {time, version, expires}, as it last said; empty before the first job."""
    try:
        content = json_of((folder / GREETINGS).read_bytes())
        return {str(site): {str(k): str(v) for k, v in values.items()} for site, values in content.items()}
    except (OSError, ValueError, AttributeError):
        return {}
