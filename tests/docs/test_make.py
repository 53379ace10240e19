"""What the site's pages are made of: nothing is missing, nothing is invented, and links find their files."""

import csv
import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import idiolect
from docs.make import cards, commands, fields, measured, public, repository, settings
from docs.make.cards import FAMILIES, NOTES, ROOT, card, documented, hyperparameters, navigation
from docs.make.notation import display, inline, latex, rows, typeset
from idiolect.algorithms.registry import ALGORITHMS
from idiolect.core.docstrings import explained, text_of
from idiolect.study.analyse.outcomes import RULE
from tests.test_structure import PUBLIC

NAV = (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("w_{i,r+1} = w_{i,r} - eta lambda theta", r"w _{i , r + 1} = w _{i , r} - \eta \lambda \theta"),
        ("c_i+ = (1/N) sum_{i in S} c_i", r"c _{i} ^{+} = \frac{ 1 } { N } \sum _{i ∈ S} c _{i}"),
        ("find theta with a large step", r"\text{ find } \theta \text{ with a large step }"),
        ("<w_t, X d> <- 2", r"\langle  w _{t} ,\; X d \rangle  \leftarrow 2"),
        ("||w||^2 >= local_steps", r"\| w \| ^{2} \ge \text{ local\_steps }"),
        ("v* / (sqrt(v_t) + tau)", r"v ^{*} / ( \sqrt{ v _{t} } + \tau )"),
    ],
)
def test_the_notation_of_docstrings_becomes_latex(text: str, expected: str) -> None:
    assert latex(text) == expected


def test_a_row_has_its_number_and_a_long_one_is_divided_before_an_equation() -> None:
    assert rows("    w = 1                    (line 8)") == [("w = 1", "(line 8)")]
    long = "min_w (1/N) sum_i F_i(w), F_i(w) = min_theta f_i(theta) + (lambda/2) ||theta - w||^2."
    assert [row for row, _ in rows(long)] == ["min_w (1/N) sum_i F_i(w),", long[26:-1]]
    html = display(["    a = b", "        c = d   (3)"])
    assert html.count("<math") == 2
    assert "--deep:1" in html
    assert "(3)</span>" in html


def test_a_sentence_keeps_its_words_and_code() -> None:
    assert inline("theta_i of `theta_i`, a <b> c") == "<var>&theta;<sub>i</sub></var> of `theta_i`, a &lt;b&gt; c"
    assert inline("prox_weight: lambda") == "prox\\_weight: <var>&lambda;</var>"


def test_equations_of_a_page_are_typeset_and_its_code_stays() -> None:
    page = (
        "of w_k and `a_k`:\n\n```equations\nw_k <- local_steps gbar     (1)\n```\n\n```sh\nls a_k\n```\n\nor eta.\n"
    )
    made = typeset(page)
    assert made.startswith("of <var>w<sub>k</sub></var> and `a_k`:\n")
    assert "```equations" not in made
    assert made.count("<math") == 1
    assert "local_steps" in made
    assert "(1)</span>" in made
    assert made.endswith("```sh\nls a_k\n```\n\nor <var>&eta;</var>.\n")
    without = page.replace("equations", "text")
    assert typeset(without) == without
    assert inline("thetabar_n - gbar") == "<var>&theta;&#772;<sub>n</sub></var> - <var>g&#772;</var>"


@pytest.mark.parametrize("name", ["graphs", "mmfl"])
def test_pages_with_equations_have_none_left_as_code(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    assert typeset(page).count("<math") >= page.count("```equations") > 0
    assert not re.search(r"\|\|.*\|\|\^", "".join(re.split(r"```.*?```", page, flags=re.DOTALL)))


def test_every_method_has_a_card_and_a_place() -> None:
    assert NOTES.keys() <= ALGORITHMS.keys()
    assert {*" ".join(FAMILIES.values()).split()} <= ALGORITHMS.keys()
    placed = [page for family in navigation() for pages in family.values() for page in pages]
    assert sorted(placed) == sorted(cards.pages())
    assert all(f"- {part}: []" in NAV for part in ("Cards", "Commands", "Python"))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_card_tells_all_that_the_docstring_does(name: str) -> None:
    text = card(name)
    for heading in ("The problem and a round", "When to use it", "Settings", "Data sent", "Measured", "Run it"):
        assert text.count(f"\n## {heading}\n") == 1
    assert all(f"| `{key}` |" in text for key in hyperparameters(ALGORITHMS[name]))
    if (
        name in cards.PROOFS
    ):  # a new method's settings are explained by its docstring, until somebody does so in words
        assert all(settings.in_words(name, key) for key in hyperparameters(ALGORITHMS[name]))
    assert len(text.partition("## Measured")[2].partition("## Run it")[0].split("\n| ")) - 2 <= measured.MOST
    assert "merror" not in text
    assert "\\text" not in text
    assert cards.tests_of(ALGORITHMS[name])
    cls, known = ALGORITHMS[name], set(hyperparameters(ALGORITHMS[name]))
    said, rest = explained(text_of(cls), known)
    words = " ".join([*said, *said.values(), rest])
    for word in re.findall(r"[A-Za-z]{4,}", text_of(cls)):  # each word is in the table of settings or in the text
        assert word in words or word in ("rest", "others", *(one.__name__ for one in documented(cls))), word


def test_a_score_is_that_of_the_table_and_what_has_none_says_so() -> None:
    with (ROOT / "results" / "pfedme" / "table1-as-written" / "table.csv").open() as lines:
        row = next(r for r in csv.DictReader(lines) if (r["cell"], r["method"]) == ("mnist-clean-mlr", "pfedme"))
    mean, half = (f"{100 * float(row[key]):.2f}" for key in ("pooled", "pooled_ci95"))
    line = next(
        x
        for x in measured.measured("pfedme").splitlines()
        if "pfedme/table1-as-written" in x and "mnist-clean-mlr" in x
    )
    assert f"| {mean} ± {half} |" in line
    tried = {row["name"] for rows in measured.tables().values() for row in rows}
    for name in ALGORITHMS:
        assert ("Not measured" in measured.measured(name)) == (name not in tried), name


def test_what_is_proven_is_proven_by_a_test_of_the_method() -> None:
    names = [path.stem for path in cards.tests_of(ALGORITHMS["fedu"])]
    assert names == ["test_fedu", "test_fedu_mixing"]
    assert "- The inner solution is the prox point in closed form.\n" in cards.proof("pfedme", ALGORITHMS["pfedme"])
    assert cards.PROOFS.keys() <= ALGORITHMS.keys()
    for method, sentences in cards.PROOFS.items():
        source = "".join(path.read_text() for path in cards.tests_of(ALGORITHMS[method]))
        for test, sentence in sentences.items():
            assert f"\ndef test_{test}(" in source, (method, test)
            assert sentence[0].isupper() or sentence.startswith("mmFL"), sentence
            assert sentence.endswith("."), sentence


def test_ranges_of_settings_are_those_that_the_method_checks() -> None:
    found = {key: settings.choices(ALGORITHMS["pfedme"], key) for key in hyperparameters(ALGORITHMS["pfedme"])}
    assert found["rate"] == "number &gt; 0"
    assert found["hidden_l2"] == "number ≥ 0"
    assert (found["local_steps"], found["epochs"]) == ("whole number, ≥ 1", "whole number, ≥ 0")
    assert found["batches"] == "`fresh`, `epoch`, `cyclic`"
    assert settings.choices(ALGORITHMS["fedrecon"], "support") == "number ≥ 0 and ≤ 1"
    assert settings.choices(ALGORITHMS["fedavg"], "server_optimizer").startswith("`None`, `adagrad`, ")
    known = {key for cls in ALGORITHMS.values() for key in hyperparameters(cls)}
    assert settings.WORDS["all"].keys() <= known
    assert settings.WORDS.keys() - {"all"} <= ALGORITHMS.keys()


def test_half_of_the_lines_are_of_the_first_report() -> None:
    rows = [{"cell": str(at)} for at in range(9)]
    kept = measured.turns([("a", rows), ("b", rows[:2]), ("c", rows[:3])])
    assert [(folder, len(some)) for folder, some in kept] == [("a", 4), ("b", 2), ("c", 2)]
    assert measured.turns([("a", rows[:2])]) == [("a", rows[:2])]


def test_every_field_of_an_experiment_file_is_explained() -> None:
    for word, model in fields.TABLES.items():
        assert fields.words(model).keys() == model.model_fields.keys(), word
    page = fields.filled((ROOT / "docs" / "experiment-file.md").read_text())
    assert "<!-- fields" not in page
    assert all(f"| `{name}` |" in page for model in fields.TABLES.values() for name in model.model_fields)
    assert "| `protocol` | `as-written`, `as-published` | `as-written` |" in page
    assert RULE in fields.with_rule((ROOT / "docs" / "verdicts.md").read_text())


def test_every_command_has_a_page_with_every_option() -> None:
    pages, found = commands.pages(), dict(commands.every())
    assert {"idiolect compare", "idiolect hub run", "idiolect site init"} <= found.keys()
    for name, command in found.items():
        if name == "idiolect":
            text = pages["commands.md"]
        else:
            text = pages[commands.path(name)]
            assert f"]({commands.path(name)}) |" in pages["commands.md"]
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.name != "help" and not parameter.hidden:
                assert all(option in text for option in parameter.opts), (name, parameter.opts)
    assert sorted(linked(commands.navigation())) == sorted(pages)


def linked(entries: list[Any]) -> list[str]:
    """The pages of a part of the navigation."""
    found: list[str] = []
    for one in entries:
        inner = [] if isinstance(one, str) else next(iter(one.values()))
        found += [one] if isinstance(one, str) else linked(inner if isinstance(inner, list) else [inner])
    return found


@pytest.mark.parametrize("package", public.GROUPS)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    named = set(" ".join(public.GROUPS[package].values()).split())
    estimators = set(idiolect.EXTRA) if package == "idiolect" else set()
    packages = {"data", "graphs", "models"} if package == "idiolect" else set()
    assert named - estimators == set(PUBLIC[package].split()) - packages
    for name in named:
        home = public.home(package, name)
        module, _, last = home.rpartition(".")
        assert hasattr(importlib.import_module(module), last)
        there = public.ELSEWHERE.get((package, name), package)
        pages = {uri: text for uri, text in public.pages().items() if uri.startswith(f"api/{there}/")}
        (uri,) = (uri for uri, text in pages.items() if f"::: {home}\n" in text)
        assert f"[`{name}`]({uri.removeprefix('api/')}#{home})" in public.page(package)
    assert sorted(linked(public.navigation())) == sorted(public.pages())


def test_links_find_files_of_the_repository() -> None:
    text = "[a](../results/README.md#x) [b](tables.md) `[c](../results/README.md)` [d](https://e.org)\n```\n[e](../LICENSE)\n```\n"
    assert repository.links(text, "docs/x.md") == {"results/README.md", "docs/tables.md"}
    known = {"repository/results/README.md", "tables.md", "x.md"}
    moved = repository.relinked(text, "x.md", known)
    assert "[a](repository/results/README.md#x) [b](tables.md)" in moved
    assert moved.endswith("```\n[e](../LICENSE)\n```\n")
    for path in ("docs/a/b.md", "results/README.md", "src/idiolect/study/analyse/outcomes.py"):
        assert repository.home(repository.site_path(path)) == path
    made = repository.pointed_to({"docs/x.md": "[s](../src/idiolect/study/analyse/outcomes.py) [p](figures/a.png)"})
    assert list(made) == ["repository/src/idiolect/study/analyse/outcomes.py.md"]
    assert "```python\n" in str(made["repository/src/idiolect/study/analyse/outcomes.py.md"])


def test_nothing_is_fetched_and_the_citation_is_of_this_version() -> None:
    assert "font: false" in NAV
    assert not re.search(r"https?://", re.sub(r"#.*", "", NAV))
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{version}}}" in (ROOT / "docs" / "cite.md").read_text()
    assert "https:" not in (Path(ROOT) / "docs" / "assets" / "site.css").read_text()
