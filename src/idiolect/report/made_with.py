"""The provenance of a report's numbers as plain lines, without host names and paths."""

from collections.abc import Sequence
from typing import Any

from idiolect.study.analyse.results import Results
from idiolect.study.store.store import RunRow


def expected_runs(results: Results) -> list[RunRow]:
    """The experiment's runs that are in the store, in the store's order."""
    groups = {(c.id, m.title) for c in results.experiment.cells for m in c.methods}
    seeds = results.experiment.seed_list
    return [row for row in results.rows.values() if (row.cell, row.label) in groups and row.seed in seeds]


def made_with(results: Results) -> list[str]:
    """List date, git commit, versions and machine; where runs differ, all values."""
    provenances = [row.provenance for row in expected_runs(results)]
    if not provenances:
        return ["nothing was run yet"]
    days = sorted({str(p.get("time", ""))[:10] for p in provenances} - {""})
    packages = sorted({name for p in provenances for name in p.get("packages", {})}, key=_order)
    lines = [
        _named("date", [days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"] if days else []),
        _named("git commit", _each(provenances, _commit)),
        _named("Python", _each(provenances, lambda p: p.get("python"))),
        *(_named(name, _each(provenances, lambda p, n=name: p.get("packages", {}).get(n))) for name in packages),
        _named("machine", _each(provenances, _machine)),
    ]
    return [line for line in lines if line]


def _each(provenances: Sequence[dict[str, Any]], value: Any) -> list[str]:
    """The distinct values of all runs, in order of appearance."""
    return list(dict.fromkeys(str(v) for p in provenances if (v := value(p))))


def _named(name: str, values: Sequence[str]) -> str:
    return f"{name}: {', '.join(values)}" if values else ""


def _order(package: str) -> tuple[bool, str]:
    return package != "idiolect", package


def _commit(provenance: dict[str, Any]) -> str | None:
    git = provenance.get("git")
    if not git:
        return None
    return str(git["commit"])[:12] + (" with uncommitted changes" if git.get("dirty") else "")


def _machine(provenance: dict[str, Any]) -> str:
    """Processor, cores, memory and device, as far as the run recorded them."""
    machine, cpu, cores, memory, device = map(provenance.get, ("machine", "cpu", "cores", "memory_gb", "device"))
    parts = [machine, cpu if cpu != machine else None, cores and f"{cores} cores", memory and f"{memory} GB memory"]
    parts.append(device and f"device {device}")
    return ", ".join(str(part) for part in parts if part)
