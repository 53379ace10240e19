"""The tables of a report by name, each a function of a cell's results.

A function of this folder that `named` marks makes one table; nothing else lists it. It is called with the results,
the cell and the cell's paired differences, and returns an `Extra`, or None where it has nothing to say. The table is
then in report.json, report.md, on the page and on the terminal.
"""

import warnings
from collections.abc import Callable, MutableMapping, Sequence
from typing import cast

from idiolect.core.errors import ConfigError, require
from idiolect.core.plugins import PluginWarning, Registry, facts_of, named_functions
from idiolect.report.view.parts import Extra
from idiolect.study.analyse.pairs import Pair, pairs_of
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

Section = Callable[[Results, Cell, Sequence[Pair]], Extra | None]
"""section(results, cell, pairs): one table, or None."""


def _own() -> dict[str, Section]:
    return {name: make for name, (make, _) in named_functions("idiolect.report.sections").items()}


def _provided(name: str, make: object) -> Section:
    """A section from another package. It may fail, and the report is still written."""
    facts_of(make, name)

    def section(results: Results, cell: Cell, pairs: Sequence[Pair]) -> Extra | None:
        try:
            return checked(cast("Section", make)(results, cell, pairs))
        except Exception as error:  # whatever the other package's code raises
            reason = str(error) if isinstance(error, ConfigError) else f"{type(error).__name__}: {error}"
            message = f"idiolect.sections '{name}' is left out of '{cell.id}': {reason}"
            warnings.warn(message, PluginWarning, stacklevel=2)
            return None

    return section


def checked(table: object) -> Extra | None:
    """The table, if it is one. Raises `ConfigError` else: it has a title, a header, and rows of texts as wide."""
    if table is None:
        return None
    require(isinstance(table, Extra), f"a section returns an Extra or None, not {type(table).__name__}")
    table = cast("Extra", table)
    for row in cast("tuple[object, ...]", (table.header, *table.rows)):
        cells = cast("tuple[object, ...]", row) if isinstance(row, tuple) else (None,)
        fits = len(cells) == len(table.header) and all(isinstance(cell, str) for cell in cells)
        require(fits, f"table '{table.title}': each row has {len(table.header)} texts, not {row!r}")
    return table


SECTIONS: MutableMapping[str, Section] = Registry("idiolect.sections", _own, _provided)


def sections_of(results: Results, cell: Cell, pairs: Sequence[Pair] | None = None) -> tuple[Extra, ...]:
    """The tables of a cell, idiolect's own first. pairs: `pairs_of` the cell, if they are known already."""
    known = pairs_of(results, cell) if pairs is None else pairs
    return tuple(table for make in SECTIONS.values() if (table := make(results, cell, known)) is not None)
