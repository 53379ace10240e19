"""A page that shows runs as they happen, served to browsers on this machine only."""

import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from idiolect.core.errors import IdiolectError, os_errors_as
from idiolect.report.standing import Standing

HOST = "127.0.0.1"
ASSETS = Path(__file__).parent / "live_assets"
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
STATE = "/state.json"
_JSON = "application/json; charset=utf-8"
_PATIENCE = 10.0
"""Seconds that a reader may take to say what it wants."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class LivePage:
    """A server of one page, at work inside a `with` block.

    look: how the runs stand. port: 0 takes a free one. Raises `StoreError` if the port is taken.
    """

    def __init__(self, look: Callable[[], Standing], port: int = 0) -> None:
        page = self

        class Handler(_Handler):
            def state(self) -> bytes:
                page.touch()
                return json.dumps(look().to_dict(), allow_nan=False).encode()

        with os_errors_as(f"--port {port}", after="; leave it out for a free one"):
            self._server = _Server((HOST, port), Handler)
        Handler.hosts = tuple(f"{name}:{self._server.server_port}" for name in (HOST, "localhost"))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self.touch()

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self._server.server_port}/"

    @property
    def idle(self) -> float:
        """Seconds since somebody has read how the runs stand, or since the page was made."""
        return time.monotonic() - self._read

    def touch(self) -> None:
        """Note that somebody reads."""
        self._read = time.monotonic()

    def __enter__(self) -> "LivePage":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """Goes on in silence when a reader closes its end before it has the answer."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a reader that is gone; anything else is reported."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class _Handler(BaseHTTPRequestHandler):
    """Answers GET for the page's own files and the state, to a browser that asked for this machine by name."""

    timeout = _PATIENCE
    hosts: tuple[str, ...] = ()
    server_version, sys_version = "idiolect", ""

    def state(self) -> bytes:
        """How the runs stand, as JSON."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer one request. Another name of this machine is one that a foreign page has made up: refused."""
        if self.headers.get_all("Host") not in [[host] for host in self.hosts]:
            self._answer(421, _JSON, b'{"error": "this page is for this machine alone"}')
        elif self.path == STATE:
            try:
                self._answer(200, _JSON, self.state())
            except IdiolectError as error:
                self._answer(503, _JSON, json.dumps({"error": str(error)}).encode())
        elif self.path in FILES:
            name, kind = FILES[self.path]
            self._answer(200, kind, (ASSETS / name).read_bytes())
        else:
            self._answer(404, _JSON, b'{"error": "no such page"}')

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse in one line of JSON; any method but GET ends here."""
        self._answer(405 if code == 501 else code, _JSON, json.dumps({"error": message or "refused"}).encode())

    def _answer(self, code: int, kind: str, content: bytes) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: the terminal belongs to the command."""
