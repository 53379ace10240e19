"""A hub's job: every run of its experiment that is not finished, recorded in the folder as a simulation is."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, DataError, DivergedError
from idiolect.data.federated import SPLITS
from idiolect.deploy.events import EventLog
from idiolect.deploy.headers import Greeting, Request
from idiolect.deploy.hub.agreement import agreed_config
from idiolect.deploy.hub.calls import Call
from idiolect.deploy.hub.config import HubConfig, next_job
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.hub.plan import save_hub
from idiolect.deploy.hub.received import Now, Received, keep_greetings
from idiolect.deploy.hub.revoked import refusals
from idiolect.deploy.hub.rounds import HubRun
from idiolect.deploy.hub.server import HubServer, check_runs_at_sites, unseen_data
from idiolect.deploy.study import Study
from idiolect.deploy.terms import PROTOCOL, VERSION
from idiolect.deploy.transport import HubTransport
from idiolect.runtime.evaluate import ClientScores
from idiolect.study.run.engine import FINISHED
from idiolect.study.run.launch import mastered
from idiolect.study.run.resolve import Workbench
from idiolect.study.spec.experiment import Cell, Experiment, Method, digest, experiment_of, metrics_of
from idiolect.study.store.claim import claim
from idiolect.study.store.recorded import record_method
from idiolect.study.store.store import RunRow, Store

ENOUGH = 1_000_000
"""Samples of a site that has not said how many it has: no warning of small data is due."""
AUDIT = [
    "The samples of different sites were never in one place, so they were not searched for duplicates across sites."
]


def experiment_for(config: HubConfig) -> Experiment:
    """The experiment of a hub. Raises `ConfigError` for what cannot run at sites, or a quorum above the cohort."""
    experiment = experiment_of(config.experiment, "the hub's experiment")
    for cell in experiment.cells:
        if cell.cohort is not None and cell.sampling == "fixed" and (config.quorum or 0) > cell.cohort:
            raise ConfigError(
                f"cell '{cell.id}': --quorum {config.quorum}: a round asks {cell.cohort:g} sites (cohort); "
                "a round needs at most all of them"
            )
        for method in cell.methods:
            check_runs_at_sites(cell, method)
    return experiment


def rows_of(config: HubConfig, experiment: Experiment) -> list[RunRow]:
    """The store's rows of all runs. What the data are is their kind: the samples are the sites' own."""
    kind = config.agreed
    stand_in = unseen_data(kind, {site: dict.fromkeys(SPLITS, ENOUGH) for site in config.sites})
    bench, rows = Workbench(data=stand_in), list[RunRow]()
    for cell in experiment.cells:
        for method in cell.methods:
            for seed in experiment.seed_list:
                row = bench.row(cell, method, stand_in, seed, single=False)
                where = {**row.config, "data": {"sites": kind.digest}}
                rows.append(replace(row, data_hash=kind.digest, config=where, config_hash=digest(where, seed)))
    return rows


def run_hub(folder: Path, transport: HubTransport) -> None:
    """Run what the folder does not have yet, with the sites that the transport reaches.

    Raises `QuorumError` if too few sites answer: what was done is kept, and the next job continues. A run that
    diverges is recorded, and the next one follows.
    """
    config = HubConfig.load(folder)
    experiment = experiment_for(config)
    events = EventLog(folder, "hub")
    with mastered(folder) as store, closing(events), closing(Now(folder)) as doing:
        study, _ = save_hub(folder, config)
        if config.kind is not None:  # what does not fit the folder is reported before any call
            claim(store, experiment, rows_of(config, experiment))
        call = Call(
            transport, next_job(folder), received=Received(folder), now=doing, revoked=lambda: refusals(folder)
        )
        keep_greetings(folder, _greet(call, config))
        for site, why in call.refused.items():
            events.write(
                "refused", f"site '{site}' is not called in this job: {why}", "warning", site=site, reason=why
            )
        if config.kind is None:
            config = agreed_config(folder, config, study, call)
            events.write("schema agreed", "all sites have agreed on a schema")
        rows = rows_of(config, experiment)
        claim(store, experiment, rows)
        stored = {row.id: row for row in store.runs()}
        for row in rows:
            known = stored.get(row.id)
            if known is None or known.status not in FINISHED:
                cell = experiment.cell(row.cell)
                events.write("run started", f"{row.id} has started", run=row.id)
                status, why = _train(store, cell, cell.method(row.label), row, config, study, call, events)
                level = "info" if status == "done" else "error"
                events.write("run ended", f"{row.id}: {why or status}", level, run=row.id, status=status)


def _greet(call: Call, config: HubConfig) -> dict[str, Greeting]:
    """Ask every site which idiolect it has; those with another are not called in this job. Returns their answers."""
    greetings = dict[str, Greeting]()
    hello = Request(task="hello", revoked=tuple(sorted(call.out())))
    got = call(dict.fromkeys(config.present, hello), round=0, deadline=config.starting)
    for site, answer in got.replies.items():
        try:
            has = Greeting.of(answer, "its greeting")
        except DataError as error:
            call.refused[site] = str(error)
            continue
        greetings[site] = has
        if (has.protocol, has.version) != (PROTOCOL, VERSION):
            call.refused[site] = (
                f"it has idiolect {has.version} (protocol {has.protocol}), the hub {VERSION} (protocol {PROTOCOL})"
            )
        elif has.name != site:
            call.refused[site] = f"it calls itself '{has.name}'"
    return greetings


def _train(
    store: Store,
    cell: Cell,
    method: Method,
    row: RunRow,
    config: HubConfig,
    study: Study,
    call: Call,
    events: EventLog,
) -> tuple[str, str]:
    """One run, recorded; a diverged one is marked so. Returns how it ended, and why if it diverged."""
    row = store.start(row)
    store.set_fact(f"audit {row.data_hash}", AUDIT)
    metrics = metrics_of(cell, config.agreed.task)

    def serving(server: HubServer) -> None:
        record_method(store, row, server.simulation)
        store.name_clients(row.id, server.simulation.data.clients)  # those that have joined, by their numbers

    def evaluated(round: int, scores: list[ClientScores], diagnostics: dict[str, float], seconds: float) -> None:
        store.record(row.id, round, scores, seconds=seconds, compile_seconds=0.0, diagnostics=diagnostics)

    run = HubRun(
        cell,
        method,
        row.seed,
        row.id,
        config=config,
        study=study,
        call=call,
        path=store.checkpoint_path(row.id).with_suffix(".hub"),
        participation=Participation(store.folder, events),
        metrics=metrics,
        serving=serving,
        evaluated=evaluated,
        has=lambda round: round in store.evaluated(row.id),
        rewound=lambda round: store.rewind(row.id, round),
    )
    store.rewind(row.id, run.standing.round if run.standing.counts else -1)
    try:
        run.train()
    except DivergedError as error:
        store.finish(row.id, "diverged", str(error))
        return "diverged", str(error)
    store.finish(row.id, "done")
    return "done", ""


def progress(folder: Path) -> tuple[int, int]:
    """(rounds done, rounds in all) of all runs of a hub's folder; (0, 0) if it holds nothing that can be read."""
    config = HubConfig.load(folder)
    experiment = experiment_for(config)
    seeds = len(experiment.seed_list)
    total = sum(cell.rounds * len(cell.methods) for cell in experiment.cells) * seeds
    done: dict[str, Any] = {}
    for line in Participation(folder).lines():
        # The last line counts: a run may have returned to an earlier round.
        done[line["run"]] = int(line["rollback"]) if "rollback" in line else int(line["round"]) + 1
    return sum(done.values()), total
