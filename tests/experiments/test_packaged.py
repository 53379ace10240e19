import csv
import os
from pathlib import Path

import pytest

from idiolect.config import Experiment
from idiolect.errors import ConfigError
from idiolect.experiments import _all, names, packaged

ROOT = Path(__file__).parents[2]
PAPERS = Path(os.environ.get("IDIOLECT_PAPERS") or ROOT.parent / "shared" / "papers")
METHODS = {"FedAvg": "fedavg-ft", "Per-FedAvg": "perfedavg", "pFedMe-GM": "pfedme", "pFedMe-PM": "pfedme"}


def split_name(key: str) -> tuple[str, str]:
    name, _, protocol = key.partition(".")
    return name, protocol or "as-written"


@pytest.mark.parametrize("key", sorted(_all()))
def test_every_packaged_file_is_a_valid_experiment(key):
    name, protocol = split_name(key)
    found = packaged(name, protocol)
    assert isinstance(found, Experiment)
    assert found.name == key or found.name == name
    assert found.title
    assert "." not in key or found.protocol == protocol
    for cell in found.cells:
        assert cell.title
        assert cell.rounds % cell.eval_every == 0


def test_every_experiment_is_listed_with_its_title():
    listed = names()
    assert {"demo", "pfedme/table1 --protocol as-written", "pfedme/table1 --protocol as-published"} <= set(listed)
    assert len(listed) == len(_all())
    assert all(listed.values())


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'pfedme/table1'"):
        packaged("pfedme/tabel1")
    with pytest.raises(ConfigError, match="did you mean 'as-published'"):
        packaged("pfedme/table1", "as-publishd")


def rows(place: str) -> list[dict[str, str]]:
    file = PAPERS / "targets.csv"
    if not file.is_file():
        pytest.skip(f"no {file.name}; set IDIOLECT_PAPERS to the folder that holds it")
    with file.open(encoding="utf-8") as lines:
        return [row for row in csv.DictReader(lines) if row["paper"] == "pFedMe" and row["table"].startswith(place)]


@pytest.mark.parametrize("protocol", ["as-written", "as-published"])
def test_table1_has_the_papers_values(protocol):
    targets = {
        (row["dataset"].split("(")[0].lower(), row["model"], row["algorithm"]): (
            float(row["value"]),
            float(row["std"]),
        )
        for row in rows("Table 1")
    }
    assert len(targets) == 16
    seen = set()
    for cell in packaged("pfedme/table1", protocol).cells:
        model = {"mlr": "MLR"}.get(cell.model["name"], "DNN")
        for method in cell.methods:
            for value in method.published:
                key = (cell.data["name"], model, value.row)
                assert (value.value, value.std) == targets[key], (cell.id, method.title)
                assert METHODS[value.row] in (method.name, f"{method.name}-ft")
                seen.add(key)
    assert seen == set(targets)


NAMES = {
    "pFedMe-PM": "pfedme/personal",
    "pFedMe-GM": "pfedme/global",
    "Per-FedAvg": "perfedavg/adapted",
    "FedAvg": "fedavg/global",
}


@pytest.mark.parametrize("number", [6, 7])
def test_figures_have_the_papers_gaps(number):
    targets = {}
    for row in rows(f"Fig. {number}"):
        larger, smaller = (NAMES[part] for part in row["algorithm"].split(" minus "))
        targets[row["model"], larger, smaller] = float(row["value"])
    found = {
        ({"mlr": "MLR"}.get(cell.model["name"], "DNN"), gap.larger, gap.smaller): gap.value
        for cell in packaged(f"pfedme/fig{number}").cells
        for gap in cell.gaps
    }
    assert len(targets) == 6
    assert found == targets
