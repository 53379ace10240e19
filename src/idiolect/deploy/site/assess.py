"""Ask a site's trainer what a study would reveal. The rows stay in the trainer's process."""

from collections.abc import Iterator
from pathlib import Path

from idiolect.core.errors import DataError
from idiolect.deploy.headers import Request, Risk
from idiolect.deploy.site.config import SiteConfig
from idiolect.deploy.site.site import child_of
from idiolect.deploy.study import Study
from idiolect.deploy.terms import Place

SECONDS = 600.0
"""The longest time for one method."""


def assessed(study: Study, folder: Path) -> Iterator[tuple[str, Risk]]:
    """(cell and method, what its messages reveal) of each method of a study; seeds alike.

    Args:
        study: the study.
        folder: the site's folder, with site.toml.

    Raises:
        ConfigError: if the folder is no site's.
        DataError: if the data cannot be read, or are of another kind than the study's.
    """
    config = SiteConfig.load(folder)
    child, done = child_of(folder, config), set[str]()
    try:
        for run in study.runs:
            if run.group in done:
                continue
            done.add(run.group)
            clients = len(study.present)
            place = Place(id=0, clients=clients, samples=1, cohort=min(run.cohort or clients, clients))
            terms = study.terms(run.run, study.kind or {})
            request = Request(task="risk", terms=terms, place=place, table=study.table)
            answer = child.call(request.message(), SECONDS)
            if answer.error:
                raise DataError(f"run '{run.run}': {answer.error}")
            yield run.group, Risk.of(answer, "the trainer's answer")
    finally:
        child.close()
