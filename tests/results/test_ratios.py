"""The ratios of PFLEGO's Table 3 are counted as differences on the first page of the results."""

import pytest

from results import ratios
from results.scores import README


def test_they_are_the_seconds_over_pflegos():
    found = {ratio.method: (ratio.measured, ratio.published) for ratio in ratios.ratios()}
    assert len(found) == 6
    assert found["FedAvg"] == pytest.approx((69.11361593600304 / 2.070054012001492, 16.553 / 7.024))
    assert found["FedRep"] == pytest.approx((6.879850397002883 / 2.070054012001492, 10.571 / 7.024))


@pytest.mark.parametrize(
    ("measured", "differs"), [(2.4, False), (2.9, False), (3.1, True), (1.9, False), (1.7, True)]
)
def test_a_ratio_differs_beyond_a_quarter_of_the_published_one(measured, differs):
    assert ratios.Ratio("FedAvg", measured, 2.4).differs is differs


def test_the_first_page_counts_them():
    """`python -m results` would change nothing, and the difference of 33 against 2.4 is in the count."""
    text = README.read_text(encoding="utf-8")
    assert ratios.markdown() in text
    assert "**6 of the 6 differ**" in text
    assert "six ratios" in " ".join(text.split())
