from dataclasses import replace

import pytest

from idiolect.data import Audit
from idiolect.report.view.from_store import view_of
from idiolect.report.view.leaks import findings_of, is_finding, is_severe, leaks_of


def test_no_leak_is_no_severe_finding(toy):
    assert leaks_of(view_of(toy, "").parts) is None
    assert findings_of(["No leak found: none."]) == [{"text": "No leak found: none.", "severe": False}]


@pytest.mark.parametrize(
    ("line", "severe"),
    [
        ("0 of 40 test samples (0.0%) have an exact copy in the training data of the same client.", False),
        ("3 of 40 test samples (7.5%) have an exact copy in the training data of the same client.", True),
        ("1,003 of 4,000 test samples (25.1%) have an exact copy in a client's validation data.", True),
        ("Normalisation 'z': FITTED ON TEST SAMPLES TOO, so test data shape the features.", True),
        ("Normalisation 'z': fitted on training samples only.", False),
        ("Known leak: windows overlap.", True),
        ("Column 'y2' alone tells the label of every row: is it the label under another name? ...", True),
        ("9 samples, 8 of them distinct; 1 distinct samples are held by more than one client; 0 repeat ...", False),
    ],
)
def test_which_findings_are_leaks(line, severe):
    assert is_severe(line) is severe
    assert is_finding(line)
    assert not is_finding(f"a note: {line.lower()}")


def test_the_sentences_of_the_audit_are_known():
    counts = {"samples": 9, "distinct": 8, "shared": 1, "repeated": 0, "test": 4, "test_in_own_train": 2}
    counts |= {"test_in_other_train": 0, "test_in_validation": 1, "validation": 5, "validation_in_own_train": 0}
    counts |= {"validation_in_other_train": 0, "clients_with_leaked_tests": 1}
    leaky = Audit(**counts, normalisation="z", fitted_on="all", leaks=("on purpose",))
    lines = leaky.lines()
    assert all(map(is_finding, lines))
    assert [is_severe(line) for line in lines] == [False, True, False, True, False, False, True, True]
    clean = replace(leaky, test_in_own_train=0, test_in_validation=0, fitted_on="train", leaks=())
    assert [(is_finding(line), is_severe(line)) for line in clean.lines()] == [(True, False)]
