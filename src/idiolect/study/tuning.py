"""Tuning: choose the best of a method's settings on validation data, without looking at test data."""

from dataclasses import dataclass

from idiolect.study.experiment import Cell, Method
from idiolect.study.outcomes import Line
from idiolect.study.results import Results
from idiolect.study.summary import OverSeeds, over_seeds


@dataclass(frozen=True)
class Chosen:
    """A method's best setting, by the validation score of its primary model (over all samples, mean over seeds).

    method: its name; tried: number of settings compared; validation: that score; line: the setting's line on test
    data.
    """

    method: str
    tried: int
    validation: OverSeeds
    line: Line


def validation_score(results: Results, cell: Cell, method: Method, model: str) -> OverSeeds:
    """Summarise the last round's validation score over seeds; 0 seeds if there is none."""
    values = [
        curve[-1][1]
        for row in results.finished(cell, method)
        if (curve := results.store.curve(row.id, model, "validation", results.metric(cell).name))
    ]
    return over_seeds(values)


def chosen(results: Results, cell: Cell) -> list[Chosen]:
    """Choose every method's best setting, in the cell's order; a method without validation scores is left out."""
    best: dict[str, Chosen] = {}
    metric = results.metric(cell)
    for method in cell.methods:
        model = results.names(cell, method)[0]
        score = validation_score(results, cell, method, model)
        if score.seeds == 0:
            continue
        tried = sum(other.name == method.name for other in cell.methods)
        best_so_far = best.get(method.name)
        if best_so_far is None or metric.better(score.mean, best_so_far.validation.mean):
            best[method.name] = Chosen(method.name, tried, score, results.line(cell, method, model))
    return list(best.values())
