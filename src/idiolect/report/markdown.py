"""What a report says as one page of Markdown."""

import math
from collections.abc import Sequence

from idiolect.report import text
from idiolect.report.text import SPREAD
from idiolect.report.view.columns import table_of
from idiolect.report.view.conclusion import Conclusion, conclusions_of
from idiolect.report.view.from_store import COLUMNS
from idiolect.report.view.parts import Extra, Part, View
from idiolect.study.analyse.outcomes import RULE
from idiolect.study.analyse.ranks import Ranks

ACROSS = "figures/across.png"


def report_text(view: View) -> str:
    """Write the page in Markdown."""
    facts = [
        f"protocol: {view.protocol}",
        f"source: {view.source}" if view.source else "",
        f"seeds: {', '.join(map(str, view.seeds))}",
        f"made by: `{view.command}`" if view.command else "",
    ]
    whole, each = conclusions_of(view)
    parts = [f"# {view.title}", *conclusion_text(whole), view.description, _bullets(facts)]
    parts += [f"**{view.verdict}**" if view.verdict else ""]
    parts += ["\n\n".join(dict.fromkeys(part.chosen for part in view.parts))]
    parts += [f"**Chosen after test results had been seen:** {told}" if (told := view.after_test) else ""]
    parts += [f"![Test scores against {view.across}]({ACROSS})" if view.across else ""]
    for part, one in zip(view.parts, each, strict=True):
        parts += _part(part, one if len(each) > 1 else None)
    parts += [ranks_text(view.ranks), *_open_runs(view)]
    parts += ["## How to read the tables", columns_text(view).strip()]
    parts += [f"Verdicts on published values. {RULE}" if view.published else ""]
    parts += ["`table.csv` has every number unrounded, `clients.csv` every client's."]
    said = any(run.diagnostics for run in view.runs)
    parts += ["`diagnostics.csv` has every evaluated round's diagnostics." if said else ""]
    parts += ["## Made with", _bullets([f"{label}: {text}" if label else text for label, text in view.made_with])]
    return "\n\n".join(part for part in parts if part) + "\n"


def conclusion_text(one: Conclusion) -> list[str]:
    """The headline in bold, the numbers, and the chips."""
    chips = [f"{escaped(chip.title)}. {escaped(chip.text)}".strip() for chip in one.chips]
    return [text.bare(part) for part in (f"**{escaped(one.headline)}**", escaped(one.numbers), _bullets(chips))]


def _part(part: Part, conclusion: Conclusion | None) -> list[str]:
    settings = [f"{label}: {text}" if label else text for label, text in part.settings]
    warnings = [*part.notes, *(part.audit or ())]
    return [
        f"## {escaped(part.title)}",
        *([] if conclusion is None else conclusion_text(conclusion)),
        "\n".join(["> **About these data**", ">", *(f"> - {note}" for note in warnings)]) if warnings else "",
        markdown_table(part).strip(),
        *map(markdown_extra, part.extras),
        *(f"![{escaped(caption)}]({path})" for caption, path in part.figures),
        "<details><summary>Settings</summary>",
        _bullets(settings),
        "</details>",
    ]


def columns_text(view: View) -> str:
    """Explain the columns of the tables."""
    *metrics, split = view.reading
    return COLUMNS.format(spread=SPREAD, metrics="\n".join(f"- {text}" for text in metrics), split=split)


def _open_runs(view: View) -> list[str]:
    """List the runs that diverged (NaN or infinity) and those that are not finished."""
    diverged = [f"{run.id}: {run.message}" for run in view.runs if run.status == "diverged"]
    open_ = [f"{run.id}: {run.round} rounds done" for run in view.runs if run.status == "running"]
    return [
        *(["## Runs that diverged", _bullets(diverged)] if diverged else []),
        *(["## Runs that are not finished", _bullets(open_)] if open_ else []),
    ]


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines if line)


def markdown_table(part: Part) -> str:
    """Format a part's table: the title in bold, the rows with the best score in bold, the notes."""
    table = table_of(part)
    out = [f"**{escaped(table.title)}**", "", _row([column.title for column in table.heads])]
    out.append("|" + "|".join(" ---: " if column.numeric else " --- " for column in table.heads) + "|")
    for row, texts in zip(table.rows, table.printed(), strict=True):
        marks = ["**" if row.best and column.marked else "" for column in table.heads]
        out.append(_row([f"{mark}{escaped(text)}{mark}" for mark, text in zip(marks, texts, strict=True)]))
    if table.notes:
        out += ["", *(f"- {escaped(note)}" for note in table.notes)]
    return "\n".join(out) + "\n"


def markdown_extra(extra: Extra) -> str:
    """Format a small table."""
    rows = [_row([escaped(cell) for cell in row]) for row in (extra.header, *extra.rows)]
    return "\n".join([f"**{extra.title}**\n", rows[0], "|" + "---|" * len(extra.header), *rows[1:]])


def _row(values: Sequence[str]) -> str:
    return f"| {' | '.join(values)} |"


def escaped(value: str) -> str:
    """Escape the characters that Markdown would read as marks."""
    for mark in ("\\", "|", "*", "<", "`"):
        value = value.replace(mark, "\\" + mark)
    return value


def ranks_text(ranks: Ranks | None) -> str:
    """Write the section in Markdown; empty where there are too few cells or methods in common."""
    if ranks is None:
        return ""
    rows = "\n".join(
        f"| {method} | {model} | {rank:.2f} |"
        for (method, model), rank in zip(ranks.names, ranks.averages, strict=True)
    )
    return (
        f"{heading(ranks)}\n\n| method | model | average rank |\n| --- | --- | ---: |\n{rows}\n\n{explanation(ranks)}"
    )


def heading(ranks: Ranks) -> str:
    """The section's heading, with the number of data sets."""
    return f"## Ranks over {ranks.data} data set{'s' if ranks.data > 1 else ''} ({ranks.cells} cells)"


def explanation(ranks: Ranks) -> str:
    """What the ranks are, and which of them differ."""
    parts = ["1 is the best."]
    if ranks.data < ranks.cells:
        parts.append(
            "Cells of one data set are no independent trials: their ranks are averaged first, and each data set "
            "counts once."
        )
    parts.append(
        f"Two methods differ at 5 % where their ranks are {ranks.critical:.2f} apart or more (Nemenyi's critical "
        f"difference, over all pairs of methods and {ranks.data} data set{'s' if ranks.data > 1 else ''})."
    )
    if ranks.averages[-1] - ranks.averages[0] < ranks.critical:
        parts.append("No two methods are so far apart, so these ranks show no difference.")
    if not math.isnan(ranks.p):
        parts.append(f"Friedman's test that all are alike: p = {text.p_value(ranks.p)}.")
    return " ".join([*parts, "Source: Demšar, JMLR 2006."])
