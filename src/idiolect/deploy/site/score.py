"""Score a model file on a site's own rows, in the trainer's process; and the message of scores of any models."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from idiolect.client.objective import objective_of
from idiolect.client.samples import most_rows, tiles_of, to_device
from idiolect.core.errors import DataError
from idiolect.data.federated import FederatedData
from idiolect.deploy.headers import Score, Scored
from idiolect.deploy.messages import Message
from idiolect.deploy.query import ScoreStudy
from idiolect.deploy.site.floors import Floors
from idiolect.deploy.site.queries import MODEL
from idiolect.deploy.site.row_checks import withheld
from idiolect.deploy.trees import named
from idiolect.metrics.base import Metric
from idiolect.metrics.registry import chosen_only, names_in
from idiolect.models.files import model_in, tensors_of
from idiolect.models.registry import loss_of
from idiolect.runtime.scoring import Each, Pool, finished, score_models


def split_names(
    floors: Floors, data: FederatedData, wanted: Sequence[str], metrics: Sequence[Metric]
) -> tuple[list[str], dict[str, str]]:
    """(the splits that may be scored, why others may not).

    Raises `DataError` if rows are wanted and none may be scored.
    """
    kept = withheld(floors, data, wanted, metrics)
    if kept and all(split in kept or not data.split(split).count for split in wanted):
        raise DataError(next(iter(kept.values())))
    return [split for split in wanted if split not in kept], kept


def score_message(
    metrics: Sequence[Metric], scores: Mapping[str, Mapping[str, tuple[Each, Pool]]], kept: Mapping[str, str]
) -> Message:
    """The sums of one site's scores, by model and split. kept: the splits that stay at the site, and why."""
    by_model: dict[str, dict[str, Score]] = {}
    sums: dict[str, Any] = {}
    for model, by_split in scores.items():
        for split, (each, pool) in by_split.items():
            own, _ = finished(metrics, each, jax.tree.map(lambda leaf: np.asarray(leaf)[None], pool))
            values = {name: (float(top[0]), float(bottom[0])) for name, (top, bottom) in own.values.items()}
            score = {"count": int(each.count[0]), "loss": float(each.loss[0]), "values": values}
            by_model.setdefault(model, {})[split] = Score.model_construct({*score}, **score)
            sums |= named({model: {split: pool.sums}})
    # Not checked: the hub finds what is not finite, and says so.
    told = {"withheld": dict(kept)} if kept else {}
    return Scored.model_construct({"scores", *told}, scores=by_model, **told).message(sums)


def scored(query: ScoreStudy, content: bytes, data: FederatedData, floors: Floors) -> Message:
    """Score a query's model on the site's splits.

    Args:
        query: the query.
        content: the model file.
        data: the site's own, of one client, of the query's kind.
        floors: the site's.

    Raises:
        DataError: for a model beyond the floors or of other data, or if no split has enough rows.
        StoreError: if the content is no model file.
    """
    module, header = model_in(content, "the hub's model")
    if (tuple(header["feature_shape"]), header["num_outputs"], header["task"]) != (
        data.feature_shape,
        data.num_outputs,
        data.task,
    ):
        raise DataError("the hub's model takes other features or makes other outputs than the query says")
    floors.check_values(data.clients[0], tensors_of(module), "the hub's model")
    metrics = chosen_only(data.task, names_in(query.metric))
    names, kept = split_names(floors, data, query.splits, metrics)
    loss = None if header["spec"] is None else loss_of(header["spec"])
    params, rest = eqx.partition(module, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))
    objective = objective_of(rest, data.task, loss=loss)
    rows = most_rows(objective, params, jax.ShapeDtypeStruct(data.feature_shape, jnp.result_type(float)))
    held = {name: split for name in names if (split := data.split(name)).count}
    samples = {name: to_device(split) for name, split in held.items()}
    tiles = {name: jax.tree.map(jnp.asarray, tiles_of(split, rows)) for name, split in held.items()}
    only = jnp.zeros(1, jnp.int32)
    run = jax.jit(lambda given, *of: score_models(objective, metrics, lambda _: {MODEL: given}, of[0], only, of[1]))
    return score_message(metrics, run(params, samples, tiles), kept)
