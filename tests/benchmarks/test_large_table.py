"""The large table: its truth is a truth, and one seed decides it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.large_table import CLIENT, LABEL, MISSING, WORDS, large_table, schema_of, truth_scores
from idiolect.core.errors import ConfigError
from idiolect.data import from_table


def test_the_labels_follow_the_true_probabilities() -> None:
    table = large_table(20_000, 10, seed=1)
    p, y = table.probability, table.frame[LABEL].to_numpy()
    assert p.mean() == pytest.approx(0.02, abs=1e-9)
    for group in np.array_split(np.argsort(p), 5):  # calibrated: within four standard errors in every fifth
        assert abs(y[group].mean() - p[group].mean()) < 4 * np.sqrt((p[group] * (1 - p[group])).sum()) / len(group)


def test_one_seed_decides_everything() -> None:
    first, again, other = large_table(2000, 10), large_table(2000, 10), large_table(2000, 10, seed=1)
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert not first.frame.equals(other.frame)


def test_it_has_hospitals_of_unequal_size_words_and_missing_values() -> None:
    frame = large_table(5000, 40).frame
    sizes = frame[CLIENT].value_counts()
    assert frame.shape == (5000, 62)
    assert len(sizes) == 40
    assert sizes.min() >= 20
    assert sizes.max() > 4 * sizes.min()
    assert int(frame.isna().any().sum()) == MISSING
    assert all(set(frame[name]) == set(words) for name, words in WORDS.items())


def test_the_truth_scores_as_scikit_learn_has_it() -> None:
    scoring = pytest.importorskip("sklearn.metrics")
    table = large_table(4000, 10)
    rows = np.arange(0, 4000, 2)
    y, p = table.frame[LABEL].to_numpy()[rows], table.probability[rows]
    scores = truth_scores(table, rows)
    assert scores["log-loss"] == pytest.approx(scoring.log_loss(y, p), rel=1e-4)
    assert scores["auroc"] == pytest.approx(scoring.roc_auc_score(y, p), abs=1e-9)


def test_too_few_rows_or_columns_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 20 per hospital"):
        large_table(100, 40)
    with pytest.raises(ConfigError, match="columns = 3"):
        large_table(columns=3)


def test_its_file_is_read_as_the_frame_is(tmp_path: Path) -> None:
    frame = large_table(2000, 10).frame
    frame.to_csv(tmp_path / "large.csv", index=False)
    assert schema_of(tmp_path / "large.csv").features == from_table(frame, CLIENT, LABEL).schema.features  # pyright: ignore[reportOptionalMemberAccess]
    assert (
        from_table(tmp_path / "large.csv", CLIENT, LABEL).fingerprint == from_table(frame, CLIENT, LABEL).fingerprint
    )
