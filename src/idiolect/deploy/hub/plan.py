"""A hub's study: what its folder will ask of the sites, and whether a change of the folder changes it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from idiolect.algorithms import registry as methods
from idiolect.core.errors import ConfigError, IdiolectError
from idiolect.data.federated import SPLITS, TaskKind
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.hub.server import HubServer, unseen_data
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import text_of
from idiolect.deploy.study import FILE, Difference, Part, PlannedRun, Study, Traffic, differences, group_of, new_id
from idiolect.deploy.trees import names_of
from idiolect.models.registry import complete_spec
from idiolect.study.run.recording import Schedule
from idiolect.study.spec.experiment import Cell, Experiment, Method, experiment_of, metrics_of, run_id

ROWS = 1_000_000
"""Rows of a site that nobody has counted yet: shapes of messages do not depend on them."""
TASKS: tuple[TaskKind, ...] = ("classification", "regression")


SPARE, MOST_AGAIN = 10, 50
"""Repeats of a run for calls without quorum and restarts, and the most of all; see `floors.Floors.again`."""


def study_of(config: HubConfig, before: Study | None = None) -> Study:
    """The study of a hub. before: the one that the sites know; sites that it does not have are late.

    Raises `ConfigError`, `DataError` for what cannot run at sites.
    """
    experiment = experiment_of(config.experiment, "the hub's experiment")
    late = () if before is None else (*before.late, *(site for site in config.sites if site not in before.sites))
    kind = None if config.agree else config.kind
    runs = [
        run for cell in experiment.cells for method in cell.methods for run in _runs(cell, method, experiment, kind)
    ]
    if before is not None and _is_same_work(before, config, kind, runs):
        runs, travels = list(before.runs), before.travels
    else:
        runs, travels = _with_messages(runs, experiment, config)
    return Study(
        id=config.study,
        experiment=_plain(config.experiment),
        sites=config.sites,
        left=config.left,
        late=tuple(site for site in late if site in config.sites),
        smallest_cohort=min(_fewest(cell, config, len(late)) for cell in experiment.cells),
        rounds=max(run.rounds for run in runs),
        evaluations=max(run.evaluations for run in runs),
        starts=config.starts,
        again=repeats(config, experiment),
        kind=_plain(kind),
        table=_plain(config.table),
        runs=tuple(runs),
        travels=travels,
    )


def repeats(config: HubConfig, experiment: Experiment) -> int:
    """How often a site may be asked again for a round or an evaluation of a run.

    By default `SPARE` times, and for the rounds that the rollbacks of the run may repeat: each goes back to an
    evaluation, a later one may go back to the one before it. At most `MOST_AGAIN`, which sites allow by default.
    """
    if config.again is not None:
        return config.again
    interval = max(min(cell.eval_every, cell.rounds) for cell in experiment.cells)
    back = interval * config.guard.rollbacks * (config.guard.rollbacks + 1) // 2
    return min(SPARE + back, MOST_AGAIN)


def save_hub(folder: Path, config: HubConfig) -> tuple[Study, tuple[Difference, ...]]:
    """Write folder/hub.json and folder/study.json: (the study, what differs from the study before).

    A configuration without a study's id gets a new one. Nothing is written if this raises `ConfigError` or
    `DataError`, for what cannot run at sites.
    """
    config.check()
    if not config.study:
        config = config.model_copy(update={"study": new_id(str(config.experiment.get("name", "")))})
    if config.kind is None:
        config = config.model_copy(update={"agree": True})
    path = folder / FILE
    before = Study.load(path) if path.is_file() else None
    if before is not None and before.id != config.study:
        before = None
    study = study_of(config, before)
    changed = () if before is None else tuple(differences(_values(before), _values(study)))
    config.save(folder)
    if before is None or changed:
        study.save(path)
    return study, changed


def current_study(folder: Path) -> tuple[Study, tuple[Difference, ...]]:
    """As `save_hub`, where hub.json may have been changed by hand."""
    return save_hub(folder, HubConfig.load(folder))


def change_lines(folder: Path, study: Study, changed: Sequence[Difference]) -> list[str]:
    """What an administrator reads when a change of the hub's folder has changed the study; nothing if it did not."""
    if not changed:
        return []
    lines = [f"  {one.field}: {one.approved} before, {one.asked} now" for one in _in_short(changed)]
    lines += [f"  and {len(changed) - MOST} more fields"] if len(changed) > MOST else []
    return [f"the study has changed, in {len(changed)} fields:", *lines, *next_lines(folder, study)]


def next_lines(folder: Path, study: Study) -> list[str]:
    """What to do with a study that is new or has changed."""
    return [
        f"study: {folder / FILE}, digest {study.digest}",
        "send this file to every site, and the digest by another channel; each site approves it with:",
        f"  idiolect site approve {FILE} KIT",
    ]


MOST = 8
"""Fields of a changed study that are named."""


def _in_short(changed: Sequence[Difference]) -> Sequence[Difference]:
    """The first differences; those of the summaries at the study's top come first."""
    return sorted(changed, key=lambda one: one.field.startswith(("experiment", "runs", "travels")))[:MOST]


def _values(study: Study) -> dict[str, Any]:
    return study.model_dump(mode="json")


def _plain(values: Any) -> Any:
    """These values as JSON gives them back, so that a study in memory equals the one in its file."""
    return json.loads(text_of(values))


def _runs(cell: Cell, method: Method, experiment: Experiment, kind: dict[str, Any] | None) -> list[PlannedRun]:
    """One run for each seed, without the neighbours."""
    schedule = Schedule(cell.rounds, cell.eval_every, cell.tail)
    settings = methods.hyperparameters(methods.ALGORITHMS[method.name])
    return [
        PlannedRun(
            run=run_id(cell.id, method.title, seed),
            method=_plain({"name": method.name, **settings, **method.spec}),
            model=_plain(complete_spec(cell.model)),
            seed=seed,
            rounds=cell.rounds,
            cohort=cell.cohort,
            sampling=cell.sampling,
            metric=_metrics(cell, kind),
            splits=cell.splits,
            evaluations=sum(schedule.is_due(round) for round in range(cell.rounds + 1)),
        )
        for seed in experiment.seed_list
    ]


def _metrics(cell: Cell, kind: dict[str, Any] | None) -> dict[str, str]:
    """Task -> metrics, for each task that the data may have. Raises `ConfigError` if the metrics fit none."""
    found, reason = dict[str, str](), ""
    for task in TASKS if kind is None else (Kind.from_dict(kind).task,):
        try:
            found[task] = ",".join(metric.name for metric in metrics_of(cell, task))
        except ConfigError as error:
            reason = str(error)
    if not found:
        raise ConfigError(reason)
    return found


def _is_same_work(before: Study, config: HubConfig, kind: dict[str, Any] | None, runs: Sequence[PlannedRun]) -> bool:
    """Whether the messages of a study are those of the one before: then nothing need be compiled."""
    bare = [run.model_copy(update={"neighbours": None}).model_dump(mode="json") for run in before.runs]
    new = [run.model_dump(mode="json") for run in runs]
    return text_of([bare, before.kind, before.sites]) == text_of([new, kind, config.sites])


def _with_messages(
    runs: Sequence[PlannedRun], experiment: Experiment, config: HubConfig
) -> tuple[list[PlannedRun], dict[str, Traffic]]:
    """(the runs with their neighbours, cell and method -> messages)."""
    edges, travels = dict[str, dict[str, dict[str, float]] | None](), dict[str, Traffic]()
    for cell in experiment.cells:
        for method in cell.methods:
            server, group = _server(cell, method, experiment, config), group_of(run_id(cell.id, method.title, 0))
            travels[group] = _traffic(server, is_known=not config.agree)
            edges[group] = None
            if server.neighbours is not None:
                edges[group] = {
                    config.sites[number]: {config.sites[other]: weight for other, weight in near.items()}
                    for number, near in enumerate(server.neighbours)
                }
    return [run.model_copy(update={"neighbours": edges[run.group]}) for run in runs], travels


STAND_INS = (
    Kind("table", "classification", ("a", "b"), (3,)),
    Kind("table", "regression", (), (3,), target=(0.0, 1.0)),
)
"""Data of the two tasks, where the sites have not agreed on a schema: they give the names of messages, not shapes."""


def _server(cell: Cell, method: Method, experiment: Experiment, config: HubConfig) -> HubServer:
    """The hub's side of a method, with data of which only the shapes are known. Raises for what cannot run."""
    counts: dict[str, dict[str, int]] = {site: dict.fromkeys(SPLITS, ROWS) for site in config.sites}
    reason = IdiolectError()
    for kind in STAND_INS if config.agree else (config.agreed,):
        try:
            return HubServer(cell, method, experiment.first_seed, unseen_data(kind, counts))
        except IdiolectError as error:
            reason = error
    raise reason


def _traffic(server: HubServer, *, is_known: bool) -> Traffic:
    """What a site receives and sends in a round."""
    sent = _parts(server.message, is_known)
    if server.neighbours is not None:
        return Traffic(receives=sent, sends=sent, to="neighbours")
    return Traffic(receives=_parts(server.view, is_known), sends=sent)


def _parts(tree: PyTree, is_known: bool) -> tuple[Part, ...]:
    return tuple(
        Part(name=name, type=str(np.dtype(jnp.result_type(leaf))), shape=np.shape(leaf) if is_known else None)
        for name, leaf in names_of(tree).items()
    )


def _fewest(cell: Cell, config: HubConfig, late: int) -> int:
    """The fewest sites that a round of this cell is asked of."""
    if cell.sampling == "binomial":
        return 1
    size = len(config.sites) - late if cell.cohort is None else int(cell.cohort)
    return max(size - len(config.left), 1)
