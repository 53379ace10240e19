"""A study in plain words, for the administrator of a site who must decide whether to approve it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from idiolect.deploy.kind import Kind
from idiolect.deploy.query import DescribeStudy, ScoreStudy
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.study import Part, PlannedRun, Study, Traffic, bytes_of, shown

WIDEST = 2000
"""Characters of the settings of a method: all of them are shown."""
RISK = "What the hub could infer: run 'idiolect site risk {study} {site}'"
"""The last line; the check itself runs on the site's rows."""


def study_lines(study: Study, config: SiteConfig) -> list[str]:
    """The study as this site meets it. No line has characters that steer a terminal."""
    lines = [
        f"Study {study.id}",
        f"digest: {study.digest}",
        *_sites(study, config.name),
        f"Rounds: at most {study.rounds:,} per run, and at most {study.evaluations:,} evaluations.",
        f"In each run, {study.again} rounds and {study.again} evaluations may be asked again with another model.",
        *_tables(study, config),
    ]
    groups = dict[str, list[PlannedRun]]()
    for run in study.runs:
        groups.setdefault(run.group, []).append(run)
    for group, runs in groups.items():
        lines += _method(group, runs, study.travels[group], config)
    return [shown(line, WIDEST) for line in lines]


def query_lines(query: ScoreStudy | DescribeStudy, config: SiteConfig, models: int) -> list[str]:
    """A query as this site meets it: what it is, and the data sent. models: that this site has scored before."""
    others = [site for site in query.sites if site != config.name]
    lines = [
        f"Query {query.id}: nothing is trained.",
        f"digest: {query.digest}",
        f"Sites: this one ({config.name}), and {', '.join(others) or 'no other'}.",
        f"Answers: at most {query.answers}; they must all be the same, so that rows that change are not revealed.",
        *(_score(query, config, models) if isinstance(query, ScoreStudy) else _describe(query, config)),
    ]
    return [shown(line, WIDEST) for line in lines]


def _score(query: ScoreStudy, config: SiteConfig, models: int) -> list[str]:
    kind, model, floors = Kind.from_dict(query.kind, "the query's kind of data"), query.model, config.floors
    built = "boosted trees" if model.model is None else f"{model.model.get('name')} ({_settings(model.model)})"
    names = query.metric or "the metrics that are always measured"
    columns = [str(one.get("name")) for one in (kind.schema or {}).get("columns", ()) if isinstance(one, Mapping)]
    lines = [
        f"Score the model file {model.name}: {built}, {model.numbers:,} numbers, {model.bytes:,} bytes.",
        f"sha256 of the file: {model.sha256}",
        f"The model is for {kind.task}, {_list(kind.classes)}; it reads the columns {_list(columns)}.",
        f"Received: the model file. Sent per split ({_list(query.splits)}): the number of rows, the sum of their "
        f"losses, and the sums of {names}. A metric of classes also sends its sums per class.",
        f"A split stays here if it has fewer than {floors.count} rows (floors.count), or, for metrics of classes, "
        "a class of it has.",
        f"What the hub could infer: each model is a question about rows. With n models, the sums are n equations. "
        f"This site has scored {models} models so far, and scores at most {floors.models} (floors.models).",
    ]
    if not config.allow.evaluation:
        lines.append("site.toml sends no sums of scores (allow.evaluation): calls are refused.")
    return lines


def _describe(query: DescribeStudy, config: SiteConfig) -> list[str]:
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in query.table.items()) or "no settings"
    least = config.floors.count
    lines = [
        f"Describe the columns of the training rows. Tables are read with: {table}.",
        "Sent per column: rows with and without a value; of numbers the mean, the sum of squared deviations and a "
        "histogram; of categories the values with their rows.",
        f"No count of 1 to {least - 1} rows is sent (floors.count), nor totals that would give one.",
        "The hub receives the sums of this site. Its result shows them as this site's own only with allow.per_site, "
        f"which is {str(config.allow.per_site).lower()}.",
        "A description can be answered once per table: other rows or other settings are refused, because the "
        "difference of two answers is about few rows.",
    ]
    if not config.allow.summaries:
        lines.append("site.toml sends no sums of columns (allow.summaries): calls are refused.")
    return lines


def _sites(study: Study, name: str) -> list[str]:
    others = [site for site in study.present if site != name]
    lines = [f"Sites: this one ({name}), and {', '.join(others) or 'no other'}."]
    if study.left:
        lines.append(f"Sites that have left: {', '.join(study.left)}.")
    if study.late:
        lines.append(f"Sites that were added later: {', '.join(study.late)}.")
    for run, times in study.starts.items():
        lines.append(f"Run {run} starts again, {times} times in all, to forget sites: its rounds may be repeated.")
    return [*lines, f"A round is asked of at least {study.smallest_cohort} sites."]


def _tables(study: Study, config: SiteConfig) -> list[str]:
    """How tables are read, and what is sent for a schema."""
    if study.kind is not None:
        kind = Kind.from_dict(study.kind, "the study's kind of data")
        classes = f", classes {_list(kind.classes)}" if kind.classes else ""
        schema = kind.schema or {}
        columns = [str(column.get("name")) for column in schema.get("columns", ()) if isinstance(column, Mapping)]
        read = f" Columns: {_list(columns)}." if columns else ""
        shape = " x ".join(str(size) for size in kind.feature_shape)
        return [f"Data: {kind.task}, {shape} numbers per row{classes}.{read} No sums of columns are sent."]
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in study.table.items()) or "no settings"
    lines = [
        "Data: the sites agree on a schema first, so this site sends sums of its columns.",
        "'idiolect site summary' shows these sums. The first schema that this site trains by is fixed then.",
        f"Tables are read with: {table}. The names in site.toml have priority.",
    ]
    if not config.allow.summaries:
        lines.append("site.toml does not allow sums of columns (allow.summaries), so no schema can be agreed on.")
    return lines


def _method(group: str, runs: Sequence[PlannedRun], traffic: Traffic, config: SiteConfig) -> list[str]:
    """A cell's method: its runs, a step's rows, all settings, and a round's messages."""
    run = runs[0]
    name = str(run.method.get("name"))
    cohort = "all sites" if run.cohort is None else f"{run.cohort:g} sites ({run.sampling})"
    seeds = ", ".join(str(each.seed) for each in runs)
    lines = [
        f"{group}: method {name}, model {run.model.get('name')}",
        f"  runs: {len(runs)} (seeds {seeds}), {run.rounds:,} rounds each, of {cohort} per round",
        f"  a training step: {_step(run.method)}",
        f"  settings: {_settings(run.method)}",
        f"  model: {_settings(run.model)}",
    ]
    if traffic.to == "neighbours":
        near = (run.neighbours or {}).get(config.name, {})
        lines.append(f"  sent per round to each neighbour ({_list(near)}), unchanged: {_parts(traffic.sends)}")
    else:
        lines.append(f"  received per round from the hub: {_parts(traffic.receives)}")
        lines.append(f"  sent per round to the hub: {_parts(traffic.sends)}")
    metrics = "; ".join(sorted({*run.metric.values()}))
    lines.append(f"  evaluations: {run.evaluations:,}, sums of {metrics} on {_list(run.splits)} rows")
    if not config.allow.evaluation:
        lines[-1] += "; site.toml sends none (allow.evaluation)"
    if "all" not in config.allow.methods and name not in config.allow.methods:
        lines.append(f"  site.toml does not allow the method {name}: its calls are refused")
    return lines


def _step(method: Mapping[str, Any]) -> str:
    """How many rows a step is made of."""
    if "batch_size" not in method:
        return "its rows are chosen by the method, which has no batch_size"
    size = method["batch_size"]
    rows = "all rows" if size == 0 else "1 row" if size == 1 else f"{size} rows"
    steps = [f"{key} = {method[key]}" for key in ("local_steps", "epochs") if key in method]
    return f"{rows} (batch_size = {size}{''.join(f', {step}' for step in steps)})"


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items() if key != "name") or "none"


def _parts(parts: Sequence[Part]) -> str:
    """The vectors of a message and their bytes."""
    if not parts:
        return "nothing"
    size = bytes_of(tuple(parts))
    named = ", ".join(f"{part.name} {part.type}{'' if part.shape is None else list(part.shape)}" for part in parts)
    return f"{named}; {'bytes depend on the schema' if size is None else f'{size:,} bytes'}"


def _list(names: Sequence[str] | Mapping[str, Any]) -> str:
    return ", ".join(names) or "none"
