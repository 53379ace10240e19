"""A long run: memory of every process, growth of logs and folders."""

import time
from pathlib import Path
from typing import Any

from benchmarks.sites.federation import data_of, experiment_of, processes, run_id
from benchmarks.sites.record import folder_bytes, machine, memory, table, write
from benchmarks.sites.who import members
from idiolect.core.repeating import repeating
from idiolect.deploy.hub.journal import Participation

SITES, ROUNDS, EVERY, WARM, FLAT = 6, 2500, 10.0, 500, 0.10
"""Sites, rounds, seconds between looks, rounds before the first that counts, and the growth that is allowed."""


def measure(out: Path, rounds: int = ROUNDS, every: float = EVERY) -> dict[str, Any]:
    """Run FedAvg and look at all processes every few seconds."""
    data = data_of(SITES)
    experiment = experiment_of([{"name": "fedavg", "rate": 0.05}], rounds=rounds, eval_every=100)
    looks: list[dict[str, Any]] = []
    with processes(out, experiment, data, deadline=60.0) as (kits, place, run):
        began = time.monotonic()

        def follow() -> None:
            lines = list(Participation(out).lines())
            look: dict[str, Any] = {"seconds": round(time.monotonic() - began, 1), "round": len(lines)}
            for name, one in members(kits).items():
                parts = {"parent": [one.parent or 0], "worker": one.workers, "trainer": one.trainers}
                look |= {f"{name} {part}": round(sum(map(memory, pids)), 1) for part, pids in parts.items() if pids}
            look["hub folder"] = sum(p.stat().st_size for p in out.iterdir() if p.is_file())
            look["hub kit"] = folder_bytes(kits.hub.folder)
            look["site-1 kit"] = folder_bytes(kits.sites["site-1"].folder)
            looks.append(look)

        with repeating(follow, every):
            jobs = run(print)
            seconds = time.monotonic() - began
        lines = [line for line in Participation(out).lines() if line["run"] == run_id("fedavg")]
        del place
    took = sorted(line["seconds"] for line in lines)
    complete = sum(len(line["answered"]) == SITES for line in lines)
    return {
        "sites": SITES,
        "rounds": len(lines),
        "complete_rounds": complete,
        "jobs": jobs,
        "seconds": round(seconds, 1),
        "round_seconds": {"median": took[len(took) // 2], "p99": took[int(0.99 * len(took))], "largest": took[-1]},
        "growth": growth(looks),
        "looks": looks,
    }


def growth(looks: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of each process after the first rounds: MB at first, largest, last, and the growth of the mean from first to
    last quarter; of each folder, bytes a round.
    """
    counted = [look for look in looks if look["round"] >= WARM]
    counted = [look for look in counted if look["round"] < look_rounds(looks)]
    found: dict[str, dict[str, float]] = {}
    for key in sorted({key for look in counted for key in look} - {"seconds", "round"}):
        values = [(look["round"], look[key]) for look in counted if look.get(key)]
        if len(values) < 4:
            continue
        numbers = [value for _, value in values]
        if key.split()[-1] in ("folder", "kit"):
            found[key] = {
                "bytes_a_round": round((numbers[-1] - numbers[0]) / max(values[-1][0] - values[0][0], 1), 1)
            }
            continue
        quarter = max(len(numbers) // 4, 1)
        first, last = sum(numbers[:quarter]) / quarter, sum(numbers[-quarter:]) / quarter
        found[key] = {"first": numbers[0], "largest": max(numbers), "last": numbers[-1], "growth": last / first - 1}
    return found


def look_rounds(looks: list[dict[str, Any]]) -> int:
    """The rounds done at the last look: what is seen when the job is ending does not count."""
    return max((look["round"] for look in looks), default=0)


def report(out: Path, rounds: int = ROUNDS) -> bool:
    """Measure and write the page; whether all is flat."""
    about = machine()
    found = measure(out, rounds)
    processes_ = {name: values for name, values in found["growth"].items() if "growth" in values}
    folders = {name: values for name, values in found["growth"].items() if "bytes_a_round" in values}
    flat = bool(processes_) and all(
        abs(values["growth"]) <= FLAT or values["growth"] < 0 for values in processes_.values()
    )
    head = ("process", "first MB", "largest", "last", "growth of the mean, first to last quarter")
    rows = [
        (name, v["first"], v["largest"], v["last"], f"{100 * v['growth']:+.1f} %") for name, v in processes_.items()
    ]
    took = found["round_seconds"]
    page = [
        f"{found['sites']} sites, {found['rounds']} rounds of FedAvg (MLR), "
        f"{found['complete_rounds']} of them with all answers, "
        f"{found['jobs']} job(s), {found['seconds']} s in all; a round {took['median']} s (median), "
        f"{took['p99']} s (99 %), {took['largest']} s (largest).",
        "",
        f"Memory after round {WARM} (PSS, a look every {EVERY:g} s); flat within 10 %: {'yes' if flat else 'NO'}.",
        "",
        *table(head, rows),
        *table(("folder", "bytes a round"), [(name, v["bytes_a_round"]) for name, v in folders.items()]),
    ]
    print(write("soak", "A long run", about, {**found, "flat": flat}, page))
    return flat
