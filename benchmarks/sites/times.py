"""From the start to the first round, a round's seconds beyond training, and the memory of every process."""

import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.sites.federation import NAME, data_of, experiment_of, run_in_process
from benchmarks.sites.live import Live, Row, live
from benchmarks.sites.record import memory, memory_together
from benchmarks.sites.who import members
from idiolect.data import from_arrays
from idiolect.data.federated import FederatedData
from idiolect.deploy.hub.journal import Participation

SITES = 4
WARM = 3
"""Rounds that are left out: in the first one everything is compiled."""
MEMORY_ROUNDS = 100
"""Rounds of the run whose memory is read."""


def wide(features: int = 2600, classes: int = 1000, samples: int = 40) -> FederatedData:
    """Four sites of few samples whose model has some 10 MB."""
    rng, parts = np.random.default_rng(0), {}
    for number in range(1, SITES + 1):
        y = rng.integers(0, classes, samples)
        parts[f"site-{number}"] = rng.normal(size=(samples, features)).astype("f4"), y
    return from_arrays(parts, classes=[f"c{number}" for number in range(classes)])


def times(folder: Path) -> list[Row]:
    """Messages of 4 KB and of 10 MB."""
    rows = list[Row]()
    for title, data, rounds, allowed in (
        ("4 KB", data_of(SITES, features=340), 200, 0.2),
        ("10 MB", wide(), 30, 1.0),
    ):
        out = folder / title.replace(" ", "")
        rows += _timed(out, title, data, rounds, allowed)
        rows += _sizes(out.with_name(f"{out.name}-memory"), title, data)
    return rows


def _timed(out: Path, title: str, data: FederatedData, rounds: int, allowed: float) -> list[Row]:
    experiment = experiment_of(["fedavg"], model={"name": "mlr"}, rounds=rounds, eval_every=rounds)
    began, first = list[float](), list[float]()

    def wait(run: Live) -> None:
        parent = members(run.kits)["hub"].parent
        assert parent is not None
        began.append(psutil.Process(parent).create_time())
        run.wait(lambda: bool(run.lines()))
        first.append(time.time())

    run = live(out, experiment, data, wait, deadline=60.0)
    alone = run_in_process(out.with_name(f"{out.name}-alone"), experiment, data)
    lines = run.lines()
    real, inside = _median(lines), _median(list(Participation(alone.hub).lines()))
    size = lines[-1]["bytes_down"] // SITES
    above = real - inside
    return [
        Row(
            f"start to first round, {title}",
            f"from the job's submission, with {SITES} sites waiting, to the first line. From the start of all "
            f"processes at once, on this one machine, it takes {first[0] - began[0]:.1f} s",
            _short(first[0] - run.submitted),
            first[0] - run.submitted < 20,
        ),
        Row(
            f"a round, {title}",
            f"median of {rounds - WARM}, messages of {size:,} bytes down, fedavg, {NAME} data; the same run in one "
            f"process with trainers as processes takes {inside:.3f} s, so engine and network take {above:.3f} s "
            f"(allowed: {allowed:g} s)",
            _short(real),
            above <= allowed,
        ),
    ]


def _sizes(out: Path, title: str, data: FederatedData) -> list[Row]:
    """In a run of its own: to look at memory takes time."""
    experiment = experiment_of(["fedavg"], model={"name": "mlr"}, rounds=MEMORY_ROUNDS, eval_every=MEMORY_ROUNDS)
    most: dict[str, float] = {}
    early, later = list[float](), list[float]()

    def act(run: Live) -> None:
        while not run.wait(lambda: bool(run.lines()), limit=0.5) and not run.ended.is_set():
            early.append(_lone(run))
        while not run.ended.wait(1.0):
            for role, size in _memory(run).items():
                most[role] = max(most.get(role, 0.0), size)
            if run.rounds() < MEMORY_ROUNDS:
                later.append(_lone(run))

    live(out, experiment, data, act, deadline=60.0)
    sites = [f"{role} {megabytes:.0f}" for role, megabytes in sorted(most.items())]
    return [
        Row(f"memory, {title}", f"largest PSS in MB: {', '.join(sites)}", "", True),
        Row(
            f"a lone site, {title}",
            "all pages of one site's three processes, each page once, as if the site had the machine for itself "
            f"(/proc/PID/pagemap): at most {max(later):.0f} MB in its rounds, {max(early):.0f} MB before the end of "
            "the first one (allowed in the rounds of 4 KB: 450 MB)",
            "",
            title != "4 KB" or max(later) <= 450,
        ),
    ]


def _short(seconds: float) -> float:
    return round(seconds, 3)


def _median(lines: list[Mapping[str, Any]] | list[dict[str, Any]]) -> float:
    return statistics.median(float(line["seconds"]) for line in lines[WARM:])


def _lone(run: Live) -> float:
    """MB of the first site's processes, see `memory_together`."""
    return memory_together(members(run.kits)["site-1"].all)


def _memory(run: Live) -> dict[str, float]:
    """MB of each role; of the sites the largest, and of one site in all."""
    found: dict[str, float] = {}
    for name, own in members(run.kits).items():
        who = "hub's" if name == "hub" else "site's"
        parts = {
            f"{who} parent": 0.0 if own.parent is None else memory(own.parent),
            f"{who} worker": sum(memory(pid) for pid in own.workers),
            f"{who} trainer": sum(memory(pid) for pid in own.trainers),
        }
        parts[f"{who} all"] = sum(parts.values())
        for role, size in parts.items():
            if size:
                found[role] = max(found.get(role, 0.0), size)
    return found
