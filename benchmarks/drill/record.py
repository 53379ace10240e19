"""The record of a drill: drill.json, and drill.md for people."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.drill.checks import Check
from benchmarks.drill.drill import Drill
from benchmarks.sites.record import machine, table
from idiolect.deploy.messages import lines_of
from idiolect.deploy.terms import VERSION


def machine_of() -> dict[str, Any]:
    """This machine, now, and the versions."""
    return {**machine(), "idiolect": VERSION}


def written(drill: Drill, checks: Sequence[Check]) -> bool:
    """Write FOLDER/drill.json and FOLDER/drill.md; whether all checks hold."""
    about = json.loads((drill.folder / "about.json").read_text())["machine"]
    story, lines = list(lines_of(drill.story)), drill.lines()
    took = sorted(line["seconds"] for line in lines)
    seconds = {"median": took[len(took) // 2], "p99": took[int(0.99 * len(took))], "largest": took[-1]}
    values = {
        "about": about,
        "size": asdict(drill.size),
        "parts": dict(drill.cast.parts),
        "good": all(check.good for check in checks),
        "checks": [asdict(check) for check in checks],
        "story": story,
        "rounds": {"lines": len(lines), "jobs": len({line["job"] for line in lines}), "seconds": seconds},
        "memory_mb": memory_of(drill),
    }
    text = json.dumps(values, indent=1).replace(str(drill.folder), "FOLDER")
    (drill.folder / "drill.json").write_text(text + "\n")
    (drill.folder / "drill.md").write_text("\n".join(page(values)) + "\n")
    return bool(values["good"])


def memory_of(drill: Drill) -> dict[str, float]:
    """Who -> the largest memory at any look, of all its processes, in MB (PSS); "all": of all together."""
    most = dict[str, float]()
    for look in lines_of(drill.folder / "memory.jsonl"):
        for who, mb in {**look["mb"], "all": round(sum(look["mb"].values()), 1)}.items():
            most[who] = max(most.get(who, 0.0), mb)
    return most


def page(values: dict[str, Any]) -> list[str]:
    """The record as a page."""
    about, size, rounds = values["about"], values["size"], values["rounds"]
    seconds = rounds["seconds"]
    total = sum(step["seconds"] for step in values["story"])
    pace = f" by {size['pace']:g} s, and" if size["pace"] else ""
    pace = f" The first site delays its answers{pace} by up to {size['hold']:g} s while a step is prepared."
    parts = "; ".join(f"{site} {part}" for site, part in values["parts"].items())
    return [
        "# The drill",
        "",
        f"{'Everything is as it must be.' if values['good'] else 'NOT everything is as it must be.'} "
        f"`python -m benchmarks.drill FOLDER`; {about['date']} UTC, {about['cores']} cores shared with others, load "
        f"{about['load'][0]} before the start; Python {about['python']}, JAX {about['jax']}, NVFlare "
        f"{about['nvflare']}, idiolect {about['idiolect']}.",
        "",
        f"{size['sites']} sites and a hub, each a process of its own with certificates by request, on one machine; "
        f"SCAFFOLD, {size['rounds']} rounds, deadline of a round {size['deadline']:g} s; the sites keep the default "
        f"floors.{pace} {parts}.",
        "",
        f"{rounds['lines']} lines of rounds in {rounds['jobs']} jobs. A round took {seconds['median']} s (median), "
        f"{seconds['p99']} s (99 %), {seconds['largest']} s (largest). The steps below took {total:,.0f} s in all.",
        "",
        "## What happened",
        "",
        *table(
            ("time", "rounds done", "what", "seconds"),
            [(step["time"][11:19], step["rounds"], step["what"], step["seconds"]) for step in values["story"]],
        ),
        "## What must be so",
        "",
        *table(
            ("what", "seen", "holds"),
            [
                (one["name"], one["seen"].replace("|", "/"), "yes" if one["good"] else "NO")
                for one in values["checks"]
            ],
        ),
        "## Memory",
        "",
        "The largest at any look, of all processes of each (PSS, MB).",
        "",
        *table(("who", "MB"), sorted(values["memory_mb"].items())),
    ]
