"""Methods in figures: their names (tables keep what a user types), and the settings that were not chosen."""

from collections import Counter
from collections.abc import Iterable

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.study.analyse.results import Results, chosen
from idiolect.study.spec.experiment import Cell


def method_names(cells: Iterable[Cell]) -> dict[str, str]:
    """Map every method's title in tables to its name in figures: the user's label, else the method's own title.

    Where two methods would be called alike, they keep what tables call them.
    """
    methods = {method.title: method for cell in cells for method in cell.methods}
    names = {title: method.label or ALGORITHMS[method.name].title for title, method in methods.items()}
    count = Counter(names.values())
    return {title: name if count[name] == 1 else title for title, name in names.items()}


def not_chosen(results: Results, cell: Cell) -> frozenset[str]:
    """The titles of the settings that validation data did not choose; none before any could be chosen.

    They chose among all methods of the cell, even if `cell` has only those that are drawn.
    """
    whole = results.experiment.cell(cell.id)
    best = {choice.line.method for choice in chosen(results, whole)} if cell.tune else set[str]()
    return frozenset(method.title for method in cell.methods if best and method.title not in best)
