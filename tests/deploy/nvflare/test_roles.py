"""Only the hub calls a site, and only neighbours of a run send to it: over the real engine, too."""

import os
import time
from collections import defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nvflare")

import itertools
import json
from contextlib import contextmanager

from nvflare.collab import collab
from nvflare.collab.api.app import App, ClientApp, ServerApp
from nvflare.collab.api.context import set_call_context
from nvflare.collab.api.decorators import get_object_publish_interface
from nvflare.collab.runtime.defs import MSG_CHANNEL
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
from nvflare.fuel.f3.message import Message as EngineMessage
from nvflare.fuel.f3.streaming.stream_const import STREAM_CHANNEL, STREAM_DATA_TOPIC, StreamHeaderKey

from idiolect.core.errors import StoreError
from idiolect.deploy.hub.journal import HubState
from idiolect.deploy.hub.run import run_hub
from idiolect.deploy.messages import Message, read_message
from idiolect.deploy.nvflare.carriers import EVERY, decoded, encoded
from idiolect.deploy.nvflare.jobs import clean_jobs, read_end, write_job
from idiolect.deploy.nvflare.kits import HUB_FOLDER
from idiolect.deploy.nvflare.local_federation import kits_here, supervised
from idiolect.deploy.nvflare.processes import running, start, stop, workers
from idiolect.deploy.nvflare.roles import CHECKED, HUB, HubRole, SiteRole, log_refusal, signed_only
from idiolect.deploy.nvflare.session import Session, open_session
from idiolect.deploy.nvflare.supervisor import Watch
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.this_machine import prepare
from idiolect.deploy.transport import InProcess
from idiolect.study.store.store import Store
from tests.deploy.federation import data_of, experiment_of, hub_of, kept_file, participation, sites_of
from tests.deploy.nvflare.federation import Federation

DATA = data_of(sites=4)
ATTACKER, VICTIM = "site-3", "site-1"
MALICIOUS = Path(__file__).parent / "malicious"
EXPERIMENT = experiment_of(["fedavg", {"name": "dfedu", "graph": "ring"}], rounds=3, eval_every=3)
RUNS = ("t/fedavg/seed0", "t/dfedu/seed0")


CALLS: dict[str, tuple[Any, ...]] = {"answer": ("{}", b""), "put": (0, "{}", b"")}
"""Arguments for each function that a role publishes; a new one is called here, too."""


class Careless:
    """A role with a function that forgets the check."""

    @collab.publish
    def rows(self) -> str:
        return "rows"


def unchecked(app: App) -> list[str]:
    """Everything that the engine lets others call on a role, and that does not pass the check of the caller."""
    objects = [app, *app.get_collab_objects().values()]
    return [name for one in objects for name in get_object_publish_interface(one) if not checked(getattr(one, name))]


def checked(method: Any) -> bool:
    return getattr(method, CHECKED, None) is not None


@contextmanager
def called_by(app: App, name: str) -> Generator[None]:
    """As in the engine's thread that runs a call."""
    set_call_context(app.new_context(caller=name, callee="site-1"))
    try:
        yield
    finally:
        set_call_context(None)


def test_everything_that_roles_publish_checks_its_caller() -> None:
    assert unchecked(ClientApp(Careless())) == ["rows"]
    for app in (ServerApp(HubRole()), ClientApp(SiteRole())):
        assert unchecked(app) == []
    assert {*get_object_publish_interface(SiteRole())} == {*CALLS}
    assert {*get_object_publish_interface(HubRole())} == set()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("caller", ["site-3", "hub", ""])
def test_a_stranger_runs_nothing_and_is_named(
    name: str, caller: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    role = SiteRole()
    monkeypatch.setattr("idiolect.deploy.nvflare.roles._refusals", defaultdict(lambda: itertools.count(1)))
    monkeypatch.setattr("idiolect.deploy.nvflare.roles.decoded", None)  # whoever reads the message fails
    with called_by(ClientApp(role), caller):
        reply = getattr(role, name)(*CALLS[name])
    assert reply is False or "may not call" in decoded(reply).error
    assert f"refused a call of '{name}' by '{caller or 'nobody'}'" in caplog.text


def test_outside_of_a_call_nobody_calls() -> None:
    with pytest.raises(RuntimeError):
        SiteRole().answer("{}", b"")


def test_the_hub_reaches_the_site() -> None:
    class Site:
        def answer(self, message: Message, caller: str, peer: Any) -> Message:
            return Message({"task": message.header["task"], "caller": caller})

    role = SiteRole()
    role._site = Site()
    with called_by(ClientApp(role), HUB):
        assert decoded(role.answer(*encoded(Message({"task": "hello"})))).header == {"task": "hello", "caller": HUB}


def test_neighbours_put_in_their_run_and_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    role, letter = SiteRole(), encoded(Message({"run": "r"}))
    app = ClientApp(role)

    def put(caller: str, parts: Any) -> bool:
        with called_by(app, caller):
            return role.put(3, *parts)

    assert not put("site-2", letter)  # no run
    role.inbox.expect("r", ["site-2"])
    assert put("site-2", letter)
    assert not put("site-2", encoded(Message({"run": "another"})))
    assert not put("site-3", letter)
    assert not put(HUB, letter)
    assert not put("site-2", ("no JSON", b""))
    role.inbox.expect("", ())
    assert not put("site-2", letter)
    assert "refused a call of 'put' by 'site-3'" in caplog.text


def test_many_refusals_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(120):
        log_refusal("fill", "site-8")
    assert [line.partition(" (")[2] for line in caplog.messages] == ["", "10 times so far)", "100 times so far)"]


class Core:
    """The engine's end of the network: the filters that it was given."""

    def __init__(self, secure: bool = True) -> None:
        self.filters, self.secure = dict[tuple[str, str], Any](), secure

    def supports_secure_messages(self) -> bool:
        return self.secure

    def add_incoming_filter(self, channel: str, topic: str, cb: Any) -> None:
        self.filters[channel, topic] = cb


def test_calls_that_nobody_has_signed_are_dropped() -> None:
    core = Core()
    signed_only(SimpleNamespace(core_cell=core))
    stream, packet = core.filters[STREAM_CHANNEL, STREAM_DATA_TOPIC], core.filters[CellChannel.CELLNET, "bulk"]

    def frame(**headers: Any) -> EngineMessage:
        given = {StreamHeaderKey.CHANNEL: MSG_CHANNEL, MessageHeaderKey.ORIGIN: "server.j"}
        return EngineMessage({**given, **headers})

    signed = {MessageHeaderKey.SECURE: True, MessageHeaderKey.ENCRYPTED: True}
    assert stream(frame(**signed)) is None
    assert stream(frame(**{StreamHeaderKey.CHANNEL: "task"})) is None
    for missing in signed:
        assert stream(frame(**{**signed, missing: False})) is not None
        assert stream(frame(**{key: mark for key, mark in signed.items() if key != missing})) is not None
    assert packet(frame()) is not None
    with pytest.raises(StoreError, match="no caller can be verified"):
        signed_only(SimpleNamespace(core_cell=Core(secure=False)))
    with pytest.raises(StoreError, match=r"nvflare 2\.9 is needed"):
        signed_only(SimpleNamespace())


def attacks_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    found = dict[str, list[dict[str, Any]]]()
    for line in path.read_text().splitlines():
        found.setdefault(json.loads(line)["what"], []).append(json.loads(line))
    return found


def shared_of(out: Path, run: str) -> dict[str, bytes]:
    with Store(out, create=False) as store:
        standing = HubState.load(store.checkpoint_path(run).with_suffix(".hub"), run)
    assert standing is not None
    return {name: vector.tobytes() for name, vector in standing.vectors.items()}


def private_of(site: Path, run: str) -> dict[str, bytes]:
    state = read_message(kept_file(site, run))
    assert state is not None
    return {name: vector.tobytes() for name, vector in state.vectors.items()}


@pytest.mark.second
def test_a_malicious_site_reads_nothing_and_changes_nothing(tmp_path: Path) -> None:
    out, attacks = tmp_path / "out", tmp_path / "attacks.jsonl"
    names = prepare(out, EXPERIMENT, DATA)
    kits = kits_here(out, names, DATA)
    running = [kits.hub, *kits.sites.values()]
    try:
        start(kits.hub, {HUB_FOLDER: str(out)})
        for name, kit in kits.sites.items():
            path = os.pathsep.join([str(MALICIOUS), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
            start(kit, {"PYTHONPATH": path, "ATTACKS": str(attacks)} if name == ATTACKER else {})
        told: list[str] = []
        assert supervised(kits, out, names, told.append).run() == 1, told
    finally:
        for kit in running:
            stop(kit)
    done, victim = attacks_of(attacks), kits.sites[VICTIM].folder
    for what in ("hello", "summary", "join", "begin", "round", "far ahead"):
        (reply,) = done[f"answer {what}"]
        assert reply["header"] == {"error": f"'{ATTACKER}' may not call 'answer' here now"}
        assert reply["vectors"] == {}
    assert [reply["taken"] for reply in done["put outside a run"] + done["put as no neighbour"]] == [False] * 3
    (heard,) = done["heard"]  # it had what a forged origin needs
    assert heard["origin"].startswith("server.")
    for what in ("forged hub", "forged hub, signed", "forged put"):
        assert all("timed out" in reply["failure"][0] for reply in done[what]), done[what]

    sent = list(Outbox(victim / "idiolect" / "sent.jsonl").lines())
    assert {line["to"] for line in sent} == {"server", "site-2", "site-4"}
    assert {line["run"] for line in sent if "run" in line} == {*RUNS}
    assert not any("error" in line["header"] for line in sent)
    log = "".join(path.read_text() for path in victim.rglob("log.txt"))
    for function in ("answer", "put"):
        assert f"refused a call of '{function}' by '{ATTACKER}'" in log
    assert f"refused a call of 'unsigned message' by '{heard['origin']}'" in log

    hub, states = hub_of(tmp_path / "hub", EXPERIMENT, DATA), sites_of(tmp_path / "sites", DATA)
    run_hub(hub, InProcess(states))
    assert not any(line["missing"] or line["neighbours_missing"] for line in participation(out))
    for run in RUNS:
        assert shared_of(out, run) == shared_of(hub, run)
        for name, site in states.items():
            assert private_of(kits.sites[name].site, run) == private_of(site.folder, run) != {}, (run, name)
    (of_study,) = (path for path in (victim / "idiolect" / "state").iterdir() if path.is_dir())
    assert {path.name for path in of_study.iterdir() if path.is_dir()} == {run.replace("/", "__") for run in RUNS}


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
    monkeypatch.setattr("idiolect.deploy.nvflare.carriers.gc.collect", lambda: collected.append(1))
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
