"""The drill itself: kits, sites, study, events at fixed rounds, and the wait until the run ends by itself."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.drill.authority import HUB, LEAD, Authority
from benchmarks.drill.plan import EVENTS, Cast, Size
from benchmarks.drill.services import Service, command, values
from benchmarks.sites.record import memory
from benchmarks.sites.who import member
from idiolect.core.errors import IdiolectError, StoreError
from idiolect.core.repeating import repeating
from idiolect.core.rights import make_folder
from idiolect.data import from_table
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.nvflare.kits import Kit, read_kit
from idiolect.deploy.nvflare.processes import end_leftovers, free_port

EXPERIMENT = """
name = "drill"
[[cells]]
id = "c"
data = {{ name = "table", path = "elsewhere.csv" }}
model = {{ name = "mlr" }}
rounds = {rounds}
eval_every = {eval_every}
methods = [{{ name = "scaffold", rate = 0.05 }}]
"""
RUN = "c/scaffold/seed0"
ROWS, FEATURES, CLASSES = 160, 5, 3
PATIENCE = 420.0
"""Seconds without a new round, while nothing is done to the federation, after which the drill has failed."""
LOOK = 15.0
"""Seconds between two looks at the memory of all processes."""


@dataclass
class Drill:
    """A drill in a folder. report: gets a line for each step."""

    folder: Path
    size: Size
    report: Callable[[str], None] = print
    services: dict[str, Service] = field(default_factory=dict[str, Service])
    pids: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.folder = self.folder.absolute()
        self.cast = Cast.of(self.size.sites)
        self.hub, self.logs = self.folder / "hub", self.folder / "logs"

    # What is where

    @property
    def story(self) -> Path:
        """A line for each step, as it ended."""
        return self.folder / "story.jsonl"

    @property
    def lie(self) -> Path:
        """While this file exists, the liar lies."""
        return self.folder / "lie"

    @cached_property
    def authority(self) -> Authority:
        """The holder of the root key."""
        return Authority(self.folder, free_port())

    @property
    def hold(self) -> Path:
        """While this file exists, the first site answers slowly."""
        return self.folder / "hold"

    def kit(self, name: str) -> Kit:
        """A participant's kit."""
        return read_kit(self.folder / "kits" / name)

    def table(self, site: str) -> Path:
        """A site's rows."""
        return self.folder / "tables" / f"{site}.csv"

    def lines(self) -> list[dict[str, Any]]:
        """The lines of rounds in participation.jsonl."""
        return [line for line in Participation(self.hub).lines() if "answered" in line]

    def rounds(self) -> int:
        """Rounds done."""
        lines = self.lines()
        return lines[-1]["round"] + 1 if lines else 0

    # Steps

    def begin(self, about: Mapping[str, Any]) -> None:
        """Note the drill's size, and the machine before it begins."""
        make_folder(self.folder)
        (self.folder / "about.json").write_text(json.dumps({"size": asdict(self.size), "machine": dict(about)}))

    @contextmanager
    def step(self, what: str, **about: Any) -> Generator[dict[str, Any]]:
        """Note a step in the story when it has ended; what the block puts into the value is noted, too."""
        before, began, more = self.rounds() if self.hub.is_dir() else 0, time.monotonic(), dict[str, Any]()
        self.report(f"{_time()} round {before}: {what}")
        self.hold.touch()
        try:
            yield more
        finally:
            self._go_on()
        line = {"time": _time(), "what": what, "rounds": before, "seconds": round(time.monotonic() - began, 1)}
        line |= {**about, **more}
        with self.story.open("a") as out:
            out.write(json.dumps(line) + "\n")

    def run(self) -> None:
        """Play all to the end. Afterwards nothing of the federation runs, however this ends."""
        make_folder(self.folder)
        looks = self.folder / "memory.jsonl"
        try:
            with repeating(lambda: self._look(looks), LOOK):
                self._prepare()
                for share, name, what in EVENTS:
                    self._until(self.size.after(share))
                    with self.step(what, event=name) as more:
                        getattr(self, name)(more)
                with self.step("the run ends by itself", event="end") as more:
                    self._until(self.size.rounds)
                    self._wait(lambda: not self.services["hub"].runs, lambda: self.rounds(), "the end of hub run")
                    more["starts"] = self.services["hub"].starts
                with self.step("the hub and the sites are looked at", event="look"):
                    self._last_look()
        finally:
            self.close()

    def close(self) -> None:
        """End all that runs of the drill."""
        with ThreadPoolExecutor(max_workers=8) as pool:
            list(pool.map(lambda service: service.stop(), self.services.values()))
        for kit in (self.folder / "kits").glob("*"):
            with suppress(IdiolectError):
                end_leftovers(read_kit(kit))

    def _prepare(self) -> None:
        make_folder(self.logs)
        with self.step("certificates by request", event="certificates"):
            self.authority.begin()
            self._both(self.authority.issue, (HUB, LEAD, *self.cast.first))
        with self.step("tables and the study", event="study") as more:
            self._tables()
            toml, schema = self.folder / "drill.toml", self.folder / "schema.json"
            toml.write_text(EXPERIMENT.format(rounds=self.size.rounds, eval_every=self.size.eval_every))
            options = ("--sites", ",".join(self.cast.first), "--schema", schema, "--deadline", self.size.deadline)
            more |= values("hub", "init", self.hub, toml, *options)
        with self.step("sites check their kits and approve the study", event="approve"):
            self._both(self._make_site, self.cast.first)
            self._approve(self.cast.first)
        with self.step("hub and sites start", event="start"):
            for site in self.cast.first:
                self._start_site(site)
            self._start_hub()
            self._until(1)

    def _tables(self) -> None:
        """Rows of all sites, of label rules that differ; the schema is of them all."""
        make_folder(self.folder / "tables")
        rng, frames = np.random.default_rng(0), list[pd.DataFrame]()
        shared = rng.normal(size=(FEATURES, CLASSES))
        for number, site in enumerate(self.cast.sites):
            x = rng.normal(size=(ROWS + 8 * number, FEATURES))
            y = (x @ (shared + 0.5 * rng.normal(size=shared.shape))).argmax(axis=1)
            frame = pd.DataFrame(x.round(4), columns=[f"x{column}" for column in range(FEATURES)])
            frame["label"] = np.asarray(["a", "b", "c"])[y]
            frame.to_csv(self.table(site), index=False)
            frames.append(frame.assign(client=site))
        table = pd.DataFrame(pd.concat(frames)[["client", *frames[0].columns[:-1]]])
        schema = from_table(table).schema
        assert schema is not None
        schema.save(self.folder / "schema.json")

    def _make_site(self, site: str) -> None:
        kit, schema = self.folder / "kits" / site, self.folder / "schema.json"
        command("site", "init", kit, self.table(site), "--schema", schema, "--client", "")

    def _approve(self, sites: tuple[str, ...]) -> None:
        study = self.hub / "study.json"
        self._both(lambda site: command("site", "approve", study, self.folder / "kits" / site, "--yes"), sites)

    def _start_site(self, site: str) -> None:
        more = dict[str, str]()
        if site == self.cast.liar:
            more = {"DRILL_LIE": str(self.lie)}
        elif site == self.cast.sites[0]:
            more = {"DRILL_HOLD": str(self.hold), "DRILL_SECONDS": str(self.size.hold)}
            more["DRILL_PACE"] = str(self.size.pace)
        if more:
            own, path = str(Path(__file__).parent / "liar"), Path(__file__).parents[2]
            more["PYTHONPATH"] = os.pathsep.join([own, str(path / "src"), str(path)])
        kit = self.folder / "kits" / site
        self.services[site] = Service(self.logs / f"{site}.log", "site", "run", kit, more=more)

    def _start_hub(self) -> None:
        self.services["hub"] = Service(self.logs / "hub.log", "hub", "run", self.hub, *self._kits)

    @property
    def _kits(self) -> tuple[object, ...]:
        return "--kit", self.folder / "kits" / HUB, "--admin", self.folder / "kits" / LEAD

    def _present(self) -> tuple[str, ...]:
        """The sites that run."""
        return tuple(site for site in self.cast.sites if site in self.services and self.services[site].runs)

    # Events

    def forget(self, more: dict[str, Any]) -> None:
        """A site leaves with its private states; the hub goes back to before it had joined."""
        site, study = self.cast.leaver, json.loads((self.hub / "study.json").read_text())["id"]
        more["left"] = values("site", "leave", self.folder / "kits" / site, study, "--out", self.folder / "taken")
        self.services["hub"].stop()
        self._stop_site(site)
        more["forgotten"] = values("hub", "forget", site, self.hub, "--yes")
        self._approve(self._present())
        self._start_hub()
        self._go_on()
        self._wait(lambda: self.rounds() > 0, lambda: self.rounds(), "the first round without the forgotten site")

    def join(self, more: dict[str, Any]) -> None:
        """A site gets a certificate, joins, and all approve the study with it."""
        site = self.cast.late
        self.services["hub"].stop()
        more["round"] = self.rounds()
        self.authority.issue(site)
        self._make_site(site)
        command("hub", "add", self.hub, site)
        self._approve((*self._present(), site))
        self._start_site(site)
        self._start_hub()
        self._go_on()
        self._wait(lambda: site in self.lines()[-1]["answered"], self.rounds, f"an answer of {site}")

    def begin_to_lie(self, more: dict[str, Any]) -> None:
        """From now on a site's messages are out of scale."""
        self.lie.touch()
        more["round"] = self.rounds()
        self._new_rounds(2)

    def kill_hub(self, more: dict[str, Any]) -> None:
        """The hub's process and its job die; the supervisor lives."""
        more["killed"] = self._kill(self.kit(HUB))
        self._new_rounds(2)

    def kill_all_of_hub(self, more: dict[str, Any]) -> None:
        """As `kill_hub`, and the supervisor dies, too; its service starts it again."""
        self.services["hub"].signal(signal.SIGKILL)
        more["killed"] = 1 + self._kill(self.kit(HUB))
        self._new_rounds(2)

    def revoke(self, more: dict[str, Any]) -> None:
        """A certificate is revoked while the run goes on; the site's process runs on, and tries to come back."""
        site = self.cast.revoked
        more["revoked"] = values("hub", "revoke", self.hub, site, *self._kits, "--reason", "its key was lost")
        more["round"] = self.rounds()
        self._approve(tuple(name for name in self._present() if name != site))
        self._new_rounds(2)

    def renew(self, more: dict[str, Any]) -> None:
        """All who may get a new certificate with the same key, and start again with it.

        The revoked site starts again, too, with its old one.
        """
        make_folder(self.folder / "renewed")
        more["before"] = self._days()
        self.services["hub"].stop()
        command("hub", "stop", "--kit", self.folder / "kits" / HUB)
        refused = self._refused_renewal()
        sites = tuple(site for site in self._present() if site != self.cast.revoked)
        self._both(self._renew, (HUB, LEAD, *sites))
        for site in (*sites, self.cast.revoked):
            self._stop_site(site)
            self._start_site(site)
        self._start_hub()
        self._new_rounds(2)
        more |= {"after": self._days(), "refused": refused, "renewed": [HUB, LEAD, *sites]}
        more["serials"] = {
            "kit": _serial(self.kit(HUB)),
            "wire": _serial_on_the_wire(self.kit(HUB), self.kit(sites[0])),
        }

    def drop(self, more: dict[str, Any]) -> None:
        """A site's machine dies: all its processes at once, and nobody starts them again."""
        site = self.cast.dropout
        service = self.services[site]
        service.stop(0.0)
        more["killed"] = self._kill(self.kit(site))
        end_leftovers(self.kit(site))
        self._new_rounds(2)

    def _refused_renewal(self) -> str:
        """Why the revoked site gets no new certificate."""
        request = self.folder / "renewed" / f"{self.cast.revoked}.request"
        command("site", "renew", self.folder / "kits" / self.cast.revoked, "--request", request)
        try:
            self._sign(request, self.cast.revoked)
        except StoreError as error:
            return str(error)
        return ""

    def _renew(self, name: str) -> None:
        who, kit = "site" if name in self.cast.sites else "hub", self.folder / "kits" / name
        request = self.folder / "renewed" / f"{name}.request"
        command(who, "renew", kit, "--request", request)
        self._sign(request, name)
        command(who, "renew", kit, "--install", request.with_suffix(".crt"))

    def _sign(self, request: Path, name: str) -> None:
        out = self.folder / "renewed" / f"{name}.crt"
        command("hub", "sign", request, "--ca", self.authority.root, "-o", out, "--hub", self.hub)

    def _stop_site(self, site: str) -> None:
        command("site", "stop", self.folder / "kits" / site)
        self.services[site].stop()

    def _days(self) -> dict[str, float]:
        """Days left of each certificate, as the hub knows them from the sites' greetings."""
        found = values("hub", "status", self.hub, "--admin", self.folder / "kits" / LEAD)["certificates"]
        return {who: of["days"] for who, of in found.items()}

    def _kill(self, kit: Kit) -> int:
        """Kill all processes of a kit with SIGKILL; how many."""
        killed = 0
        for pid in member(kit).all:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        return killed

    def _last_look(self) -> None:
        """What hub and sites say after the run, while they run."""
        sites = {site: values("site", "status", self.folder / "kits" / site) for site in self._present()}
        status = values("hub", "status", self.hub, "--admin", self.folder / "kits" / LEAD)
        command("hub", "stop", "--kit", self.folder / "kits" / HUB)
        (self.folder / "status.json").write_text(json.dumps({"hub": status, "sites": sites}, indent=1))

    # Waiting

    def _go_on(self) -> None:
        """Let the first site answer at its own speed."""
        self.hold.unlink(missing_ok=True)

    def _until(self, rounds: int) -> None:
        """Wait until so many rounds are done."""
        self._go_on()
        self._wait(lambda: self.rounds() >= rounds, lambda: self.rounds(), f"round {rounds}")

    def _new_rounds(self, number: int) -> None:
        """Wait for new lines of rounds. What the step still does then happens before the next ones."""
        self._until(self.rounds() + number)
        self.hold.touch()

    def _wait(self, so: Callable[[], bool], progress: Callable[[], int], what: str) -> None:
        """Wait until something is so. Raises `StoreError` if nothing moves for too long, or a service gives up."""
        before, since = progress(), time.monotonic()
        while not so():
            for name, service in self.services.items():
                if service.gave_up and name != self.cast.revoked:
                    raise StoreError(f"{name} fails again and again while {what} is awaited: {service.words()}")
            hub = self.services["hub"]
            if not hub.runs:
                if so():
                    return
                raise StoreError(f"hub run has ended before {what}: {hub.words()}")
            now = progress()
            if now != before:
                before, since = now, time.monotonic()
            if time.monotonic() - since > PATIENCE:
                raise StoreError(f"no new round for {PATIENCE:g} s while {what} is awaited: {hub.words()}")
            time.sleep(0.2)

    def _both(self, of: Callable[[str], object], names: tuple[str, ...]) -> None:
        """Do something for each name, two at a time."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(of, names))

    def _look(self, path: Path) -> None:
        """Note the memory of hub and sites: each process's own share of pages, in MB."""
        found = dict[str, float]()
        for kit in (self.folder / "kits").glob("*"):
            with suppress(IdiolectError):
                own = read_kit(kit)
                if own.kind != "admin":
                    found[kit.name] = round(sum(memory(pid) for pid in member(own).all), 1)
        line = {"time": _time(), "rounds": self.rounds() if self.hub.is_dir() else 0, "mb": found}
        with path.open("a") as out:
            out.write(json.dumps(line) + "\n")

    def hand_over(self) -> Path:
        """What the sites hand over for the audit: logs and approvals of all but the one that has left."""
        target = self.folder / "handed-over"
        shutil.rmtree(target, ignore_errors=True)
        for site in self.cast.sites:
            if site != self.cast.leaver:
                make_folder(target / site)
                for name in ("sent.jsonl", "approvals.json"):
                    shutil.copyfile(self.kit(site).site / name, target / site / name)
        return target


def _time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _serial(kit: Kit) -> str:
    """The serial number of the certificate in a kit."""
    from cryptography import x509

    name = "server.crt" if kit.kind == "server" else "client.crt"
    return f"{x509.load_pem_x509_certificate((kit.folder / 'startup' / name).read_bytes()).serial_number:x}"


def _serial_on_the_wire(hub: Kit, site: Kit) -> str:
    """The serial number of the certificate that the hub's port shows to a site."""
    import socket
    import ssl

    from cryptography import x509

    startup = site.folder / "startup"
    context = ssl.create_default_context(cafile=str(startup / "rootCA.pem"))
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    context.check_hostname = False
    with socket.create_connection((hub.host, hub.port), 30) as raw, context.wrap_socket(raw) as wire:
        shown = wire.getpeercert(binary_form=True)
    assert shown is not None
    return f"{x509.load_der_x509_certificate(shown).serial_number:x}"
