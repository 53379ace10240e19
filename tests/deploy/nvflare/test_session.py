import socket
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nvflare")

from nvflare.fuel.flare_api import api_spec as api

from idiolect.core.errors import ConfigError, StoreError
from idiolect.deploy.nvflare.kits import Kit
from idiolect.deploy.nvflare.processes import free_port
from idiolect.deploy.nvflare.session import LostError, Session, read_status, wait_for_port

KIT = Kit(Path("k"), "admin", "lead@hub.org", "hub.org", 8002, "hub.org")


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*arguments: object, **options: object) -> None:
            raise self.error

        return fail


@pytest.fixture
def unused_tcp_port() -> int:
    return free_port()


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (api.NoConnection("x\ny"), LostError, "hub.org:8002 does not answer"),
        (api.SessionClosed("x"), LostError, "does not answer"),
        (api.NoReply("x"), LostError, "does not answer"),
        (api.AuthenticationError("x"), StoreError, "refused the certificate of lead@hub.org"),
        (api.AuthorizationError("x"), StoreError, "does not permit that to lead@hub.org"),
        (api.InvalidJobDefinition("x"), ConfigError, "takes no such job"),
        (RuntimeError("x"), LostError, "an error of its engine"),
    ],
)
def test_every_error_of_the_engine_is_one_line(error: Exception, kind: type[Exception], line: str) -> None:
    session = Session(Broken(error), KIT)
    with pytest.raises(kind, match=line) as raised:
        session.submit(Path("job"), "token")
    assert "\n" not in str(raised.value)
    session.close()  # an error of closing is none


def test_a_job_s_folder_is_submitted_as_an_absolute_path() -> None:
    class Engine:
        def submit_job(self, path: str, submit_token: str) -> str:
            return path

    assert Session(Engine(), KIT).submit(Path("job"), "token") == str(Path.cwd() / "job")


def test_a_job_that_does_not_run_is_aborted_without_an_error() -> None:
    Session(Broken(api.JobNotRunning("x")), KIT).abort("job")
    Session(Broken(api.InternalError("Job 1 is not running")), KIT).abort("job")
    with pytest.raises(LostError):
        Session(Broken(api.NoConnection("x")), KIT).abort("job")


def told(at: str = "2026-11-23 00:44:28.185097", zone: float = 0.0) -> dict[str, Any]:
    from datetime import datetime

    now = datetime.fromisoformat(at).timestamp() - zone
    rows = [["CLIENT", "TOKEN"], ["a", "t1"], ["b", "t2"]]
    clients = [{"client_name": name, "client_last_conn_time": now - ago} for name, ago in (("a", 3.0), ("b", 100.0))]
    meta = {"server_start_time": now - 500, "jobs": [{"job_id": "j"}], "clients": clients}
    return {"time": at, "data": [{"type": "string", "data": ""}, {"type": "table", "rows": rows}], "meta": meta}


@pytest.mark.parametrize("zone", [0, 3600, -5 * 3600 - 1800])
def test_a_site_that_has_been_silent_is_not_registered_whatever_the_hub_s_time_zone(zone: float) -> None:
    status = read_status(told(zone=zone))
    assert list(status.sites) == ["a"]
    assert status.running == ("j",)
    assert "t1" not in status.sites.values()  # the registration is a credential


def test_a_new_registration_has_another_mark() -> None:
    again = told()
    again["data"][1]["rows"][1] = ["a", "t9"]
    assert read_status(again).sites != read_status(told()).sites


def test_a_hub_that_has_just_started_has_no_sites_and_no_jobs() -> None:
    early = told()
    del early["meta"]["clients"], early["meta"]["jobs"]
    early["data"][1]["rows"] = [["CLIENT", "TOKEN"]]
    assert (read_status(early).sites, read_status(early).running) == ({}, ())


def test_an_answer_of_another_form_is_one_line() -> None:
    class Strange:
        def _do_command(self, command: str) -> dict[str, Any]:
            return {"meta": {}}

    with pytest.raises(StoreError, match=r"nvflare 2\.9 is needed"):
        Session(Strange(), KIT).status()


def test_a_session_waits_for_the_port_and_says_when_nobody_listens(unused_tcp_port: int) -> None:
    began = time.monotonic()
    with pytest.raises(LostError, match=rf"127.0.0.1:{unused_tcp_port} does not answer: is it running"):
        wait_for_port("127.0.0.1", unused_tcp_port, 0.3)
    assert time.monotonic() - began >= 0.3
    with socket.create_server(("127.0.0.1", unused_tcp_port)):
        wait_for_port("127.0.0.1", unused_tcp_port, 0.0)
