"""Combine the models that a site has of several methods, by its own validation rows; nothing is sent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.errors import StoreError, require
from idiolect.core.files import file_name, json_of
from idiolect.deploy.kind import Kind
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.data import digest_of_training, own_data
from idiolect.deploy.site.rows import Rows
from idiolect.deploy.site.state import MODELS, study_folder
from idiolect.deploy.site.trainer import own_of
from idiolect.study.combine.combined import Kind as Combination
from idiolect.study.combine.make import Made, combination, of_one_cell
from idiolect.study.combine.sources import source_in
from idiolect.study.store.model_files import INDEX


class _Run(NamedTuple):
    """A run that has left models at the site. folder: of its model files; model: the first one of its method."""

    cell: str
    title: str
    seed: int
    folder: Path
    model: str


def combine_here(site: Path, kind: Combination, study: str = "", cell: str = "", seed: int | None = None) -> Made:
    """Weigh the models of a study's methods by the site's validation rows, and write the combination next to them.

    site: the folder with site.toml. study, cell, seed: which runs, if there are several; the first seed by default.
    The site's weights follow its own rows only: it knows no other site's losses. Raises `ConfigError` if several
    studies or cells are meant, or without two methods or validation rows; `DataError` if the training rows are no
    longer those of the study; `StoreError` if the site has no models.
    """
    config, named = SiteConfig.load(site), _study(site, study)
    runs = _chosen(site / MODELS / named, cell, seed)
    rows = Rows.load(study_folder(site, named))
    if rows.kind is None:
        raise StoreError(f"'{study_folder(site, named)}' does not say how the study reads the data")
    settings = own_of({"folder": str(site), "data": config.data, "name": config.name})
    data = own_data(settings, Kind.from_dict(rows.kind))
    rows.check(digest_of_training(rows.salt, data), named)
    require(
        data.validation.count > 0,
        f"site '{config.name}' has no validation rows, which the weights follow; set validation in "
        "site.toml before a study begins",
    )
    sources = {run.title: (run.folder, run.model) for run in runs}
    target = site / MODELS / named / file_name(f"{runs[0].cell}__{kind}__seed{runs[0].seed}")
    return combination(kind, sources, data, target)


def _study(site: Path, study: str) -> str:
    """The study that is meant, of those that have models."""
    found = sorted(path.name for path in (site / MODELS).glob("*") if any(path.glob(f"*/{INDEX}")))
    if not found:
        raise StoreError(f"'{site / MODELS}' holds no models; a run's models are written at its end")
    if study:
        require(study in found, f"this site has no models of study '{study}'; it has those of {', '.join(found)}")
        return study
    require(len(found) == 1, f"this site has models of several studies; name one with --study: {', '.join(found)}")
    return found[0]


def _chosen(folder: Path, cell: str, seed: int | None) -> list[_Run]:
    """The runs of one cell and one seed."""
    known = [_read(path.parent) for path in sorted(folder.glob(f"*/{INDEX}"))]
    labelled = [(run.cell, run.seed, run) for run in sorted(known, key=lambda run: run.seed)]
    cells = list(dict.fromkeys(run.cell for run in known))
    _, runs = of_one_cell(labelled, cells, cell, seed, f"'{folder}' holds", "models")
    require(
        len(runs) >= 2, f"the site has models of one method only, {runs[0].title}; a combination needs two methods"
    )
    return runs


def _read(folder: Path) -> _Run:
    """The run of a folder of models, by its index and the metadata of its first file."""
    try:
        index: Mapping[str, Any] = json_of((folder / INDEX).read_bytes())
        model = ALGORITHMS[str(index["method"])].model_names[0]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder / INDEX} is damaged ({type(error).__name__})") from None
    source = source_in(folder, model)
    about = source.first.about
    cell, *title, seed = str(about.get("run", "")).split("/")
    if not title or not seed.removeprefix("seed").isdigit():
        raise StoreError(f"{folder}: its model files name no run")
    return _Run(cell, "/".join(title), int(seed.removeprefix("seed")), folder, model)
