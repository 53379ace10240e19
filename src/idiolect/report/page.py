"""The report of a comparison: one Markdown page, its figures, and its raw numbers, in one folder."""

import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from idiolect.core.errors import StoreError
from idiolect.core.files import atomic_write
from idiolect.core.rights import make_folder
from idiolect.report.across import across_figure
from idiolect.report.comparison import cell_title
from idiolect.report.extras import diagnostics, extras, markdown_extra
from idiolect.report.figures import clients_figure, curves_figure, save
from idiolect.report.made_with import expected_runs, made_with
from idiolect.report.ranks import ranks_text
from idiolect.report.raw import clients_csv, diagnostics_csv, has_diagnostics, write_csv
from idiolect.report.table import escaped, markdown_table
from idiolect.report.texts import CHOSEN, columns_text, settings_of
from idiolect.report.times import is_timed
from idiolect.report.times_figure import times_figure
from idiolect.report.verdicts import verdict_sentence, verdicts_of
from idiolect.study.analyse.outcomes import RULE
from idiolect.study.analyse.results import Results
from idiolect.study.spec.experiment import Cell

ACROSS = "figures/across.png"


def write_report(results: Results, folder: str | Path, command: str) -> list[Path]:
    """Write report.md, table.csv, clients.csv, figures/, and diagnostics.csv if any; return their paths.

    command: reproduces the report. Missing runs are named. A figure is a PNG, which report.md shows, and the same as
    SVG beside it. Every file is written atomically, and report.md last, after everything that it shows. Raises
    `StoreError` if the folder cannot be written to.
    """
    folder = Path(folder)
    try:
        make_folder(folder / "figures", shared=True)
    except OSError as error:
        raise StoreError(f"cannot write to '{folder}': {error.strerror or error}") from error
    written = [folder / "table.csv", folder / "clients.csv"]
    write_csv(results, written[0])
    clients_csv(results, written[1])
    if has_diagnostics(results):
        written.append(folder / "diagnostics.csv")
        diagnostics_csv(results, written[-1])
    figures: dict[str, list[tuple[str, str]]] = {}
    for cell, stem in zip(results.experiment.cells, stems(results.experiment.cells), strict=True):
        figures[cell.id] = []
        if not any(results.finished(cell, method) for method in cell.methods):
            continue
        for kind, figure, caption in _figures(results, cell):
            name = f"figures/{stem}-{kind}.png"
            written += save(figure, folder / name)
            figures[cell.id].append((f"{cell_title(cell)}: {caption}", name))
    if results.experiment.across:
        written += save(across_figure(results), folder / ACROSS)
    page = folder / "report.md"
    with atomic_write(page, shared=True) as file:
        file.write(report_text(results, command, figures).encode())
    return [page, *written]


def _figures(results: Results, cell: Cell) -> list[tuple[str, Figure, str]]:
    """Draw a cell's figures: (end of the file name, figure, caption) of each."""
    if is_timed(cell):  # such cells run few rounds: their scores mean nothing
        return [("times", times_figure(results, cell), "seconds a round, measured and published")]
    return [
        ("curves", curves_figure(results, cell, cell.draw or None), "test score and training loss over rounds"),
        ("clients", clients_figure(results, cell), "test score of every client"),
    ]


def stems(cells: Sequence[Cell]) -> list[str]:
    """Choose a file name for each cell, no two alike (also without case)."""
    names: list[str] = []
    for cell in cells:
        stem = name = re.sub(r"[^A-Za-z0-9._-]+", "-", cell.id).strip("-.") or "cell"
        number = 2
        while name.lower() in (other.lower() for other in names):
            name, number = f"{stem}-{number}", number + 1
        names.append(name)
    return names


def report_text(results: Results, command: str, figures: dict[str, list[tuple[str, str]]]) -> str:
    """Write the page in Markdown. figures: cell id -> (caption, relative path) of each figure."""
    experiment = results.experiment
    facts = [
        f"protocol: {experiment.protocol}",
        f"source: {experiment.source}" if experiment.source else "",
        f"seeds: {', '.join(map(str, experiment.seed_list))}",
        f"made by: `{command}`" if command else "",
    ]
    parts = [f"# {experiment.title or experiment.name}", experiment.description.strip(), _bullets(facts)]
    parts += [f"**{sentence}**" if (sentence := verdict_sentence(results)) else ""]
    parts += ["\n\n".join(CHOSEN[select] for select in dict.fromkeys(c.select for c in experiment.cells))]
    parts += [f"**Chosen after test results had been seen:** {told}" if (told := experiment.after_test) else ""]
    parts += [f"![Test scores against {experiment.across}]({ACROSS})" if experiment.across else ""]
    for cell in experiment.cells:
        parts += _cell(results, cell, figures.get(cell.id, []))
    parts += [ranks_text(results)]
    parts += _diverged(results)
    parts += ["## How to read the tables", columns_text(results).strip()]
    parts += [f"Verdicts on published values. {RULE}" if verdicts_of(results) else ""]
    parts += ["`table.csv` has every number unrounded, `clients.csv` every client's."]
    parts += ["`diagnostics.csv` has every evaluated round's diagnostics." if has_diagnostics(results) else ""]
    parts += ["## Made with", _bullets(made_with(results))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cell(results: Results, cell: Cell, figures: Sequence[tuple[str, str]]) -> list[str]:
    settings = [f"{label}: {text}" if label else text for label, text in settings_of(cell)]
    warnings = [*results.notes(cell), *results.audit(cell)]
    return [
        f"## {escaped(cell_title(cell))}",
        "\n".join(["> **About these data**", ">", *(f"> - {note}" for note in warnings)]) if warnings else "",
        markdown_table(results, cell).strip(),
        *(markdown_extra(extra) for extra in extras(results, cell)),
        markdown_extra(reported) if (reported := diagnostics(results, cell)) else "",
        *(f"![{escaped(caption)}]({path})" for caption, path in figures),
        "<details><summary>Settings</summary>",
        _bullets(settings),
        "</details>",
    ]


def _diverged(results: Results) -> list[str]:
    """List the runs that diverged (NaN or infinity) and those that are not finished."""
    runs = expected_runs(results)
    diverged = [f"{row.id}: {row.message}" for row in runs if row.status == "diverged"]
    open_ = [f"{row.id}: {row.round} rounds done" for row in runs if row.status == "running"]
    return [
        *(["## Runs that diverged", _bullets(diverged)] if diverged else []),
        *(["## Runs that are not finished", _bullets(open_)] if open_ else []),
    ]


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines if line)
