"""Every published number with what was measured in its place: `python -m results` writes cells.csv.

targets.csv holds the published numbers. The packaged experiments say which cell, method and model stands for which of
them; the folders here hold what was measured; cells.toml says which folder counts where several measure the same
number, and why the others were not run. The verdicts are those of `idiolect.study.analyse.outcomes`.
"""

import csv
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from idiolect.experiments import packaged
from idiolect.study.analyse.outcomes import GapLine, in_words, interval_of, verdict_of
from idiolect.study.spec.experiment import Cell, Experiment
from idiolect.study.spec.published import Published, published_metric
from idiolect.study.store.summary import OverSeeds, over_seeds
from results.scores import HERE, pooled, rows_of

TARGETS, CELLS, PLAN = (HERE / name for name in ("targets.csv", "cells.csv", "cells.toml"))
STATUSES = (
    *("agrees", "consistent, wide", "close", "differs, explained", "differs, unexplained"),
    *("other data", "not run", "not possible"),
)
AFTER_TEST = "meets, settings chosen after test results"
"""The summary counts apart what agrees, is consistent or close by settings chosen after test results were seen."""
COLUMNS = (
    *("paper", "table", "dataset", "setting", "model", "algorithm", "metric", "published", "published_std"),
    *("published_half_width",),
    *("status", "measured", "std", "seeds", "difference", "low", "high", "within", "folder", "protocol", "cell"),
    *("method", "named_model", "why", "also", "after_test"),
)
Key = tuple[str, str, str, str, str, str, str]
"""(paper, table, data set, degree of personalisation or loss, network, algorithm, metric)."""

DATA = {
    "har": "Human Activity",
    "vehicle": "Vehicle Sensor",
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "emnist": "EMNIST",
    "omniglot": "Omniglot",
    "synthetic": "Synthetic(0.5;0.5)",
}
HALF_WIDTHS = ("PFLEGO",)
"""Papers that give half of a confidence interval after ±; targets.csv has it in the column `std`."""
DEGREES = {"pflego-high": "High-Pers", "pflego-medium": "Medium-Pers", "pflego-none": "No-Pers"}
GAP_NAMES = {
    "pfedme/personal": "pFedMe-PM",
    "pfedme/global": "pFedMe-GM",
    "perfedavg/adapted": "Per-FedAvg",
    "fedavg/global": "FedAvg",
}


@dataclass(frozen=True)
class Measured:
    """What a folder holds for one published number. value: over seeds, in the published units.

    after_test: the folder's settings were chosen after test results had been seen.
    """

    folder: str
    protocol: str
    cell: str
    method: str
    model: str
    value: OverSeeds
    published: Published
    after_test: bool = False

    @property
    def status(self) -> str:
        """The verdict, with "explained" or "unexplained" where it differs."""
        return in_words(verdict_of(self.value, self.published), self.published)


def key_of(target: Mapping[str, str]) -> Key:
    """The key of a row of targets.csv."""
    paper, setting, detail = target["paper"], target["setting"], ""
    if paper == "PFLEGO" and target["table"] == "Table 1":
        detail = setting.split()[0]
    elif paper == "mmFL":
        detail = setting.split("; ")[1].removesuffix(" loss").lower()
    return (paper, target["table"], target["dataset"], detail, target["model"], target["algorithm"], target["metric"])


def network(paper: str, cell: Cell) -> str:
    """The paper's name of a cell's model."""
    kind = str(cell.model["name"])
    if kind == "multimodal":
        return "encoder-decoder"
    if kind == "mlr":
        return "MLR"
    if "cnn" in kind:
        return "CNN4" if kind == "omniglot-cnn" else "CNN"
    return "MLP" if paper == "PFLEGO" else "DNN"


def key_in(paper: str, table: str, cell: Cell, method: str, value: Published) -> Key:
    """The key of a published value of a packaged experiment."""
    metric = value.metric or "accuracy"
    if paper == "mmFL":
        algorithm = "mmFL" if method == "mmfl" else "Multimodal FL"
        return (paper, table, value.row, str(cell.model["loss"]), network(paper, cell), algorithm, metric)
    degree = DEGREES.get(str(cell.data.get("partition")), "") if table == "Table 1" and paper == "PFLEGO" else ""
    return (paper, table, DATA[str(cell.data["name"])], degree, network(paper, cell), value.row, metric)


def in_published_units(row: Mapping[str, str], metric: str) -> OverSeeds:
    """Read a row's value of a metric over seeds: in per cent where the metric is shown so, else as it is."""
    wanted = published_metric(metric)
    name, unit = wanted.key, wanted.unit
    if name not in row and row["metric"] == metric:
        name = "pooled"  # the metric that the folder compares
    mean, std, half = (float(text) if (text := row[name + suffix]) else math.nan for suffix in ("", "_std", "_ci95"))
    return OverSeeds(unit * mean, unit * std, unit * half, int(row["seeds"]))


def values_in(folder: str, paper: str, table: str, experiment: Experiment) -> Iterator[tuple[Key, Measured]]:
    """Each published value of an experiment that a folder has measured."""
    rows = {(row["cell"], row["method"], row["model"]): row for row in rows_of(folder)}
    for cell in experiment.cells:
        for method in cell.methods:
            for value in method.published:
                row = rows.get((cell.id, method.title, value.model))
                if row is None or int(row["seeds"]) == 0:
                    continue
                found = in_published_units(row, value.metric or "accuracy")
                known = value.model_copy(update={"other_data": value.other_data or row["other_data"]})
                measured = Measured(folder, experiment.protocol, cell.id, method.title, value.model, found, known)
                yield key_in(paper, table, cell, method.title, value), measured


def gaps_in(folder: str, paper: str, table: str, experiment: Experiment) -> Iterator[tuple[Key, Measured]]:
    """Each published gap of an experiment, with the measured one: paired by seed, in points."""
    scores = pooled(folder)
    for cell in experiment.cells:
        for gap in cell.gaps:
            larger, smaller = scores[cell.id, gap.larger], scores[cell.id, gap.smaller]
            differences = [larger[seed] - smaller[seed] for seed in larger]
            line = GapLine(gap, over_seeds(differences))
            algorithm = f"{GAP_NAMES[gap.larger]} minus {GAP_NAMES[gap.smaller]}"
            key = (paper, table, DATA[str(cell.data["name"])], "", network(paper, cell), algorithm, "accuracy points")
            names = f"{gap.larger} minus {gap.smaller}"
            yield key, Measured(folder, experiment.protocol, cell.id, names, "", line.measured, line.published)


def all_measured(plan: Mapping[str, Any]) -> dict[Key, list[Measured]]:
    """Everything measured for each published number, what counts first: the folders in the order of cells.toml."""
    found: dict[Key, list[Measured]] = {}
    for entry in plan["folders"]:
        experiment = packaged(entry["experiment"], entry.get("protocol", "as-written"))
        read = gaps_in if entry["table"].startswith("Fig.") else values_in
        for key, measured in read(entry["folder"], entry["paper"], entry["table"], experiment):
            found.setdefault(key, []).append(replace(measured, after_test=entry.get("after_test", False)))
    return found


def entry_of(plan: Mapping[str, Any], kind: str, target: Mapping[str, str]) -> dict[str, str]:
    """The first entry of cells.toml, of the kind "reasons" or "tried", whose fields begin those of the target."""
    for entry in plan[kind]:
        fields = {name: value for name, value in entry.items() if name not in ("status", "why")}
        if all(target[name].startswith(value) for name, value in fields.items()):
            return entry
    raise SystemExit(f"cells.toml has no [[{kind}]] for {dict(target)}")


def table() -> list[dict[str, str]]:
    """The rows of cells.csv, one for each row of targets.csv, in its order."""
    plan = tomllib.loads(PLAN.read_text(encoding="utf-8"))
    measured = all_measured(plan)
    with TARGETS.open(encoding="utf-8") as file:
        targets = list(csv.DictReader(file))
    unknown = measured.keys() - {key_of(target) for target in targets}
    if unknown:
        raise SystemExit(f"targets.csv has no row for {sorted(unknown)[0]}")
    return [row(target, measured.get(key_of(target), []), plan) for target in targets]


def row(target: Mapping[str, str], found: Sequence[Measured], plan: Mapping[str, Any]) -> dict[str, str]:
    """One row of cells.csv."""
    names = ("paper", "table", "dataset", "setting", "model", "algorithm", "metric")
    given = "published_half_width" if target["paper"] in HALF_WIDTHS else "published_std"
    filled = {name: target[name] for name in names} | {"published": target["value"], given: target["std"]}
    if not found:
        entry = entry_of(plan, "reasons", target)
        filled |= {"status": entry["status"], "why": entry["why"]}
        return {name: filled.get(name, "") for name in COLUMNS}
    first, *others = found
    value, published = first.value, first.published
    if not math.isclose(published.value, float(target["value"])):
        raise SystemExit(f"{first.folder}: {published.value} is published as {target['value']} in targets.csv")
    interval = interval_of(value, published)
    numbers = {"measured": value.mean, "std": value.std, "difference": value.mean - published.value}
    if interval is not None and interval.low is not None and interval.high is not None:
        numbers |= {"low": interval.low, "high": interval.high}
    filled |= {name: f"{number:.4f}" for name, number in numbers.items() if not math.isnan(number)}
    filled |= {"status": first.status, "seeds": str(value.seeds), "within": f"{published.within:g}"}
    filled |= {"folder": first.folder, "protocol": first.protocol, "cell": first.cell, "method": first.method}
    why = published.other_data
    if first.status.startswith("differs"):
        why = published.explained or entry_of(plan, "tried", target)["why"]
    filled |= {"named_model": first.model, "why": why, "after_test": "yes" if first.after_test else ""}
    filled["also"] = "; ".join(f"{m.folder} {m.cell}: {m.value.mean:.4f}, {m.status}" for m in others)
    return {name: filled.get(name, "") for name in COLUMNS}


def counted_as(row: Mapping[str, str]) -> str:
    """The column of the summary that counts a row: its status, or `AFTER_TEST`."""
    met = not row["status"].startswith(("differs", "other data", "not "))
    return AFTER_TEST if row["after_test"] and met else row["status"]


def summary(rows: Sequence[Mapping[str, str]]) -> str:
    """How many published numbers of each table have which status, as Markdown."""
    counts: dict[str, Counter[str]] = {}
    for one in rows:
        counts.setdefault(f"{one['paper']}, {one['table'].removesuffix(' gap')}", Counter())[counted_as(one)] += 1
    total = sum(counts.values(), Counter[str]())
    columns = (*STATUSES[:-3], AFTER_TEST, *STATUSES[-3:])
    lines = [f"| | numbers | {' | '.join(columns)} |", f"|---|{'---|' * (len(columns) + 1)}"]
    for name, count in [*counts.items(), ("**all**", total)]:
        lines.append(f"| {name} | {count.total()} | {' | '.join(str(count[column] or '') for column in columns)} |")
    return "\n".join(lines) + "\n"


def write() -> str:
    """Write cells.csv; returns the summary for README.md."""
    rows = table()
    with CELLS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return summary(rows)
