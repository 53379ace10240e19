"""What a site would tell of its own table, as its configuration reads it."""

from collections.abc import Mapping
from typing import Any, cast

from idiolect.core.errors import DataError
from idiolect.data.federated import SPLITS
from idiolect.deploy.schema.summarise import summarise
from idiolect.deploy.schema.summary import Summary
from idiolect.deploy.site.data import OwnData, own_data

_LISTS = ("categorical", "ignore", "keep")


def own_summary(settings: OwnData, asked: Mapping[str, Any], rarest: int) -> Summary:
    """The summary of a site's table. asked: how the hub reads all tables (client, label, split, categorical, ignore,
    keep, task); the site's own names of columns are told by the hub's. rarest: see `Allowed`.

    Raises `DataError` for a table that cannot be read so, or for requests that are none.
    """
    for key, value in asked.items():
        good = all(isinstance(one, str) for one in cast("list[Any]", value)) if isinstance(value, list) else False
        if not (good if key in _LISTS else value is None or isinstance(value, str)):
            raise DataError(f"the hub asks for a summary with {key} = {value!r}; that is none of a table's settings")
    if settings.table is None:
        raise DataError("the site's data are no table, so no schema can be agreed on")
    client, label = str(asked.get("client") or "client"), str(asked.get("label") or "label")
    split = str(asked.get("split") or "split")
    told = summarise(
        settings.table,
        site=settings.name,
        client=client if settings.client is None else settings.client,
        label=settings.label or label,
        split=settings.split or split,
        categorical=tuple(asked.get("categorical") or ()),
        ignore=tuple(asked.get("ignore") or ()),
        keep=tuple(asked.get("keep") or ()),
        minimum=rarest,
        task=asked.get("task"),
        test=settings.test,
        validation=settings.validation,
        split_seed=settings.split_seed,
    )
    named = told.label.model_copy(update={"name": label})
    return told.model_copy(
        update={"client": client, "label": named, "split": split if told.split is not None else None}
    )


def described(settings: OwnData, rarest: int) -> str:
    """What a site's data are, for its administrator: rows of each split, and classes. Raises as `own_data`.

    A table without a schema's file is read as for a summary: the schema is to be agreed on.
    """
    if settings.table is not None and settings.schema is None:
        told = own_summary(settings, {}, rarest)
        classes = f", classes {', '.join(told.label.classes)}" if told.label.classes else ""
        columns = f"{len(told.columns)} columns besides the label '{told.label.name}'{classes}"
        return f"{told.rows} training rows, {columns}; the schema is to be agreed on"
    data = own_data(settings)
    counts = [f"{data.split(name).count} {name}" for name in SPLITS]
    classes = f"classes {', '.join(data.classes)}" if data.classes else "a number as label"
    return f"rows: {', '.join(counts)}; {classes}"
