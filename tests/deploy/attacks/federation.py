"""A federation of real processes with a malicious hub, or a malicious site, and sites with and without guards."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from idiolect.core.errors import StoreError
from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.plan import study_of
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message, Vectors, read_message, write_message
from idiolect.deploy.nvflare.kits import HUB_FOLDER, Kit
from idiolect.deploy.nvflare.local_federation import kits_here, supervised
from idiolect.deploy.nvflare.processes import start, stop
from idiolect.deploy.nvflare.provision import Kits
from idiolect.deploy.nvflare.supervisor import Limits
from idiolect.deploy.site.approvals import approve
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.outbox import Outbox
from idiolect.deploy.study import Study
from idiolect.deploy.this_machine import prepare
from tests.deploy.federation import experiment_of

HERE = Path(__file__).parent
RUN = "t/attack/seed0"


def table(rows: Sequence[int], features: int = 30, seed: int = 0) -> FederatedData:
    """Sites site-1, site-2, ... with these numbers of rows; about 65 % of them are for training."""
    rng, parts = np.random.default_rng(seed), {}
    truth = rng.normal(size=(features, 2))
    for number, count in enumerate(rows, 1):
        x = rng.normal(size=(count, features)).astype("f4")
        parts[f"site-{number}"] = x, (x @ truth).argmax(axis=1)
    return from_arrays(parts)


def training_rows(data: FederatedData, site: str) -> tuple[np.ndarray, np.ndarray]:
    """The site's training rows and their labels."""
    split = data.select(lambda index: data.clients[index] == site).stored("train")
    return np.asarray(split.x), np.asarray(split.y)


def study(data: FederatedData, method: Mapping[str, Any], late: Sequence[str] = (), rounds: int = 200) -> Study:
    """A study of one run of this method at all sites."""
    experiment = experiment_of([str(method["name"])], rounds=rounds).model_dump(mode="json")
    values: dict[str, Any] = {"experiment": experiment, "kind": Kind.of(data).to_dict(), "sites": data.clients}
    made = study_of(HubConfig(study="attack-00000001", **values))
    (traffic,), (run,) = made.travels.values(), made.runs
    planned = run.model_dump() | {"run": RUN, "method": run.method | dict(method)}
    changed: dict[str, Any] = {"runs": [planned], "travels": {"t/attack": traffic.model_dump()}, "late": list(late)}
    changed["smallest_cohort"] = made.smallest_cohort - len(late)
    return Study.model_validate({**made.model_dump(mode="json"), **changed})


def call(
    study: Study,
    data: FederatedData,
    task: str,
    number: int,
    vectors: Vectors | None = None,
    method: Mapping[str, Any] | None = None,
    clients: int = 0,
    site: int = 0,
    **header: Any,
) -> Message:
    """A call of the study's hub. method: settings that are not the study's; clients: sites in the round (0: all)."""
    terms = study.terms(RUN, Kind.of(data).to_dict()).model_dump(mode="json")
    terms["method"] |= dict(method or {})
    count = clients or data.num_clients
    samples = sum(len(training_rows(data, name)[1]) for name in data.clients[:count])
    place = {"id": site, "clients": count, "samples": samples, "cohort": float(count)}
    head = {"task": task, "job": 1, "call": number, "used": -1, "run": RUN, "place": place, "terms": terms, **header}
    return Message(head, vectors or {})


class Answers:
    """What a malicious hub has received: by the number of the call and the site."""

    def __init__(self, folder: Path, kits: Kits) -> None:
        self.folder, self.kits = folder, kits

    def answer(self, number: int, site: str) -> Message | None:
        """The answer of a site; None if it refused."""
        return read_message(self.folder / f"{number:04d}" / f"{site}.answer")

    def refusal(self, number: int, site: str) -> str:
        """The line of the site's refusal; empty if it answered."""
        path = self.folder / f"{number:04d}" / f"{site}.refused"
        return path.read_text() if path.is_file() else ""

    def sent(self, site: str) -> list[dict[str, Any]]:
        """The site's own log of all that it sent."""
        return [*Outbox(self.kits.sites[site].site / "sent.jsonl").lines()]


def guard(kit: Kit, study: Study, floors: Floors) -> None:
    """Give a site these floors, and its administrator's approval of this study."""
    SiteConfig.load(kit.site).model_copy(update={"floors": floors}).save(kit.site)
    approve(kit.site, SiteConfig.load(kit.site).name, study)


def with_code(folder: Path) -> dict[str, str]:
    """The environment in which a process loads the folder's sitecustomize first."""
    return {"PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)}


def attacked(
    out: Path,
    data: FederatedData,
    guards: Mapping[str, tuple[Study, Floors]],
    calls: Sequence[Mapping[str, Message]],
    loose: Mapping[str, str] | None = None,
) -> Answers:
    """Let a malicious hub send these calls to sites with these approved studies and floors.

    loose: site -> the guards that are taken out of its code, see loose/sitecustomize.py.
    """
    names = prepare(out, experiment_of(["fedavg"], rounds=1), data)
    kits = kits_here(out, names, data)
    for site, (approved, floors) in guards.items():
        guard(kits.sites[site], approved, floors)
    for number, messages in enumerate(calls):
        (out / "attack" / f"{number:04d}").mkdir(parents=True)
        for site, message in messages.items():
            write_message(out / "attack" / f"{number:04d}" / f"{site}.msg", message)
    hub = {HUB_FOLDER: str(out), **with_code(HERE / "hub")}
    sites = {site: {**with_code(HERE / "loose"), "LOOSE": guards} for site, guards in (loose or {}).items()}
    supervise(out, kits, hub, sites)
    return Answers(out / "attack", kits)


def supervise(out: Path, kits: Kits, hub: Mapping[str, str], sites: Mapping[str, Mapping[str, str]]) -> None:
    """One job of a federation; it may fail. hub, sites: what is added to the environment of the processes."""
    try:
        start(kits.hub, hub)
        for name, kit in kits.sites.items():
            start(kit, sites.get(name))
        watch = replace(supervised(kits, out, [*kits.sites], lambda _: None), limits=Limits(fruitless=1))
        with suppress(StoreError):  # the malicious hub makes no progress
            watch.run()
    finally:
        for kit in (kits.hub, *kits.sites.values()):
            stop(kit)
