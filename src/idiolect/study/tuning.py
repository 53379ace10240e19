"""Tuning: among several settings of a method, the one that is best on validation data; test data have no say."""

from dataclasses import dataclass

from idiolect.study.experiment import Cell, Method
from idiolect.study.outcomes import Line
from idiolect.study.results import Results
from idiolect.study.summary import OverSeeds, over_seeds


@dataclass(frozen=True)
class Chosen:
    """A method's best setting by the validation score, over all samples, of its primary model, mean over seeds.

    method: the method's name; tried: how many settings were compared; validation: the score that chose; line: the
    setting's line on test data.
    """

    method: str
    tried: int
    validation: OverSeeds
    line: Line


def validation_score(results: Results, cell: Cell, method: Method, model: str) -> OverSeeds:
    """The validation score of the last round over seeds; 0 seeds if there is none."""
    values = [
        curve[-1][1]
        for row in results.finished(cell, method)
        if (curve := results.store.curve(row.id, model, "validation", results.metric(cell).name))
    ]
    return over_seeds(values)


def chosen(results: Results, cell: Cell) -> list[Chosen]:
    """The chosen setting of every method that the cell tries in more than one setting or once, in order."""
    best: dict[str, Chosen] = {}
    metric = results.metric(cell)
    for method in cell.methods:
        model = results.names(cell, method)[0]
        score = validation_score(results, cell, method, model)
        if score.seeds == 0:
            continue
        tried = sum(other.name == method.name for other in cell.methods)
        rival = best.get(method.name)
        if rival is None or metric.better(score.mean, rival.validation.mean):
            best[method.name] = Chosen(method.name, tried, score, results.line(cell, method, model))
    return list(best.values())
