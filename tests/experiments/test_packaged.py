import csv
import os
from pathlib import Path

import pytest

from idiolect.core.errors import ConfigError
from idiolect.experiments import _all, names, packaged
from idiolect.study.spec.experiment import Experiment
from results.cells import DATA

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


def rows(place: str, paper: str = "pFedMe") -> list[dict[str, str]]:
    file = PAPERS / "targets.csv"
    if not file.is_file():
        pytest.skip(f"no {file.name}; set IDIOLECT_PAPERS to the folder that holds it")
    with file.open(encoding="utf-8") as lines:
        return [row for row in csv.DictReader(lines) if row["paper"] == paper and row["table"].startswith(place)]


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


FEDU = {
    "FedU": "fedu/personal",
    "MOCHA": "mocha/personal",
    "pFedMe": "pfedme/personal",
    "Per-FedAvg": "perfedavg/adapted",
    "FedAvg": "fedavg-ft/global",
    "FedProx": "fedprox/global",
    "SCAFFOLD": "scaffold/global",
    "AFL": "afl/global",
    "Local": "local/local",
    "Global": "global/global",
}
PFLEGO = {
    "PFLEGO": "pflego/personal",
    "FedRecon": "fedrecon/personal",
    "FedPer": "fedper/personal",
    "FedRep": "fedrep/personal",
    "FedBabu": "fedbabu/global",
    "Ditto": "ditto/personal",
    "FedAvg": "fedavg/global",
    "FedProx": "fedprox/global",
}
TRAINED = {"FedPer": "fedper", "FedRep": "fedrep", "FedBabu": "fedbabu", "FedAvg": "fedavg", "FedProx": "fedprox"}
AFTER_THEIR_STEPS = {
    "as-written": {},
    "as-published": {"PFLEGO": "pflego/adapted", **{row: f"{name}/trained" for row, name in TRAINED.items()}},
}
"""The published code tests clients right after their local steps."""
FEDU_CODE = {"as-written": {}, "as-published": {"pFedMe": "pfedme/local"}}
"""The published code tests w_i^R under the name of the personalized model."""
TABLES = [
    ("FedU", "Table I", "fedu/table1", 52),
    ("FedU", "Table III", "fedu/table3", 21),
    ("FedU", "Table IV", "fedu/table4", 31),
    ("PFLEGO", "Table 1", "pflego/table1", 84),
    ("PFLEGO", "Table 2", "pflego/table2", 8),
]


@pytest.mark.parametrize("protocol", ["as-written", "as-published"])
@pytest.mark.parametrize(("paper", "table", "name", "count"), TABLES)
def test_tables_have_the_papers_values(paper, table, name, count, protocol):
    """Every number of the paper's table stands at its cell, beside the model that it speaks of, and no other."""
    targets = {
        (row["dataset"], row["model"], row["setting"].split()[0].lower(), row["algorithm"]): (
            float(row["value"]),
            float(row["std"]),
        )
        for row in rows(table, paper)
        if row["table"] == table and row["metric"] == "accuracy"
    }
    assert len(targets) == count
    found = {}
    for cell in packaged(name, protocol).cells:
        for method in cell.methods:
            for value in method.published:
                kind = cell.model["name"]
                model = {"mlr": "MLR", "omniglot-cnn": "CNN4"}.get(kind, "CNN" if "cnn" in kind else None)
                model = model or ("DNN" if paper == "FedU" else "MLP")
                data = DATA[cell.data["name"]]
                degree = str(cell.data.get("partition") or "").removeprefix("pflego-").replace("none", "no") + "-pers"
                here = {row[2] for row in targets if row[0] == data}
                setting = degree if degree in here else here.pop()
                given = value.half_width if paper == "PFLEGO" else value.std  # PFLEGO gives confidence intervals
                found[data, model, setting, value.row] = (value.value, given)
                fedu, pflego = FEDU | FEDU_CODE[protocol], PFLEGO | AFTER_THEIR_STEPS[protocol]
                names = fedu if paper == "FedU" else pflego
                assert names[value.row] == f"{method.name}/{value.model}", (cell.id, method.title)
    assert found == targets


@pytest.mark.parametrize("name", ["pflego/table1", "pflego/table2"])
def test_pflego_as_published_starts_and_steps_as_its_code_in_every_cell(name):
    """sotirisnik/PFLEGO b24b905, main.py, lines 846 (heads), 1121 (FedBABU), 1168 (Ditto), 1206 and 1327 (FedRep)."""
    expected = {
        "pflego": {"head_init": "uniform", "weighting": "cohort"},
        "fedper": {"head_init": "uniform"},
        "fedrep": {"head_init": "uniform", "head_steps": 45, "body_steps": 5, "momentum": 0.999},
        "fedrecon": {"head_init": "uniform", "keep": True, "split": "none", "server_optimizer": "adam"},
        "fedbabu": {"head_init": "uniform_orthogonal", "momentum": 0.9},
        "ditto": {"personal_start": "received"},
        "fedavg": {},
        "fedprox": {},
        "local": {},
    }
    for cell in packaged(name, "as-published").cells:
        assert cell.model["init"] == "stax", cell.id
        for method in cell.methods:
            settings = {key: method.spec[key] for key in expected[method.name]}
            assert settings == expected[method.name], (cell.id, method.title)
            assert method.spec.get("batch_size", 0) == 0
            assert "head_momentum" not in method.spec


FASHION_HIGH = {"pflego": 0.002, "fedper": 0.007, "fedrep": 0.003, "fedbabu": 0.007, "ditto": 0.005, "fedavg": 0.007}


@pytest.mark.parametrize("protocol", ["as-written", "as-published"])
def test_pflego_has_the_rates_of_the_papers_table_6_on_fashion_mnist_high(protocol):
    (cell,) = (c for c in packaged("pflego/table1", protocol).cells if c.id == "fashion-mnist-high")
    assert {name: cell.method(name).spec["rate"] for name in FASHION_HIGH} == FASHION_HIGH


PUBLISHED_CODE = {
    "fedu": {"epochs": 5, "mixing": "published"},
    "pfedme": {"epochs": 5, "hidden_l2": 0.001, "weighting": "size"},
    "perfedavg": {"epochs": 5, "variant": "sequential", "rate": 0.001, "weighting": "size"},
    "fedavg-ft": {"epochs": 5},
    "scaffold": {"epochs": 5, "steps": "published"},
    "afl": {"epochs": 5, "weights": "positional", "mixture_rate": 0.001, "output": "average"},
}


@pytest.mark.parametrize("name", ["fedu/table1", "fedu/table4"])
def test_fedus_tables_as_published_are_the_published_code(name):
    """No method counts steps where the code loops over passes; one initialisation serves all runs."""
    experiment = packaged(name, "as-published")
    for cell in experiment.cells:
        assert cell.shared_init
        for method in cell.methods:
            given = method.model_dump()
            if method.label:  # a further row, for comparison
                assert not method.published
                continue
            settings = PUBLISHED_CODE.get(method.name, {})
            assert {key: given.get(key) for key in settings} == settings, (cell.id, method.name)
            assert "local_steps" not in given
            if cell.data["name"] == "mnist" and method.name == "perfedavg":
                assert given["adapt_rate"] == 0.03


def test_pflego_table3_has_the_papers_seconds_and_table2s_settings():
    targets = {PFLEGO[row["algorithm"]].split("/")[0]: float(row["value"]) for row in rows("Table 3", "PFLEGO")}
    assert len(targets) == 7
    (cell,), (long,) = packaged("pflego/table3").cells, packaged("pflego/table2").cells
    assert {method.name: method.published_seconds for method in cell.methods} == targets
    assert (cell.data, cell.model, cell.cohort) == (long.data, long.model, long.cohort)
    assert all(method.spec == long.method(method.title).spec for method in cell.methods)


def test_mmfl_table1_has_the_papers_values_of_har():
    targets = {
        (
            row["dataset"],
            row["setting"].split("; ")[1].removesuffix(" loss").lower(),
            row["algorithm"],
            row["metric"],
        ): float(row["value"])
        for row in rows("Table 1", "mmFL")
        if row["dataset"].startswith("HAR")
    }
    assert len(targets) == 24
    found = {}
    for cell in packaged("mmfl/table1").cells:
        for method in cell.methods:
            for value in method.published:
                algorithm = "mmFL" if method.title == "mmfl" else "Multimodal FL"
                assert method.title in ("mmfl", "rate 0.01")
                alone = cell.data["modalities"][0] if len(cell.data["modalities"]) == 1 else None
                name = alone or value.model.removeprefix("personal ")
                assert (
                    name
                    in {"HAR accelerometer": ("body_acc", "total_acc"), "HAR gyroscope": ("body_gyro",)}[value.row]
                )
                assert cell.data["split"] == "random"
                key = (value.row, cell.model["loss"], algorithm, value.metric or "accuracy")
                assert found.setdefault(key, value.value) == value.value
    assert found == targets
