"""Folders that hold no runs, and so no numbers by round: why not, and what can be sent in their place."""

from pathlib import Path

from idiolect.deploy.hub.config import FILE as HUB
from idiolect.deploy.site.config import FILE as SITE
from idiolect.report.sources import SAMPLES
from idiolect.report.view.from_csv import CLIENTS, TABLE
from idiolect.study.store import DATABASE

_NEWCOMERS = "holds models of new clients, who have no rounds of their own; name the run's folder that they came from"
_BY_FILE = {
    "advice.md": "holds an advice, which keeps no runs; run what it recommends with idiolect compare, and track that",
    SITE: "is a site's folder, whose scores are recorded at the hub; name the hub's folder",
    HUB: "is a hub's folder, and no round was run yet; start it with idiolect hub run, or federate",
    TABLE: "has CSV files alone, without rounds; name the folder of the runs that they were made of",
    SAMPLES: _NEWCOMERS,
    CLIENTS: _NEWCOMERS,
}
"""What the first of these files that is there says of a folder."""


def why_not(folder: Path) -> str:
    """Why a folder has nothing to send, in one line."""
    found = (why for file, why in _BY_FILE.items() if (folder / file).is_file())
    return next((f"'{folder}' {why}" for why in found), f"no runs in '{folder}': it has no {DATABASE}")
