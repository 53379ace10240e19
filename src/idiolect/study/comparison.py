"""Build the experiment of a comparison: one federation, several methods, from Python or the command line."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx

from idiolect.study.experiment import OWN_MODEL, Experiment, experiment_of


def own_or_named(model: eqx.Module | Mapping[str, Any] | str) -> tuple[eqx.Module | None, Mapping[str, Any]]:
    """Split a model argument into (the user's own module or None, the specification for the experiment)."""
    if isinstance(model, eqx.Module):
        return model, {"name": OWN_MODEL}
    return None, {"name": model} if isinstance(model, str) else model


def comparison_of(
    data_name: str,
    data: Mapping[str, Any],
    model: Mapping[str, Any],
    methods: Sequence[str | Mapping[str, Any]],
    *,
    select: str = "last",
    seeds: int = 1,
    first_seed: int = 0,
    title: str = "",
    **settings: Any,
) -> Experiment:
    """Build an experiment of one cell, named after its data. settings: more of the cell (rounds, cohort, ...)."""
    cell = {
        "id": data_name,
        "data": dict(data),
        "model": dict(model),
        "select": select,
        "splits": ["train", "validation", "test"] if select == "best-validation" else ["train", "test"],
        "methods": [{"name": m} if isinstance(m, str) else dict(m) for m in methods],
        **settings,
    }
    header = {"name": f"compare-{data_name}", "title": title, "seeds": seeds, "first_seed": first_seed}
    return experiment_of({**header, "cells": [cell]}, "compare")
