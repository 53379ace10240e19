"""The report of a comparison in one folder: report.md, report.html, report.json, its figures, and raw numbers."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from idiolect.core.errors import StoreError, os_errors_as
from idiolect.core.files import write_text
from idiolect.core.rights import make_folder
from idiolect.report.advice import advice_dict
from idiolect.report.client_figures import strips_figure
from idiolect.report.figures import across_figure, curves_figure, times_figure
from idiolect.report.html.payload import payload_of
from idiolect.report.html.render import PAGE, check_writable, write_page
from idiolect.report.markdown import ACROSS, report_text
from idiolect.report.raw import clients_csv, diagnostics_csv, write_csv
from idiolect.report.style import save
from idiolect.report.view.as_json import REPORT, to_dict, write_json
from idiolect.report.view.folder import new_clients, view_of_folder, view_of_folders
from idiolect.report.view.from_store import view_of
from idiolect.report.view.parts import Part, View
from idiolect.study.advice.stored import is_advice, stored_advice
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import DATABASE


def write_report(results: Results, folder: str | Path, command: str) -> list[Path]:
    """Write report.md, report.json, report.html, the CSV files and figures/ of results; return their paths.

    The CSV files are table.csv, clients.csv, and diagnostics.csv if any. command: reproduces the report. Missing runs
    are named. A figure is a PNG, which report.md shows, and the same as SVG next to it. Every file is written
    atomically, and report.md after everything that it shows. Raises `StoreError` if the folder cannot be written to.
    """
    folder = Path(folder)
    with os_errors_as(f"cannot write to '{folder}'"):
        make_folder(folder / "figures", shared=True)
    view = view_of(results, command)
    written = [folder / "table.csv", folder / "clients.csv"]
    write_csv(results, written[0])
    clients_csv(results, written[1])
    if any(run.diagnostics for run in view.runs):
        written.append(folder / "diagnostics.csv")
        diagnostics_csv(results, written[-1])
    for part, stem in zip(view.parts, _stems(view), strict=True):
        for kind in _kinds(part) if part.ended else ():
            written += save(FIGURES[kind][0](part), folder / f"figures/{stem}-{kind}.png")
    if view.across:
        written += save(across_figure(view.parts, view.across), folder / ACROSS)
    view = _with_figures(view, folder)
    told = to_dict(view)
    write_json(told, folder / REPORT)
    page = folder / "report.md"
    write_text(page, report_text(view), shared=True)
    return [page, *written, folder / REPORT, write_page(payload_of(told), folder / PAGE)]


FIGURES: dict[str, tuple[Callable[[Part], Figure], str]] = {
    "curves": (curves_figure, "test score and training loss over rounds"),
    "clients": (strips_figure, "test score of every client"),
    "times": (times_figure, "seconds per round, measured and published"),
}
"""The figures of a part by the end of their file names: what draws them, and their captions."""


def _kinds(part: Part) -> tuple[str, ...]:
    """The figures that a part has; where only times are compared, few rounds were run and scores mean nothing."""
    return ("times",) if part.timed else ("curves", "clients")


def _with_figures(view: View, folder: Path) -> View:
    """The view with the figures of a folder that are there."""
    parts: list[Part] = []
    for part, stem in zip(view.parts, _stems(view), strict=True):
        names = {kind: f"figures/{stem}-{kind}.png" for kind in _kinds(part)}
        known = {kind: name for kind, name in names.items() if (folder / name).is_file()}
        captions = tuple((f"{part.title}: {FIGURES[kind][1]}", name) for kind, name in known.items())
        parts.append(replace(part, figures=captions))
    return replace(view, parts=tuple(parts))


def _stems(view: View) -> list[str]:
    return stems([part.id for part in view.parts])


def stems(ids: Sequence[str]) -> list[str]:
    """Choose a file name for each cell, no two alike (also without case)."""
    names: list[str] = []
    for id in ids:
        stem = name = re.sub(r"[^A-Za-z0-9._-]+", "-", id).strip("-.") or "cell"
        number = 2
        while name.lower() in (other.lower() for other in names):
            name, number = f"{stem}-{number}", number + 1
        names.append(name)
    return names


def folders_page(folders: Sequence[Path], out: Path | None = None) -> Path:
    """Write the page of one folder or several; returns its path. out: by default `PAGE` in the first folder.

    Without `out`, report.json of a folder of runs is written again, too, so that the two agree.

    Raises `StoreError` or `DataError` if a folder holds neither runs nor an advice or cannot be read, or if the page
    cannot be written.
    """
    first = folders[0]
    if out is None and len({*folders}) == 1 and (is_advice(first) or _has_runs(first)):
        return write_folder(first)
    if out is not None:
        check_writable(out)
    return write_page(payload_of(folders_dict(folders)), out or first / PAGE)


def _has_runs(folder: Path) -> bool:
    try:
        return (folder / DATABASE).is_file()
    except (OSError, ValueError):  # no path of a folder, which is refused where it is read
        return False


def folders_dict(folders: Sequence[Path]) -> dict[str, Any]:
    """What folders hold, as report.json. Raises as `folders_page` does, also for an advice with other folders."""
    advice = next((folder for folder in folders if is_advice(folder)), None)
    if advice is None:
        new = new_clients(folders[0]) if len({*folders}) == 1 else None
        return to_dict(view_of_folders(folders)) if new is None else new
    if len({*folders}) > 1:
        raise StoreError(f"'{advice}' holds an advice, which has its own page; name no other folder with it")
    return advice_dict(stored_advice(advice))


def write_folder(folder: Path) -> Path:
    """Write report.json and the page of a folder of runs or an advice; returns the page's path."""
    if is_advice(folder):
        told = advice_dict(stored_advice(folder))
    else:
        told = to_dict(_with_figures(view_of_folder(folder), folder))
    write_json(told, folder / REPORT)
    return write_page(payload_of(told), folder / PAGE)
