import json
from dataclasses import replace

import numpy as np

from idiolect.data import FederatedData, Split, audit


def data(train, validation, test, **provenance):
    """Each split: per client a list of numbers, which are the samples."""

    def split(groups):
        flat = np.array([value for group in groups for value in group], dtype=np.float32)
        offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        return Split(flat[:, None], (flat > 5).astype(np.int32), offsets)

    return FederatedData(
        "d",
        split(train),
        split(validation),
        split(test),
        tuple("ab"),
        "classification",
        ("0", "1"),
        provenance=provenance,
    )


FITTED = {"normalisation": {"name": "z", "fitted_on": "train"}}


def test_nothing_found():
    found = audit(data([[1, 2], [3]], [[4], []], [[5], [6]], **FITTED))
    assert found.clean
    assert (found.samples, found.distinct, found.shared, found.repeated) == (6, 6, 0, 0)
    assert len(found.lines()) == 1
    assert "No leak found: none of 2 test and" in found.lines()[0]


def test_counts_by_hand():
    # 1: a's test copy in a's own training; 3: a's test in b's training; 9: b's test in both; 2 twice in a's training.
    found = audit(data([[1, 2, 2, 9], [3, 9]], [[3], [7]], [[1, 3, 8], [9, 7]], **FITTED))
    assert found.test == 5
    assert found.test_in_own_train == 2
    assert found.test_in_other_train == 2
    assert found.test_in_validation == 2
    assert found.validation_in_own_train == 0
    assert found.validation_in_other_train == 1
    assert (found.samples, found.distinct) == (13, 6)
    assert found.shared == 2
    assert found.repeated == 1
    assert found.clients_with_leaked_tests == 2
    assert not found.clean
    assert (
        "2 of 5 test samples (40.0%) have an exact copy in the training data of the same client" in found.lines()[1]
    )


def test_a_copy_has_the_same_label():
    clean = data([[1, 2], [3]], [[], []], [[4], [1]], **FITTED)
    assert not audit(clean).clean
    other = replace(clean.test, y=1 - clean.test.y)
    assert audit(replace(clean, test=other)).clean


def test_normalisation_and_leaks_by_design():
    plain = [[1, 2], [3]], [[], []], [[4], [5]]
    fitted = audit(data(*plain, normalisation={"name": "z-all", "fitted_on": "all"}))
    assert not fitted.clean
    assert any("'z-all': FITTED ON TEST SAMPLES TOO" in line for line in fitted.lines())
    leaking = audit(data(*plain, **FITTED, leaks=["siblings"]))
    assert not leaking.clean
    assert "Known leak: siblings." in leaking.lines()
    assert audit(data(*plain)).fitted_on == "unknown"


def test_to_dict_is_plain():
    found = json.loads(json.dumps(audit(data([[1], [3]], [[], []], [[1], [5]], **FITTED)).to_dict()))
    assert found["test_in_own_train"] == 1
    assert found["clean"] is False
