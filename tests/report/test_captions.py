import pytest

from idiolect.report.captions import coincide_caption, seed_counts, seeds_text, sentence, spread_caption
from idiolect.report.view.from_store import part_of


@pytest.mark.parametrize(
    ("counts", "planned", "said"),
    [
        ([1, 1], 1, "one seed"),
        ([5, 5], 5, "5 seeds"),
        ([3, 5, 4], 5, "3 to 5 finished of 5 seeds"),
        ([3, 3], 5, "3 finished of 5 seeds"),
        ([1], 5, "1 finished of 5 seeds"),
        ([], 5, "0 finished of 5 seeds"),
    ],
)
def test_seeds(counts, planned, said):
    assert seeds_text(counts, planned) == said


def test_spread():
    spread = "bars: ± half of the 95 % interval over seeds (Student's t)"
    assert spread_caption("points", "bars", [4, 4], 4) == f"points: mean of 4 seeds; {spread}"
    assert spread_caption("points", "bars", [1, 4], 4) == (
        f"points: mean of 1 to 4 finished of 4 seeds; {spread}, none for a single seed"
    )
    assert spread_caption("points", "bars", [1, 1], 4) == "points: 1 finished of 4 seeds"


def test_only_finished_seeds_count(toy, cell):
    """FedAvg diverged in one of two seeds, pFedMe was not run."""
    assert seed_counts([part_of(toy, cell)]) == [1, 2]


def test_sentences_and_lines_that_coincide():
    assert sentence(r"lines: \$5") == "Lines: $5."
    assert sentence("Done!") == "Done!"
    assert coincide_caption(["a x\nb y", "c\nd"]) == "lines that coincide: a x = b y; c = d"
    assert coincide_caption([]) == ""
