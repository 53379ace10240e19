"""A hub's queries: write one for the sites, ask them, and keep their answers and the result.

A query's folder, FOLDER/queries/ID, holds its file study.json, the model file of a score, each site's answer as it
came, and the result. A site whose answer is there is not asked again.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from idiolect.core.errors import ConfigError, DataError, StoreError, os_errors_as, reason_of, require
from idiolect.core.files import atomic_write, file_name, json_of, write_text
from idiolect.core.rights import make_folder
from idiolect.deploy.headers import Request
from idiolect.deploy.hub.agreement import table_of
from idiolect.deploy.hub.calls import Call
from idiolect.deploy.hub.config import HubConfig, next_job
from idiolect.deploy.hub.description import Description, described, grids_of
from idiolect.deploy.hub.scored import ScoreResult, score_result
from idiolect.deploy.kind import Kind, Modality
from idiolect.deploy.messages import Message, Vectors, read_message, write_message
from idiolect.deploy.query import DescribeStudy, Query, ScoredModel, ScoreStudy, load_study
from idiolect.deploy.site.queries import MODEL
from idiolect.deploy.study import ASKED, FILE, new_id
from idiolect.deploy.transport import HubTransport, QuorumError
from idiolect.metrics.registry import chosen_only, names_in
from idiolect.models.files import classes_in, model_in, schema_in, target_in, tensors_of
from idiolect.study.spec.experiment import experiment_of

FOLDER, MODEL_FILE, MISSING, GRIDS = "queries", "model.safetensors", "missing.json", "grids.json"
LARGEST_MODEL = 200_000_000
"""Bytes of a model file: what a site accepts by default."""

Q = TypeVar("Q", bound=Query)


def new_score(
    folder: Path, path: Path, *, sites: Sequence[str] = (), metric: str = "", splits: Sequence[str] = ("test",)
) -> ScoreStudy:
    """Write a query by which sites score one model file, unless there is the same one already.

    Args:
        folder: the hub's.
        path: the model file; a copy is kept.
        sites: of the hub, by default all that have not left.
        metric: names of metrics, with commas.
        splits: of each site's rows.

    Raises:
        ConfigError: for a model or metrics that cannot be scored, or unknown sites.
        StoreError: if the file is no model, or nothing can be written.
    """
    content = _bytes_of(path)
    module, header = model_in(content, str(path))
    kind = kind_of(header, path)
    chosen_only(kind.task, names_in(metric))
    model = ScoredModel(
        name=path.name,
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        numbers=sum(int(values.size) for values in tensors_of(module).values()),
        model=header["spec"],
    )
    chosen: Any = tuple(dict.fromkeys(splits))
    query = ScoreStudy(
        id=new_id(f"score-{path.stem}"[:40]),
        sites=_sites(folder, sites),
        model=model,
        kind=json.loads(json.dumps(kind.to_dict())),
        metric=metric,
        splits=chosen,
    )
    return _kept(folder, query, {MODEL_FILE: content})


def new_description(folder: Path, *, sites: Sequence[str] = ()) -> DescribeStudy:
    """Write a query by which sites describe their tables, unless there is the same one already.

    Tables are read as the hub's experiment says. Raises as `new_score`.
    """
    config = HubConfig.load(folder)
    table = config.table or table_of(experiment_of(config.experiment, "the hub's experiment"))
    asked = {key: value for key, value in table.items() if key in ASKED}
    query = DescribeStudy(id=new_id("describe"), sites=_sites(folder, sites), table=json.loads(json.dumps(asked)))
    return _kept(folder, query, {})


def kind_of(header: Mapping[str, Any], path: object) -> Kind:
    """The data that a model file's model takes, by its header.

    Raises `ConfigError` for a model with classes of its own client, which other sites do not have.
    """
    schema, target = schema_in(header, path), target_in(header, path)
    classes = classes_in(header, schema)
    if schema is not None:
        kind = replace(Kind.of_schema(schema), target=None if target is None else (target.mean, target.scale))
    else:
        names, shapes = header["modalities"] or ((), ())
        kind = Kind(
            name="arrays",
            task=header["task"],
            classes=classes,
            feature_shape=tuple(header["feature_shape"]),
            modalities=tuple(Modality(n, tuple(s)) for n, s in zip(names, shapes, strict=True)) or None,
            target=None if target is None else (target.mean, target.scale),
        )
    outputs = len(kind.classes) if kind.task == "classification" else 1
    if classes != kind.classes or header["num_outputs"] != outputs:
        raise ConfigError(f"{path} has classes of its own client, so other sites cannot score it: name another model")
    return kind


def query_folder(folder: Path, query: str) -> Path:
    """The folder of a query by its id."""
    return folder / FOLDER / query


def is_answered(folder: Path, query: Query) -> bool:
    """Whether all sites' answers are there."""
    place = query_folder(folder, query.id)
    task = "score" if isinstance(query, ScoreStudy) else "histograms"
    return all(_answer_file(place, task, site).is_file() for site in query.sites)


def run_query(folder: Path, query: str, transport: HubTransport) -> None:
    """Ask the sites that have not answered, and write the result.

    Raises `QuorumError` if no site has answered at all, `DataError` if all have refused.
    """
    place, config = query_folder(folder, query), HubConfig.load(folder)
    found, call = load_study(place / FILE), Call(transport, next_job(folder))
    missing = dict[str, str]()
    if isinstance(found, ScoreStudy):
        content = np.frombuffer(_bytes_of(place / MODEL_FILE), np.uint8)
        missing = _ask(call, found, place, "score", config.starting, found.sites, {MODEL: content})
    elif isinstance(found, DescribeStudy):
        missing = _ask(call, found, place, "describe", config.starting, found.sites)
        columns = _answers(place, "describe", found.sites)
        grids = _grids(place, columns)
        missing |= _ask(call, found, place, "histograms", config.starting, [*columns], grids=grids)
    else:
        raise ConfigError(f"{place / FILE} is a study with training: 'idiolect hub run' runs it")
    write_text(place / MISSING, json.dumps(missing))
    result_of(folder, found).save(place)


def result_of(folder: Path, query: ScoreStudy | DescribeStudy) -> ScoreResult | Description:
    """The result of the answers that are there. Raises `StoreError` if one of them is damaged."""
    place = query_folder(folder, query.id)
    try:
        known = json_of((place / MISSING).read_bytes())
    except FileNotFoundError:
        known = {}
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {place / MISSING}: {error}") from None
    missing = {str(site): str(why) for site, why in known.items()}
    if isinstance(query, ScoreStudy):
        return score_result(query, _answers(place, "score", query.sites), missing)
    columns, cells = (_answers(place, task, query.sites) for task in ("describe", "histograms"))
    return described(query, columns, cells, missing)


def _ask(
    call: Call,
    query: Query,
    place: Path,
    task: str,
    deadline: float,
    sites: Sequence[str],
    vectors: Vectors | None = None,
    **more: Any,
) -> dict[str, str]:
    """Ask the sites whose answers are not there, and keep those that come; why the other sites have none."""
    wanted = [site for site in sites if not _answer_file(place, task, site).is_file()]
    if not wanted:
        return {}
    request = Request.model_validate({"task": task, "study": query.id, "approved": query.digest, **more})
    got = call(dict.fromkeys(wanted, request), dict.fromkeys(wanted, vectors or {}), round=0, deadline=deadline)
    for site, reply in got.replies.items():
        write_message(_answer_file(place, task, site), reply)
    if not got.replies and len(wanted) == len(sites):
        reasons = "; ".join(f"{site}: {why}" for site, why in sorted(got.missing.items()))
        refused = all("refuses" in why for why in got.missing.values())
        raise (DataError if refused else QuorumError)(f"query {query.id}: no site has answered ({reasons})")
    return dict(got.missing)


def _answers(place: Path, task: str, sites: Sequence[str]) -> dict[str, Message]:
    """The answers that are there."""
    return {site: found for site in sites if (found := read_message(_answer_file(place, task, site))) is not None}


def _grids(place: Path, columns: Mapping[str, Message]) -> dict[str, Any]:
    """The grids of the histograms: those of before, because sites answer only one grid per column."""
    try:
        return json_of((place / GRIDS).read_bytes())
    except FileNotFoundError:
        grids = grids_of(columns)
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {place / GRIDS}: {error}") from None
    write_text(place / GRIDS, json.dumps(grids))
    return grids


def _answer_file(place: Path, task: str, site: str) -> Path:
    return place / f"{task}-{file_name(site)}.msg"


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_MODEL + 1)
    except FileNotFoundError:
        raise StoreError(f"no such file: {path}") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read {path}: {reason_of(error)}") from None
    require(len(content) <= LARGEST_MODEL, f"{path} has more than {LARGEST_MODEL:,} bytes, which sites refuse")
    return content


def _sites(folder: Path, sites: Sequence[str]) -> tuple[str, ...]:
    """These sites of the hub, or all. Raises `ConfigError` for a site that is none, or that is named twice."""
    config = HubConfig.load(folder)
    for site in sites:
        require(site in config.present, f"there is no site '{site}'; the federation has {', '.join(config.present)}")
    require(len({*sites}) == len(sites), "--sites: a site is named twice")
    return tuple(sites) or config.present


def _kept(folder: Path, query: Q, files: Mapping[str, bytes]) -> Q:
    """Write a query's folder, unless one asks the same: the query that is there then."""
    for path in sorted((folder / FOLDER).glob(f"*/{FILE}")):
        other = load_study(path)
        if isinstance(other, type(query)) and other.question == query.question:
            return other
    place = query_folder(folder, query.id)
    with os_errors_as(f"cannot write to '{place}'"):
        make_folder(place)
    for name, content in files.items():
        with atomic_write(place / name) as file:
            file.write(content)
    query.save(place / FILE)  # last: a folder without it is no query
    return query
