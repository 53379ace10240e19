"""LaTeX tables: what is bold, what notes say, and that a parser of LaTeX finds no fault."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from idiolect.core.errors import ConfigError
from idiolect.report.latex import document, escaped, latex_table
from idiolect.report.view.from_store import part_of
from idiolect.study.analyse.results import Results
from idiolect.study.store.store import Store
from tests.report.stores import experiment, finished

HOSTILE = r"50% & $x$ #1 _a^b ~ {\bf c} <s> “q” \end{table}"


def of(folder, levels, seeds=5, cells=1):
    """Runs of methods by label -> the score of each seed."""
    store = Store(folder)
    exp = experiment([{"name": "fedavg", "label": label} for label in levels], seeds, [{}] * cells)
    for cell in exp.cells:
        for label, level in levels.items():
            for seed in range(seeds):
                finished(store, exp, cell.id, label, seed, {20: {"global": (level(seed),) * 4}})
    return Results(store, exp)


LEVELS = {
    "best": lambda s: 0.8 + s / 100,
    HOSTILE: lambda s: 0.8 + (4 - s) / 100,
    "worse": lambda s: 0.7 + s / 99,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return of(tmp_path_factory.mktemp("latex"), LEVELS, cells=2)


@pytest.fixture(scope="module")
def parts(results):
    return [part_of(results, cell) for cell in results.experiment.cells]


def rows(table):
    """The table's rows as cells, as LaTeX would divide them."""
    body = table.split("\\midrule")[1].split("\\bottomrule")[0].replace("\\addlinespace\n", "")
    lines = [line for line in body.strip().splitlines() if line]
    assert all(line.endswith(r" \\") for line in lines)
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", line[:-3])] for line in lines]


def test_bold_is_by_test(parts):
    found = rows(latex_table(parts, "cells"))
    assert [len(row) for row in found] == [4, 4, 4]
    assert [[cell.startswith(r"\textbf") for cell in row[2:]] for row in found] == [
        [True] * 2,
        [True] * 2,
        [False] * 2,
    ]
    assert found[0][2] == r"\textbf{82.00 $\pm$ 1.96}"  # 1.5811 * 2.776 / sqrt(5)
    assert latex_table(parts, "cells", "std").count(r"82.00 $\pm$ 1.58") == 4


def test_a_lead_of_one_test_sample_in_every_seed_is_no_lead(tmp_path):
    """Of 40 test samples one is right in one model only, in both seeds: the score's steps hide the spread."""
    levels = {"a": lambda s: 0.8 + s / 10, "b": lambda s: 0.8 + s / 10 - 1 / 40 + s * 1e-4, "c": lambda _: 0.1}
    made = of(tmp_path, levels, seeds=2)
    found = rows(latex_table([part_of(made, made.experiment.cells[0])], "cells"))
    assert [row[2].startswith(r"\textbf") for row in found] == [True, True, True]
    made = of(tmp_path / "five", levels, seeds=5)
    found = rows(latex_table([part_of(made, made.experiment.cells[0])], "cells"))
    assert [row[2].startswith(r"\textbf") for row in found] == [True, True, False]


def test_notes_say_what_was_done(parts):
    said = latex_table(parts, "cells")
    for part in ("Mean of 5 seeds", r"half of the 95\,\% interval", "Holm's correction", "Shown: last round."):
        assert part in said
    assert "standard deviation over seeds" in latex_table(parts, "cells", "std")


def test_metrics_of_one_cell(parts):
    table = latex_table(parts[:1], "metrics")
    assert r"Method & Model & accuracy & client mean & worst 10 \% \\" in table
    with pytest.raises(ConfigError, match="give --cell: cell0, cell1"):
        latex_table(parts, "metrics")


def test_one_seed_has_no_bold_and_a_note(tmp_path):
    results = of(tmp_path, LEVELS, seeds=1)
    table = latex_table([part_of(results, results.experiment.cells[0])], "cells")
    assert "textbf" not in table
    assert "One seed: no interval. " in table
    assert "Nothing is bold: one seed proves no difference." in table


def test_without_seeds_there_is_no_test(parts):
    table = latex_table([replace(parts[0], scores={})], "cells")
    assert "textbf" not in table
    assert "scores are not known seed by seed" in table


def test_names_are_text(parts):
    table = document(latex_table(parts, "cells"), escaped(HOSTILE), "tab:a")
    assert table.count(r"\end{table}") == 1
    plain = re.sub(r"\\[a-zA-Z]+\*?|\\[%&#_${}\\,]", "", table.split("\n", 1)[1])
    assert plain.count("$") % 2 == 0
    assert plain.count("{") == plain.count("}")
    assert not set('#%^~<>|"') & set(plain.replace("~", "") if False else plain)
    assert escaped("a\nb") == "a b"
    assert escaped("\\") == r"\textbackslash{}"


def test_wide_tables_span_two_columns(parts):
    assert r"\begin{table*}" in document(latex_table(parts[:1], "metrics"), "c", "l")
    assert r"\begin{table}" in document(latex_table(parts, "cells"), "c", "l")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles_it(parts, tmp_path):
    table = document(latex_table(parts, "cells"), escaped(HOSTILE), "tab:a")
    head = "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n\\usepackage{booktabs}\n\\begin{document}\n"
    (tmp_path / "a.tex").write_text(head + table + "\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stdout[-2000:]
