"""The sites agree on a schema before the first round: each sends sums and names of its columns, and never a row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from idiolect.core.errors import DataError
from idiolect.core.files import write_text
from idiolect.deploy.headers import Request, Summed
from idiolect.deploy.hub.calls import Call
from idiolect.deploy.hub.config import HubConfig
from idiolect.deploy.kind import Kind
from idiolect.deploy.messages import Message
from idiolect.deploy.schema.agree import agree
from idiolect.deploy.schema.summary import TableSummary
from idiolect.deploy.study import ASKED, Study
from idiolect.deploy.transport import QuorumError
from idiolect.study.spec.experiment import Experiment

SCHEMA, NOTES = "schema.json", "schema-notes.txt"


def table_of(experiment: Experiment) -> dict[str, Any]:
    """How the sites read their tables: what the experiment says of its own, if its data are a table."""
    data = experiment.cells[0].data
    given = {key: data[key] for key in (*ASKED, "standardise") if key in data}
    return given if data.get("name") == "table" else {}


def agreed_config(folder: Path, config: HubConfig, study: Study, call: Call) -> HubConfig:
    """The configuration with the kind of data that all sites agree on, saved; the schema is in folder/schema.json.

    Raises `QuorumError` if a site does not answer, `DataError` where they disagree: see `agree`.
    """
    asked = {key: value for key, value in study.table.items() if key in ASKED}
    request = Request(task="summary", table=asked, study=study.id, approved=study.digest)
    got = call(dict.fromkeys(config.present, request), round=0, deadline=config.starting)
    if got.missing:
        reasons = "; ".join(f"{site}: {why}" for site, why in sorted(got.missing.items()))
        raise QuorumError(f"a schema needs every site, and some have sent no summary ({reasons})")
    summaries = {site: _summary(site, got.replies[site]) for site in config.present}
    schema, notes = agree(summaries, standardise=bool(config.table.get("standardise", True)))
    schema.save(folder / SCHEMA)
    write_text(folder / NOTES, "".join(f"{note}\n" for note in notes))
    name = str(config.experiment.get("name") or "table")
    kind = replace(Kind.of_schema(schema), name=name)
    # What the file says now: sites may have been added since the job began.
    config = HubConfig.load(folder).model_copy(update={"kind": kind.to_dict(), "agreed_by": config.present})
    config.save(folder)
    return config


def _summary(site: str, reply: Message) -> TableSummary:
    sent = Summed.of(reply, f"site '{site}': its summary").summary
    summary = TableSummary.from_dict(sent, f"site '{site}': its summary")
    if summary.site != site:
        raise DataError(f"site '{site}': its summary is of '{summary.site}'; give it its own name")
    return summary
