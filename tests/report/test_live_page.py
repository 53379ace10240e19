"""The live page over HTTP, without a browser."""

import http.client
import json
import re
import socket
import struct
import threading
import urllib.request
from dataclasses import replace

import pytest

from idiolect.core.errors import StoreError
from idiolect.report.live_page import ASSETS, FILES, HOST, LivePage
from tests.report.test_standing import standing


@pytest.fixture(scope="module")
def page():
    with LivePage(standing) as served:
        yield served


def ask(page, path="/", method="GET", **headers):
    """(status, headers, content) of one request."""
    port = page._server.server_port
    connection = http.client.HTTPConnection(HOST, port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"Host": f"{HOST}:{port}", **headers}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_it_is_on_this_machine_alone(page):
    assert page._server.server_address[0] == "127.0.0.1"
    assert page.url.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(page.url, timeout=60) as answer:
        assert answer.read() == (ASSETS / "page.html").read_bytes()


@pytest.mark.parametrize("path", [*FILES, "/state.json"])
def test_every_answer_keeps_the_page_to_itself(page, path):
    status, headers, _ = ask(page, path)
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Python" not in headers["Server"]


def test_the_state_is_how_the_runs_stand(page):
    state = json.loads(ask(page, "/state.json")[2])
    assert [line["method"] for line in state["lines"]] == ["fedavg", "local", "ditto"]
    assert state["lines"][0]["scores"]["global"][-1] == [30, 50.0]
    assert page.idle < 5


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", None, ""])
@pytest.mark.parametrize("path", ["/", "/state.json"])
def test_a_page_of_another_name_is_refused(page, host, path):
    status, _, content = ask(page, path, Host=host)
    assert status == 421
    assert b"lines" not in content


def test_two_hosts_are_refused_and_localhost_is_this_machine(page):
    port = page._server.server_port
    assert ask(page, Host=f"localhost:{port}")[0] == 200
    with socket.create_connection((HOST, port), timeout=60) as raw:
        raw.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{port}\r\nHost: evil\r\nConnection: close\r\n\r\n".encode())
        assert b" 421 " in raw.makefile("rb").readline()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"])
def test_only_get(page, method):
    assert ask(page, "/state.json", method)[0] == 405


@pytest.mark.parametrize("path", ["/../live_page.py", "/page.html", "//etc/passwd", "/%2e%2e/", "/state.json?x=1"])
def test_nothing_else_is_served(page, path):
    assert ask(page, path)[0] == 404


def test_what_cannot_be_read_is_told_in_a_line():
    def look():
        raise StoreError("it is <gone>")

    with LivePage(look) as served:
        status, _, content = ask(served, "/state.json")
    assert (status, json.loads(content)) == (503, {"error": "it is <gone>"})


def test_a_reader_that_leaves_before_the_answer_is_no_error(capsys):
    asked, gone = threading.Event(), threading.Event()

    def look():
        asked.set()
        gone.wait(20)
        return replace(standing(), name="x" * 10_000_000)

    with LivePage(look) as served:
        with socket.create_connection((HOST, served._server.server_port), timeout=60) as raw:
            raw.sendall(f"GET /state.json HTTP/1.1\r\nHost: {HOST}:{served._server.server_port}\r\n\r\n".encode())
            assert asked.wait(20)
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.set()
        assert ask(served)[0] == 200
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                thread.join(20)
    assert capsys.readouterr().err == ""


def test_a_port_that_is_taken_is_one_line(page):
    with pytest.raises(StoreError, match=r"--port \d+: .*; leave it out"):
        LivePage(standing, page._server.server_port)


def test_the_page_asks_nobody_else_and_writes_names_as_text():
    html, css, js = ((ASSETS / name).read_text() for name in ("page.html", "page.css", "page.js"))
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", html + css + js)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|new Function|style=|onclick", html + js
    )
    assert "prefers-color-scheme: dark" in css
    assert 'name="viewport"' in html
    assert all(len(text.splitlines()) < 300 for text in (html, css, js))
