"""The tables of a report by name; one from another package may fail, and the report is still made."""

import pytest

from idiolect.core.errors import ConfigError
from idiolect.core.plugins import PluginWarning, named
from idiolect.report.sections import registry
from idiolect.report.sections.registry import SECTIONS, checked, sections_of
from idiolect.report.view.parts import Extra
from idiolect.study.analyse.pairs import pairs_of

TABLE = Extra("Clients", ("clients", "seeds"), (("3", "2"),))


def wrong(row: object) -> Extra:
    """A table of one column with a row that is none."""
    table = Extra("T", ("a",), ())
    object.__setattr__(table, "rows", (row,))
    return table


def test_idiolects_own_tables_come_in_the_order_of_their_file():
    assert [*SECTIONS][:7] == ["pairs", "newcomers", "gaps", "published", "times", "tuned", "diagnostics"]


def test_what_is_registered_gets_the_results_and_follows_idiolects_own(toy, monkeypatch):
    cell, seen = toy.experiment.cells[0], []

    def counted(results, cell, pairs):
        seen.append((results, cell.id, [*pairs]))
        return TABLE

    before, pairs = sections_of(toy, cell), pairs_of(toy, cell)
    monkeypatch.setitem(SECTIONS, "counted", counted)
    monkeypatch.setitem(SECTIONS, "silent", lambda results, cell, pairs: None)
    assert sections_of(toy, cell) == (*before, TABLE)
    assert sections_of(toy, cell, pairs[:1])[-1] == TABLE
    assert [len(given) for *_, given in seen] == [len(pairs), 1]
    assert seen[0][:2] == (toy, cell.id)


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (ValueError("no disk"), "ValueError: no disk"),
        (("a", "b"), "a section returns an Extra or None, not tuple"),
        (Extra("T", ("a", "b"), (("1",),)), "table 'T': each row has 2 texts, not ('1',)"),
        (wrong((1,)), "table 'T': each row has 1 texts, not (1,)"),
        (wrong("x"), "table 'T': each row has 1 texts, not 'x'"),
        (wrong(1), "table 'T': each row has 1 texts, not 1"),
    ],
)
def test_a_section_of_another_package_that_fails_is_left_out_with_the_reason(toy, returned, reason):
    @named("theirs")
    def theirs(results, cell, pairs):
        if isinstance(returned, Exception):
            raise returned
        return returned

    section, cell = registry._provided("theirs", theirs), toy.experiment.cells[0]
    with pytest.warns(PluginWarning) as warned:
        assert section(toy, cell, ()) is None
    assert str(warned[0].message) == f"idiolect.sections 'theirs' is left out of '{cell.id}': {reason}"


def test_only_functions_with_the_name_of_their_entry_point_are_sections():
    with pytest.raises(ConfigError, match=r"not a function marked by named\('theirs'\)"):
        registry._provided("theirs", lambda results, cell, pairs: None)


def test_a_table_is_returned_as_it_is():
    assert checked(TABLE) is TABLE
    assert checked(None) is None
