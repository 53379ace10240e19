"""The page "Four hospitals": all commands run in order, on machines of their own, and print what the page shows."""

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.deploy.hosts import PORT, ROOT, Host, hosts, why_not
from tests.rights import loose, mode

PAGE = ROOT / "docs" / "four-hospitals.md"
FILES = ROOT / "docs" / "four-hospitals"
SITES = ("north", "south", "east", "west")
KEEPS, AT_END = ", keeps running", "at the end"

_BLOCK = re.compile(
    r'(?P<why><!-- not run: [^\n]+ -->\n)?^```(?P<language>sh|text) title="(?P<title>[^"]+)"\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_VARIES = (
    (r"\b\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d)?(\.\d+)?(\+00:00|Z)?", "TIME"),
    (r"\b([0-9A-F]{2}:){10,}[0-9A-F]{2}", "FINGERPRINT"),
    (r"\bhospitals-[0-9a-f]{8}\b", "STUDY"),
    (r"\b[0-9a-f]{12,64}\b", "HASH"),
    (r"[\d,.]+ (MB|GB|s|days|more days|messages are equal|messages)\b", r"N \1"),
    (r"(%\s+)[\d.]+\s*$", r"\1N"),  # the seconds of a row of a table
)
"""What differs from run to run: times, keys, identities, repeated calls, and what the machine has."""


@dataclass(frozen=True)
class Step:
    """A block of the page: commands (sh), or what they print (text). title: the machine, and how they run."""

    language: str
    title: str
    text: str

    @property
    def machines(self) -> tuple[str, ...]:
        name = re.split(r",| prints", self.title)[0]
        return SITES if name == "each site" else (name,)


def steps(page: str) -> Iterator[Step]:
    """The blocks with a machine, in order, without those that are not run."""
    for found in _BLOCK.finditer(page):
        if not found["why"]:
            yield Step(found["language"], found["title"], found["text"])


def alike(line: str) -> str:
    """A line without what differs from run to run."""
    for pattern, word in _VARIES:
        line = re.sub(pattern, word, line)
    return " ".join(line.split())


def missing(shown: str, printed: str) -> str:
    """The first line that the page shows and the command has not printed, in this order; empty if none.

    A line `...` stands for any lines. Without it the lines follow each other.
    """
    lines, at, free = [alike(line) for line in printed.splitlines() if line.strip()], 0, False
    for line in shown.splitlines():
        if line.strip() == "...":
            free = True
            continue
        if not line.strip():
            continue
        wanted = alike(line)
        where = [
            index
            for index in range(at, len(lines) if free else at + 1)
            if index < len(lines) and lines[index] == wanted
        ]
        if not where:
            return line
        at, free = where[0] + 1, False
    return ""


def first(pattern: str, text: str) -> str:
    """What the first match of a pattern holds; empty if there is none."""
    found = re.search(pattern, text)
    return found[1] if found else ""


class Reader:
    """Someone who does what the page says, and compares what is printed with the page."""

    def __init__(self, machines: dict[str, Host]) -> None:
        self.machines, self.fingerprint, self.study = machines, "", ""
        self.printed, self.running = dict[str, str](), dict[str, Path]()

    def follow(self, step: Step) -> None:
        """Run a block's commands on its machines, or compare a block of a text."""
        for name in step.machines:
            if step.language == "text":
                self.compare(step, name)
            elif KEEPS in step.title:
                self.running[name] = self.machines[name].start(step.text.strip(), {"SITE": name})
            else:
                self.running.pop(name, None)
                self.run(step, name)

    def run(self, step: Step, name: str) -> None:
        text = step.text.replace("export SITE=north", f"export SITE={name}")
        text = re.sub(r"FINGERPRINT=SHA256:\S+", f"FINGERPRINT={self.fingerprint}", text)
        text = re.sub(r"\bhospitals-[0-9a-f]{8}\b", self.study, text)
        status, printed = self.machines[name].run(f"set -e\n{text}\nset +e", "y" if "site approve " in text else "")
        assert status == 0, f"{name}: {text}\n{printed}"
        self.printed[name] = printed
        self.fingerprint = self.fingerprint or first(r"rootca_fingerprint_sha256: (\S+)", printed)
        self.study = self.study or first(r"\b(hospitals-[0-9a-f]{8})\b", printed)

    def compare(self, step: Step, name: str) -> None:
        """Raise `AssertionError` unless the machine has printed what the page shows."""
        out = self.machines[name].started[-1][1] if step.title.endswith(AT_END) else self.running.get(name)
        end = time.monotonic() + (600 if step.title.endswith(AT_END) else 120)
        while True:
            printed = self.printed[name] if out is None else out.read_text()
            line = missing(step.text, printed)
            if not line or out is None or time.monotonic() > end:
                break
            time.sleep(0.5)
        assert not line, f"{name} has not printed {line!r} but\n{printed}"


def test_the_comparison_finds_what_is_missing_or_in_another_order() -> None:
    printed = "one\ntwo 1.5 MB\n\nthree 2026-11-26\nfour\n"
    assert missing("one\ntwo 7 MB\nthree 2020-01-01\n", printed) == ""
    assert missing("...\nthree 2020-01-01\n", printed) == ""
    assert missing("three 2020-01-01\n", printed) == "three 2020-01-01"
    assert missing("...\nfour\none\n", printed) == "one"
    assert missing("one\nthree 2020-01-01\n", printed) == "three 2020-01-01"


def test_every_command_of_the_page_has_a_machine_and_every_file_is_named() -> None:
    page = PAGE.read_text()
    assert page.count("```sh\n") == page.count("```text\n") == 0
    assert {name for step in steps(page) for name in step.machines} == {*SITES, "hub", "administrator"}
    for path in FILES.iterdir():
        if path.is_file():
            assert re.sub("south|east|west", "north", path.name) in page, path.name


@pytest.mark.second
def test_the_page_runs_on_six_machines(tmp_path: Path) -> None:
    """In order, with only the hub's port reachable, by users whose new files everybody may read (attack S5)."""
    if reason := why_not():
        pytest.skip(reason)
    with hosts(tmp_path, SITES, ["administrator"]) as machines:
        for machine in machines.values():
            for path in FILES.iterdir():
                if path.is_file():
                    shutil.copy(path, machine.folder)
            machine.run("umask 000")
        reader = Reader(machines)
        for step in steps(PAGE.read_text()):
            reader.follow(step)
            if "site status" in step.text:  # hub and sites run
                assert {port for _, port in machines["hub"].listening()} == {PORT}
                assert all(machines[site].listening() == set() for site in SITES)
        assert {"ipv4", "ipv6"} >= {family for family, _ in machines["hub"].listening()}
        for site in SITES:
            kit = machines[site].folder / "kit"
            assert loose(kit) == []
            assert {"sent.jsonl", "kept.msg", "log.txt", "client.key"} <= {path.name for path in kit.rglob("*")}
            keys = [path for path in machines[site].folder.rglob("*") if path.suffix == ".key"]
            assert [path.parent.name for path in keys] == ["startup"]
        hub = machines["hub"].folder
        assert [*loose(hub / "kits" / "hub"), *loose(hub / "study"), *loose(hub / "audit")] == []
        assert {mode(path) for path in (tmp_path / "administrator").rglob("*.key")} == {0o600}
        (hub / "study" / "hub.json").chmod(0o644)
        assert loose(hub / "study") == ["644 study/hub.json"]  # the check sees a file that others may read
