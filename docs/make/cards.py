"""One card a method, made of its docstring, its settings, its tests, the logs of sites and the measured tables."""

import re
import tomllib
from inspect import getsourcefile, signature
from itertools import takewhile
from pathlib import Path
from typing import Any

from docs.make import notation, settings
from docs.make.measured import measured
from idiolect.algorithms.base import Algorithm
from idiolect.algorithms.registry import ALGORITHMS, hyperparameters
from idiolect.core import docstrings
from idiolect.core.docstrings import POINTS, explained, text_of

ROOT = Path(__file__).parents[2]
NO_CODE = "No published code was compared with it."
NOTES = tomllib.loads((Path(__file__).parent / "notes.toml").read_text())
"""What no docstring says: when a method is to be used (`use`), what its published code does (`code`)."""
PROOFS: dict[str, dict[str, str]] = tomllib.loads((Path(__file__).parent / "proofs.toml").read_text())
"""By method: the name of a test without `test_`, and the sentence that it proves."""
FAMILIES = {
    "Near a shared model": "fedavg-intercept pfedme ditto apfl l2gd perfedavg reptile fedavg-ft",
    "A shared body, private heads": "pflego fedper fedrep lg-fedavg fedbabu fedrecon",
    "Several modalities": "mmfl mmfl-fusion",
    "Related by a graph or a matrix": "fedu dfedu mocha",
    "Groups that are found": "ifca",
    "Trees": "boosted-intercept local-trees",
    "One model for all": "fedavg fedprox scaffold feddane afl fedadam fedyogi fedadagrad fedsgd one-shot",
    "The two ends": "local global",
}
"""The methods of each family; one that stands in none is among the others."""


def pages() -> dict[str, str]:
    """Every card, by its path in the site."""
    return {f"methods/{name}.md": card(name) for name in ALGORITHMS}


def navigation() -> list[dict[str, list[str]]]:
    """The cards by family, as the site's navigation has them."""
    families = {title: names.split() for title, names in FAMILIES.items()}
    known = {name for names in families.values() for name in names}
    families |= {"Others": others} if (others := [name for name in ALGORITHMS if name not in known]) else {}
    return [{title: [f"methods/{name}.md" for name in names]} for title, names in families.items()]


def linked(markdown: str) -> str:
    """The page of all methods, in whose table each name leads to its card."""

    def link(found: re.Match[str]) -> str:
        return re.sub(r"`([a-z0-9-]+)`", lambda m: _to(m[1]), found[0])

    return re.sub(r"^\| `[^|]*\|", link, markdown, flags=re.MULTILINE)


def _to(name: str) -> str:
    return f"[`{name}`](methods/{name}.md)" if name in ALGORITHMS else f"`{name}`"


def card(name: str) -> str:
    """The page of one method."""
    cls, note = ALGORITHMS[name], NOTES.get(name, {})
    parts = [
        f"# {cls.title}",
        f"`{name}`: {notation.plain(cls.summary)}.",
        problem(cls),
        *(["## When to use it\n\n" + notation.symbols(note["use"].strip())] if "use" in note else []),
        settings_of(cls),
        "## Data sent\n\n" + travels(name),
        "## What published code does\n\n" + notation.symbols(note.get("code", NO_CODE).strip()),
        proof(name, cls),
        "## Measured\n\n" + measured(name),
        example(name, cls),
    ]
    return "\n\n".join(parts) + "\n"


def documented(cls: type[Algorithm]) -> list[type[Any]]:
    """The method, and the classes whose settings and rules it has."""
    return [cls, *takewhile(lambda base: base is not Algorithm, cls.__mro__[1:])]


def problem(cls: type[Algorithm]) -> str:
    """The problem and a round, typeset from the docstring; then what else it says, but for the settings."""
    known = set(hyperparameters(cls))
    texts = [explained(text_of(one), known)[1] for one in documented(cls) if one is cls or one.__name__ == "Adaptive"]
    first, *rest = "\n\n".join(texts).split("\n\n")
    return "## The problem and a round\n\n" + "\n\n".join([opening(first), *(_paragraph(one) for one in rest)])


def opening(paragraph: str) -> str:
    """The first paragraph: the objective after the method's name is an equation, if it is one."""
    found = re.match(r"^[^:=]{2,40}: (.*)$", paragraph, re.DOTALL)
    text = " ".join((found[1] if found else paragraph).split())
    if not found or not re.search(r" = |\bmin\b|min_", text):
        return _paragraph(paragraph if not found else text[0].upper() + text[1:])
    main, comma, words = text.partition("; the rest")
    above = re.match(r"^((?:the model of|min over|each client) [a-z][^_=]*?) (?=\S+ = )", main)
    lines = [notation.display([main[above.end() :] if above else main])]
    return "\n\n".join([*([notation.plain(above[1].capitalize()) + ":"] if above else []), *lines]) + (
        f"\n\nThe rest{notation.inline(words)}" if comma else ""
    )


_EQUATION = re.compile(r"^\S.*\s{3,}\([^()]*\)$")
"""A line of a paragraph that has an equation's number."""


def _paragraph(paragraph: str) -> str:
    """A paragraph of a docstring: indented lines are equations, the others are text."""
    parts: list[tuple[bool, list[str]]] = []
    for line in paragraph.splitlines():
        shown = line.startswith("    ") or bool(_EQUATION.match(line))
        if not parts or parts[-1][0] != shown:
            parts.append((shown, []))
        parts[-1][1].append(line)
    return "\n\n".join(
        notation.display(lines) if shown else notation.inline(" ".join(lines)) for shown, lines in parts
    )


def settings_of(cls: type[Algorithm]) -> str:
    """A table of the settings: default, range, and what each is in words; then what the docstrings say."""
    said = meanings(cls)
    head = ["| setting | default | range | what it is, when to change it |", "|---|---|---|---|"]
    box = ['<div class="stacked settings" markdown>', "", *head, *settings.rows(cls, said), "", "</div>"]
    table = "\n".join(["## Settings", "", *box])
    notes = [notation.inline(text) for text in remarks(cls)]
    return "\n\n".join(one for one in [table, *notes, settings.details(said)] if one)


def remarks(cls: type[Algorithm]) -> list[str]:
    """What docstrings say of settings whose explanation they leave to a base class."""
    left: dict[str, str] = {}
    for one in documented(cls):
        for key, text in explained(text_of(one), set(hyperparameters(cls)))[0].items():
            rest = POINTS.sub("", text).removeprefix("the clients' SGD").strip(" ,;.")
            if POINTS.search(text) and len(rest) > 3:
                left[rest] = f"{left[rest]}, `{key}`" if rest in left else f"`{key}`"
    return [f"{keys}: {rest}." for rest, keys in left.items()]


def meanings(cls: type[Algorithm]) -> dict[str, str]:
    """What the docstrings say of each setting; where the method's points to a base class, what that one says."""
    return docstrings.meanings(map(text_of, documented(cls)), set(hyperparameters(cls)))


def travels(name: str) -> str:
    """The method's line of the table that sites' logs made, in words."""
    page = (ROOT / "docs" / "what-leaves.md").read_text()
    line = re.search(rf"^\| `{name}` \|(.*)\|$", page, re.MULTILINE)
    if name == "global":
        return "All samples, to one place: it is the end of the scale that no federation allows."
    if line is None:
        return (
            "For each modality that it trains: the encoder, the decoder, the number of the chosen rate and "
            "the number of samples. The fusion head, where there is one, is not sent. "
            "([All messages](../what-leaves.md).)"
        )
    whom, vectors, size, stays = (cell.strip() for cell in line[1].split("|"))
    return (
        f"| to whom | vectors of a round's message | bytes per round | what stays |\n|---|---|---|---|\n"
        f"| {whom} | {vectors} | {size} | {stays} |\n\n"
        "From the logs of sites that ran it; d is the number of the model's parameters "
        "([what the words mean, and all other messages](../what-leaves.md))."
    )


def tests_of(cls: type[Algorithm]) -> list[Path]:
    """The test files of a method: that of its module, and those that are named after it."""
    module = cls.__module__.rpartition(".")[2]
    files = sorted((ROOT / "tests" / "algorithms").glob(f"test_{module}*.py"))
    others = {path.stem.removeprefix("test_") for path in (ROOT / "src" / "idiolect" / "algorithms").glob("*.py")}
    return [file for file in files if (stem := file.stem.removeprefix("test_")) == module or stem not in others]


def proof(name: str, cls: type[Algorithm]) -> str:
    """The sentences that its tests prove, with links to all of them."""
    files = [file.relative_to(ROOT).as_posix() for file in tests_of(cls)]
    links = ", ".join(f"[{path}](../../{path})" for path in files)
    lines = [f"- {notation.symbols(sentence)}" for sentence in PROOFS.get(name, {}).values()]
    checks = "All tests of the method, with their oracles, are in" if lines else "The tests of the method are in"
    return "\n".join(["## What is proven", "", *lines, *([""] if lines else []), f"{checks} {links}."])


def example(name: str, cls: type[Algorithm]) -> str:
    """How to run it, and where its one file is."""
    source = Path(getsourcefile(cls) or "").relative_to(ROOT).as_posix()
    data = (
        "--data har-modalities --data-dir DIR --model multimodal" if name.startswith("mmfl") else "--data synthetic"
    )
    others = "local" if name != "local" else "fedavg-ft"
    assert signature(cls)
    return (
        "## Run it\n\n"
        f"```sh\nidiolect compare {data} --methods {name},{others} --rounds 20\n```\n\n"
        f"In Python it is `idiolect.{cls.__name__}`. The whole method is one file: [{source}](../../{source}).\n\n"
        f"Source: {notation.plain(cls.source)}."
    )
