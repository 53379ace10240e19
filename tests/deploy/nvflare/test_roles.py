"""One real federation: three sites and a hub, mutual TLS, on this machine."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from nvflare.collab.api.app import ClientApp
from nvflare.collab.api.context import set_call_context

from idiolect.deploy.messages import Message
from idiolect.deploy.nvflare.garbage import EVERY
from idiolect.deploy.nvflare.jobs import clean_jobs, write_job
from idiolect.deploy.nvflare.processes import running, workers
from idiolect.deploy.nvflare.published import HUB
from idiolect.deploy.nvflare.roles import SiteRole
from idiolect.deploy.nvflare.segment import read_end
from idiolect.deploy.nvflare.session import Session, open_session
from idiolect.deploy.nvflare.supervisor import Watch
from idiolect.deploy.nvflare.wire import encoded
from tests.deploy.nvflare.federation import Federation


@pytest.fixture(scope="module")
def federation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    made = Federation(tmp_path_factory.mktemp("federation"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


def ended(session: Session, job: str, limit: float = 45) -> str:
    end = time.monotonic() + limit
    while time.monotonic() < end:
        state = session.job_status(job)
        if state.startswith("FINISHED"):
            return state
        time.sleep(0.2)
    return "still " + session.job_status(job)


def test_a_site_looks_for_garbage_once_in_so_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr("idiolect.deploy.nvflare.garbage.gc.collect", lambda: collected.append(1))
    role = SiteRole()
    role._site = object()  # outside of a job it cannot answer; that is an answer, too
    app = ClientApp(role)
    for _ in range(EVERY + 1):
        set_call_context(app.new_context(caller=HUB, callee="site-1"))
        assert "the site failed" in role.answer(*encoded(Message({})))[0]
    set_call_context(None)
    assert len(collected) == 2


@pytest.mark.second
def test_a_federation(federation: Federation, tmp_path: Path) -> None:
    """Star and ring are exact, slow and failing sites are missing, other jobs are refused, all is stopped."""
    kits, sites = federation.kits, list(federation.kits.sites)
    federation.want(("star", 1000), ("star", 500_000), ("ring", 1000), ("ring", 500_000), ("raise", 10), ("slow", 10))
    watch = Watch(
        lambda: open_session(kits.lead, 5),
        lambda n: write_job(tmp_path, f"job-{n}", {}, 3),
        sites,
        3,
        lambda: len(federation.rounds()),
        lambda: read_end(federation.hub),
    )
    assert watch.run() == 1
    *exact, failed, slow = federation.rounds()
    assert [told["kind"] for told in exact] == ["star", "star", "ring", "ring"]
    for told in exact:
        assert told["right"] == dict.fromkeys(sites, True)
        assert told["missing"] == {}
        assert told["jax"] == [False] * 4
    assert failed["missing"] == {"site-2": "the site failed (ValueError); its own log says why"}
    assert slow["missing"] == {"site-2": "no answer within 5 s"}
    assert set(slow["right"]) == {"site-1", "site-3"}  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
    assert not any(b"patient 4711" in path.read_bytes() for path in kits.hub.folder.rglob("*") if path.is_file())

    session = open_session(kits.lead)
    try:
        strange = write_job(tmp_path, "strange", {}, 3)
        config = strange / "app" / "config" / "config_fed_client.json"
        content = json.loads(config.read_text())
        content["components"][0]["path"] = "nvflare.app_common.np.np_trainer.NPTrainer"
        config.write_text(json.dumps(content))
        assert ended(session, session.submit(strange, "token-strange-1")) == "FINISHED:ABNORMAL"
        code = write_job(tmp_path, "code", {}, 3)
        (code / "app" / "custom").mkdir()
        (code / "app" / "custom" / "x.py").write_text("")
        job = session.submit(code, "token-code-1")
        assert ended(session, job) == "FINISHED:FAILED_TO_RUN"
        end = time.monotonic() + 20  # the engine may write why a job did not start after its status
        while not session.job_sites(job) and time.monotonic() < end:
            time.sleep(0.2)
        assert "BYOC not permitted" in str(session.job_sites(job))
    finally:
        session.close()
    assert clean_jobs(kits.sites["site-1"], keep=1) >= 1
    federation.stop()
    assert all(running(kit) is None and not workers(kit) for kit in (kits.hub, *kits.sites.values()))
