"""The pages of results/ show what the folders hold: links, numbers in tables, and where each section comes from."""

import csv
import re
from functools import cache
from pathlib import Path

import pytest

from idiolect.metrics.registry import METRICS
from results import cells

HERE = cells.HERE
ROOT = HERE.parent
PAGES = sorted(HERE.glob("*/README.md"))
NUMBER = re.compile(r"(\d+\.\d+) ± (\d+\.\d+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"`[^`]*(?:idiolect [a-z]|python -m (?:benchmarks|results))")
MEASURED = ("pooled", "mean", "worst10", "macro_f1")
LONGEST = 150  # lines of results/README.md


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def sections(text: str) -> dict[str, str]:
    """A page's parts by their headings; what stands above the first heading has an empty one."""
    parts = re.split(r"(?m)^## (.+)\n", f"\n{text}")
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def joined(text: str) -> str:
    """The text with every command on one line."""
    return re.sub(r"\s+", " ", text)


def folders_in(section: str, page: Path) -> list[Path]:
    """The folders of results that a section links, or, if there is none, whose command it names."""
    files = [(page.parent / link.partition("#")[0]).resolve() for link in LINK.findall(section)]
    linked = [file.parent for file in files if file.name in ("report.md", "table.csv")]
    if not linked:
        commands = re.findall(r"idiolect reproduce ([a-z]+/[\w-]+)", joined(section))
        linked = [folder for command in commands for folder in HERE.glob(f"{command}*")]
    return [folder for folder in dict.fromkeys(linked) if (folder / "table.csv").is_file()]


@cache
def values_of(folder: Path) -> tuple[tuple[float, float], ...]:
    """Every (mean, standard deviation) that a folder holds, in per cent or points: measured, published, gaps."""
    found: list[tuple[str, str, float]] = []
    with (folder / "table.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            units = dict.fromkeys(MEASURED, METRICS[row["metric"]].unit) | {"macro_f1": 100.0}
            found += [(row.get(c, ""), row.get(f"{c}_std", ""), unit) for c, unit in units.items()]
            found.append((row["published"], row["published_std"] or row.get("published_half_width", ""), 1.0))
    with cells.CELLS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["folder"] == str(folder.relative_to(HERE)) and row["table"].endswith("gap"):
                found.append((row["measured"], row["std"], 1.0))
    return tuple((unit * float(mean), unit * float(std)) for mean, std, unit in found if mean and std)


def is_there(mean: str, std: str, folders: list[Path]) -> bool:
    """Whether a folder holds the two numbers, to the digits as printed."""
    a, b = (len(text.partition(".")[2]) for text in (mean, std))
    return any((f"{m:.{a}f}", f"{s:.{b}f}") == (mean, std) for folder in folders for m, s in values_of(folder))


def wrong_numbers(text: str, page: Path) -> list[str]:
    """What is wrong with the numbers "mean ± deviation" in a page's tables, a line each."""
    wrong: list[str] = []
    for heading, section in sections(text).items():
        table = "\n".join(line for line in section.splitlines() if line.lstrip().startswith("|"))
        folders = folders_in(section, page)
        names = (
            ", ".join(str(folder.relative_to(HERE)) for folder in folders) or "no folder, as the section names none"
        )
        wrong += [
            f'{name(page)}, section "{heading}": {mean} ± {std} is not in the table.csv of {names}'
            for mean, std in NUMBER.findall(table)
            if not is_there(mean, std, folders)
        ]
    return wrong


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken_links(text: str, page: Path) -> list[str]:
    """The relative links and images of a page that lead nowhere, and those to headings that are not there."""
    broken: list[str] = []
    for link in LINK.findall(text):
        path, _, anchor = link.partition("#")
        if link.startswith(("http:", "https:")):
            continue
        target = page if not path else page.parent / path
        if not target.exists():
            broken.append(f"{name(page)}: {link} is not there")
        elif anchor and anchor not in map(slug, re.findall(r"(?m)^#+ (.+)$", target.read_text(encoding="utf-8"))):
            broken.append(f"{name(page)}: {link}: no such heading")
    return broken


@pytest.mark.parametrize("page", [HERE / "README.md", *PAGES], ids=name)
def test_links_and_images_are_there(page):
    assert broken_links(page.read_text(encoding="utf-8"), page) == []


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=name)
def test_numbers_in_tables_are_those_of_the_folders(page):
    assert wrong_numbers(page.read_text(encoding="utf-8"), page) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_section_says_where_it_comes_from(page):
    for heading, section in sections(page.read_text(encoding="utf-8")).items():
        report = any(link.partition("#")[0].endswith("report.md") for link in LINK.findall(section))
        assert not heading or report or COMMAND.search(joined(section)), (
            f'{name(page)}, section "{heading}": neither a report.md nor a command'
        )


def test_every_paper_has_a_page_and_the_first_page_is_short():
    papers = {report.parent.parent for report in HERE.glob("*/*/report.md")}
    assert {page.parent for page in PAGES} == papers | {HERE / "advice"}  # asked of made federations, no paper's
    text = (HERE / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    assert {page.relative_to(HERE).as_posix() for page in PAGES} <= set(LINK.findall(text))


@pytest.mark.parametrize("page", [ROOT / "README.md", HERE / "README.md", *PAGES], ids=name)
def test_a_page_says_what_follows_plus_minus(page):
    text = joined(page.read_text(encoding="utf-8"))
    said = ("what follows ± is the standard deviation over seeds", "mean ± standard deviation over seeds")
    assert "±" not in text or any(words in text for words in said)


def test_the_pages_have_many_such_numbers():
    """The pattern finds them: else nothing would be compared."""
    found = {page.parent.name: len(NUMBER.findall(page.read_text(encoding="utf-8"))) for page in PAGES}
    assert found["fedu"] > 100
    assert min(found[paper] for paper in ("pfedme", "fedu", "pflego", "mmfl")) > 30


PAGE = """# A page

## One

[report](fedu/table3-mnist/report.md), `idiolect reproduce fedu/table3`

| method | MLR |
|---|---|
| FedU | 97.85 ± 0.04 (98.07 ± 0.02) |
| Local | 98.3 ± 0.0 |

## Two

`idiolect reproduce pfedme/fig6`

| pFedMe global | 0.92 ± 0.23 |

![a figure](fedu/fig3/figures/mnist-mlr-curves.png) and [a section](README.md#every-published-number)
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("97.85 ± 0.04", "97.86 ± 0.04", '"One": 97.86 ± 0.04 is not in the table.csv of fedu/table3-mnist'),
        ("97.85 ± 0.04", "97.85 ± 0.05", '"One": 97.85 ± 0.05 is not in'),
        ("98.07 ± 0.02", "98.07 ± 0.03", '"One": 98.07 ± 0.03 is not in'),
        ("98.3 ± 0.0", "98.4 ± 0.0", '"One": 98.4 ± 0.0 is not in'),
        ("0.92 ± 0.23", "0.93 ± 0.23", '"Two": 0.93 ± 0.23 is not in the table.csv of pfedme/fig6'),
        ("fedu/table3-mnist/report.md", "fedu/table4-mnist/report.md", '"One": 97.85 ± 0.04 is not in'),
        ("`idiolect reproduce pfedme/fig6`", "", '"Two": 0.92 ± 0.23 is not in the table.csv of no folder'),
    ],
)
def test_a_wrong_number_is_told_with_its_section(old, new, told):
    page = HERE / "README.md"
    assert wrong_numbers(PAGE, page) == []
    assert told in wrong_numbers(PAGE.replace(old, new), page)[0]


def test_a_broken_link_is_told():
    page = HERE / "README.md"
    assert broken_links(PAGE, page) == []
    assert "no-such.png is not there" in broken_links(PAGE.replace("mnist-mlr-curves.png", "no-such.png"), page)[0]
    assert "no such heading" in broken_links(PAGE.replace("#every-published-number", "#elsewhere"), page)[0]
