"""A tiny federation of sites in this process, and the simulation with the same data."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.plan import save_hub, study_of
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message, Vectors
from idiolect.deploy.site.approvals import Approvals, approve
from idiolect.deploy.site.config import Allowed, SiteConfig
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.site import Inline, Site
from idiolect.deploy.site.trainer import SiteTrainer
from idiolect.deploy.study import Study
from idiolect.deploy.transport import InProcess, PeerTransport, Replies
from idiolect.study.spec.experiment import Experiment, comparison_of
from idiolect.study.store.store import Store

LOOSE = Floors.none()


def data_of(sites: int = 3, seed: int = 0, classes: int = 2) -> FederatedData:
    """Equal sites, so that they share compiled programs: 16 samples each, 3 features."""
    rng, parts = np.random.default_rng(seed), {}
    for number in range(1, sites + 1):
        x = rng.normal(size=(16, 3)).astype("f4")
        parts[f"site-{number}"] = x, (x @ rng.normal(size=(3, classes))).argmax(axis=1)
    return from_arrays(parts)


def experiment_of(methods: Sequence[str | Mapping[str, Any]], **settings: Any) -> Experiment:
    """One cell with these methods; settings: of the cell."""
    named = [method if isinstance(method, str) else str(method["name"]) for method in methods]
    given: dict[str, Any] = {"cohort": None, "sampling": "fixed", "eval_every": 2, "rounds": 4, "metric": ""}
    given |= {"model": {"name": "mlr"}, **settings}
    model = given.pop("model")
    made = comparison_of("t", {"name": "own"}, model, named, title="T", select="last", first_seed=0, seeds=1, **given)
    cell = made.cells[0]
    chosen = [
        own if isinstance(method, str) else type(own).model_validate({**dict(method)})
        for own, method in zip(cell.methods, methods, strict=True)
    ]
    return made.model_copy(update={"cells": (cell.model_copy(update={"methods": tuple(chosen)}),)})


def sites_of(folder: Path, data: FederatedData, floors: Floors = LOOSE, **allowed: Any) -> dict[str, Site]:
    """The sites, each with its own folder and trainer."""
    return {name: site_of(folder / name, data, name, floors, **allowed) for name in data.clients}


def site_of(
    folder: Path,
    data: FederatedData,
    name: str,
    floors: Floors = LOOSE,
    kind: type[Site] | None = None,
    **allowed: Any,
) -> Site:
    """One site; the trainer is in this process. Tests of anything but floors have none: their sites are tiny.

    kind: by default one whose administrator approves, see `Willing`.
    """
    own = data.select(lambda index: data.clients[index] == name)
    config = SiteConfig(name=name, data={}, allow=Allowed(**allowed), floors=floors)
    trainer = Inline(SiteTrainer(lambda kind: own, folder / "models", floors=floors))
    return (kind or Willing)(folder, config, trainer)


class Willing(Site):
    """A site whose administrator approves every study of a hub that `hub_of` made, as its file says it then."""

    def answer(self, message: Message, caller: str, peer: PeerTransport) -> Message:
        terms = message.header.get("terms") or message.header
        study = HUBS.get(str(terms.get("study"))) if isinstance(terms, Mapping) else None
        found = None if study is None else Study.load(study / "study.json")
        if found is not None and found.digest == terms.get("approved") and self.config.name in found.present:
            known = Approvals.load(self.folder).of(found.id)
            if known is None or known.digest != found.digest:
                approve(self.folder, self.config.name, found)
        return super().answer(message, caller, peer)


HUBS = dict[str, Path]()
"""A study's id -> the folder of its hub."""


def loosen(folder: Path) -> None:
    """Take the floors out of folder/site.toml, for a test whose sites are tiny."""
    SiteConfig.load(folder).model_copy(update={"floors": LOOSE}).save(folder)


def hub_of(folder: Path, experiment: Experiment, data: FederatedData, **settings: Any) -> Path:
    """A hub's folder, ready to run."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "experiment": experiment.model_dump(mode="json"),
        "kind": Kind.of(data).to_dict(),
        "sites": data.clients,
    }
    study, _ = save_hub(folder, HubConfig.model_validate({**values, "deadline": 30.0, **settings}))
    HUBS[study.id] = folder
    return folder


def study_of_run(
    method: str, neighbours: Mapping[str, float] | None = None, late: Sequence[str] = (), rounds: int = 9
) -> Study:
    """A study of `data_of` with one run, `r`, at three sites and the late ones; or at site-1 and these neighbours."""
    return _study_of_run(method, None if neighbours is None else tuple(neighbours.items()), tuple(late), rounds)


@cache
def _study_of_run(
    method: str, near: tuple[tuple[str, float], ...] | None, late: tuple[str, ...], rounds: int
) -> Study:
    data = data_of()
    sites = (*data.clients, *late) if near is None else ("site-1", *dict(near))
    name = f"{method}-{zlib.crc32(repr((method, near, late, rounds)).encode()):08x}"
    values = experiment_of([method], rounds=rounds).model_dump(mode="json")
    made = study_of(HubConfig(study=name, experiment=values, kind=Kind.of(data).to_dict(), sites=sites))
    edges = None if near is None else {"site-1": dict(near)}
    run = made.runs[0].model_copy(update={"run": "r", "neighbours": edges})
    (traffic,) = made.travels.values()
    fewest = made.smallest_cohort - len(late)
    changed = {"runs": (run,), "travels": {"": traffic}, "late": late, "smallest_cohort": fewest}
    return Study.model_validate({**made.model_dump(), **{key: _plain(value) for key, value in changed.items()}})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value.model_dump() if isinstance(value, BaseModel) else value


def message_of(
    study: Study,
    task: str,
    vectors: Vectors | None = None,
    neighbours: Mapping[str, float] | None = None,
    **header: Any,
) -> Message:
    """A call of site-1 in the study's first run, as its hub makes it; header: other fields, None leaves one out."""
    clients = len(study.sites) - len(study.late)
    place = {"id": 0, "clients": clients, "samples": 36, "cohort": float(clients), "neighbours": neighbours}
    terms = study.terms(study.runs[0].run, Kind.of(data_of()).to_dict()).model_dump(mode="json")
    head: dict[str, Any] = {"job": 1, "call": 1, "round": 0, "used": -1, "run": terms["run"], "terms": terms}
    head |= {"place": place, "task": task, **header}
    return Message({key: value for key, value in head.items() if value is not None}, vectors or {})


def changes(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """These plain values, each time with one of them changed, at every depth."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from (((key, *where), {**values, key: inner}) for where, inner in changes(value))
        other = "other" if isinstance(value, str) else [value, 1] if isinstance(value, bool) else None
        other = value + 1 if other is None and isinstance(value, int | float) else other
        yield (key,), {**values, key: [value] if other is None else other}
        yield (key, "absent"), {name: kept for name, kept in values.items() if name != key}


class Silent:
    """A transport in which some sites do not answer rounds: (run, round) -> their names."""

    def __init__(self, inner: InProcess, silent: Mapping[tuple[str, int], Sequence[str]]) -> None:
        self.inner, self.silent = inner, silent

    @property
    def sites(self) -> Sequence[str]:
        return self.inner.sites

    def call(self, round: int, messages: Mapping[str, Message], *, deadline: float) -> Replies:
        names = {m.header.get("run") for m in messages.values()}
        run = str(next(iter(names), ""))
        is_round = any(message.header.get("task") == "round" for message in messages.values())
        silent = self.silent.get((run, round), ()) if is_round else ()
        got = self.inner.call(round, {s: m for s, m in messages.items() if s not in silent}, deadline=deadline)
        return Replies(got.replies, {**got.missing, **{s: "silent" for s in silent if s in messages}})


def scores_of(folder: Path, run: str) -> dict[tuple[int, str, str], Any]:
    """All recorded scores of a run: (round, model, split) -> `ClientScores`."""
    with Store(folder, create=False) as store:
        return {
            (round, model, split): store.scores(run, round, model, split)
            for round in store.evaluated(run)
            for model in store.models(run)
            for split in store.evaluated_splits(run, round)
        }


def kept_file(site: Path, run: str, study: str = "*") -> Path:
    """The file with a site's kept state of a run; by default of the only study that has one there."""
    (path,) = (site / "state").glob(f"{study}/{run.replace('/', '__')}/kept.msg")
    return path


def participation(folder: Path) -> list[dict[str, Any]]:
    return list(Participation(folder).lines())
