"""Forget a site exactly: continue as if it had never joined.

Each run that the site has joined is started again: from its beginning, or from the checkpoint before the site joined.
What depends on the site's messages is removed from the hub's folder: checkpoints, evaluations, reports, a schema that
it has helped to agree on. Of the rounds that are taken back, `forgotten.jsonl` keeps names and numbers only. The
other sites take their private states back when the hub calls them with the run's new start: see `site.state`.

The plan is written first and removed last. So one that is interrupted is finished by the same command, and nothing
runs in between.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from idiolect.core.errors import ConfigError, StoreError, os_errors_as, require
from idiolect.core.files import alone, atomic_write, clear_scratch, json_of, write_text
from idiolect.deploy.hub.agreement import NOTES, SCHEMA
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.create import remove_site
from idiolect.deploy.hub.journal import FORGOTTEN, PARTICIPATION, HubState, Participation, before
from idiolect.deploy.hub.plan import save_hub
from idiolect.deploy.hub.received import forget_greeting
from idiolect.deploy.hub.run import experiment_for, rows_of
from idiolect.deploy.hub.supervised import supervised
from idiolect.deploy.messages import lines_of
from idiolect.study.store.recorded import graph_key
from idiolect.study.store.store import DATABASE, Store

PLAN = "forgetting.json"
_REPORT = ("report.md", "report.json", "report.html", "table.csv", "clients.csv", "diagnostics.csv", "segment.json")
_FOLDERS = ("figures", "models")


@dataclass(frozen=True)
class Restart:
    """A run that is started again. done: its rounds so far; to: the round after which it continues, 0 for its
    beginning; seconds: that the rounds taken back took.
    """

    run: str
    done: int
    to: int
    seconds: float

    @property
    def rounds(self) -> int:
        """The rounds to be repeated."""
        return self.done - self.to


@dataclass(frozen=True)
class Plan:
    """What forgetting a site takes back. starts: run -> the number of its next start; schema: whether the sites must
    agree on one anew.
    """

    site: str
    restarts: tuple[Restart, ...]
    starts: dict[str, int]
    schema: bool

    @property
    def rounds(self) -> int:
        """The rounds to be repeated, of all runs."""
        return sum(restart.rounds for restart in self.restarts)

    @property
    def seconds(self) -> float:
        """What these rounds took."""
        return sum(restart.seconds for restart in self.restarts)


def plan_of(folder: Path, site: str, from_beginning: bool = False) -> Plan:
    """What it takes to forget a site; a plan that was interrupted is that one. Nothing is changed.

    from_beginning: also runs that the site joined late. Raises `ConfigError` for a site that the hub does not have.
    """
    interrupted = _interrupted(folder)
    if interrupted is not None:
        require(
            interrupted.site == site,
            f"forgetting '{interrupted.site}' was interrupted; finish it first: idiolect hub forget "
            f"{interrupted.site} {folder}",
        )
        return interrupted
    config = HubConfig.load(folder)
    require(site in config.sites, f"there is no site '{site}'; the federation has {', '.join(config.sites)}")
    schema = config.agree and config.kind is not None and site in (config.agreed_by or config.sites)
    restarts = tuple(_restarts(folder, config, site, from_beginning, schema))
    starts = {restart.run: config.starts.get(restart.run, 0) + 1 for restart in restarts}
    return Plan(site, restarts, starts, schema)


def forget(folder: Path, plan: Plan) -> None:
    """Do what the plan says.

    Raises `StoreError` if a supervisor or a job works in the folder, `ConfigError` if the hub cannot do without the
    site.
    """
    busy = f"a job still works in '{folder}': wait for its end, or end it with 'idiolect hub stop'"
    with supervised(folder), alone(folder / ".lock", busy):
        if plan.site not in HubConfig.load(folder).left:
            remove_site(folder, plan.site)
        _write_plan(folder, plan)
        _forget(folder, plan)


def check_forgotten(folder: Path) -> None:
    """Raise `StoreError` if forgetting a site was interrupted in this folder."""
    plan = _interrupted(folder)
    if plan is not None:
        raise StoreError(
            f"forgetting site '{plan.site}' was interrupted; finish it: idiolect hub forget {plan.site} {folder}"
        )


def _restarts(folder: Path, config: HubConfig, site: str, from_beginning: bool, schema: bool) -> Iterator[Restart]:
    if config.kind is None or not (folder / DATABASE).is_file():
        return
    seconds = dict[str, dict[int, float]]()
    for line in Participation(folder).lines():
        if "round" in line and "run" in line:
            seconds.setdefault(line["run"], {})[int(line["round"])] = float(line.get("seconds", 0.0))
    with Store(folder, create=False) as store:
        runs = [(row.id, _checkpoint(store, row.id)) for row in rows_of(config, experiment_for(config))]
    for run, path in runs:
        state = HubState.load(path, run)
        if state is None or not (schema or site in state.counts):
            continue
        old = None if from_beginning or schema else _before(path, run, site)
        to = 0 if old is None else old[1].round
        taken = [spent for round, spent in seconds.get(run, {}).items() if round >= to]
        yield Restart(run, state.round, to, sum(taken))


def _checkpoint(store: Store, run: str) -> Path:
    return store.checkpoint_path(run).with_suffix(".hub")


def _before(path: Path, run: str, site: str) -> tuple[Path, HubState] | None:
    """The newest checkpoint that was kept before the site joined."""
    found = list[tuple[Path, HubState]]()
    for copy in path.parent.glob(before(path).name):
        state = HubState.load(copy, run)
        if state is not None and site not in state.counts:
            found.append((copy, state))
    return max(found, key=lambda pair: pair[1].round, default=None)


def _forget(folder: Path, plan: Plan) -> None:
    with os_errors_as(f"cannot write to '{folder}'", after="; repeat the command when that is mended"):
        config = HubConfig.load(folder)
        change: dict[str, Any] = {"starts": {**config.starts, **plan.starts}}
        change |= {"kind": None, "agreed_by": ()} if plan.schema else {}
        save_hub(folder, config.model_copy(update=change))
        back = {restart.run: restart.to for restart in plan.restarts}
        _record(folder, plan, back)
        if back:
            _remove(folder, plan)
        _cut(folder, back)
        forget_greeting(folder, plan.site)
        clear_scratch(folder)
        (folder / PLAN).unlink()


def _record(folder: Path, plan: Plan, back: dict[str, int]) -> None:
    """Keep who took part in the rounds taken back: names and numbers."""
    path, now = folder / FORGOTTEN, datetime.now(UTC).isoformat(timespec="seconds")
    lines = list(lines_of(path))
    known = {(line["run"], line["start"], line["round"], line["job"]) for line in lines}
    for line in Participation(folder).lines():
        run, round = line.get("run"), line.get("round")
        if run not in back or round is None or int(round) < back[run]:
            continue
        key = run, plan.starts[run], round, line.get("job")
        if key not in known:
            lines.append({**dict(zip(("run", "start", "round", "job"), key, strict=True)), **_names(line)})
            lines[-1] |= {"forgotten": plan.site, "time": now}
    _write_lines(path, lines)


def _names(line: dict[str, Any]) -> dict[str, Any]:
    counts = {name: line[name] for name in ("asked", "replies") if name in line}
    return {"cohort": line.get("cohort", []), "answered": line.get("answered", []), **counts}


def _cut(folder: Path, back: dict[str, int]) -> None:
    """Leave out the lines of the rounds taken back."""
    lines = Participation(folder).lines()
    rest = [line for line in lines if line.get("run") not in back or line.get("round", -1) < back[line["run"]]]
    _write_lines(folder / PARTICIPATION, rest)


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    with atomic_write(path) as file:
        file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))


def _remove(folder: Path, plan: Plan) -> None:
    """Remove all that depends on the messages of the rounds taken back."""
    with Store(folder, create=False) as store:
        for restart in plan.restarts:
            path = _checkpoint(store, restart.run)
            stay = {path} if restart.to else set[Path]()
            if restart.to:
                content = before(path, restart.to).read_bytes()
                with atomic_write(path) as file:
                    file.write(content)
            for other in (*path.parent.glob(f"{path.stem}.*"), *path.parent.glob(f".{path.stem}.*")):
                if other not in stay and not _is_kept(other, restart, plan.site):
                    other.unlink()
            row = store.run(restart.run)
            if row is not None and not plan.schema:
                # The evaluation of the round itself goes, too: the site may have joined before it.
                store.erase(restart.run, restart.to - 1, [graph_key(row.cell, row.label)])
    if plan.schema:  # all runs are of another kind of data from now on
        for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", SCHEMA, NOTES):
            (folder / name).unlink(missing_ok=True)
    for name in _REPORT:
        (folder / name).unlink(missing_ok=True)
    for name in _FOLDERS:
        if (folder / name).exists():
            shutil.rmtree(folder / name)


def _is_kept(path: Path, restart: Restart, site: str) -> bool:
    """Whether a file of a run is a checkpoint without the site: one of a round that stands."""
    if not restart.to or not path.match(before(path.parent / path.name.partition(".")[0]).name):
        return False
    state = HubState.load(path, restart.run)
    return state is not None and site not in state.counts and state.round <= restart.to


def _write_plan(folder: Path, plan: Plan) -> None:
    write_text(folder / PLAN, json.dumps(asdict(plan)))


def _interrupted(folder: Path) -> Plan | None:
    path = folder / PLAN
    try:
        values = json_of(path.read_bytes())
        restarts = tuple(Restart(**restart) for restart in values.pop("restarts"))
        return Plan(**values, restarts=restarts)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"cannot read {path} ({error}); restore the hub's folder from a backup") from None
