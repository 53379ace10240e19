"""What a page shows of a folder with only CSV files: tables and clients, without curves, labels, bytes and audits."""

from dataclasses import replace
from pathlib import Path

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import StoreError
from idiolect.report.extras import pairs_extra
from idiolect.report.from_csv import CLIENTS, TABLE, CsvCell, cells_in, clients_file
from idiolect.report.html.names import isolated
from idiolect.report.html.parts import Entry, Part, Whole
from idiolect.report.html.words import Section, told_by
from idiolect.study.analyse.outcomes import FEDAVG, OWN
from idiolect.study.analyse.pairs import pairs_among


def whole_of_csv(folder: Path) -> Whole:
    """Read what a page shows of a folder: its table.csv and clients.csv; report.md has the title and the command.

    Raises `StoreError` if there is no table.csv, `DataError` if a file cannot be read.
    """
    if not (folder / TABLE).is_file():
        raise StoreError(f"'{folder}' holds neither runs nor a {TABLE}; name a folder that idiolect has written")
    cells = cells_in(folder)
    words = told_by(folder / "report.md", folder.name)
    parts = tuple(_part(cell, section) for cell, section in zip(cells, words.of(len(cells)), strict=True))
    missing = [
        f"{folder.name} was read from CSV files only: there are no curves, no labels and sizes of training data, no "
        "bytes, no graph, no distances of models and no confusion matrices to show."
    ]
    if clients_file(folder) is None:
        missing.append(f"{folder.name} has no {CLIENTS}: no client is shown by itself.")
    if not parts:
        missing.append(f"{folder.name}: {TABLE} has no row.")
    return Whole(
        title=words.title,
        parts=parts,
        source=words.source,
        protocol=words.protocol,
        command=words.command,
        made_with=words.made_with,
        missing=tuple(missing),
        published=any(line.published is not None for part in parts for line in part.lines),
    )


def _part(cell: CsvCell, words: Section) -> Part:
    metric, lines = cell.metric, cell.lines
    methods = tuple(_entry(title, words.method_of(title)) for title in dict.fromkeys(line.method for line in lines))
    plain = FEDAVG if {"fedavg", "fedavg-ft"} & {method.name for method in methods} else OWN
    lines = tuple(replace(line, global_of=(plain,)) if line.hurt_global else line for line in lines)
    seeds = sorted({seed for by_seed in cell.scores.values() for seed in by_seed})
    most = max((line.pooled.seeds for line in lines), default=0)
    title = words.title or cell.id
    untested = (
        f"{isolated(title)}: {metric.column} over all samples is read from {TABLE}, a mean over seeds. It is no mean "
        f"of the clients' values, so {CLIENTS} does not give it for each seed, and no difference between methods is "
        "tested."
    )
    part = Part(
        id=cell.id,
        title=title,
        metric=metric,
        task=metric.task,
        seeds=tuple(seeds) or tuple(range(most)),
        methods=methods,
        lines=lines,
        clients=cell.clients,
        scores=cell.scores,
        notes=words.notes,
        audit=words.audit or None,
        settings=words.settings,
        chosen=words.chosen,
        by_seed=metric.is_mean,
        missing=() if metric.is_mean or most < 2 else (untested,),
    )
    reference = part.local or next((key for key, by_seed in cell.scores.items() if by_seed), None)
    if reference is None or not cell.scores.get(reference):
        return part
    found = pairs_among(cell.scores, reference, metric, cell.clients)
    extra = pairs_extra(found, reference, metric, len(seeds), tested=part.by_seed)
    pairs = {(pair.method, pair.model): pair for pair in found}
    return replace(part, pairs=pairs, extras=(extra,) if len(seeds) > 1 else ())


def _entry(title: str, name: str) -> Entry:
    """A method by its title and, where the page has it, its name; "" if only the title is known."""
    name = name or title
    known = ALGORITHMS.get(name)
    return Entry(title, title if known is None or title != name else known.title, "" if known is None else name)
