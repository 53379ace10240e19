"""Check the wording of pages and source files: `python -m docs.make.words` prints each place and a remedy.

Code, quoted text and link targets are skipped. Of a source file its docstrings, comments and messages are checked.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 40  # words of a sentence
ROOMS = (
    "core",
    "client",
    "metrics",
    "graphs",
    "models",
    "algorithms",
    "data",
    "runtime",
    "study",
    "deploy",
    "api",
    "cli",
    "report",
)
"""The folders of the package with source files that are checked."""
STORED = ("alone", "cannot be told")
"""Values in the files of an advice, which keep their names."""

_UNIT = "category|class|client|column|hospital|line|method|model|patient|person|pupil|round|row|sample|seed|site"
_COUNTED = (
    "byte|card|client|dot|feature|file|figure|line|message|model|number|page|point|round|row|sample|score|second|step"
    "|table|time"
)
_THINGS = (
    "column|data set|device|file|folder|graph|message|method|metric|model|number|page|row|run|set|setting|table|value"
)
PATTERNS: dict[str, str] = {
    r"training alone": "local training",
    r"(?:can ?not|not) be (?:told|said)": "inconclusive",
    r"(?:told|tells?) (?:\w+ )?apart": "distinguish",
    r"told|tell|tells": "report, say, show, detect",
    r"alone": "only, by itself, self-contained",
    r"besides?": "next to, also, compared with, in the same folder",
    rf"(?<!many )(?:{_COUNTED})s? an? (?:{_UNIT})": "per",
    r"(?:\w+ )?whose (?:it|each|model) is": "which client it belongs to",
    rf"(?:{_THINGS})s?,? (?:of )?whose?": "of which, that has, with",
    r"says? who(?:se)?": "names the clients that",
    r"\w+ there (?:are|is)(?=\s*[,.;:])|Public are|N clients there": "subject, verb, object",
    r"what (?:leaves|travels|is to be compared)": "data sent, communication, use for comparisons",
    r"have no say|has no say|asks? nothing|asks? the network": "is not used, makes no requests",
    r"(?<=[,;(] )else|Else": "otherwise",
    r"looks? at|looked at|looking at": "evaluate, inspect, read",
    r"go on|goes on|went on|going on": "continue, resume",
    r"stands? (?:in|there|still|under|side)|stood|lies? (?:in|there)": "is in, are in",
    r"how sure": "how certain",
}
"""What a page does not say, as a regular expression of words, and what to write instead."""


@dataclass(frozen=True)
class Finding:
    """One place: the line of its page, the words found, and what to write instead."""

    line: int
    words: str
    instead: str


Compiled = list[tuple[re.Pattern[str], str]]
_COMPILED: Compiled = [(re.compile(rf"(?<![\w-])(?:{words})(?![\w-])"), new) for words, new in PATTERNS.items()]
# "1 if the sample is used, else 0" is clear in code.
_IN_CODE: Compiled = [one for one in _COMPILED if one[1] != "otherwise"]


def _blank(found: re.Match[str]) -> str:
    """One word in the place of what is no prose, with its line breaks kept."""
    return "X" + "\n" * found[0].count("\n")


def passages(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, item, heading or table cell of a page in Markdown, with the number of its first line."""
    text = re.sub(r"^ *(`{3,}).*?^ *\1`*$|<!--.*?-->", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)
    text = re.sub(r"(`+)[^`]+\1|\"[^\"\n]*(?:\n[^\"\n]+)?\"|“[^”]*”", _blank, text)
    text = re.sub(r"\]\([^)\s]*\)|</?[a-z][^>]*>", lambda m: "]" if m[0][0] == "]" else "", text)
    first, held = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        bare = line.strip()
        if held and (not bare or re.match(r"[-*] |\d+\. |#|\|", bare)):
            yield first, "\n".join(held)
            held = []
        if bare.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", bare) if cell.strip())
        elif bare.startswith("#"):
            yield number, bare
        elif bare:
            first = first if held else number
            held.append(bare)


def findings(text: str, patterns: Compiled = _COMPILED, longest: int = LONGEST) -> list[Finding]:
    """Return every place of a page that breaks a rule, in the order of its lines."""
    found: list[Finding] = []
    for first, passage in passages(text):
        taken = list[range]()
        for pattern, instead in patterns:
            for match in pattern.finditer(passage.replace("\n", " ")):
                if not any(match.start() in one for one in taken):  # the first of two patterns names it
                    taken.append(range(*match.span()))
                    found.append(Finding(first + passage.count("\n", 0, match.start()), match[0], instead))
        for sentence in re.finditer(r"\S.*?(?:[.?!][*_)\"]*(?=\s)|\Z)", passage, re.DOTALL):
            words = [word for word in sentence[0].split() if re.search(r"\w", word)]
            if len(words) > longest:
                line = first + passage.count("\n", 0, sentence.start())
                found.append(
                    Finding(line, f"{' '.join(words[:5])} ...", f"divide this sentence of {len(words)} words")
                )
    return sorted(found, key=lambda one: one.line)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield each docstring, message and comment of a Python file, with the number of its first line."""
    inner = set[int]()  # the parts of a message with values
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, "" if node.value in STORED else node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def findings_in_code(source: str) -> list[Finding]:
    """Return every place of a Python file that breaks a rule, in the order of its lines; sentences may be long."""
    places: Iterable[tuple[int, Finding]] = (
        (line, one) for line, text in prose(source) for one in findings(text, _IN_CODE, sys.maxsize)
    )
    found = {Finding(line + one.line - 1, one.words, one.instead) for line, one in places}
    return sorted(found, key=lambda one: (one.line, one.words))


def sources() -> list[Path]:
    """Return the source files that are checked, each as a path in the repository."""
    return [path.relative_to(ROOT) for room in ROOMS for path in sorted((ROOT / "src/idiolect" / room).rglob("*.py"))]


def pages() -> list[Path]:
    """Return the pages that are checked, each as a path in the repository."""
    outside = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [path.relative_to(ROOT) for path in (*outside, *sorted((ROOT / "docs").rglob("*.md")))]


def main() -> int:
    """Print what to rewrite; return 1 if there is anything."""
    wrong: list[str] = []
    for check, paths in ((findings, pages()), (findings_in_code, sources())):
        for path in paths:
            found = check((ROOT / path).read_text(encoding="utf-8"))
            wrong += [f'{path}:{one.line}: "{one.words}": write: {one.instead}' for one in found]
    print("\n".join(wrong), end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
