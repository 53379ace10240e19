"""Ask for advice on the natural tables, and compare its answer with regressions and trees.

    python -m results.advice.natural [-o FILE]             # every table of benchmarks.natural_tables
    python -m results.advice.natural [-o FILE] --only exam

A table that the file already has is not run again. Gaps: how much lower the loss of the answer is, with the 95 %
interval over divisions. Bars: the better of own and pooled regressions, or of own and pooled trees, by its mean test
loss, which favours the bar.
"""

import argparse
import csv
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.natural_tables import TABLES
from idiolect.data import from_table
from idiolect.data.federated import FederatedData
from idiolect.data.sets.pool import table_kept
from idiolect.runtime.compiled import use_compilation_cache
from idiolect.runtime.devices import use_cores
from idiolect.study.advice import advise as module
from idiolect.study.advice.decision import Decision, gap
from idiolect.study.advice.policies import Policy
from idiolect.study.advice.scored import Candidate, pooled

RESULTS = Path(__file__).parent / "natural.csv"
COLUMNS = (
    *("table", "clients", "rows", "verdict", "answer", "loss", "alone", "alone_loss"),
    *("regression", "gap_regression", "low_regression", "high_regression"),
    *("trees", "best", "gap_trees", "low_trees", "high_trees", "seconds", "processor", "first"),
)


def line(name: str, splits: int | None) -> dict[str, object]:
    """One line of the file."""
    table = TABLES[name]
    made: list[Candidate] = []
    decide = module.decide

    def keeping(
        candidates: Sequence[Candidate],
        policies: Sequence[Policy],
        owners: np.ndarray,
        clients: Sequence[str],
        ratio: float,
        bars: Sequence[Candidate] = (),
    ) -> Decision:
        made[:] = [*candidates, *(one.candidate for one in policies), *bars]
        return decide(candidates, policies, owners, clients, ratio, bars)

    module.decide = keeping  # the candidates' rows are not part of an advice
    first: list[float] = []
    with TemporaryDirectory() as folder, table_kept():
        path = Path(folder) / f"{name}.csv"
        table.load().to_csv(path, index=False)
        begun, worked = time.perf_counter(), time.process_time()

        def division(seed: int) -> FederatedData:
            return from_table(
                path,
                table.client,
                table.label,
                task=table.task,
                minimum=table.minimum,
                test=0.25,
                validation=0.2,
                split_seed=seed,
            )

        found = module.advise(division, splits=splits, on_stage=lambda _: first.append(time.perf_counter() - begun))
        seconds, processor = time.perf_counter() - begun, time.process_time() - worked
    module.decide = decide
    by_name = {one.name: one for one in made}
    decision = found.decision
    answer = decision.method if decision.federates else decision.alone
    ratio = 0.25 / 0.75

    def least(names: list[str]) -> Candidate | None:
        known = [by_name[each] for each in names if each in by_name]
        return min(known, key=lambda one: float(pooled(one.test).mean())) if known else None

    kind = "ridge" if table.task == "regression" else "logistic"
    regression, trees = least([f"own {kind}", f"pooled {kind}"]), least(["own trees", "pooled trees"])
    candidates = [one for one in made if one.kind in ("alone", "shared", "personal")]
    best = min(candidates, key=lambda one: float(pooled(one.test).mean()))
    row: dict[str, object] = {
        "table": name,
        "clients": found.about.num_clients,
        "rows": found.about.rows,
        "verdict": decision.outcome,
        "answer": answer,
        "loss": f"{pooled(by_name[answer].test).mean():.4f}",
        "alone": decision.alone,
        "alone_loss": f"{decision.loss:.4f}",
        "best": best.name,
        "seconds": f"{seconds:.0f}",
        "processor": f"{processor:.0f}",
        "first": f"{first[0]:.1f}",
    }
    for key, bar, one in (("regression", regression, by_name[answer]), ("trees", trees, best)):
        difference = None if bar is None else gap(one, bar, ratio)
        row[key] = "" if bar is None else f"{bar.name} {pooled(bar.test).mean():.4f}"
        for end in ("mean", "low", "high"):
            value = None if difference is None else getattr(difference, end)
            row[f"{'gap' if end == 'mean' else end}_{key}"] = "" if value is None else f"{value:+.4f}"
    return row


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """The lines of the file in Markdown."""
    lines = [
        "| table | clients | rows | answer | its loss | better regression | gap [95 %] | better trees | best "
        "candidate: gap [95 %] | seconds |",
        "|---|---:|---:|---|---:|---|---|---|---|---:|",
    ]
    for row in rows:
        regression, trees = (
            f"{row[f'gap_{bar}']} [{row[f'low_{bar}']}, {row[f'high_{bar}']}]" for bar in ("regression", "trees")
        )
        lines.append(
            f"| {row['table']} | {row['clients']} | {int(row['rows']):,} | {row['answer']} | {row['loss']} | "
            f"{row['regression']} | {regression} | {row['trees']} | {row['best']}: {trees} | {row['seconds']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what is missing in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="one table")
    parser.add_argument("--splits", type=int, help="divisions; default: that of the advice")
    parser.add_argument("-o", "--out", type=Path, default=RESULTS, help="the CSV file")
    options = parser.parse_args()
    use_cores()  # as the command does
    use_compilation_cache()
    done: set[str] = set()
    if options.out.is_file():
        with options.out.open(newline="") as file:
            done = {row["table"] for row in csv.DictReader(file)}
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not done:
            writer.writeheader()
        for name in TABLES:
            if name not in done and options.only in ("", name):
                writer.writerow(line(name, options.splits))
                file.flush()


if __name__ == "__main__":
    main()
