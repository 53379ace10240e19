"""The wording check of the pages: it finds each pattern and long sentences, and skips code, quotes and links."""

import re

import pytest

from docs.make import words
from docs.make.words import LONGEST, PATTERNS, ROOT, findings, findings_in_code

EXAMPLES = {
    "training alone": "Compare it with training alone.",
    "cannot be told": "The difference cannot be told.",
    "told apart": "The two are not told apart.",
    "told": "Leaks are found and told.",
    "tells": "A note tells where digits are lost.",
    "alone": "A file that alone predicts raw rows.",
    "beside": "Local training always stands beside.",
    "file a method": "One file a method.",
    "rows a patient": "Give four rows a patient.",
    "clients a round": "Draw ten\nclients a round.",
    "model of whose": "Write the model of whose rows these are.",
    "file whose": "Read the file whose name is given.",
    "say whose it is": "The metadata say whose it is.",
    "says who": "The report says who.",
    "N clients there": "N clients there are, S of them in a round.",
    "Public are": "Public are the names.",
    "what leaves": "Read what leaves a site.",
    "what travels": "The table shows what travels.",
    "have no say": "They have no say in the choice.",
    "asks nothing": "The page asks nothing of the network.",
    "else": "UTF-8, else Windows-1252.",
    "Else": "Else it is random.",
    "looked at": "Rounds are looked at after 1, 2, 3.",
    "goes on": "The same command goes on.",
    "stands in": "It stands in every report.",
    "lie in": "The files lie in a folder.",
    "how sure": "It shows how sure that is.",
}


@pytest.mark.parametrize(("found", "sentence"), EXAMPLES.items())
def test_each_pattern_is_found_in_a_sentence(found: str, sentence: str) -> None:
    assert [one.words for one in findings(f"{sentence}\n")] == [found]


def test_each_pattern_has_an_example() -> None:
    unused = set(PATTERNS)
    for sentence in EXAMPLES.values():
        first = findings(sentence)[0]
        unused -= {pattern for pattern in PATTERNS if re.fullmatch(pattern, first.words)}
        unused -= {pattern for pattern in PATTERNS if pattern.startswith("(?<=") and first.words.lower() == "else"}
    assert not unused


GOOD = """# Compare methods

Every comparison includes local training. Each client sends one message per round, and the report shows the result.
The side-by-side table is in `report.md`. Clients whose score drops are listed by name.
It counts how many clients a method hurts.

| method | what it does |
|---|---|
| `local` | local training only |
"""


def test_good_sentences_pass() -> None:
    assert not findings(GOOD)


def test_code_quotes_comments_and_link_targets_are_skipped() -> None:
    assert not findings('```text\nIt cannot be told.\n```\n\nThe command prints `told` and "cannot be\ntold".\n')
    assert not findings("<!-- not run: alone -->\n[Data sent](told.md#alone) and <a id='x' title=alone></a>.\n")


def test_a_finding_has_its_line_and_what_to_write() -> None:
    code, prose = "# Title\n\n```sh\nalone\n```\n\n", "First line,\nthen rows that are told.\n\n"
    found = findings(f"{code}{prose}- one\n- training\n  alone\n\n| a | alone |\n")
    assert [(one.line, one.words) for one in found] == [(8, "told"), (11, "training alone"), (14, "alone")]
    assert found[1].instead == "local training"


def test_a_long_sentence_is_found_and_two_short_ones_are_not() -> None:
    sentence = " ".join(["word"] * LONGEST)
    assert not findings(f"{sentence}. {sentence}.\n")
    assert not findings(f"{sentence}\n\n{sentence}\n")
    found = findings(f"Short.\n{sentence} more.\n")
    assert [(one.line, one.instead) for one in found] == [(2, f"divide this sentence of {LONGEST + 1} words")]


CODE = '''"""Read leaks.

They are found and told.
"""

told = 1  # 1 if it is alone
note = f"the {told} rows a client"
raise ValueError("the command goes on" if told else "none is told")
'''


def test_docstrings_comments_and_messages_are_checked_and_names_are_not() -> None:
    assert [(one.line, one.words) for one in findings_in_code(CODE)] == [
        (3, "told"),
        (6, "alone"),
        (7, "rows a client"),
        (8, "goes on"),
        (8, "told"),
    ]


def test_code_may_say_else_and_have_long_sentences() -> None:
    assert not findings_in_code(f'"""Return 1 if it is used, else 0: {"word " * LONGEST}."""\n')


def test_every_page_and_source_file_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert words.main() == 0, capsys.readouterr().out


def test_a_page_that_breaks_a_rule_is_printed_with_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(words, "sources", list)
    monkeypatch.setattr(words, "findings", lambda text: [words.Finding(3, "told", "report")])
    monkeypatch.setattr(words, "pages", lambda: [ROOT.joinpath("docs/cite.md").relative_to(ROOT)])
    assert words.main() == 1
    assert capsys.readouterr().out == 'docs/cite.md:3: "told": write: report\n'


def test_values_of_stored_files_keep_their_names() -> None:
    assert not findings_in_code('kind = "alone"\ncall = "cannot be told"\n')
    assert [one.words for one in findings_in_code('kind = "it is alone"\n')] == ["alone"]
