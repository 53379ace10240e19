"""The report of a sweep: one Markdown page beside its table, its figure and its chosen settings."""

from collections.abc import Sequence
from pathlib import Path

from idiolect.core.files import atomic_write
from idiolect.report.markdown import escaped
from idiolect.report.sweeps import write_files
from idiolect.report.text import SPREAD, score
from idiolect.study.search.choose import Swept, Tried
from idiolect.study.search.space import shown

READ = f"""\
Scores are means over the seeds; what follows ± is {SPREAD}. Only validation scores
choose: each method's best is **bold**, and its test score was measured afterwards. `sweep.csv` has every number
unrounded, with standard deviations."""
SHOWN = "Test scores of the other settings were asked for (`--show-test`); they had no say in the choice."


def write_sweep(swept: Swept, out: Path, command: str = "") -> list[Path]:
    """Write sweep.csv, sweep.png, sweep.svg, chosen.toml if a setting was chosen, and last report.md; their paths.

    command: reproduces the sweep. Every file is written atomically. Raises `StoreError` if one cannot be written.
    """
    written = write_files(swept, out)
    page = out / "report.md"
    with atomic_write(page, shared=True) as file:
        file.write(sweep_text(swept, command).encode())
    return [page, *written]


def sweep_text(swept: Swept, command: str = "") -> str:
    """The page in Markdown: how it was made, the table of settings, the figure, what was chosen, what failed."""
    cell, metric = swept.experiment.cells[0], swept.metric
    name = f"{metric.column} in %" if metric.percent else metric.column
    name += "" if metric.higher else " (lower is better)"
    seeds = ", ".join(str(seed) for seed in swept.experiment.seed_list)
    facts = [
        f"made by: `{command}`" if command else "",
        f"data: {cell.data.get('title') or cell.id}",
        f"seeds: {seeds}",
    ]
    facts += [
        f"spent on choosing for {method}: {spent['settings']} settings, {spent['rounds x runs']} rounds x runs"
        for method, spent in swept.budget.items()
    ]
    failures = [f"- {escaped(failure)}" for one in swept.tried for failure in one.failures]
    all_tested = sum(one.test is not None for one in swept.tried) > len(swept.chosen)
    parts = [
        f"# {escaped(swept.experiment.name)}: chosen by validation {name}",
        "\n".join(f"- {fact}" for fact in facts if fact),
        _table(swept.tried, swept),
        f"{READ} {SHOWN if all_tested else ''}".strip(),
        "![Validation scores against every setting that was tried](sweep.png)",
        "What was chosen, to run: `idiolect run chosen.toml`." if swept.chosen else "**Every setting diverged.**",
        "\n".join(["## Settings that diverged", "", *failures]) if failures else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(tried: Sequence[Tried], swept: Swept) -> str:
    lines = ["| method | setting | validation | rounds | test |", "| --- | --- | ---: | ---: | ---: |"]
    for one in tried:
        validation = "diverged" if one.failures else score(one.validation, swept.metric)
        test = "" if one.test is None else score(one.test, swept.metric)
        mark = "**" if one.chosen else ""
        setting = escaped(shown(one.setting.values)) or "defaults"
        cells = (one.setting.method, setting, f"{mark}{validation}{mark}", str(one.rounds), test)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
