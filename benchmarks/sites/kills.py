"""Fifty `kill -9` at random instants of a run; its states must be those of an undisturbed run."""

import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sites.federation import Place, data_of, experiment_of, processes, run_id, run_same_participation
from benchmarks.sites.parity import largest, same_states
from benchmarks.sites.who import members
from idiolect.deploy.hub.journal import Participation
from idiolect.deploy.nvflare.kits import HUB_FOLDER, Kit
from idiolect.deploy.nvflare.processes import start
from idiolect.deploy.nvflare.provision import Kits

SITES, ROUNDS, LEFT = 3, 500, 30
"""LEFT: rounds before the end after which nothing is killed: a run must end by itself."""
KILLS = {"trainer": 18, "worker": 10, "site": 9, "hub's job": 6, "hub": 7}
"""What is killed how often. site, hub: the parent, alone or with all it has started; started again after some s."""


@dataclass
class Killer:
    """Kills while a run goes on; what it did is in `done`."""

    kits: Kits
    out: Path
    seed: int = 0
    done: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        plan = [what for what, times in KILLS.items() for _ in range(times)]
        self.plan = [plan[i] for i in self.rng.permutation(len(plan))]
        self.ended = threading.Event()

    def rounds(self) -> int:
        """Rounds done."""
        return max((line["round"] + 1 for line in Participation(self.out).lines()), default=0)

    def run(self) -> None:
        """Kill one after the other, each at a random instant after at least one more round."""
        for what in self.plan:
            before = self.rounds()
            while self.rounds() <= before and not self.ended.wait(0.05):
                pass
            if self.ended.wait(float(self.rng.uniform(0, 1.0))) or self.rounds() > ROUNDS - LEFT:
                return
            while not self.ended.is_set() and not self.kill(what):
                self.ended.wait(0.2)

    def kill(self, what: str) -> bool:
        """Kill one; False if there is none now."""
        names = [*self.kits.sites] if what in ("trainer", "worker", "site") else ["hub"]
        name = str(self.rng.choice(names))
        now, alone = members(self.kits)[name], bool(self.rng.integers(2))
        targets = {"trainer": now.trainers, "worker": now.workers, "hub's job": now.workers}.get(what)
        if targets is None:
            parent = () if now.parent is None else (now.parent,)
            targets = parent if alone else tuple(now.all) if parent else ()
        if not targets:
            return False
        for pid in targets:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        at = {"what": what, "who": name, "processes": len(targets), "round": self.rounds(), "at": time.monotonic()}
        self.done.append(at)
        if what in ("site", "hub"):
            time.sleep(float(self.rng.uniform(1, 4)))
            self.again(self.kits.hub if what == "hub" else self.kits.sites[name])
        return True

    def again(self, kit: Kit) -> None:
        """Start a kit's process again, as its service would."""
        start(kit, {HUB_FOLDER: str(self.out.absolute())} if kit.kind == "server" else None)


def measure(folder: Path, seed: int = 0) -> dict[str, Any]:
    """The killed run, and the undisturbed one in which the same sites answered each round."""
    data = data_of(SITES)
    experiment = experiment_of([{"name": "scaffold", "rate": 0.05}], rounds=ROUNDS, eval_every=100)
    run, out, told = run_id("scaffold"), folder / "killed", list[str]()

    def tell(line: str) -> None:
        told.append(line)
        print(f"  {line}", flush=True)

    began = time.monotonic()
    with processes(out, experiment, data, deadline=5.0, quorum=1) as (kits, place, supervise):
        killer = Killer(kits, out, seed)
        thread = threading.Thread(target=killer.run, daemon=True)
        thread.start()
        try:
            jobs = supervise(tell)
        finally:
            killer.ended.set()
            thread.join()
        seconds = time.monotonic() - began
        undisturbed = run_same_participation(folder / "undisturbed", place, experiment, data)
        return {**judged(place, undisturbed, run, killer), "jobs": jobs, "seconds": round(seconds), "events": told}


def judged(place: Place, undisturbed: Place, run: str, killer: Killer) -> dict[str, Any]:
    """What is equal, and what each kill cost."""
    lines = [line for line in Participation(place.hub).lines() if line["run"] == run]
    answered = place.answered(run)
    shared, private = same_states(place, undisturbed, run)
    mine, theirs = place.private(run), undisturbed.private(run)
    number: dict[str, int] = {}
    for kill in killer.done:
        number[kill["what"]] = number.get(kill["what"], 0) + 1
    return {
        "kills": number,
        "done": killer.done,
        "rounds": len(answered),
        "rounds_without_a_line": sorted(set(range(ROUNDS)) - set(answered)),
        "lines": len(lines),
        "partial_rounds": sum(len(sites) < SITES for sites in answered.values()),
        "shared_same_bits": shared,
        "private_same_bits": private,
        "shared_difference": largest(place.shared(run), undisturbed.shared(run)),
        "private_difference": max(largest(mine[site], theirs[site]) for site in mine),
    }
