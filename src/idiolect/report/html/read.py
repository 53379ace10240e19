"""Read what a page shows from one folder or several: run folders, sweeps, or folders with CSV files alone."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from idiolect.core.errors import StoreError
from idiolect.report.html.of_csv import whole_of_csv
from idiolect.report.html.of_results import whole_of
from idiolect.report.html.of_sweep import whole_of_sweep
from idiolect.report.html.parts import Part, Whole
from idiolect.study.analyse.results import Results
from idiolect.study.run.launch import stored_options
from idiolect.study.search.launch import SWEPT
from idiolect.study.store.claim import stored_experiment
from idiolect.study.store.store import DATABASE, Store


def whole_of_folder(folder: Path) -> Whole:
    """What one folder holds. Raises `StoreError` or `DataError` if it is no run, or cannot be read."""
    try:
        there, is_folder, runs = folder.exists(), folder.is_dir(), (folder / DATABASE).is_file()
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot read '{folder}': {getattr(error, 'strerror', None) or error}") from error
    if not there:
        raise StoreError(f"no such folder: '{folder}'")
    if not is_folder:
        raise StoreError(f"'{folder}' is a file; name the folder of a run")
    if not runs:
        return whole_of_csv(folder)
    with Store(folder, create=False) as store:
        if (tried := store.fact(SWEPT)) is not None:
            return whole_of_sweep(store, tried)
        return whole_of(Results(store, stored_experiment(store)), str(stored_options(store)["command"]))


def whole_of_folders(folders: Sequence[Path]) -> Whole:
    """What several folders hold, all comparisons in one list."""
    wholes = [whole_of_folder(folder) for folder in dict.fromkeys(folders)]
    return wholes[0] if len(wholes) == 1 else joined(wholes)


def joined(wholes: Sequence[Whole]) -> Whole:
    """Several wholes as one. Each comparison's title begins with that of its own whole where they differ."""
    parts = [_under(whole, part) for whole in wholes for part in whole.parts]
    commands = list(dict.fromkeys(whole.command for whole in wholes if whole.command))
    made: dict[str, list[str]] = {}
    for label, text in dict.fromkeys(pair for whole in wholes for pair in whole.made_with):
        made.setdefault(label, []).append(text)

    def all_of(texts: list[str], mark: str) -> str:
        return mark.join(dict.fromkeys(text for text in texts if text))

    return Whole(
        title=all_of([whole.title for whole in wholes], "; "),
        parts=tuple(replace(part, id=f"{number}/{part.id}") for number, part in enumerate(parts)),
        source=all_of([whole.source for whole in wholes], "; "),
        description=all_of([whole.description for whole in wholes], " "),
        protocol=all_of([whole.protocol for whole in wholes], ", "),
        command="\n".join(commands),
        after_test=all_of([whole.after_test for whole in wholes], " "),
        made_with=tuple((label, ", ".join(texts)) for label, texts in made.items()),
        missing=tuple(line for whole in wholes for line in whole.missing),
        published=any(whole.published for whole in wholes),
        reading=tuple(dict.fromkeys(line for whole in wholes for line in whole.reading)),
    )


def _under(whole: Whole, part: Part) -> Part:
    return part if whole.title in part.title else replace(part, title=f"{whole.title}: {part.title}")
