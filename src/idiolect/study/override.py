"""Change settings of an experiment by their names, as `--set` does."""

from collections.abc import Mapping
from typing import Any

from idiolect.core.errors import ConfigError, unknown
from idiolect.study.experiment import Cell, Experiment, experiment_of


def override(experiment: Experiment, assignments: Mapping[str, Any]) -> Experiment:
    """Override settings by key, everywhere the key occurs. Raises `ConfigError` on an unknown key.

    A key belongs to the experiment (`seeds`), to every cell (`rounds`, `data.partition`, `model.l2`), or to a method
    (`pfedme.rate`). Changes of cells and methods are added to the description.
    """
    values = experiment.model_dump(mode="json")
    for key, value in assignments.items():
        head, _, rest = key.partition(".")
        cells = values["cells"]
        if rest and head in ("data", "model"):
            for cell in cells:
                cell[head] = {**cell[head], rest: value}
        elif rest:
            hits = [m for cell in cells for m in cell["methods"] if head and head in (m["name"], m["label"])]
            if not hits:
                raise unknown("method", head, {m["name"] for cell in cells for m in cell["methods"]})
            for method in hits:
                method[rest] = value
        elif key in ("name", "title", "source", "protocol", "description", "seeds", "first_seed", "across"):
            values[key] = value
        elif key in Cell.model_fields:
            for cell in cells:
                cell[key] = value
        else:
            raise unknown("key", key, {*Cell.model_fields, *Experiment.model_fields} - {"cells"})
    if not isinstance(values["description"], str):
        raise ConfigError(f"--set: description = {values['description']!r} must be a text")
    edits = [f"{key} = {value}" for key, value in assignments.items() if key not in Experiment.model_fields]
    if edits:
        values["description"] = f"{values['description'].rstrip()}\n\nChanged with --set: {', '.join(edits)}.".strip()
    return experiment_of(values, "--set")
