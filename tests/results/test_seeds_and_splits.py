"""results/seeds-and-splits says what its two folders hold, and so does docs/runs.md."""

import re

import pytest

from idiolect.study.analyse.intervals import paired
from results.scores import HERE, pooled

PAGE = (HERE / "seeds-and-splits" / "README.md").read_text(encoding="utf-8")
DOCS = (HERE.parent / "docs" / "runs.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("folder", "line"), [("seeds", "six seeds of one split"), ("splits", "six splits")])
def test_the_intervals_are_those_of_the_folders(folder, line):
    scores = pooled(f"seeds-and-splits/{folder}")
    one, other = scores["har", "fedavg/global"], scores["har", "local/local"]
    assert sorted(one) == sorted(other) == list(range(6))
    gap = paired([one[seed] for seed in range(6)], [other[seed] for seed in range(6)])
    row = re.search(rf"^\| {line} \|.*$", PAGE, re.M)
    assert row[0] == f"| {line} | {gap.mean:.2f} | {gap.low:.2f} to {gap.high:.2f} |"
    assert f"{-gap.mean:.2f} points" in DOCS
    assert f"[{-gap.high:.2f}, {-gap.low:.2f}]" in DOCS
